"""Route following: the next affordable place of a route.

A route is an ordered list of places. From one place to the next, the probe drives the cheapest
route. This route may cross any place. On a map with moves, the next waypoint is an unobserved place
on the drive.
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
"""Largest number of pairs in `Course.aims`."""
MOST_SHOWN = 300
"""Largest number of waypoints in a plan along a route."""


@dataclass(frozen=True)
class RouteDrive:
    """Drive along a whole route, without the drive to the end place.

    Args:
        path: places on the drive, in order.
        cost: cost of the drive.
        reads: number of places on the drive that may get their first reading.
    """

    path: tuple[int, ...]
    cost: Cost
    reads: int


def unread_of(request: PlanRequest) -> BoolArray:
    """Return the (n,) mask of places that are neither observed, pending nor unavailable."""
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
    """Return the cheapest drive along a route.

    If a probe is to observe its present road again, it drives a loop.

    Args:
        topology: the map.
        route: places in order.
        at: first place of the drive; None = no place yet, and any place may be first.
        unread: (n,) mask of the places that may get their first reading; see `unread_of`.
        by: unit in which drives are cheapest, "metres" or "seconds".
        ways: routes from `at` to every place; None = compute them.

    Returns:
        The drive; None = two successive places have no route between them.
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
    """Return the places that get their first reading on a drive through some goals.

    Goals that are too expensive are skipped.

    Args:
        goals: goals in order.
        here: first place of the drive.
        unread: (n,) mask of places that may get their first reading; the function changes the mask.
        left: remaining budget.
        distances: cheapest routes between places.
        constraint: budget constraint that includes the drive to the end place.
        most: largest number of places in the result; None = no limit.
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
    """Return whether a budget covers a drive and then the drive to the end place."""
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

    The goal is the first affordable place that is neither observed, pending nor unavailable. On a
    map with moves, the next waypoint is an unobserved place on the drive to the goal. It is the
    last one within the distance ``topology.reach``, or else the first one. A probe at an unobserved
    place observes this place first, if the place is on the route or readings are unlimited. The
    further waypoints of the plan are places that get a reading along the rest of the route.

    Args:
        route: places in order, visited or not.
        request: belief, map and remaining budget.
        begin: index in the route of the first possible goal; earlier places come last.
        reach: result of `reachable_goals` for the request; None = compute it.
        **fields: further fields of the plan, such as its bounds.

    Returns:
        The plan; None = no place of the route is affordable.
    """
    steps = _Steps(request, reach)
    found = _follow(route, begin, steps)
    return None if found is None else _plan(found[0], steps.after(*found, route), **fields)


def nearest_plan(request: PlanRequest, reach: ReachableGoals | None = None) -> Plan:
    """Return the plan to drive to the nearest affordable place; see `next_plan`.

    If no place is affordable, the plan has a reason and no waypoint.
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
    """Route of one probe, or of several probes together.

    Each probe continues from its place on the route. A probe that is off the route, or at the place
    of another probe, moves to the longest unread stretch. If another probe is about to drive this
    stretch, the probe starts in the middle, otherwise at the beginning.

    Args:
        route: places in order, visited or not.
        aims: for each probe under way, its waypoint and the index of its goal in `route`.
    """

    route: tuple[int, ...]
    aims: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, state: Any) -> Course | None:
        """Return the course in the state of a policy; None = no course yet."""
        if state is None:
            return None
        return cls(
            tuple(int(place) for place in state["route"]),
            tuple((int(place), int(number)) for place, number in state["aims"]),
        )

    def to_state(self) -> dict[str, Any]:
        """Return the course as JSON-serialisable data."""
        return {"route": list(self.route), "aims": [list(aim) for aim in self.aims]}

    def next_plan(
        self, request: PlanRequest, reach: ReachableGoals | None = None
    ) -> tuple[Plan | None, Course]:
        """Return the plan that continues along the route (see `next_plan`), and the new course."""
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
        """Return the index in the route at which the requesting probe continues."""
        at, pending, aims = request.at, request.under_way, dict(self.aims)
        aim = aims.get(-1 if at is None else at)
        if aim is not None and unread[self.route[aim]]:
            return aim
        numbers = {place: number for number, place in enumerate(self.route)}
        # A claim is the index where another probe continues, not a place that a probe crosses.
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
        """Yield (begin, end, driven) of each unread stretch; driven = a probe heads for `begin`."""
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
    """Return the drive to the next waypoint, and the index in `route` of the goal."""
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
    """Drives of a probe toward a place of its route; see `next_plan` for the arguments."""

    def __init__(self, request: PlanRequest, reach: ReachableGoals | None) -> None:
        reach = reachable_goals(request) if reach is None else reach
        self.request, self.topology = request, request.topology
        self.ways = reach.ways
        self.unread = unread_of(request)
        self.known = request.belief.observed.copy()
        self.known[list(request.pending)] = True
        self.affordable = np.zeros(self.topology.n, dtype=np.bool_)
        self.affordable[reach.locations] = True
        self.affordable &= self.unread
        self.constraint = BudgetConstraint(self.topology, request.remaining)

    def toward(self, goal: int, along: Collection[int] = ()) -> _Step | None:
        """Return the drive to the next waypoint toward a goal; None = it exceeds the budget."""
        if not self.affordable[goal]:
            return None
        at, readings = self.request.at, self.request.remaining.readings
        if at is not None and at != goal and self.affordable[at] and self.ways.metres[at] == 0.0:
            if readings is None or at in along:
                goal = at  # a reading at this place needs no drive
        way = self.ways.route(goal)
        if way is None:
            return None
        number = self._first_stop(way.path)
        stop = way.path[number]
        try:  # preferably drive through observed places
            unavailable = self.request.unavailable
            straight = self._allowed(self.topology.route(at, stop, self.known, unavailable))
        except PlanningError:
            straight = None
        if straight is not None:
            return straight
        path = way.path[: number + 1]
        cost = Cost(float(self.ways.metres[stop]), float(self.ways.seconds[stop]))
        return self._allowed(Route(path, cost))

    def after(self, step: _Step, number: int, route: Sequence[int]) -> tuple[int, ...]:
        """Return the places that get a reading along the rest of a route, within the budget.

        The rest of the route ends at the first pending place.
        """
        unread, remaining = self.unread.copy(), self.request.remaining
        unread[list(step.route.path)] = False
        pending = frozenset(self.request.under_way)
        goals = takewhile(lambda goal: goal not in pending, (*route[number:], *route[:number]))
        left = remaining.minus(readings=step.reads, cost=step.route.cost)
        distances, here = distances_of(self.topology, unit_of(remaining)), step.route.path[-1]
        return read_along(goals, here, unread, left, distances, self.constraint, MOST_SHOWN)

    def _first_stop(self, path: Sequence[int]) -> int:
        if self.topology.free:
            return len(path) - 1
        fresh = [i for i, place in enumerate(path) if self.unread[place]]
        near = [i for i in fresh if self.ways.metres[path[i]] <= self.topology.reach]
        return near[-1] if near else fresh[0]

    def _allowed(self, route: Route) -> _Step | None:
        reads = sum(bool(self.unread[place]) for place in set(route.path))
        if not self.constraint.allows(route.path[-1], route.cost, reads=reads):
            return None
        return _Step(route, reads)


def _plan(step: _Step, after: tuple[int, ...], **fields: Any) -> Plan:
    way, waypoints = step.route, (step.route.path[-1], *after)
    return Plan(waypoints, path=way.path, cost=way.cost, horizon=len(waypoints), **fields)
