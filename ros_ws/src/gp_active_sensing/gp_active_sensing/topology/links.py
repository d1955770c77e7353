"""Which places are joined, and how far apart: the graph behind graph kernels, and its embedding."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from gp_active_sensing.topology.segments import Segment
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.cache import cached_arrays
from gp_active_sensing.util.ties import first_best

if TYPE_CHECKING:
    from scipy.sparse import csr_array

logger = logging.getLogger(__name__)

MIDDLE = 0.5
"""Where along a segment its value belongs, unless told otherwise."""
_SHORTEST = 0.01
"""Least distance of a segment's value from either end, as a share of its length."""


@dataclass(frozen=True, eq=False)
class Links:
    """An undirected graph of n places: pairs that are joined, and the metres between them."""

    n: int  # number of places
    first: IntArray  # (m,) the smaller place of each pair
    second: IntArray  # (m,) the larger one
    metres: FloatArray  # (m,) between where the two values belong, above 0
    # (m,) how strongly a pair is joined, 1/metres where nothing else is there [1/m]
    conductance: FloatArray
    mass: FloatArray  # (n,) metres of road, or the like, that each place stands for

    @classmethod
    def between(
        cls,
        n: int,
        pairs: Iterable[tuple[int, int, float, float]],
        mass: FloatArray | None = None,
    ) -> Links:
        """Return the links of pairs (i, j, metres, conductance), in either direction.

        A pair with i = j is left out. Of pairs that are given twice the shortest metres and the
        largest conductance count. A mass of None is the mean metres of the links at a place.

        Raises:
            ValueError: a pair out of 0 … n-1, or of no length or conductance.
        """
        data = np.array(list(pairs), dtype=np.float64).reshape(-1, 4)
        ends, values = np.sort(data[:, :2].astype(np.int64), axis=1), data[:, 2:]
        inside = ((ends >= 0) & (ends < n) & (values > 0.0) & (values < np.inf)).all(axis=1)
        if not inside.all():
            i, j, metres, conductance = data[~inside][0].tolist()
            msg = (
                f"expected places 0 … {n - 1}, metres and conductance above 0, "
                f"got ({i:g}, {j:g}, {metres}, {conductance})"
            )
            raise ValueError(msg)
        apart = ends[:, 0] != ends[:, 1]
        ends, values = ends[apart], values[apart]
        both, number = np.unique(ends, axis=0, return_inverse=True)
        lengths, conductances = np.full(len(both), np.inf), np.zeros(len(both))
        np.minimum.at(lengths, number, values[:, 0])
        np.maximum.at(conductances, number, values[:, 1])
        first, second = both[:, 0], both[:, 1]
        if mass is None:
            count = np.bincount(both.ravel(), minlength=n)
            total = np.bincount(both.ravel(), np.repeat(lengths, 2), minlength=n)
            # A place that nothing joins is on its own, whatever its mass.
            mass = np.where(count > 0, total, 1.0) / np.maximum(count, 1)
        return cls(n, first, second, lengths, conductances, np.asarray(mass, dtype=np.float64))

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

    `anchor` is where along a segment its value belongs: 0 its start, 1 its end.
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
    follow one another without a junction in common only the metres are known. `anchor` is where
    along a segment its value belongs: 0 its start, 1 its end.
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


VERSION = 1
"""Version of the computation, for the cache."""
FLOOR = 0.01
"""Least weight of a link, relative to the median of those above zero."""
EXACT = 3000
"""Number of places up to which all pairs enter; beyond, the paths from landmarks do."""
LANDMARKS = 600
KEPT = 300
"""Number of places from which on the result is worth keeping on disk."""
MOST = 24
"""Most dimensions of an embedding, whatever share they explain."""


