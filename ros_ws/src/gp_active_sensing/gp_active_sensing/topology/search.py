"""Searches along directed moves, in plain lists: cheapest ways, what is near, connected parts."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gp_active_sensing.types import BoolArray, Cost, FloatArray, IntArray, Route

__all__ = [
    "Components",
    "Move",
    "Moves",
    "Ways",
    "WaysFrom",
    "cheapest",
    "components_of",
    "nearest_ring",
    "reached",
    "ways_from",
    "ways_to",
    "within",
]


class Move(NamedTuple):
    """A legal move: the place it leads to, and what it costs."""

    to: int
    metres: float
    seconds: float


Moves = Sequence[Sequence[Move]]
"""(n,) the moves out of each place."""
_Came = dict[int, tuple[int, Move]]


@dataclass(frozen=True)
class Ways:
    """The cheapest way to one place from every other, whatever is crossed."""

    goal: int  # where they lead
    # (n,) what each costs, None where there is none; nothing from the goal itself
    costs: tuple[Cost | None, ...]
    # (n,) the place that comes next, -1 where there is none and at the goal
    following: tuple[int, ...]

    def route(self, at: int) -> Route | None:
        """Return the way from `at`: () at the goal, None where there is none."""
        cost = self.costs[at]
        if cost is None:
            return None
        path: list[int] = []
        while at != self.goal:
            at = self.following[at]
            path.append(at)
        return Route(tuple(path), cost)


@dataclass(frozen=True)
class WaysFrom:
    """The cheapest way from one place to every other, whatever is crossed."""

    metres: FloatArray  # (n,) driven, infinite where there is no way
    seconds: FloatArray  # (n,) the same in time
    before: IntArray  # (n,) the last place that is crossed on the way, -1 where none is (or no way)
    # places with a way, each after the one before it; None where nothing is ever crossed
    order: tuple[int, ...] | None = None

    def route(self, goal: int) -> Route | None:
        """Return the way to a place, None where there is none."""
        if not np.isfinite(self.seconds[goal]):
            return None
        path = [goal]
        while (place := int(self.before[path[-1]])) >= 0:
            path.append(place)
        cost = Cost(float(self.metres[goal]), float(self.seconds[goal]))
        return Route(tuple(reversed(path)), cost)

    def reads(self, unread: BoolArray) -> IntArray:
        """Return how many places of (n,) `unread` are on each way, the goal among them."""
        own = unread.astype(np.int64)
        if self.order is None:
            return own
        total, before = own.tolist(), self.before.tolist()
        for place in self.order:
            if before[place] >= 0:
                total[place] += total[before[place]]
        return np.array(total, dtype=np.int64)


def nearest_ring(
    following: Sequence[Sequence[int]], at: int, crossable: bytes | bytearray
) -> list[int]:
    """Return the unobserved places the fewest moves away through crossable ones, sorted.

    `following` (n,) are the places one move after each, `crossable` (n,) is 1 where one may pass.
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


def cheapest(moves: Moves, at: int, goal: int, crossable: bytes | bytearray) -> Route | None:
    """Return the fastest way through crossable places, None when there is none.

    Dijkstra in seconds from `at`, whose own place is entered only when it is the goal.
    """
    best: dict[int, float] = {}
    came: _Came = {}
    heap: list[tuple[float, int]] = []

    def expand(a: int, seconds: float) -> None:
        for move in moves[a]:
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
            return _path(at, goal, came)
        if seconds <= best[a] and a != at:
            expand(a, seconds)
    return None


def within(moves: Moves, at: int, metres: float) -> dict[int, Route]:
    """Return the shortest way to every place within so many metres, whatever is crossed.

    Dijkstra in metres; `at` itself is among them when a loop that short leads back to it.
    """
    best: dict[int, float] = {}
    came: _Came = {}
    heap: list[tuple[float, int]] = []
    done: set[int] = set()

    def expand(a: int, driven: float) -> None:
        for move in moves[a]:
            total = driven + move.metres
            if total <= metres and (move.to not in best or total < best[move.to]):
                best[move.to] = total
                came[move.to] = (a, move)
                heapq.heappush(heap, (total, move.to))

    expand(at, 0.0)
    while heap:
        driven, a = heapq.heappop(heap)
        if a not in done:
            done.add(a)
            if a != at:
                expand(a, driven)
    return {goal: _path(at, goal, came) for goal in sorted(done)}


