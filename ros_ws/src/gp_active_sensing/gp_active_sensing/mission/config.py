"""Configuration of the node `active_sensing`: mission, map, belief, policy, topics and probes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.belief.link import AUTO
from gp_active_sensing.config import param
from gp_active_sensing.engine.config import BudgetConfig, DriveConfig, LimitConfig, TripConfig
from gp_active_sensing.engine.limits import LimitsConfig
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.names import probe_names, shared_topics
from gp_active_sensing.mission.stream_config import (
    BatteryConfig,
    ExpertTopicsConfig,
    PoseConfig,
    QuantityConfig,
    ReadingConfig,
    topic_param,
)
from gp_active_sensing.planning import DEFAULT_POLICY
from gp_active_sensing.topology import MapConfig

POSE_STAMPED, GEOGRAPHIC = "geometry_msgs/msg/PoseStamped", "geographic"
"""Message types of waypoints: in metres in the map's frame, and in degrees."""
CLOCK_TOLERANCE = 0.5
"""Largest time by which the node's clock may go back without a pause of the mission [s]."""
NO_PLAN_AHEAD = "has no effect any more: a node plans when a place has been read"
"""Text of the warning about the removed parameter `plan_ahead`."""
MOST_QUANTITIES = 8
_QUANTITY = re.compile("[a-z][a-z0-9_]{0,40}")
_TAKEN = frozenset(
    (
        *("place", "x", "y", "z", "longitude", "latitude", "mean", "std", "readings", "value"),
        *("auto", "weight", "reading", "pose", "poses", "battery", "twist"),
    )
)
"""Names that no further quantity may have: those of map columns and of a probe's streams."""
DEFAULT_PLAN_SECONDS = 1.0
"""Default limit of the computing time of one decision on a robot [s]."""


