"""Numbers out of messages, without ROS: what is no number becomes NaN and is rejected later."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import pytest

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.messages.conversions import (
    RateLimit,
    ValueReader,
    geodetic_to_local,
    heading_of,
    pose_reader,
)
from gp_active_sensing.mission.stream_config import ReadingConfig
from tests.cases import case

FIELDS = {"value": "double", "variance": "double", "flag": "octet", "list": "sequence<float>"}


def read(field: str, message: Any, **options: Any) -> tuple[float, float | None]:
    config = ReadingConfig(type="a_msgs/msg/Thing", field=field, **options)
    value = ValueReader(SimpleNamespace(fields=lambda _: FIELDS), config).read(message)
    return value.value, value.noise_variance


def test_scale_and_offset_are_those_of_the_value_and_the_scale_of_the_variance() -> None:
    message = SimpleNamespace(value=10.0, variance=0.25)
    found = read("value", message, variance_field="variance", scale=3.6, offset=-2.0)
    assert found == (pytest.approx(34.0), pytest.approx(0.25 * 3.6**2))


def test_a_scale_whose_square_is_infinite_makes_a_variance_that_is_rejected() -> None:
    for scale in [1e200, -1e308]:
        with case(scale):
            message = SimpleNamespace(value=1.0, variance=0.25)
            _, variance = read("value", message, variance_field="variance", scale=scale)
            assert variance == math.inf


def test_an_octet_is_a_number_and_none_is_not() -> None:
    for flag, expected in [(b"\x05", 5.0), (b"", math.nan)]:
        with case(flag, expected):
            value, _ = read("flag", SimpleNamespace(flag=flag))
            assert value == pytest.approx(expected, nan_ok=True)


def test_values_that_are_no_readings_are_refused_before_scaling() -> None:
    kelvin = {"scale": 2.0, "offset": -273.15}
    for raw, options, reason in [
        (-9999.0, kelvin, "fill_value"),
        (-9999.0, {"valid": (-50.0, 60.0)}, "fill_value"),
        (1.00000002004e20, {}, "fill_value"),
        (-3.4028234663852886e38, {}, "fill_value"),
        (60.5, {"valid": (-50.0, 60.0)}, "not_valid"),
        (-999.0, {"valid": (-1000.0, 0.0)}, ""),
        (150.0, {"valid": (0.0, 60.0), **kelvin}, ""),
        (-9998.0, {}, ""),
    ]:
        with case(raw, options):
            if not reason:
                assert math.isfinite(read("value", SimpleNamespace(value=raw), **options)[0])
                continue
            with pytest.raises(ReadingError) as caught:
                read("value", SimpleNamespace(value=raw), **options)
            assert caught.value.reason == reason


def test_quaternions_of_any_length() -> None:
    for by in (1.0, 0.5, -7.0, 1e-200, 1e200, 1e308):
        turned = [by * v for v in (0.0, 0.0, math.sin(0.35), math.cos(0.35))]
        with case(by):
            expected = heading_of(0.0, 0.0, math.sin(0.35), math.cos(0.35))
            assert heading_of(*turned) == pytest.approx(expected, abs=1e-12)
    for bad in [(0.0,) * 4, (math.nan, 0.0, 0.0, 1.0), (0.0, 0.0, math.inf, 1.0), (-0.0,) * 4]:
        with case(bad):
            assert math.isnan(heading_of(*bad))
            message = odometry(0.0, 0.0, 0.0)
            q = message.pose.pose.orientation
            q.x, q.y, q.z, q.w = bad
            pose = pose_reader("nav_msgs/msg/Odometry")(message)
            assert (math.isnan(pose.heading), pose.turn_variance) == (True, -1.0)


def test_an_impossible_fix_is_no_position() -> None:
    for latitude, longitude in [
        (math.inf, 0.0),
        (0.0, -math.inf),
        (math.nan, 0.0),
        (91.0, 0.0),
        (1.0, 1e308),
    ]:
        with case(latitude, longitude):
            assert all(map(math.isnan, geodetic_to_local(latitude, longitude, (1.35, 103.8))))
            fix = SimpleNamespace(
                status=SimpleNamespace(status=0), latitude=latitude, longitude=longitude,
                position_covariance_type=0,
                header=SimpleNamespace(stamp=SimpleNamespace(sec=5, nanosec=7)),
            )  # fmt: skip
            pose = pose_reader("sensor_msgs/msg/NavSatFix", datum=(1.35, 103.8))(fix)
            assert (pose.stamp_ns, math.isnan(pose.x), math.isnan(pose.y)) == (
                5_000_000_007,
                True,
                True,
            )


class Hands:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_keeps_the_rate_passes() -> None:
    for sent in [50, 99, 100]:
        with case(sent):
            clock = Hands()
            limit = RateLimit(100.0, clock)
            for _ in range(20 * sent):
                clock.now += 1.0 / sent
                assert limit.allows()


def test_what_is_faster_is_thinned_out_evenly() -> None:
    clock = Hands()
    limit = RateLimit(100.0, clock)
    passed = []
    for _ in range(20_000):  # 1000 a second, for 20 s
        clock.now += 0.001
        passed.append(limit.allows())
    assert sum(passed[10_000:]) == pytest.approx(1000, abs=2)
    gaps = [i for i, ok in enumerate(passed[10_000:]) if ok]
    assert max(b - a for a, b in itertools.pairwise(gaps)) <= 11


def test_a_queue_that_filled_up_while_the_node_was_busy_is_used() -> None:
    clock = Hands()
    limit = RateLimit(100.0, clock)
    clock.now += 3600.0
    assert sum(limit.allows() for _ in range(500)) == 100


def odometry(xx: float, xy: float, yy: float, yaw: float = 0.0) -> Any:
    covariance = [0.0] * 36
    covariance[0], covariance[1], covariance[6], covariance[7], covariance[35] = xx, xy, xy, yy, yaw
    place = SimpleNamespace(x=1.0, y=2.0, z=0.0)
    turn = SimpleNamespace(x=0.0, y=0.0, z=0.0, w=1.0)
    pose = SimpleNamespace(position=place, orientation=turn)
    header = SimpleNamespace(frame_id="map", stamp=SimpleNamespace(sec=1, nanosec=0))
    return SimpleNamespace(header=header, pose=SimpleNamespace(pose=pose, covariance=covariance))


def test_the_covariance_of_a_position() -> None:
    for entries, expected in [
        ((4.0, 0.0, 9.0), 13.0),
        ((4.0, 6.0, 9.0), 13.0),  # x and y together: a line
        ((0.0, 0.0, 9.0), 9.0),
        ((0.0, 0.0, 0.0), 0.0),  # not set
        ((-1.0, 0.0, 0.0), 0.0),  # the word of sensor_msgs for "there is none"
        ((4.0, 7.0, 9.0), -1.0),
        ((4.0, 0.0, -1e-3), -1.0),
        ((math.nan, 0.0, 9.0), -1.0),
        ((4.0, math.nan, 9.0), -1.0),
        ((1e300, 1e300, 1e300), 1e12),
    ]:
        with case(entries, expected):
            read_pose = pose_reader("nav_msgs/msg/Odometry")
            assert read_pose(odometry(*entries)).variance == pytest.approx(expected)
            ignores = pose_reader("nav_msgs/msg/Odometry", covariance=False)
            assert ignores(odometry(*entries, yaw=0.1)) == ignores(odometry(0.0, 0.0, 0.0))


def test_the_variance_of_a_height() -> None:
    for xx, zz, expected in [
        (4.0, 0.25, 0.25),
        (0.0, 0.25, 0.25),  # a depth is known where x and y are not said
        (4.0, 0.0, 0.0),
        (-1.0, 0.25, 0.0),
        (-1.0, math.nan, 0.0),
        (4.0, -1.0, -1.0),
        (4.0, math.nan, -1.0),
        (4.0, 1e300, 1e12),
    ]:
        with case(xx, zz, expected):
            message = odometry(xx, 0.0, abs(xx))
            message.pose.covariance[14] = zz
            pose = pose_reader("nav_msgs/msg/Odometry", heights=True)(message)
            assert pose.z_variance == pytest.approx(expected)
            assert pose.variance == (2.0 * xx if xx > 0.0 else 0.0)
            flat = pose_reader("nav_msgs/msg/Odometry")(message)
            assert (flat.z_variance, flat.variance) == (0.0, pose.variance)
            ignores = pose_reader("nav_msgs/msg/Odometry", heights=True, covariance=False)
            assert ignores(message).z_variance == 0.0


def test_the_variance_of_a_heading() -> None:
    for yaw, expected in [
        (0.04, 0.04),
        (0.0, 0.0),
        (-1.0, 0.0),
        (math.nan, 0.0),
        (1e6, math.pi**2 / 3.0),
    ]:
        with case(yaw, expected):
            read_pose = pose_reader("geometry_msgs/msg/PoseWithCovarianceStamped")
            assert read_pose(odometry(1.0, 0.0, 1.0, yaw)).turn_variance == pytest.approx(expected)


def test_a_fix_says_whether_its_covariance_is_known() -> None:
    for kind, expected in [(0, 0.0), (1, 13.0), (2, 13.0), (3, 13.0)]:
        with case(kind, expected):
            header = SimpleNamespace(frame_id="gps", stamp=SimpleNamespace(sec=1, nanosec=0))
            fix = SimpleNamespace(
                header=header,
                status=SimpleNamespace(status=0),
                latitude=1.0,
                longitude=2.0,
                position_covariance=[4.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 400.0],
                position_covariance_type=kind,
            )
            pose = pose_reader("sensor_msgs/msg/NavSatFix", datum=(1.0, 2.0), heights=True)(fix)
            assert pose.variance == pytest.approx(expected)
            assert pose.z_variance == pytest.approx(400.0 if expected else 0.0)
