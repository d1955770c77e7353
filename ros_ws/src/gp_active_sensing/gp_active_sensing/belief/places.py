"""Readings of one place, collapsed exactly to a handful of numbers."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["Places"]

_LOG_2PI = math.log(2.0 * math.pi)


class Places:
    """Sufficient statistics of the readings of each of n places.

    Readings without a variance of their own have the belief's noise σ_n²(λ); they are kept as
    count, mean and centred sum of squares. Readings with their own variance are kept as precision,
    weighted mean, weighted centred sum of squares and sum of log-variances. Centred sums
    (Welford's update) stay exact for a field such as an air pressure of 101 325 ± 0.1.

    For readings z_i ~ N(f, σ_i²) of one place, with P = Σ 1/σ_i² and z̄ = Σ (z_i/σ_i²) / P,
    ``Π_i N(z_i; f, σ_i²) = exp(log_within) · exp(-P (z̄ - f)²/2)``.
    """

    def __init__(self, n: int) -> None:
        self.count = np.zeros(n, dtype=np.int64)
        self._plain = np.zeros((3, n))  # count, mean, centred sum of squares
        self._known = np.zeros((4, n))  # precision, mean, weighted sum of squares, Σ log σ_i²

    def copy(self) -> Places:
        """Return an independent copy."""
        other = Places(0)
        other.count = self.count.copy()
        other._plain = self._plain.copy()
        other._known = self._known.copy()
        return other

    def add(self, place: int, value: float, variance: float | None) -> None:
        """Add one reading; O(1)."""
        self.count[place] += 1
        stats, weight = (self._plain, 1.0) if variance is None else (self._known, 1.0 / variance)
        total = stats[0, place] + weight
        delta = value - stats[1, place]
        mean = stats[1, place] + delta * (weight / total)
        stats[2, place] += weight * delta * (value - mean)
        stats[1, place] = mean
        stats[0, place] = total
        if variance is not None:
            self._known[3, place] += math.log(variance)

    def grow(self, n: int) -> None:
        """Make room for n places, those there are first."""
        more = n - self.count.size
        self.count = np.concatenate([self.count, np.zeros(more, dtype=np.int64)])
        self._plain = np.concatenate([self._plain, np.zeros((3, more))], axis=1)
        self._known = np.concatenate([self._known, np.zeros((4, more))], axis=1)

    def merged(self, order: IntArray, begins: IntArray) -> Places:
        """Return groups of these places as the places of another.

        Args:
            order: (k,) places, a group after the other.
            begins: (g,) where in `order` each group begins, ascending from 0.
        """
        other = Places(len(begins))
        if not len(begins):
            return other
        sizes = np.diff(np.append(begins, len(order)))
        other.count = np.add.reduceat(self.count[order], begins)
        for mine, theirs in ((self._plain, other._plain), (self._known, other._known)):
            weight, mean = mine[0, order], mine[1, order]
            total = np.add.reduceat(weight, begins)
            joint = np.add.reduceat(weight * mean, begins) / np.where(total > 0.0, total, 1.0)
            joint = np.where(sizes == 1, mean[begins], joint)  # as it was, to the bit
            apart = weight * (mean - np.repeat(joint, sizes)) ** 2
            theirs[0], theirs[1] = total, joint
            theirs[2] = np.add.reduceat(mine[2, order] + apart, begins)
        other._known[3] = np.add.reduceat(self._known[3, order], begins)
        return other

    def collapse(
        self, places: IntArray, noise_variance: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return precision, mean, `log_within` and squares of observed places under each λ.

        The squares are ``Σ (z_i - z̄)²/σ_i²``, the part of `log_within` that the values are in.

        Args:
            places: (k,) observed places.
            noise_variance: (L,) σ_n²(λ) of readings without a variance of their own.

        Returns:
            Four (L, k) arrays.
        """
        n0, m0, s0 = self._plain[:, places]
        p1, m1, s1, logs = self._known[:, places]
        inverse = 1.0 / noise_variance[:, None]
        p0 = n0 * inverse
        precision = p0 + p1
        mean = (p0 * m0 + p1 * m1) / precision
        # Means so far apart that one group is empty must not enter: its weight is exactly zero.
        between = p0 * p1 / precision * (m0 - m1) ** 2
        squares = s0 * inverse + s1 + between
        readings = self.count[places]
        log_variances = n0 * np.log(noise_variance)[:, None] + logs
        log_within = -0.5 * (squares + log_variances + readings * _LOG_2PI)
        return precision, mean, log_within, squares
