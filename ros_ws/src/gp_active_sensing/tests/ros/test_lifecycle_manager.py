"""The node under a manager that does what Nav2's ``nav2_lifecycle_manager`` does.

Told from its source (jazzy): nodes are configured and activated in order and taken down in reverse;
each ``change_state`` is followed by ``get_state``; no success, no answer, or another state than the
expected one is a failure. (Jazzy's waits for answers as long as it takes, later ones 5 s.)
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.parameter import Parameter

from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import GRID, Probe, sensing
from tests.waiting import LIMIT

pytestmark = pytest.mark.ros
EXPECTED = {
    Transition.TRANSITION_CONFIGURE: State.PRIMARY_STATE_INACTIVE,
    Transition.TRANSITION_CLEANUP: State.PRIMARY_STATE_UNCONFIGURED,
    Transition.TRANSITION_ACTIVATE: State.PRIMARY_STATE_ACTIVE,
    Transition.TRANSITION_DEACTIVATE: State.PRIMARY_STATE_INACTIVE,
    Transition.TRANSITION_UNCONFIGURED_SHUTDOWN: State.PRIMARY_STATE_FINALIZED,
}


class Manager:
    """Manages one node, without a bond (``bond_timeout: 0.0``)."""

    def __init__(self, ros: Ros, name: str = "active_sensing") -> None:
        self._ros = ros
        node = ros.node("lifecycle_manager")
        self._change = node.create_client(ChangeState, f"{name}/change_state")
        self._get = node.create_client(GetState, f"{name}/get_state")

    def _do(self, *transitions: int) -> bool:
        for transition in transitions:
            change = ChangeState.Request(transition=Transition(id=transition))
            if not self._ros.call(self._change, change).success:
                return False
            state = self._ros.call(self._get, GetState.Request())
            if state.current_state.id != EXPECTED[transition]:
                return False
        return True

    def connect(self) -> None:
        """Wait until the node answers: right after it was found, an answer may still get lost."""
        assert self._get.wait_for_service(timeout_sec=LIMIT), "no node"
        assert self._change.wait_for_service(timeout_sec=LIMIT), "no node"
        asked: list[Any] = []

        def answered() -> bool:
            if time.monotonic() > begun + 1.5 * len(asked):
                asked.append(self._get.call_async(GetState.Request()))
            return any(future.done() for future in asked)

        begun = time.monotonic()
        wait_until(answered, "an answer of the node")

    def startup(self) -> bool:
        return self._do(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)

    def pause(self) -> bool:
        return self._do(Transition.TRANSITION_DEACTIVATE)

    def resume(self) -> bool:
        return self._do(Transition.TRANSITION_ACTIVATE)

    def reset(self) -> bool:
        return self._do(Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP)

    def shutdown(self) -> bool:
        return self.reset() and self._do(Transition.TRANSITION_UNCONFIGURED_SHUTDOWN)


def test_startup_pause_resume_reset(ros: Ros) -> None:
    node = sensing(ros, "autostart:=false")
    manager = Manager(ros)
    assert manager.startup()
    probe = Probe(ros).connect()
    probe.pose(0.0)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    assert manager.pause()
    assert node.mission.state == "paused"
    assert "not active" in probe.call("start").message
    assert manager.resume()
    assert node.mission.state == "running"
    assert manager.reset()
    assert (node.mission, node.results) == (None, None)
    assert manager.startup(), "a reset node can be started again"
    assert node.mission.state == "running"
    assert node.exit_code is None


def test_what_a_node_shows_of_itself(ros: Ros) -> None:
    node = sensing(ros, "autostart:=false")
    manager = Manager(ros)
    assert (node.is_active, node.mission) == (False, None)
    assert manager.startup()
    wait_until(lambda: node.is_active, "it to be active")
    mission = node.mission
    assert mission is not None
    assert node.results is not None
    assert manager.pause()
    wait_until(lambda: not node.is_active, "it to be inactive")
    assert node.mission is mission, "what was learnt stays"
    assert manager.resume()
    wait_until(lambda: node.is_active, "it to be active again")
    node.deactivate()  # as at the end of a process
    assert not node.is_active, "its threads have ended"


def test_an_operator_s_pause_outlasts_the_manager_s(ros: Ros) -> None:
    node = sensing(ros, "autostart:=false")
    manager = Manager(ros)
    assert manager.startup()
    probe = Probe(ros).connect()
    assert probe.call("pause").success
    assert manager.pause()
    assert manager.resume()
    assert node.mission.state == "paused"
    assert probe.call("resume").success


def test_a_configure_that_fails_ends_the_bringup_and_not_the_node(
    ros: Ros, capfd: pytest.CaptureFixture[str]
) -> None:
    node = sensing(ros, "autostart:=false", "reading.field:=temprature")
    manager = Manager(ros)
    assert not manager.startup()
    assert "Did you mean 'temperature'" in capfd.readouterr().err
    assert node.exit_code is None
    (done,) = node.set_parameters([Parameter("reading.field", value="temperature")])
    assert done.successful, "it can be repaired"
    assert manager.startup()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start the node as a process of its own, which the test ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*parameters: str) -> subprocess.Popen[bytes]:
        words = [word for text in (*GRID, *parameters) for word in ("-p", text)]
        module = "gp_active_sensing.ros.active_sensing_node"
        command = [sys.executable, "-m", module, "--ros-args", *words]
        with (tmp_path / "log").open("w") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))
        return started[-1]

    yield start
    for child in started:
        child.kill()
        child.wait(LIMIT)


def test_shutdown_answers_before_the_process_ends(
    ros: Ros, process: Callable[..., subprocess.Popen[bytes]]
) -> None:
    child = process("autostart:=false")
    manager = Manager(ros)
    manager.connect()
    assert manager.startup()
    assert manager.shutdown()
    assert child.wait(LIMIT) == 0
