"""Tests that distinguish two length-scales by pairs of readings, for the policy `ite`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from gp_active_sensing.belief import Belief, LocationCovariance
from gp_active_sensing.kernels import NONE
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import first_best

_CLIPS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Possible clipping limits of a test's statistic [variances of a reading]."""
_QUANTILES = 160
"""Number of quantiles of a normal distribution that approximate an expectation."""
_NEAR_BEST = 0.95
"""Smallest difference of a used pair's correlations, as a fraction of the largest difference."""
_LEAST_DIFFERENCE = 1e-6
"""Smallest difference of a pair's two correlations for which a test is possible."""
_ANCHORS = 400
"""Largest number of places that are tried as the first place of a pair."""
_NUMBERS = 2_000_000
"""Largest number of entries of a temporary array."""


@dataclass(frozen=True)
class Pair:
    """Pair of places, and their correlations under a shorter and under a longer length-scale."""

    a: int
    b: int
    shorter: float
    longer: float


def statistic(u: FloatArray, v: FloatArray, variance: float, differences: bool) -> FloatArray:
    """Return a statistic whose expectation is the correlation of the field at two places.

    The statistic is ``u v``, or ``variance - (u - v)²/2`` if the mean of the field is unknown.

    Args:
        u: readings at the first places, minus the mean [standard deviations of the field].
        v: readings at the second places, minus the mean [standard deviations of the field].
        variance: variance ``1 + σ_n²/σ_s²`` of a reading [variances of the field].
        differences: True if the mean of the field is unknown.
    """
    return np.asarray(variance - 0.5 * np.square(u - v) if differences else u * v)


@dataclass(frozen=True)
class PairTest:
    """Test that decides between a shorter and a longer length-scale by a mean of statistics.

    Args:
        variance: variance ``1 + σ_n²/σ_s²`` of a reading [variances of the field].
        differences: True if the mean of the field is unknown; see `statistic`.
        clip: largest absolute value of a clipped statistic.
    """

    variance: float
    differences: bool
    clip: float

    @classmethod
    def for_pair(cls, pair: Pair, variance: float, differences: bool) -> PairTest:
        """Return the test whose clipping limit requires the fewest pairs like `pair`."""
        tests = [cls(variance, differences, clip * variance) for clip in _CLIPS]
        return min(tests, key=lambda test: test.pairs_needed(pair, 0.05))

    def midpoint(self, pair: Pair) -> float:
        """Return the midpoint of the statistic's expectations under the two length-scales."""
        (shorter, _), (longer, _) = self._moments(pair.shorter), self._moments(pair.longer)
        return 0.5 * (shorter + longer)

    def error(self, pair: Pair, count: int) -> float:
        r"""Return a bound on the error probability of the test with `count` = n independent pairs.

        The bound is the smaller of Hoeffding's and Bernstein's bounds,

        .. math:: \exp(-2 n t^2 / M^2), \quad \exp\Big(-\frac{n t^2}{2 (v + M t / 3)}\Big).

        t is half the difference of the two expectations. The clipped statistic lies in an
        interval of width M, and its variance is v.
        """
        (shorter, v0), (longer, v1) = self._moments(pair.shorter), self._moments(pair.longer)
        t = 0.5 * (longer - shorter)
        if t <= 0.0:
            return 1.0
        top = min(self.clip, self.variance) if self.differences else self.clip
        M = top + self.clip
        rate = max(2.0 * t * t / (M * M), t * t / (2.0 * (max(v0, v1) + M * t / 3.0)))
        return math.exp(-count * rate)

    def pairs_needed(self, pair: Pair, error: float) -> float:
        """Return the number of pairs needed for the error probability `error`; inf = impossible."""
        rate = -math.log(max(self.error(pair, 1), 1e-300))
        return math.ceil(-math.log(error) / rate) if rate > 1e-12 and error > 0.0 else math.inf

    def _moments(self, correlation: float) -> tuple[float, float]:
        return _moments(round(correlation, 4), self.variance, self.differences, self.clip)


@lru_cache(maxsize=1024)
def _moments(
    correlation: float, variance: float, differences: bool, clip: float
) -> tuple[float, float]:
    levels = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    # Sum and difference of the two readings are independent.
    total = math.sqrt(2.0 * (variance + correlation)) * levels[:, None]
    apart = math.sqrt(max(2.0 * (variance - correlation), 0.0)) * levels[None, :]
    values = statistic(0.5 * (total + apart), 0.5 * (total - apart), variance, differences)
    values = np.clip(values, -clip, clip)
    return float(values.mean()), float(values.var())


