"""Nothing that comes in over ROS takes the node down, and everything is used or counted."""

from __future__ import annotations

import random

import pytest
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock

from gp_active_sensing.mission.stream_config import MOST_BYTES
from gp_active_sensing.ros import qos, subscriptions
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from tests.ros.conftest import Ros, wait_until
from tests.ros.fuzzing_node import cases, fuzz_callbacks, fuzz_parameters
from tests.ros.probe import Probe, sensing


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3))]
)
def test_messages_through_the_callbacks(
    ros: Ros, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MOST_BYTES, "reading", 100_000)
    monkeypatch.setattr(subscriptions, "most_per_second", lambda stream: 1e9)
    rng = random.Random(f"callbacks {number}")
    case = cases(rng)[number]
    node = sensing(ros, "autostart:=false", given=case.parameters)
    node.configure()
    # How many of the messages can be used is a matter of when they come: so many of each kind,
    # not so many of a time.
    found = fuzz_callbacks(node, case, rng, 2500, used=40)
    assert {"undecodable", "not_finite", "too_large"} <= set(found["reading"]), found
    framed = set() if number == 3 else {"wrong_frame"}  # a NavSatFix is in no frame of the map
    assert {"pose_undecodable", "pose_not_finite"} | framed <= set(found["pose"]), found


@pytest.mark.long
def test_absurd_times_on_the_clock(ros: Ros) -> None:
    rng = random.Random("clock")
    node = sensing(ros, "use_sim_time:=true", "mission.begin:=false")
    probe = Probe(ros).connect()
    ros.match(probe.clock)
    hostile = ros.node("hostile").create_publisher(Clock, "/clock", qos.reliable(100))
    ros.match(hostile)
    seconds = (0, 1, 100, -1, -(2**31), 2**31 - 1)
    for _ in range(300):
        message = Clock()
        message.clock.sec = rng.choice(seconds)
        message.clock.nanosec = rng.choice((0, 1, 999_999_999, 2**32 - 1))
        data = bytearray(serialize_message(message))
        if rng.random() < 0.3:
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        hostile.publish(bytes(data))
    # Times that rclpy refuses fail its own callback, which is counted, and nothing else.
    wait_until(lambda: node.callback_errors, "times that cannot be")
    wait_until(lambda: _told(probe, node, 2_000.0), "the time that is said last")
    assert set(node.callback_errors) == {"callback of topic /clock"}
    assert probe.call("start").success, "the services answer"
    probe.pose(0.0, t=2_000_000_000_000)
    probe.reading(20.0, t=2_000_000_000_000)
    wait_until(lambda: node.mission.loop.counts["accepted"], "a reading to be used")


def _told(probe: Probe, node: ActiveSensingNode, seconds: float) -> bool:
    probe.tick(seconds)
    return int(node.get_clock().now().nanoseconds) == round(1e9 * seconds)


@pytest.mark.long
def test_parameters_of_a_node_that_is_not_configured(ros: Ros) -> None:
    node = sensing(ros, "autostart:=false")
    found = fuzz_parameters(node, random.Random("unconfigured"), 1500)
    assert found["accepted"] > 20, found
    assert found["refused"] > 500, found
    assert not found["without a reason"]
    assert found["configurations built"] > 20, found


def test_parameters_of_a_running_node(ros: Ros) -> None:
    node = sensing(ros)
    probe = Probe(ros).connect()
    found = fuzz_parameters(node, random.Random("running"), 1500)
    assert found["refused"] > 500, found
    assert not node.callback_errors
    probe.pose(0.0)
    wait_until(lambda: node.mission.inbox.received["poses"], "a pose")
