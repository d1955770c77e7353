"""Messages -> numbers: readings, stamps, poses, and how many messages a second are used."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.messages.field_path import FieldPath, MessageTypes
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.types import Clock

__all__ = [
    "RateLimit",
    "Value",
    "ValueReader",
    "geodetic_to_local",
    "heading_of",
    "pose_reader",
    "stamp_ns",
]


def stamp_ns(stamp: Any) -> int:
    """Return a ``builtin_interfaces/Time`` in nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


@dataclass(frozen=True)
class Value:
    """What a message of topic ``reading`` says; stamp None = it has no header."""

    stamp_ns: int | None
    value: float
    noise_variance: float | None


class ValueReader:
    """Takes value, variance and stamp out of messages of one type.

    Args:
        types: knows the message types.
        type: name of the message type.
        field: path of the value.
        variance_field: path of the variance, "" = none.
        noise_variance: for messages without one.
        scale, offset: ``value = scale * field + offset``; the variance is scaled by scale².

    Raises:
        ConfigError: unknown type or field.
    """

    def __init__(
        self,
        types: MessageTypes,
        type: str,
        field: str,
        variance_field: str = "",
        *,
        noise_variance: float | None = None,
        scale: float = 1.0,
        offset: float = 0.0,
    ) -> None:
        self._field = FieldPath.parse(field, type, types, "reading.field")
        self._variance = (
            FieldPath.parse(variance_field, type, types, "reading.variance_field")
            if variance_field
            else None
        )
        self._constant = noise_variance
        self._scale, self._offset = scale, offset
        self._squared = scale * scale  # not **: that raises where this is infinite
        self.has_stamp = "header" in types.fields(type)

    def read(self, message: Any) -> Value:
        """Return what a message says; bad numbers are passed on, to be rejected and counted."""
        stamp = stamp_ns(message.header.stamp) if self.has_stamp else None
        value = self._scale * self._field.read(message) + self._offset
        variance = self._constant
        if self._variance is not None:
            own = self._variance.read(message)
            if own != 0.0:  # the convention of sensor_msgs: 0 = not known
                variance = own * self._squared
        return Value(stamp, value, variance)


def heading_of(x: float, y: float, z: float, w: float) -> float:
    """Return the yaw of a quaternion [rad]; NaN for one that is all zero."""
    if x == y == z == w == 0.0:
        return math.nan
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def pose_reader(
    type: str,
    *,
    datum: Sequence[float] | None = None,
    frame: str = "map",
) -> Callable[[Any], Pose]:
    """Return the function that reads poses out of messages of one type.

    Args:
        type: Odometry, PoseStamped, PoseWithCovarianceStamped or NavSatFix, with the package.
        datum: latitude and longitude of the map's origin, for NavSatFix [degree].
        frame: of the positions computed from a NavSatFix, whose own frame is the antenna's.

    Raises:
        ConfigError: another type, or no datum.
    """
    short = type.rsplit("/", maxsplit=1)[-1]
    if short == "NavSatFix":
        if datum is None:
            msg = "pose.datum: is required for sensor_msgs/msg/NavSatFix: [latitude, longitude]"
            raise ConfigError(msg)
        origin = (float(datum[0]), float(datum[1]))

        def read_fix(message: Any) -> Pose:
            good = message.status.status != -1  # STATUS_NO_FIX; drivers often leave it unset
            x, y = (
                geodetic_to_local(message.latitude, message.longitude, origin)
                if good
                else (math.nan, math.nan)
            )
            return Pose(stamp_ns(message.header.stamp), frame, x, y, math.nan)

        return read_fix
    nested = {"Odometry": True, "PoseWithCovarianceStamped": True, "PoseStamped": False}
    if short not in nested:
        msg = f"pose.type: expected {', '.join((*nested, 'NavSatFix'))}, got {type!r}"
        raise ConfigError(msg)
    inner = nested[short]

    def read_pose(message: Any) -> Pose:
        pose = message.pose.pose if inner else message.pose
        q = pose.orientation
        return Pose(
            stamp_ns(message.header.stamp),
            message.header.frame_id,
            pose.position.x,
            pose.position.y,
            heading_of(q.x, q.y, q.z, q.w),
        )

    return read_pose


_SEMI_MAJOR = 6378137.0
_FLATTENING = 1.0 / 298.257223563


def geodetic_to_local(
    latitude: float, longitude: float, datum: tuple[float, float]
) -> tuple[float, float]:
    """Return (east, north) of a WGS 84 position in the plane that touches the datum [m].

    Through earth-centred coordinates at height 0, so it is exact for the plane; over 10 km the
    plane itself is some centimetres short. NaN for what is no latitude or longitude.

    Args:
        latitude: degrees north.
        longitude: degrees east.
        datum: (latitude, longitude) of the origin.
    """
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 360.0):  # NaN too
        return math.nan, math.nan
    lat0, lon0 = (math.radians(v) for v in datum)
    x0, y0, z0 = _earth_centred(lat0, lon0)
    x, y, z = _earth_centred(math.radians(latitude), math.radians(longitude))
    dx, dy, dz = x - x0, y - y0, z - z0
    east = -math.sin(lon0) * dx + math.cos(lon0) * dy
    north = (
        -math.sin(lat0) * math.cos(lon0) * dx
        - math.sin(lat0) * math.sin(lon0) * dy
        + math.cos(lat0) * dz
    )
    return east, north


def _earth_centred(latitude: float, longitude: float) -> tuple[float, float, float]:
    e2 = _FLATTENING * (2.0 - _FLATTENING)
    n = _SEMI_MAJOR / math.sqrt(1.0 - e2 * math.sin(latitude) ** 2)
    return (
        n * math.cos(latitude) * math.cos(longitude),
        n * math.cos(latitude) * math.sin(longitude),
        n * (1.0 - e2) * math.sin(latitude),
    )


class RateLimit:
    """Lets so many messages a second through, evenly, and a second's worth of them at once.

    A second's worth, because a node that was busy for a while finds its queue full.

    Args:
        rate: messages a second.
        clock: monotonic seconds.
        burst: most at once; None = a second's worth.
    """

    def __init__(self, rate: float, clock: Clock, burst: float | None = None) -> None:
        self._rate = rate
        self._clock = clock
        self._burst = max(1.0, rate if burst is None else burst)
        self._left = self._burst
        self._then = clock()

    def allows(self) -> bool:
        """Return whether one more message may be used now, and count it if it may."""
        now = self._clock()
        self._left = min(self._burst, self._left + self._rate * (now - self._then))
        self._then = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
