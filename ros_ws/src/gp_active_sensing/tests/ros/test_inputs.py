"""What comes in: floods, sizes, bytes that are no message, tf, what was missed or set aside."""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

import rclpy
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import Temperature
from std_msgs.msg import Float64MultiArray

from gp_active_sensing.errors import ConfigError, MissingDependencyError, ReadingError
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from gp_active_sensing.ros.topic_monitor import received_at
from gp_active_sensing.ros.transforms import Transforms, pose_of
from tests.fuzzing import NUMBERS, sums
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import GRID, Probe, sensing
from tests.ros.tf import Tf
from tests.waiting import LIMIT

pytestmark = pytest.mark.ros


def rejected(node: ActiveSensingNode) -> dict[str, int]:
    return dict(node.mission.rejected)


# -- limits ------------------------------------------------------------------------------------


def test_a_message_that_is_too_large_is_counted_and_the_next_is_used(ros: Ros) -> None:
    node = sensing(ros, "reading.max_bytes:=10000", "pose.max_bytes:=1000")
    probe = Probe(ros).connect()
    large = Temperature(temperature=21.0)
    large.header.frame_id = "x" * 20_000
    probe.readings.publish(large)
    huge = Odometry()
    huge.header.frame_id = "x" * 20_000
    probe.poses.publish(huge)
    now = probe.now_ns()
    probe.pose(0.0, t=now)
    probe.reading(20.0, t=now)
    wait_until(lambda: node.mission.loop.counts["accepted"] == 1, "the reading")
    assert rejected(node) == {"too_large": 1, "pose_too_large": 1}
    probe.wait_value("rejected_too_large", "1")


def test_what_comes_too_fast_is_thinned_out_and_counted(ros: Ros) -> None:
    node = sensing(ros, "reading.max_rate:=1.0", "reading.reliable:=true", "reading.rate:=500.0")
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


def test_readings_that_have_to_settle_are_counted_and_no_problem(ros: Ros) -> None:
    node = sensing(ros, "mission.settle:=1000.0")
    probe = Probe(ros).connect()
    now = probe.now_ns()
    for i in range(3):
        probe.pose(0.0, t=now + i)
        probe.reading(20.0, t=now + i)
    wait_until(lambda: rejected(node) == {"settling": 3}, "they settle")
    probe.wait_value("rejected_settling", "3")
    assert "rejected" not in probe.problems
    probe.pose(0.0, frame="elsewhere")
    wait_until(lambda: "rejected" in probe.problems, "a pose in another frame is a problem")
    assert probe.problems.split(", ")[-1] == "1 rejected"


class Waiting(Probe):
    """Stays at each waypoint, and says twice a second where it is and what it reads.

    Its seconds are those of its stamps, which no busy machine holds up.
    """

    def begin(self, seconds_ago: float) -> None:
        self.clock_ns = self.now_ns() - round(1e9 * seconds_ago)
        self.arrived: dict[float, int] = {0.0: self.clock_ns}
        self.obedient = True
        self.pose(0.0, t=self.clock_ns)

    def go(self) -> None:
        x = self.waypoints[-1].pose.position.x
        for _ in range(6):
            self.clock_ns += 500_000_000
            self.arrived.setdefault(x, self.clock_ns)
            self.pose(x, t=self.clock_ns)
            self.reading(self.field(x, 0.0), t=self.clock_ns)


