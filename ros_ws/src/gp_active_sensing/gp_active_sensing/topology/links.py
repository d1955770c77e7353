"""Which places are joined, and how far apart: the graph behind graph kernels and embeddings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from gp_active_sensing.topology.segments import Segment
from gp_active_sensing.types import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["MIDDLE", "Links", "move_links", "segment_links"]

MIDDLE = 0.5
"""Where along a segment its value belongs, unless told otherwise."""
_SHORTEST = 0.01
"""Least distance of a segment's value from either end, as a share of its length."""


@dataclass(frozen=True, eq=False)
class Links:
    """An undirected graph of n places: pairs that are joined, and the metres between them.

    Args:
        n: number of places.
        first: (m,) the smaller place of each pair.
        second: (m,) the larger one.
        metres: (m,) between where the two values belong, above 0.
        conductance: (m,) how strongly a pair is joined, 1/metres where nothing else is there [1/m].
        mass: (n,) metres of road, or the like, that each place stands for.
    """

    n: int
    first: IntArray
    second: IntArray
    metres: FloatArray
    conductance: FloatArray
    mass: FloatArray

    @classmethod
    def between(
        cls,
        n: int,
        pairs: Iterable[tuple[int, int, float, float]],
        mass: FloatArray | None = None,
    ) -> Links:
        """Return the links of pairs (i, j, metres, conductance), in either direction.

        Of pairs that are given twice the shortest metres and the largest conductance count.

        Args:
            n: number of places.
            pairs: i and j within 0 … n-1; metres and conductance above 0. i = j is left out.
            mass: (n,); None = the mean metres of the links at a place.

        Raises:
            ValueError: a pair out of range, or of no length.
        """
        shortest: dict[tuple[int, int], tuple[float, float]] = {}
        for i, j, metres, conductance in pairs:
            inside = 0 <= i < n and 0 <= j < n
            if not (inside and 0.0 < metres < np.inf and 0.0 < conductance < np.inf):
                msg = (
                    f"expected places 0 … {n - 1}, metres and conductance above 0, "
                    f"got ({i}, {j}, {metres}, {conductance})"
                )
                raise ValueError(msg)
            if i != j:
                pair = (min(i, j), max(i, j))
                before = shortest.get(pair, (np.inf, 0.0))
                shortest[pair] = (min(metres, before[0]), max(conductance, before[1]))
        joined = sorted(shortest)
        both = np.array(joined, dtype=np.int64).reshape(-1, 2)
        values = np.array([shortest[pair] for pair in joined], dtype=np.float64).reshape(-1, 2)
        first, second, lengths = both[:, 0], both[:, 1], values[:, 0]
        if mass is None:
            count = np.bincount(both.ravel(), minlength=n)
            total = np.bincount(both.ravel(), np.repeat(lengths, 2), minlength=n)
            # A place that nothing joins is on its own, whatever its mass.
            mass = np.where(count > 0, total, 1.0) / np.maximum(count, 1)
        return cls(n, first, second, lengths, values[:, 1], np.asarray(mass, dtype=np.float64))

    def matrix(self, weights: FloatArray) -> csr_array:
        """Return the symmetric (n, n) sparse matrix with `weights` (m,) at the links."""
        from scipy.sparse import coo_array

        # scipy 1.11 takes no longer indices in a graph.
        rows = np.concatenate([self.first, self.second]).astype(np.intc)
        columns = np.concatenate([self.second, self.first]).astype(np.intc)
        data = np.concatenate([weights, weights])
        return coo_array((data, (rows, columns)), shape=(self.n, self.n)).tocsr()

    @cached_property
    def parts(self) -> IntArray:
        """(n,) number of the part that each place is in; 0 is the largest."""
        from scipy.sparse.csgraph import connected_components

        _, labels = connected_components(self.matrix(np.ones(len(self.metres))), directed=False)
        order = np.argsort(-np.bincount(labels), kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return np.asarray(rank[labels])


def move_links(
    segments: Sequence[Segment], successors: Sequence[Sequence[int]], anchor: float = MIDDLE
) -> Links:
    """Return the links of segments that follow one another, made undirected. [Chen2012].

    Args:
        segments: n of them.
        successors: of each segment.
        anchor: where along a segment its value belongs: 0 its start, 1 its end.
    """
    share = _share(anchor)

    def pairs() -> Iterable[tuple[int, int, float, float]]:
        for i, out in enumerate(successors):
            for j in out:
                metres = (1.0 - share) * segments[i].length + share * segments[j].length
                yield i, j, metres, 1.0 / metres

    return Links.between(len(segments), pairs())


def segment_links(
    segments: Sequence[Segment], successors: Sequence[Sequence[int]], anchor: float = MIDDLE
) -> Links:
    r"""Return how segments are joined: at junctions, whichever way they may be driven.

    A segment's value belongs to one point of it; from there it is so far by road to either end.
    Two segments that meet at a junction are as far apart as their points are by way of it. The
    conductances are those of wires of unit resistance a metre, from the points to the junction J:
    with it eliminated (the star-mesh rule)

    .. math:: w_{ij} = g_i g_j / \sum_{k \in J} g_k, \quad g_k = 1 / (\text{metres from k to J})

    which on a road without crossings is 1 over the metres from point to point. Of segments that
    follow one another without a junction in common only the metres are known.

    Args:
        segments: n of them.
        successors: of each segment.
        anchor: where along a segment its value belongs: 0 its start, 1 its end.
    """
    arms: dict[str, list[tuple[int, float]]] = defaultdict(list)
    share = _share(anchor)
    for i, segment in enumerate(segments):
        arms[segment.start].append((i, share * segment.length))
        arms[segment.end].append((i, (1.0 - share) * segment.length))

    metres: dict[tuple[int, int], float] = {}
    conductance: dict[tuple[int, int], float] = defaultdict(float)
    for meeting in arms.values():
        total = sum(1.0 / a for _, a in meeting)
        for (i, a), (j, b) in combinations(meeting, 2):
            pair = (min(i, j), max(i, j))
            metres[pair] = min(a + b, metres.get(pair, np.inf))
            # The two directions of a road meet at both ends: wires side by side.
            conductance[pair] += 1.0 / (a * b * total)
    for i, out in enumerate(successors):
        for j in out:
            pair = (min(i, j), max(i, j))
            if segments[i].end != segments[j].start and pair not in metres:
                metres[pair] = (1.0 - share) * segments[i].length + share * segments[j].length
                conductance[pair] = 1.0 / metres[pair]
    mass = np.array([segment.length for segment in segments])
    joined = ((i, j, d, conductance[i, j]) for (i, j), d in metres.items())
    return Links.between(len(segments), joined, mass)


def _share(anchor: float) -> float:
    """Return the anchor, not quite at either end: no two segments are at the same point."""
    return min(max(anchor, _SHORTEST), 1.0 - _SHORTEST)
