"""Absurd messages and parameters for a real node, through its callbacks or its topics."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import Odometry
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, LaserScan, NavSatFix, Temperature
from std_msgs.msg import Float64MultiArray

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from tests.fuzzing import NUMBERS, absurd_values, mutated, sums
from tests.ros.probe import GRID

_BEGUN_NS = 100_000_000_000
STEP = 50
"""Messages between two steps of the mission."""


class Case:
    def __init__(
        self,
        rng: random.Random,
        reading: tuple[Any, str, str],
        pose: Any,
        *more: str,
        stamped: bool = True,
    ) -> None:
        kind, field, variance = reading
        self.stamped = stamped
        """Whether messages have stamps, of 100 s and on; the time of their arrival counts else."""
        self._rng = rng
        self._reading, self._field, self._pose = kind, field, pose
        self.parameters = (
            *(text for text in GRID if "variance_field" not in text),
            f"reading.type:={_name(kind)}", f"reading.field:={field}",
            *([f"reading.variance_field:={variance}"] if variance else []),
            f"pose.type:={_name(pose)}",
            "mission.begin:=false", *more,
        )  # fmt: skip
        self.kinds: dict[str, Callable[[], Any]] = {
            "reading": self.make_reading,
            "pose": self.make_pose,
        }

    def _number(self) -> float:
        usual = self._rng.random() < 0.5
        return self._rng.uniform(0.0, 30.0) if usual else self._rng.choice(NUMBERS)

    def _header(self, message: Any, frames: tuple[str, ...]) -> Any:
        rng = self._rng
        usual = rng.random() < 0.8
        message.header.frame_id = frames[0] if usual else rng.choice(frames)
        stamp = message.header.stamp
        if usual and not self.stamped:
            return message  # which then has the time of its arrival
        stamp.sec = rng.randrange(100, 130) if usual else rng.choice((0, -(2**31), 2**31 - 1, 5))
        stamp.nanosec = rng.choice((0, 5, 999_999_999, 2**32 - 1))
        return message

    def make_reading(self) -> Any:
        message = self._reading()
        if hasattr(message, "header"):
            self._header(message, ("sensor", "", "x" * 300))
        if self._reading is Temperature:
            message.temperature, message.variance = self._number(), self._number()
        elif self._reading is Float64MultiArray:
            length = self._rng.choice((0, 1, 3, 4, 10, 1000))
            message.data = [self._number() for _ in range(length)]
        elif self._reading is LaserScan:
            length = self._rng.choice((0, 1, 30))
            message.ranges = [self._rng.uniform(0.0, 9.0) for _ in range(length)]
        else:
            message.angular_velocity.z = self._number()
        return message

    def make_pose(self) -> Any:
        message = self._header(self._pose(), ("map", "", "odom", "/map", "x" * 300))
        if self._pose is NavSatFix:
            message.latitude = 1.35 + 1e-5 * self._number()
            message.longitude = 103.8 + 1e-5 * self._number()
            message.status.status = self._rng.choice((-1, 0, 0, 0, 127))
            return message
        inner = message.pose if self._pose is PoseStamped else message.pose.pose
        inner.position.x, inner.position.y = self._number(), self._rng.choice((0.0, 1.0, math.nan))
        inner.orientation.z, inner.orientation.w = self._number(), self._number()
        return message


def _name(kind: Any) -> str:
    return f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"


def cases(rng: random.Random) -> list[Case]:
    return [
        Case(rng, (Temperature, "temperature", "variance"), Odometry),
        Case(
            rng, (Float64MultiArray, "data[3]", ""), PoseStamped,
            "reading.window:=0.5", "reading.gate_places:=2", stamped=False,
        ),
        Case(
            rng, (LaserScan, "ranges[-1]", "time_increment"), PoseWithCovarianceStamped,
            "reading.gate:=0.0", "belief.transform:=log", "reading.scale:=1.0e+90",
            "reading.window:=0.0",  # no reading waits for the probe to come nearer
        ),
        Case(
            rng, (Imu, "angular_velocity.z", "angular_velocity_covariance[8]"), NavSatFix,
            "pose.datum:=[1.35, 103.8]", "reading.offset:=-1.0e+99",
        ),
    ]  # fmt: skip


def fuzz_callbacks(
    node: ActiveSensingNode, case: Case, rng: random.Random, count: int, used: int = 0
) -> dict[str, Counter[str]]:
    """Give a configured node messages as its subscriptions would; return what came of them.

    Args:
        node, case, rng: hears them, its configuration, chooses them.
        count: at least so many messages, and at most ten times so many.
        used: go on until so many readings (those that the gate refused count) and poses were used.

    Raises:
        AssertionError: one is neither used nor counted, or fails; hardly any could be used.
    """
    mission, results = node.mission, node.results
    assert mission is not None
    assert results is not None
    streams = results.health.streams
    sent: Counter[str] = Counter()
    messages = mutated(rng, case.kinds, serialize_message)

    def now_ns() -> int:
        return _BEGUN_NS if case.stamped else int(node.get_clock().now().nanoseconds)

    for i in itertools.count():
        topic, data = next(messages)
        streams[topic].on_message(data)
        sent[topic] += 1
        if i % STEP:
            continue
        _step(mission, now_ns() + 1_000_000 * i)
        readings, poses = sums(mission)
        enough = min(readings["used"] + readings.get("gated", 0), poses["used"]) >= used
        if i >= count and enough:
            break
        assert i < 10 * count, f"hardly any can be used: {readings}, {poses}"
    while len(mission.inbox):
        _step(mission, now_ns() + 1_000_000 * i)
    readings, poses = sums(mission)
    assert sum(readings.values()) == sent["reading"], (readings, sent)
    assert sum(poses.values()) == sent["pose"], (poses, sent)
    assert not node.callback_errors, node.callback_errors
    found = {"reading": Counter(readings), "pose": Counter(poses)}
    assert not any(found[topic]["error"] for topic in found), found
    return found


def _step(mission: Any, now_ns: int) -> None:
    for step in mission.step(now_ns):
        job = step.job
        if job is not None and getattr(job, "decide", False):
            mission.decided(job, job.ask())
        elif job is not None:
            mission.showing = False


def fuzz_parameters(node: ActiveSensingNode, rng: random.Random, count: int) -> Counter[str]:
    """Set so many parameters to absurd values; return how many were accepted and refused.

    With each that was accepted the configuration is built: it is complete or says what is wrong.
    Then the parameter gets the value that it had.
    """
    names = sorted(name for name in node.parameters.names if node.has_parameter(name))
    values = absurd_values()
    found: Counter[str] = Counter()
    for _ in range(count):
        name, value = rng.choice(names), rng.choice(values)
        before = node.get_parameter_or(name, Parameter(name))
        try:
            (result,) = node.set_parameters([Parameter(name, value=value)])
        except (TypeError, ValueError, OverflowError, UnicodeError):
            found["cannot be said in ROS"] += 1
            continue
        assert result.successful or result.reason, f"{name} = {value!r} is refused without a reason"
        if not result.successful:
            found["refused"] += 1
            continue
        found["accepted"] += 1
        try:
            node.parameters.config()
            found["configurations built"] += 1
        except ConfigError as error:
            found["configurations refused" if str(error) else "without a reason"] += 1
        _restore(node, before)
    assert not node.callback_errors, node.callback_errors
    return found


def _restore(node: ActiveSensingNode, before: Parameter) -> None:
    """Give a parameter the value that it had; one that was not set is taken back."""
    name = before.name
    ways = [
        Parameter(name, value=math.nan),
        Parameter(name, Parameter.Type.STRING_ARRAY, []),
        Parameter(name, Parameter.Type.DOUBLE_ARRAY, []),
        Parameter(name, value=[math.nan]),
        Parameter(name, value=""),
        Parameter(name, value="[]"),
        Parameter(name, value=1),  # a whole number has no word for it
    ]
    if before.value is not None:
        ways = [before]
    assert any(node.set_parameters([way])[0].successful for way in ways), f"{name} cannot go back"
