"""One coordinator and several simulated probes, as nodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

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
from tests.ros.conftest import Ros, wait_active, wait_until

pytestmark = pytest.mark.ros
NAMES = ("probe_1", "probe_2", "probe_3")
SCENARIO = """
name: field
seed: 3
map: {kind: grid, columns: 8, rows: 6, spacing: 10.0, speed: 5.0}
field: {kind: gp, length_scale: 20.0, signal_std: 3.0, mean: 20.0, unit: degC}
sensor: {noise_std: 0.2}
probe: {start: 0}
belief: {length_scales: [10.0, 20.0, 40.0], signal_std: [3.0], noise_std: [0.2], mean_std: 50.0}
policy: {name: max_entropy}
budget: {readings: 40}
limit: {expansions: 10}
"""


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


class Robot:
    """Sends poses of a probe, until they are heard."""

    def __init__(self, ros: Ros, name: str) -> None:
        self.poses = ros.node("robot").create_publisher(Odometry, f"{name}/pose", qos.reliable(10))
        self.name = name

    def wait_heard(self, mission: Mission) -> None:
        message = Odometry()
        message.header.frame_id, message.header.stamp.sec = "map", 1
        message.pose.pose.orientation.w = 1.0

        def heard() -> bool:
            self.poses.publish(message)
            return len(mission.probes[self.name].ingestion.track) > 0

        wait_until(heard, f"a pose of {self.name}")


def arguments(*parameters: str) -> list[str]:
    return ["--ros-args", *(word for text in parameters for word in ("-p", text))]


def simulator(ros: Ros, scenario: Path, *parameters: str) -> SimulatorNode:
    given = arguments(
        f"scenario:={scenario}", "probes:=[probe_1, probe_2, probe_3]", "exit_at_end:=false",
        *parameters,
    )  # fmt: skip
    node: SimulatorNode = ros.add(SimulatorNode(cli_args=given))
    return node


def coordinator(ros: Ros, scenario: Path, *parameters: str) -> ActiveSensingNode:
    given = arguments(
        f"scenario:={scenario}", "use_sim_time:=true", "plan_ahead:=false", *parameters
    )
    node: ActiveSensingNode = ros.add(ActiveSensingNode(cli_args=given))
    return node


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "field.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_one_joins_one_dies_one_leaves_and_the_mission_is_finished(
    ros: Ros, scenario: Path, tmp_path: Path
) -> None:
    watcher = Watcher(ros)
    played = simulator(ros, scenario, "speed_factor:=6.0")
    sensing = coordinator(
        ros, scenario, "probes:=[probe_1, probe_2]", f"run_dir:={tmp_path / 'run'}",
        "mission.lost_after:=5.0",
    )  # fmt: skip
    wait_active(sensing)
    mission = sensing.mission

    def wait_gone(name: str, why: str) -> None:
        wait_until(lambda: mission.probes[name].gone == why, f"{name} to be {why or 'there'}")

    wait_gone("probe_1", "")
    wait_gone("probe_2", "")
    assert "probe_3" not in mission.probes

    names = Parameter("probes", value=list(NAMES))
    (answer,) = sensing.set_parameters([names])
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
        "probe_1 takes no part any more; its last waypoint stays published",
    )
    assert not watcher.call("probe_1/leave").success
    wait_gone("probe_1", "left: asked to leave")
    assert watcher.call("probe_1/join").success
    played.set_parameters([Parameter("silent", value="probe_3")])  # and does not come back

    watcher.wait_state("mission", "ended")
    assert watcher.status["mission"]["observed"] == "40"
    assert not ros.failures
    journal = (tmp_path / "run" / "journal.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in journal.splitlines()]
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
    sensing = coordinator(ros, scenario, "probes:=[probe_1]")
    wait_active(sensing)
    # As an operator does: in the executor's thread, where what is waited on may be destroyed.
    setting = ros.node().create_client(SetParameters, "/active_sensing/set_parameters")

    def listed(*names: str) -> tuple[int, int, set[str]]:
        """Return how many topics and services there are, and which are watched."""
        message = Parameter("probes", value=["probe_1", *names]).to_parameter_msg()
        (answer,) = ros.call(setting, SetParameters.Request(parameters=[message])).results
        assert answer.successful, answer.reason
        topics, services = len(list(sensing.subscriptions)), len(list(sensing.services))
        return topics, services, set(sensing.results.health.streams)

    others = [f"other_{i}" for i in range(5)]
    alone = listed()
    assert listed(*others)[:2] == (alone[0] + 10, alone[1] + 15)
    for _ in range(3):
        assert listed() == alone
        assert listed("other_3")[:2] == (alone[0] + 2, alone[1] + 3)
    mission = sensing.mission
    assert list(mission.probes) == ["probe_1", *others]
    assert mission.probes["other_0"].gone == "left: taken off the list"
    assert mission.probes["other_3"].gone == NO_POSE
    robot = Robot(ros, "other_3")
    robot.wait_heard(mission)
    listed()
    wait_until(lambda: not len(mission.inbox), "the poses that were under way")
    listed("other_3")
    listed()
    assert len(mission.probes["other_3"].ingestion.track) == 0
    assert mission.probes["other_3"].ingestion.poses > 0, "totals stay"
    assert not sensing.callback_errors
    assert not ros.failures
