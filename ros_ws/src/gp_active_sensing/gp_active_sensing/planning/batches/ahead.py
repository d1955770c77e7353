"""What will be known of the field once the members of a batch have been read."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bandits.view import mixture_moments
from gp_active_sensing.types import FloatArray

__all__ = ["Ahead"]


class Ahead:
    """Moments of the field as one place after another is taken as read.

    The values are not known, so each is taken to be what is expected: means and the belief over λ
    stay, variances shrink, ``σ²_λ ← σ²_λ - c_x c_xᵀ / (c_xx + σ_n²)``. [Desautels2014, Sec. 3]

    Args:
        belief: over the field; not changed.
    """

    def __init__(self, belief: Belief) -> None:
        self._belief = belief
        self._mean, self._variance = belief.marginals()
        self._rows: list[FloatArray] = []

    def read(self, place: int) -> None:
        """Take a place as read once (more); O(L |D| n)."""
        c = self._belief.cross(np.array([place], dtype=np.int64))[:, 0]
        for row in self._rows:
            c = c - row[:, [place]] * row
        pivot = np.maximum(c[:, place], 0.0) + self._belief.noise_variance
        row = c / np.sqrt(pivot)[:, None]
        self._rows.append(row)
        self._variance = np.maximum(self._variance - row * row, 0.0)

    def std(self) -> FloatArray:
        """Return the (n,) standard deviation of the mixture, in the sensor's unit."""
        _, spread = mixture_moments(self._belief, self._mean, self._variance)
        return np.sqrt(spread)
