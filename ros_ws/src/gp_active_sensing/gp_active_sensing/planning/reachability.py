"""Places that a probe can reach within its budget, observed ones included."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.base import READINGS_SPENT
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.search import WaysFrom
from gp_active_sensing.types import BoolArray, Budget, FloatArray, IntArray, Route

__all__ = ["NOTHING_IN_REACH", "ReachableGoals", "reachable_goals"]

NOTHING_IN_REACH = "every place in reach is on its way to be read by another probe, or set aside"
"""Why nothing is chosen when the budget is not to blame."""
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ReachableGoals:
    """The goals a probe can afford, and how to get to each.

    Args:
        locations: (m,) goals, sorted: observed or not, neither pending nor unavailable.
        metres: (m,) of the way to each.
        seconds: (m,) of the way to each.
        reads: (m,) readings of the budget that it costs: every unobserved place on the way may be
            read, and a visit of an observed goal is one more.
        ways: to every place of the map.
        reason: why there is no goal ("" when there is one).
    """

    locations: IntArray
    metres: FloatArray
    seconds: FloatArray
    reads: IntArray
    ways: WaysFrom
    reason: str = ""

    def route(self, index: int) -> Route:
        """Return the cheapest way to goal number `index`, whatever is crossed.

        Raises:
            IndexError: there is no such goal.
        """
        route = self.ways.route(int(self.locations[index]))
        if route is None:  # a goal has a way
            msg = f"goal number {index} of {self.locations.size} has no way"
            raise IndexError(msg)
        return route


def reachable_goals(
    belief: Belief,
    topology: Topology,
    at: int | None,
    pending: Collection[int],
    unavailable: Collection[int],
    remaining: Budget,
) -> ReachableGoals:
    """Find every place that a probe can afford to visit next, however far.

    The way to each is the cheapest in seconds, or in metres where these alone are limited,
    whatever it crosses; the budget has to last for it, for what may be read on it, and for the way
    from there to where the mission has to end. A probe on a road that is to read it again drives
    round. O(n) where any place may be next, else one search over the moves.

    Args:
        belief: knows which places are observed.
        topology: where the probe may go.
        at: where it stands; None = nowhere yet.
        pending: places that other probes are sent to; never goals, and what is read there is paid
            for already.
        unavailable: places that are no goals; they may be crossed and bring no reading.
        remaining: of the budget.

    Raises:
        PlanningError: the end place is not on the map.
    """
    by = "metres" if remaining.metres is not None and remaining.seconds is None else "seconds"
    constraint = BudgetConstraint(topology, remaining)
    ways = topology.ways_from(at, by)
    if remaining.readings is not None and remaining.readings <= 0:
        return _nothing(ways, READINGS_SPENT)
    closed = np.zeros(topology.n, dtype=np.bool_)
    closed[list(pending)] = True
    closed[list(unavailable)] = True
    reads = ways.reads(~(belief.observed | closed)) + belief.observed
    open_ = np.isfinite(ways.seconds) & ~closed
    goals = np.flatnonzero(open_ & allowed(constraint, ways, reads))
    if not goals.size:
        return _nothing(ways, constraint.why_none() if open_.any() else NOTHING_IN_REACH)
    return ReachableGoals(goals, ways.metres[goals], ways.seconds[goals], reads[goals], ways)


def allowed(constraint: BudgetConstraint, ways: WaysFrom, reads: IntArray) -> BoolArray:
    """(n,) where `BudgetConstraint.allows` the drive to each place, for all places at once.

    Args:
        constraint: of the budget.
        ways: to every place.
        reads: (n,) readings that each may cost.
    """
    budget = constraint.budget
    fits = np.ones(len(reads), dtype=np.bool_)
    if budget.readings is not None:
        fits &= reads <= budget.readings
    if budget.end is None:
        return fits & _within(budget, ways.metres, ways.seconds)
    home = np.zeros_like(fits)
    for rest in constraint.ways_home:
        nowhere = (np.inf, np.inf)
        costs = np.array([nowhere if cost is None else cost for cost in rest.costs])
        there = np.isfinite(costs[:, 1])
        home |= there & _within(budget, ways.metres + costs[:, 0], ways.seconds + costs[:, 1])
    return fits & home


def _within(budget: Budget, metres: FloatArray, seconds: FloatArray) -> BoolArray:
    fits = np.ones(len(metres), dtype=np.bool_)
    if budget.metres is not None:
        fits &= metres <= budget.metres + _TOLERANCE
    if budget.seconds is not None:
        fits &= seconds <= budget.seconds + _TOLERANCE
    return fits


def _nothing(ways: WaysFrom, reason: str) -> ReachableGoals:
    nothing, empty = np.empty(0, dtype=np.int64), np.empty(0)
    return ReachableGoals(nothing, empty, empty, nothing, ways, reason)
