"""Covariance of places on a graph, from kernels on the spectrum of the graph's Laplacian."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief.prior import HyperParameters, SignalCovariance
from gp_active_sensing.kernels.base import GraphKernel
from gp_active_sensing.topology.segments import Links
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.cache import cached_arrays

logger = logging.getLogger(__name__)

VERSION = 1
"""Version of the computation; it is part of the cache key."""
EXACT = 3000
"""Largest number of places for which all eigenvectors are computed."""
KEPT = 300
"""Smallest number of places for which a spectrum is cached on disk."""
TRUNCATED = 500
"""Number of eigenvectors for more than `EXACT` places; they have the smallest eigenvalues."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Smallest eigenvalues and eigenvectors of the Laplacian of n places.

    Args:
        values: (k,) eigenvalues, ascending [1/m²].
        vectors: (n, k) orthonormal eigenvectors.
        spacing: median length of a link [m].
        extent: approximate length of the longest of all shortest paths on the map [m].
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
        """True if all n eigenvectors are included."""
        return bool(self.vectors.shape[0] == self.vectors.shape[1])


def laplacian_spectrum(links: Links, *, exact: int = EXACT) -> Spectrum:
    r"""Return the spectrum of a graph's Laplacian; large graphs use a cache on disk.

    .. math:: \Delta = M^{-1/2} (D - W) M^{-1/2}

    W are the conductances of the links [1/m], D their row sums, and M the masses of the places [m].
    The Laplacian is the finite-difference -d²/dx² on a row of places, and -∇² on a square lattice.
    Its eigenvalues are squared wave numbers [1/m²].

    Args:
        links: the graph; components without a link between them stay independent.
        exact: largest number of places for which all eigenvectors are computed, O(n³). Larger
            graphs use the `TRUNCATED` smallest eigenvalues.
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
            "graph of %d places: the %d smoothest eigenvectors are used; variation over less than "
            "about %.3g m counts as uncorrelated",
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
    # Shift to just below zero, where the matrix is not singular, and invert.
    shift = -1e-6 * float(np.median(degree * root**2))
    values, vectors = eigsh(
        laplacian, k=TRUNCATED, sigma=shift, which="LM", v0=np.random.default_rng(0).random(n)
    )
    order = np.argsort(values)
    return np.maximum(values[order], 0.0), np.ascontiguousarray(vectors[:, order])


def _size(links: Links) -> tuple[float, float]:
    """Return `spacing` and `extent` of a `Spectrum` [m]; the extent is a lower estimate."""
    if not links.metres.size:
        return 1.0, 1.0
    spacing = float(np.median(links.metres))
    largest = np.flatnonzero(links.parts == 0)
    place, extent = int(largest[0]), spacing
    for _ in range(4):
        paths = links.shortest_paths(links.metres, np.array([place]))[0]
        paths = np.where(np.isfinite(paths), paths, 0.0)
        place, extent = int(paths.argmax()), max(extent, float(paths.max()))
    return spacing, extent


_TABLE = 1000
"""Largest number of places of a map whose correlations are stored in tables. The first use of a
table costs O(n³)."""
_NUMBERS = 50_000_000
"""Largest number of entries of all tables; each length-scale has a table of n² entries."""


class GraphCovariance(SignalCovariance):
    r"""Covariance ``σ_s² K`` with ``K = D^(-1/2) f(Δ) D^(-1/2)``.

    The Laplacian Δ of the graph has eigenvalues ω_i and eigenvectors u_i. The kernel's spectral
    density is f, and D is the diagonal of f(Δ). With all eigenvectors, f(Δ) = Σ_i f(ω_i) u_i u_iᵀ.
    With the k smallest eigenvalues only, f is assumed to be constant above ω_k:
    ``f(Δ) = Σ_i (f(ω_i) - f(ω_k)) u_i u_iᵀ + f(ω_k) I``. The variation along the
    omitted eigenvectors becomes independent variance of each place. K is positive definite because
    f is positive and does not increase. D gives every place the same prior variance σ_s².

    Args:
        kernel: kernel with the spectral density f for a length-scale [m].
        spectrum: spectrum of the graph's Laplacian.
        hyperparameters: the candidates, each with one length-scale.
        tables: (n, n) correlations; the keys are length-scales. Covariances with the same kernel
            and graph share them. Missing tables are added at first use; unused tables are removed.

    Raises:
        ValueError: there is no candidate, or one has several length-scales.
    """

    def __init__(
        self,
        kernel: GraphKernel,
        spectrum: Spectrum,
        hyperparameters: Sequence[HyperParameters],
        tables: dict[float, FloatArray] | None = None,
    ) -> None:
        super().__init__(spectrum.n, hyperparameters)
        for h in hyperparameters:
            if len(h.length_scales) != 1:
                msg = (
                    "expected one length-scale [m] in every candidate (a graph has no features), "
                    f"got {list(h.length_scales)}"
                )
                raise ValueError(msg)
        self.kernel = kernel
        self.spectrum = spectrum
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
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ.

        A small map uses tables. A larger map costs O(L k r c) with k eigenvectors.
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

    def only(self, which: Sequence[int]) -> GraphCovariance:
        """Return this covariance restricted to the hyper-parameter candidates `which`."""
        other = super().only(which)  # shares the tables
        used, other._scale = np.unique(self._scale[list(which)], return_inverse=True)
        other._spectra = [self._spectra[s] for s in used.tolist()]
        other._distinct = [self._distinct[s] for s in used.tolist()]
        return other

    def times_root(self, white: FloatArray) -> FloatArray:
        """Return ``σ_s D^(-1/2) f(Δ)^(1/2) w`` for the first candidate and white noise w; O(n k).

        The result is a sample of the field and does not depend on the signs of eigenvectors.
        """
        density, rest, scale = self._spectra[int(self._scale[0])]
        vectors = self.spectrum.vectors
        smooth = vectors @ ((np.sqrt(density + rest) - np.sqrt(rest)) * (vectors.T @ white))
        return np.asarray(np.sqrt(self._signal[0]) * scale * (smooth + np.sqrt(rest) * white))

    def _part(self, length_scale: float) -> tuple[FloatArray, float, FloatArray]:
        """Return f(ω) - f(ω_k) (k,), f(ω_k) and the diagonal of D^(-1/2) (n,); see the class.

        With all eigenvectors, 0 replaces f(ω_k).
        """
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
        # One matrix product for all length-scales, which share the large right factor.
        k = (left @ vectors[columns].T).reshape(len(parts), len(rows), len(columns))
        for s, (_, _, scale) in enumerate(parts):
            k[s] *= scale[columns]
        # Set the diagonal to exactly 1, without rounding.
        k[:, rows[:, None] == columns] = 1.0
        return np.asarray(k)
