"""Information gain: what T readings can tell of a field at most. [Srinivas2010, Sec. 5]."""

from __future__ import annotations

import heapq
import math
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from gp_active_sensing.belief import Belief, LocationCovariance, PriorMean
from gp_active_sensing.belief.factor import LEAST_NOISE
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import first_best

__all__ = [
    "SHARE",
    "GreedyGain",
    "allocation",
    "greedy_gain",
    "information_gain",
    "largest_gain",
    "prior_gains",
    "spectral_bound",
    "trace_bound",
]

SHARE = 1.0 - math.exp(-1.0)
"""The greedy choice reaches at least this share of the best. [Nemhauser1978]."""
_LEAST_WEIGHT = 1e-3
"""Weight below which a candidate's information gain is left out."""


def information_gain(covariance: FloatArray, noise_variance: float) -> float:
    """Return ``F(A) = ½ log|I + σ⁻² K_A|`` [nat]. [Srinivas2010, Eq. 3].

    Args:
        covariance: (m, m) K_A of the places that are read; a place read twice stands there twice.
        noise_variance: σ².
    """
    m = len(covariance)
    factor = np.linalg.cholesky(np.eye(m) + np.asarray(covariance) / noise_variance)
    return float(np.log(np.diagonal(factor)).sum())


class GreedyGain:
    """The readings that ``argmax_x σ_{t-1}(x)`` chooses, and what they tell; grown on demand.

    The same place may be read again. F is monotone and submodular, so that the greedy choice
    reaches at least ``(1 - 1/e)`` of γ_T, the best of T readings. [Srinivas2010, Eq. 4]

    Args:
        covariance: prior covariance between locations under the candidates.
        mean: prior mean; what is not known of it is part of the field.
        which: number of the candidate λ.
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
        self._places: list[int] = []
        self._lock = Lock()  # loops on several threads may share a covariance

    def gain(self, readings: int) -> float:
        """Return F of the first `readings` greedy choices [nat]; O(T n) for each new one."""
        with self._lock:
            while len(self._gains) <= readings:
                self._extend()
            return self._gains[readings]

    def places(self, readings: int) -> IntArray:
        """Return the first `readings` greedy choices, in their order."""
        self.gain(readings)
        return np.array(self._places[:readings], dtype=np.int64)

    def _extend(self) -> None:
        t = len(self._places)
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
        self._places.append(x)
        self._gains.append(self._gains[-1] + 0.5 * math.log1p(variance / self.noise_variance))


_Kept = tuple[PriorMean, dict[int, GreedyGain]]
_kept: WeakKeyDictionary[LocationCovariance, _Kept] = WeakKeyDictionary()


def prior_gains(belief: Belief) -> dict[int, GreedyGain]:
    """Return the greedy choice under the prior of every candidate that has weight, by its number.

    Kept as long as the covariance lives: from stage to stage they only grow.
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
    """Return an upper bound on γ_T of the prior, ``F(greedy) / (1 - 1/e)`` [nat].

    Averaged over the candidates by their weights; those with next to none are left out.
    """
    gains = prior_gains(belief)
    weights = belief.weights[list(gains)]
    values = np.array([gain.gain(readings) for gain in gains.values()])
    return float(weights @ values / weights.sum()) / SHARE


def greedy_gain(covariance: FloatArray, noise_variance: float, readings: int) -> FloatArray:
    """Return (T+1,) ``F`` of the first 0 … T greedy choices from a matrix [nat].

    Args:
        covariance: (n, n).
        noise_variance: σ².
        readings: T.
    """
    K = np.array(covariance, dtype=np.float64)
    variance = np.diagonal(K).copy()
    rows = np.empty((readings, len(K)))
    gains = np.zeros(readings + 1)
    for t in range(readings):
        x = int(first_best(variance))
        gains[t + 1] = gains[t] + 0.5 * math.log1p(variance[x] / noise_variance)
        row = (K[x] - rows[:t, x] @ rows[:t]) / math.sqrt(variance[x] + noise_variance)
        rows[t] = row
        variance = np.maximum(variance - row * row, 0.0)
    return gains


def allocation(eigenvalues: FloatArray, noise_variance: float, readings: int) -> IntArray:
    r"""Return whole numbers m_t of readings, Σ m_t = T, that maximise ``Σ log(1 + σ⁻² m_t λ̂_t)``.

    One more reading of an eigenvalue that has m of them gains ``log(1 + 1/(m + σ²/λ̂))``: the T
    smallest of the numbers ``m + σ²/λ̂`` are the best. All those that water-filling is sure of are
    taken at once, the at most n others one by one.

    Args:
        eigenvalues: (n,) λ̂ ≥ 0 of the kernel matrix.
        noise_variance: σ².
        readings: T.
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    best = np.floor(_water(values, noise_variance, readings)).astype(np.int64)
    with np.errstate(divide="ignore"):
        offset = noise_variance / values
    heap = [(float(c), i) for i, c in enumerate(offset + best) if np.isfinite(c)]
    heapq.heapify(heap)
    for _ in range(readings - int(best.sum())):
        if not heap:  # nothing to be learnt anywhere
            best[0] += 1
            continue
        cost, i = heap[0]
        best[i] += 1
        heapq.heapreplace(heap, (cost + 1.0, i))
    return best


def spectral_bound(eigenvalues: FloatArray, noise_variance: float, readings: int) -> float:
    r"""Return an upper bound on γ_T from the spectrum of the kernel matrix [nat].

    .. math:: \gamma_T \le \frac{1/2}{1 - e^{-1}} \max_{m_1 \ldots m_n,\ \sum m_t = T}
        \sum_t \log(1 + \sigma^{-2} m_t \hat\lambda_t)

    [Srinivas2010, Theorem 4 and Appendix, before the tail of the spectrum is bounded]
    """
    return trace_bound(eigenvalues, noise_variance, readings, whole=True) / SHARE


def trace_bound(
    eigenvalues: FloatArray, noise_variance: float, readings: int, *, whole: bool = False
) -> float:
    r"""Return the same without the factor ``1/(1 - 1/e)``, and over any ``m_t ≥ 0`` [nat].

    T readings are ``½ log|I + σ⁻² Λ^½ M Λ^½|`` for a positive M of trace T, which is largest when M
    is diagonal in the eigenvectors (Hadamard): so this bounds γ_T, too, and is the smaller one.

    Args:
        eigenvalues: (n,) λ̂ of the kernel matrix.
        noise_variance: σ².
        readings: T.
        whole: over whole m_t only, which bounds γ_T only with the factor.
    """
    values = np.maximum(np.asarray(eigenvalues, dtype=np.float64), 0.0)
    m = allocation(values, noise_variance, readings) if whole else None
    best = _water(values, noise_variance, readings) if m is None else m
    return 0.5 * float(np.log1p(best * values / noise_variance).sum())


def _water(values: FloatArray, noise_variance: float, readings: float) -> FloatArray:
    """Return the real m ≥ 0, Σ m = T, that maximise ``Σ log(1 + σ⁻² m λ̂)``: water-filling."""
    best = np.zeros_like(values)
    live = np.flatnonzero(values > 0.0)
    if not live.size:
        return best
    depth = noise_variance / values[live]
    order = np.argsort(depth, kind="stable")
    depth = depth[order]
    level = (readings + np.cumsum(depth)) / np.arange(1, depth.size + 1)
    count = int(np.flatnonzero(level > depth)[-1]) + 1 if readings > 0 else 0
    if count:
        best[live[order[:count]]] = level[count - 1] - depth[:count]
    return best
