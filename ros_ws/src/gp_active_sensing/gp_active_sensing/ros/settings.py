"""Configuration of the nodes beside `active_sensing`: simulator and bag player."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from gp_active_sensing.config import param

__all__ = ["BagPlayerConfig", "SimulatorConfig"]


@dataclass(frozen=True)
class SimulatedReadingConfig:
    """The messages the simulator publishes on topic ``reading``."""

    type: str = param("sensor_msgs/msg/Temperature", help="message type; it needs a header")
    field: str = param("temperature", help="path of the value in the message")
    variance_field: str = param("variance", help="path of the noise variance; empty = none")


@dataclass(frozen=True)
class SimulatorConfig:
    """Parameters of the node ``simulator``."""

    scenario: str = param(help="name or path of the scenario to play")
    seed: int | None = param(None, help="instead of the scenario's own seed", low=0)
    speed_factor: float = param(1.0, help="simulated seconds per second", above=0.0, high=1000.0)
    pose_rate: float = param(
        10.0, help="poses per simulated second", unit="Hz", above=0.0, high=1000.0
    )
    max_rate: float = param(
        100.0,
        help="most steps of the simulation per second of real time; a faster speed_factor makes "
        "the steps longer, not more",
        unit="Hz",
        above=0.0,
        high=1000.0,
    )
    reading: SimulatedReadingConfig = dataclasses.field(default_factory=SimulatedReadingConfig)
    exit_at_end: bool = param(
        True, help="end the process when /diagnostics says that the mission is over"
    )


@dataclass(frozen=True)
class BagPlayerConfig:
    """Parameters of the node ``bag_player``."""

    bag: str = param(help="rosbag2 folder, .mcap or .db3 file")
    rate: float = param(
        1.0, help="times the bag's own speed; 0 = as fast as it is taken in", low=0.0
    )
    topics: tuple[str, ...] = param((), help="topics of the bag to play; empty = all")
    wait_for: tuple[str, ...] = param(
        (), help="topics that need a subscriber before the first message; empty = any one"
    )
    wait: float = param(30.0, help="how long to wait for subscribers", unit="s", low=0.0)
    clock: bool = param(True, help="publish the bag's time on /clock (not the recorded one)")
    ahead: int = param(
        2000, help="rate 0: most messages sent and not yet reported as taken in", low=1
    )
    finish: str = param(
        "", help="service (std_srvs/Trigger) to call when all has been played; empty = none"
    )
