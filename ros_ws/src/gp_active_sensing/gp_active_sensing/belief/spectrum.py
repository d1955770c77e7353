"""Eigenvalues and eigenvectors of a graph's Laplacian: what graph kernels are made of."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.topology.links import Links
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.cache import Shape, cached_arrays

__all__ = ["EXACT", "TRUNCATED", "Spectrum", "laplacian_spectrum"]

logger = logging.getLogger(__name__)

VERSION = 1
"""Of the computation, for the cache."""
EXACT = 3000
"""Number of places up to which all eigenvectors are computed."""
KEPT = 300
"""Number of places from which on the result is worth keeping on disk."""
TRUNCATED = 500
"""Number of eigenvectors, those of the smallest eigenvalues, beyond."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The smallest eigenvalues of the Laplacian of n places, with their eigenvectors.

    Args:
        values: (k,) ascending [1/m²].
        vectors: (n, k) orthonormal.
        spacing: median metres of a link.
        extent: of the map: its longest shortest path [m], as far as a few searches find it.
    """

    values: FloatArray
    vectors: FloatArray
    spacing: float
    extent: float

    @property
    def n(self) -> int:
        """Number of places."""
        return int(self.vectors.shape[0])

    @property
    def whole(self) -> bool:
        """All eigenvectors are there."""
        return bool(self.vectors.shape[0] == self.vectors.shape[1])


def laplacian_spectrum(links: Links, *, exact: int = EXACT) -> Spectrum:
    r"""Return the spectrum of a graph's Laplacian, from the cache where it has been made before.

    .. math:: \Delta = M^{-1/2} (D - W) M^{-1/2}

    with the conductances W of the links [1/m], D their row sums and the masses M of the places [m].
    On a row of places it is the finite-difference -d²/dx², on a square lattice -∇², so that its
    eigenvalues are squared wave numbers [1/m²] and length-scales are metres.

    Args:
        links: the graph; parts that no link joins stay independent.
        exact: number of places up to which all eigenvectors are computed, O(n³); beyond, the
            `TRUNCATED` smallest.
    """
    key = {
        "n": links.n,
        "first": links.first,
        "second": links.second,
        "metres": links.metres,
        "conductance": links.conductance,
        "mass": links.mass,
        "settings": (exact, TRUNCATED),
    }

    def compute() -> dict[str, FloatArray]:
        values, vectors = _eigen(links, exact)
        return {"values": values, "vectors": vectors, "size": np.array(_size(links))}

    shapes: dict[str, Shape] = {"values": ("k",), "vectors": (links.n, "k"), "size": (2,)}
    kept = cached_arrays("spectrum", VERSION, key, shapes, compute, keep=links.n >= KEPT)
    spacing, extent = kept["size"].tolist()
    if kept["values"].size < links.n:
        logger.info(
            "graph of %d places: the %d smoothest eigenvectors are used; detail of less than "
            "about %.3g m is taken as independent from place to place",
            links.n,
            kept["values"].size,
            1.0 / np.sqrt(kept["values"][-1]),
        )
    return Spectrum(kept["values"], kept["vectors"], spacing, extent)


def _eigen(links: Links, exact: int) -> tuple[FloatArray, FloatArray]:
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import eigsh

    n = links.n
    W = links.matrix(links.conductance)
    root = 1.0 / np.sqrt(links.mass)
    degree = np.asarray(W.sum(axis=1))
    if n <= exact:
        dense = (np.diag(degree) - W.toarray()) * root[:, None] * root
        values, vectors = np.linalg.eigh(0.5 * (dense + dense.T))
        return np.maximum(values, 0.0), vectors
    where = np.arange(n, dtype=np.intc)
    scale, degrees = (
        csc_array((diagonal, (where, where)), shape=(n, n)) for diagonal in (root, degree)
    )
    laplacian = csc_array(scale @ (degrees - W) @ scale)
    # Shift and invert a hair below zero, where the matrix is not singular.
    shift = -1e-6 * float(np.median(degree * root**2))
    values, vectors = eigsh(
        laplacian, k=TRUNCATED, sigma=shift, which="LM", v0=np.random.default_rng(0).random(n)
    )
    order = np.argsort(values)
    return np.maximum(values[order], 0.0), np.ascontiguousarray(vectors[:, order])


def _size(links: Links) -> tuple[float, float]:
    """Return the median metres of a link and the longest path that two sweeps find."""
    from gp_active_sensing.topology.links import shortest_paths

    if not links.metres.size:
        return 1.0, 1.0
    spacing = float(np.median(links.metres))
    largest = np.flatnonzero(links.parts == 0)
    place, extent = int(largest[0]), spacing
    for _ in range(4):
        paths = shortest_paths(links, links.metres, np.array([place]))[0]
        paths = np.where(np.isfinite(paths), paths, 0.0)
        place, extent = int(paths.argmax()), max(extent, float(paths.max()))
    return spacing, extent
