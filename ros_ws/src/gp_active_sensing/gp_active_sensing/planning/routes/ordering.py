"""Order of visits by a short open tour, also for asymmetric distances as on roads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.types import FloatArray, IntArray

_LONGEST = 3
"""Largest number of places in a piece that Or-opt moves."""
_BOTH = 40
"""Number of places up to which `short_tour` improves both initial tours."""


@dataclass(frozen=True)
class VisitOrder:
    """Order of the visits of k places.

    Args:
        order: (k,) indices of the places.
        expanded: number of searches for an improvement. Each search changes the tour at one place.
    """

    order: IntArray
    expanded: int


def short_tour(
    between: FloatArray,
    first: FloatArray | None = None,
    last: FloatArray | None = None,
    *,
    limit: int | None = None,
    spent: Callable[[], bool] = lambda: False,
) -> VisitOrder:
    """Return a short open tour through k places. The function is deterministic.

    The initial tours come from cheapest insertion and from nearest neighbour. 2-opt and Or-opt
    improve the shorter tour, or both tours if there are few places.

    Args:
        between: (k, k) distances between places, possibly asymmetric; infinite = no route.
        first: (k,) distances from the start to each place; None = the tour may begin anywhere.
        last: (k,) distances from each place to the end; None = the tour may end anywhere.
        limit: largest number of searches for an improvement; None = no limit.
        spent: function that returns whether time is up.

    Raises:
        ValueError: the shapes do not match.
    """
    k = len(between)
    if between.shape != (k, k) or any(x is not None and x.shape != (k,) for x in (first, last)):
        msg = f"expected distances between {k} places, from the start (k,) and to the end (k,)"
        raise ValueError(msg)
    if k == 0:
        return VisitOrder(np.empty(0, dtype=np.int64), 0)
    search = _Search(_closed(between, first, last), limit, spent)
    begun = [search.cheapest_insertion(), search.nearest_neighbour()]
    begun.sort(key=search.length)
    tours = [search.improve(tour) for tour in begun[: 2 if k <= _BOTH else 1]]
    return VisitOrder(min(tours, key=search.length)[1:] - 1, search.expanded)


def _closed(between: FloatArray, first: FloatArray | None, last: FloatArray | None) -> FloatArray:
    """Return the distances (k+1, k+1) of a closed tour; place 0 is both start and end.

    Missing routes get a distance above the length of any tour.
    """
    k = len(between)
    closed = np.zeros((k + 1, k + 1))
    closed[1:, 1:] = between
    if first is not None:
        closed[0, 1:] = first
    if last is not None:
        closed[1:, 0] = last
    np.fill_diagonal(closed, 0.0)
    known = np.isfinite(closed)
    if not known.all():
        closed[~known] = (k + 2.0) * float(closed[known].max(initial=0.0)) + 1.0
    return closed


class _Search:
    """Search for short closed tours that begin with place 0; all distances (m, m) are finite."""

    def __init__(self, distances: FloatArray, limit: int | None, spent: Callable[[], bool]) -> None:
        self.distances = distances
        self.expanded = 0
        self._limit = math.inf if limit is None else limit
        self._spent = spent
        self._least = 1e-9 * float(distances.max(initial=0.0))

    def length(self, tour: IntArray) -> float:
        return float(self.distances[tour, np.roll(tour, -1)].sum())

    def nearest_neighbour(self) -> IntArray:
        m = len(self.distances)
        left = np.ones(m, dtype=np.bool_)
        tour = [0]
        for _ in range(m - 1):
            left[tour[-1]] = False
            tour.append(int(np.argmin(np.where(left, self.distances[tour[-1]], np.inf))))
        return np.array(tour, dtype=np.int64)

    def cheapest_insertion(self) -> IntArray:
        d, m = self.distances, len(self.distances)
        after = np.zeros(m, dtype=np.int64)
        left = np.ones(m, dtype=np.bool_)
        left[0] = False
        where = np.zeros(m, dtype=np.int64)
        adds = d[0] + d[:, 0]
        for _ in range(m - 1):
            x = int(np.argmin(np.where(left, adds, np.inf)))
            a = int(where[x])
            b = int(after[a])
            after[a], after[x], left[x] = x, b, False
            # The best leg for inserting the places `lost` is gone, so all legs are compared.
            lost = np.flatnonzero(left & (where == a))
            for tail, head in ((a, x), (x, b)):
                adding = d[tail] + d[:, head] - d[tail, head]
                better = left & (adding < adds)
                adds[better], where[better] = adding[better], tail
            if lost.size:
                tails = np.flatnonzero(~left)
                heads = after[tails]
                every = d[tails][:, lost] + d[lost][:, heads].T - d[tails, heads][:, None]
                least = np.argmin(every, axis=0)
                adds[lost], where[lost] = every[least, np.arange(lost.size)], tails[least]
        tour = [0]
        while (following := int(after[tour[-1]])) != 0:
            tour.append(following)
        return np.array(tour, dtype=np.int64)

    def improve(self, tour: IntArray) -> IntArray:
        """Improve a tour by 2-opt and Or-opt, until no change helps or a limit is reached."""
        m = len(tour)
        since = 0
        place = 1
        while since < m - 1 and m > 2:
            if self.expanded >= self._limit or self._spent():
                break
            self.expanded += 1
            found = self._turn(tour, place)
            if found is None:
                found = self._move(tour, place)
            if found is None:
                since += 1
            else:
                tour, since = found, 0
            place = place + 1 if place < m - 1 else 1
        return tour

    def _turn(self, tour: IntArray, i: int) -> IntArray | None:
        """Reverse the best piece that begins at index i (2-opt); None = no reversal helps."""
        d, m = self.distances, len(tour)
        if i >= m - 1:
            return None
        part = tour[i:]
        following = np.append(tour[i + 1 :], 0)
        there = d[part[:-1], part[1:]]
        back = d[part[1:], part[:-1]]
        turned = np.concatenate([[0.0], np.cumsum(back - there)])
        before = tour[i - 1]
        changes = turned + d[before, part] + d[part[0], following]
        changes -= d[before, part[0]] + d[part, following]
        j = int(np.argmin(changes))
        if changes[j] >= -self._least or j == 0:
            return None
        found: IntArray = tour.copy()
        found[i : i + j + 1] = part[: j + 1][::-1]
        return found

    def _move(self, tour: IntArray, i: int) -> IntArray | None:
        """Make the best Or-opt move of a piece that begins at index i; None = no move helps."""
        d, m = self.distances, len(tour)
        best: tuple[float, IntArray] | None = None
        for length in range(1, min(_LONGEST, m - i, m - 2) + 1):
            piece = tour[i : i + length]
            rest = np.concatenate([tour[:i], tour[i + length :]])
            following = np.append(rest[1:], 0)
            a, b = tour[i - 1], tour[i + length] if i + length < m else 0
            saved = d[a, piece[0]] + d[piece[-1], b] - d[a, b]
            legs = d[rest, following]
            inside = d[piece[:-1], piece[1:]].sum()
            for way in (piece, piece[::-1]):
                longer = d[way[:-1], way[1:]].sum() - inside
                changes = d[rest, way[0]] + d[way[-1], following] - legs + (longer - saved)
                p = int(np.argmin(changes))
                if changes[p] < -self._least and (best is None or changes[p] < best[0]):
                    best = (
                        float(changes[p]),
                        np.concatenate([rest[: p + 1], way, rest[p + 1 :]]),
                    )
                if length == 1:
                    break
        return None if best is None else best[1]
