"""Routes as they are driven: what is read on them, what they cost, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.map_error import MapVariance
from gp_active_sensing.planning.routes.distances import Distances
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.search import WaysFrom
from gp_active_sensing.types import BoolArray, Budget, Cost, FloatArray, IntArray, Route

__all__ = ["Driven", "RouteDriver"]

_SLACK = 1.0 + 1e-9
"""Of the metres and seconds that a route takes: the sum of its legs is rounded."""


@dataclass(frozen=True)
class Driven:
    """A route that a budget lasts for, with the way home.

    Args:
        stops: places that it makes for, in order.
        reads: places that are read for the first time on it, in order.
        cost: of all of it, without the way home.
        value: what its readings take off the mean variance of the map.
        whole: none of the stops that were asked for is left out.
    """

    stops: tuple[int, ...]
    reads: tuple[int, ...]
    cost: Cost
    value: float
    whole: bool


class RouteDriver:
    """Drives routes from where a probe stands, as far as its budget lasts.

    Args:
        topology: the map.
        distances: on it, in the unit that is short.
        ways: from where the probe stands.
        at: where it stands; None = nowhere yet.
        unread: (n,) places that are read when they are crossed, and cost a reading.
        budget: what is left.
        field: what readings do; of places that it does not have, nothing.
    """

    def __init__(
        self,
        topology: Topology,
        distances: Distances,
        ways: WaysFrom,
        at: int | None,
        unread: BoolArray,
        budget: Budget,
        field: MapVariance,
    ) -> None:
        self.topology = topology
        self.distances = distances
        self.field = field
        self.budget = budget
        self.at = at
        self.unread = unread
        self.evaluated = 0
        self._ways = ways
        self._flags = unread.tolist()
        self._constraint = BudgetConstraint(topology, budget)
        self._number = np.full(topology.n, -1, dtype=np.int64)
        self._number[field.places] = np.arange(len(field.places))

    def keep_to(self, budget: Budget) -> None:
        """Drive within another budget from now on."""
        self.budget = budget
        self._constraint = BudgetConstraint(self.topology, budget)

    def needs(self, route: Driven) -> Budget:
        """Return the part of the budget that a route takes, with the way home."""
        budget, cost = self.budget, route.cost
        last = route.stops[-1] if route.stops else self.at
        if last is not None and (home := self._constraint.way_home(last, budget.minus(cost=cost))):
            cost = cost.plus(home.cost)
        return Budget(
            None if budget.readings is None else len(route.reads),
            None if budget.metres is None else min(budget.metres, cost.metres * _SLACK),
            None if budget.seconds is None else min(budget.seconds, cost.seconds * _SLACK),
            budget.end,
        )

    def drive(self, stops: Sequence[int]) -> Driven:
        """Return the route along some stops with its value; see `drive_only`."""
        return self.valued(self.drive_only(stops))

    def valued(self, route: Driven) -> Driven:
        """Return a route with its value."""
        self.evaluated += 1
        return replace(route, value=self.field.value(self.which(route.reads)))

    def drive_only(self, stops: Sequence[int]) -> Driven:
        """Return the route along some stops; those that the budget does not last for are left out.

        A stop that was read on the way to another needs no way of its own. Where moves bind, the
        last readings of the budget are taken on the way to a stop that is out of their reach.
        """
        flags = self._flags
        at, metres, seconds = self.at, 0.0, 0.0
        reads: dict[int, None] = {}
        kept: list[int] = []
        whole = True
        if at is not None and flags[at] and self._ways.metres[at] == 0.0:
            if self._allows(at, Cost(0.0, 0.0), 1):
                reads[at] = None
        for stop in stops:
            if stop in reads:
                continue
            leg = self._leg(at, stop, first=not kept)
            if leg is None:
                whole = False
                continue
            before = Cost(metres, seconds)
            fresh = [p for p in leg.path if flags[p] and p not in reads]
            goal = stop
            if not self._allows(goal, before.plus(leg.cost), len(reads) + len(set(fresh))):
                whole = False
                part = self._part(at, fresh, before, len(reads), first=not kept)
                if part is None:
                    continue
                goal, leg = part
                fresh = [p for p in leg.path if flags[p] and p not in reads]
            at, (metres, seconds) = goal, before.plus(leg.cost)
            reads.update(dict.fromkeys(fresh))
            kept.append(goal)
        return Driven(tuple(kept), tuple(reads), Cost(metres, seconds), 0.0, whole)

    def costs_to_end(self, places: IntArray) -> FloatArray | None:
        """(k,) the cheapest way from each of some places to where the mission has to end.

        In the unit of the distances, infinite where there is none; None where it may end anywhere.
        """
        ways = self._constraint.ways_home
        if not ways:
            return None
        by_metres = self.distances.by == "metres"
        costs = ways[-1 if by_metres else 0].costs
        found = (costs[place] for place in places.tolist())
        return np.array([np.inf if c is None else c[0 if by_metres else 1] for c in found])

    def which(self, reads: Sequence[int]) -> IntArray:
        """Return the numbers in the field of those places that it has."""
        numbers = self._number[np.array(reads, dtype=np.int64)]
        return numbers[numbers >= 0]

    def _allows(self, place: int, cost: Cost, reads: int) -> bool:
        return self._constraint.allows(place, cost, reads=reads)

    def _part(
        self, at: int | None, fresh: list[int], before: Cost, reads: int, *, first: bool
    ) -> tuple[int, Route] | None:
        """Return the farthest of the places on a way that the budget lasts for, and the way."""
        low, high = 0, len(fresh) - 1  # the last one is out of reach
        found: tuple[int, Route] | None = None
        while low < high:
            middle = (low + high) // 2
            goal = fresh[middle]
            leg = self._leg(at, goal, first=first)
            if leg is not None and self._allows(goal, before.plus(leg.cost), reads + middle + 1):
                found, low = (goal, leg), middle + 1
            else:
                high = middle
        return found

    def _leg(self, at: int | None, stop: int, *, first: bool) -> Route | None:
        if first or at is None:
            return self._ways.route(stop)
        return self.distances.way(at, stop)
