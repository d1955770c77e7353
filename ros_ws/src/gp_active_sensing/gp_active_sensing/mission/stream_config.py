"""Configuration of the input streams: readings, poses, batteries, and answers of an expert."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from typing import Any

from gp_active_sensing.belief import Belief, BeliefConfig
from gp_active_sensing.belief.link import AUTO
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.experts.base import AnswersConfig
from gp_active_sensing.planning.request import QuantityBelief
from gp_active_sensing.types import Aim

logger = logging.getLogger(__name__)

TF = "tf"
"""Name of the pose type that reads poses from tf."""
TWISTS = {
    "geometry_msgs/msg/TwistStamped": ("twist", "linear"),
    "geometry_msgs/msg/TwistWithCovarianceStamped": ("twist", "twist", "linear"),
    "geometry_msgs/msg/Twist": ("linear",),
    "nav_msgs/msg/Odometry": ("twist", "twist", "linear"),
}
"""Nested field names of the linear velocity, keyed by message type."""
LEAST_MAX_RATE = 2000.0
"""The limit on a stream's message rate is at least this [Hz]."""
MOST_BYTES = {"reading": 1_048_576, "pose": 65_536, "answer": 1_048_576}
"""Largest size of a message that is decoded [bytes], keyed by kind of stream."""
MOST_ANSWERS = 100.0
"""Largest rate at which an expert's answers are used [Hz]."""
_DEGREE = 111_320.0
"""Approximate length of one degree of latitude [m]."""
_FASTER = 10.0
"""Limit on a stream's message rate, as a multiple of the stream's expected rate."""


def topic_param(name: str, more: str = "") -> Any:
    """Declare the name of a topic that exists once for each probe."""
    where = "of several probes in the namespace of each, so without a / in front"
    return param(name, help=f"name of the topic; {where}{more}")


@dataclass(frozen=True)
class StreamConfig:
    """Configuration of one subscription."""

    reliable: bool = param(
        False,
        help="true = request every message. Messages of best-effort publishers, such as drivers, "
        "are then not received",
    )
    catch_up: bool = param(
        False,
        help="receive messages that a publisher (reliable, transient local) sent while the node "
        "was down. Messages of other publishers are then not received. pose.history must cover "
        "that time",
    )


