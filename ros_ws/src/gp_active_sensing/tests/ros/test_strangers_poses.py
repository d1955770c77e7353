"""A second publisher on the pose topic, stamped an hour ahead: the mission goes as without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from nav_msgs.msg import Odometry

from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import Probe, sensing

pytestmark = pytest.mark.ros

HOUR_NS = 3600 * 10**9


class Stranger:
    """Publishes a pose far away after each pose of the probe, stamped an hour ahead of it."""

    def __init__(self, ros: Ros) -> None:
        node = ros.node("stranger")
        self.poses = node.create_publisher(Odometry, "pose", qos.reliable(100))
        node.create_subscription(Odometry, "pose", self.hear, qos.reliable(100))
        self.sent = 0

    def hear(self, message: Odometry) -> None:
        if message.pose.pose.position.y != 0.0:
            return  # its own
        stamp = message.header.stamp
        later = Odometry()
        later.header.frame_id = "map"
        later.header.stamp = outputs.time_of(stamp.sec * 10**9 + stamp.nanosec + HOUR_NS)
        later.pose.pose.position.x, later.pose.pose.position.y = 30.0, 1.0
        self.poses.publish(later)
        self.sent += 1


def test_the_waypoints_are_those_without_the_stranger(ros: Ros, tmp_path: Path) -> None:
    run = tmp_path / "run"
    node = sensing(ros, "budget.readings:=4", "plan_ahead:=false", f"run_dir:={run}")
    probe = Probe(ros).connect()
    stranger = Stranger(ros)
    wait_until(stranger.poses.get_subscription_count, "the node to hear the stranger")
    wait_until(lambda: probe.poses.get_subscription_count() == 2, "the stranger to hear")
    wait_until(lambda: "2 publishers of topic pose" in probe.problems, "the warning")
    probe.obedient = True
    probe.pose(0.0)
    wait_until(lambda: probe.values.get("state") == "ended", "the end of the mission")
    assert node.mission.loop.counts["accepted"] == 4
    assert set(node.mission.rejected) == {"pose_ahead"}
    events = map(json.loads, (run / "journal.jsonl").read_text().splitlines())
    sent = [event["waypoints"] for event in events if event["event"] == "decision"]
    assert sent == [[0], [1], [2], [3]]
