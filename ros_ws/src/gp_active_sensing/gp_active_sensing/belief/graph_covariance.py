"""Covariance of places by how they are joined: kernels of a graph, from its spectrum."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief.prior import HyperParameters, LocationCovariance
from gp_active_sensing.kernels.base import GraphKernel
from gp_active_sensing.topology.links import Links
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.cache import cached_arrays

logger = logging.getLogger(__name__)

VERSION = 1
"""Version of the computation, for the cache."""
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

    kept = cached_arrays("spectrum", VERSION, key, compute, keep=links.n >= KEPT)
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


_TABLE = 1000
"""Number of places up to which correlations are kept as tables, made in O(n³) at first use,"""
_NUMBERS = 50_000_000
"""and of their entries, n² for each length-scale."""


class GraphCovariance(LocationCovariance):
    r"""``σ_s² K`` with ``K = D^(-1/2) f(Δ) D^(-1/2)``, D the diagonal of f(Δ).

    With all eigenvectors f(Δ) = Σ_i f(ω_i) u_i u_iᵀ. With the k smallest ones f is taken as
    constant beyond, ``f(Δ) = Σ_i (f(ω_i) - f(ω_k)) u_i u_iᵀ + f(ω_k) I``: what is left out stays
    as variance of each place's own. As f is positive and does not grow, both are positive definite;
    so is K, since dividing by D keeps that. D gives every place the same prior variance σ_s².

    Args:
        kernel: density f of an eigenvalue under a length-scale [m].
        spectrum: of the graph's Laplacian.
        hyperparameters: the candidates, each with one length-scale.
        tables: (n, n) correlations by length-scale, from a covariance of the same kernel over the
            same graph before; this one's are added, those that it does not need go.

    Raises:
        ValueError: none, or one with several length-scales.
    """

    def __init__(
        self,
        kernel: GraphKernel,
        spectrum: Spectrum,
        hyperparameters: Sequence[HyperParameters],
        tables: dict[float, FloatArray] | None = None,
    ) -> None:
        if not hyperparameters:
            msg = "expected at least one hyper-parameter vector, got none"
            raise ValueError(msg)
        for h in hyperparameters:
            if len(h.length_scales) != 1:
                msg = (
                    "expected one length-scale [m] in every candidate (a graph has no features), "
                    f"got {list(h.length_scales)}"
                )
                raise ValueError(msg)
        self.kernel = kernel
        self.spectrum = spectrum
        self.n = spectrum.n
        self.hyperparameters = tuple(hyperparameters)
        self._signal = np.array([h.signal_std**2 for h in hyperparameters])
        scales = [h.length_scales[0] for h in hyperparameters]
        distinct = list(dict.fromkeys(scales))
        self._scale = np.array([distinct.index(ell) for ell in scales])
        self._spectra = [self._part(ell) for ell in distinct]
        self._distinct = distinct
        self._keep = self.n <= _TABLE and len(distinct) * self.n**2 <= _NUMBERS
        self._tables = {} if tables is None else tables
        for ell in set(self._tables) - set(distinct):
            del self._tables[ell]

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field.

        Looked up where the map is small, else O(L k r c) with k eigenvectors.
        """
        rows, columns = np.asarray(rows), np.asarray(columns)
        if self._keep:
            index = rows[:, None] * self.n + columns
            k = np.stack([self._table(s).take(index) for s in range(len(self._spectra))])
        else:
            k = self._correlations(range(len(self._spectra)), rows, columns)
        if len(k) < len(self._scale):
            k = k[self._scale]
        k *= self._signal[:, None, None]
        return np.asarray(k)

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.repeat(self._signal[:, None], len(locations), axis=1)

    def only(self, which: Sequence[int]) -> GraphCovariance:
        """Return the same under some of the candidates only."""
        other = copy(self)  # tables are those of all
        used, other._scale = np.unique(self._scale[list(which)], return_inverse=True)
        other._spectra = [self._spectra[s] for s in used.tolist()]
        other._distinct = [self._distinct[s] for s in used.tolist()]
        other._signal = self._signal[list(which)]
        other.hyperparameters = tuple(self.hyperparameters[i] for i in which)
        return other

    def times_root(self, white: FloatArray) -> FloatArray:
        """Return ``σ_s D^(-1/2) f(Δ)^(1/2) w`` of the first candidate: of white noise, a draw.

        Does not depend on the signs that a library gives to eigenvectors. O(n k).
        """
        density, rest, scale = self._spectra[int(self._scale[0])]
        vectors = self.spectrum.vectors
        smooth = vectors @ ((np.sqrt(density + rest) - np.sqrt(rest)) * (vectors.T @ white))
        return np.asarray(np.sqrt(self._signal[0]) * scale * (smooth + np.sqrt(rest) * white))

    def _part(self, length_scale: float) -> tuple[FloatArray, float, FloatArray]:
        """Return f - rest (k,), the rest, and D^(-1/2) (n,), for one length-scale."""
        spectrum = self.spectrum
        density = self.kernel.density(spectrum.values, length_scale)
        rest = 0.0 if spectrum.whole else float(density[-1])
        diagonal = (spectrum.vectors**2) @ (density - rest) + rest
        return density - rest, rest, 1.0 / np.sqrt(diagonal)

    def _table(self, s: int) -> FloatArray:
        ell = self._distinct[s]
        if (table := self._tables.get(ell)) is None:
            everything = np.arange(self.n)
            table = self._tables[ell] = self._correlations([s], everything, everything)[0]
        return table

    def _correlations(self, which: Sequence[int], rows: IntArray, columns: IntArray) -> FloatArray:
        vectors = self.spectrum.vectors
        parts = [self._spectra[s] for s in which]
        above = vectors[rows]
        left = np.concatenate([above * (scale[rows, None] * f) for f, _, scale in parts])
        # One product for all length-scales: the right side is large, and the same for all.
        k = (left @ vectors[columns].T).reshape(len(parts), len(rows), len(columns))
        for s, (_, _, scale) in enumerate(parts):
            k[s] *= scale[columns]
        # Exactly one where a place meets itself, whatever the rounding.
        k[:, rows[:, None] == columns] = 1.0
        return np.asarray(k)
