"""The launch files under the real ``ros2 launch``, where it is installed.

An installation by pip has none: there our own runner starts the nodes (`test_launches`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from geometry_msgs.msg import PoseStamped

from gp_active_sensing.ros import qos
from gp_active_sensing.ros.launches import LAUNCHES, declarations
from tests.ros.conftest import Ros, wait_until
from tests.ros.launched import REASON, launched, node_pids, ros2
from tests.ros.probe import write_scenario
from tests.waiting import LIMIT

pytestmark = [
    pytest.mark.ros,
    pytest.mark.long,
    pytest.mark.skipif(bool(REASON), reason=f"no ros2 launch: {REASON}"),
]


@pytest.mark.parametrize("name", LAUNCHES)
def test_show_args_describes_every_argument(name: str) -> None:
    shown = subprocess.run(
        ros2(name, "--show-args"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    ).stdout
    words = " ".join(shown.split())
    for argument in declarations(LAUNCHES[name]):
        assert f"'{argument['name']}':" in shown
        assert " ".join(argument["description"].split()) in words


def test_a_simulated_mission_from_start_to_end(tmp_path: Path) -> None:
    scenario, run = write_scenario(tmp_path / "tiny.yaml", budget=3), tmp_path / "run"
    arguments = (f"scenario:={scenario}", "speed_factor:=20", f"run_dir:={run}", "budget:=2")
    log = tmp_path / "log"
    with launched(log, *ros2("traffic_sim", *arguments, "exit_at_end:=true")) as process:
        code = process.wait(LIMIT)
    assert code == 0, log.read_text()
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["stages"]) == ("finished", 2)


def test_a_wrong_argument_is_refused_with_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with launched(log, *ros2("probe", "budget:=many")) as process:
        assert process.wait(LIMIT) != 0
    assert "budget: expected a whole number, got str 'many'" in log.read_text()


def test_interrupted_it_leaves_nobody_behind(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with launched(log, *ros2("probe", "map:=town")) as process:
        wait_until(lambda: "waiting for topic /pose" in log.read_text(), "the node")
        assert node_pids(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT)
        assert node_pids(process.pid) == []


def test_a_node_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    scenario, run = write_scenario(tmp_path / "tiny.yaml", budget=6), tmp_path / "run"
    arguments = (f"scenario:={scenario}", "speed_factor:=4", f"run_dir:={run}", "respawn:=true")
    log, journal = tmp_path / "log", run / "journal.jsonl"
    with launched(log, *ros2("traffic_sim", *arguments, "exit_at_end:=true")) as process:

        def decided() -> bool:
            return journal.exists() and journal.read_text().count('"decision"') >= 2

        wait_until(decided, "two decisions")
        (pid,) = node_pids(process.pid)
        os.kill(pid, signal.SIGKILL)
        assert process.wait(LIMIT) == 0, log.read_text()
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["observed"]) == ("finished", 6), log.read_text()


def test_a_namespace_holds_the_nodes_and_their_topics(ros: Ros, tmp_path: Path) -> None:
    """And a level of the log and a frame go to both nodes, which agree on it."""
    scenario, log = write_scenario(tmp_path / "tiny.yaml", budget=2), tmp_path / "log"
    words = [f"scenario:={scenario}", "speed_factor:=20", "exit_at_end:=true"]
    words += ["namespace:=lake/boat", "log_level:=debug", "map_frame:=odom"]
    node = ros.node()
    goals: list[PoseStamped] = []
    node.create_subscription(PoseStamped, "/lake/boat/next_waypoint", goals.append, qos.latched(10))
    with launched(log, *ros2("traffic_sim", *words)) as process:
        wait_until(lambda: goals, f"a waypoint; see {log}")
        names = set(node.get_node_names_and_namespaces())
        assert {("active_sensing", "/lake/boat"), ("simulator", "/lake/boat")} <= names
        assert process.wait(LIMIT) == 0, log.read_text()
    assert {goal.header.frame_id for goal in goals} == {"odom"}
    assert "[DEBUG]" in log.read_text()
