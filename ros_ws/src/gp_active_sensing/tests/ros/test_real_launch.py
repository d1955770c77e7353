"""The launch files under the real ``ros2 launch``, where it is installed.

An installation by pip has none: there our own runner starts the nodes (`test_launches`).
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from geometry_msgs.msg import PoseStamped

from gp_active_sensing.ros import qos
from tests.ros.conftest import Ros, wait_until
from tests.ros.launched import REASON, launched, node_pids, ros2
from tests.ros.probe import write_scenario
from tests.waiting import LIMIT

pytestmark = [
    pytest.mark.ros,
    pytest.mark.long,
    pytest.mark.skipif(bool(REASON), reason=f"no ros2 launch: {REASON}"),
]


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
