"""Active sensing with Gaussian processes: choose the next place to measure.

``import gp_active_sensing as gas`` provides the names for a script. Each name is imported at its
first use. The package itself loads no ROS, torch or plotting library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing._version import __version__
from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
    from gp_active_sensing.loop import SensingLoop
    from gp_active_sensing.planning import build_policy
    from gp_active_sensing.planning.request import QuantityBelief
    from gp_active_sensing.sim import load_scenario, run_scenario
    from gp_active_sensing.topology import (
        MapConfig,
        OccupancyGrid,
        Roads,
        build_topology,
        load_roads,
        make_grid,
        make_occupancy_map,
    )
    from gp_active_sensing.types import Budget, Plan, PlanLimit, Reading

__all__ = [
    "Belief",
    "BeliefConfig",
    "Budget",
    "MapConfig",
    "OccupancyGrid",
    "Plan",
    "PlanLimit",
    "QuantityBelief",
    "Reading",
    "Roads",
    "SensingLoop",
    "__version__",
    "belief_on",
    "build_policy",
    "build_topology",
    "load_roads",
    "load_scenario",
    "make_grid",
    "make_occupancy_map",
    "run_scenario",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "belief": ("Belief", "BeliefConfig", "belief_on"),
        "loop": ("SensingLoop",),
        "planning": ("build_policy",),
        "planning.request": ("QuantityBelief",),
        "sim": ("load_scenario", "run_scenario"),
        "topology": (
            "MapConfig",
            "Roads",
            "build_topology",
            "load_roads",
            "make_grid",
            "make_occupancy_map",
            "OccupancyGrid",
        ),
        "types": ("Budget", "Plan", "PlanLimit", "Reading"),
    },
)