@dataclass(frozen=True)
class ReadingConfig(StreamConfig):
    """Configuration of the readings: message type, field, delay, averaging and gate."""

    topic: str = topic_param("reading")
    type: str = param("sensor_msgs/msg/Temperature", help="message type, package/msg/Name")
    field: str = param(
        "temperature", help="path of the value, such as twist.twist.linear.x or data[3]"
    )
    variance_field: str = param(
        "", help="path of the noise variance. Empty = none. A variance of 0 means unknown"
    )
    noise_variance: float | None = param(
        None,
        help="noise variance of readings without their own variance. Unset = the noise of the "
        "belief",
        unit="unit of the readings squared",
        above=0.0,
    )
    scale: float = param(1.0, help="factor on the value (3.6 turns m/s into km/h)")
    offset: float = param(
        0.0, help="offset that is added to the scaled value", unit="unit of the readings"
    )
    valid: tuple[float, ...] | None = param(
        None,
        help="lowest and highest value after scaling. Values outside are rejected. Unset = every "
        "value except common fill values, such as -9999, -32768 and 1e20",
        unit="unit of the readings",
    )
    delay: float = param(
        0.0,
        help="delay of the sensor: how much older a reading is than its stamp. The reading is "
        "placed where the probe was at that earlier time",
        unit="s",
        low=0.0,
        high=60.0,
    )
    mount: tuple[float, ...] | None = param(
        None,
        help="position of the sensor relative to the published pose: x ahead, y to the left, z "
        "above (used on maps with heights). A reading is placed where the sensor was. Unset = at "
        "the pose",
        unit="m",
        low=-1000.0,
        high=1000.0,
    )
    mount_from: str = param(
        "mount",
        help="source of the sensor's position on the robot: mount = reading.mount; tf = the "
        "transform from the pose's child frame to header.frame_id of the reading (needs tf2_ros)",
        choices=("mount", TF),
    )
    unit: str = param(
        "", help="unit of the readings after scaling, for log, records and report. Empty = no unit"
    )
    gate: float = param(
        6.0,
        help="a reading that is farther than this from its prediction is set aside. It is used "
        "later if other readings agree with it, or after a call of ~/accept_gated. 0 = no reading "
        "is set aside",
        unit="standard deviations",
        low=0.0,
    )
    gate_places: int = param(
        10, help="no reading is set aside before this number of places is observed", low=1
    )
    window: float | None = param(
        None,
        help="readings of one place within this time are averaged. 0 = no average. Unset = one "
        "average for each stay at the place. The variance of that average includes the variation "
        "of the field where the probe moved during the stay",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    rate: float = param(
        10.0,
        help="expected rate, which sets the size of the queues",
        unit="Hz",
        above=0.0,
        high=1e5,
    )

    def __post_init__(self) -> None:
        if self.scale == 0.0:
            msg = "scale: must not be 0, every reading would be the same"
            raise ConfigError(msg)
        if self.valid is not None and (len(self.valid) != 2 or self.valid[0] >= self.valid[1]):
            msg = f"valid: expected [lowest, highest], got {list(self.valid)}"
            raise ConfigError(msg)
        if self.mount is not None and len(self.mount) not in (2, 3):
            msg = (
                "mount: expected [x ahead, y to the left] in metres, and perhaps z above, got "
                f"{list(self.mount)}"
            )
            raise ConfigError(msg)
        if self.mount is not None and self.mount_from == TF:
            msg = (
                "mount: is set, and mount_from is tf: the sensor can sit in one place only; leave "
                "one of the two out"
            )
            raise ConfigError(msg)


@dataclass(frozen=True)
class PlannedConfig:
    """Configuration of one quantity's belief and of its weight in plans."""

    weight: float = param(
        1.0,
        help="weight of the quantity's relative map error in the plans. 0 = the quantity is "
        "mapped, but plans ignore it",
        low=0.0,
        high=1e6,
    )
    sampled: bool = param(
        False,
        help="true = the probe must stop to read the quantity, as for a water sample",
    )
    link: str = param(
        AUTO,
        help="name of a quantity that is read at more places than this one. Its map helps to "
        "predict this quantity as far as the readings of the two are correlated. auto = the first "
        "quantity; empty = none",
    )
    belief: BeliefConfig = dataclass_field(default_factory=BeliefConfig)

    def quantity(self, name: str, belief: Belief, aim: Aim | None) -> QuantityBelief:
        """Return the quantity `name` for an engine, with its belief and aim."""
        return QuantityBelief(name, belief, self.weight, self.sampled, aim, self.link or None)


@dataclass(frozen=True)
class QuantityConfig(ReadingConfig, PlannedConfig):
    """Configuration of one of several quantities: its readings, its belief and its probes."""

    probes: tuple[str, ...] = param(
        (), help="names of the probes that carry the sensor of the quantity. Empty = all probes"
    )

    def reading(self) -> ReadingConfig:
        """Return the part of this configuration that is about the readings."""
        return ReadingConfig(**{f.name: getattr(self, f.name) for f in fields(ReadingConfig)})


@dataclass(frozen=True)
class PoseConfig(StreamConfig):
    """Configuration of the poses, from the topic ``pose`` or from tf."""

    topic: str = topic_param("pose")
    type: str = param(
        "nav_msgs/msg/Odometry",
        help="message type. tf = no topic: the transform of child_frame in the map's frame",
        choices=(
            "nav_msgs/msg/Odometry",
            "geometry_msgs/msg/PoseStamped",
            "geometry_msgs/msg/PoseWithCovarianceStamped",
            "sensor_msgs/msg/NavSatFix",
            TF,
        ),
    )
    child_frame: str = param(
        "base_link",
        help="pose.type tf: frame of the sensor. With several probes the name of the probe "
        "precedes the frame, such as probe_1/base_link. Other pose types: frame whose pose the "
        "topic gives. It is used only if reading.mount_from is tf and the message names no frame",
    )
    covariance: str = param(
        "use",
        help="covariance of poses in Odometry, PoseWithCovarianceStamped and NavSatFix. use = the "
        "variation of the field within the uncertainty of a position is added to the noise of the "
        "reading. ignore = poses count as exact",
        choices=("use", "ignore"),
    )
    twist_topic: str = param(
        "",
        help="topic of a measured velocity, such as a GPS receiver's Doppler velocity. While this "
        "velocity is below 0.03 m/s, changes of the pose do not count against the budget of "
        "metres. Empty = the twist in Odometry, if any",
    )
    twist_type: str = param(
        "geometry_msgs/msg/TwistStamped", help="message type of twist_topic", choices=tuple(TWISTS)
    )
    rate: float = param(
        50.0,
        help="expected rate, which sets the size of the queues. tf: rate of the look-ups",
        unit="Hz",
        low=1e-3,
        high=1e5,
    )
    max_age: float = param(
        1.0, help="longest time between a reading and the nearest pose", unit="s", above=0.0
    )
    max_ahead: float | None = param(
        10.0,
        help="largest time by which a pose's stamp may be ahead of the node's clock. A pose that "
        "is farther ahead is rejected (pose_ahead), because the correct poses after it would seem "
        "too old. null or unset = no limit",
        unit="s",
        above=0.0,
        high=1e9,
    )
    wait: float = param(
        0.1,
        help="time that a reading waits for a later pose, since messages of two topics may arrive "
        "out of order. 0 = use the pose before the reading",
        unit="s of real time",
        low=0.0,
    )
    history: float = param(
        60.0, help="time for which poses are kept, for late readings", unit="s", above=0.0
    )
    off_map: float | None = param(
        None,
        help="distance from the map's area, or from the nearest road, up to which a probe is on "
        "the map. A probe that is farther away for 3 s is off the map (see mission.off_map). "
        "Unset = the distance between neighbouring places, 30 m on roads",
        unit="m",
        above=0.0,
    )
    datum: tuple[float, ...] | None = param(
        None,
        help="NavSatFix: latitude and longitude of the map's origin (x east, y north). Unset = the "
        "origin of the map file",
        unit="degree",
        low=-180.0,
        high=180.0,
    )
    zero_altitude: float | None = param(
        None,
        help="NavSatFix, on a map with heights: altitude at which z is 0. null or unset = z is "
        "unknown",
        unit="m",
    )

    def __post_init__(self) -> None:
        if self.datum is not None and (len(self.datum) != 2 or abs(self.datum[0]) > 90.0):
            msg = f"datum: expected [latitude, longitude] in degrees, got {list(self.datum)}"
            raise ConfigError(msg)
        if self.type == TF and not self.child_frame.strip("/"):
            msg = "child_frame: is required for tf: the frame of the sensor, such as base_link"
            raise ConfigError(msg)

    @property
    def latched(self) -> bool:
        """True if poses come only in motion (AMCL), so that each is valid until the next one."""
        return self.type.endswith("/PoseWithCovarianceStamped")

    def origin(self, of_map: tuple[float, float] | None) -> tuple[float, ...] | None:
        """Return latitude and longitude of the origin of metric positions [degree]; None = unknown.

        `of_map` is the longitude and latitude of the map's origin [degree].
        """
        if of_map is None:
            return self.datum
        longitude, latitude = of_map
        if self.datum is None:
            return latitude, longitude
        east = (self.datum[1] - longitude) * math.cos(math.radians(latitude))
        apart = _DEGREE * math.hypot(east, self.datum[0] - latitude)
        if apart > 1.0:
            logger.warning(
                "pose.datum: [%g, %g] lies %.0f m from the origin of the map, [%.7g, %.7g]; leave "
                "it out, unless the map's origin is wrong, or set map.datum of a grid to it",
                *self.datum,
                apart,
                latitude,
                longitude,
            )
        return self.datum


@dataclass(frozen=True)
class BatteryConfig:
    """Configuration of a battery's state of charge, from sensor_msgs/msg/BatteryState."""

    topic: str = topic_param("", "; the probe comes home while the charge lasts; empty = none")
    reserve: float = param(
        0.2, help="fraction of a full charge that is left when the probe is home", low=0.0, high=0.9
    )


@dataclass(frozen=True)
class ExpertTopicsConfig(AnswersConfig):
    """Configuration of the queries to an expert on ``expert/query`` and ``expert/answer``."""

    ask: bool = param(
        True,
        help="true = request fresh values on topic expert/query if the policy needs an expert "
        "(sparq_gp_ucb), and use the answers on expert/answer. false = decide without an expert",
    )


def most_per_second(stream: ReadingConfig | PoseConfig) -> float:
    """Return the largest rate at which messages of a stream are used [Hz]."""
    return max(LEAST_MAX_RATE, _FASTER * stream.rate)


WAITING_SECONDS = 2.0
"""The queue of readings without a pose has room for the readings of this time [s]."""
KEPT_SECONDS = 2.0
"""The store of gated readings has room for the readings of at least this time [s]."""
