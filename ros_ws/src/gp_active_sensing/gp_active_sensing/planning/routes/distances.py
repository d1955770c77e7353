"""Cheapest routes and distances between places of a map, stored as long as the map exists."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gp_active_sensing.planning.routes.lattice import MoveLattice
from gp_active_sensing.planning.turning import Turning
from gp_active_sensing.topology.base import FreeTopology, GraphTopology, Topology
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.topology.search import Move, MoveArrays, Moves
from gp_active_sensing.types import Budget, Cost, FloatArray, IntArray, Route

_KEPT_NUMBERS = 8_000_000
"""Largest number of array entries in the stored searches of a map."""
_KEPT_WAYS = 200_000
"""Largest total number of places on the routes that are stored for a map."""
_SMALL = 2000
"""Number of places up to which every search covers the whole map."""
_DETOUR = 2.0
"""Longest route that a search near a place covers [straight distances]."""


def unit_of(budget: Budget) -> str:
    """Return the unit of costs: "metres" if metres but not seconds are limited, else "seconds"."""
    return "metres" if budget.metres is not None and budget.seconds is None else "seconds"


class Distances:
    """Costs of the cheapest routes between any two places of a map; routes may cross any place.

    On a map without moves, routes are straight lines. Otherwise one search finds the routes from a
    place to all others. Results are stored. On roads, a route and its reverse may have different
    costs. The cost from a place to itself is 0.

    Args:
        topology: the map.
        by: unit in which routes are cheapest, "metres" or "seconds".
        keep: True to hold a strong reference to the map.
    """

    def __init__(self, topology: Topology, by: str = "seconds", *, keep: bool = True) -> None:
        self.by = by
        self.n = topology.n
        self.free = topology.free
        self._points = topology.points
        self._topology = (lambda: topology) if keep else weakref.ref(topology)
        self._moves: Moves | None = None
        self._arrays: MoveArrays | None = None
        self._lattice: MoveLattice | None = None
        if isinstance(topology, GraphTopology):
            self._moves, self._arrays = topology.moves, topology.arrays
            if self.n > _SMALL:
                self._lattice = MoveLattice.of(topology.points, topology.arrays)
        self._speeds = _speeds(topology) if self.free else Speeds()
        self._most_per_metre = 0.0
        self._rows: dict[int, tuple[FloatArray, IntArray]] = {}
        self._near: dict[int, tuple[float, FloatArray, IntArray]] = {}
        self._leads: dict[int, dict[int, Move]] = {}
        self._ways: dict[tuple[int, int], Route | None] = {}
        self._kept_places = 0

    @cached_property
    def pitch(self) -> float:
        """Median straight distance from a place to the nearest other place [m]."""
        from scipy.spatial import cKDTree

        flat = np.round(self._points[:, :2], 6)
        # Complex numbers allow a 1-D search for places at one point.
        apart = np.unique(flat[:, 0] + 1j * flat[:, 1])
        if len(apart) < 2:
            return 1.0
        points = np.column_stack([apart.real, apart.imag])
        distances = np.asarray(cKDTree(points).query(points, k=2)[0])
        return round(float(np.median(distances[:, 1])), 6)

    @cached_property
    def least(self) -> Cost:
        """Smallest length and smallest duration of a move; 0 on a map without moves."""
        if self._arrays is None or not len(self._arrays.to):
            return Cost(0.0, 0.0)
        return Cost(float(self._arrays.metres.min()), float(self._arrays.seconds.min()))

    def at_least(self, places: IntArray) -> Cost:
        """Return a lower bound on the cost of a drive through all `places`, in any order."""
        moves = max(0, len(places) - 1)
        return Cost(moves * self.least.metres, moves * self.least.seconds)

    @cached_property
    def least_per_metre(self) -> float:
        """Lower bound on a route's cost per metre of straight distance, in the unit `self.by`."""
        if self.free:
            return 1.0 if self.by == "metres" else 1.0 / self._speeds.along
        moves = self._arrays
        if moves is None or not len(moves.to):
            return 0.0
        straight = np.linalg.norm(self._points[moves.to] - self._points[moves.source], axis=1)
        return float((moves.costs(self.by) / np.maximum(straight, 1e-300)).min())

    def row(self, at: int) -> FloatArray:
        """Return read-only costs (n,) to all places, in the unit `self.by`; infinite = no route."""
        if self.free:
            return self._legs(self._points - self._points[at])
        return self._row(at)[0]

    def between(
        self, places: Sequence[int] | IntArray, others: Sequence[int] | IntArray | None = None
    ) -> FloatArray:
        """Return the costs (k, m) from `places` to `others`, in the unit `self.by`.

        If `others` is None, the costs are those between all pairs of `places`.
        """
        chosen = np.asarray(places, dtype=np.int64)
        goals = chosen if others is None else np.asarray(others, dtype=np.int64)
        if self.free:
            return self._legs(self._points[goals][None, :] - self._points[chosen][:, None])
        found: FloatArray = np.full((len(chosen), len(goals)), np.inf)
        if self._lattice is not None:
            pairs = np.repeat(chosen, len(goals)), np.tile(goals, len(chosen))
            found = self._lattice.metres(*pairs).reshape(found.shape)
            found *= 1.0 if self.by == "metres" else self._lattice.pace
        for i in np.flatnonzero(np.isinf(found).any(axis=1)).tolist():
            found[i] = self._row(int(chosen[i]))[0][goals]
        return found

    def _legs(self, offsets: FloatArray) -> FloatArray:
        metres = self._speeds.metres(offsets)
        return metres if self.by == "metres" else self._speeds.seconds(offsets, metres)

    def way(self, a: int, b: int) -> Route | None:
        """Return the direct move from a to b, or else the cheapest route; None = no route."""
        if a == b:
            return Route((), Cost(0.0, 0.0))
        if self.free:
            return Route((b,), Cost(*self._speeds.leg(self._points[a], self._points[b])))
        if (move := self._moves_from(a).get(b)) is not None:
            return Route((b,), Cost(move.metres, move.seconds))
        if (a, b) not in self._ways:
            line = None if self._lattice is None else self._lattice.straight(a, b)
            if line is None:
                found = self._find(a, b)
            else:
                found = Route(tuple(line.tolist()), self._cost_of(a, line))
            self._kept_places += 1 if found is None else len(found.path)
            if self._kept_places > _KEPT_WAYS:
                self._ways.clear()
                self._kept_places = 0
            self._ways[a, b] = found
        return self._ways[a, b]

    def drive(self, route: IntArray) -> tuple[IntArray, Cost] | None:
        """Return the places after the first one on a drive along a route, and the drive's cost.

        The result is None if two successive places have no route between them.
        """
        legs, cost = np.arange(len(route) - 1), Cost(0.0, 0.0)
        if self._arrays is not None:  # the cost of all direct moves
            moves = self._arrays.direct(route[:-1], route[1:])
            on, legs = moves[moves >= 0], np.flatnonzero(moves < 0)
            cost = Cost(float(self._arrays.metres[on].sum()), float(self._arrays.seconds[on].sum()))
        parts, done = [], 1
        for leg in legs.tolist():
            way = self.way(int(route[leg]), int(route[leg + 1]))
            if way is None:
                return None
            cost = cost.plus(way.cost)
            parts += [route[done : leg + 1], np.array(way.path, dtype=np.int64)]
            done = leg + 2
        return np.concatenate([*parts, route[done:]]), cost

    def corners(self, route: Sequence[int]) -> tuple[int, ...]:
        """Return places that determine a route, including its ends.

        The cheapest drives from each returned place to the next cross all other places of the
        route.
        """
        places = np.asarray(route, dtype=np.int64)
        if self._arrays is None or len(places) < 3:
            return tuple(route)
        direct = self._arrays.direct(places[:-1], places[1:]) >= 0
        ends = np.append(np.flatnonzero(~direct), len(places) - 1)  # ends of runs of direct moves
        kept, start = [0], 0
        while start < len(places) - 1:
            end = int(ends[np.searchsorted(ends, start)])
            if end > start + 1:
                end = start + self._on_the_way(places[start : end + 1], self._arrays)
            start = max(end, start + 1)
            kept.append(start)
        return tuple(places[kept].tolist())

    def _on_the_way(self, places: IntArray, moves: MoveArrays) -> int:
        """Return how many of the first moves along `places` together form a cheapest route."""
        a, last = int(places[0]), len(places) - 1
        if self._lattice is not None:
            steps = np.diff(self._lattice.cells[places], axis=0)
            changes = np.flatnonzero((steps != steps[0]).any(axis=1))
            if not changes.size:
                return last
        before = self._rows.get(a)
        if before is None and self.n > _SMALL:
            apart = np.square(self._points[places] - self._points[a]).sum(axis=1)
            before = self._nearby(a, int(places[np.argmax(apart)]))
        crossed = (self._row(a) if before is None else before)[1]
        on = crossed[places[2:]] == places[1:-1]
        on &= moves.direct(np.full(last - 1, a), places[2:]) < 0
        return last if on.all() else 1 + int(np.argmin(on))

    def _row(self, at: int) -> tuple[FloatArray, IntArray]:
        """Return the costs of the routes from a place, and the next-to-last place of each route."""
        kept = self._rows.get(at)
        if kept is None:
            kept = self._search(at)
            if self._rows and (len(self._rows) + 1) * 2 * self.n > _KEPT_NUMBERS:
                del self._rows[next(iter(self._rows))]
            self._rows[at] = kept
        return kept

    def _search(self, at: int, limit: float = math.inf) -> tuple[FloatArray, IntArray]:
        """Search the cheapest routes from a place, up to the cost `limit` in the unit `self.by`."""
        if self._arrays is None:
            return self._ask(at)
        return _dijkstra(self._arrays.graph(self.by), at, limit)

    def _ask(self, at: int) -> tuple[FloatArray, IntArray]:
        topology = self._topology()
        if topology is None:
            msg = "the map of these distances is gone"
            raise ReferenceError(msg)
        ways = topology.ways_from(at, self.by)
        least = np.array(ways.metres if self.by == "metres" else ways.seconds)
        least[at] = 0.0  # instead of the cheapest loop
        least.setflags(write=False)
        before = np.where(ways.before < 0, at, ways.before)
        before[at] = -1
        return least, before

    def _find(self, a: int, b: int) -> Route | None:
        """Find a route in stored results, or else near `a`, or else on the whole map."""
        found = self._rows.get(a)
        if found is None and self._arrays is not None and self.n > _SMALL:
            near = self._nearby(a, b)
            found = near if math.isfinite(near[0][b]) else None
        least, before = self._row(a) if found is None else found
        if not math.isfinite(least[b]):
            return None
        path = [b]
        while (place := int(before[path[-1]])) != a:
            path.append(place)
        path.reverse()
        return Route(tuple(path), self._cost_of(a, path))

    def _nearby(self, a: int, b: int) -> tuple[FloatArray, IntArray]:
        """Search the routes from `a` up to an estimate of the cost to `b`.

        If an earlier search from `a` was too short, the new search goes twice as far as needed.
        """
        assert self._arrays is not None
        if not self._most_per_metre:
            self._most_per_metre = _most_per_metre(self._arrays, self.by)
        straight = math.hypot(*(self._points[b] - self._points[a]))
        limit = _DETOUR * straight * self._most_per_metre
        kept = self._near.get(a)
        if kept is None or kept[0] < limit:
            limit = limit if kept is None else 2.0 * limit
            self._near.pop(a, None)
            if self._near and (len(self._near) + 1) * 4 * self.n > _KEPT_NUMBERS:
                del self._near[next(iter(self._near))]
            self._near[a] = kept = (limit, *self._search(a, limit))
        return kept[1:]

    def _moves_from(self, at: int) -> dict[int, Move]:
        if self._moves is None:
            return {}
        if at not in self._leads:
            self._leads[at] = {move.to: move for move in reversed(self._moves[at])}
        return self._leads[at]

    def _cost_of(self, at: int, path: Sequence[int] | IntArray) -> Cost:
        if self._arrays is None:
            topology = self._topology()
            assert topology is not None, "asked for its ways before"
            ways = topology.ways_from(at, self.by)
            return Cost(float(ways.metres[path[-1]]), float(ways.seconds[path[-1]]))
        moves = self._arrays.direct(np.append(at, path[:-1]), np.asarray(path))
        metres, seconds = self._arrays.metres[moves], self._arrays.seconds[moves]
        return Cost(float(np.cumsum(metres)[-1]), float(np.cumsum(seconds)[-1]))


