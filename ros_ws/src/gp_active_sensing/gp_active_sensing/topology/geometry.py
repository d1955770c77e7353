"""A way over places: whole, and as one line."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.places import SAME_DISTANCE
from gp_active_sensing.types import BoolArray, FloatArray, Plan

__all__ = ["route_geometry", "whole_way"]


def route_geometry(topology: Topology, path: Sequence[int], start: int | None = None) -> FloatArray:
    """(m, 2) the line that is driven along a path, metres; a point where pieces meet comes once.

    Args:
        topology: the map.
        path: places in the order they are driven, as in `Route.path` and `Plan.path`.
        start: where the probe stands (at its waypoint), which then is the first point; None = the
            line begins where the first place does.
    """
    pieces = [topology.geometry(place) for place in path]
    if start is not None:
        pieces.insert(0, topology.goals[start : start + 1, :2])
    points = np.concatenate(pieces) if pieces else np.zeros((0, 2))
    apart = np.hypot(*np.diff(points, axis=0).T) if len(points) > 1 else np.zeros(0)
    first = np.ones(min(len(points), 1), dtype=np.bool_)
    return np.asarray(points[np.concatenate([first, apart > SAME_DISTANCE])])


def whole_way(
    topology: Topology, plan: Plan, observed: BoolArray, unavailable: Collection[int] = ()
) -> tuple[int, ...]:
    """Return the way to a plan's waypoint and on to those that would follow, place by place.

    Args:
        topology: the map.
        plan: with its way.
        observed: (n,) places observed when it was made.
        unavailable: places set aside then.
    """
    way, seen = list(plan.path), observed.copy()
    for goal in plan.waypoints[1:]:
        seen[way] = True
        try:
            way += topology.route(way[-1], goal, seen, unavailable).path
        except PlanningError:  # something was observed meanwhile
            way.append(goal)
    return tuple(way)
