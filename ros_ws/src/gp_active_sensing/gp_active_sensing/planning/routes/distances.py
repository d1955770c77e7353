"""Cheapest ways and distances between places of a map, kept for as long as the map."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.generated import FreeTopology
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.search import Move, Moves
from gp_active_sensing.topology.turning import Turning
from gp_active_sensing.types import Budget, Cost, FloatArray, IntArray, Route

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Apart", "Distances", "distances_of", "mean_distance", "unit_of"]

_KEPT_NUMBERS = 8_000_000
"""Numbers in the searches to all places that are kept for a map; those nearby: half as many."""
_KEPT_WAYS = 200_000
"""Places on the ways that are kept for one map."""
_SMALL = 2000
"""Places of a map on which a search to all of them costs no more than one nearby."""
_DETOUR = 2.0
"""How much longer than straight a way may be that is looked for nearby first."""


def unit_of(budget: Budget) -> str:
    """Return what ways are to be cheapest in: metres where these alone are limited, or seconds."""
    return "metres" if budget.metres is not None and budget.seconds is None else "seconds"


class Distances:
    """What the cheapest way between any two places of a map costs, whatever it crosses.

    Straight lines where any place may be next. Where moves bind, one search from a place tells of
    the ways to all others; it is done when it is asked for, and kept. On roads there is not the
    same as back. From a place to itself it is nothing.

    Args:
        topology: the map.
        by: what is least, "metres" or "seconds".
        keep: keep the map alive.
    """

    def __init__(self, topology: Topology, by: str = "seconds", *, keep: bool = True) -> None:
        self.by = by
        self.n = topology.n
        self.free = topology.free
        self._points = topology.points
        self._topology = (lambda: topology) if keep else weakref.ref(topology)
        self._moves: Moves | None = topology.moves if isinstance(topology, GraphTopology) else None
        self._speeds = _speeds(topology) if self.free else Speeds()
        self._graph: csr_array | None = None
        self._most_per_metre = 0.0
        self._rows: dict[int, tuple[FloatArray, IntArray]] = {}
        self._near: dict[int, tuple[float, FloatArray, IntArray]] = {}
        self._leads: dict[int, dict[int, Move]] = {}
        self._ways: dict[tuple[int, int], Route | None] = {}
        self._kept_places = 0

    def row(self, at: int) -> FloatArray:
        """(n,) to every place in the unit of `by`, infinite where there is no way; read-only."""
        if self.free:
            return self._legs(self._points - self._points[at])
        return self._row(at)[0]

    def between(self, places: Sequence[int] | IntArray) -> FloatArray:
        """(k, k) from each of some places (rows) to each of them, in the unit of `by`."""
        chosen = np.asarray(places, dtype=np.int64)
        if self.free:
            points = self._points[chosen]
            return self._legs(points[None, :] - points[:, None])
        return np.array([self._row(a)[0][chosen] for a in chosen.tolist()]).reshape(
            len(chosen), len(chosen)
        )

    def _legs(self, offsets: FloatArray) -> FloatArray:
        """Return (…) what straight legs with these offsets cost, in the unit of `by`."""
        metres = self._speeds.metres(offsets)
        return metres if self.by == "metres" else self._speeds.seconds(offsets, metres)

    def way(self, a: int, b: int) -> Route | None:
        """Return the cheapest way from one place to another, None where there is none.

        () from a place to itself; the direct move where there is one.
        """
        if a == b:
            return Route((), Cost(0.0, 0.0))
        if self.free:
            return Route((b,), Cost(*self._speeds.leg(self._points[a], self._points[b])))
        if (move := self._moves_from(a).get(b)) is not None:
            return Route((b,), Cost(move.metres, move.seconds))
        if (a, b) not in self._ways:
            found = self._find(a, b)
            self._kept_places += 1 if found is None else len(found.path)
            if self._kept_places > _KEPT_WAYS:
                self._ways.clear()
                self._kept_places = 0
            self._ways[a, b] = found
        return self._ways[a, b]

    def cost(self, a: int, b: int) -> Cost | None:
        """Return what the cheapest way costs, None where there is none."""
        found = self.way(a, b)
        return None if found is None else found.cost

    def _row(self, at: int) -> tuple[FloatArray, IntArray]:
        """Return what the ways from a place cost, and the last place crossed on each."""
        kept = self._rows.get(at)
        if kept is None:
            kept = self._search(at)
            if self._rows and (len(self._rows) + 1) * 2 * self.n > _KEPT_NUMBERS:
                del self._rows[next(iter(self._rows))]
            self._rows[at] = kept
        return kept

    def _search(self, at: int, limit: float = math.inf) -> tuple[FloatArray, IntArray]:
        """Search from a place, no farther than `limit` in the unit of `by`."""
        if self._moves is None:
            return self._ask(at)
        if self._graph is None:
            self._graph = _graph(self._moves, self.by)
        return _dijkstra(self._graph, at, limit)

    def _ask(self, at: int) -> tuple[FloatArray, IntArray]:
        """Ask a map that does not tell its moves."""
        topology = self._topology()
        if topology is None:
            msg = "the map of these distances is gone"
            raise ReferenceError(msg)
        ways = topology.ways_from(at, self.by)
        least = np.array(ways.metres if self.by == "metres" else ways.seconds)
        least[at] = 0.0  # not the cheapest round
        least.setflags(write=False)
        before = np.where(ways.before < 0, at, ways.before)
        before[at] = -1
        return least, before

    def _find(self, a: int, b: int) -> Route | None:
        """Look for a way: in what is known, on a large map nearby, then everywhere."""
        found = self._rows.get(a)
        if found is None and self._moves is not None and self.n > _SMALL:
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
        """Search as far as a way to b may be; twice as far when it was not far enough before.

        How far a search goes changes nothing of what it finds nearer.
        """
        assert self._moves is not None
        if not self._most_per_metre:
            self._most_per_metre = _most_per_metre(self._moves, self.by)
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
        """Return the direct moves from a place, by where they lead; of several there the first."""
        if self._moves is None:
            return {}
        if at not in self._leads:
            self._leads[at] = {move.to: move for move in reversed(self._moves[at])}
        return self._leads[at]

    def _cost_of(self, at: int, path: Sequence[int]) -> Cost:
        metres = seconds = 0.0
        if self._moves is None:
            topology = self._topology()
            assert topology is not None, "asked for its ways before"
            ways = topology.ways_from(at, self.by)
            return Cost(float(ways.metres[path[-1]]), float(ways.seconds[path[-1]]))
        for place in path:
            move = self._moves_from(at)[place]
            metres, seconds, at = metres + move.metres, seconds + move.seconds, place
        return Cost(metres, seconds)


_known: weakref.WeakKeyDictionary[Topology, dict[str, Distances]] = weakref.WeakKeyDictionary()
"""By map; maps never change."""


def distances_of(topology: Topology, by: str = "seconds") -> Distances:
    """Return the distances on a map, the same ones for as long as there is the map.

    Args:
        topology: the map.
        by: what is least, "metres" or "seconds".

    Of a map that is seen with a turning radius they are those without: the heading at the beginning
    of a way is not known.
    """
    topology = topology.straight if isinstance(topology, Turning) else topology
    try:
        found = _known.setdefault(topology, {})
    except TypeError:  # a map that cannot be looked up by: nothing is kept
        return Distances(topology, by)
    if by not in found:
        found[by] = Distances(topology, by, keep=False)
    return found[by]


class Apart:
    """How far places are apart as parts of a map, metres: the same there as back.

    Along the roads, whichever way they may be driven; around what is in the way; straight where any
    place may be next. A one-way street is as near to its beginning as to its end.

    Args:
        topology: the map.
    """

    def __init__(self, topology: Topology) -> None:
        self._points = topology.points
        links = None if topology.free else topology.links
        self._graph = None if links is None else links.matrix(links.metres)

    def row(self, place: int, limit: float = math.inf) -> FloatArray:
        """(n,) from a place to every one, infinite beyond `limit` [m]."""
        if self._graph is None:
            metres = Speeds().metres(self._points - self._points[place])
            return np.where(metres <= limit, metres, np.inf)
        return _dijkstra(self._graph, place, limit)[0]

    def nearest(self, places: Sequence[int]) -> FloatArray:
        """(n,) from the nearest of some places to every one."""
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
    """Return the mean straight distance of some points to the nearest place that is visited [m].

    Args:
        points: (m, 2 or 3) [m].
        places: (n, 2 or 3) points of all places [m].
        visited: some of these; infinite where there are none.
    """
    from scipy.spatial import cKDTree

    if not len(visited):
        return math.inf
    chosen = places[np.asarray(visited, dtype=np.int64)]
    return float(np.mean(np.asarray(cKDTree(chosen).query(points)[0])))


def _dijkstra(graph: Any, at: int, limit: float) -> tuple[FloatArray, IntArray]:
    """Return the (n,) least costs from a place, and the last place before each; read-only."""
    from scipy.sparse import csgraph

    search: Any = csgraph.dijkstra  # typed for arrays of sources only
    least, before = search(graph, indices=at, limit=limit, return_predecessors=True)
    least.setflags(write=False)
    return np.asarray(least), np.asarray(before)


def _graph(moves: Moves, by: str) -> csr_array:
    """Return the moves as a sparse matrix; of moves to the same place the cheapest counts."""
    from scipy.sparse import csr_array

    n = len(moves)
    to: list[int] = []
    cost: list[float] = []
    starts = [0]
    for out in moves:
        least: dict[int, float] = {}
        for move in out:
            value = move.metres if by == "metres" else move.seconds
            least[move.to] = min(value, least.get(move.to, math.inf))
        to += least.keys()
        cost += least.values()
        starts.append(len(to))
    # scipy 1.11 takes no longer indices in a graph.
    indices, ends = np.array(to, dtype=np.intc), np.array(starts, dtype=np.intc)
    return csr_array((np.array(cost), indices, ends), shape=(n, n))


def _most_per_metre(moves: Moves, by: str) -> float:
    """Return the most that a metre of any move costs, in the unit of `by`."""
    if by == "metres":
        return 1.0
    paces = [move.seconds / move.metres for out in moves for move in out if move.metres > 0.0]
    return max(paces, default=1.0)


def _speeds(topology: Topology) -> Speeds:
    """Return how fast a probe is where any place may be next."""
    if isinstance(topology, FreeTopology):
        return topology.speeds
    ways = topology.ways_from(0)
    far = int(np.argmax(ways.metres))
    metres, seconds = float(ways.metres[far]), float(ways.seconds[far])
    return Speeds(metres / seconds if metres > 0.0 and seconds > 0.0 else 1.0)
