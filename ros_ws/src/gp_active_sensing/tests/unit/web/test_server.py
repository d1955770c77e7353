from __future__ import annotations

import contextlib
import json
import math
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("tornado", reason="the extra [web] is not installed")

from gp_active_sensing.errors import RunError
from gp_active_sensing.records import events as of
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.types import Reading
from gp_active_sensing.web import server as server_module
from gp_active_sensing.web.access import WatchOptions
from gp_active_sensing.web.serve import make_server
from tests.unit.report.runs import decided, node_run, plan, record, used
from tests.unit.web.serving import Commands, Viewer, ask, serving
from tests.waiting import LIMIT, wait_until


def test_a_mission_that_begins_and_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with serving(run) as server, Viewer(server) as viewer:
        assert server.lines == [f"live page: http://127.0.0.1:{server.port}/"]
        parts = viewer.until(lambda parts: "run" in parts)
        assert "waiting for a mission" in parts["run"]["problem"]
        node_run(run)
        viewer.until(lambda parts: parts.get("maps", {}).get("all") == 3)
        assert viewer.parts["mission"]["used"] == 3
        assert viewer.parts["step.1"]["value"] == 30.0
        assert "Chosen" in viewer.parts["step.2"]["why"]
        assert not viewer.hello["control"]
        seen = len(viewer.changes)
        with RunDirectory.open(run) as more:
            more.append_event(decided(3, plan(2), 2))
            more.append_event(used(Reading(3, 2, 31.0)))
            more.append_record(record(3, plan(2), 31.0))
        viewer.until(lambda parts: parts.get("step.3", {}).get("value") == 31.0)
        newer = [change for change in viewer.changes[seen:]]
        assert not any(change["whole"] for change in newer)
        assert not any("map.1" in change["parts"] for change in newer), "sent once"
        with RunDirectory.open(run) as more:
            more.append_event(to_line(of.MissionEnded(reason="enough", stamp_ns=9)))
        viewer.until(lambda parts: parts["mission"]["state"] == "ended")
        assert viewer.parts["mission"]["reason"] == "enough"
        assert viewer.parts["mission"]["probes"] == []


def test_state_budget_robots_and_refusals(tmp_path: Path) -> None:
    run = tmp_path / "run"
    budget = {"readings": 8, "metres": 200.0, "seconds": None}
    node_run(run, budget=budget)
    where = of.ProbePosition(50.0, (7, 3.0, 4.0))
    with RunDirectory.open(run) as more:
        more.append_event(to_line(of.StateChanged(stamp_ns=1, state="paused", reason="said so")))
        more.append_event(to_line(of.BatteryNoted(level=0.2, where=where, stamp_ns=2)))
        status = {"": of.ProbeStatus(where, {"gated": 2, "strange_word": 1})}
        more.append_event(to_line(of.StatusNoted(probes=status, stamp_ns=2)))
        more.append_event(
            to_line(of.BudgetChanged(readings=9, metres=100.0, seconds=None, error=0.5, stamp_ns=3))
        )
    with serving(run) as server, Viewer(server) as viewer:
        parts = viewer.until(lambda parts: parts.get("robots"))
    mission = parts["mission"]
    assert (mission["state"], mission["reason"]) == ("paused", "said so")
    assert parts["robots"] == [{"name": "", "x": 3.0, "y": 4.0, "quiet": False}]
    assert mission["refused"] == [["far off the prediction", 2], ["strange word", 1]]
    spent = {part["what"]: part for part in mission["spent"]}
    assert spent["places"]["text"] == "7 of 9 left"
    assert spent["distance"] == {"what": "distance", "share": 0.5, "text": "50 m of 100 m left"}
    assert spent["battery"] == {"what": "battery", "share": 0.8, "text": "20 %"}
    (probe,) = mission["probes"]
    assert (probe["metres"], probe["bearing"]) == (pytest.approx(math.hypot(7, 4), abs=0.1), 119.7)
    assert probe["why"] == parts["step.2"]["why"], "the reason is that of the place shown"
    assert probe["readAt"] <= probe["poseAt"]


def test_who_comes_back_gets_what_he_missed(tmp_path: Path) -> None:
    run = node_run(tmp_path / "run")
    with serving(run) as server:
        with Viewer(server) as viewer:
            viewer.until(lambda parts: "mission" in parts)
            mark = viewer.mark
        with RunDirectory.open(run) as more:
            more.append_event(used(Reading(3, 2, 31.0)))
        with Viewer(server, mark) as viewer:
            viewer.until(lambda parts: parts.get("mission", {}).get("used") == 4)
            assert not any(change["whole"] for change in viewer.changes)
            assert all("places" not in change["parts"] for change in viewer.changes)
    with serving(run) as server, Viewer(server, viewer.mark) as other:
        other.until(lambda parts: "mission" in parts)
        assert other.changes[0]["whole"], "of a server that was started again"