@dataclass(frozen=True)
class MissionConfig:
    """Rules for arriving at a place, for its readings, and for missed visits."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "arrival": "was removed; with mission.settle above 0 only readings at the waypoint count",
    }
    WERE: ClassVar[Mapping[str, Any]] = {"arrival": "reading"}

    arrival_radius: float | None = param(
        None,
        help="largest distance to the waypoint at which the probe has arrived. Unset = 5 m, or 0.4 "
        "of the distance between neighbouring places if that is less",
        unit="m",
        above=0.0,
    )
    snap_distance: float | None = param(
        None,
        help="largest distance between a pose and its place. Unset = 30 m on roads, elsewhere the "
        "distance between neighbouring places",
        unit="m",
        above=0.0,
    )
    reading_timeout: float = param(
        10.0, help="longest wait for a reading after the arrival", unit="s", above=0.0
    )
    settle: float = param(
        0.0,
        help="waiting time for a slow sensor. Readings of a place count after the probe has been "
        "within arrival_radius, or on the road segment, for this time. reading_timeout begins "
        "afterwards",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    retries: int = param(
        2, help="number of repeated waits for a reading before a place is set aside", low=0
    )
    wait_for_reading: bool = param(
        True,
        help="true = the first waypoint is sent after the first reading, which may be at any "
        "place. false = the first waypoint is sent at once, for a sensor that measures only at "
        "waypoints (default with a scenario)",
    )
    silent_places: int = param(
        3,
        help="the mission pauses after this number of successive places without a reading. With "
        "several probes, only the probe without readings stops, until its next reading. 0 = never "
        "(default with a scenario)",
        low=0,
    )
    coverage: float = param(
        0.5,
        help="fraction of a road segment that must be driven before a reading of the segment "
        "counts",
        low=0.0,
        high=1.0,
    )
    first_leg: float | None = param(
        None,
        help="longest way from a probe's position at its first decision to its first waypoint. A "
        "longer way pauses the mission, since map, frame or datum may be wrong. Unset = the "
        "diagonal of the map's bounding box plus snap_distance",
        unit="m",
        above=0.0,
    )
    drive_timeout: float = param(
        120.0,
        help="a waypoint counts as blocked if the probe makes no progress for this time: it comes "
        "no nearer to the waypoint and reaches no new positions. 0 = never",
        unit="s",
        low=0.0,
    )
    block_seconds: float = param(
        300.0,
        help="time for which a blocked place is not chosen, and a blocked way is not used. A place "
        "that is blocked more often than `retries` is set aside until the end of the mission",
        unit="s",
        low=0.0,
    )
    off_map: str = param(
        "warn",
        help="reaction to a probe that is off the map (see pose.off_map): warn = only report it; "
        "pause = pause the mission; return = send the probe to the nearest place first. Log, "
        "/diagnostics and page always report an error",
        choices=("warn", "pause", "return"),
    )
    lost_after: float = param(
        30.0,
        help="several probes: a probe that sends no pose for this time counts as lost until its "
        "next pose",
        unit="s",
        above=0.0,
    )
    wait_for_absent: float = param(
        600.0,
        help="longest time that idle probes wait for a lost probe that still has budget and "
        "places to visit. After this time the mission ends. 0 = idle probes do not wait",
        unit="s",
        low=0.0,
    )
    together: bool = param(
        False,
        help="several probes: true = decide when all active probes wait for a decision. A batch "
        "policy then chooses their places together. The first decision waits for all listed "
        "probes, but at most lost_after",
    )
    follow: str = param(
        "waypoint",
        help="waypoint: the probe is expected to drive to each waypoint. probe: the probe drives "
        "anywhere, and a new waypoint follows each newly observed place",
        choices=("waypoint", "probe"),
    )
    wait_for_plan: bool = param(
        False,
        help="true = messages wait while a decision is computed. A replay of the same messages "
        "then gives the same decisions",
    )
    begin: bool = param(
        True,
        help="take decisions as soon as the node is active. false = decisions begin with the "
        "service ~/start; earlier readings are also used",
    )
    exit_at_end: bool = param(
        False, help="true = the process ends when the mission is over and all records are written"
    )
    export: tuple[str, ...] = param(
        ("csv",),
        help="formats of the map in run_dir (csv, geojson, asc, pgm, geotiff), written at the end, "
        "by ~/save and at shutdown; empty = none",
        choices=("csv", "geojson", "asc", "pgm", "geotiff"),
    )


@dataclass(frozen=True)
class WaypointConfig:
    """Configuration of the waypoints that the controller receives."""

    topic: str = topic_param("next_waypoint")
    type: str = param(
        POSE_STAMPED,
        help="message type of the waypoint topic. geographic = in degrees: GeoPoseStamped if "
        "geographic_msgs is installed, otherwise NavSatFix. z is the altitude, except in "
        "GlobalPosition and GlobalPositionTarget, where z is the height above home",
        choices=(
            POSE_STAMPED,
            GEOGRAPHIC,
            "geographic_msgs/msg/GeoPoseStamped",
            "sensor_msgs/msg/NavSatFix",
            "ardupilot_msgs/msg/GlobalPosition",
            "mavros_msgs/msg/GlobalPositionTarget",
        ),
    )
    navigate: str = param(
        "topic",
        help="topic: publish next_waypoint only. action: also send the waypoint as a goal of "
        "nav2_msgs/action/NavigateToPose. If a goal is refused or aborted, the place is blocked",
        choices=("topic", "action"),
    )
    action: str = param(
        "navigate_to_pose",
        help="name of the action. With several probes, a name without a leading / is in the "
        "namespace of each probe",
    )
    pause: str = param(
        "hold",
        help="output on the waypoint topic during a pause: hold = the probe's position, so that "
        "the probe stops; none = nothing, so that the probe drives on to its waypoint",
        choices=("hold", "none"),
    )
    ahead: int = param(
        1,
        help="number of waypoints that are given in advance. 1 = the next waypoint is sent when a "
        "place is read. 2 or more, for robots that need not stop: the next waypoint is sent when "
        "the probe is within mission.arrival_radius of its waypoint. Topic next_path has these "
        "waypoints. If navigate is action, they are sent as a goal of NavigateThroughPoses",
        low=1,
        high=50,
    )
    rate: float = param(
        0.0,
        help="rate at which the last waypoint is repeated, for controllers that need a stream of "
        "set-points. 0 = each waypoint is sent once",
        unit="Hz",
        low=0.0,
        high=100.0,
    )
    altitude: float = param(
        0.0,
        help="z of every waypoint, for flying robots. On a map with heights this z is added to the "
        "height of the place",
        unit="m",
    )


@dataclass(frozen=True)
class GridTopicsConfig:
    """Field values that correspond to the cell values 0 and 100 in published occupancy grids."""

    mean_low: float | None = param(
        None, help="estimate at level 0 of ~/mean_grid. Unset = the smallest estimate of the map"
    )
    mean_high: float | None = param(
        None, help="estimate at level 100 of ~/mean_grid. Unset = the largest estimate of the map"
    )
    std_high: float | None = param(
        None,
        help="standard deviation at level 100 of ~/std_grid. Level 0 is 0. Unset = the largest one "
        "of the map",
        above=0.0,
    )

    def __post_init__(self) -> None:
        low, high = self.mean_low, self.mean_high
        if low is not None and high is not None and not low < high:
            msg = f"mean_high: must be more than mean_low ({low:g}), got {high:g}"
            raise ConfigError(msg)


@dataclass(frozen=True)
class ActiveSensingConfig:
    """Parameters of the node ``active_sensing``."""

    REMOVED: ClassVar[Mapping[str, str]] = {"plan_ahead": NO_PLAN_AHEAD}
    WERE: ClassVar[Mapping[str, Any]] = {"plan_ahead": False}
    IGNORED: ClassVar[tuple[str, ...]] = ("plan_ahead",)

    map: MapConfig
    name: str = param("", help="name of the mission on its pages. Empty = the name of the scenario")
    belief: BeliefConfig = dataclasses.field(default_factory=BeliefConfig)
    scenario: str = param(
        "", help="name or path of a scenario whose values are the defaults of the parameters"
    )
    autostart: bool = param(
        True, help="configure and activate the node, and begin the mission, without a request"
    )
    probes: tuple[str, ...] = param(
        (),
        help="names of the probes, which are the namespaces of their topics. Empty = one probe "
        "without a namespace. Unset = the number in the scenario, as probe_1, probe_2, …",
    )
    seed: int = param(0, help="seed of all random draws", low=0)
    run_dir: str = param(
        "",
        help="directory for journal and records of the mission. Empty = none: a killed mission is "
        "lost. auto = the newest directory in $ROS_HOME/gp_active_sensing if its mission was "
        "interrupted (it is continued), otherwise a new directory there",
    )
    resume: bool = param(
        True,
        help="true = an unfinished mission in run_dir is continued. false = run_dir must be empty",
    )
    policy: dict[str, Any] = param(  # noqa: RUF009  a field with a default factory
        dict(DEFAULT_POLICY), help="how the next place is chosen"
    )
    probe: TripConfig = dataclasses.field(default_factory=TripConfig)
    drive: DriveConfig = dataclasses.field(default_factory=DriveConfig)
    budget: BudgetConfig = dataclasses.field(default_factory=BudgetConfig)
    limits: LimitsConfig = dataclasses.field(default_factory=LimitsConfig)
    limit: LimitConfig = dataclasses.field(default_factory=LimitConfig)
    reading: ReadingConfig = dataclasses.field(default_factory=ReadingConfig)
    readings: dict[str, QuantityConfig] = param(  # noqa: RUF009
        {},
        help="several quantities by name, in place of the section `reading`. Each has the keys of "
        "that section. The first quantity is the main one: its readings count against the budget, "
        "and a visit is complete when it is read",
    )
    pose: PoseConfig = dataclasses.field(default_factory=PoseConfig)
    battery: BatteryConfig = dataclasses.field(default_factory=BatteryConfig)
    expert: ExpertTopicsConfig = dataclasses.field(default_factory=ExpertTopicsConfig)
    mission: MissionConfig = dataclasses.field(default_factory=MissionConfig)
    waypoint: WaypointConfig = dataclasses.field(default_factory=WaypointConfig)
    grids: GridTopicsConfig = dataclasses.field(default_factory=GridTopicsConfig)

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics that exist once for each probe."""
        beside = [name for name in (self.battery.topic, self.pose.twist_topic) if name]
        beside += [each.topic for each in self.further.values()]
        return (self.reading.topic, self.pose.topic, self.waypoint.topic, *beside)

    @property
    def main(self) -> str:
        """Name of the main quantity; "" for a single quantity."""
        return next(iter(self.readings), "")

    def carried(self, probe: str) -> tuple[str, ...] | None:
        """Return the names of the quantities that a probe measures; None = all."""
        each = self.readings.items()
        found = tuple(name for name, one in each if not one.probes or probe in one.probes)
        return None if not found or len(found) == len(self.readings) else found

    @property
    def further(self) -> dict[str, QuantityConfig]:
        """Configurations of the quantities besides the main one, keyed by name."""
        return {name: each for name, each in self.readings.items() if name != self.main}

    def __post_init__(self) -> None:
        if self.readings:
            main = self.readings[self.main]
            self._check_readings(main)
            object.__setattr__(self, "reading", main.reading())
            if self.belief == BeliefConfig():
                object.__setattr__(self, "belief", main.belief)
        if unknown := set(self.budget.aims(self.main)).difference(self.readings):
            msg = f"budget.error: names {', '.join(sorted(unknown))}, which readings does not"
            raise ConfigError(msg)
        probe_names(self.probes)
        if problem := shared_topics(self.topics, self.probes):
            raise ConfigError(problem)
        readings = {f"readings.{name}": each for name, each in self.readings.items()}
        for key, each in {"reading": self.reading, **readings}.items():
            if each.delay >= self.pose.history:
                msg = (
                    f"{key}.delay: must be less than pose.history ({self.pose.history:g} s), or "
                    f"the poses of the readings are forgotten; got {each.delay:g}"
                )
                raise ConfigError(msg)

    def _check_readings(self, main: QuantityConfig) -> None:
        problems = [
            f"readings: {name!r} is no name of a quantity: a to z, digits and _, a letter first, "
            "and no column of a map or stream of a probe such as mean, depth_std or pose"
            for name in self.readings
            if not _QUANTITY.fullmatch(name)
            or (name != self.main and (name in _TAKEN or name.endswith(("_std", "_read"))))
        ]
        if len(self.readings) > MOST_QUANTITIES:
            problems.append(f"readings: {len(self.readings)} quantities; at most {MOST_QUANTITIES}")
        if self.reading not in (ReadingConfig(), main.reading()):
            problems.append("reading: is given beside readings; give one of the two")
        if self.belief not in (BeliefConfig(), main.belief) and main.belief != BeliefConfig():
            problems.append(f"readings.{self.main}.belief: is given beside belief; give one")
        if main.link not in ("", AUTO):
            problems.append(f"readings.{self.main}.link: the first quantity is linked to no other")
        if main.sampled:
            problems.append(
                f"readings.{self.main}.sampled: the first quantity completes a visit; list one "
                "that is read while driving first, or set mission.settle to wait at each place"
            )
        known = self.probes or ("",)
        problems += [
            f"readings: probe {probe!r} measures no quantity"
            for probe in known
            if all(each.probes and probe not in each.probes for each in self.readings.values())
        ]
        problems += [
            f"readings.{name}.probes: {probe!r} is not among the probes ({', '.join(known)})"
            for name, each in self.readings.items()
            for probe in each.probes
            if probe not in known
        ]
        if problems:
            raise ConfigError(problems)
