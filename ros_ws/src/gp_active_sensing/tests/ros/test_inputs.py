"""What comes in: floods, sizes, bytes that are no message, tf, what was missed or set aside."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from geometry_msgs.msg import PoseWithCovarianceStamped, TwistStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import BatteryState, Temperature

from gp_active_sensing.ros import qos, subscriptions
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from gp_active_sensing.ros.qos import received_at
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import Probe, sensing
from tests.ros.tf import Tf


def rejected(node: ActiveSensingNode) -> dict[str, int]:
    return dict(node.mission.rejected)


def test_what_comes_too_fast_is_thinned_out_and_counted(
    ros: Ros, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "most_per_second", lambda stream: 1.0)
    node = sensing(ros, "reading.reliable:=true", "reading.rate:=500.0")
    probe = Probe(ros).connect()
    probe.pose(0.0)
    sent = 90
    now = probe.now_ns()
    for i in range(sent):
        probe.reading(20.0, t=now + i)
    mission = node.mission
    wait_until(lambda: mission.inbox.received["readings"] == sent, "all readings")
    wait_until(lambda: not len(mission.inbox), "an empty inbox")
    thinned = mission.rejected["too_fast"]
    assert 0 < thinned < sent
    wait_until(
        lambda: mission.loop.counts["accepted"] + mission.rejected.total() == sent,
        "every reading used or counted",
    )


def test_what_is_no_value_and_no_quaternion_is_counted(ros: Ros) -> None:
    node = sensing(ros, "reading.valid:=[-5.0, 60.0]")
    probe = Probe(ros).connect()
    now = probe.now_ns()
    pose = Odometry()
    pose.header.frame_id, pose.header.stamp = "map", outputs.time_of(now)
    pose.pose.pose.orientation.w = 0.0
    probe.poses.publish(pose)
    for value in (-9999.0, 1e20, 99.0, 20.0):
        probe.reading(value, t=now)
    wait_until(lambda: node.mission.loop.counts["accepted"] == 1, "the reading")
    assert rejected(node) == {"fill_value": 2, "not_valid": 1}
    probe.wait_value("rejected_fill_value", "2")
    probe.wait_value("pose_orientations_ignored", "1")


def test_a_node_that_comes_late_asks_for_what_was_kept(ros: Ros) -> None:
    tester = ros.node("keeper")
    kept = qos.reliable(1000, latched=True)
    poses = tester.create_publisher(Odometry, "pose", kept)
    readings = tester.create_publisher(Temperature, "reading", kept)
    for i in range(300):
        stamp = outputs.time_of(1_000_000_000 + 10_000_000 * i)
        pose = Odometry()
        pose.header.frame_id, pose.header.stamp = "map", stamp
        poses.publish(pose)
        reading = Temperature(temperature=20.0)
        reading.header.stamp = stamp
        readings.publish(reading)
    node = sensing(ros, "reading.catch_up:=true", "pose.catch_up:=true")
    wait_active(node)
    mission = node.mission
    wait_until(lambda: mission.loop.counts["accepted"] == 300, "all of them")
    assert mission.rejected == {}


def test_a_clock_that_was_set_or_says_nothing_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    day, now = 10**18, 500.0
    clocks = SimpleNamespace(time_ns=lambda: day, monotonic=lambda: now)
    monkeypatch.setattr("gp_active_sensing.ros.qos.time", clocks)
    assert received_at({}) == now
    for what, stamp in {"none": 0, "ahead": day + 10**10, "long ago": day - 10**11}.items():
        assert received_at({"received_timestamp": stamp}) == now, what
    assert received_at({"received_timestamp": day - 5 * 10**9}) == pytest.approx(now - 5.0)


def test_what_was_set_aside_is_taken_back_by_a_service(ros: Ros) -> None:
    node = sensing(ros, "reading.gate_places:=1", "reading.unit:=degC")
    probe = Probe(ros).connect()
    assert probe.call("accept_gated").message == "none is set aside"
    for x, value in ((0.0, 20.0), (10.0, 9999.0)):
        now = probe.now_ns()
        probe.pose(x, t=now)
        probe.reading(value, t=now)
        count = int(x / 10.0)
        wait_until(lambda n=count: rejected(node).get("gated", 0) == n, "it is set aside")
        wait_until(lambda: node.mission.loop.counts["accepted"], "the first one")
    probe.wait_value("gated_kept", "1")
    answer = probe.call("accept_gated")
    assert (answer.success, answer.message) == (True, "1 readings are used after all")
    assert node.mission.loop.counts["accepted"] == 2
    assert rejected(node) == {}


def test_poses_are_looked_up_in_tf(ros: Ros, tf: Tf) -> None:
    node = sensing(ros, "pose.type:=tf", "pose.child_frame:=sensor", "pose.rate:=100.0")
    probe = Probe(ros)
    ros.match(probe.readings)
    wait_until(lambda: tf.asked, "a lookup")
    assert not probe.waypoints
    now = probe.now_ns()
    tf.move("sensor", 10.0, now)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    mission = node.mission
    assert mission.inbox.received["poses"] == 1, "the same transform is one pose"
    probe.reading(20.0, t=now)
    wait_until(lambda: mission.loop.belief.observed[1], "the reading at the pose of tf")
    tf.move("sensor", 20.0, now + 1_000_000_000)
    wait_until(lambda: mission.inbox.received["poses"] == 2, "the next pose")


def test_what_tf_lacks_is_said(ros: Ros, tf: Tf, wait_said: Callable[..., str]) -> None:
    sensing(ros, "pose.type:=tf")
    wait_said('waiting for transform map <- base_link: "base_link" passed to lookupTransform')


def test_several_probes_have_a_frame_each(ros: Ros, tf: Tf) -> None:
    node = sensing(ros, "pose.type:=tf", "probes:=[a, b]", "pose.rate:=100.0")
    wait_until(lambda: {("map", "a/base_link"), ("map", "b/base_link")} <= set(tf.asked), "both")
    now = int(node.get_clock().now().nanoseconds)
    tf.move("a/base_link", 0.0, now)
    tf.move("b/base_link", 30.0, now)
    probes = node.mission.probes
    wait_until(lambda: all(probe.plan for probe in probes.values()), "a decision for each")
    assert [probe.ingestion.here.place for probe in probes.values()] == [0, 3]


def test_the_pose_of_a_robot_that_stands_is_heard_though_it_was_sent_before(ros: Ros) -> None:
    kind = "geometry_msgs/msg/PoseWithCovarianceStamped"
    sender = ros.node("amcl")
    poses = sender.create_publisher(PoseWithCovarianceStamped, "pose", qos.latched())
    message = PoseWithCovarianceStamped()
    message.header.frame_id = "map"
    message.header.stamp = sender.get_clock().now().to_msg()
    message.pose.pose.orientation.w = 1.0
    poses.publish(message)
    node = sensing(ros, f"pose.type:={kind}", "pose.max_age:=0.2")
    wait_active(node)
    wait_until(lambda: node.mission.probe.ingestion.poses, "the pose")
    readings = sender.create_publisher(Temperature, "reading", qos.reliable(100))
    ros.match(readings)

    def read() -> bool:
        reading = Temperature(temperature=20.0)
        reading.header.stamp = sender.get_clock().now().to_msg()
        readings.publish(reading)
        return bool(node.mission.loop.counts["accepted"] >= 3)

    wait_until(read, "readings of a robot that stands")
    assert rejected(node) == {}


def test_the_charge_of_a_battery_is_used_and_what_is_no_charge_is_counted(ros: Ros) -> None:
    node = sensing(ros, "battery.topic:=battery_state")
    probe = Probe(ros).connect()
    charges = probe.node.create_publisher(BatteryState, "battery_state", qos.reliable())
    ros.match(charges)
    probe.pose(0.0)
    for percentage in (87.0, float("nan"), 0.75):
        charges.publish(BatteryState(percentage=percentage))
    sortie = node.mission.probe.sortie
    wait_until(lambda: sortie.level == 0.75, "the charge")
    assert rejected(node)["battery_no_charge"] == 2
    probe.wait_value("charge", "0.75")


def test_a_velocity_of_its_own_topic_is_that_of_the_poses(ros: Ros) -> None:
    node = sensing(
        ros, "pose.twist_topic:=velocity", "pose.twist_type:=geometry_msgs/msg/TwistStamped"
    )
    probe = Probe(ros).connect()
    velocities = probe.node.create_publisher(TwistStamped, "velocity", qos.reliable())
    ros.match(velocities)
    for speed in (2.0, float("nan")):
        message = TwistStamped()
        message.header.stamp = outputs.time_of(probe.now_ns())
        message.twist.linear.x = speed
        velocities.publish(message)
    wait_until(lambda: rejected(node).get("twist_not_finite") == 1, "both velocities")
    probe.pose(0.0)
    track = node.mission.probe.ingestion.track
    wait_until(lambda: track.newest is not None, "the pose")
    assert track.newest is not None
    assert track.newest.speed == 2.0
