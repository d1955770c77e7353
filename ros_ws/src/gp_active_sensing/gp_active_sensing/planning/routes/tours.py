"""Routes for the whole remaining budget: simulation, search and improvement."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from gp_active_sensing.planning.budget import BudgetConstraint, ReachableGoals, least_of
from gp_active_sensing.planning.map_error import (
    MapVariance,
    exchange,
    greedy_design,
    joining,
    leaving,
)
from gp_active_sensing.planning.request import PlanRequest, Sorties
from gp_active_sensing.planning.routes.boustrophedon import CORNERS, Ground, Rows, rows_of
from gp_active_sensing.planning.routes.distances import distances_of, unit_of
from gp_active_sensing.planning.routes.follow import fits, trip_of
from gp_active_sensing.planning.routes.ordering import short_tour
from gp_active_sensing.types import BoolArray, Budget, Cost, FloatArray, IntArray, Route
from gp_active_sensing.util.ties import by_size, first_best

_SLACK = 1.0 + 1e-9
"""Factor that raises the metres and seconds of a route, because sums of costs are rounded."""
_BEGIN = 12
"""Default number of places in the first tour that is evaluated."""
_TRIED = 6
"""Largest number of insertions, and of removals, that one improvement step tries."""
_WORTH = 1e-6
"""Smallest relative reduction of the remaining variance for which a changed route is kept."""


@dataclass(frozen=True)
class FeasibleRoute:
    """Route that fits into a budget, together with the drive to the end place.

    Args:
        stops: stops of the route, in order.
        reads: places that get their first reading on the route, in order.
        cost: cost of the route without the drive to the end place.
        value: reduction of the map's mean variance by the readings.
        whole: True if the route contains all requested stops.
    """

    stops: tuple[int, ...]
    reads: tuple[int, ...]
    cost: Cost
    value: float
    whole: bool


class RouteDriver:
    """Simulation of routes from the place of a probe, within its budget.

    Args:
        request: request with the map and the place of the probe.
        reach: routes from the place of the probe.
        unread: (n,) mask of the places that may get their first reading.
        budget: remaining budget; with sorties, the budget of the first sortie.
        field: effect of readings on the error of the map.
        group_of: (n,) for each place, the index of its representative in ``field.places``; -1 =
            readings there have no effect. Readings with the same representative count once.
        sorties: budgets of the next batteries. Each sortie of a route ends at the end place.
    """

    def __init__(
        self,
        request: PlanRequest,
        reach: ReachableGoals,
        unread: BoolArray,
        budget: Budget,
        field: MapVariance,
        group_of: IntArray,
        sorties: Sorties | None = None,
    ) -> None:
        self.topology = request.topology
        self.distances = distances_of(self.topology, unit_of(budget))
        self.field = field
        self.budget = budget
        self.at = request.at
        self.unread = unread
        self.evaluated = 0
        self._ways = reach.ways
        self._sorties = None if budget.end is None else sorties
        self._flags = unread.tolist()
        self._constraint = BudgetConstraint(self.topology, budget)
        self.group_of = group_of

    def restrict_to(self, budget: Budget) -> None:
        """Replace the budget of the driver."""
        self.budget = budget
        self._constraint = BudgetConstraint(self.topology, budget)

    def needs(self, route: FeasibleRoute) -> Budget:
        """Return the part of the budget that a route and the drive to the end place need."""
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

    def drive(self, stops: Sequence[int]) -> FeasibleRoute:
        """Return the route along some stops with its value; see `drive_only`."""
        return self.valued(self.drive_only(stops))

    def valued(self, route: FeasibleRoute) -> FeasibleRoute:
        """Return the route with its value."""
        self.evaluated += 1
        reads = self.which(route.reads)
        stops = self.which(self.stops_of(route.reads)) if self.field.sampled else reads
        return replace(route, value=self.field.value(reads, stops))

    def stops_of(self, reads: Sequence[int]) -> list[int]:
        """Return the places where a probe stops on a route, in order.

        Between two stops, the probe drives at most the distance `Topology.reach`.
        """
        reach, points = self.topology.reach, self.topology.points
        if self.topology.free or not reach:
            return list(reads)
        found: list[int] = []
        here, metres, last = self.at, 0.0, self.at
        for place in reads:
            step = 0.0 if last is None else float(np.linalg.norm(points[place] - points[last]))
            if last != here and last is not None and metres + step > reach:
                found.append(last)
                here, metres = last, 0.0
            last, metres = place, metres + step
        return found if last is None or last == here else [*found, last]

    def drive_only(self, stops: Sequence[int]) -> FeasibleRoute:
        """Return the affordable route along some stops, without its value.

        A stop that gets a reading earlier on the route is skipped. On a map with moves, the probe
        drives toward an unaffordable stop as far as the budget allows. With sorties, unaffordable
        stops move to the next sortie, and the cost contains the drives to the end place.
        """
        first = self._drive(stops, self.at, {}, self._constraint)
        if self._sorties is None or first.whole:
            return first
        reads, kept, cost = dict.fromkeys(first.reads), [*first.stops], first.cost
        last, end = first, self.budget.end
        left = self._sorties.whole.minus(readings=len(reads), cost=first.cost)
        while not last.whole and end is not None:
            at = last.stops[-1] if last.stops else self.at if last is first else end
            home = None if at is None else self._constraint.way_home(at, left)
            if home is None or not left.affords(home.cost, readings=0):
                break
            left = left.minus(cost=home.cost)
            constraint = BudgetConstraint(self.topology, least_of(self._sorties.fresh, left))
            constraint.ways_home = self._constraint.ways_home
            last = self._drive([s for s in stops if s not in reads], end, reads, constraint)
            if not last.reads:
                break
            left = left.minus(readings=len(last.reads), cost=last.cost)
            reads.update(dict.fromkeys(last.reads))
            cost = cost.plus(home.cost).plus(last.cost)
            kept += last.stops
        return FeasibleRoute(tuple(kept), tuple(reads), cost, 0.0, last.whole)

    def _drive(
        self,
        stops: Sequence[int],
        at: int | None,
        before_it: Mapping[int, None],
        constraint: BudgetConstraint,
    ) -> FeasibleRoute:
        """Return the route of one sortie; `before_it` are the places read in earlier sorties."""
        flags, own = self._flags, not before_it
        metres = seconds = 0.0
        reads: dict[int, None] = {}
        kept: list[int] = []
        whole = True
        if own and at is not None and flags[at] and self._ways.metres[at] == 0.0:
            if constraint.allows(at, Cost(0.0, 0.0)):
                reads[at] = None
        for stop in stops:
            if stop in reads:
                continue
            leg = self._leg(at, stop, first=own and not kept)
            if leg is None:
                whole = False
                continue
            before = Cost(metres, seconds)
            goal, fresh = stop, self._fresh(leg, reads, before_it)
            cost = before.plus(leg.cost)
            if not constraint.allows(goal, cost, reads=len(reads) + len(set(fresh))):
                whole = False
                first = own and not kept
                part = self._part(at, fresh, before, len(reads), first=first, within=constraint)
                if part is None:
                    continue
                goal, leg = part
                fresh = self._fresh(leg, reads, before_it)
            at, (metres, seconds) = goal, before.plus(leg.cost)
            reads.update(dict.fromkeys(fresh))
            kept.append(goal)
        return FeasibleRoute(tuple(kept), tuple(reads), Cost(metres, seconds), 0.0, whole)

    @property
    def _remaining(self) -> Budget:
        return self.budget if self._sorties is None else self._sorties.whole

    def most_stops(self, most: int) -> int:
        """Return an upper bound on the number of places of a route. The bound is at most `most`."""
        # The bound uses the least distance between two places.
        metric = self.distances.by == "metres"
        left = self._remaining.metres if metric else self._remaining.seconds
        places = self.field.places
        if left is None or len(places) < 2:
            return most
        points = self.topology.points[places]
        apart = float(np.asarray(cKDTree(points).query(points, k=2)[0])[:, 1].min())
        least = apart * self.distances.least_per_metre
        return most if least <= 0.0 else min(most, 2 + math.floor(left / least))

    def may_last(self, places: IntArray) -> bool:
        """Return False if a lower bound on the cost of visiting the places exceeds the budget."""
        reads = int(np.count_nonzero(self.unread[places]))
        return self._remaining.affords(self.distances.at_least(places), reads)

    def lasts(self, route: Sequence[int]) -> bool:
        """Return whether a whole route fits into the budget; see `drive_only`."""
        if self._sorties is not None:
            return self.drive_only(self.distances.corners(route)).whole
        at, by = self.at, self.distances.by
        here = at is not None and self._flags[at] and self._ways.metres[at] == 0.0
        route = [place for place in route if not (here and place == at)]
        trip = trip_of(self.topology, route, at, self.unread, by, self._ways)
        if trip is not None and here and at not in trip.path:
            trip = replace(trip, reads=trip.reads + 1)
        return fits(trip, self._constraint)

    def costs_to_end(self, places: IntArray) -> FloatArray | None:
        """Return the costs (k,) from `places` to the end place; inf = no route; None = no end."""
        home = self._constraint.costs_home(self.distances.by)
        return None if home is None else home[places]

    def which(self, reads: Sequence[int]) -> IntArray:
        """Return the indices in ``field.places`` of the representatives of some places."""
        numbers = np.unique(self.group_of[np.array(reads, dtype=np.int64)])
        return numbers[numbers >= 0]

    def _fresh(self, leg: Route, reads: Container[int], earlier: Container[int]) -> list[int]:
        flags = self._flags
        return [p for p in leg.path if flags[p] and p not in reads and p not in earlier]

    def _part(
        self,
        at: int | None,
        fresh: list[int],
        before: Cost,
        reads: int,
        *,
        first: bool,
        within: BudgetConstraint,
    ) -> tuple[int, Route] | None:
        """Return the farthest affordable place of `fresh`, and the route to this place.

        `fresh` are the unread places of a leg, in order.
        """
        low, high = 0, len(fresh) - 1  # the last place is unaffordable
        found: tuple[int, Route] | None = None
        while low < high:
            middle = (low + high) // 2
            goal = fresh[middle]
            leg = self._leg(at, goal, first=first)
            if leg is None:
                high = middle
            elif within.allows(goal, before.plus(leg.cost), reads=reads + middle + 1):
                found, low = (goal, leg), middle + 1
            else:
                high = middle
        return found

    def _leg(self, at: int | None, stop: int, *, first: bool) -> Route | None:
        if first or at is None:
            return self._ways.route(stop)
        return self.distances.way(at, stop)


def best_of(routes: Sequence[FeasibleRoute]) -> FeasibleRoute | None:
    """Return the first of the routes with the largest value; None = no routes."""
    if not routes:
        return None
    return routes[int(first_best(np.array([route.value for route in routes])))]


def largest(
    driver: RouteDriver,
    order: Sequence[int],
    most: int,
    more: Callable[[], bool],
    first: int | None = None,
) -> FeasibleRoute | None:
    """Return the best of the evaluated routes through the first k places of `order`.

    A route visits the k places in the order of a short tour. Doubling and bisection search the
    largest affordable k.

    Args:
        driver: driver of the probe, with the budget.
        order: places in the order of their importance.
        most: largest number of places.
        more: function that returns whether another tour may be evaluated.
        first: number of places of the first tour; None = `most`.
    """
    low, high = 0, min(most, len(order))
    count = high if first is None else min(first, high)
    best: FeasibleRoute | None = None
    doubling = True
    while low < high:
        if best is not None and not more():
            break
        found = in_short_order(driver, order[:count])
        if best is None or found.value > best.value:
            best = found
        doubling = doubling and found.whole
        if found.whole:
            low = count
        else:
            high = count - 1
        count = min(2 * low, high) if doubling else (low + high + 1) // 2
    return best


def in_short_order(driver: RouteDriver, places: Sequence[int]) -> FeasibleRoute:
    """Return the route through some places in the order of a short tour to the end place."""
    chosen = np.array(places, dtype=np.int64)
    tour = short_tour(
        driver.distances.between(chosen),
        None if driver.at is None else driver.distances.row(driver.at)[chosen],
        driver.costs_to_end(chosen),
    )
    return driver.drive(chosen[tour.order].tolist())


def design_routes(
    driver: RouteDriver, most: int, more: Callable[[], bool], first: int | None = None
) -> list[FeasibleRoute]:
    """Return routes through the places of a greedy design; [] = no place reduces the map error.

    The first evaluated route has `first` places. Others are evaluated while `more` returns True.
    """
    field = driver.field
    most = driver.most_stops(most)
    if first is not None and first < most:
        begin = field.places[greedy_design(field, first)].tolist()
        if not begin:
            return []
        tour = in_short_order(driver, begin)
        if not more():
            return [tour]
        if not tour.whole:
            fewer = largest(driver, begin, len(begin) - 1, more)
            return [tour] if fewer is None else [tour, fewer]
    chosen = greedy_design(field, most)
    if not chosen.size:
        return []
    budget = driver.budget
    if driver.topology.free and budget.metres is None and budget.seconds is None:  # in any order
        chosen = exchange(field, chosen, more)
    elif first is None:
        first = _BEGIN
    found = largest(driver, field.places[chosen].tolist(), most, more, first)
    return [] if found is None else [found]


def evenly_spaced(driver: RouteDriver, more: Callable[[], bool]) -> list[FeasibleRoute]:
    """Return the densest affordable evenly spaced route of each family; [] = a map of roads.

    A family has one direction, one inset as a fraction of the spacing, and one first corner. The
    affordable part of the next denser route is also returned. The search ends when `more` returns
    False.
    """
    topology = driver.topology
    if topology.roads:
        return []
    wanted = driver.group_of >= 0
    ground, by = Ground(topology, wanted), driver.distances.by
    families = list(ground.evenly())
    if topology.free:  # without moves, a probe observes only its goals
        families += list(ground.evenly(sparse=True))
    found: list[FeasibleRoute] = []
    for family in families:
        for corner in range(CORNERS):
            if found and not more():
                return found

            def route(rows: Rows, corner: int = corner) -> tuple[int, ...]:
                return rows_of(ground, replace(rows, corner=corner), by)

            low, high = 0, len(family)  # the sparsest route may be incomplete
            while high - low > 1 and more():
                middle = (low + high) // 2
                fits = driver.may_last(ground.places_of(family[middle]))
                if fits and driver.lasts(route(family[middle])):
                    low = middle
                else:
                    high = middle
            for number in (low, high):
                if number == low or (high < len(family) and high - low == 1):
                    found.append(driver.drive(driver.distances.corners(route(family[number]))))
    return found


def improved(driver: RouteDriver, route: FeasibleRoute, more: Callable[[], bool]) -> FeasibleRoute:
    """Improve a route by inserted and replaced stops, and return the new route.

    The gain of a change is first estimated for each place alone. The most promising changes are
    evaluated exactly while `more` returns True. The first better route is taken, and the search
    begins again from it.
    """
    total = float(driver.field.weights @ driver.field.total)
    while more():
        least = _WORTH * max(total - route.value, 0.0)
        for stops in _changes(driver, route):
            if not more():
                return route
            trial = driver.drive(stops)
            if trial.value > route.value + least:
                route = trial
                break
        else:
            return route
    return route


def _changes(driver: RouteDriver, route: FeasibleRoute) -> Iterable[list[int]]:
    """Yield lists of stops with an inserted or a replaced stop, the most promising first."""
    field, stops = driver.field, list(route.stops)
    if not stops:
        return
    which = driver.which(route.reads)
    gains = joining(field, which)
    order = by_size(gains)
    wanted = field.places[order[gains[order] > 0.0][: 4 * _TRIED]]
    if not wanted.size:
        return
    rows = _rows(driver, stops, np.append(stops, wanted))
    detours, where = _insertions(driver, rows, stops, wanted)
    gain = gains[order][: len(wanted)]
    # Places are ranked by the gain per cost of the detour.
    known = detours[np.isfinite(detours)]
    if not known.size:
        return
    scale = max(float(np.median(known)), 1e-9)
    worth = np.where(np.isfinite(detours), gain / (detours + 0.1 * scale), -np.inf)
    best = by_size(worth)[:_TRIED]
    for i in best.tolist():
        if np.isfinite(worth[i]):
            yield [*stops[: where[i]], int(wanted[i]), *stops[where[i] :]]
    lost = np.zeros(len(field.places))
    lost[which] = leaving(field, which)
    saved = _savings(rows, stops)
    numbers = driver.group_of[stops]
    loss = np.where(numbers >= 0, lost[numbers], 0.0)
    cheap = by_size(-(loss / np.maximum(saved, 1e-9 * scale + 1e-12)))[:_TRIED]
    for i in best.tolist():
        for j in cheap.tolist():
            if np.isfinite(worth[i]) and stops[j] != int(wanted[i]):
                rest = [*stops[:j], *stops[j + 1 :]]
                at = int(where[i]) - (1 if where[i] > j else 0)
                yield [*rest[:at], int(wanted[i]), *rest[at:]]


def _insertions(
    driver: RouteDriver, rows: FloatArray, stops: list[int], wanted: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return the least detour (w,) to each wanted place, and where (w,) in `stops` to insert it."""
    to = rows[:, len(stops) :]
    back = driver.distances.between(wanted, stops).T
    extra = np.vstack([to[:-1] + back - np.diagonal(rows)[: len(stops), None], to[-1:]])
    where = np.argmin(extra, axis=0)
    return np.maximum(extra[where, np.arange(len(wanted))], 0.0), where


def _rows(driver: RouteDriver, stops: list[int], places: IntArray) -> FloatArray:
    """Return the costs (k + 1, m) from the start and each stop to `places`.

    If the probe has no start yet, the costs from the start are 0.
    """
    start = np.zeros(len(places)) if driver.at is None else driver.distances.row(driver.at)[places]
    return np.vstack([start, driver.distances.between(stops, places)])


def _savings(rows: FloatArray, stops: list[int]) -> FloatArray:
    legs = np.diagonal(rows)[: len(stops)]
    without = np.diagonal(rows, 1)[: len(stops) - 1]
    return np.asarray(np.maximum(legs + np.append(legs[1:] - without, 0.0), 0.0))