def reached(moves: Moves, sources: Sequence[int], metres: float) -> set[int]:
    """Return the places within so many metres of some of the sources, whatever is crossed."""
    best: dict[int, float] = {}
    heap = [(0.0, a) for a in sources]
    found: set[int] = set()
    while heap:
        driven, a = heapq.heappop(heap)
        if driven > best.get(a, driven):
            continue
        for move in moves[a]:
            total = driven + move.metres
            if total <= metres and total < best.get(move.to, float("inf")):
                best[move.to] = total
                found.add(move.to)
                heapq.heappush(heap, (total, move.to))
    return found


def ways_to(moves: Moves, goal: int, by: str) -> Ways:
    """Return the cheapest way to a place from every other, in "metres" or "seconds".

    One Dijkstra from the goal against the moves, whatever is crossed; O(moves log places).
    """
    n = len(moves)
    into: list[list[tuple[int, Move]]] = [[] for _ in range(n)]
    for a, out in enumerate(moves):
        for move in out:
            into[move.to].append((a, move))
    costs: list[Cost | None] = [None] * n
    following = [-1] * n
    least = [float("inf")] * n
    least[goal], costs[goal] = 0.0, Cost(0.0, 0.0)
    heap = [(0.0, goal)]
    while heap:
        total, b = heapq.heappop(heap)
        rest = costs[b]
        if total > least[b] or rest is None:
            continue
        for a, move in into[b]:
            cost = rest.plus(Cost(move.metres, move.seconds))
            value = cost.metres if by == "metres" else cost.seconds
            if value < least[a]:
                least[a], costs[a], following[a] = value, cost, b
                heapq.heappush(heap, (value, a))
    return Ways(goal, tuple(costs), tuple(following))


def ways_from(moves: Moves, at: int, by: str, *, stay: bool) -> WaysFrom:
    """Return the cheapest way from a place to every other, in "metres" or "seconds".

    One Dijkstra along the moves, whatever is crossed; O(moves log places). With `stay` the way to
    `at` itself costs nothing; otherwise it is the cheapest round.
    """
    n = len(moves)
    metres, seconds = [float("inf")] * n, [float("inf")] * n
    least = metres if by == "metres" else seconds
    before = [-1] * n
    done = bytearray(n)
    order: list[int] = []
    heap: list[tuple[float, int]] = []

    def expand(a: int, driven: float, taken: float, crossed: int) -> None:
        for move in moves[a]:
            b = move.to
            further, later = driven + move.metres, taken + move.seconds
            value = further if by == "metres" else later
            if value < least[b]:
                metres[b], seconds[b], before[b] = further, later, crossed
                heapq.heappush(heap, (value, b))

    expand(at, 0.0, 0.0, -1)
    if stay:
        metres[at] = seconds[at] = 0.0
        before[at], done[at] = -1, 1
        order.append(at)
    while heap:
        _, a = heapq.heappop(heap)
        if not done[a]:
            done[a] = 1
            order.append(a)
            if a != at:  # what lies behind the start is nearer without going round to it
                expand(a, metres[a], seconds[a], a)
    crossed_last = np.array(before, dtype=np.int64)
    return WaysFrom(np.array(metres), np.array(seconds), crossed_last, tuple(order))


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


@dataclass(frozen=True)
class Components:
    """How places hang together."""

    weak: int  # number of parts that no move joins, in either direction
    strong: int  # number of parts with a way from each place to each
    # places of the largest of those, sorted; of equally large ones, that with the first place
    largest: tuple[int, ...]
    outside: tuple[int, ...]  # the other places, sorted
    traps: tuple[int, ...]  # places without any move to another one, sorted


def components_of(following: Sequence[Sequence[int]]) -> Components:
    """Return the parts of n places, of which (n,) `following` are one move after each."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(following)
    # scipy 1.11 takes no longer indices in a graph.
    to = np.array([b for out in following for b in out], dtype=np.intc)
    starts = np.cumsum([0, *(len(out) for out in following)], dtype=np.intc)
    matrix = csr_array((np.ones(len(to)), to, starts), shape=(n, n))
    weak, _ = connected_components(matrix, directed=True, connection="weak")
    strong, labels = connected_components(matrix, directed=True, connection="strong")
    sizes = np.bincount(labels)
    first = np.unique(labels, return_index=True)[1]
    best = min(range(strong), key=lambda part: (-sizes[part], first[part]))
    return Components(
        int(weak),
        int(strong),
        tuple(np.flatnonzero(labels == best).tolist()),
        tuple(np.flatnonzero(labels != best).tolist()),
        tuple(a for a, out in enumerate(following) if not set(out) - {a}),
    )
