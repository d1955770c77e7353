"""Metrics of a map against the truth: RMSPE, NLPD and coverage of intervals."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.types import BoolArray, FloatArray

__all__ = ["LEVELS", "coverage", "ends", "mean_of", "nlpd", "rmse", "rmspe"]

LEVELS = (0.5, 0.9, 0.95)
"""Probabilities of the central intervals whose coverage is looked at."""


def rmspe(mean: FloatArray, truth: FloatArray, observed: BoolArray) -> float | None:
    """Return the root mean squared prediction error over the places not observed.

    ``sqrt(mean over x not in D of (mean_x - f_x)^2)`` with f the **noise-free** truth; against
    noisy readings the error would be larger by the sensor's noise.

    Args:
        mean: (n,) predicted values.
        truth: (n,) noise-free values, in the same unit.
        observed: (n,) places that have a reading; they are left out.

    Returns:
        The error in the values' unit, None when every place is observed.
    """
    return rmse(mean[~observed], truth[~observed])


def rmse(mean: FloatArray, truth: FloatArray, weights: FloatArray | None = None) -> float | None:
    """Return the root mean squared error of (m,) values, None when m is 0.

    Args:
        mean: (m,) predicted values.
        truth: (m,) true values.
        weights: (m,) of the places, not all 0; None = all the same.
    """
    if mean.shape != truth.shape:
        msg = f"expected as many predictions as true values, got {mean.shape} and {truth.shape}"
        raise ValueError(msg)
    if mean.size == 0:
        return None
    return float(np.sqrt(np.average(np.square(mean - truth), weights=weights)))


def nlpd(
    mean: FloatArray, variance: FloatArray, truth: FloatArray, observed: BoolArray
) -> float | None:
    """Return the mean negative log predictive density over the places not observed [nat].

    ``mean over x not in D of ½ log(2π v_x) + (f_x - mean_x)²/(2 v_x)``: the density of the
    normal with the mixture's mean and variance, at the **noise-free** truth.

    Args:
        mean: (n,) predicted values.
        variance: (n,) predicted variances of the noise-free field.
        truth: (n,) noise-free values.
        observed: (n,) places that have a reading; they are left out.

    Returns:
        The score (smaller is better), None when every place is observed.
    """
    left = ~observed
    if not bool(left.any()):
        return None
    spread = np.maximum(variance[left], np.finfo(np.float64).tiny)
    square = np.square(truth[left] - mean[left]) / spread
    return float(np.mean(0.5 * (math.log(2.0 * math.pi) + np.log(spread) + square)))


def ends(level: float) -> tuple[float, float]:
    """Return the probabilities below the two ends of the central interval of a probability."""
    return 0.5 * (1.0 - level), 0.5 * (1.0 + level)


def coverage(below: FloatArray, level: float) -> float | None:
    """Return the share of (m,) true values inside the central intervals of a probability.

    A value v is inside exactly where ``(1 - level)/2 <= F(v) <= (1 + level)/2``: the ends of the
    interval, which are quantiles, need not be found. A belief that is neither too sure nor too
    doubtful has a share of about `level`.

    Args:
        below: (m,) probability F(v) that each belief gives to less than the true value.
        level: probability of the interval.

    Returns:
        0 to 1, None when m is 0.
    """
    low, high = ends(level)
    return mean_of(((below >= low) & (below <= high)).astype(np.float64))


def mean_of(values: FloatArray) -> float | None:
    """Return the mean of (m,) values, None when m is 0."""
    return float(np.mean(values)) if values.size else None
