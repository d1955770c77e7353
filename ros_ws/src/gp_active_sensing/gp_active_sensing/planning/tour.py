"""Policy `tour`: a route for the remaining budget, planned again as the belief changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.planning.budget import ReachableGoals, least_of, reachable_goals
from gp_active_sensing.planning.explain import called, on_route
from gp_active_sensing.planning.map_error import map_error_of, targets_of, thinned
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.planning.routes.base import Pass, next_pass, parts_only
from gp_active_sensing.planning.routes.follow import nearest_plan, next_plan, unread_of
from gp_active_sensing.planning.routes.tours import (
    FeasibleRoute,
    RouteDriver,
    best_of,
    design_routes,
    evenly_spaced,
    improved,
)
from gp_active_sensing.types import BoolArray, Budget, Clock, IntArray, Plan, PlanLimit, RouteValue
from gp_active_sensing.util.ties import by_size

_ROWS = 0.5
"""Fraction of a decision's time that the search for evenly spaced routes may take."""
_FIRST = 12
"""Number of places in the first tour that is evaluated when time is short."""
_BRIEF = 0.4
"""Time limit below which a decision uses fewer hyperparameter candidates and places [s]."""
_FEWEST = 48
"""Smallest number of places that represent the map in a decision."""
_HURRY = 0.1
"""Fraction of a decision's time after which the search for tours starts with a small tour."""
_GROWTH = 3.0
"""Assumed factor by which a planning step takes longer if a tour has twice as many places."""
_LAST, _ROWS_OF, _DESIGN = "the previous route", "evenly spaced rows", "a tour of the best places"
_Left: TypeAlias = tuple[float | None, ...]
"""Remaining metres, seconds and readings of a budget; None = no such limit."""
_AT_ONCE, _PASS = "the best place for its way", "the next pass"


