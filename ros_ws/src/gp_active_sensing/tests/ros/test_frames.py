"""Where the sensor sits, poses in other frames, and how sure they are: with real messages."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import pytest
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Temperature

from gp_active_sensing.errors import ConfigError, MissingDependencyError
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from tests.cases import case
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import GRID, Probe, sensing
from tests.ros.tf import Tf

HALF = 0.5 * math.pi


def observed(node: ActiveSensingNode) -> list[int]:
    return [i for i, yes in enumerate(node.mission.loop.belief.observed) if yes]


class Sensor(Probe):
    def odometry(
        self, x: float, y: float = 0.0, *, heading: float = 0.0, frame: str = "map",
        child: str = "base_link", covariance: tuple[float, ...] = (), t: int | None = None,
    ) -> None:  # fmt: skip
        message = Odometry(child_frame_id=child)
        message.header.frame_id = frame
        message.header.stamp = outputs.time_of(self.now_ns() if t is None else t)
        place, turn = message.pose.pose.position, message.pose.pose.orientation
        place.x, place.y = x, y
        turn.z, turn.w = math.sin(0.5 * heading), math.cos(0.5 * heading)
        for entry, value in zip((0, 1, 7, 35), covariance, strict=False):
            message.pose.covariance[entry] = value
        self.poses.publish(message)

    def measured(self, value: float, frame: str = "gas", t: int | None = None) -> None:
        message = Temperature(temperature=value)
        message.header.frame_id = frame
        message.header.stamp = outputs.time_of(self.now_ns() if t is None else t)
        self.readings.publish(message)


def test_tf_says_where_the_sensor_sits(ros: Ros, tf: Tf, wait_said: Callable[..., str]) -> None:
    node = sensing(ros, "reading.mount_from:=tf")
    probe = Sensor(ros).connect()
    now = probe.now_ns()
    probe.odometry(20.0, heading=HALF, child="robot/base", t=now)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    probe.measured(20.0, t=now)
    wait_until(lambda: node.mission.rejected["no_mount"] == 1, "the reading is refused")
    assert not observed(node)
    text = wait_said("expected the transform robot/base <- gas on /tf_static")
    assert "'gas' has no place on the probe" in text
    tf.move("gas", 0.0, 0, y=10.0, parent="robot/base")  # to the left: towards x = 10 m
    probe.measured(20.0, t=now)
    wait_until(lambda: observed(node) == [1], "the reading where the sensor was")
    probe.measured(20.0, frame="robot/base", t=now)
    wait_until(lambda: observed(node) == [1, 2], "a sensor at the pose itself")


def test_a_pose_in_another_frame_is_transformed(ros: Ros, tf: Tf) -> None:
    node = sensing(ros)
    probe = Sensor(ros).connect()
    now = probe.now_ns()
    # The newest transform is older than the pose, as that of a localisation is.
    tf.move("odom", 30.0, now - 1_000_000, y=5.0, turn=HALF)
    probe.odometry(-5.0, 10.0, frame="odom", covariance=(4.0, 0.0, 9.0), t=now)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    pose = node.mission.probes[""].ingestion.track.newest
    assert (pose.x, pose.y) == (pytest.approx(20.0), pytest.approx(0.0))
    assert pose.heading == pytest.approx(HALF)
    assert (pose.frame, pose.variance) == ("map", pytest.approx(13.0))
    probe.reading(20.0, t=now)
    wait_until(lambda: observed(node) == [2], "the reading")


@pytest.mark.parametrize("installed", [True, False])
def test_one_that_cannot_be_is_refused_with_both_frames(
    ros: Ros, monkeypatch: pytest.MonkeyPatch, wait_said: Callable[..., str], installed: bool
) -> None:
    monkeypatch.setitem(sys.modules, "tf2_ros", Tf() if installed else None)
    node = sensing(ros)
    probe = Sensor(ros).connect()
    probe.odometry(20.0, frame="odom")
    both = "poses are in frame 'odom', the map is in frame 'map'"
    text = wait_said(": it is not used (wrong_frame, 1 so far)", both)
    assert node.mission.rejected["wrong_frame"] == 1
    assert "pose in frame 'odom', the map is in 'map'" in text
    assert ("passed to lookupTransform" if installed else "install ros-$ROS_DISTRO") in text
    probe.odometry(20.0)
    wait_until(lambda: probe.waypoints, "a pose in the map's frame is used all the same")


NO_ROTATIONS = [(0.0, 0.0, 0.0, 0.0), (math.nan, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 0.5)]


def test_a_pose_is_not_turned_by_a_rotation_that_is_none(ros: Ros, tf: Tf) -> None:
    node = sensing(ros)
    probe = Sensor(ros).connect()
    for number, rotation in enumerate(NO_ROTATIONS, 1):
        tf.move("odom", 0.0, 0, rotation=rotation)
        probe.odometry(20.0, frame="odom")
        wait_until(
            lambda n=number: node.mission.rejected["wrong_frame"] == n, f"no use of {rotation}"
        )
    assert not probe.waypoints
    tf.move("odom", 0.0, 0)
    probe.odometry(20.0, frame="odom")
    wait_until(lambda: probe.waypoints, "a transform that is one is used")


@pytest.mark.parametrize("use", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_covariance_of_odometry_widens_a_reading(ros: Ros, use: bool) -> None:
    node = sensing(ros, f"pose.covariance:={'use' if use else 'ignore'}")
    probe = Sensor(ros).connect()
    now = probe.now_ns()
    probe.odometry(20.0, covariance=(100.0, 0.0, 100.0), t=now)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    probe.reading(20.013, variance=0.01, t=now)  # 20.0 would be a sensor in steps of 1 degC
    wait_until(lambda: observed(node) == [2], "the reading")
    with node.mission.lock:
        _, variance = node.mission.loop.belief.predict()
    assert (float(variance[2]) > 0.05) == use
    assert (float(variance[2]) < 0.011) != use


def test_the_published_way_has_the_curves(ros: Ros) -> None:
    node = sensing(ros, "map.moves:=free", "drive.turn_radius:=5.0")
    probe = Sensor(ros).connect()
    probe.odometry(0.0, heading=math.pi)  # it faces away from all other places
    wait_until(lambda: probe.waypoints, "the first waypoint")
    now = probe.now_ns()
    probe.odometry(0.0, heading=math.pi, t=now)
    probe.reading(20.0, t=now)
    wait_until(lambda: len(probe.heard["plan"]) > 1, "the next way")
    plan, path = node.mission.decisions.last_plan, probe.heard["plan"][-1]
    points = [(p.pose.position.x, p.pose.position.y) for p in path.poses]
    assert len(points) > 10
    first = path.poses[0].pose.orientation
    assert abs(2.0 * math.atan2(first.z, first.w)) > 3.0
    way = sum(map(math.dist, points, points[1:]))
    assert way == pytest.approx(plan.cost.metres, rel=2e-3)
    assert way > math.dist(points[0], points[-1]) + 15.0
    last = probe.waypoints[-1].pose.orientation
    turn = 2.0 * math.atan2(last.z, last.w) - plan.heading
    assert math.remainder(turn, math.tau) == pytest.approx(0.0, abs=1e-6)


def test_what_cannot_be_configured_is_refused(ros: Ros, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = tuple(text for text in GRID if "variance_field" not in text)
    bare = ("reading.type:=std_msgs/msg/Float64", "reading.field:=data", "reading.mount_from:=tf")
    for installed, given, problem in (
        (True, ("reading.mount:=[1.0]",), "reading.mount: "),
        (True, bare, "reading.mount"),
        (True, ("drive.turn_radius:=20.0",), "drive.turn_radius|circle"),
        (True, ("pose.type:=tf", "pose.child_frame:=/"), "child_frame: is required"),
        (False, ("reading.mount_from:=tf",), "reading.mount_from: tf needs .*tf2-ros-py"),
        (False, ("pose.type:=tf",), r"ros-\$ROS_DISTRO-tf2-ros-py"),
    ):
        monkeypatch.setitem(sys.modules, "tf2_ros", Tf() if installed else None)
        with case(given):
            node = sensing(ros, *given, "autostart:=false", given=grid)
            with pytest.raises((ConfigError, MissingDependencyError), match=problem):
                node.configure()
