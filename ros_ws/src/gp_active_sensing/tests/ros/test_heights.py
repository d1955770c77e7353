"""A mission in three dimensions with nodes: z in poses, waypoints, the plan, the field, the map."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from nav_msgs.msg import Odometry
from sensor_msgs.msg import NavSatFix, Temperature

from gp_active_sensing.messages.conversions import pose_reader
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import GRID, Probe, sensing
from tests.ros.tf import Tf

pytestmark = pytest.mark.ros

COLUMN = (
    *(word for word in GRID if not word.startswith(("map.columns", "belief.length"))),
    "map.columns:=2",
    "map.heights:=[0.0, -3.0, -6.0]",
    "belief.length_scales:=[20.0]",
    "belief.axis_ratio:=[0.3, 1.0]",
)
HEIGHTS = {0.0, -3.0, -6.0}


def test_waypoints_have_a_z_and_poses_are_matched_by_theirs(ros: Ros, tmp_path: Path) -> None:
    run = tmp_path / "run"
    sensing(ros, "budget.readings:=5", f"run_dir:={run}", given=COLUMN)
    probe = Probe(ros).connect()
    probe.pose(0.0, z=-6.1)  # over, or rather below, c0r0z2
    wait_until(lambda: probe.waypoints, "the first waypoint")
    first = probe.waypoints[0].pose.position
    assert first.z in HEIGHTS
    wait_until(lambda: probe.heard["plan"], "the plan")
    assert probe.heard["plan"][0].poses[-1].pose.position == first
    probe.obedient = True
    probe.hear(probe.waypoints[0])
    probe.wait_value("state", "ended")
    wait_until((run / "summary.json").exists, "the summary")
    assert json.loads((run / "summary.json").read_text())["observed"] == 5
    found = {w.pose.position.z for w in probe.waypoints}
    assert len(found) > 1
    assert found <= HEIGHTS
    cloud = probe.heard["field"][-1]
    values = np.frombuffer(bytes(cloud.data), dtype="<f4").reshape(cloud.width, 5)
    assert set(values[:, 2].tolist()) == HEIGHTS
    markers = probe.heard["map"][-1].markers
    shown = {round(p.z) for m in markers if m.ns == "topology" for p in m.points}
    assert len(shown) == len(HEIGHTS)
    labels = [d.label for d in probe.heard["length_scale_belief"][-1].layout.dim]
    assert any("length_scale=20/20/6 " in label for label in labels)


class Diver(Probe):
    """Says how sure it is of its depth, and which sensor measured."""

    def dive(self, z: float, *, variance: float = 0.0, t: int, child: str = "base_link") -> None:
        message = Odometry(child_frame_id=child)
        message.header.frame_id, message.header.stamp = "map", outputs.time_of(t)
        message.pose.pose.position.z = z
        message.pose.pose.orientation.w = 1.0
        message.pose.covariance[14] = variance
        self.poses.publish(message)

    def measured(self, value: float, frame: str, t: int) -> None:
        message = Temperature(temperature=value, variance=0.01)
        message.header.frame_id, message.header.stamp = frame, outputs.time_of(t)
        self.readings.publish(message)


def observed(node: ActiveSensingNode) -> list[str]:
    loop = node.mission.loop
    return [loop.topology.names[i] for i in np.flatnonzero(loop.belief.observed)]


def test_tf_says_the_height_of_a_sensor(ros: Ros, monkeypatch: pytest.MonkeyPatch) -> None:
    tf = Tf()
    monkeypatch.setitem(sys.modules, "tf2_ros", tf)
    node = sensing(ros, "reading.mount_from:=tf", given=COLUMN)
    probe = Diver(ros).connect()
    now = probe.now_ns()
    probe.dive(-3.0, t=now)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    tf.move("mast", 0.0, 0, z=3.0, parent="base_link")
    tf.move("keel", 0.0, 0, z=float("nan"), parent="base_link")
    probe.measured(20.0, "keel", now)
    wait_until(lambda: node.mission.rejected["no_mount"] == 1, "a height that is none")
    probe.measured(20.0, "mast", now)
    wait_until(lambda: observed(node) == ["c0r0z0"], "the reading above the pose")
    probe.measured(20.0, "base_link", now)
    wait_until(lambda: observed(node) == ["c0r0z0", "c0r0z1"], "that at the pose")


def test_the_altitude_of_a_fix() -> None:
    kind, datum = "sensor_msgs/msg/NavSatFix", (54.0, 10.0)
    fix = NavSatFix(latitude=54.0, longitude=10.0, altitude=37.5)
    assert pose_reader(kind, datum=datum, zero_altitude=40.0)(fix).z == pytest.approx(-2.5)
    assert np.isnan(pose_reader(kind, datum=datum)(fix).z)