def test_readings_are_used_once_they_have_settled(ros: Ros, tmp_path: Path) -> None:
    run, settle = tmp_path / "run", 1.5
    sensing(ros, f"mission.settle:={settle}", "budget.readings:=3", f"run_dir:={run}")
    probe = Waiting(ros).connect()
    probe.begin(seconds_ago=60.0)
    wait_until((run / "summary.json").exists, "the end of the mission")
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["observed"], summary["set_aside"]) == ("finished", 3, [])
    refused = summary["rejected_by_reason"]
    assert refused.pop("settling") >= 2 * 3
    assert refused.keys() <= {"mission_over"}  # what came after the last that was used
    events = map(json.loads, (run / "journal.jsonl").read_text().splitlines())
    used = [event for event in events if event["event"] == "reading"]
    assert len({event["location"] for event in used}) == 3
    for event in used:
        stayed = event["stamp_ns"] - probe.arrived[10.0 * event["location"]]
        assert stayed >= round(1e9 * settle)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x01\x00\x00\xff\xff\xff\xff", b"\xff" * 64])
def test_bytes_that_are_no_message_are_counted(ros: Ros, data: bytes) -> None:
    node = sensing(ros)
    probe = Probe(ros).connect()
    mission = node.mission
    probe.readings.publish(data)
    probe.poses.publish(data)
    now = probe.now_ns()
    probe.pose(0.0, t=now)
    probe.reading(20.0, t=now)
    wait_until(lambda: mission.loop.counts["accepted"] == 1, "the reading")
    came = mission.inbox.received
    assert came["readings"] - 1 == mission.rejected["undecodable"]
    assert came["poses"] - 1 == mission.rejected["pose_undecodable"]
    assert not node.callback_errors


def test_an_array_that_is_too_short_is_no_reading(ros: Ros) -> None:
    kind = "reading.type:=std_msgs/msg/Float64MultiArray"
    given = tuple(text for text in GRID if "variance_field" not in text)
    node = sensing(ros, kind, "reading.field:=data[2]", given=given)
    tester = ros.node("arrays")
    publisher = tester.create_publisher(Float64MultiArray, "reading", 10)
    wait_until(publisher.get_subscription_count, "a subscriber")
    publisher.publish(Float64MultiArray())
    publisher.publish(Float64MultiArray(data=[1.0, 2.0]))
    wait_until(lambda: rejected(node).get("not_finite") == 2, "both are counted")


# -- what was missed ---------------------------------------------------------------------------


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


def test_a_message_came_when_it_did_not_when_its_callback_runs(
    ros: Ros, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = sensing(ros)
    probe = Probe(ros).connect()
    wait_active(node)
    inbox, came = node.mission.inbox, []
    put = inbox.put

    def note(what: Any, received: float, name: str = "") -> None:
        came.append(received)
        put(what, received, name)

    monkeypatch.setattr(inbox, "put", note)
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        if not free.is_set():
            held.set()
            free.wait(LIMIT)

    probe.node.create_timer(0.01, hold)
    elsewhere, there = SingleThreadedExecutor(), []
    beside = rclpy.create_node("beside")
    elsewhere.add_node(beside)
    beside.create_subscription(Odometry, "pose", there.append, qos.sensor(10.0))
    wait_until(lambda: probe.poses.get_subscription_count() == 2, "a second subscriber")
    wait_until(held.is_set, "the executor to be busy")
    probe.pose(0.0)

    def arrived() -> bool:
        elsewhere.spin_once(timeout_sec=0.05)
        return bool(there)

    wait_until(arrived, "the pose, which nobody takes in the node")
    time.sleep(0.3)  # some time between its coming and its callback, however long
    freed = time.monotonic()
    free.set()
    wait_until(lambda: came, "the pose in the node")
    elsewhere.shutdown()
    beside.destroy_node()
    assert came[0] < freed


def test_a_clock_that_was_set_or_says_nothing_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    day, now = 10**18, 500.0
    clocks = SimpleNamespace(time_ns=lambda: day, monotonic=lambda: now)
    monkeypatch.setattr("gp_active_sensing.ros.topic_monitor.time", clocks)
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


# -- tf ----------------------------------------------------------------------------------------


@pytest.fixture
def tf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tf]:
    module = Tf()
    monkeypatch.setitem(sys.modules, "tf2_ros", module)
    return module


