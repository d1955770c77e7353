"""Follow a route: the next place on it that the budget lasts for, with the way home.

A route is an ordered list of places. How to get from one to the next is not part of it: that is the
cheapest way, whatever it crosses. Where moves bind, a probe reads what it crosses for the first
time, so that its next waypoint is the first place on that way that is not observed yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.base import candidates, no_plan
from gp_active_sensing.planning.budget import BudgetConstraint, ReachableGoals, reachable_goals
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.planning.routes.distances import Distances, distances_of, unit_of
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.search import WaysFrom
from gp_active_sensing.types import BoolArray, Budget, Cost, Plan, Route

_MOST_AIMS = 32
"""Probes on their way to different places of a route, at the most."""
MOST_SHOWN = 300
"""Waypoints that a plan tells of: the next ones of the route."""


@dataclass(frozen=True)
class RouteDrive:
    """A whole drive along a route, without the way home.

    Args:
        path: every place on it, in the order in which it is driven.
        cost: of all of it.
        reads: places on it that may be read for the first time.
    """

    path: tuple[int, ...]
    cost: Cost
    reads: int


def unread_of(request: PlanRequest) -> BoolArray:
    """(n,) places that cost a reading when they are crossed, and that may be chosen."""
    unread = ~request.belief.observed
    unread[list(request.pending)] = False
    unread[list(request.unavailable)] = False
    return unread


def trip_of(
    topology: Topology,
    route: Iterable[int],
    at: int | None,
    unread: BoolArray,
    by: str = "seconds",
    ways: WaysFrom | None = None,
) -> RouteDrive | None:
    """Return the drive along a route, by the cheapest way from each place to the next.

    Args:
        topology: the map.
        route: places in order.
        at: where it begins; None = nowhere yet, any place may be first.
        unread: (n,) places that may be read for the first time; see `unread_of`.
        by: what is least, "metres" or "seconds".
        ways: from `at` to every place, if they are known.

    Returns:
        The drive; None where some leg has no way. To its own place a probe on a road that is to
        read it drives round.
    """
    distances = distances_of(topology, by)
    places = np.fromiter(route, dtype=np.int64)
    if not len(places):
        return RouteDrive((), Cost(0.0, 0.0), 0)
    first = (topology.ways_from(at, by) if ways is None else ways).route(int(places[0]))
    rest = distances.drive(places)
    if first is None or rest is None:
        return None
    path = np.concatenate([np.array(first.path, dtype=np.int64), rest[0]])
    reads = int(np.count_nonzero(unread[np.unique(path)]))
    return RouteDrive(tuple(path.tolist()), first.cost.plus(rest[1]), reads)


def read_along(
    goals: Iterable[int],
    here: int,
    unread: BoolArray,
    left: Budget,
    distances: Distances,
    constraint: BudgetConstraint,
    most: int | None = None,
) -> tuple[int, ...]:
    """Return the places read on the way through some places, within the budget.

    A place for which it does not last is left out.

    Args:
        goals: places in order.
        here: where it begins.
        unread: (n,) places that may be read for the first time; changed.
        left: of the budget.
        distances: by which the way to each is the cheapest.
        constraint: with the way home.
        most: places at most; None = all of them.
    """
    found: list[int] = []
    for goal in goals:
        if left.readings is not None and left.readings <= 0:
            break
        if not unread[goal]:
            continue
        leg = distances.way(here, goal)
        if leg is None:
            continue
        fresh = [place for place in dict.fromkeys(leg.path) if unread[place]]
        if not constraint.allows(goal, leg.cost, reads=len(fresh), left=left):
            continue
        left = left.minus(readings=len(fresh), cost=leg.cost)
        unread[fresh] = False
        found += fresh
        here = goal
        if most is not None and len(found) >= most:
            break
    return tuple(found[:most])


def fits(trip: RouteDrive | None, constraint: BudgetConstraint) -> bool:
    """Return whether a budget lasts for a drive, and for the way home from where it ends."""
    if trip is None:
        return False
    if not trip.path:
        return True
    return constraint.allows(trip.path[-1], trip.cost, reads=trip.reads)


def next_plan(
    route: Sequence[int],
    request: PlanRequest,
    *,
    begin: int = 0,
    reach: ReachableGoals | None = None,
    **fields: Any,
) -> Plan | None:
    """Return the plan that continues along a route.

    To the first place that is neither observed, pending nor unavailable, and that the budget lasts
    for with the way home; what is read on the way counts. Where moves bind the next waypoint is the
    first place on the way there that is not observed yet (with a `reach` of the map the last one
    within it). A probe that stands at such a place reads it first, where it costs no readings that
    the route needs. The plan's other waypoints are what would be read along the rest of the route.

    Args:
        route: places in order; those that were visited may be left in it.
        request: what is known and what is left.
        begin: number in the route to begin with; those before it come after the last one.
        reach: result of `reachable_goals` for the request; None = it is computed.
        **fields: of the plan, such as its bounds; by default 0.

    Returns:
        The plan; None where no place of the route can be afforded.
    """
    steps = _Steps(request, reach)
    found = _follow(route, begin, steps)
    return None if found is None else _plan(found[0], steps.after(*found, route), **fields)


def nearest_plan(request: PlanRequest, reach: ReachableGoals | None = None) -> Plan:
    """Return the plan that goes to the nearest place that can be afforded; see `next_plan`.

    Of equally near ones to the first; a plan without a waypoint, and with the reason, where there
    is none.
    """
    steps = _Steps(request, reach)
    far = steps.ways.metres if unit_of(request.remaining) == "metres" else steps.ways.seconds
    goals = np.flatnonzero(steps.affordable)
    for goal in goals[np.argsort(np.round(far[goals], 6), kind="stable")].tolist():
        found = steps.toward(goal)
        if found is not None:
            return _plan(found, ())
    options = candidates(request)
    if options.reason:
        return no_plan(options.reason)
    seconds = np.array([route.cost.seconds for route in options.routes])
    first = _Step(options.routes[int(np.argmin(np.round(seconds, 6)))], 1)
    return _plan(first, ())


@dataclass(frozen=True)
class Course:
    """Route that one probe follows, or that several probes share.

    Each probe continues from its place on the route. A probe that is not on it yet, or that reaches
    the start of another one, moves to the longest unread stretch. It starts in the middle if
    another probe is about to drive that stretch, otherwise at the beginning.

    Args:
        route: places in order, those that were visited among them.
        aims: what probes are making for whose waypoint is only on the way there: the waypoint, and
            the number of their goal in the route.
    """

    route: tuple[int, ...]
    aims: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, state: Any) -> Course | None:
        """Return the course from a policy's state, None where it has none yet."""
        if state is None:
            return None
        return cls(
            tuple(int(place) for place in state["route"]),
            tuple((int(place), int(number)) for place, number in state["aims"]),
        )

    def to_state(self) -> dict[str, Any]:
        """Return it as JSON-serialisable data."""
        return {"route": list(self.route), "aims": [list(aim) for aim in self.aims]}

    def next_plan(
        self, request: PlanRequest, reach: ReachableGoals | None = None
    ) -> tuple[Plan | None, Course]:
        """Return the plan that continues along the route, and the next course.

        See the function `next_plan`. Where other probes stand that are `waiting` for a decision
        they go on from there.
        """
        steps = _Steps(request, reach)
        found = _follow(self.route, self._begin(steps.unread, request), steps)
        if found is None:
            return None, self
        step, number = found
        stop = step.route.path[-1]
        aims = [(p, i) for p, i in self.aims if p != stop and steps.unread[self.route[i]]]
        if stop != self.route[number]:
            aims.append((stop, number))
        plan = _plan(step, steps.after(step, number, self.route))
        return plan, Course(self.route, tuple(aims[-_MOST_AIMS:]))

    def _begin(self, unread: BoolArray, request: PlanRequest) -> int:
        """Return the index in the route at which a probe continues."""
        at, pending, aims = request.at, request.under_way, dict(self.aims)
        aim = aims.get(-1 if at is None else at)
        if aim is not None and unread[self.route[aim]]:
            return aim
        numbers = {place: number for number, place in enumerate(self.route)}
        # Where the others go on; a place that they only cross on the way there is no claim.
        others = {*pending, *(place for place in request.waiting if place is not None)}
        claims = {aims.get(p, numbers.get(p, -1)) for p in others} - {-1}
        stretches = list(self._stretches(unread, claims))
        if not stretches:
            return 0
        if aim is None and at is not None and at not in pending:
            aim = numbers.get(at)
        if aim is not None:
            here = aim
            ahead = next(((a, b) for a, b, _ in stretches if b > here), None)
            if ahead is not None and not any(here < claim < ahead[0] for claim in claims):
                return max(ahead[0], here)
        if not others:
            return stretches[0][0]
        a, b, driven = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
        return (a + b) // 2 if driven else a

    def _stretches(
        self, unread: BoolArray, claims: Collection[int]
    ) -> Iterator[tuple[int, int, bool]]:
        """Yield (begin, end, another probe is about to drive it) of each unread stretch."""
        begin: int | None = None
        driven = False
        for number, place in enumerate(self.route):
            if number in claims:
                if begin is not None:
                    yield begin, number, driven
                begin, driven = None, True
            elif unread[place] and begin is None:
                begin = number
        if begin is not None:
            yield begin, len(self.route), driven


