"""Scores of predictions that are mixtures of normal distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr

from gp_active_sensing.belief import Belief, mixture
from gp_active_sensing.belief.prior import IDENTITY, Transform

LEVEL = 0.9
"""Probability of the central interval."""
_TINY = 1e-12
"""Smallest variance, relative to the mean squared error of the predicted means."""


@dataclass(frozen=True)
class Mixture:
    """Prediction of true values at m places by a mixture of L normal distributions.

    Args:
        weights: (L,) weights with sum 1.
        mean: (L, m) means.
        variance: (L, m) variances without the noise of readings.
        transform: mean and variance apply to values after this transform; None = no transform.
    """

    weights: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    transform: Transform = IDENTITY

    @classmethod
    def of(cls, belief: Belief, places: np.ndarray | None = None) -> Mixture:
        """Return the prediction of a belief at `places`; None = all places."""
        found = belief.mixture(places)
        return cls(found.weights, found.mean, found.variance, found.transform)

    def at(self, places: np.ndarray) -> Mixture:
        mean, variance = self.mean[:, places], self.variance[:, places]
        return Mixture(self.weights, mean, variance, self.transform)

    @classmethod
    def normal(cls, mean: np.ndarray, variance: np.ndarray) -> Mixture:
        return cls(np.ones(1), np.atleast_2d(mean), np.atleast_2d(variance))

    @property
    def expected(self) -> np.ndarray:
        return mixture.Mixture(self.weights, self.mean, self.variance, self.transform).moments()[0]

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """Return the (m,) probabilities that the true values are at most `values`."""
        seen = self.transform.seen(values)
        return np.asarray(self.weights @ ndtr((seen - self.mean) / self._deviation(values)))

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """Return the (m,) log densities at `values` [nat]."""
        deviation = self._deviation(values)
        z = (self.transform.seen(values) - self.mean) / deviation
        each = -0.5 * (z**2 + math.log(2.0 * math.pi)) - np.log(deviation)
        slopes = 0.5 * np.log(self.transform.seen_variance(values, 1.0))
        return np.asarray(logsumexp(each, axis=0, b=self.weights[:, None]) + slopes)

    def _deviation(self, values: np.ndarray) -> np.ndarray:
        """Return standard deviations (L, m), raised to a positive lower limit."""
        expected = self.weights @ self.mean
        apart = self.transform.seen(values) - expected
        floor = _TINY * float(np.mean(apart[np.isfinite(apart)] ** 2)) + np.finfo(float).tiny
        return np.sqrt(np.maximum(self.variance, floor))


class Score(NamedTuple):
    """Scores of a prediction at places without a reading.

    Args:
        rmse: root mean squared error, in the unit of the values.
        nlpd: mean negative log density of the true values [nat].
        covered: fraction of the true values inside the central 90 % interval.
        places: number of places.
    """

    rmse: float
    nlpd: float
    covered: float
    places: int


def score(prediction: Mixture, truth: np.ndarray) -> Score:
    tail = 0.5 * (1.0 - LEVEL)
    cdf = prediction.cdf(truth)
    return Score(
        math.sqrt(float(np.mean((prediction.expected - truth) ** 2))),
        -float(prediction.log_density(truth).mean()),
        float(np.mean((cdf >= tail) & (cdf <= 1.0 - tail))),
        len(truth),
    )


def constant(readings: np.ndarray, places: int) -> Mixture:
    """Predict the mean and the variance of the readings at all places."""
    spread = float(readings.var(ddof=1)) if len(readings) > 1 else 0.0
    return Mixture.normal(np.full(places, readings.mean()), np.full(places, spread))
