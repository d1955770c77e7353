"""What follows the readings of the tree: a route for the rest of the mission."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from gp_active_sensing.planning.bal.covariance_state import DecisionProblem
from gp_active_sensing.planning.base import PlanRequest, PolicyState
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.map_error import MapVariance
from gp_active_sensing.planning.routes.distances import distances_of, unit_of
from gp_active_sensing.planning.routes.follow import read_along
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, Budget, FloatArray, Plan

__all__ = ["AlongRoute", "Continuation", "FollowingRoute", "Tails"]

_MOST_ENDS = 1000
"""Ends of visiting sequences that are continued; where there are more none is."""


class Continuation(Protocol):
    """What a probe can do after the readings of the tree."""

    def __call__(self, at: int, visited: frozenset[int], left: Budget) -> tuple[int, ...]:
        """Return the places that it reads then, in order, as far as the budget lasts.

        Args:
            at: where it stands.
            visited: places visited since the root, and crossed on the way.
            left: of the budget.
        """
        ...


class AlongRoute:
    """Goes on along a route, by the cheapest way to each place that is still to be read.

    From its first place, or from the one nearest to the probe and round, whichever reads more.

    Args:
        topology: the map.
        route: places in order.
        unread: (n,) places that cost a reading when they are crossed.
        budget: with where it has to end.
    """

    def __init__(
        self, topology: Topology, route: Sequence[int], unread: BoolArray, budget: Budget
    ) -> None:
        self._route = [place for place in dict.fromkeys(route) if unread[place]]
        self._unread = unread
        self._constraint = BudgetConstraint(topology, budget)
        self._distances = distances_of(topology, unit_of(budget))

    def __call__(self, at: int, visited: frozenset[int], left: Budget) -> tuple[int, ...]:
        """See `Continuation`."""
        goals = [place for place in self._route if place not in visited]
        if not goals:
            return ()
        far = self._distances.row(at)[goals]
        nearest = int(np.argmin(np.round(far, 6)))
        first = self._drive(at, visited, left, goals)
        if not nearest:
            return first
        other = self._drive(at, visited, left, [*goals[nearest:], *goals[:nearest]])
        return other if len(other) > len(first) else first

    def _drive(
        self, at: int, visited: frozenset[int], left: Budget, goals: Sequence[int]
    ) -> tuple[int, ...]:
        unread = self._unread.copy()
        unread[list(visited)] = False
        return read_along(goals, at, unread, left, self._distances, self._constraint)


class _End(NamedTuple):
    """The end of a visiting sequence.

    Args:
        read: places chosen, sorted.
        at: where the probe stands.
        visited: places visited, and crossed on the way.
        left: of the budget, see `DecisionProblem`.
    """

    read: tuple[int, ...]
    at: int
    visited: frozenset[int]
    left: Budget | None


class Tails:
    """What the continuation of each visiting sequence takes off the error of the map.

    Counted under each λ as by someone who knows it. Most continuations share most of their places:
    these are taken for read first, so that each end needs but few more.

    Args:
        problem: the decision.
        field: of all places of the tree and of the continuation.
        horizon: readings in the tree.
        at: where the probe stands.
        budget: that is left.
        continuation: what follows.
        scale: values are shares of this.
    """

    def __init__(
        self,
        problem: DecisionProblem,
        field: MapVariance,
        horizon: int,
        at: int | None,
        budget: Budget,
        continuation: Continuation,
        scale: float,
    ) -> None:
        self._problem = problem
        self.routes: dict[Hashable, tuple[int, ...]] = {}
        """Places that follow each end."""
        self._bonus: dict[Hashable, FloatArray] = {}
        ends = {self.key(*end): end for end in self._ends(horizon, (), at, frozenset(), budget)}
        if not ends or len(ends) > _MOST_ENDS:
            return
        for key, end in ends.items():
            problem.check()
            left = end.left
            if left is None:
                left = budget.minus(readings=len(end.read))
            known = set(field.places.tolist())
            follows = continuation(end.at, end.visited, left)
            self.routes[key] = tuple(place for place in follows if place in known)
        common = frozenset.intersection(*map(frozenset, self.routes.values()))
        number = {place: i for i, place in enumerate(field.places.tolist())}
        first = np.array(sorted(number[place] for place in common), dtype=np.int64)
        given, shared = field.given(first), field.values(first)
        for key, end in ends.items():
            problem.check()
            rest = [number[p] for p in (*end.read, *self.routes[key]) if p not in common]
            alone = np.array([number[place] for place in end.read], dtype=np.int64)
            whole = shared + given.values(np.array(sorted(set(rest)), dtype=np.int64))
            self._bonus[key] = np.maximum(whole - field.values(alone), 0.0) / scale

    def least(self, weights: FloatArray) -> float:
        """Return the least that a belief (L,) expects any continuation to take off."""
        return min((float(weights @ bonus) for bonus in self._bonus.values()), default=0.0)

    @property
    def known(self) -> bool:
        """Some continuation has been found."""
        return bool(self._bonus)

    def key(
        self, read: tuple[int, ...], at: int, visited: frozenset[int], left: Budget | None
    ) -> Hashable:
        """Return what tells ends apart."""
        return read, self._problem.state(at, visited, left), at

    def bonus(
        self, read: tuple[int, ...], at: int, visited: frozenset[int], left: Budget | None
    ) -> FloatArray:
        """(L,) what the continuation takes off after an end, as a share."""
        return self._bonus[self.key(read, at, visited, left)]

    def route(
        self, read: tuple[int, ...], at: int, visited: frozenset[int], left: Budget | None
    ) -> tuple[int, ...]:
        """Return the places that follow an end."""
        return self.routes[self.key(read, at, visited, left)]

    def _ends(
        self,
        k: int,
        read: tuple[int, ...],
        at: int | None,
        visited: frozenset[int],
        left: Budget | None,
    ) -> Iterator[_End]:
        """Yield the ends of all visiting sequences of k readings; a dead end has none."""
        problem = self._problem
        for x in problem.candidates(at, visited, left).tolist():
            then, rest = problem.after(at, visited, left, x)
            chosen = tuple(sorted((*read, x)))
            if k == 1:
                yield _End(chosen, x, then, rest)
            else:
                yield from self._ends(k - 1, chosen, x, then, rest)


@dataclass(frozen=True)
class FollowingRoute:
    """The route that the tree's readings are followed by, and what of it the next stage gets.

    Args:
        reads: places on it, in order.
        before: the policy's state, a part of which is that of `Tour`.
        goal: the first place of the route in that; None where there is no route.
    """

    reads: tuple[int, ...]
    before: PolicyState
    goal: int | None

    @classmethod
    def none(cls, state: PolicyState) -> FollowingRoute:
        """Return no route; the state stays."""
        return cls((), state, None)

    @classmethod
    def of(cls, request: PlanRequest, state: PolicyState) -> FollowingRoute:
        """Return the route that `Tour` would drive, in at most half the time."""
        from gp_active_sensing.planning.tour import Tour

        limit = request.limit
        if limit.seconds is not None:
            limit = replace(limit, seconds=0.5 * limit.seconds)
        alone = replace(request, limit=limit, aim=None, waiting=())
        plan, after = Tour().plan(alone, state)
        return cls(plan.waypoints, after, plan.waypoint)

    def state(self, plan: Plan) -> PolicyState:
        """Return the state after a decision: the route goes on from its waypoint."""
        if self.goal is None or plan.waypoint is None:
            return self.before
        routes = [pair for pair in self.before["routes"] if pair[0] != self.goal]
        later = [place for place in self.reads if place not in plan.waypoints]
        return self.before | {
            "routes": [*routes, [plan.waypoint, [*plan.waypoints, *later]]],
        }