@dataclass(frozen=True)
class Tour:
    r"""Route for the whole remaining budget, with the smallest predicted error of the final map.

    The value of a route that observes the places A is the reduction of the map's mean variance,

    .. math:: \sum_\lambda b(\lambda) \operatorname{tr}\big(
        (C_{AA} + \sigma_e^2 I)^{-1} S_{AA} \big), \qquad S = C W C,

    W contains the weights of the places (`map.weights`). C is the posterior covariance. b are the
    weights of the hyperparameter candidates λ. :math:`\sigma_e^2` is the variance of the noise.
    The policy compares evenly spaced routes (not on roads), a short tour through greedily chosen
    places, and the rest of the previous route. It then inserts and replaces stops of the best
    route. After each reading, the policy improves the rest of the route. It searches for new routes
    when the metres, seconds or readings have decreased by a tenth since the last search.

    Every route, with the drive to the end place, obeys the limits on metres, seconds and readings.
    If neither metres nor seconds are limited, a route has at most 400 readings. Several probes
    share the readings, and each probe avoids the routes of the others. For several quantities, the
    value is the weighted mean of the relative reductions.
    """

    several: ClassVar[bool] = True
    candidates: ClassVar[int] = 4
    """Largest number of hyperparameter candidates that are used for a quantity."""
    places: ClassVar[int] = 500
    """Largest number of places that represent the map."""
    longest: ClassVar[int] = 400
    """Largest number of readings of a route if neither metres nor seconds are limited."""
    trials: ClassVar[int] = 60
    """Largest number of changed routes that a decision evaluates."""
    REMOVED: ClassVar[Mapping[str, str]] = {
        "trials": "is removed; 60 routes are tried, within the limit of a decision"
    }
    WERE: ClassVar[Mapping[str, Any]] = {"trials": 60}
    renew: ClassVar[float] = 0.1
    """Fraction of a budget limit that is used between two searches for new routes."""
    margin: ClassVar[float] = 0.01
    """Smallest relative reduction of the remaining variance for which a new route is chosen."""

    crosses = True
    """True: the route to the next place may cross observed places."""

    @staticmethod
    def explain(plan: Plan, names: Sequence[str]) -> str:
        """Return sentences about the chosen route and the other routes; see `ExplainingPolicy`."""
        start = on_route("Next on the best route found", plan, names)
        if not plan.routes:
            return f"{start}."
        own, *others = plan.routes
        found = f"{start}. This route leaves {_percent(own)} of the map's variance ({own.kind})."
        if others:
            words = (
                f"{_percent(r)} ({r.kind}, first place {called(names[r.first])})" for r in others
            )
            found += f" Other routes: {', '.join(words)}."
        return found

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`.

        One evaluated route counts as one expansion. If the limit allows no computation, the probe
        continues its previous route. Without such a route, the plan is a tour of a few places.
        """
        belief, topology, at = request.belief, request.topology, request.at
        others, remaining, clock = request.under_way, request.remaining, request.clock
        started = clock()
        reach, unread = reachable_goals(request), unread_of(request)
        standing = [place for place in request.waiting if place is not None]
        routes = _Routes.of(state, [*others, *standing])
        goals = self._goals(request, reach, unread)
        goals = goals[~np.isin(goals, [*routes.of_others(at), *standing])]
        if not goals.size:
            return nearest_plan(request, reach), routes.state()
        if _no_time(request.limit):
            mine = routes.mine(at)
            kept = next_plan(mine, request, reach=reach, deadline_hit=True)
            if kept is not None:
                left = _after(routes.remaining_of_pass(at), kept, unread)
                routes = routes.with_mine(at, kept.waypoints[0], mine, routes.renewed, left)
                return replace(kept, seconds=clock() - started), routes.state()
        elsewhere: Collection[int] = (*request.pending, *routes.of_others(at))
        if len(elsewhere) > self.places // 2:  # long routes of others, evenly thinned
            elsewhere, _ = thinned(topology, np.array(sorted(set(elsewhere))), self.places // 2)
        few, most = self._size(request.limit)
        places, group_of = thinned(topology, goals, most)
        error = map_error_of(
            belief,
            topology,
            places,
            pending=elsewhere,
            candidates=few,
            targets=targets_of(topology, most) if most < self.places else None,
            others=request.others,
            weight=request.weight,
        )
        share, sought = self._share(remaining, len(others) + len(request.waiting)), request.sought
        sorties = None if sought else request.sorties
        if sorties is not None:
            sorties = replace(sorties, whole=replace(sorties.whole, readings=share.readings))
        driver = RouteDriver(request, reach, unread, share, error, group_of, sorties)
        room = _ComputingLimits(driver, request.limit, clock, started)
        new: Pass | None = None
        if sought and (
            parts_only(driver, sought, few, elsewhere) or not _restrict_to_pass(driver, routes)
        ):
            new = next_pass(
                driver,
                sought,
                few,
                room.for_larger(),
                elsewhere=elsewhere,
                probes=1 + routes.without([*others, *standing]),
            )
            driver.restrict_to(new.budget)
            routes = replace(routes, renewed=None)
        renewed: _Left | None
        if new is not None and new.stops:
            route, renewed = driver.drive(new.stops), _remaining(driver)
            weighed = [(_PASS, route)]
        else:
            weighed, renewed = self._weigh(driver, routes, room)
            route = weighed[0][1]
        values: dict[str, Any] = {
            "lower": route.value,
            "upper": route.value,
            "expanded": driver.evaluated,
            "deadline_hit": room.hit,
            "routes": _promised(driver, weighed),
        }
        plan = next_plan(route.reads, request, reach=reach, **values)
        if plan is None:
            plan = nearest_plan(request, reach)
        if plan.waypoints:
            left = _after(driver.budget, plan, unread) if sought else None
            routes = routes.with_mine(at, plan.waypoints[0], route.reads, renewed, left)
        return replace(plan, seconds=clock() - started), routes.state()

    def _goals(self, request: PlanRequest, reach: ReachableGoals, unread: BoolArray) -> IntArray:
        goals = reach.locations[unread[reach.locations]]
        sorties, end = request.sorties, request.remaining.end
        if sorties is None or end is None or not goals.size:
            return goals
        then = replace(request, at=end, remaining=least_of(sorties.fresh, sorties.whole))
        later = reachable_goals(then).locations
        return np.union1d(goals, later[unread[later]])

    def _size(self, limit: PlanLimit) -> tuple[int, int]:
        # Time grows with the number of candidates and the square of the number of places.
        share = 1.0 if limit.seconds is None else min(1.0, limit.seconds / _BRIEF)
        if limit.expansions == 0:
            share = 0.0
        places = max(min(_FEWEST, self.places), int(math.sqrt(share) * self.places))
        return max(1, int(share * self.candidates)), places

    def _share(self, remaining: Budget, others: int) -> Budget:
        """Return the budget of one probe's route; the probes share the readings equally."""
        readings = remaining.readings
        if readings is not None:
            readings = math.ceil(readings / (1 + others))
        if remaining.metres is None and remaining.seconds is None:
            readings = self.longest if readings is None else min(readings, self.longest)
        return replace(remaining, readings=readings)

    def _weigh(
        self, driver: RouteDriver, routes: _Routes, room: _ComputingLimits
    ) -> tuple[list[tuple[str, FeasibleRoute]], _Left | None]:
        """Return the compared routes, and the remaining budget at the last search for new routes.

        The routes are pairs (kind, route), and the chosen route comes first.
        """
        mine = routes.mine(driver.at)
        last = driver.drive(driver.distances.corners(mine)) if mine else None
        last = last if last is not None and last.reads else None
        left, then = _remaining(driver), routes.renewed
        if last is not None and then is not None and _has_more(left, 1.0 - self.renew, then):
            return self._improved(driver, _LAST, last, room), then
        if last is not None and room.late():
            return [(_LAST, last)], then
        most = len(driver.field.places)
        if driver.budget.readings is not None:
            most = min(most, driver.budget.readings)
        designs: list[FeasibleRoute] = []
        if room.brief():
            designs = design_routes(driver, most, room.for_larger(), _FIRST)
            rows = [] if room.late() else evenly_spaced(driver, room.more)
            best = best_of(designs + rows)
        else:
            rows = evenly_spaced(driver, room.for_part(_ROWS))
            if not (rows and room.late()):
                if room.passed(_HURRY):
                    designs = design_routes(driver, most, room.for_larger(), _FIRST)
                else:
                    designs = design_routes(driver, most, room.more)
            best = best_of(rows + designs)
        found = {_LAST: last, _ROWS_OF: best_of(rows), _DESIGN: best_of(designs)}
        if best is None:
            best = found[_AT_ONCE] = _at_once(driver)
        if last is not None:
            total = float(driver.field.weights @ driver.field.total)
            if total - best.value >= (1.0 - self.margin) * (total - last.value):
                best = last
        kind = next(kind for kind, route in found.items() if route is best)
        others = [(k, route) for k, route in found.items() if route is not None and k != kind]
        others.sort(key=lambda other: -other[1].value)
        return self._improved(driver, kind, best, room)[:1] + others, left

    def _improved(
        self, driver: RouteDriver, kind: str, route: FeasibleRoute, room: _ComputingLimits
    ) -> list[tuple[str, FeasibleRoute]]:
        """Return the given route, preceded by an improved route if one was found."""
        better = improved(driver, route, room.for_more(self.trials))
        if better is route:
            return [(kind, route)]
        return [(f"{kind}, changed", better), (kind, route)]


def _promised(
    driver: RouteDriver, weighed: list[tuple[str, FeasibleRoute]]
) -> tuple[RouteValue, ...]:
    total = float(driver.field.weights @ driver.field.total)
    return tuple(
        RouteValue(kind, route.reads[0], len(route.reads), max(0.0, 1.0 - route.value / total))
        for kind, route in weighed
        if route.reads and total > 0.0
    )


def _percent(route: RouteValue) -> str:
    return f"{100.0 * route.left:.3g} %"


def _restrict_to_pass(driver: RouteDriver, routes: _Routes) -> bool:
    """Limit the driver to the rest of its pass. Return False if no reading fits into the pass."""
    left, mine = routes.remaining_of_pass(driver.at), routes.mine(driver.at)
    if left is None or not mine:
        return False
    whole = driver.budget
    driver.restrict_to(least_of(left, whole))
    if driver.drive_only(driver.distances.corners(mine)).reads:
        return True
    driver.restrict_to(whole)
    return False


def _after(left: Budget | None, plan: Plan, unread: BoolArray) -> Budget | None:
    if left is None:
        return None
    return left.minus(readings=sum(bool(unread[p]) for p in set(plan.path)), cost=plan.cost)


def _no_time(limit: PlanLimit) -> bool:
    return limit.seconds == 0.0 or limit.expansions == 0


@dataclass(frozen=True)
class _Routes:
    """Routes of the probes, keyed by the next waypoint of the probe.

    Args:
        by_goal: for each next waypoint, the places of the route from there on.
        renewed: remaining budget at the last search for new routes; None = no search yet.
        pending: waypoints of other probes, and places of probes that wait for a decision.
        passes: for each next waypoint of a pass, the remaining budget of the pass.
    """

    by_goal: dict[int, tuple[int, ...]]
    renewed: _Left | None
    pending: frozenset[int]
    passes: dict[int, Budget] = field(default_factory=dict)

    @classmethod
    def of(cls, state: PolicyState, pending: Collection[int]) -> _Routes:
        if state is None:
            return cls({}, None, frozenset(pending))
        routes = {int(goal): tuple(int(p) for p in reads) for goal, reads in state["routes"]}
        passes = {int(goal): Budget(*left) for goal, *left in state.get("passes", ())}
        renewed = None if state["renewed"] is None else tuple(state["renewed"])
        return cls(routes, renewed, frozenset(pending), passes)

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "routes": [[goal, list(reads)] for goal, reads in self.by_goal.items()],
            "renewed": None if self.renewed is None else list(self.renewed),
        }
        if self.passes:
            found["passes"] = [[goal, *vars(left).values()] for goal, left in self.passes.items()]
        return found

    def mine(self, at: int | None) -> tuple[int, ...]:
        goal = self._goal(at)
        return () if goal is None else self.by_goal[goal]

    def remaining_of_pass(self, at: int | None) -> Budget | None:
        goal = self._goal(at)
        return None if goal is None else self.passes.get(goal)

    def _goal(self, at: int | None) -> int | None:
        """Return the waypoint of the newest plan for the probe at `at`; None = unknown."""
        if at is not None and at in self.by_goal and at not in self.pending:
            return at
        if len(self.by_goal) == 1 and not self.pending:  # the only probe is elsewhere
            return next(iter(self.by_goal))
        return None

    def without(self, probes: Collection[int]) -> int:
        """Return how many probes have no route; `probes` has a waypoint or place for each probe."""
        return sum(place not in self.by_goal for place in probes)

    def of_others(self, at: int | None) -> tuple[int, ...]:
        return tuple(
            place
            for goal, reads in self.by_goal.items()
            if goal in self.pending and goal != at
            for place in reads
        )

    def with_mine(
        self,
        at: int | None,
        goal: int,
        reads: tuple[int, ...],
        renewed: _Left | None,
        left: Budget | None,
    ) -> _Routes:
        routes = {g: r for g, r in self.by_goal.items() if g in self.pending and g != at}
        passes = {g: b for g, b in self.passes.items() if g in routes and g != goal}
        if left is not None:
            passes[goal] = left
        return _Routes(routes | {goal: reads}, renewed, self.pending, passes)


class _ComputingLimits:
    def __init__(self, driver: RouteDriver, limit: PlanLimit, clock: Clock, started: float) -> None:
        self.hit = False
        self._driver = driver
        self._limit = limit
        self._clock = clock
        self._started = started
        self._deadline = None if limit.seconds is None else started + limit.seconds

    def more(self) -> bool:
        most = self._limit.expansions
        over = most is not None and self._driver.evaluated >= most
        over = over or (self._deadline is not None and self._clock() >= self._deadline)
        self.hit = self.hit or over
        return not over

    def brief(self) -> bool:
        seconds = self._limit.seconds
        return _no_time(self._limit) or (seconds is not None and seconds < _BRIEF)

    def late(self) -> bool:
        found = _no_time(self._limit) or self.passed(1.0)
        self.hit = self.hit or found
        return found

    def for_part(self, share: float) -> Callable[[], bool]:
        """Return a function like `more` that allows only a fraction of the decision's time."""

        def more() -> bool:
            over = self.passed(share)
            self.hit = self.hit or over
            return not over and self.more()

        return more

    def for_larger(self) -> Callable[[], bool]:
        """Return a function like `more` that also requires time for a tour of twice the size."""
        before = self._clock()

        def more() -> bool:
            nonlocal before
            now = self._clock()
            took, before = now - before, now
            if self._deadline is not None and now + _GROWTH * took >= self._deadline:
                self.hit = True
                return False
            return self.more()

        return more

    def passed(self, share: float) -> bool:
        seconds = self._limit.seconds
        return seconds is not None and self._clock() >= self._started + share * seconds

    def for_more(self, trials: int) -> Callable[[], bool]:
        most = self._driver.evaluated + trials
        return lambda: self._driver.evaluated < most and self.more()


def _has_more(left: _Left, share: float, then: _Left) -> bool:
    """Return whether more than the fraction `share` of each limit in `then` is left."""
    pairs = zip(left, then, strict=True)
    return all(now is None or was is None or now > share * was for now, was in pairs)


def _remaining(driver: RouteDriver) -> _Left:
    """Return the remaining budget; if nothing is limited, the number of unread places."""
    budget = driver.budget
    found = budget.metres, budget.seconds, budget.readings
    if found == (None, None, None):
        return None, None, int(np.count_nonzero(driver.unread))
    return found


def _at_once(driver: RouteDriver) -> FeasibleRoute:
    """Return the route to the place with the largest reduction of the map error per cost."""
    field = driver.field
    far = driver.distances.row(driver.at)[field.places] if driver.at is not None else 0.0
    scale = float(np.median(far)) + 1e-9 if driver.at is not None else 1.0
    worth = (field.weights @ field.gains()) / (np.asarray(far) + scale)
    order = by_size(np.where(np.isfinite(worth), worth, 0.0))
    return driver.drive([int(field.places[order[0]])])
