"""Route of a simulated probe to a waypoint: the one that the plan was made with."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.budget import BudgetConstraint, in_metres
from gp_active_sensing.sim.world import World
from gp_active_sensing.types import BoolArray, Route

__all__ = ["way_to"]


def way_to(world: World, at: int | None, goal: int, passed: BoolArray) -> Route | None:
    """Return the way to a waypoint, None where there is none.

    Through places passed before; to the end place of the mission the way home, which crosses
    anything, where that is cheaper; through anything, where there is no way through known places.
    For policies that choose among all places (`World.crosses`) the cheapest one.

    Args:
        world: map, budget and end place.
        at: where the probe stands.
        goal: place of the waypoint.
        passed: (n,) places passed before.
    """
    if world.crosses and at is not None:
        unit = "metres" if _by_metres(world) else "seconds"
        return world.topology.ways_from(at, unit).route(goal)
    known = _route(world, at, goal, passed)
    if at is not None and goal == world.budget.end:
        speed = None if isinstance(world.speed, str) else world.speed
        budget = in_metres(world.budget, speed)
        home = BudgetConstraint(world.topology, budget).way_home(at)
        by = 0 if _by_metres(world) else 1
        if home is not None and home.path:
            return known if known is not None and known.cost[by] <= home.cost[by] else home
    return known or _route(world, at, goal, np.ones(world.topology.n, dtype=np.bool_))


def _by_metres(world: World) -> bool:
    return world.budget.seconds is None and world.budget.metres is not None


def _route(world: World, at: int | None, goal: int, crossable: BoolArray) -> Route | None:
    try:
        return world.topology.route(at, goal, crossable)
    except PlanningError:
        return None
