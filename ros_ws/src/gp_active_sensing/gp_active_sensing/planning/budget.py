"""Drives that a probe can afford, together with the drive to the end place afterwards."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.topology.base import FreeTopology, Topology
from gp_active_sensing.topology.search import Ways, WaysFrom
from gp_active_sensing.types import BoolArray, Budget, Cost, FloatArray, IntArray, Plan, Route

logger = logging.getLogger(__name__)

READINGS_SPENT = "the budget of readings is spent"
"""Reason for a plan without a waypoint when the budget has no readings left."""
NOTHING_IN_REACH = "every place in reach is on its way to be read by another probe, or set aside"
"""Reason for a plan without a waypoint when every reachable place is pending or unavailable."""
_TOLERANCE = 1e-9
"""Rounding error by which a drive may exceed the budget [m or s]."""


class FeasibleMove(NamedTuple):
    """Affordable drive to `place`; `reads` are the places that may get their first reading."""

    place: int
    route: Route
    reads: tuple[int, ...]

    def remaining(self, budget: Budget) -> Budget:
        """Return `budget` after the drive and its readings."""
        return budget.minus(readings=len(self.reads), cost=self.route.cost)


class BudgetConstraint:
    """Rule that decides which drives a budget allows.

    A drive is allowed if the remaining metres and seconds cover the drive plus the fastest or the
    shortest route to ``budget.end``. The remaining readings must cover every unobserved place on
    the drive. A probe that makes only allowed drives can always reach the end place.

    Raises:
        PlanningError: the end place is not on the map.
    """

    def __init__(self, topology: Topology, budget: Budget) -> None:
        end = budget.end
        if end is not None and not 0 <= end < topology.n:
            msg = f"end place {end}; map {topology.name!r} has places 0 … {topology.n - 1}"
            raise PlanningError(msg)
        self.topology = topology
        self.budget = budget

    @cached_property
    def ways_home(self) -> tuple[Ways, ...]:
        """Routes to the end place: the fastest, the shortest, or both, depending on the limits."""
        budget, end = self.budget, self.budget.end
        if end is None:
            return ()
        by = ["seconds"] if budget.metres is None or budget.seconds is not None else []
        if budget.metres is not None:
            by.append("metres")
        return tuple(self.topology.ways_to(end, unit) for unit in by)

    def costs_home(self, by: str) -> FloatArray | None:
        """Return the costs (n,) of routes from all places to the end place; None = no end place.

        `by` is the unit, "metres" or "seconds". An infinite cost means that there is no route.
        """
        ways = self.ways_home
        if not ways:
            return None
        return ways[-1].metres if by == "metres" else ways[0].seconds

    @cached_property
    def restricts(self) -> bool:
        """True if a drive may be forbidden although readings are left."""
        budget = self.budget
        if budget.metres is not None or budget.seconds is not None or self.topology.reach > 0.0:
            return True
        return any(not np.isfinite(ways.seconds).all() for ways in self.ways_home)

    def leaves_room(self, horizon: int) -> bool:
        """Return True only if the budget certainly covers every sequence of `horizon` drives."""
        if not self.topology.free:
            return False
        x = self.topology.positions
        far = float(np.hypot(*np.ptp(x, axis=0)))
        nowhere = np.zeros(self.topology.n, dtype=np.bool_)
        ends = np.argmin(x.sum(axis=1)), np.argmax(x.sum(axis=1))
        metres, seconds = self.topology.route(int(ends[0]), int(ends[1]), nowhere).cost
        slow = seconds / metres if metres > 0.0 else 0.0
        if isinstance(self.topology, FreeTopology) and self.topology.heights is not None:
            far = float(np.linalg.norm(np.ptp(self.topology.points, axis=0)))
            slow = 1.0 / self.topology.speeds.least
        drives = horizon + (self.budget.end is not None)
        far += self.topology.turn_excess
        return self.budget.affords(Cost(drives * far, drives * far * slow), readings=0)

    def allows(self, place: int, cost: Cost, *, reads: int = 1, left: Budget | None = None) -> bool:
        """Return whether the budget covers a drive and the route from `place` to the end place.

        Args:
            place: last place of the drive.
            cost: cost of the drive.
            reads: number of places on the drive that may get their first reading.
            left: remaining budget; None = the whole budget.
        """
        left = self.budget if left is None else left
        if left.end is None:
            return left.affords(cost, reads)
        return any(
            (rest := ways.costs[place]) is not None and left.affords(cost.plus(rest), reads)
            for ways in self.ways_home
        )

    def drives(
        self,
        at: int | None,
        observed: BoolArray,
        unavailable: Collection[int] = (),
        left: Budget | None = None,
    ) -> list[FeasibleMove]:
        """Return the affordable drives to places that may be next, sorted by place.

        Args:
            at: place of the probe; None = no place yet.
            observed: (n,) mask of the observed or pending places.
            unavailable: places that must not be chosen. A drive across them takes no reading there.
            left: remaining budget; None = the whole budget.
        """
        left = self.budget if left is None else left
        flags = bytearray(observed.tobytes())
        for place in unavailable:
            flags[place] = 1
        found: list[FeasibleMove] = []
        for place in self.topology.candidates(at, observed, unavailable).tolist():
            route = self.topology.route(at, place, observed, unavailable)
            reads = route.path
            if len(reads) > 1:
                reads = tuple([p for p in reads if not flags[p]])
            if self.allows(place, route.cost, reads=len(reads), left=left):
                found.append(FeasibleMove(place, route, reads))
        return found

    def way_home(self, at: int, left: Budget | None = None) -> Route | None:
        """Return a route to the end place, preferably one within `left`; None = no route."""
        left = self.budget if left is None else left
        routes = [route for ways in self.ways_home if (route := ways.route(at)) is not None]
        fits = [route for route in routes if left.affords(route.cost, readings=0)]
        return next(iter(fits or routes), None)

    def why_none(self) -> str:
        """Return the reason why no drive is affordable."""
        budget, names = self.budget, self.topology.names
        if budget.end is None:
            if budget.metres is None and budget.seconds is None:
                return "no reachable place is within the budget of readings"
            return "the rest of the budget of metres or seconds is too small for another place"
        name = names[budget.end]
        if budget.metres is None and budget.seconds is None:
            return f"no reachable place has a way to the end place {name!r}"
        return (
            "the rest of the budget of metres or seconds is too small for another place and the "
            f"way to the end place {name!r}"
        )


def least_of(one: Budget, other: Budget) -> Budget:
    """Return a budget with the smaller limit of each kind. Both budgets have the same end place."""

    def least(limit: str) -> Any:
        limits = (getattr(one, limit), getattr(other, limit))
        return min((x for x in limits if x is not None), default=None)

    return Budget(least("readings"), least("metres"), least("seconds"), other.end)


def in_metres(budget: Budget, speed: float | None) -> Budget:
    """Return a budget whose limit in seconds is converted to metres with a probe's `speed` [m/s].

    Policies need the conversion because they compute seconds from the speeds of the map, not from
    the speed of the probe. If `speed` is None, the budget stays the same.
    """
    if speed is None or budget.seconds is None:
        return budget
    metres = budget.seconds * speed
    if budget.metres is not None:
        metres = min(metres, budget.metres)
    return Budget(budget.readings, metres, None, budget.end)


def check_end(
    topology: Topology, budget: Budget, at: int | None, *, speed: float | None = None
) -> None:
    """Check that a probe can reach the end place of its mission.

    Args:
        topology: map of the probe.
        budget: budget of the whole mission, including the end place.
        at: place of the probe; None = no place yet, and any first place may be chosen.
        speed: the probe's own speed [m/s]; None = the speeds of the map.

    Raises:
        PlanningError: there is no route to the end place, or no route within the budget.
    """
    if budget.end is None:
        return
    constraint = BudgetConstraint(topology, in_metres(budget, speed))
    name, where = topology.names[budget.end], f"map {topology.name!r}"
    if at is None:
        nothing = np.zeros(topology.n, dtype=np.bool_)
        if not constraint.drives(None, nothing):
            msg = (
                f"end: no place of {where} can be observed first and left for {name!r} within "
                "the budget; raise the budget, or choose another end place"
            )
            raise PlanningError(msg)
        return
    home = constraint.way_home(at)
    if home is None:
        msg = (
            f"end: {name!r} cannot be reached from {topology.names[at]!r} on {where}; choose "
            "another end place, or another start"
        )
        raise PlanningError(msg)
    if not constraint.allows(at, Cost(0.0, 0.0), reads=0):
        metres, seconds = home.cost if speed is None else (home.cost[0], home.cost[0] / speed)
        have = [f"{budget.metres:.6g} m"] if budget.metres is not None else []
        have += [f"{budget.seconds:.6g} s"] if budget.seconds is not None else []
        msg = (
            f"end: the way from {topology.names[at]!r} to {name!r} takes {metres:.6g} m and "
            f"{seconds:.6g} s, {' and '.join(have)} are left; raise the budget, or choose a nearer "
            "end place"
        )
        raise PlanningError(msg)


def with_way_home(plan: Plan, topology: Topology, at: int, remaining: Budget) -> Plan:
    """Return the last plan of a mission with the route to the end place.

    For a probe with its own speed, `remaining` has metres instead of seconds.
    """
    if remaining.end is None:
        return plan
    end = topology.names[remaining.end]
    home = BudgetConstraint(topology, remaining).way_home(at)
    if home is None:  # the probe left its planned route
        logger.warning("the end place %r cannot be reached from %r", end, topology.names[at])
        return replace(plan, reason=f"{plan.reason}; the end place {end!r} cannot be reached")
    if not remaining.affords(home.cost, readings=0):
        logger.warning(
            "the way to the end place %r takes %.0f m and %.0f s, more than is left of the budget",
            end,
            *home.cost,
        )
    return replace(plan, path=home.path, cost=home.cost)


@dataclass(frozen=True)
class ReachableGoals:
    """Goals that a probe can afford, and the routes to these goals.

    Args:
        locations: (m,) goals, sorted; they are neither pending nor unavailable.
        metres: (m,) length of the route to each goal.
        seconds: (m,) duration of the route to each goal.
        reads: (m,) readings that each goal may cost: one for each unobserved place on the route,
            and one more if the goal is already observed.
        ways: routes to every place of the map.
        reason: why there is no goal; "" if there are goals.
    """

    locations: IntArray
    metres: FloatArray
    seconds: FloatArray
    reads: IntArray
    ways: WaysFrom
    reason: str = ""

    def route(self, index: int) -> Route:
        """Return the cheapest route to the goal at `index`."""
        route = self.ways.route(int(self.locations[index]))
        assert route is not None, "a goal has a way"
        return route


def reachable_goals(request: PlanRequest) -> ReachableGoals:
    """Find every place that a probe can afford to visit next.

    The route to each place is the fastest, or the shortest if only metres are limited. A route may
    cross any place. The budget must cover the route, the readings on the route, and the route from
    the goal to the end place. Pending and unavailable places are not goals, and a route across them
    takes no reading there. To observe its present road segment again, a probe drives a loop.

    Raises:
        PlanningError: the end place is not on the map.
    """
    belief, topology, remaining = request.belief, request.topology, request.remaining
    by = "metres" if remaining.metres is not None and remaining.seconds is None else "seconds"
    constraint = BudgetConstraint(topology, remaining)
    ways = topology.ways_from(request.at, by)
    closed = np.zeros(topology.n, dtype=np.bool_)
    closed[list(request.pending)] = True
    closed[list(request.unavailable)] = True
    reads = ways.reads(~(belief.observed | closed)) + belief.observed
    open_ = np.isfinite(ways.seconds) & ~closed
    goals, reason = np.flatnonzero(open_ & allowed(constraint, ways, reads)), ""
    if remaining.readings is not None and remaining.readings <= 0:
        goals, reason = goals[:0], READINGS_SPENT
    elif not goals.size:
        reason = constraint.why_none() if open_.any() else NOTHING_IN_REACH
    metres, seconds = ways.metres[goals], ways.seconds[goals]
    return ReachableGoals(goals, metres, seconds, reads[goals], ways, reason)


def allowed(constraint: BudgetConstraint, ways: WaysFrom, reads: IntArray) -> BoolArray:
    """Return the (n,) mask of places to which `constraint` allows a drive with `reads` readings."""
    budget = constraint.budget
    fits = np.ones(len(reads), dtype=np.bool_)
    if budget.readings is not None:
        fits &= reads <= budget.readings
    if budget.end is None:
        return fits & _within(budget, ways.metres, ways.seconds)
    home = np.zeros_like(fits)
    for rest in constraint.ways_home:
        there = np.isfinite(rest.seconds)
        home |= there & _within(budget, ways.metres + rest.metres, ways.seconds + rest.seconds)
    return fits & home


def _within(budget: Budget, metres: FloatArray, seconds: FloatArray) -> BoolArray:
    fits = np.ones(len(metres), dtype=np.bool_)
    if budget.metres is not None:
        fits &= metres <= budget.metres + _TOLERANCE
    if budget.seconds is not None:
        fits &= seconds <= budget.seconds + _TOLERANCE
    return fits
