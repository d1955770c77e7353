from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gp_active_sensing.ros.environment import FAILED, REFUSED, crashed, describe, ended_in_order
from gp_active_sensing.ros.runner import ProcessGroup, exit_code
from tests.commanding import ran
from tests.page_tables import PAGE
from tests.ros.conftest import wait_until
from tests.ros.launched import REASON, launched, node_pids, ros2, runner
from tests.ros.probe import write_scenario
from tests.waiting import LIMIT

Command = Callable[..., list[str]]
HERE = [
    pytest.param(runner, id="runner"),
    pytest.param(
        ros2,
        id="ros2 launch",
        marks=[
            pytest.mark.long,
            pytest.mark.skipif(bool(REASON), reason=f"no ros2 launch: {REASON}"),
        ],
    ),
]


def test_what_codes_mean() -> None:
    assert [code for code in (0, FAILED, REFUSED, -9, -15) if crashed(code)] == [FAILED, -9, -15]
    assert ended_in_order(0, asked=False)
    for code in (-signal.SIGINT, -signal.SIGTERM, 130, 143):
        assert ended_in_order(code, asked=True)
        assert not ended_in_order(code, asked=False)
    assert not ended_in_order(-signal.SIGKILL, asked=True)
    found = (describe(2), describe(-9), describe(-99))
    assert found == ("exit code 2", "signal SIGKILL", "signal 99")


def test_what_the_codes_of_several_nodes_make() -> None:
    for first, second, expected in (
        (0, 0, 0),
        (0, FAILED, FAILED),
        (REFUSED, 0, REFUSED),
        (REFUSED, FAILED, FAILED),  # worth another start
        (0, 7, FAILED),
    ):
        group = ProcessGroup([])
        codes = {"first": first, "second": second}
        group.failures.update({name: code for name, code in codes.items() if code})
        assert exit_code(group) == expected, codes
        group.killed.append("first")
        assert exit_code(group) == FAILED, "it did not end when asked"


@pytest.mark.ros
def test_a_node_that_cannot_use_what_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("/**:\n  ros__parameters:\n    map: {obstacles: [[0, 0], [5, 5]]}\n")
    for node, words, reason in (
        ("active_sensing", ("-p", "seed"), "the node cannot be made"),
        ("active_sensing", ("--params-file", str(file)), "line 3: map.obstacles: "),
        ("simulator", ("-p", "scenario:=nowhere"), "nowhere"),
        ("bag_player", ("-p", "bag:=nowhere"), "nowhere: not found"),
    ):
        module = f"gp_active_sensing.ros.{node}_node"
        done = ran(sys.executable, "-m", module, "--ros-args", *words)
        assert done.returncode == REFUSED, done.stdout
        assert reason in done.stdout, (node, words)
        assert "Traceback" not in done.stdout


@pytest.mark.ros
@pytest.mark.parametrize("command", HERE)
@pytest.mark.parametrize(
    "name",
    ["probe", *(pytest.param(name, marks=pytest.mark.long) for name in ("traffic_sim", "replay"))],
)
def test_a_node_that_is_killed_makes_the_launch_fail(
    tmp_path: Path, name: str, command: Command
) -> None:
    log, run = tmp_path / "log", tmp_path / "run"
    needed = {"replay": ("bag:=town_sample", "rate:=0.1"), "probe": ("map:=town",)}
    with launched(log, *command(name, *needed.get(name, ()), f"run_dir:={run}")) as process:
        wait_until((run / "journal.jsonl").exists, "the node at work")
        (pid,) = node_pids(process.pid)
        os.kill(pid, signal.SIGKILL)
        assert process.wait(LIMIT) == FAILED, log.read_text()
    assert "active_sensing ended with signal SIGKILL" in log.read_text()


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.parametrize("command", HERE)
def test_a_launch_that_is_interrupted_ends_in_order(tmp_path: Path, command: Command) -> None:
    scenario = write_scenario(tmp_path / "tiny.yaml", budget=6)
    log, run = tmp_path / "log", tmp_path / "run"
    words = (f"scenario:={scenario}", f"run_dir:={run}")
    with launched(log, *command("traffic_sim", *words)) as process:
        wait_until(lambda: "the mission begins" in log.read_text(), "the node at work")
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 0, log.read_text()
    assert (run / "summary.json").exists(), log.read_text()


def test_the_unit_on_the_page_goes_by_these_codes() -> None:
    text = PAGE.with_name("robot.md").read_text(encoding="utf-8")
    (unit,) = re.findall(r"```ini[^\n]*\n(\[Unit\].*?)```", text, re.DOTALL)
    lines = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
    assert lines["Restart"] == "on-failure"
    assert lines["RestartPreventExitStatus"] == str(REFUSED)
    assert "gp_active_sensing.ros.runner probe" in lines["ExecStart"]
