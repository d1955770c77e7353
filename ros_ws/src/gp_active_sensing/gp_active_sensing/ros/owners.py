"""Which node each parameter belongs to."""

from __future__ import annotations

import functools

from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.ros.descriptors import leaves_of
from gp_active_sensing.ros.node_configs import BagPlayerConfig, BagRecorderConfig, SimulatorConfig

__all__ = ["NODES", "owner_of"]

NODES: dict[str, type] = {
    "active_sensing": ActiveSensingConfig,
    "simulator": SimulatorConfig,
    "bag_player": BagPlayerConfig,
    "bag_recorder": BagRecorderConfig,
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
