"""The launch files under the real ``ros2 launch``, where it is installed.

An installation by pip has none: there the stand-in (`test_launch_files`) and our own runner
(`test_runner_command`) take its place.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gp_active_sensing.ros.launches import LAUNCHES
from gp_active_sensing.ros.launching import PACKAGE
from tests.ros.conftest import wait_until
from tests.ros.probe import write_scenario
from tests.waiting import LIMIT


def why_not() -> str:
    """Return why ``ros2 launch`` cannot be tried, "" when it can."""
    if shutil.which("ros2") is None:
        return "the command ros2 is not on the PATH"
    found = subprocess.run(
        ["ros2", "pkg", "prefix", PACKAGE],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return "" if found.returncode == 0 else f"{PACKAGE} is in no sourced workspace"


REASON = why_not()
pytestmark = [
    pytest.mark.ros,
    pytest.mark.skipif(bool(REASON), reason=f"no ros2 launch: {REASON}"),
]


def launch(*words: str) -> list[str]:
    return ["ros2", "launch", PACKAGE, *words]


@contextlib.contextmanager
def launched(log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a launch; end it, with its nodes, at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            launch(*words), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LIMIT)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LIMIT)


@pytest.mark.parametrize("name", LAUNCHES)
def test_show_args_describes_every_argument(name: str) -> None:
    shown = subprocess.run(
        launch(f"{name}.launch.py", "--show-args"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    ).stdout
    words = " ".join(shown.split())
    for argument in LAUNCHES[name].arguments:
        assert f"'{argument.name}':" in shown
        assert " ".join(argument.help.split()) in words


def test_a_simulated_mission_from_start_to_end(tmp_path: Path) -> None:
    scenario, run = write_scenario(tmp_path / "tiny.yaml", budget=3), tmp_path / "run"
    arguments = (f"scenario:={scenario}", "speed_factor:=20", f"run_dir:={run}", "budget:=2")
    log = tmp_path / "log"
    with launched(log, "traffic_sim.launch.py", *arguments, "exit_at_end:=true") as process:
        code = process.wait(LIMIT)
    assert code == 0, log.read_text()
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["stages"]) == ("finished", 2)


def test_a_wrong_argument_is_refused_with_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with launched(log, "probe.launch.py", "budget:=many") as process:
        assert process.wait(LIMIT) != 0
    assert "budget: expected a whole number, got 'many'" in log.read_text()


def test_interrupted_it_leaves_nobody_behind(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with launched(log, "probe.launch.py", "map:=town") as process:
        wait_until(lambda: "waiting for topic /pose" in log.read_text(), "the node")
        assert node_pids(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT)
        assert node_pids(process.pid) == []


def test_a_node_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    scenario, run = write_scenario(tmp_path / "tiny.yaml", budget=6), tmp_path / "run"
    arguments = (f"scenario:={scenario}", "speed_factor:=4", f"run_dir:={run}", "respawn:=true")
    log, journal = tmp_path / "log", run / "journal.jsonl"
    with launched(log, "traffic_sim.launch.py", *arguments, "exit_at_end:=true") as process:

        def decided() -> bool:
            return journal.exists() and journal.read_text().count('"decision"') >= 2

        wait_until(decided, "two decisions")
        (pid,) = node_pids(process.pid)
        os.kill(pid, signal.SIGKILL)
        assert process.wait(LIMIT) == 0, log.read_text()
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["observed"]) == ("finished", 6), log.read_text()


def node_pids(launcher: int, name: str = "active_sensing") -> list[int]:
    """Return the processes of a node, which are children of the launch."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text().rsplit(")", 1)[1].split()
            if int(words[1]) == launcher and words[0] != "Z":
                command = (path.parent / "cmdline").read_bytes().decode()
                if f"__node:={name}" in command:
                    found.append(int(path.parent.name))
    return found
