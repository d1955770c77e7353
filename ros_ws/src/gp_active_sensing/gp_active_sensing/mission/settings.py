"""Configuration of a mission: the same dataclasses as in YAML, plus messages, poses, places."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.sim.scenario import BudgetConfig, LimitConfig, TripConfig
from gp_active_sensing.topology import MapConfig

__all__ = [
    "DEFAULT_PLAN_SECONDS",
    "ActiveSensingConfig",
    "MissionConfig",
    "PoseConfig",
    "ReadingConfig",
]

DEFAULT_PLAN_SECONDS = 1.0
"""Computing time of a decision where neither a parameter nor the scenario limits it [s]."""


@dataclass(frozen=True)
class ReadingConfig:
    """How to take a value out of the messages of topic ``reading``."""

    type: str = param("sensor_msgs/msg/Temperature", help="message type, package/msg/Name")
    field: str = param(
        "temperature", help="path of the value, such as twist.twist.linear.x or data[3]"
    )
    variance_field: str = param(
        "", help="path of the noise variance; empty = none; a variance of 0 means not known"
    )
    noise_variance: float | None = param(
        None,
        help="noise variance of readings without one of their own; unset = the belief's",
        unit="unit of the readings squared",
        above=0.0,
    )
    scale: float = param(1.0, help="factor on the value (3.6 turns m/s into km/h)")
    offset: float = param(0.0, help="added after scaling", unit="unit of the readings")
    rate: float = param(10.0, help="expected rate; sizes the queues", unit="Hz", above=0.0)
    reliable: bool = param(
        False, help="ask for every message; a best-effort publisher (a driver) is then not heard"
    )

    def __post_init__(self) -> None:
        if self.scale == 0.0:
            msg = "scale: must not be 0, every reading would be the same"
            raise ConfigError(msg)


@dataclass(frozen=True)
class PoseConfig:
    """How to take the probe's pose out of the messages of topic ``pose``."""

    type: str = param(
        "nav_msgs/msg/Odometry",
        help="message type",
        choices=(
            "nav_msgs/msg/Odometry",
            "geometry_msgs/msg/PoseStamped",
            "geometry_msgs/msg/PoseWithCovarianceStamped",
            "sensor_msgs/msg/NavSatFix",
        ),
    )
    rate: float = param(50.0, help="expected rate; sizes the queues", unit="Hz", above=0.0)
    reliable: bool = param(
        False, help="ask for every message; a best-effort publisher (a driver) is then not heard"
    )
    max_age: float = param(
        1.0, help="longest time between a reading and the nearest pose", unit="s", above=0.0
    )
    wait: float = param(
        0.1,
        help="how long a reading waits for a pose that is not older than itself, since messages "
        "of two topics overtake each other; 0 = the pose before it will do",
        unit="s of real time",
        low=0.0,
    )
    history: float = param(
        60.0, help="how long poses are kept, for readings that come late", unit="s", above=0.0
    )
    datum: tuple[float, ...] | None = param(
        None,
        help="NavSatFix: latitude and longitude of the map's origin (x east, y north)",
        unit="degree",
        low=-180.0,
        high=180.0,
    )

    def __post_init__(self) -> None:
        if self.datum is None and self.type == "sensor_msgs/msg/NavSatFix":
            msg = "datum: is required for sensor_msgs/msg/NavSatFix: [latitude, longitude]"
            raise ConfigError(msg)
        if self.datum is not None and (len(self.datum) != 2 or abs(self.datum[0]) > 90.0):
            msg = f"datum: expected [latitude, longitude] in degrees, got {list(self.datum)}"
            raise ConfigError(msg)