_known: weakref.WeakKeyDictionary[Topology, dict[str, Distances]] = weakref.WeakKeyDictionary()
"""Distances, keyed by map and then by unit; maps never change."""


def distances_of(topology: Topology, by: str = "seconds") -> Distances:
    """Return the stored distances on a map, in metres or seconds. Turning radii are ignored."""
    topology = topology.straight if isinstance(topology, Turning) else topology
    try:
        found = _known.setdefault(topology, {})
    except TypeError:  # the map is not hashable
        return Distances(topology, by)
    if by not in found:
        found[by] = Distances(topology, by, keep=False)
    return found[by]


class PartDistances:
    """Symmetric distances between places of a map [m].

    Distances follow roads in any direction, and avoid obstacles. On a map without moves, distances
    are straight.
    """

    def __init__(self, topology: Topology) -> None:
        self._points = topology.points
        links = None if topology.free else topology.links
        self._graph = None if links is None else links.matrix(links.metres)

    def row(self, place: int, limit: float = math.inf) -> FloatArray:
        """Return the distances (n,) from a place to all places, infinite beyond `limit` [m]."""
        if self._graph is None:
            metres = Speeds().metres(self._points - self._points[place])
            return np.where(metres <= limit, metres, np.inf)
        return _dijkstra(self._graph, place, limit)[0]

    def nearest(self, places: Sequence[int]) -> FloatArray:
        """Return the distance (n,) from each place to the nearest of the given `places` [m]."""
        if self._graph is not None:
            from scipy.sparse import csgraph

            search: Any = csgraph.dijkstra
            return np.asarray(search(self._graph, indices=list(places), min_only=True))
        from scipy.spatial import cKDTree

        distances = cKDTree(self._points[list(places)]).query(self._points)[0]
        return np.asarray(distances)