@dataclass(frozen=True, eq=False)
class Embedding:
    """Coordinates of n places whose distances approximate the paths between them."""

    points: FloatArray  # (n, d), centred, the axis of largest variance first
    share: float  # explained share: of the sum of positive eigenvalues, what the d axes hold
    # root of ``Σ (|p_i - p_j| - δ_ij)² / Σ δ_ij²`` over the paths δ that were computed
    stress: float
    correlation: float  # of the distances with the paths
    landmarks: int  # number of places whose paths were computed; n = all

    def __str__(self) -> str:
        n, d = self.points.shape
        paths = "all pairs" if self.landmarks == n else f"{self.landmarks} landmarks"
        return (
            f"{n} places in {d} dimensions from the paths of {paths}: {100 * self.share:.1f} % "
            f"explained, stress {self.stress:.3f}, correlation of distances {self.correlation:.3f}"
        )


def manhattan_weights(links: Links, columns: FloatArray, circular: FloatArray) -> FloatArray:
    """Return the (m,) range-normalised Manhattan distances of linked places. [Chen2012].

    ``w_ij = Σ_k |s_ik - s_jk| / range_k + Σ_l angle(i, j) / π`` of (n, p) columns and (n, c)
    circular angles [rad]. A column that is the same everywhere adds nothing. Weights of zero, or
    nearly, become a hundredth of the median: places that look the same are near each other, not one
    place. If all places look the same, each link weighs one.
    """
    i, j = links.first, links.second
    span = np.ptp(columns, axis=0)
    varying = span > 1e-12 * np.abs(columns).max(axis=0, initial=0.0)
    scaled = columns[:, varying] / span[varying]
    weights = np.abs(scaled[i] - scaled[j]).sum(axis=1)
    turn = np.abs(circular[i] - circular[j]) % (2.0 * np.pi)
    weights += (np.minimum(turn, 2.0 * np.pi - turn) / np.pi).sum(axis=1)
    positive = weights[weights > 1e-12 * weights.max(initial=0.0)]
    if not positive.size:
        return np.ones_like(weights)
    return np.asarray(np.maximum(weights, FLOOR * np.median(positive)))


def join_parts(
    links: Links, weights: FloatArray, positions: FloatArray
) -> tuple[Links, FloatArray]:
    """Return links and (m,) weights with every part joined to the largest, where it comes nearest.

    Such a bridge counts as the chain of typical links that would fill the gap: its weight is the
    median weight times the straight distance in median links, and not less than the median weight.
    Positions are (n, 2) [m].
    """
    from scipy.spatial import cKDTree

    parts = links.parts
    if not parts.any():
        return links, weights
    largest = np.flatnonzero(parts == 0)
    others = np.flatnonzero(parts > 0)
    found = cKDTree(positions[largest]).query(positions[others])
    gap, nearest = np.asarray(found[0]), np.asarray(found[1])
    order = np.lexsort((gap, parts[others]))
    _, first = np.unique(parts[others][order], return_index=True)
    chosen = order[first]
    typical = float(np.median(links.metres)) if links.metres.size else float(np.median(gap)) or 1.0
    metres = np.maximum(gap[chosen], typical)
    unit = float(np.median(weights)) if weights.size else 1.0
    pairs = np.sort(np.column_stack([others[chosen], largest[nearest[chosen]]]), axis=1)
    joined = replace(
        links,
        first=np.concatenate([links.first, pairs[:, 0]]),
        second=np.concatenate([links.second, pairs[:, 1]]),
        metres=np.concatenate([links.metres, metres]),
        conductance=np.concatenate([links.conductance, 1.0 / metres]),
    )
    return joined, np.concatenate([weights, unit * metres / typical])


def shortest_paths(
    links: Links, weights: FloatArray, sources: IntArray | None = None
) -> FloatArray:
    """Return the (k, n) lengths of the shortest paths from `sources`, None = from all places."""
    from scipy.sparse.csgraph import dijkstra

    return np.asarray(dijkstra(links.matrix(weights), directed=False, indices=sources))


