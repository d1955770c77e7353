"""Routes for all that is left of a budget: which there are, and how to make one better."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from gp_active_sensing.planning.map_design import exchange, greedy, joining, leaving
from gp_active_sensing.planning.routes.boustrophedon import CORNERS, Ground, Rows, rows_of
from gp_active_sensing.planning.routes.driven import Driven, RouteDriver
from gp_active_sensing.planning.routes.ordering import short_tour
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import by_size, first_best

__all__ = ["best_of", "corners", "design_routes", "evenly_spaced", "improved", "in_short_order"]

_TRIED = 6
"""Changes of a route that look best and are tried, before it is given up."""
_WORTH = 1e-6
"""Share of the mean variance left after a route that a change of it has to take off."""


def best_of(routes: Iterable[Driven]) -> Driven | None:
    """Return the route of the largest value, of equal ones the first; None of none."""
    found = list(routes)
    if not found:
        return None
    return found[int(first_best(np.array([route.value for route in found])))]


def largest(
    driver: RouteDriver,
    order: Sequence[int],
    most: int,
    more: Callable[[], bool],
    first: int | None = None,
) -> Driven | None:
    """Return the drive through as many of some places, the first ones first, as a budget allows.

    Each number of places is driven in the order of a short tour. Halving finds the largest one.

    Args:
        driver: knows the budget.
        order: places, the most wanted ones first.
        most: number of places at most.
        more: asked before each tour whether there is room for it.
        first: number of places of the first tour, doubled while the budget lasts; None = `most`.
    """
    low, high = 0, min(most, len(order))
    count = high if first is None else min(first, high)
    best: Driven | None = None
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


def in_short_order(driver: RouteDriver, places: Sequence[int]) -> Driven:
    """Return the drive through some places in the order of a short tour with the way home."""
    chosen = np.array(places, dtype=np.int64)
    tour = short_tour(
        driver.distances.between(chosen),
        None if driver.at is None else driver.distances.row(driver.at)[chosen],
        driver.costs_to_end(chosen),
    )
    return driver.drive(chosen[tour.order].tolist())


def design_routes(
    driver: RouteDriver, most: int, more: Callable[[], bool], first: int | None = None
) -> list[Driven]:
    """Return the drive through the places that a greedy design would read.

    Args:
        driver: knows field and budget.
        most: places at most.
        more: asked now and then whether there is room to go on.
        first: see `largest`.
    """
    field = driver.field
    chosen = greedy(field, most)
    if not chosen.size:
        return []
    if _any_order(driver):
        chosen = exchange(field, chosen, np.ones(len(field.places), dtype=np.bool_), more)
    found = largest(driver, field.places[chosen].tolist(), most, more, first)
    return [] if found is None else [found]


def evenly_spaced(driver: RouteDriver, more: Callable[[], bool]) -> list[Driven]:
    """Return evenly spaced routes: of each family the densest one that the budget lasts for.

    A family has one direction, one inset (as a share of the spacing) and one corner to begin in.
    The next denser one is added as far as the budget lasts; none on roads.

    Args:
        driver: knows field and budget.
        more: asked before each family whether there is room for it.
    """
    topology = driver.topology
    if topology.roads:
        return []
    wanted = np.zeros(topology.n, dtype=np.bool_)
    wanted[driver.field.places] = True
    ground, by = Ground(topology, wanted), driver.distances.by
    families = list(ground.evenly())
    if topology.free:  # a reading is taken where the probe goes, not on the way
        families += list(ground.evenly(sparse=True))
    found: list[Driven] = []
    for family in families:
        for corner in range(CORNERS):
            if found and not more():
                return found

            def driven(rows: Rows, corner: int = corner) -> Driven:
                return driver.drive_only(
                    corners(driver, rows_of(ground, replace(rows, corner=corner), by))
                )

            low, high = 0, len(family)  # the sparsest is driven as far as it goes
            best = driven(family[0])
            while high - low > 1:
                middle = (low + high) // 2
                trial = driven(family[middle])
                if trial.whole:
                    low, best = middle, trial
                else:
                    high = middle
            found.append(driver.valued(best))
            if high < len(family):
                found.append(driver.valued(driven(family[high])))
    return found


def _any_order(driver: RouteDriver) -> bool:
    """Return whether any set of places can be driven: nothing but their number is limited."""
    budget = driver.budget
    return driver.topology.free and budget.metres is None and budget.seconds is None


def corners(driver: RouteDriver, route: Sequence[int]) -> tuple[int, ...]:
    """Return the places that a route has to make for: those between are crossed on the way."""
    if driver.topology.free or len(route) < 3:
        return tuple(route)
    kept = [route[0]]
    start = 0
    for i in range(2, len(route)):
        way = driver.distances.way(route[start], route[i])
        if way is None or way.path != tuple(route[start + 1 : i + 1]):
            start = i - 1
            kept.append(route[start])
    kept.append(route[-1])
    return tuple(kept)


def improved(driver: RouteDriver, route: Driven, more: Callable[[], bool]) -> Driven:
    """Return a route that is not worse: stops are put in, taken out, and moved.

    What a change brings is estimated from each place alone; those that look best are driven and
    valued exactly, and the first one that is better is taken.

    Args:
        driver: knows field and budget.
        route: what to improve.
        more: asked before each trial whether there is room for it.
    """
    while more():
        found = _better(driver, route, more)
        if found is None:
            break
        route = found
    return route


def _better(driver: RouteDriver, route: Driven, more: Callable[[], bool]) -> Driven | None:
    left = float(driver.field.weights @ driver.field.total) - route.value
    least = _WORTH * max(left, 0.0)
    for stops in _changes(driver, route):
        if not more():
            return None
        trial = driver.drive(stops)
        if trial.value > route.value + least:
            return trial
    return None


def _changes(driver: RouteDriver, route: Driven) -> Iterable[list[int]]:
    """Yield other stops, what looks best first: one more, or one in place of another."""
    field, stops = driver.field, list(route.stops)
    if not stops:
        return
    which = driver.which(route.reads)
    gains = joining(field, which)
    order = by_size(gains)
    wanted = field.places[order[gains[order] > 0.0][: 4 * _TRIED]]
    if not wanted.size:
        return
    rows = _rows(driver, stops)
    detours, where = _insertions(driver, rows, stops, wanted)
    gain = gains[order][: len(wanted)]
    # What a place brings for what it costs; those on the way cost nothing.
    known = detours[np.isfinite(detours)]
    if not known.size:
        return
    scale = max(float(np.median(known)), 1e-9)
    worth = np.where(np.isfinite(detours), gain / (detours + 0.1 * scale), -np.inf)
    best = by_size(worth)[:_TRIED]
    for i in best.tolist():
        if np.isfinite(worth[i]):
            yield [*stops[: where[i]], int(wanted[i]), *stops[where[i] :]]
    lost = dict(zip(field.places[which].tolist(), leaving(field, which).tolist(), strict=True))
    saved = _savings(rows, stops)
    loss = np.array([lost.get(stop, 0.0) for stop in stops])
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
    """Return the least detour (w,) to each place, and before which stop it is taken."""
    legs = _legs(rows, stops)
    detours = np.empty(len(wanted))
    where = np.empty(len(wanted), dtype=np.int64)
    to = rows[:, wanted]
    for i, place in enumerate(wanted.tolist()):
        back = driver.distances.row(place)[stops]
        extra = np.append(to[:-1, i] + back - legs, to[-1, i])
        where[i] = int(np.argmin(extra))
        detours[i] = extra[where[i]]
    return np.maximum(detours, 0.0), where


def _rows(driver: RouteDriver, stops: list[int]) -> FloatArray:
    """(k + 1, n) from the start and from each stop to every place; nothing from nowhere."""
    row = driver.distances.row
    start = np.zeros(driver.topology.n) if driver.at is None else row(driver.at)
    return np.stack([start, *(row(stop) for stop in stops)])


def _legs(rows: FloatArray, stops: list[int]) -> FloatArray:
    """(k,) from the start to the first stop, and from each to the next."""
    legs: FloatArray = rows[np.arange(len(stops)), stops]
    return legs


def _savings(rows: FloatArray, stops: list[int]) -> FloatArray:
    """(k,) what the route is shorter by without each stop."""
    saved = _legs(rows, stops)
    saved[:-1] += saved[1:] - rows[np.arange(len(stops) - 1), stops[1:]]
    return np.asarray(np.maximum(saved, 0.0))
