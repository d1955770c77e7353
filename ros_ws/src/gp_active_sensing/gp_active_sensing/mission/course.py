"""Compute the waypoints of a decision; each waypoint is in sight of the previous waypoint.

The topics ``next_waypoint`` and ``~/plan``, the goals for Nav2 and the simulated robots use these
waypoints. On a map with ground (an area, a grid) a probe drives straight from one waypoint to the
next. The straight line must therefore stay on the ground. On maps without ground every place on the
way is a waypoint.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, FloatArray, Plan

Position = Sequence[float] | None
"""Position (x, y) of a probe [m]; None = unknown."""


def places_along(topology: Topology, start: Position, path: Sequence[int]) -> tuple[int, ...]:
    """Return the places on the way along a path; each is in sight of the previous place.

    Places are added where the straight line between two places of the path leaves the ground. A
    probe outside the ground starts at the ground's nearest point. Returns () if no way over the
    ground leads from `start` to the path's end.
    """
    ground = topology.ground
    if ground is None or not ground.bounded or not path:
        return tuple(path)
    points, way = topology.positions, list(path)
    if start is not None:
        here = np.array(ground.nearest(start[0], start[1]))
        seen = np.flatnonzero(ground.in_sight(here, points[way]))
        if seen.size:
            way = way[int(seen[0]) :]
        elif first := way_in_sight(topology, here, way[0]):
            way = [*first, *way[1:]]
        else:
            return ()
    found = way[:1]
    for (a, b), clear in zip(
        pairwise(way), ground.passable(points, list(pairwise(way))), strict=True
    ):
        more = (b,) if clear else way_in_sight(topology, points[a], b)
        if not more:
            return ()
        found += more
    return tuple(found)


def corners(topology: Topology, start: Position, places: Sequence[int]) -> tuple[int, ...]:
    """Return the waypoints among places; on ground, these are the turns and the last place.

    `places` come from `places_along`. If `start` is None, the probe is at the first place.
    """
    ground = topology.ground
    if ground is None and not topology.free:
        return tuple(places)
    if ground is None or not ground.bounded or len(places) < 2:
        return tuple(places[-1:])
    points = topology.positions[list(places)]
    here = points[0] if start is None else np.array(ground.nearest(start[0], start[1]))
    found: list[int] = []
    done = 0
    while done < len(places):
        seen = np.flatnonzero(ground.in_sight(here, points[done:]))
        last = done + (int(seen[-1]) if seen.size else 0)
        found.append(places[last])
        here, done = points[last], last + 1
    return tuple(found)


def places_of_plan(
    topology: Topology,
    start: Position,
    plan: Plan,
    observed: BoolArray,
    unavailable: Collection[int] = (),
) -> tuple[int, ...]:
    """Return the places on the way through all waypoints of a plan.

    `observed` (n,) is True at places that have a reading. `unavailable` are the places that may not
    be chosen. Both are from the time of the plan.
    """
    way, seen = list(plan.path), observed.copy()
    for goal in plan.waypoints[1:]:
        seen[way] = True
        leg = _way_on(topology, way[-1], goal, seen, unavailable)
        if not leg:
            break
        way += leg
    return places_along(topology, start, way) or places_along(topology, start, plan.path)


def places_ahead(
    topology: Topology,
    waypoints: Sequence[int],
    plan: Plan,
    observed: BoolArray,
    unavailable: Collection[int] = (),
    *,
    count: int,
) -> tuple[int, ...]:
    """Return the waypoints up to the `count`-th place that a plan chose.

    Each waypoint is in sight of the previous waypoint. `waypoints` lead to the plan's first place.
    """
    found, seen = list(waypoints), observed.copy()
    for goal in plan.waypoints[1:count]:
        seen[found] = True
        start = topology.goals[found[-1], :2].tolist()
        leg = _way_on(topology, found[-1], goal, seen, unavailable)
        way = corners(topology, start, places_along(topology, start, leg))
        if not way:
            break
        found += way
    return tuple(found)


def _way_on(
    topology: Topology, at: int, goal: int, seen: BoolArray, unavailable: Collection[int]
) -> tuple[int, ...]:
    """Return the way from one place of a plan to a later place; () = no way exists any more."""
    try:
        return topology.route(at, goal, seen, unavailable).path
    except PlanningError:  # a place on the way has been observed since the plan
        on = topology.ways_from(at).route(goal)
        return () if on is None else on.path


def way_in_sight(topology: Topology, start: FloatArray, goal: int) -> tuple[int, ...]:
    """Return the shortest way from a position (2,) [m] to a place; () = none.

    Each place of the way is in sight of the previous place. The A* search ignores the moves of the
    map: it connects all places that are in sight of each other. Each expanded place costs O(n)
    line-of-sight tests.
    """
    points, ground = topology.positions, topology.ground
    assert ground is not None
    rest = np.hypot(*(points - points[goal]).T)
    best, before = np.full(topology.n, np.inf), np.full(topology.n, -1, dtype=np.int64)
    done = np.zeros(topology.n, dtype=np.bool_)
    heap: list[tuple[float, int]] = []
    place, at, driven = -1, start[:2], 0.0
    while place != goal:
        metres = driven + np.hypot(*(points - at).T)
        nearer = np.flatnonzero(~done & (metres < best))
        nearer = nearer[ground.in_sight(at, points[nearer])]
        best[nearer], before[nearer] = metres[nearer], place
        for found in nearer.tolist():
            heapq.heappush(heap, (float(best[found] + rest[found]), found))
        while heap and done[heap[0][1]]:
            heapq.heappop(heap)
        if not heap:
            return ()
        place = heapq.heappop(heap)[1]
        done[place] = True
        at, driven = points[place], float(best[place])
    way = [goal]
    while (place := int(before[way[-1]])) >= 0:
        way.append(place)
    return tuple(reversed(way))