def test_another_mission_in_the_same_place(tmp_path: Path) -> None:
    run = node_run(tmp_path / "run", name="first")
    with serving(run) as server, Viewer(server) as viewer:
        viewer.until(lambda parts: "first" in parts.get("page.heading", ""))
        with RunDirectory.begin_again(run) as old:
            old.clear()
        viewer.until(lambda parts: "mission" not in parts)
        node_run(run, name="second")
        viewer.until(lambda parts: "second" in parts.get("page.heading", ""))
        assert viewer.parts["run"]["number"] == 2


# -- who may do what ---------------------------------------------------------------------------


def bearer_of(server: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.access.token}"}


def test_commands_need_the_token_and_our_page(tmp_path: Path) -> None:
    commands = Commands()
    with serving(node_run(tmp_path / "run"), commands) as server:
        assert server.entry in server.lines[0]
        bearer, wrong = bearer_of(server), {"Authorization": "Bearer wrong"}
        ours = {"Origin": f"http://127.0.0.1:{server.port}"}
        foreign = {"Origin": f"http://127.0.0.1:{server.port + 1}"}
        cookies = {"Cookie": f"watch-{server.port}={server.access.token}; token=x"}
        for headers in (
            {},
            ours,
            cookies | ours,
            wrong,
            cookies | wrong | ours,
            bearer | foreign,
            cookies | bearer,
            cookies | bearer | foreign,
            cookies | {"Authorization": f"Basic {server.access.token}"} | ours,
        ):
            assert ask(server, "/do/finish", "POST", **headers)[0] == 403, headers
        for path in ("/do/finish?token=", "/?token="):
            assert ask(server, path + server.access.token, "POST")[0] in (403, 405)
        assert commands.asked == []
        status, text, _ = ask(server, "/do/pause", "POST", **bearer, **ours)
        assert (status, json.loads(text)) == (200, {"done": True, "text": "pause done"})
        status, text, _ = ask(server, "/do/resume", "POST", **bearer)
        assert (status, json.loads(text)["text"]) == (409, "the mission is running")
        assert commands.asked == ["pause", "resume"]
        assert ask(server, "/do/explode", "POST", **bearer)[0] == 404
        assert ask(server, "/do/pause", **bearer)[0] == 405, "looking never commands"
        with Viewer(server) as looking, Viewer(server, **bearer) as commanding:
            assert looking.next() == commanding.next() == "hello"
            assert (commanding.hello["control"], commanding.hello["may"]) == (True, True)
            assert (looking.hello["may"], looking.hello["why"]) == (False, server_module.NO_TOKEN)
            looking.until(lambda parts: "mission" in parts)


def test_the_token_is_in_no_cookie_and_in_no_request_line(tmp_path: Path) -> None:
    with serving(node_run(tmp_path / "run"), private=True) as server:
        token = server.access.token
        assert token not in server.entry.partition("#")[0], "no browser sends what is behind #"
        for path in ("/", "/hello", f"/?token={token}"):
            _, text, headers = ask(server, path, **bearer_of(server))
            assert "Set-Cookie" not in headers
            assert token not in text


def test_a_private_page_shows_strangers_nothing_of_the_mission(tmp_path: Path) -> None:
    run = node_run(tmp_path / "run", name="secret mission")
    with serving(run, private=True) as server:
        assert "to look only" not in " ".join(server.lines)
        assert "secret mission" not in ask(server, "/")[1]
        for path in ("/events", "/stages", "/facts", "/hello", "/hello?token=wrong"):
            status, text, _ = ask(server, path)
            assert (status, text.strip()) == (403, server_module.PRIVATE)
        assert ask(server, "/seen?stream=x", "POST")[0] == 403
        bearer = bearer_of(server)
        assert ask(server, "/hello", **bearer)[0] == 200
        with Viewer(server, **bearer) as viewer:
            viewer.until(lambda parts: "mission" in parts)
        token = server.access.token
    with serving(run, private=True) as server:
        assert server.access.token == token


def test_a_strangers_name_for_our_address_is_refused(tmp_path: Path) -> None:
    with serving(node_run(tmp_path / "run")) as server:
        for path in ("/", "/events", "/stages", "/hello"):
            status, text, _ = ask(server, path, Host="evil.example")
            assert status == 421
            assert "not called 'evil.example'" in text


