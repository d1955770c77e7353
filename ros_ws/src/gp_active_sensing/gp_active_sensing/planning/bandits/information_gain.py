"""Largest information gain γ_T of T readings about a field. [Srinivas2010, Sec. 5]."""

from __future__ import annotations

import math
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from gp_active_sensing.belief import Belief, LocationCovariance, PriorMean
from gp_active_sensing.belief.factor import LEAST_NOISE
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.ties import first_best

SHARE = 1.0 - math.exp(-1.0)
"""Lower bound on the ratio of the greedy information gain to the largest gain. [Nemhauser1978]."""
_LEAST_WEIGHT = 1e-3
"""Weight below which a hyperparameter candidate is left out of the information gain."""


class GreedyGain:
    """Greedy readings at ``argmax_x σ_{t-1}(x)``, and their information gain F.

    A place may be chosen again. F is monotone and submodular, so T greedy readings have at least
    ``(1 - 1/e)`` of the largest gain γ_T of any T readings. [Srinivas2010, Eq. 4]

    Args:
        covariance: prior covariance between places, for each hyperparameter candidate.
        mean: prior mean; its uncertainty adds to the prior variance.
        which: index of the hyperparameter candidate.
    """

    def __init__(self, covariance: LocationCovariance, mean: PriorMean, which: int = 0) -> None:
        h = covariance.hyperparameters[which]
        self._covariance, self._mean, self._which = covariance, mean, which
        self.noise_variance = max(h.noise_std**2, LEAST_NOISE * h.variance)
        self._everywhere = np.arange(covariance.n)
        prior = covariance.variance(self._everywhere)[which]
        self._slopes = mean.basis * mean.std
        self._variance: FloatArray = prior + (self._slopes**2).sum(axis=1)
        self.largest_variance = float(self._variance.max())
        self._rows: FloatArray = np.empty((0, covariance.n))
        self._gains = [0.0]
        self.places: list[int] = []
        """Places of the greedy readings, in order."""
        self._lock = Lock()  # several threads may share a covariance

    def gain(self, readings: int) -> float:
        """Return the information gain F of the first `readings` greedy readings [nat]."""
        with self._lock:
            while len(self._gains) <= readings:
                self._extend()
            return self._gains[readings]

    def _extend(self) -> None:
        t = len(self.places)
        x = int(first_best(self._variance))
        variance = float(self._variance[x])
        at = np.array([x], dtype=np.int64)
        row = self._covariance.between(at, self._everywhere)[self._which, 0]
        row = row + self._slopes @ self._slopes[x]
        if t == len(self._rows):
            grown = np.empty((max(16, 2 * t), self._everywhere.size))
            grown[:t] = self._rows
            self._rows = grown
        row -= self._rows[:t, x] @ self._rows[:t]
        row /= math.sqrt(variance + self.noise_variance)
        self._rows[t] = row
        self._variance = np.maximum(self._variance - row * row, 0.0)
        self.places.append(x)
        self._gains.append(self._gains[-1] + 0.5 * math.log1p(variance / self.noise_variance))


_Kept = tuple[PriorMean, dict[int, GreedyGain]]
_kept: WeakKeyDictionary[LocationCovariance, _Kept] = WeakKeyDictionary()


def prior_gains(belief: Belief) -> dict[int, GreedyGain]:
    """Return greedy readings under the prior, keyed by the index of the hyperparameter candidate.

    Candidates of negligible weight are left out. Beliefs with the same covariance share the result.
    """
    covariance, mean = belief.covariance, belief.mean
    known = _kept.get(covariance)
    if known is None or known[0].basis is not mean.basis:
        known = (mean, {})
        _kept[covariance] = known
    used = np.flatnonzero(belief.weights >= min(_LEAST_WEIGHT, float(belief.weights.max())))
    return {
        which: known[1].setdefault(which, GreedyGain(covariance, mean, which))
        for which in used.tolist()
    }


def largest_gain(belief: Belief, readings: int) -> float:
    """Return the upper bound ``F / (1 - 1/e)`` on the information gain of T = `readings` [nat].

    F is the gain of T greedy readings, averaged over the hyperparameter candidates.
    """
    gains = prior_gains(belief)
    weights = belief.weights[list(gains)]
    values = np.array([gain.gain(readings) for gain in gains.values()])
    return float(weights @ values / weights.sum()) / SHARE