@dataclass(frozen=True)
class MissionConfig:
    """When a place counts as reached, as observed and as missed."""

    arrival_radius: float | None = param(
        None,
        help="distance to the waypoint at which the probe has arrived; unset = 5 m, or 0.4 of the "
        "distance between neighbouring places if that is less",
        unit="m",
        above=0.0,
    )
    snap_distance: float | None = param(
        None,
        help="farthest distance of a pose from its place; unset = 30 m on roads, otherwise the "
        "distance between neighbouring places",
        unit="m",
        above=0.0,
    )
    reading_timeout: float = param(
        10.0, help="how long to wait for a reading after arriving", unit="s", above=0.0
    )
    retries: int = param(2, help="waits repeated before a place is set aside", low=0)
    coverage: float = param(
        0.5,
        help="part of a road segment that must be driven before a reading of it counts",
        low=0.0,
        high=1.0,
    )
    arrival: str = param(
        "reading",
        help="when a place is done: as soon as a reading of it is used, or (radius) when the probe "
        "is at the waypoint as well",
        choices=("reading", "radius"),
    )
    drive_timeout: float = param(
        120.0,
        help="a waypoint that the probe comes no nearer to for so long is blocked and another one "
        "is chosen; 0 = never",
        unit="s",
        low=0.0,
    )
    block_seconds: float = param(
        300.0, help="how long a blocked place is not chosen again", unit="s", low=0.0
    )
    lost_after: float = param(
        30.0,
        help="several probes: one that is silent for so long is given up, until it is heard again",
        unit="s",
        above=0.0,
    )
    follow: str = param(
        "waypoint",
        help="waypoint: the probe is expected to drive there; probe: it drives where it likes, and "
        "for each new place it observes it is said where to go next",
        choices=("waypoint", "probe"),
    )
    wait_for_plan: bool = param(
        False,
        help="messages wait in the inbox while a decision is computed (for replay), so that the "
        "same messages give the same decisions",
    )
    clock_tolerance: float = param(
        0.5, help="a clock that goes back by more pauses the mission", unit="s", low=0.0
    )
    begin: bool = param(
        True,
        help="take decisions as soon as the node is active; otherwise readings are used and "
        "nothing is decided until the service ~/start is called",
    )
    exit_at_end: bool = param(
        False, help="end the process once the mission is over and its records are written"
    )


@dataclass(frozen=True)
class ActiveSensingConfig:
    """Parameters of the node ``active_sensing``."""

    map: MapConfig
    belief: BeliefConfig = dataclasses.field(default_factory=BeliefConfig)
    scenario: str = param(
        "", help="name or path of a scenario whose values are the defaults of the parameters"
    )
    autostart: bool = param(
        True, help="configure, activate and begin the mission without being asked"
    )
    probes: tuple[str, ...] = param(
        (),
        help="names of the probes, which are namespaces of their topics; empty = one, without a "
        "namespace",
    )
    seed: int = param(0, help="key of every random draw", low=0)
    run_dir: str = param(
        "",
        help="directory for journal and records of the mission; empty = none, and a mission that "
        "is killed is lost; auto = one of its own in the runs folder of ROS's home, the newest "
        "there if it is not over",
    )
    resume: bool = param(
        True,
        help="go on with the mission that run_dir holds, if it is not over; false = run_dir must "
        "be empty",
    )
    plan_ahead: bool = param(
        True,
        help="plan while the probe drives, for the readings that its goal may give, so that the "
        "next waypoint is there on arrival; false = plan on arrival, the same on every machine",
    )
    plan_ahead_samples: int = param(
        5, help="readings that are planned for while the probe drives", low=1
    )
    policy: dict[str, Any] = param(  # noqa: RUF009  a field with a default factory
        {"name": "bal"}, help="how the next place is chosen"
    )
    probe: TripConfig = dataclasses.field(default_factory=TripConfig)
    budget: BudgetConfig = dataclasses.field(default_factory=BudgetConfig)
    limit: LimitConfig = dataclasses.field(default_factory=LimitConfig)
    reading: ReadingConfig = dataclasses.field(default_factory=ReadingConfig)
    pose: PoseConfig = dataclasses.field(default_factory=PoseConfig)
    mission: MissionConfig = dataclasses.field(default_factory=MissionConfig)
