"""The relational GP's coordinates: shortest paths on a graph, embedded by scaling."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from gp_active_sensing.topology.links import Links
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.cache import Shape, cached_arrays
from gp_active_sensing.util.ties import first_best

__all__ = ["Embedding", "embed", "join_parts", "manhattan_weights", "shortest_paths"]

logger = logging.getLogger(__name__)

VERSION = 1
"""Of the computation, for the cache."""
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
    """Coordinates of n places whose distances approximate the paths between them.

    Args:
        points: (n, d), centred, the axis of largest variance first.
        share: explained share: of the sum of positive eigenvalues, what the d axes hold.
        stress: root of ``Σ (|p_i - p_j| - δ_ij)² / Σ δ_ij²`` over the paths δ that were computed.
        correlation: of the distances with the paths.
        landmarks: number of places whose paths were computed; n = all.
    """

    points: FloatArray
    share: float
    stress: float
    correlation: float
    landmarks: int

    def to_mapping(self) -> dict[str, float]:
        """Return the figures as plain data."""
        return {
            "dimensions": self.points.shape[1],
            "share": self.share,
            "stress": self.stress,
            "correlation": self.correlation,
            "landmarks": self.landmarks,
        }

    def __str__(self) -> str:
        n, d = self.points.shape
        paths = "all pairs" if self.landmarks == n else f"{self.landmarks} landmarks"
        return (
            f"{n} places in {d} dimensions from the paths of {paths}: {100 * self.share:.1f} % "
            f"explained, stress {self.stress:.3f}, correlation of distances {self.correlation:.3f}"
        )


def manhattan_weights(
    links: Links,
    columns: FloatArray,
    circular: FloatArray,
    further: FloatArray | None = None,
) -> FloatArray:
    """Return the (m,) range-normalised Manhattan distances of linked places. [Chen2012].

    ``w_ij = Σ_k |s_ik - s_jk| / range_k + Σ_l angle(i, j) / π``. A column that is the same
    everywhere adds nothing. Weights of zero, or nearly, become a hundredth of the median: places
    that look the same are near each other, not one place. With nothing to tell places apart each
    link weighs one.

    Args:
        links: the m pairs.
        columns: (n, p) features.
        circular: (n, c) angles [rad].
        further: (m,) one more distance of linked places; its longest counts as one.
    """
    i, j = links.first, links.second
    span = np.ptp(columns, axis=0)
    varying = span > 1e-12 * np.abs(columns).max(axis=0, initial=0.0)
    scaled = columns[:, varying] / span[varying]
    weights = np.abs(scaled[i] - scaled[j]).sum(axis=1)
    turn = np.abs(circular[i] - circular[j]) % (2.0 * np.pi)
    weights += (np.minimum(turn, 2.0 * np.pi - turn) / np.pi).sum(axis=1)
    if further is not None:
        weights += further / further.max(initial=np.finfo(float).tiny)
    return floored(weights)


def floored(weights: FloatArray) -> FloatArray:
    """Return weights none of which is zero; see `manhattan_weights`."""
    positive = weights[weights > 1e-12 * weights.max(initial=0.0)]
    if not positive.size:
        return np.ones_like(weights)
    return np.asarray(np.maximum(weights, FLOOR * np.median(positive)))


def join_parts(
    links: Links, weights: FloatArray, positions: FloatArray
) -> tuple[Links, FloatArray]:
    """Return links and weights with every part joined to the largest, where it comes nearest.

    Such a bridge counts as the chain of typical links that would fill the gap: its weight is the
    median weight times the straight distance in median links, and not less than the median weight.

    Args:
        links: the m pairs.
        weights: (m,) their weights.
        positions: (n, 2) metres.
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

    shapes: dict[str, Shape] = {"points": (links.n, "dimensions"), "numbers": (4,)}
    kept = cached_arrays("embedding", VERSION, key, shapes, compute, keep=links.n >= KEPT)
    explained, stress, correlation, landmarks = kept["numbers"].tolist()
    return Embedding(kept["points"], explained, stress, correlation, int(landmarks))


def _embed(
    links: Links, weights: FloatArray, share: float, exact: int, landmarks: int = LANDMARKS
) -> Embedding:
    n = links.n
    if n <= exact:
        sources = np.arange(n)
        paths = shortest_paths(links, weights)
    else:
        sources, paths = _landmarks(links, weights, min(landmarks, n))
    k = len(sources)
    squares = paths[:, sources] ** 2
    row = squares.mean(axis=0)
    values, vectors = np.linalg.eigh(-0.5 * (squares - row - row[:, None] + row.mean()))
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = values > 1e-9 * max(values[0], 0.0)
    if not positive.any():  # one place, or none apart
        return Embedding(np.zeros((n, 1)), 1.0, 0.0, 1.0, k)
    held = np.cumsum(values[positive]) / values[positive].sum()
    d = min(int(np.searchsorted(held, share - 1e-12)) + 1, MOST, int(positive.sum()))
    # A sign of our own choosing: libraries differ.
    axes = vectors[:, :d] * np.sign(vectors[first_best(np.abs(vectors[:, :d]).T), np.arange(d)])
    if n <= exact:
        points = axes * np.sqrt(values[:d])
    else:
        points = -0.5 * ((paths**2).T - row) @ (axes / np.sqrt(values[:d]))
    stress, correlation = _distortion(points, sources, paths)
    return Embedding(points, float(held[d - 1]), stress, correlation, k)


def _landmarks(links: Links, weights: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Return landmarks, each the farthest from those before, and their (k, n) paths."""
    paths = np.empty((count, links.n))
    chosen = np.empty(count, dtype=np.int64)
    nearest = np.full(links.n, np.inf)
    place = 0
    for k in range(count):
        chosen[k] = place
        paths[k] = shortest_paths(links, weights, np.array([place]))[0]
        nearest = np.minimum(nearest, paths[k])
        place = int(nearest.argmax())
    return chosen, paths


def _distortion(points: FloatArray, sources: IntArray, paths: FloatArray) -> tuple[float, float]:
    """Return stress and correlation of the distances from `sources` with the paths."""
    from scipy.spatial.distance import cdist

    distances = cdist(points[sources], points)
    total = float((paths**2).sum())
    stress = float(np.sqrt(((distances - paths) ** 2).sum() / total)) if total > 0.0 else 0.0
    apart = sources[:, None] != np.arange(len(points))
    a, b = distances[apart], paths[apart]
    if a.size < 2 or a.std() == 0.0 or b.std() == 0.0:
        return stress, 1.0
    return stress, float(np.corrcoef(a, b)[0, 1])
