"""Convert messages to readings and poses, find fields by paths, and limit rates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gp_active_sensing.errors import ActiveSensingError, ConfigError, ReadingError, suggest
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.stream_config import ReadingConfig
from gp_active_sensing.topology.projection import local_metres
from gp_active_sensing.types import Clock
from gp_active_sensing.util.tables import is_fill

_TYPE_NAME = re.compile(r"^([a-z][a-z0-9_]*)/(?:msg/)?([A-Z][A-Za-z0-9]*)$")
_STEP = re.compile(r"^([A-Za-z][A-Za-z0-9_]*)((?:\[-?\d+\])*)$")
_ELEMENT = re.compile(r"^(?:sequence<(.+?)(?:, *\d+)?>|(.+)\[\d+\])$")
NUMBERS = re.compile(r"^(?:u?int(?:8|16|32|64)|float|double|octet|boolean|long double)$")
"""Names of numeric types in rosidl."""
_HEADERS = ("std_msgs/Header", "std_msgs/msg/Header")


class MessageTypes(Protocol):
    """Source of message definitions: an installed ROS or a bag."""

    def fields(self, name: str) -> Mapping[str, str]:
        """Return the fields of a type with their types, such as ``sequence<float>``.

        Args:
            name: ``package/msg/Name`` or ``package/Name``.

        Raises:
            ConfigError: the name is not valid, or the message does not exist.
            MissingDependencyError: the package is not installed.
        """
        ...


def split_type_name(name: str) -> tuple[str, str]:
    """Return package and name of a message type such as ``sensor_msgs/msg/Temperature``.

    Raises:
        ConfigError: the text is not the name of a type.
    """
    match = _TYPE_NAME.match(name)
    if match is None:
        msg = f"message type {name!r}: expected package/msg/Name, such as sensor_msgs/msg/Imu"
        raise ConfigError(msg)
    return match[1], match[2]


@dataclass(frozen=True)
class FieldPath:
    """Path of a number in a message: ``twist.twist.linear.x``, ``data[3]``, ``ranges[-1]``.

    The path is checked against the message type, except for the lengths of arrays.
    """

    text: str
    steps: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def parse(cls, text: str, type: str, types: MessageTypes, key: str = "field") -> FieldPath:
        """Parse a path and check it against a message type.

        Raises:
            ConfigError: the text is not a path, or the field is unknown or not a number.
        """
        where = f"{key}: {text!r} of {type}"
        steps: list[tuple[str, tuple[int, ...]]] = []
        now: str | None = type
        kind = ""
        for part in text.split("."):
            match = _STEP.match(part)
            if match is None:
                msg = f"{where}: expected names separated by dots, with [i] for an array element"
                raise ConfigError(msg)
            name, indices = match.group(1), tuple(int(i) for i in re.findall(r"-?\d+", match[2]))
            if now is None:
                msg = f"{where}: {steps[-1][0]!r} is a {kind}, it has no field {name!r}"
                raise ConfigError(msg)
            fields = types.fields(now)
            if name not in fields:
                hint = suggest(name, fields)
                msg = f"{where}: no field {name!r}.{hint} Known: {', '.join(fields)}"
                raise ConfigError(msg)
            kind = fields[name]
            for _ in indices:
                if not (element := element_of(kind)):
                    msg = f"{where}: {name!r} is a {kind}, not an array; leave the [i] out"
                    raise ConfigError(msg)
                kind = element
            now = kind if _TYPE_NAME.match(kind) else None
            steps.append((name, indices))
        if not NUMBERS.match(kind):
            hint = " Add [i] for one element" if _ELEMENT.match(kind) else " Name a field of it"
            msg = f"{where}: expected a number, the field is a {kind}.{hint}"
            raise ConfigError(msg)
        return cls(text, tuple(steps))

    def read(self, message: Any) -> float:
        """Return the number in a message; NaN if an array of the message is too short."""
        value = message
        for name, indices in self.steps:
            value = getattr(value, name)
            for index in indices:
                if not -len(value) <= index < len(value):
                    return math.nan
                value = value[index]
        if isinstance(value, bytes):  # an octet
            return float(value[0]) if value else math.nan
        return float(value)


def element_of(kind: str) -> str:
    """Return the type of an array's elements; "" = the type is not an array."""
    match = _ELEMENT.match(kind)
    return "" if match is None else match.group(1) or match.group(2)


def header_of(message: Any) -> Any:
    """Return the header of a message; None = it has no std_msgs/Header."""
    header = getattr(message, "header", None)
    return header if hasattr(header, "stamp") and hasattr(header, "frame_id") else None


