from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.probe import NO_POSE
from gp_active_sensing.ros import qos
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from gp_active_sensing.ros.simulator_node import SimulatorNode
from tests.journals import events_of
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import sensing, write_scenario

NAMES = ("probe_1", "probe_2", "probe_3")


class Watcher:
    """Listens to the coordinator, and keeps what each probe was sent to."""

    def __init__(self, ros: Ros) -> None:
        self.ros = ros
        self.node = ros.node("watcher")
        self.status: dict[str, dict[str, str]] = {}
        self.sent: list[tuple[str, tuple[float, float]]] = []
        self.node.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.reliable()
        )
        for name in NAMES:
            self.node.create_subscription(
                PoseStamped, f"{name}/next_waypoint", self._keep(name), qos.latched()
            )

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = status.name.partition(": ")[2].removeprefix("probe ")
            self.status[name] = {item.key: item.value for item in status.values}

    def _keep(self, name: str) -> Callable[[PoseStamped], None]:
        def keep(message: PoseStamped) -> None:
            place = message.pose.position.x, message.pose.position.y
            if (name, place) not in self.sent[-3:]:
                self.sent.append((name, place))

        return keep

    def state(self, name: str) -> str:
        return self.status.get(name, {}).get("state", "")

    def wait_state(self, name: str, *states: str) -> None:
        wait_until(lambda: self.state(name) in states, f"{name} to be {' or '.join(states)}")

    def call(self, service: str) -> Any:
        client = self.node.create_client(Trigger, f"/active_sensing/{service}")
        return self.ros.call(client, Trigger.Request())


def wait_heard(ros: Ros, mission: Mission, name: str) -> None:
    poses = ros.node("robot").create_publisher(Odometry, f"{name}/pose", qos.reliable(10))
    message = Odometry()
    message.header.frame_id, message.header.stamp.sec = "map", 1
    message.pose.pose.orientation.w = 1.0

    def heard() -> bool:
        poses.publish(message)
        return len(mission.probes[name].ingestion.track) > 0

    wait_until(heard, f"a pose of {name}")


def simulator(ros: Ros, scenario: Path, *parameters: str) -> SimulatorNode:
    given = (f"scenario:={scenario}", "probes:=[probe_1, probe_2, probe_3]")
    words = [word for text in (*given, *parameters) for word in ("-p", text)]
    node: SimulatorNode = ros.add(SimulatorNode(cli_args=["--ros-args", *words]))
    return node


def coordinator(ros: Ros, scenario: Path, *parameters: str) -> ActiveSensingNode:
    given = (f"scenario:={scenario}", "use_sim_time:=true")
    return sensing(ros, *parameters, given=given)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    size = {"columns": 8, "rows": 6}
    return write_scenario(tmp_path / "field.yaml", **size, policy="max_entropy", budget=40)


def test_one_joins_one_dies_one_leaves_and_the_mission_is_finished(
    ros: Ros, scenario: Path, tmp_path: Path
) -> None:
    watcher = Watcher(ros)
    played = simulator(ros, scenario, "speed_factor:=6.0")
    node = coordinator(
        ros, scenario, "probes:=[probe_1, probe_2]", f"run_dir:={tmp_path / 'run'}",
        "mission.lost_after:=5.0",
    )  # fmt: skip
    wait_active(node)
    mission = node.mission

    def wait_gone(name: str, why: str) -> None:
        wait_until(lambda: mission.probes[name].gone == why, f"{name} to be {why or 'there'}")

    wait_gone("probe_1", "")
    wait_gone("probe_2", "")
    assert "probe_3" not in mission.probes

    names = Parameter("probes", value=list(NAMES))
    (answer,) = node.set_parameters([names])
    assert answer.successful, answer.reason
    wait_gone("probe_3", "")

    played.set_parameters([Parameter("silent", value="probe_2")])
    watcher.wait_state("probe_2", "silent")
    assert watcher.status["probe_2"]["waypoint"] == ""
    assert watcher.status["mission"]["probes"] == "2 of 3"
    assert float(watcher.status["probe_2"]["seconds_since_pose"]) > 0.5

    played.set_parameters([Parameter("silent", value="")])
    wait_gone("probe_2", "")

    answer = watcher.call("probe_1/leave")
    assert (answer.success, answer.message) == (
        True,
        "probe_1 leaves the mission; its last waypoint stays published",
    )
    assert not watcher.call("probe_1/leave").success
    wait_gone("probe_1", "left: asked to leave")
    assert watcher.call("probe_1/join").success
    played.set_parameters([Parameter("silent", value="probe_3")])  # and does not come back

    watcher.wait_state("mission", "ended")
    assert watcher.status["mission"]["observed"] == "40"
    assert not ros.failures
    events = events_of(tmp_path / "run")
    assert_shared(events, readings=40)
    fleet = [(e["probe"], e["why"]) for e in events if e["event"] == "roster"]
    assert ("probe_3", "") in fleet
    assert ("probe_2", "silent for 5 s") in fleet
    assert ("probe_1", "left: asked to leave") in fleet
    assert fleet.count(("probe_2", "")) == 2
    decided = {e["probe"] for e in events if e["event"] == "decision"}
    assert decided == set(NAMES) == {name for name, _ in watcher.sent}


def assert_shared(events: list[dict[str, Any]], readings: int) -> None:
    """No two probes were under way to one place, and no reading too many was taken."""
    goals: dict[str, int] = {}
    observed: set[int] = set()
    for event in events:
        kind, probe = event["event"], event.get("probe", "")
        if kind == "decision":
            goal = event["waypoints"][0]
            assert goal not in {*goals.values(), *observed}
            goals[probe] = goal
        elif kind == "moved" or (kind == "roster" and event["why"]):
            goals.pop(probe, None)
        elif kind == "reading":
            observed.add(event["location"])
    assert len(observed) == readings


def test_what_is_taken_off_the_list_leaves_nothing_to_listen_to(ros: Ros, scenario: Path) -> None:
    node = coordinator(ros, scenario, "probes:=[probe_1]")
    wait_active(node)
    # As an operator does: in the executor's thread, where what is waited on may be destroyed.
    setting = ros.node().create_client(SetParameters, "/active_sensing/set_parameters")

    def listed(*names: str) -> tuple[int, int, set[str]]:
        """Return how many topics and services there are, and which are watched."""
        message = Parameter("probes", value=["probe_1", *names]).to_parameter_msg()
        (answer,) = ros.call(setting, SetParameters.Request(parameters=[message])).results
        assert answer.successful, answer.reason
        topics, services = len(list(node.subscriptions)), len(list(node.services))
        return topics, services, set(node.results.health.streams)

    others = [f"other_{i}" for i in range(5)]
    alone = listed()
    assert listed(*others)[:2] == (alone[0] + 10, alone[1] + 15)
    for _ in range(3):
        assert listed() == alone
        assert listed("other_3")[:2] == (alone[0] + 2, alone[1] + 3)
    mission = node.mission
    assert list(mission.probes) == ["probe_1", *others]
    assert mission.probes["other_0"].gone == "left: taken off the list"
    assert mission.probes["other_3"].gone == NO_POSE
    wait_heard(ros, mission, "other_3")
    listed()
    wait_until(lambda: not len(mission.inbox), "the poses that were under way")
    listed("other_3")
    listed()
    assert len(mission.probes["other_3"].ingestion.track) == 0
    assert mission.probes["other_3"].ingestion.poses > 0, "totals stay"
    assert not node.callback_errors
    assert not ros.failures