def test_poses_are_looked_up_in_tf(ros: Ros, tf: Tf) -> None:
    node = sensing(ros, "pose.type:=tf", "pose.child_frame:=sensor", "pose.rate:=100.0")
    probe = Probe(ros)
    wait_until(probe.readings.get_subscription_count, "a subscriber of reading")
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


def test_absurd_transforms_are_used_or_counted(ros: Ros, tf: Tf) -> None:
    rng = random.Random("tf")
    node = sensing(ros, "autostart:=false")
    node.configure()
    mission, transforms = node.mission, Transforms(node, "map", 1e-6)  # looked up below

    def take(found: Any, received: float) -> None:
        try:
            mission.inbox.put(pose_of(found, "map"), received)
        except ReadingError as error:
            mission.inbox.refuse("poses", f"pose_{error.reason}")

    transforms.add("sensor", take)
    given = 0
    for _ in range(2000):
        tf.move("sensor", rng.choice((0.0, 10.0, *NUMBERS)), rng.randrange(1, 2**60))
        found = tf.known["map", "sensor"]
        found.header.stamp.sec = rng.choice((1, 100, -1, -(2**31), 2**31 - 1))
        found.header.stamp.nanosec = rng.choice((0, 5, 999_999_999, 2**32 - 1))
        place, turn = found.transform.translation, found.transform.rotation
        place.y = rng.choice(NUMBERS)
        if rng.random() < 0.5:
            turn.z, turn.w = rng.choice(NUMBERS), rng.choice(NUMBERS)
        transforms.look_up()
        given += 1
        if given % 50 == 0:
            mission.step(100_000_000_000 + given)
    while len(mission.inbox):
        mission.step(200_000_000_000)
    _, poses = sums(mission)
    assert not node.callback_errors
    assert poses["waiting"] == 0
    assert 0 < sum(poses.values()) == mission.inbox.received["poses"] <= given
    assert {"used", "pose_not_finite"} <= {word for word, count in poses.items() if count}, poses


def test_what_tf_lacks_is_said(ros: Ros, tf: Tf, capfd: pytest.CaptureFixture[str]) -> None:
    sensing(ros, "pose.type:=tf")
    said = 'waiting for transform map <- base_link: "base_link" passed to lookupTransform'
    log: list[str] = []

    def is_said() -> bool:
        log.append(capfd.readouterr().err)
        return said in "".join(log)

    wait_until(is_said, "what is missing")


def test_several_probes_have_a_frame_each(ros: Ros, tf: Tf) -> None:
    node = sensing(ros, "pose.type:=tf", "probes:=[a, b]", "pose.rate:=100.0")
    wait_until(lambda: {("map", "a/base_link"), ("map", "b/base_link")} <= set(tf.asked), "both")
    now = int(node.get_clock().now().nanoseconds)
    tf.move("a/base_link", 0.0, now)
    tf.move("b/base_link", 30.0, now)
    probes = node.mission.probes
    wait_until(lambda: all(probe.plan for probe in probes.values()), "a decision for each")
    assert [probe.ingestion.here.place for probe in probes.values()] == [0, 3]


def test_without_tf2_ros_it_says_what_to_install(ros: Ros, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    node = sensing(ros, "pose.type:=tf", "autostart:=false")
    with pytest.raises(MissingDependencyError, match=r"ros-\$ROS_DISTRO-tf2-ros-py"):
        node.configure()


def test_tf_needs_a_frame(ros: Ros) -> None:
    node = sensing(ros, "pose.type:=tf", "pose.child_frame:=/", "autostart:=false")
    with pytest.raises(ConfigError, match="child_frame: is required"):
        node.configure()


def test_the_profile_of_a_stream_that_catches_up() -> None:
    profile = qos.sensor(10.0, catch_up=True)
    assert profile.depth == qos.CATCH_UP_DEPTH
    assert profile.reliability.name == "RELIABLE"
    assert profile.durability.name == "TRANSIENT_LOCAL"
