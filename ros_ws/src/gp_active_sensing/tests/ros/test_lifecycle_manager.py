"""The node under a manager that does what Nav2's ``nav2_lifecycle_manager`` does.

Each ``change_state`` is followed by ``get_state``; another state than the expected one is a
failure (from the manager's source, jazzy).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lifecycle_msgs.msg import Transition

from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import GRID, Probe, sensing
from tests.ros.test_node_base import ACTIVATE, CLEANUP, CONFIGURE, DEACTIVATE, Lifecycle
from tests.waiting import LIMIT

SHUTDOWN = Transition.TRANSITION_UNCONFIGURED_SHUTDOWN
EXPECTED = {
    CONFIGURE: "inactive",
    CLEANUP: "unconfigured",
    ACTIVATE: "active",
    DEACTIVATE: "inactive",
    SHUTDOWN: "finalized",
}


class Manager(Lifecycle):
    def does(self, *transitions: int) -> bool:
        return all(self.do(each) and self.state == EXPECTED[each] for each in transitions)


def test_startup_pause_resume_reset(ros: Ros) -> None:
    node = sensing(ros, "autostart:=false")
    manager = Manager(ros, "active_sensing")
    assert (node.is_active, node.mission) == (False, None)
    assert manager.does(CONFIGURE, ACTIVATE)
    probe = Probe(ros).connect()
    probe.pose(0.0)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    mission = node.mission
    assert mission is not None
    assert manager.does(DEACTIVATE)
    assert (mission.state, node.is_active) == ("paused", False)
    assert not probe.call("start").success
    assert manager.does(ACTIVATE)
    assert node.mission is mission, "what was learnt stays"
    assert mission.state == "running"
    assert probe.call("pause").success
    assert manager.does(DEACTIVATE, ACTIVATE)
    assert mission.state == "paused", "an operator's pause outlasts the manager's"
    assert probe.call("resume").success
    assert manager.does(DEACTIVATE, CLEANUP)
    assert (node.mission, node.results) == (None, None)
    assert manager.does(CONFIGURE, ACTIVATE), "a reset node can be started again"
    assert node.mission.state == "running"
    assert node.exit_code is None


def test_shutdown_answers_before_the_process_ends(ros: Ros, tmp_path: Path) -> None:
    words = [word for text in (*GRID, "autostart:=false") for word in ("-p", text)]
    module = "gp_active_sensing.ros.active_sensing_node"
    with (tmp_path / "log").open("w") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", module, "--ros-args", *words], stdout=log, stderr=log
        )
    try:
        manager = Manager(ros, "active_sensing")
        manager.connect()
        assert manager.does(CONFIGURE, ACTIVATE, DEACTIVATE, CLEANUP, SHUTDOWN)
        assert child.wait(LIMIT) == 0
    finally:
        child.kill()
        child.wait(LIMIT)