def stamp_ns(stamp: Any) -> int:
    """Return a ``builtin_interfaces/Time`` in nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


@dataclass(frozen=True)
class Value:
    """Value, variance and stamp of a message with a reading; stamp None = no header."""

    stamp_ns: int | None
    value: float
    noise_variance: float | None


class ValueReader:
    """Reader of values, variances and stamps in messages.

    ``value = scale * field + offset``; the variance is multiplied by scale². `key` is the
    configuration section in error messages.

    Raises:
        ConfigError: the type or a field is unknown.
    """

    def __init__(self, types: MessageTypes, config: ReadingConfig, key: str = "reading") -> None:
        self._field = FieldPath.parse(config.field, config.type, types, f"{key}.field")
        self._variance = (
            FieldPath.parse(config.variance_field, config.type, types, f"{key}.variance_field")
            if config.variance_field
            else None
        )
        self._config = config
        self._squared = config.scale * config.scale  # not **, which raises an error on overflow
        self.has_stamp = types.fields(config.type).get("header", "") in _HEADERS

    def read(self, message: Any) -> Value:
        """Return the value in a message; NaN and infinity are kept for the caller to reject.

        Raises:
            ReadingError: the value is a fill value or outside the valid range.
        """
        stamp = stamp_ns(message.header.stamp) if self.has_stamp else None
        raw = self._field.read(message)
        value = self._config.scale * raw + self._config.offset
        if math.isfinite(value):
            self._check(raw, value)
        variance = self._config.noise_variance
        if self._variance is not None:
            own = self._variance.read(message)
            if own != 0.0:  # the convention of sensor_msgs: 0 = not known
                variance = own * self._squared
        return Value(stamp, value, variance)

    def _check(self, raw: float, value: float) -> None:
        valid = self._config.valid
        if valid is not None and valid[0] <= value <= valid[1]:
            return
        if is_fill(raw):
            msg = f"has the fill value {raw:.9g}; a real value is allowed by reading.valid"
            raise ReadingError("fill_value", msg)
        if valid is not None:
            msg = f"has the value {value:.9g}, outside reading.valid, {list(valid)}"
            raise ReadingError("not_valid", msg)


def unit_quaternion(x: float, y: float, z: float, w: float) -> tuple[float, float, float, float]:
    """Return a normalised quaternion; NaN for length 0 or entries that are not finite."""
    largest = max(abs(x), abs(y), abs(z), abs(w))
    if not 0.0 < largest < math.inf:  # NaN makes the length NaN
        return (math.nan,) * 4
    x, y, z, w = x / largest, y / largest, z / largest, w / largest  # squares cannot underflow
    length = math.hypot(x, y, z, w)
    return x / length, y / length, z / length, w / length


def heading_of(x: float, y: float, z: float, w: float) -> float:
    """Return the yaw [rad] of a quaternion of any length; NaN = the quaternion is invalid."""
    x, y, z, w = unit_quaternion(x, y, z, w)
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def height_variance(zz: float, xx: float) -> float:
    """Return the variance of a height [m²]; 0 = not given, -1 = invalid.

    `zz` is the variance of z, `xx` the variance of x [m²]. `xx` = -1 marks a missing covariance.
    """
    if zz == 0.0 or xx == -1.0:
        return 0.0
    return min(zz, _MOST_VARIANCE) if math.isfinite(zz) and zz > 0.0 else -1.0


def position_variance(xx: float, xy: float, yy: float) -> float:
    """Return the sum of the variances of x and y of a pose [m²].

    The result is 0 for a missing covariance: all entries are 0, or the first entry is -1. The
    result is -1 for an invalid covariance: an entry is not finite, a variance is below 0, or |xy|²
    is above xx·yy.
    """
    if xx == xy == yy == 0.0 or xx == -1.0:
        return 0.0
    if not (math.isfinite(xx) and math.isfinite(xy) and math.isfinite(yy)) or min(xx, yy) < 0.0:
        return -1.0
    # Avoid products, which overflow. The tolerance allows for single precision.
    bound = math.sqrt(xx) * math.sqrt(yy)
    return min(xx + yy, _MOST_VARIANCE) if abs(xy) <= 1.001 * bound + 1e-12 else -1.0


_MOST_VARIANCE = 1e12
"""Largest valid variance [m²], for a standard deviation of a million metres."""


def pose_reader(
    type: str,
    *,
    datum: Sequence[float] | None = None,
    frame: str = "map",
    covariance: bool = True,
    zero_altitude: float | None = None,
    heights: bool = False,
) -> Callable[[Any], Pose]:
    """Return a function that converts messages of one type to poses.

    Args:
        type: Odometry, PoseStamped, PoseWithCovarianceStamped or NavSatFix, with the package.
        datum: latitude and longitude of the map's origin, for NavSatFix [degree].
        frame: frame of positions from NavSatFix; the message itself has the antenna's frame.
        covariance: True = use the covariance of a pose.
        zero_altitude: altitude of z = 0, for NavSatFix [m]; None = z is not known.
        heights: True = the map has heights; the variance of z is then used.

    Raises:
        ConfigError: the type is not supported, or the datum is missing.
    """
    short = type.rsplit("/", maxsplit=1)[-1]
    if short == "NavSatFix":
        if datum is None:
            msg = (
                "pose.datum: is required for sensor_msgs/msg/NavSatFix: [latitude, longitude] of "
                "the map's origin, since the map does not say where on earth it is"
            )
            raise ConfigError(msg)
        origin = (float(datum[0]), float(datum[1]))
        geodetic_to_local(*origin, origin)  # raises its error now and not at the first fix

        def read_fix(message: Any) -> Pose:
            x = y = z = math.nan
            if message.status.status != -1:  # STATUS_NO_FIX
                x, y = geodetic_to_local(message.latitude, message.longitude, origin)
                if zero_altitude is not None:
                    z = float(message.altitude) - zero_altitude
            variance = z_variance = 0.0
            if covariance and message.position_covariance_type != 0:  # COVARIANCE_TYPE_UNKNOWN
                xx, xy, yy, zz = (float(message.position_covariance[i]) for i in (0, 1, 4, 8))
                variance = position_variance(xx, xy, yy)
                z_variance = height_variance(zz, xx) if heights else 0.0
            stamp = stamp_ns(message.header.stamp)
            return Pose(stamp, frame, x, y, math.nan, variance, z=z, z_variance=z_variance)

        return read_fix
    nested = {"Odometry": True, "PoseWithCovarianceStamped": True, "PoseStamped": False}
    if short not in nested:
        msg = f"pose.type: expected {', '.join((*nested, 'NavSatFix'))}, got {type!r}"
        raise ConfigError(msg)
    inner = nested[short]

    def read_pose(message: Any) -> Pose:
        pose = message.pose.pose if inner else message.pose
        q = pose.orientation
        variance = turn_variance = z_variance = 0.0
        if covariance and inner:
            rows = message.pose.covariance  # 6 × 6: x, y, z and rotations about them
            xx, xy, yy, zz = (float(rows[i]) for i in (0, 1, 7, 14))
            variance = position_variance(xx, xy, yy)
            z_variance = height_variance(zz, xx) if heights else 0.0
            yaw = float(rows[35])  # 0 = not given; at most the variance of an unknown heading
            turn_variance = min(yaw, math.pi**2 / 3.0) if yaw > 0.0 else 0.0
        heading = heading_of(q.x, q.y, q.z, q.w)
        twist = getattr(message, "twist", None)  # only Odometry has a twist
        speed = math.nan
        if twist is not None:
            linear = twist.twist.linear
            speed = math.hypot(linear.x, linear.y, linear.z)
        return Pose(
            stamp_ns(message.header.stamp),
            message.header.frame_id,
            pose.position.x,
            pose.position.y,
            heading,
            variance,
            turn_variance if math.isfinite(heading) else -1.0,
            pose.position.z,
            z_variance,
            speed,
        )

    return read_pose


def geodetic_to_local(
    latitude: float, longitude: float, datum: tuple[float, float]
) -> tuple[float, float]:
    """Return x and y of a WGS 84 position in a map's frame [m].

    Both are NaN for an invalid position, and for a position on the other side of the Earth. `datum`
    is the latitude and longitude of the map's origin. All angles are in degrees.

    Raises:
        MissingDependencyError: pyproj is missing.
    """
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 360.0):  # NaN too
        return math.nan, math.nan
    x, y = local_metres(longitude, latitude, (datum[1], datum[0]))
    return (x, y) if math.isfinite(x) and math.isfinite(y) else (math.nan, math.nan)


class RateLimit:
    """Rate limit that allows a burst of as many messages as the rate allows in one second."""

    def __init__(self, rate: float, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._burst = max(1.0, rate)
        self._left = self._burst
        self._then = clock()

    def allows(self) -> bool:
        """Return whether the limit allows a message now; if so, count this message."""
        now = self._clock()
        self._left = min(self._burst, self._left + self._rate * (now - self._then))
        self._then = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


_DEEPEST = 4
_ASIDE = re.compile(r"variance|covariance|status|header|stamp|seq", re.IGNORECASE)


def number_paths(type: str, types: MessageTypes) -> list[str]:
    """Return the paths of all numbers in a message, except those in its header.

    Returns:
        Paths such as ``temperature`` and ``ranges[0]``, the first element of an array.

    Raises:
        ConfigError, MissingDependencyError: the type is not known.
    """
    types.fields(type)
    return list(_paths(type, types, "", 0))


def value_path(paths: list[str]) -> str:
    """Return the path that probably has the measured value; "" = no such path, or several."""
    likely = [path for path in paths if not _ASIDE.search(path)]
    return likely[0] if len(likely) == 1 else ""


def _paths(type: str, types: MessageTypes, prefix: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    try:
        fields = types.fields(type)
    except ActiveSensingError:  # the package of a field is not installed
        return
    for name, kind in fields.items():
        if kind in _HEADERS:
            continue
        element = element_of(kind)
        path, inner = (f"{prefix}{name}[0]", element) if element else (f"{prefix}{name}", kind)
        if NUMBERS.match(inner):
            yield path
        elif "/" in inner:
            yield from _paths(inner, types, f"{path}.", depth + 1)
