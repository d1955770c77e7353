"""Configuration of the nodes, and which node each parameter belongs to."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

from gp_active_sensing.config import param
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.ros.descriptors import leaves_of

__all__ = ["NODES", "BagPlayerConfig", "SimulatorConfig", "owner_of"]


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
    policy_name: str = param(
        "",
        help="policy that sends the probe, which says what its ways cross; empty = the scenario's",
    )
    probes: tuple[str, ...] = param(
        (),
        help="names of the probes, which are namespaces of their topics; empty = one, without a "
        "namespace; not set = as many as the scenario says: probe_1 and on",
    )
    starts: tuple[str, ...] = param(
        (),
        help="places where the first probes begin, or the word random; otherwise the first begins "
        "where the scenario says, the others where the seed says",
    )
    silent: str = param(
        "",
        help="names of probes whose radio is lost, with commas: they send and hear nothing, and "
        "drive on to their last waypoint; may be changed at any time",
    )
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
    keep: bool = param(
        False,
        help="keep the last 1000 readings and poses of each probe for a node that is started again "
        "and asks for them (reading.catch_up, pose.catch_up)",
    )
    reading: SimulatedReadingConfig = dataclasses.field(default_factory=SimulatedReadingConfig)
    exit_at_end: bool = param(
        True,
        help="end the process when /diagnostics says that the mission is over, or when nobody has "
        "given waypoints for 40 s after the first one",
    )


@dataclass(frozen=True)
class BagPlayerConfig:
    """Parameters of the node ``bag_player``."""

    bag: str = param(help="rosbag2 folder, .mcap or .db3 file, or the name of a shipped bag")
    salvage: bool = param(False, help="play what can be read of a damaged bag")
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
    journal: str = param(
        "",
        help="rate 0: topic of the listener's journal, which says at once what it has taken in; "
        "empty = /diagnostics, every second",
    )
    finish: str = param(
        "", help="service (std_srvs/Trigger) to call when all has been played; empty = none"
    )


NODES: dict[str, type] = {
    "active_sensing": ActiveSensingConfig,
    "simulator": SimulatorConfig,
    "bag_player": BagPlayerConfig,
}
"""The dataclass of each node's parameters."""


def owner_of(key: str, *, besides: type) -> str:
    """Return the node that a parameter belongs to, "" when none of ours has it.

    Args:
        key: dotted name. All below ``policy.`` are those of `active_sensing`.
        besides: the parameters of the node that asks, which does not have this one.
    """
    others = {name: root for name, root in NODES.items() if root is not besides}
    if key.startswith("policy.") and "active_sensing" in others:
        return "active_sensing"
    return next((name for name, root in others.items() if key in _names(root)), "")


@functools.cache
def _names(root: type) -> frozenset[str]:
    return frozenset(leaf.name for leaf in leaves_of(root, {"policy": None}))