class LengthScales:
    """Possible length-scales of a belief. Of several kernels, only the first one is considered.

    Attributes:
        kernel: name of the kernel; "" = the only kernel.
        values: sorted length-scales.
    """

    def __init__(self, belief: Belief) -> None:
        candidates = belief.covariance.hyperparameters
        names = [h.kernel for h in candidates if h.kernel != NONE] or [NONE]
        self.kernel = names[0]
        self._of_kernel = np.array([h.kernel == self.kernel for h in candidates])
        self._all = np.array([h.length_scales[0] for h in candidates])
        self._belief = belief
        possible = self._of_kernel & (belief.prior_weights > 0.0)
        self.values: list[float] = np.unique(self._all[possible]).tolist()

    def inside(self, low: float, high: float) -> list[float]:
        """Return the length-scales in [low, high], or else the one nearest to the middle."""
        inside = [value for value in self.values if low <= value <= high]
        middle = math.sqrt(low) * math.sqrt(high)
        return inside or [min(self.values, key=lambda value: abs(math.log(value / middle)))]

    def candidate(self, value: float) -> int:
        """Return the index of the most probable λ that has the length-scale `value`."""
        where = np.flatnonzero((self._all == value) & self._of_kernel)
        return int(where[first_best(self._belief.weights[where])])

    def between(self, low: float, high: float) -> FloatArray:
        """Return the weights (L,) given that the length-scale is one of ``inside(low, high)``."""
        mask = np.isin(self._all, self.inside(low, high)) & self._of_kernel
        # If the posterior weights vanish, the prior weights are used.
        for weights in (self._belief.weights * mask, self._belief.prior_weights * mask):
            if weights.sum() > 1e-100:
                return np.asarray(weights / weights.sum())
        return np.asarray(mask / mask.sum())


def field_variance(belief: Belief) -> float:
    """Return the expected variance of the field at a place."""
    return float(belief.weights @ np.array([h.variance for h in belief.hyperparameters]))


def reading_variance(belief: Belief) -> tuple[float, bool]:
    """Return the variance of a reading [field variances], and whether the mean is unknown."""
    noise = float(belief.weights @ np.array([h.noise_std**2 for h in belief.hyperparameters]))
    return 1.0 + noise / field_variance(belief), belief.mean.basis.shape[1] > 0


def find_pairs(
    covariance: LocationCovariance,
    places: IntArray,
    shorter: int,
    longer: int,
    independence: float,
    most: int,
) -> list[Pair]:
    """Return nearly independent pairs of places that best distinguish two length-scales.

    The function first finds the largest difference between a pair's correlations under the two
    length-scales. It then accepts pairs with nearly this difference, in the order of `places`.
    Under the longer length-scale, the places of an accepted pair have at most the correlation
    `independence` with the places of earlier pairs.

    Args:
        covariance: prior covariance of the noise-free field.
        places: (m,) places that are observed or can be observed.
        shorter: index of a hyperparameter candidate with the shorter length-scale.
        longer: index of a hyperparameter candidate with the longer length-scale.
        independence: largest correlation between places of different pairs.
        most: largest number of pairs.
    """
    if len(places) < 2 or most < 1:
        return []
    spread = np.unique(np.linspace(0, len(places) - 1, min(len(places), _ANCHORS)).astype(np.int64))
    anchors = places[spread]
    correlations = _Correlations(covariance, np.array([shorter, longer]))
    best = max(float((c[1] - c[0]).max()) for c in correlations.by_rows(anchors, places))
    if best < _LEAST_DIFFERENCE:
        return []
    found: list[Pair] = []
    blocked = np.zeros(len(places), dtype=bool)
    rows = (row for c in correlations.by_rows(anchors, places) for row in np.swapaxes(c, 0, 1))
    for where, (short, long) in zip(spread, rows, strict=True):
        partners = np.flatnonzero((long - short >= _NEAR_BEST * best) & ~blocked)
        if blocked[where] or not len(partners):
            continue
        # The nearest partner in the list keeps the places of a pair close together.
        other = int(partners[np.abs(partners - where).argmin()])
        a, b = int(places[where]), int(places[other])
        found.append(Pair(a, b, float(short[other]), float(long[other])))
        if len(found) == most:
            break
        near = correlations.of(np.array([a, b]), places)[1].max(axis=0)
        blocked |= near > independence
        blocked[[where, other]] = True
    return found


@dataclass(frozen=True)
class _Correlations:
    covariance: LocationCovariance
    candidates: IntArray

    def of(self, rows: IntArray, columns: IntArray) -> FloatArray:
        latent = self.covariance.between(rows, columns)[self.candidates]
        v = np.sqrt(self.covariance.variance(rows)[self.candidates])
        w = np.sqrt(self.covariance.variance(columns)[self.candidates])
        return np.asarray(latent / v[:, :, None] / w[:, None, :])

    def by_rows(self, rows: IntArray, columns: IntArray) -> Iterator[FloatArray]:
        L = len(self.covariance.hyperparameters)
        step = max(1, _NUMBERS // (L * len(columns)))
        for start in range(0, len(rows), step):
            yield self.of(rows[start : start + step], columns)