def embed(
    links: Links, weights: FloatArray, *, share: float = 0.95, exact: int = EXACT
) -> Embedding:
    """Return the embedding of a connected graph, from the cache where it has been made before.

    Classical scaling [Torgerson1952] of the shortest paths δ: with J = I - 11ᵀ/n the eigenvectors
    of ``-½ J δ² J`` times the roots of their eigenvalues. Negative eigenvalues, which shortest
    paths bring, are left out, so any stationary kernel of the points is positive semi-definite.
    Beyond `exact` places the same is done for landmarks, each the farthest place from those before,
    and the others are placed by their paths to them [deSilva2004]. O(n³), or O(k n log n + k³).

    Args:
        links: of the graph; all places joined, see `join_parts`.
        weights: (m,) of the links, above 0.
        share: of the sum of positive eigenvalues that the dimensions must hold.
        exact: number of places up to which all paths are computed.
    """
    key = {
        "n": links.n,
        "first": links.first,
        "second": links.second,
        "weights": weights,
        "share": share,
        "settings": (exact, LANDMARKS, MOST),
    }

    def compute() -> dict[str, FloatArray]:
        made = _embed(links, weights, share, exact)
        numbers = np.array([made.share, made.stress, made.correlation, made.landmarks])
        return {"points": made.points, "numbers": numbers}

    kept = cached_arrays("embedding", VERSION, key, compute, keep=links.n >= KEPT)
    explained, stress, correlation, landmarks = kept["numbers"].tolist()
    return Embedding(kept["points"], explained, stress, correlation, int(landmarks))


def _embed(links: Links, weights: FloatArray, share: float, exact: int) -> Embedding:
    n = links.n
    if n <= exact:
        sources = np.arange(n)
        paths = shortest_paths(links, weights)
    else:
        count = min(LANDMARKS, n)  # each the farthest from those before
        sources, paths = np.zeros(count, dtype=np.int64), np.empty((count, n))
        nearest = np.full(n, np.inf)
        for k in range(count):
            sources[k] = nearest.argmax() if k else 0
            paths[k] = shortest_paths(links, weights, sources[k : k + 1])[0]
            nearest = np.minimum(nearest, paths[k])
    k = len(sources)
    squares = paths[:, sources] ** 2
    row = squares.mean(axis=0)
    values, vectors = np.linalg.eigh(-0.5 * (squares - row - row[:, None] + row.mean()))
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = values > 1e-9 * max(values[0], 0.0)
    if not positive.any():  # one place, or none apart
        return Embedding(np.zeros((n, 1)), 1.0, 0.0, 1.0, k)
    shares = np.cumsum(values[positive]) / values[positive].sum()
    d = min(int(np.searchsorted(shares, share - 1e-12)) + 1, MOST, int(positive.sum()))
    # A sign of our own choosing: libraries differ.
    axes = vectors[:, :d] * np.sign(vectors[first_best(np.abs(vectors[:, :d]).T), np.arange(d)])
    if n <= exact:
        points = axes * np.sqrt(values[:d])
    else:
        points = -0.5 * ((paths**2).T - row) @ (axes / np.sqrt(values[:d]))
    stress, correlation = _distortion(points, sources, paths)
    return Embedding(points, float(shares[d - 1]), stress, correlation, k)


def _distortion(points: FloatArray, sources: IntArray, paths: FloatArray) -> tuple[float, float]:
    from scipy.spatial.distance import cdist

    distances = cdist(points[sources], points)
    total = float((paths**2).sum())
    stress = float(np.sqrt(((distances - paths) ** 2).sum() / total)) if total > 0.0 else 0.0
    apart = sources[:, None] != np.arange(len(points))
    a, b = distances[apart], paths[apart]
    if a.size < 2 or a.std() == 0.0 or b.std() == 0.0:
        return stress, 1.0
    return stress, float(np.corrcoef(a, b)[0, 1])
