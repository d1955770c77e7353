from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tornado", reason="the extra [web] is not installed")

from gp_active_sensing.errors import ConfigError, RunError
from gp_active_sensing.mission.run_dirs import drop_note, note_run, noted_run, runs_folder
from gp_active_sensing.ros import launches
from gp_active_sensing.ros.live_page_node import LivePageNode
from tests.ros.conftest import Ros, wait_until
from tests.ros.launched import launched, parameters, processes, runner
from tests.ros.probe import write_scenario
from tests.unit.report.runs import node_run
from tests.unit.web.serving import Viewer, ask
from tests.waiting import LIMIT


def command(at: Any, name: str, token: str) -> tuple[int, dict[str, Any]]:
    status, text, _ = ask(at, f"/do/{name}", "POST", Authorization=f"Bearer {token}")
    return status, json.loads(text)


@pytest.mark.ros
def test_a_mission_is_watched_paused_and_finished(tmp_path: Path) -> None:
    scenario, run = write_scenario(tmp_path / "tiny.yaml", budget=12), tmp_path / "run"
    words = (f"scenario:={scenario}", f"run_dir:={run}", "speed_factor:=2", "exit_at_end:=true")
    log = tmp_path / "log"
    with launched(log, *runner("traffic_sim", *words, "web:=true")) as process:
        found = wait_until(
            lambda: re.search(
                r"live page: http://127\.0\.0\.1:(\d+)/#token=(\S+)", log.read_text()
            ),
            "the address",
        )
        at: Any = SimpleNamespace(port=int(found[1]))
        with Viewer(at) as viewer:
            viewer.until(lambda parts: parts.get("mission", {}).get("used", 0) > 0)
            viewer.until(lambda parts: parts.get("robots"))
            assert viewer.parts["mission"]["state"] == "running"
            status, text, _ = ask(at, "/do/pause", "POST", Authorization="Bearer wrong")
            assert (status, "you may look and not command" in text) == (403, True)
            assert command(at, "pause", found[2]) == (
                200, {"done": True, "text": "paused"},
            )  # fmt: skip
            viewer.until(lambda parts: parts["mission"]["state"] == "paused")
            status, answer = command(at, "pause", found[2])
            assert (status, answer["done"]) == (409, False)
            assert command(at, "resume", found[2])[0] == 200
            viewer.until(lambda parts: parts["mission"]["state"] == "running")
            status, answer = command(at, "finish", found[2])
            assert (status, answer["text"]) == (200, "finished; the last waypoint stays published")
            viewer.until(lambda parts: parts["mission"]["state"] == "ended")
            assert viewer.parts["mission"]["reason"] == "asked to finish"
        assert process.wait(LIMIT) == 0, log.read_text()
    assert json.loads((run / "summary.json").read_text())["status"] == "finished"
    logs = Path(os.environ["ROS_LOG_DIR"])
    kept = [path for path in logs.rglob("*") if path.is_file()]
    assert not [path for path in kept if found[2] in path.read_text(errors="replace")]


def test_it_follows_what_the_node_has_noted_and_no_message(ros: Ros, tmp_path: Path) -> None:
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

    page = ros.add(LivePageNode(cli_args=["--ros-args", "-p", "node:=other"]))
    domain = page.context.get_domain_id()
    node = ros.node()
    says = node.create_publisher(DiagnosticArray, "/diagnostics", 10)

    def claim() -> None:
        pair = KeyValue(key="run_dir", value=str(node_run(tmp_path / "claimed")))
        says.publish(
            DiagnosticArray(status=[DiagnosticStatus(name="other: mission", values=[pair])])
        )

    claim()
    assert says.get_subscription_count() == 0
    with Viewer(page.server) as viewer:
        viewer.until(lambda parts: "waiting for /other" in parts.get("run", {}).get("problem", ""))
        note_run("/another", domain, node_run(tmp_path / "another"))
        note_run("/other", domain, None)
        viewer.until(lambda parts: "keeps its mission nowhere" in parts["run"]["problem"])
        note_run("/other", domain, node_run(tmp_path / "run", name="mine"))
        viewer.until(lambda parts: "mine" in parts.get("page.heading", ""))
        drop_note("/other", domain)
        assert noted_run("/other", domain) == (None, False)
        note_run("/other", domain, node_run(tmp_path / "next", name="next one"))
        viewer.until(lambda parts: "next one" in parts.get("page.heading", ""))
        status, answer = command(page.server, "pause", page.server.access.token)
        assert (status, answer["done"]) == (409, False)
        assert "/other/pause" in answer["text"]
    page.release()


def test_a_note_that_others_can_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    note_run("/a/b", 3, tmp_path)
    assert noted_run("/a/b", 3) == (tmp_path, True)
    (file,) = runs_folder().iterdir()
    for mode, text in ((0o666, file.read_text()), (0o620, file.read_text()), (0o600, "[]")):
        file.chmod(mode)
        file.write_text(text)
        with pytest.raises(RunError):
            noted_run("/a/b", 3)


def test_the_launch_files_serve_it_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"web": "true", "web_port": "8080", "web_host": "0.0.0.0"}
    for name in ("probe", "traffic_sim", "replay"):
        more = {"bag": "town_sample"} if name == "replay" else {}
        found = processes(name, **given, **more)
        assert parameters(found["live_page"]) == {"host": "0.0.0.0", "port": 8080}
        kept = parameters(found["active_sensing"]).get("run_dir")
        assert kept == (None if name == "probe" else "auto"), "probe.yaml says where"
    found = processes("traffic_sim", web="true", run_dir="here")
    assert parameters(found["live_page"]) == {"run_dir": "here"}
    with pytest.raises(ConfigError, match="web_port: expected a whole number"):
        processes("probe", web="true", web_port="many")
    monkeypatch.setattr(launches, "can_serve", lambda: False)
    with pytest.raises(ImportError, match=r"web: the live page needs tornado"):
        processes("probe", web="true")
