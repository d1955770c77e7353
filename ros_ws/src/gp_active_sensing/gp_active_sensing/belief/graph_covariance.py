"""Covariance of places by how they are joined: a kernel of the graph, not of features."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from gp_active_sensing.belief.covariance import HyperParameters
from gp_active_sensing.belief.spectrum import Spectrum
from gp_active_sensing.kernels import GraphKernel
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["GraphCovariance"]

_TABLE = 1000
"""Number of places up to which correlations are kept as tables, made in O(n³) at first use,"""
_NUMBERS = 50_000_000
"""and of their entries, n² for each length-scale."""


class GraphCovariance:
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
        self._hyperparameters = tuple(hyperparameters)
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

    @property
    def n(self) -> int:
        """Number of locations."""
        return self.spectrum.n

    @property
    def hyperparameters(self) -> tuple[HyperParameters, ...]:
        """(L,) the candidates Λ."""
        return self._hyperparameters

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field.

        Looked up where the map is small, else O(L k r c) with k eigenvectors.
        """
        rows, columns = np.asarray(rows), np.asarray(columns)
        if self._keep:
            index = (rows[:, None], columns)
            k = np.stack([self._table(s)[index] for s in range(len(self._spectra))])
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
        other._hyperparameters = tuple(self._hyperparameters[i] for i in which)
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
        """Return the (s, r, c) correlations under some of the distinct length-scales."""
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
