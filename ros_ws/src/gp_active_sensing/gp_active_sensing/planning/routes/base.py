"""Policies that plan a route and follow it, and passes over the map.

If the mission ends at a target error of the map, the probe drives in passes. A pass is a route over
the whole map. The budget of a pass is the least budget for which the forecast error of the map
meets the target.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gp_active_sensing.belief.aim import FEWEST, AimForecast, not_seen
from gp_active_sensing.planning.base import PolicyState, check_fit
from gp_active_sensing.planning.beliefs import representatives
from gp_active_sensing.planning.budget import ReachableGoals, reachable_goals
from gp_active_sensing.planning.explain import on_route
from gp_active_sensing.planning.map_error import greedy_design, map_error_of, thinned
from gp_active_sensing.planning.request import PlanRequest, TargetError
from gp_active_sensing.planning.routes.follow import Course, nearest_plan, unread_of
from gp_active_sensing.planning.routes.tours import FeasibleRoute, RouteDriver, in_short_order
from gp_active_sensing.types import BoolArray, Budget, IntArray, Plan
from gp_active_sensing.util.ties import first_best

_CANDIDATES = 4
"""Largest number of hyperparameter candidates in `pass_of`."""
_PLACES = 500
"""Largest number of places that represent the map in `pass_of`."""
_TINY = 1e-300


@dataclass(frozen=True)
class Pass:
    """Pass: a route over the whole map with a budget of its own.

    Args:
        budget: part of the remaining budget for the pass, including the drive to the end place.
        stops: required stops; () = no required stops. If the map misses its targets only in
            parts that have no reading, there is one stop in each of these parts.
    """

    budget: Budget
    stops: tuple[int, ...] = ()


def pass_of(
    request: PlanRequest, reach: ReachableGoals, unread: BoolArray, spent: Callable[[], bool]
) -> Pass:
    """Return the next pass for a request with target errors; `unread` (n,) is from `unread_of`."""
    belief, topology = request.belief, request.topology
    goals = reach.locations[unread[reach.locations]]
    if not request.sought or not goals.size:
        return Pass(request.remaining)
    remaining = request.remaining
    if remaining.readings is None and remaining.metres is None and remaining.seconds is None:
        remaining = replace(remaining, readings=len(goals))
    places, group_of = thinned(topology, goals, _PLACES)
    field = map_error_of(
        belief,
        topology,
        places,
        pending=request.pending,
        candidates=_CANDIDATES,
        others=request.others,
        weight=request.weight,
    )
    driver = RouteDriver(request, reach, unread, remaining, field, group_of)
    most = request.limit.expansions

    def more() -> bool:
        return not spent() and (most is None or driver.evaluated < most)

    return next_pass(driver, request.sought, _CANDIDATES, more, elsewhere=request.pending)


def next_pass(
    driver: RouteDriver,
    sought: Sequence[TargetError],
    candidates: int,
    more: Callable[[], bool],
    *,
    elsewhere: Collection[int] = (),
    probes: int = 1,
) -> Pass:
    """Return the next pass over the map; its budget is a part of the driver's budget.

    A tour visits one place in each part without a reading (see `not_seen`), and the first places of
    a greedy design. It has at most as many places as have been observed, or as there are parts. The
    budget of the pass is the cost of the shortest tour whose forecast errors meet the targets (see
    `AimForecast`). Doubling and bisection find this tour. If no tour meets the targets, the budget
    is the cost of the longest tour. If that tour is unaffordable, it is the whole budget.

    With fewer than `FEWEST` observed places, or while the variances of a field are unknown, there
    is no forecast. The tour then visits only the parts without a reading, or `FEWEST` places if
    there is no such part.

    Args:
        driver: driver of the probe, with the remaining budget and the map error.
        sought: target errors, at least one. The mission ends when all are met.
        candidates: largest number of hyperparameter candidates; the driver's map error uses the
            same number.
        more: function that returns whether another tour may be evaluated.
        elsewhere: places that other probes are going to observe.
        probes: number of probes without a route, including this probe. Each probe visits only the
            parts without a reading that are nearest to the probe.
    """
    field, whole = driver.field, driver.budget
    most = len(field.places)
    if whole.readings is not None:
        most = min(most, whole.readings)
    read = _read(sought)
    unknown = read < FEWEST or not all(one.belief.settled for one in sought)
    forecasts = [_Forecast(driver, one, candidates) for one in sought]
    parts = _middles(driver, _open_parts(driver, sought, elsewhere))
    parts = _nearest(driver, parts, min(most, math.ceil(len(parts) / probes)))
    order = parts if parts else _design(driver, parts, FEWEST)

    def enough(route: FeasibleRoute) -> bool:
        return all(forecast.met(route) for forecast in forecasts)

    first = in_short_order(driver, order)
    if unknown or not first.whole:
        return Pass(driver.needs(first) if first.whole else whole)
    if enough(first):
        only = bool(parts) and all(forecast.met(None) for forecast in forecasts)
        return Pass(driver.needs(first), first.stops if only else ())
    most = min(most, max(read, len(order)))
    low, high, count = len(order), most, min(2 * len(order), most)
    met: FeasibleRoute | None = None
    short = first  # the largest affordable tour that misses a target
    doubling = True
    while low < high - (met is not None) and more():
        if count > len(order):
            order = _design(driver, parts, count)
            if len(order) < count:  # no further place reduces the error
                high = most = count = len(order)
                if count <= low:
                    break
        route = in_short_order(driver, order[:count])
        if not route.whole:
            high = count - 1
        elif enough(route):
            met, high = route, count
        else:
            short, low = route, count
        doubling = doubling and low == count
        count = min(2 * low, high) if doubling else (low + high + (met is None)) // 2
    if met is not None:
        return Pass(driver.needs(met))
    return Pass(whole if low >= high and low < most else driver.needs(short))


class _Forecast:
    """Forecast of the map error of a quantity after a route; see `AimForecast`."""

    def __init__(self, driver: RouteDriver, sought: TargetError, candidates: int) -> None:
        number, belief, aim = sought
        which, shares = representatives(belief, candidates)
        self._found = AimForecast(aim, belief, driver.topology.weights, which, shares)
        self._driver, self._field = driver, driver.field.of(number)
        self._sampled = bool(driver.field.parts) and driver.field.parts[number].sampled

    def met(self, route: FeasibleRoute | None) -> bool:
        """Return whether the error meets the target after a route; None = without a route."""
        field, driver = self._field, self._driver
        if route is None:
            return self._found.met(np.ones(len(field.weights)))
        reads = driver.stops_of(route.reads) if self._sampled else route.reads
        left = field.total - field.values(driver.which(reads))
        return self._found.met(np.clip(left / np.maximum(self._found.total, _TINY), 0.0, 1.0))


def _read(sought: Sequence[TargetError]) -> int:
    return min(int(np.count_nonzero(one.belief.readings)) for one in sought)


def parts_only(
    driver: RouteDriver, sought: Sequence[TargetError], candidates: int, elsewhere: Collection[int]
) -> bool:
    """Return whether all target errors are met outside of the parts that have no reading."""
    if _read(sought) < FEWEST or not all(one.belief.settled for one in sought):
        return False
    if not _open_parts(driver, sought, elsewhere):
        return False
    return all(_Forecast(driver, one, candidates).met(None) for one in sought)


def _open_parts(
    driver: RouteDriver, sought: Sequence[TargetError], elsewhere: Collection[int]
) -> list[IntArray]:
    """Return the parts of the map that have no reading and that no other probe will observe."""
    others = np.fromiter(elsewhere, dtype=np.int64)
    found = {int(part[0]): part for one in sought for part in not_seen(one.belief, driver.topology)}
    return [part for part in found.values() if not np.isin(others, part).any()]


def _nearest(driver: RouteDriver, places: list[int], count: int) -> list[int]:
    if driver.at is None or count >= len(places):
        return places[:count]
    away = driver.distances.row(driver.at)[places]
    return [places[i] for i in sorted(np.argsort(away, kind="stable")[:count].tolist())]


def _middles(driver: RouteDriver, parts: list[IntArray]) -> list[int]:
    """Return, for each part that contains a goal, the goal nearest to the part's middle."""
    found: list[int] = []
    points = driver.topology.points
    for part in parts:
        goals = np.intersect1d(part, driver.field.places)
        if goals.size:
            away = np.linalg.norm(points[goals] - points[part].mean(axis=0), axis=1)
            found.append(int(goals[first_best(-away)]))
    return found