def mean_distance(
    points: FloatArray, places: FloatArray, visited: Sequence[int] | IntArray
) -> float:
    """Return the mean straight distance from a point to its nearest visited place [m].

    Args:
        points: (m, 2 or 3) points [m].
        places: (n, 2 or 3) points of all places [m].
        visited: indices of the visited places. If there are none, the result is infinite.
    """
    from scipy.spatial import cKDTree

    if not len(visited):
        return math.inf
    chosen = places[np.asarray(visited, dtype=np.int64)]
    return float(np.mean(np.asarray(cKDTree(chosen).query(points)[0])))


def _dijkstra(graph: Any, at: int, limit: float) -> tuple[FloatArray, IntArray]:
    """Return least costs (n,) from the place `at`, and the predecessor (n,) of each place."""
    from scipy.sparse import csgraph

    search: Any = csgraph.dijkstra  # typed for arrays of sources only
    least, before = search(graph, indices=at, limit=limit, return_predecessors=True)
    least.setflags(write=False)
    return np.asarray(least), np.asarray(before)


def _most_per_metre(moves: MoveArrays, by: str) -> float:
    driven = moves.metres > 0.0
    if by == "metres" or not driven.any():
        return 1.0
    return float((moves.seconds[driven] / moves.metres[driven]).max())


def _speeds(topology: Topology) -> Speeds:
    if isinstance(topology, FreeTopology):
        return topology.speeds
    ways = topology.ways_from(0)
    far = int(np.argmax(ways.metres))
    metres, seconds = float(ways.metres[far]), float(ways.seconds[far])
    return Speeds(metres / seconds if metres > 0.0 and seconds > 0.0 else 1.0)
