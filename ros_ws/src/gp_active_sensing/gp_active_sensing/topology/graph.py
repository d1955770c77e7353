"""Places joined by directed moves: the search for where to go next, in plain lists.

These methods run inside a planner's tree search, on a few neighbours at a time, where Python lists
and bytes beat arrays and graph libraries.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.topology.places import Places
from gp_active_sensing.types import BoolArray, Cost, IntArray, Route

__all__ = ["Components", "GraphTopology", "Move"]


class Move(NamedTuple):
    """A legal move: the place it leads to, and what it costs."""

    to: int
    metres: float
    seconds: float


@dataclass(frozen=True)
class Components:
    """How a map hangs together.

    Args:
        weak: number of parts that no move joins, in either direction.
        largest: size of the largest set of places that can all be reached from one another.
        outside: places outside that set, sorted.
        traps: places without any move to another place, sorted.
    """

    weak: int
    largest: int
    outside: tuple[int, ...]
    traps: tuple[int, ...]


class GraphTopology(Places):
    """Places with directed moves; observed and unavailable places may be crossed.

    The direct move to a place must be a cheapest way to it: it is taken without a search.

    Args:
        name: name of the map.
        frame: metric frame of the positions.
        names: (n,) the map's own identifiers.
        positions: (n, 2) metres.
        moves: (n,) the moves out of each place.
        features: (n, p) what the covariance is a function of; None = the positions.
        feature_names: (p,) their names.
        goals: (n, 3) waypoint of each place; None = its position.
        entry: (n,) cost of observing a place first, from nowhere; None = nothing.
        stay: a probe can observe the place where it stands without moving.
    """

    def __init__(
        self,
        name: str,
        frame: str,
        names: Sequence[str],
        positions: npt.ArrayLike,
        moves: Sequence[Sequence[Move]],
        *,
        features: npt.ArrayLike | None = None,
        feature_names: Sequence[str] = ("x", "y"),
        goals: npt.ArrayLike | None = None,
        entry: Sequence[Cost] | None = None,
        stay: bool = True,
    ) -> None:
        super().__init__(
            name,
            frame,
            names,
            positions,
            features=features,
            feature_names=feature_names,
            goals=goals,
        )
        if len(moves) != self._n:
            msg = f"map {name!r}: expected moves of {self._n} places, got {len(moves)}"
            raise ValueError(msg)
        self._moves = tuple(tuple(sorted(out)) for out in moves)
        self._next = tuple(tuple(move.to for move in out) for out in self._moves)
        self._stay = stay
        self._entry = tuple(entry) if entry is not None else (Cost(0.0, 0.0),) * self._n
        neighbours = [np.array(out, dtype=np.int64) for out in self._next]
        for array in neighbours:
            array.setflags(write=False)
        self._neighbours = tuple(neighbours)

    def neighbours(self, location: int) -> IntArray:
        """Return the places one legal move after `location`, sorted; read-only."""
        return self._neighbours[location]

    def candidates(
        self, at: int | None, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> IntArray:
        """Return the unobserved places a probe standing at `at` can observe next, sorted.

        The unobserved neighbours; when there is none, the unobserved places the fewest moves away
        through observed or unavailable ones. O(degree) in the first case, else O(moves).
        """
        if at is None:
            return self._open_places(observed, unavailable)
        self._check(at, observed)
        crossable = _crossable(observed, unavailable)
        found = [b for b in self._next[at] if not crossable[b]]
        if self._stay and not crossable[at]:
            found = sorted({at, *found})
        if not found:
            found = self._next_ring(at, crossable)
        return np.array(found, dtype=np.int64)

    def _next_ring(self, at: int, crossable: bytes | bytearray) -> list[int]:
        """Return the nearest unobserved places, in moves, when no neighbour is one of them."""
        seen = bytearray(self._n)
        ring = [at]
        while ring:
            found: list[int] = []
            following: list[int] = []
            for a in ring:
                for b in self._next[a]:
                    if not seen[b]:
                        seen[b] = 1
                        (following if crossable[b] else found).append(b)
            if found:
                return sorted(found)
            ring = following
        return []

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the cheapest legal way (in seconds) to a candidate.

        Raises:
            PlanningError: `goal` cannot be reached through observed and unavailable places.
        """
        self._check(at, observed)
        if at is None:
            return Route((goal,), self._entry[goal])
        if at == goal and self._stay:
            return Route((goal,), Cost(0.0, 0.0))
        for move in self._moves[at]:
            if move.to == goal:
                return Route((goal,), Cost(move.metres, move.seconds))
        return self._search(at, goal, _crossable(observed, unavailable))

    def _search(self, at: int, goal: int, crossable: bytes | bytearray) -> Route:
        """Dijkstra in seconds from `at`, whose own place is entered only when it is the goal."""
        best: dict[int, float] = {}
        came: dict[int, tuple[int, Move]] = {}
        heap: list[tuple[float, int]] = []

        def expand(a: int, seconds: float) -> None:
            for move in self._moves[a]:
                b = move.to
                total = seconds + move.seconds
                if (crossable[b] or b == goal) and (b not in best or total < best[b]):
                    best[b] = total
                    came[b] = (a, move)
                    heapq.heappush(heap, (total, b))

        expand(at, 0.0)
        while heap:
            seconds, a = heapq.heappop(heap)
            if a == goal:
                return self._path(at, goal, came)
            if seconds <= best[a] and a != at:
                expand(a, seconds)
        msg = (
            f"map {self._name!r}: {self._names[goal]!r} cannot be reached from "
            f"{self._names[at]!r} through observed places; choose one of the candidates"
        )
        raise PlanningError(msg)

    @staticmethod
    def _path(at: int, goal: int, came: dict[int, tuple[int, Move]]) -> Route:
        path: list[int] = []
        metres = seconds = 0.0
        place = goal
        while not path or place != at:
            path.append(place)
            place, move = came[place]
            metres += move.metres
            seconds += move.seconds
        return Route(tuple(reversed(path)), Cost(metres, seconds))

    def reachable(
        self,
        at: int | None,
        observed: BoolArray,
        readings: int,
        unavailable: Collection[int] = (),
    ) -> BoolArray:
        """(n,) the unobserved places at most `readings` unobserved places away.

        Crossing observed and unavailable places is free, so this contains every place that may
        be among the next `readings` observed ones. O(places and moves within reach).
        """
        found = bytearray(self._n)
        if at is None:
            mask = np.frombuffer(found, dtype=np.bool_)
            if readings > 0:
                mask[self._open_places(observed, unavailable)] = True
            return mask
        self._check(at, observed)
        crossable = _crossable(observed, unavailable)
        seen = bytearray(self._n)
        frontier = [at]
        if self._stay and readings > 0 and not crossable[at]:
            found[at] = seen[at] = 1
        moves = self._next
        for _ in range(readings):
            following: list[int] = []
            stack = frontier
            while stack:
                for b in moves[stack.pop()]:
                    if not seen[b]:
                        seen[b] = 1
                        if crossable[b]:
                            stack.append(b)
                        else:
                            found[b] = 1
                            following.append(b)
            if not following:
                break
            frontier = following
        return np.frombuffer(found, dtype=np.bool_)

    @cached_property
    def components(self) -> Components:
        """How the map hangs together: parts, the largest round-trip set, traps."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        n = self._n
        to = np.array([b for out in self._next for b in out], dtype=np.int64)
        starts = np.cumsum([0, *(len(out) for out in self._next)])
        matrix = csr_array((np.ones(len(to)), to, starts), shape=(n, n))
        weak, _ = connected_components(matrix, directed=True, connection="weak")
        _, labels = connected_components(matrix, directed=True, connection="strong")
        sizes = np.bincount(labels)
        outside = np.flatnonzero(labels != int(np.argmax(sizes)))
        traps = [a for a, out in enumerate(self._next) if not set(out) - {a}]
        return Components(int(weak), int(sizes.max()), tuple(int(i) for i in outside), tuple(traps))


def _crossable(observed: BoolArray, unavailable: Collection[int]) -> bytes | bytearray:
    """Return one byte a place: 1 where a probe may pass without observing."""
    flags = observed.tobytes()
    if not unavailable:
        return flags
    marked = bytearray(flags)
    for place in unavailable:
        marked[place] = 1
    return marked