def test_what_a_browser_is_told_of_the_page(tmp_path: Path) -> None:
    with serving(node_run(tmp_path / "run")) as server:
        status, text, headers = ask(server, "/")
        assert status == 200
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "'unsafe-inline'" not in policy.partition("style-src")[0]
        for part in ("connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert part in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Server" not in headers
        assert "$" not in text.partition("<style>")[0]
        assert "img-src" not in policy, "no base map unless it is asked for"
        assert ask(server, "/../etc/passwd")[0] == 404
        assert ask(server, "/", "DELETE")[0] == 405


def test_more_viewers_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose page answers keeps his place; who has the token gets in whoever is there."""
    run = node_run(tmp_path / "run")
    with serving(run, Commands(), viewers=1) as server:
        with Viewer(server) as first:
            first.until(lambda parts: "mission" in parts)
            assert ask(server, "/events")[0] == ask(server, "/hello")[0] == 503
            with Viewer(server, **bearer_of(server)) as holder:
                holder.until(lambda parts: "mission" in parts)
            monkeypatch.setattr(server_module, "SLOW_SECONDS", -1.0)
            with Viewer(server) as second:  # in the place of the first, which never answered
                second.until(lambda parts: "mission" in parts)
                monkeypatch.setattr(server_module, "SLOW_SECONDS", LIMIT)
                while first.next():
                    pass
                name = second.hello["stream"]
                assert ask(server, f"/seen?stream={name}", "POST")[0] == 204
                assert ask(server, "/hello")[0] == 503
        wait_until(lambda: ask(server, "/hello")[0] == 200, "room for another viewer")


def test_idle_connections_keep_nobody_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = node_run(tmp_path / "run")
    with serving(run, Commands(), viewers=1) as server, contextlib.ExitStack() as idle:
        with Viewer(server, **bearer_of(server)) as holder, Viewer(server) as viewer:
            for _ in range(200):
                idle.enter_context(socket.create_connection(("127.0.0.1", server.port), LIMIT))
            assert ask(server, "/hello", **bearer_of(server))[0] == 200
            assert ask(server, "/")[0] == 200
            for one in (holder, viewer):
                one.until(lambda parts: "mission" in parts)
    assert not caplog.records


# -- what cannot be served ---------------------------------------------------------------------


def test_an_address_that_is_taken_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "run") as server:
        with pytest.raises(RunError):
            make_server(tmp_path, WatchOptions(port=server.port))
    with pytest.raises(RunError, match=r"cannot listen on 192\.0\.2\.1"):
        make_server(tmp_path, WatchOptions(host="192.0.2.1"))


def test_who_takes_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SLOW_SECONDS", 0.1)
    run = node_run(tmp_path / "run", description="<" * 1_000_000)  # 4 bytes each on the page
    with serving(run, viewers=1) as server:
        with socket.socket() as lazy:
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lazy.connect(("127.0.0.1", server.port))
            host = f"Host: 127.0.0.1:{server.port}\r\n\r\n"
            lazy.sendall(f"GET /events HTTP/1.1\r\n{host}".encode())
            wait_until(lambda: ask(server, "/hello")[0] == 503, "the viewer")
            wait_until(lambda: ask(server, "/hello")[0] == 200, "his end")
        monkeypatch.setattr(server_module, "SLOW_SECONDS", LIMIT)
        with Viewer(server) as viewer:
            viewer.until(lambda parts: "mission" in parts)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are of Unix")
def test_without_file_descriptors_it_waits_and_writes_little(tmp_path: Path) -> None:
    """1,024 idle sockets made it write 10 MB of tracebacks in 5 s."""
    command = [sys.executable, "-m", "gp_active_sensing.cli", "watch", str(tmp_path / "run")]
    command = ["/bin/sh", "-c", 'ulimit -n 40; exec "$@"', "sh", *command]
    with (
        (tmp_path / "said").open("wb") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process,
        contextlib.ExitStack() as idle,
    ):
        assert process.stdout is not None
        at: Any = SimpleNamespace(port=int(process.stdout.readline().rpartition(":")[2][:-2]))
        for _ in range(100):
            idle.enter_context(socket.create_connection(("127.0.0.1", at.port), LIMIT))
        assert ask(at, "/hello")[0] == 200
        process.terminate()
        assert process.wait(LIMIT) == 0
    assert (tmp_path / "said").stat().st_size < 1000


# -- the command -------------------------------------------------------------------------------


def test_the_command_says_its_address_and_ends_when_asked(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gp_active_sensing.cli", "watch", str(tmp_path / "run")]
    with subprocess.Popen([*command, "--private"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("live page: http://127.0.0.1:")
        assert "#token=" in line
        process.terminate()
        assert process.wait(LIMIT) == 0
    made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with made as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        while process.poll() is None:  # whoever is impatient, however often
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)  # a key that is held; without a pause signals starve the process
        assert process.returncode in (0, 128 + signal.SIGINT, -signal.SIGINT)
        assert process.stderr.read() == ""


def test_the_command_reports_a_folder_that_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gp_active_sensing.cli", "watch"]
    run = [*command, str(tmp_path / "run")]
    with subprocess.Popen(
        run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("live page: http://")
        assert str(tmp_path / "run") in process.stdout.readline()
        process.terminate()
        assert process.stderr.read() == ""
    assert subprocess.run([*command, str(tmp_path / "a" / "run")], check=False).returncode == 1


def test_where_nothing_runs_nothing_is_commanded(tmp_path: Path) -> None:
    with serving(node_run(tmp_path / "run")) as server:
        status, text, _ = ask(server, "/do/finish", "POST")
        assert status == 409
        assert "no running node here" in text