def _follow(route: Sequence[int], begin: int, steps: _Steps) -> tuple[_Step, int] | None:
    """Return the way to the next waypoint, and the index in the route of its goal."""
    for number in (*range(begin, len(route)), *range(begin)):
        found = steps.toward(route[number], along=route)
        if found is not None:
            return found, number
    return None


@dataclass(frozen=True)
class _Step:
    route: Route
    reads: int


class _Steps:
    """Moves of a probe toward a place of its route; arguments as of `next_plan`."""

    def __init__(self, request: PlanRequest, reach: ReachableGoals | None) -> None:
        reach = reachable_goals(request) if reach is None else reach
        topology = self.topology = request.topology
        self.at = request.at
        self.remaining = request.remaining
        self.pending = frozenset(request.under_way)
        self.unavailable = request.unavailable
        self.ways = reach.ways
        self.unread = unread_of(request)
        self.known = request.belief.observed.copy()
        self.known[list(request.pending)] = True
        self.affordable = np.zeros(topology.n, dtype=np.bool_)
        self.affordable[reach.locations] = True
        self.affordable &= self.unread
        self.constraint = BudgetConstraint(topology, request.remaining)

    def toward(self, goal: int, along: Collection[int] = ()) -> _Step | None:
        """Return the way to the next waypoint on the way to a goal, None if it is out of reach."""
        if not self.affordable[goal]:
            return None
        at = self.at
        if at is not None and at != goal and self.affordable[at] and self.ways.metres[at] == 0.0:
            if self.remaining.readings is None or at in along:
                goal = at  # it costs no way to read what is here
        way = self.ways.route(goal)
        if way is None:
            return None
        number = self._first_stop(way.path)
        stop = way.path[number]
        straight = self._allowed_route(stop)
        if straight is not None:
            return straight
        path = way.path[: number + 1]
        cost = Cost(float(self.ways.metres[stop]), float(self.ways.seconds[stop]))
        return self._allowed(Route(path, cost))

    def after(self, step: _Step, number: int, route: Sequence[int]) -> tuple[int, ...]:
        """Return the places that would be read along the rest of a route, within the budget.

        It ends where another probe is sent.
        """
        unread = self.unread.copy()
        unread[list(step.route.path)] = False
        goals = (*route[number:], *route[:number])
        return read_along(
            takewhile(lambda goal: goal not in self.pending, goals),
            step.route.path[-1],
            unread,
            self.remaining.minus(readings=step.reads, cost=step.route.cost),
            distances_of(self.topology, unit_of(self.remaining)),
            self.constraint,
            MOST_SHOWN,
        )

    def _first_stop(self, path: Sequence[int]) -> int:
        """Return the index on a way of the next waypoint."""
        if self.topology.free:
            return len(path) - 1
        fresh = [i for i, place in enumerate(path) if self.unread[place]]
        near = [i for i in fresh if self.ways.metres[path[i]] <= self.topology.reach]
        return near[-1] if near else fresh[0]

    def _allowed_route(self, goal: int) -> _Step | None:
        """Return the way through read places if it fits, as other policies do."""
        try:
            route = self.topology.route(self.at, goal, self.known, self.unavailable)
        except PlanningError:
            return None
        return self._allowed(route)

    def _allowed(self, route: Route) -> _Step | None:
        reads = sum(bool(self.unread[place]) for place in set(route.path))
        if not self.constraint.allows(route.path[-1], route.cost, reads=reads):
            return None
        return _Step(route, reads)


def _plan(step: _Step, after: tuple[int, ...], **fields: Any) -> Plan:
    values = {"lower": 0.0, "upper": 0.0, "expanded": 1, "seconds": 0.0, "deadline_hit": False}
    waypoints = (step.route.path[-1], *after)
    return Plan(
        waypoints=waypoints,
        path=step.route.path,
        cost=step.route.cost,
        horizon=len(waypoints),
        **{**values, **fields},
    )
