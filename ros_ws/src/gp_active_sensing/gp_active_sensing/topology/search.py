"""Searches along directed moves: cheapest paths, and places within a distance."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gp_active_sensing.types import BoolArray, Cost, FloatArray, IntArray, Route


class Move(NamedTuple):
    """Directed move to a neighbouring place."""

    to: int  # place at the end
    metres: float
    seconds: float


Moves = Sequence[Sequence[Move]]
"""Moves out of each of the n places."""
_Came = dict[int, tuple[int, Move]]
"""For each reached place, the previous place and the move from there."""


class MoveArrays:
    """Arrays of all moves, sorted by the first place of each move.

    Args:
        moves: (n,) moves out of each place.

    Attributes:
        source, to: (e,) first and last place of each move.
        metres, seconds: (e,) cost of each move.
    """

    def __init__(self, moves: Moves) -> None:
        self.n = len(moves)
        counts = np.fromiter(map(len, moves), dtype=np.int64, count=self.n)
        flat = chain.from_iterable(chain.from_iterable(moves))
        columns = np.fromiter(flat, dtype=np.float64, count=3 * int(counts.sum())).reshape(-1, 3)
        self.source: IntArray = np.repeat(np.arange(self.n), counts)
        self.to: IntArray = columns[:, 0].astype(np.int64)
        self.metres: FloatArray = columns[:, 1].copy()
        self.seconds: FloatArray = columns[:, 2].copy()
        self._pairs: tuple[IntArray, IntArray] | None = None
        self._graphs: dict[tuple[str, bool], Any] = {}

    def costs(self, by: str) -> FloatArray:
        """Return the cost (e,) of each move; `by` is "metres" or "seconds"."""
        return self.metres if by == "metres" else self.seconds

    def graph(self, by: str, *, back: bool = False) -> Any:
        """Return the (n, n) sparse matrix of the costs of moves; `by` is "metres" or "seconds".

        If several moves join two places, the cheapest one counts. With `back`, all moves are
        reversed.
        """
        if (by, back) not in self._graphs:
            from scipy.sparse import csr_array

            rows, columns = (self.to, self.source) if back else (self.source, self.to)
            order = np.lexsort((self.costs(by), columns, rows))
            key = rows[order] * self.n + columns[order]
            order = order[np.append(True, np.diff(key) != 0)[: len(order)]]
            ends = np.searchsorted(rows[order], np.arange(self.n + 1))
            # scipy 1.11 accepts only 32-bit indices in a graph.
            index = columns[order].astype(np.intc), ends.astype(np.intc)
            self._graphs[by, back] = csr_array(
                (self.costs(by)[order], *index), shape=(self.n, self.n)
            )
        return self._graphs[by, back]

    def direct(self, a: IntArray, b: IntArray) -> IntArray:
        """Return the index (k,) of the first move from each `a` (k,) to `b` (k,); -1 = none."""
        if self._pairs is None:
            key = self.source * self.n + self.to
            order = np.argsort(key, kind="stable")
            self._pairs = key[order], order
        keys, order = self._pairs
        wanted = np.asarray(a) * self.n + np.asarray(b)
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return np.where(keys[at] == wanted, order[at], -1) if len(keys) else 0 * wanted - 1

    def tree(self, root: int, by: str, *, back: bool = False) -> WaysFrom:
        """Return the cheapest paths from a place, or with `back` the cheapest paths to the place.

        If paths are equally cheap, prefer the path whose last crossed place is cheapest to reach.
        """
        from scipy.sparse import csgraph

        search: Any = csgraph.dijkstra  # typed for arrays of sources only
        least, before = search(self.graph(by, back=back), indices=root, return_predecessors=True)
        rank = np.empty(self.n, dtype=np.int64)
        rank[np.argsort(least, kind="stable")] = np.arange(self.n)
        rank[root] = -1
        near, far = (self.to, self.source) if back else (self.source, self.to)
        costs = self.costs(by)
        tight = np.flatnonzero((least[near] + costs == least[far]) & np.isfinite(least[far]))
        if len(costs) and costs.min() <= 0.0:  # avoid cycles of moves that cost nothing
            tight = tight[before[far[tight]] == near[tight]]
        tight = tight[np.argsort(-rank[near[tight]], kind="stable")]
        # Prefer the cheapest previous place, and its first move.
        first = tight[::-1][np.unique(far[tight[::-1]], return_index=True)[1]]
        via = np.full(self.n, -1, dtype=np.int64)
        via[far[first]] = first
        via[root] = -1
        parents = np.where(via < 0, -1, near[via]) if len(near) else via
        # Sum the other cost along the paths, from the root outwards.
        other = self.seconds if by == "metres" else self.metres
        total = np.full(self.n, np.inf)
        total[root] = 0.0
        depth = depths(parents)
        order = np.argsort(depth, kind="stable")
        levels = np.searchsorted(depth[order], np.arange(1, depth.max() + 1))
        for places in np.split(order, levels)[1:]:
            total[places] = total[parents[places]] + other[via[places]]
        metres, seconds = (least, total) if by == "metres" else (total, least)
        return WaysFrom(metres, seconds, parents)


def depths(parents: IntArray) -> IntArray:
    """Return the depth (n,) of each tree node; `parents` (n,) are their parents, -1 = no parent."""
    here = np.where(parents < 0, np.arange(len(parents)), parents)
    found = (parents >= 0).astype(np.int64)
    while True:
        further = found[here]
        if not further.any():
            return found
        found = found + further
        here = here[here]


@dataclass(frozen=True)
class Ways:
    """Cheapest paths from all places to one place; a path may cross any place."""

    goal: int  # the place at the end
    metres: FloatArray  # (n,) driven distance, infinite without a path, 0 from the goal
    seconds: FloatArray  # (n,) duration, infinite without a path, 0 from the goal
    following: IntArray  # (n,) next place on the path, -1 without a path and at the goal

    @cached_property
    def costs(self) -> tuple[Cost | None, ...]:
        """Costs (n,) of the paths; None = no path."""
        pairs = zip(self.metres.tolist(), self.seconds.tolist(), strict=True)
        return tuple(Cost(m, s) if math.isfinite(s) else None for m, s in pairs)

    def route(self, at: int) -> Route | None:
        """Return the path from `at`; () = already at the goal, None = no path."""
        if not math.isfinite(self.seconds[at]):
            return None
        cost = Cost(float(self.metres[at]), float(self.seconds[at]))
        path: list[int] = []
        while at != self.goal:
            at = int(self.following[at])
            path.append(at)
        return Route(tuple(path), cost)


@dataclass(frozen=True)
class WaysFrom:
    """Cheapest paths from one place to all places; a path may cross any place."""

    metres: FloatArray  # (n,) driven distance, infinite without a path
    seconds: FloatArray  # (n,) duration, infinite without a path
    before: IntArray  # (n,) last crossed place on the path; -1 = no crossed place

    def route(self, goal: int) -> Route | None:
        """Return the path to a place; None = no path."""
        if not np.isfinite(self.seconds[goal]):
            return None
        path = [goal]
        while (place := int(self.before[path[-1]])) >= 0:
            path.append(place)
        cost = Cost(float(self.metres[goal]), float(self.seconds[goal]))
        return Route(tuple(reversed(path)), cost)

    def reads(self, unread: BoolArray) -> IntArray:
        """Return the number (n,) of unread places on each path, including the last place."""
        total, here = unread.astype(np.int64), self.before
        while (on := here >= 0).any():
            # Each step doubles the number of places that are counted.
            total = total + np.where(on, total[here], 0)
            here = np.where(on, here[here], -1)
        return total


def nearest_ring(
    following: Sequence[Sequence[int]], at: int, crossable: bytes | bytearray
) -> list[int]:
    """Return the non-crossable places that need the fewest moves from `at`, sorted.

    The moves lead through crossable places. `following` (n,) lists the next places of each place.
    `crossable` (n,) is 1 for a crossable place.
    """
    seen = bytearray(len(following))
    ring = [at]
    while ring:
        found: list[int] = []
        further: list[int] = []
        for a in ring:
            for b in following[a]:
                if not seen[b]:
                    seen[b] = 1
                    (further if crossable[b] else found).append(b)
        if found:
            return sorted(found)
        ring = further
    return []


METRES, SECONDS = 1, 2
"""Indices of the length [m] and of the duration [s] in a `Move`."""


def cheapest(moves: Moves, at: int, goal: int, crossable: bytes | bytearray) -> Route | None:
    """Return the fastest path through crossable places; None = no path."""
    came = search(moves, [at], SECONDS, crossable=crossable, goal=goal)
    return _path(at, goal, came) if goal in came else None


def within(moves: Moves, at: int, metres: float) -> dict[int, Route]:
    """Return the shortest paths, through any places, to all places within a distance [m].

    A round trip back to `at` within the distance is included.
    """
    came = search(moves, [at], METRES, most=metres)
    return {goal: _path(at, goal, came) for goal in sorted(came)}


def search(
    moves: Moves,
    sources: Sequence[int],
    by: int,
    *,
    most: float = math.inf,
    crossable: bytes | bytearray | None = None,
    goal: int = -1,
) -> _Came:
    """Search the cheapest paths from `sources` with Dijkstra's algorithm.

    `by` is the index of the cost in a `Move`: `METRES` or `SECONDS`. Paths cost at most `most` and
    lead through `crossable` places (None = all). The search ends at `goal` (-1 = no goal).
    """
    best: dict[int, float] = {}
    came: _Came = {}
    heap: list[tuple[float, int]] = []
    begun = set(sources)

    def expand(a: int, cost: float) -> None:
        for move in moves[a]:
            b = move.to
            total = cost + move[by]
            if total > most or (crossable is not None and not crossable[b] and b != goal):
                continue
            if b not in best or total < best[b]:
                best[b] = total
                came[b] = (a, move)
                heapq.heappush(heap, (total, b))

    for a in sources:
        expand(a, 0.0)
    while heap:
        cost, a = heapq.heappop(heap)
        if a == goal:
            break
        if cost <= best[a] and a not in begun:
            expand(a, cost)
    return came


def ways_from(moves: MoveArrays, at: int, by: str, *, stay: bool) -> WaysFrom:
    """Return the cheapest paths from a place; the cost `by` is "metres" or "seconds".

    With `stay`, the path to `at` itself costs nothing. Without `stay`, it is the cheapest round
    trip. O(moves log places).
    """
    found = moves.tree(at, by)
    metres, seconds, before = found.metres, found.seconds, found.before
    if not stay:
        back = np.flatnonzero(moves.to == at)
        totals = [x[moves.source[back]] for x in (metres, seconds)]
        around = totals[0] + moves.metres[back], totals[1] + moves.seconds[back]
        metres[at] = seconds[at] = math.inf
        if len(back):
            # If round trips are equally cheap, prefer the cheapest path to the last place.
            k = 0 if by == "metres" else 1
            best = np.lexsort((moves.source[back], totals[k], around[k]))[0]
            metres[at], seconds[at] = around[0][best], around[1][best]
            before[at] = moves.source[back[best]] if math.isfinite(seconds[at]) else -1
    before[before == at] = -1  # the first place is not crossed
    return WaysFrom(metres, seconds, before)


def _path(at: int, goal: int, came: _Came) -> Route:
    path: list[int] = []
    metres = seconds = 0.0
    place = goal
    while not path or place != at:
        path.append(place)
        place, move = came[place]
        metres += move.metres
        seconds += move.seconds
    return Route(tuple(reversed(path)), Cost(metres, seconds))