def _design(driver: RouteDriver, begin: list[int], count: int) -> list[int]:
    """Return at most `count` places: the places `begin`, and then greedily chosen places."""
    chosen = driver.field.places[greedy_design(driver.field, count)].tolist()
    return list(dict.fromkeys([*begin, *chosen]))[:count]


@dataclass(frozen=True)
class Ask:
    """Task to plan a route.

    Args:
        request: request; its remaining budget is the budget of the route.
        reach: goals that the probe can reach.
        unread: (n,) mask of the places that may be chosen. Crossing such a place costs a reading.
        spent: function that returns whether the time of this decision is over.
        earlier: places observed in earlier passes; the route should lie between these places.
    """

    request: PlanRequest
    reach: ReachableGoals
    unread: BoolArray
    spent: Callable[[], bool]
    earlier: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlannedRoute:
    """Result of `RoutePolicy.build_route`.

    Args:
        places: places in the order of the visits.
        expanded: effort of the search in expansions, see `PlanLimit.expansions`.
        stopped: True if a limit ended the search.
    """

    places: tuple[int, ...]
    expanded: int = 1
    stopped: bool = False


class RoutePolicy(ABC):
    """Base class of policies that plan a route at the first decision, and follow it.

    When no place of the route can be visited any more, the probe visits the nearest places. If the
    mission ends at a target error of the map, each route is a `Pass`, and another pass follows. The
    state contains the route (see `Course`). A new policy overrides `build_route`.
    """

    crosses: ClassVar[bool] = True
    """True: the route to the next place may cross observed places."""
    several: ClassVar[bool] = True
    """True: the policy plans for several quantities."""
    repeats: ClassVar[bool] = False
    """True if the policy plans another route after the first route."""

    @staticmethod
    def explain(plan: Plan, names: Sequence[str]) -> str:
        """Return a sentence about the choice; see `ExplainingPolicy`."""
        return f"{on_route('Next on the route', plan, names)}."

    @property
    def in_passes(self) -> bool:
        """True if the budget determines how dense a route is. Passes are then possible."""
        return True

    @abstractmethod
    def build_route(self, ask: Ask) -> PlannedRoute:
        """Return the route to follow."""

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`."""
        limit, clock = request.limit, request.clock
        started = clock()
        check_fit(self, request.belief, request.topology)
        reach = reachable_goals(request)
        course, plan, built = Course.of(state), None, PlannedRoute(())
        if course is not None:
            plan, course = course.next_plan(request, reach)
        in_passes = bool(request.sought) and self.in_passes
        if plan is None and not reach.reason and (course is None or self.repeats or in_passes):

            def spent() -> bool:
                return limit.seconds is not None and clock() - started >= limit.seconds

            ask = Ask(request, reach, unread_of(request), spent)
            if in_passes and not spent():
                next_one = pass_of(request, reach, ask.unread, spent)
                earlier = tuple(np.flatnonzero(request.belief.observed).tolist())
                own = replace(request, remaining=next_one.budget)
                ask = replace(ask, request=own, earlier=earlier)
                built = PlannedRoute(next_one.stops)
            if not built.places:
                built = self.build_route(ask)
            plan, course = Course(built.places).next_plan(request, reach)
        if plan is None:
            plan = nearest_plan(request, reach)
        state = None if course is None else course.to_state()
        if not plan.waypoints:
            return plan, state
        seconds = clock() - started
        return replace(
            plan, expanded=built.expanded, deadline_hit=built.stopped, seconds=seconds
        ), state
