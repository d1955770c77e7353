"""A covariance that is given as a matrix, such as that of earlier readings of the same places."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from gp_active_sensing.belief.covariance import HyperParameters
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["GivenCovariance"]

_ROUNDING = 1e-9
"""Asymmetry, and negative eigenvalue, that is put down to rounding, as a share of the largest."""


class GivenCovariance:
    """``(σ_s² / s²) K`` of a matrix K whose mean variance is s².

    Candidates differ in signal and noise only; they have no length-scale, for which 1 stands.

    Args:
        matrix: (n, n) K, symmetric and positive semidefinite.
        hyperparameters: the candidates; `signal_std` is the root mean square of the standard
            deviations over the places.

    Raises:
        ValueError: no candidate, or a matrix that is no covariance.
    """

    def __init__(self, matrix: FloatArray, hyperparameters: Sequence[HyperParameters]) -> None:
        K = np.array(matrix, dtype=np.float64)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size:
            msg = f"expected a covariance (n, n) of at least one place, got shape {K.shape}"
            raise ValueError(msg)
        if not np.isfinite(K).all():
            msg = "expected a covariance of finite numbers"
            raise ValueError(msg)
        if not hyperparameters:
            msg = "expected at least one hyper-parameter vector, got none"
            raise ValueError(msg)
        largest = float(np.abs(K).max())
        if not largest > 0.0:
            msg = "expected a covariance with a variance above 0 somewhere"
            raise ValueError(msg)
        if float(np.abs(K - K.T).max()) > _ROUNDING * largest:
            msg = "expected a symmetric covariance"
            raise ValueError(msg)
        least = float(np.linalg.eigvalsh(K)[0])
        if least < -_ROUNDING * largest * len(K):
            msg = f"expected a covariance without negative eigenvalues, got {least:g}"
            raise ValueError(msg)
        K = 0.5 * (K + K.T)
        self._unit = K / float(np.diagonal(K).mean())
        self._hyperparameters = tuple(hyperparameters)
        self._signal = np.array([h.signal_std**2 for h in hyperparameters])

    @property
    def n(self) -> int:
        """Number of locations."""
        return len(self._unit)

    @property
    def hyperparameters(self) -> tuple[HyperParameters, ...]:
        """(L,) the candidates Λ."""
        return self._hyperparameters

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        block = self._unit[np.ix_(rows, columns)]
        return np.asarray(self._signal[:, None, None] * block)

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.asarray(self._signal[:, None] * self._unit.diagonal()[locations])

    def only(self, which: Sequence[int]) -> GivenCovariance:
        """Return the same under some of the candidates only."""
        other = copy(self)
        other._signal = self._signal[list(which)]
        other._hyperparameters = tuple(self._hyperparameters[i] for i in which)
        return other
