"""Bandits that score each place by improvement, EST, Thompson sampling, mean or variance.

[Mockus1978; Mockus1989; Wang2016; Russo2014; Srinivas2010]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.base import Bandit, View
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import by_size

_LEAST = 1e-9
"""Smallest standard deviation that is used as a divisor, as a fraction of the field's range."""
_FAR = 1e6
"""Distance below the incumbent up to which ``erfcx`` is evaluated [standard deviations]."""
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_CERTAIN = 7.5
"""Number of standard deviations above its mean that the field is assumed never to exceed."""
_TOLERANCE = 1e-8
"""Largest error of the integral, as a fraction of the length of the integration range."""
_INTERVALS = 16
_CHUNK = 1_000_000
"""Largest number of entries of a temporary array."""
_RARE = 1e-9
"""Probability that some place exceeds a level, below which two such places are neglected."""
_JITTER = 1e-8
"""Number that is added to each eigenvalue of a covariance, as a fraction of the variance."""


@dataclass(frozen=True)
class Incumbent:
    """Configuration key for the incumbent, the value of the best place so far."""

    incumbent: str = param(
        "mean",
        help="best value so far: mean = the largest posterior mean; reading = the best average "
        "reading of a place, which noise makes too high",
        choices=("mean", "reading"),
    )

    def standing(self, view: View) -> float:
        """Return the incumbent; before the first reading, the largest mean."""
        if view.best is None or self.incumbent == "mean":
            return float(view.everywhere[0].max())
        return view.best


@dataclass(frozen=True)
class Improvement(Incumbent):
    """Configuration keys of policies that score the improvement on the incumbent."""

    noise_share: ClassVar[float] = 0.0
    """Default margin above the incumbent [standard deviations of the noise]."""

    margin: float | None = param(
        None,
        help="amount by which a value must exceed the best value so far to count as an "
        "improvement. null = the default of the policy",
        unit="unit of the readings",
        low=0.0,
    )

    def excess(self, view: View) -> tuple[FloatArray, FloatArray]:
        """Return ``u = (μ - m)/σ`` and σ of each place; m is the incumbent plus the margin."""
        margin = self.margin
        if margin is None:
            margin = self.noise_share * math.sqrt(view.noise_variance)
        std = safe_std(view.mean, view.std)
        return (view.mean - self.standing(view) - margin) / std, std


def safe_std(mean: FloatArray, std: FloatArray) -> FloatArray:
    """Return standard deviations (m,) above zero, for use as divisors."""
    span = max(float(np.max(std)), float(np.ptp(mean)))
    return np.asarray(np.maximum(std, _LEAST * span if span > 0.0 else 1.0))


def log_expected_improvement(u: FloatArray, std: FloatArray) -> FloatArray:
    """Return ``log E[max(f - m, 0)]`` of ``f ~ N(μ, σ²)``, with ``u = (μ - m)/σ``.

    ``E = σ (φ(u) + u Φ(u))`` [Mockus1978]. Far below the incumbent m, E underflows and only log E
    distinguishes places [Ament2023, Eq. 9].

    Args:
        u: (m,) standardised improvements.
        std: (m,) standard deviations σ, above 0.
    """
    near = np.maximum(u, -1.0)
    log_phi = -0.5 * u * u - _LOG_ROOT_2PI
    above = np.log(np.exp(-0.5 * near * near - _LOG_ROOT_2PI) + near * ndtr(near))
    low = np.minimum(u, -1.0)
    ratio = math.sqrt(0.5 * math.pi) * erfcx(-np.maximum(low, -_FAR) / math.sqrt(2.0))
    tail = np.log1p(np.maximum(low, -_FAR) * ratio)
    # Below -1e4, 1 + u Φ/φ is a difference of nearly equal numbers, and 1/u² is more accurate.
    tail = np.where(u > -1e4, tail, -2.0 * np.log(-low))
    return np.asarray(np.log(std) + np.where(u > -1.0, above, log_phi + tail))


@dataclass(frozen=True)
class ExpectedImprovement(Improvement, Bandit):
    """Policy that chooses the largest expected improvement on the best value so far.

    The place is ``argmax_x E[max(f(x) - m, 0)]``. m is the incumbent plus the margin. The default
    margin is 0. [Mockus1978; Srinivas2010, Sec. 6]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the logarithm of the expected improvement [log of the unit of the readings]."""
        return log_expected_improvement(*self.excess(view))


@dataclass(frozen=True)
class ProbabilityOfImprovement(Improvement, Bandit):
    """Policy that chooses the most probable improvement on the best value so far.

    The place is ``argmax_x Pr{f(x) > m}``. The probability is ``Φ(u)`` with ``u = (μ - m)/σ``. m is
    the incumbent plus the margin. The default margin is a quarter of the noise's standard
    deviation. Without a margin, the policy chooses the incumbent's place forever. [Mockus1989;
    Srinivas2010, Sec. 6]
    """

    noise_share: ClassVar[float] = 0.25

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``u = (μ - m)/σ``, which ranks places even where Φ(u) rounds to 0 or 1."""
        return self.excess(view)[0]


def log_exceedance(level: float, mean: FloatArray, std: FloatArray) -> float:
    """Return the log probability that the field exceeds the level w at one or more of n places.

    The places are treated as independent. The result is then ``log(1 - Π_x Φ((w - μ(x))/σ(x)))``.
    `std` (n,) is above 0.
    """
    u = (level - mean) / std
    below = float(log_ndtr(u).sum())
    if below > -_RARE:  # at most one place exceeds the level, so the probabilities add up
        return float(logsumexp(log_ndtr(-u)))
    return math.log(-math.expm1(below)) if below > -0.5 else math.log1p(-math.exp(below))


def est_a(mean: FloatArray, std: FloatArray, best: float | None) -> float:
    """Return the estimate ESTa of the maximum, ``m̂ = m₀ + s p₀ √(π/2)``.

    ESTa models the tail of the maximum as half a Gaussian. p₀ is the probability that the field
    exceeds m₀ at one place or more. p₁ is this probability for the level ``m₀ + h``. The Gaussian
    has the standard deviation ``s = h / √(-2 log p₁)``. The step h is the largest σ, doubled until
    p₁ is at most ½. The result is at least the largest mean. [Wang2016, Sec. 3; Kathuria2016]

    Args:
        mean: (n,) means μ of all places.
        std: (n,) standard deviations σ of all places.
        best: incumbent m₀; None = the largest mean.
    """
    std = safe_std(mean, std)
    top = float(mean.max())
    start = top if best is None else best
    step = float(std.max())
    at_step = log_exceedance(start + step, mean, std)
    while at_step > math.log(0.5):
        step *= 2.0
        at_step = log_exceedance(start + step, mean, std)
    spread = step / math.sqrt(-2.0 * at_step)
    share = math.exp(log_exceedance(start, mean, std))
    return max(start + spread * share * math.sqrt(0.5 * math.pi), top)


def est_n(mean: FloatArray, std: FloatArray, best: float | None) -> float:
    r"""Return the estimate ESTn of the maximum, ``m̂ = E[max(m₀, max_x f(x))]``.

    .. math:: \hat m = m_0 + \int_{m_0}^\infty
        \Big[1 - \prod_x \Phi\Big(\frac{w - \mu(x)}{\sigma(x)}\Big)\Big] dw

    The formula treats the places as independent. The integral is a sum over intervals. Each
    interval is halved until a fine and a coarse Clenshaw-Curtis rule agree. [Wang2016, Sec. 3;
    Kathuria2016]

    The arguments are those of `est_a`. σ is 0 where the field is certain.
    """
    start = float(mean.max()) if best is None else best
    certain = std <= 0.0
    if certain.any():  # the maximum is at least the largest certain value
        start = max(start, float(mean[certain].max()))
        mean, std = mean[~certain], std[~certain]
    live = mean + _CERTAIN * std > start
    mean, std = mean[live], std[live]
    if not mean.size:
        return start
    stop = float((mean + _CERTAIN * std).max())
    return start + _integral(mean, std, start, stop)


def _integral(mean: FloatArray, std: FloatArray, start: float, stop: float) -> float:
    nodes = -np.cos(np.pi * np.arange(_INTERVALS + 1) / _INTERVALS)
    # Intervals near the spacing of floats are not halved.
    narrowest = max(1e-13 * (stop - start), 4.0 * float(np.spacing(max(-start, stop, 0.0))))
    edges = np.linspace(start, stop, 3)
    low, high = edges[:-1], edges[1:]
    total = 0.0
    while low.size:
        half = 0.5 * (high - low)
        levels = (0.5 * (low + high))[:, None] + half[:, None] * nodes
        values = _exceeding(levels.ravel(), mean, std).reshape(levels.shape)
        found = half * (values @ _FINE)
        error = np.abs(found - half * (values[:, ::2] @ _COARSE))
        small = 2.0 * half <= narrowest
        done = (error <= _TOLERANCE * 2.0 * half) | small
        total += float(found[done].sum())
        low, high = low[~done], high[~done]
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return total


def _exceeding(levels: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
    step = max(1, _CHUNK // mean.size)
    parts = [
        1.0 - ndtr((levels[i : i + step, None] - mean) / std).prod(axis=1)
        for i in range(0, levels.size, step)
    ]
    return np.concatenate(parts)


def _clenshaw_curtis(intervals: int) -> FloatArray:
    """Return the weights (intervals + 1,) of the Clenshaw-Curtis rule; `intervals` is even."""
    k = np.arange(intervals + 1)
    j = np.arange(1, intervals // 2 + 1)
    factor = np.where(j == intervals // 2, 1.0, 2.0) / (4.0 * j**2 - 1.0)
    weights = 1.0 - (factor * np.cos(2.0 * np.pi * np.outer(k, j) / intervals)).sum(axis=1)
    weights *= 2.0 / intervals
    weights[[0, -1]] *= 0.5
    return np.asarray(weights, dtype=np.float64)


_FINE, _COARSE = _clenshaw_curtis(_INTERVALS), _clenshaw_curtis(_INTERVALS // 2)


def gap_width(level: float, mean: FloatArray, std: FloatArray) -> float:
    """Return EST's confidence width ``√β_t = min_x (m̂ - μ(x))/σ(x)``; m̂ is `level`."""
    return float(((level - mean) / safe_std(mean, std)).min())


@dataclass(frozen=True)
class MaximumEstimate(Incumbent):
    """Configuration keys of the estimate of the field's maximum."""

    estimate: str = param(
        "n",
        help="estimate of the maximum: n = expectation by quadrature; a = approximation by a "
        "half-Gaussian distribution, which is faster",
        choices=("a", "n"),
    )

    def highest(self, view: View) -> float:
        """Return the estimate m̂ of the field's maximum [unit of the readings]."""
        estimate = est_a if self.estimate == "a" else est_n
        return estimate(*view.everywhere, self.standing(view))


@dataclass(frozen=True)
class Est(MaximumEstimate, Bandit):
    """Policy that chooses the place most likely to reach the estimated maximum of the field.

    The place is ``argmin_x (m̂ - μ(x))/σ(x)`` for the estimated maximum m̂. The chosen place also
    has the largest ``μ + √β_t σ`` for ``√β_t = min_x (m̂ - μ)/σ``. [Wang2016]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``(μ - m̂)/σ`` for the estimated maximum m̂."""
        return (view.mean - self.highest(view)) / safe_std(view.mean, view.std)


@dataclass(frozen=True)
class Thompson(Bandit):
    """Policy that draws a field from the belief and chooses the highest place of this field.

    First a hyperparameter candidate is drawn with a probability equal to its weight. Then the field
    is drawn, given this candidate. The draw ignores pending places. [Thompson1933; Russo2014]
    """

    joint: ClassVar[int] = 500
    """Largest number of places at which the field is drawn. On a larger map, only the places with
    the largest ``μ + 3σ`` are used."""

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the drawn values; places without a draw get the smallest drawn value."""
        kept = np.arange(view.locations.size)
        if kept.size > self.joint:
            kept = np.sort(by_size(view.mean + 3.0 * view.std)[: self.joint])
        drawn = posterior_draw(belief, view.locations[kept], rng)
        draw = self.sign * belief.transform.inverse(drawn)
        values = np.full(view.locations.size, float(draw.min()))
        values[kept] = draw
        return values


def posterior_draw(belief: Belief, locations: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return a random draw (m,) of the noise-free field, in the unit of transformed readings."""
    which = int(rng.choice(belief.weights.size, p=belief.weights))
    white = rng.standard_normal(locations.size)
    scales, known, slopes, mean = (part[which] for part in belief.roots(locations))
    covariance = scales * belief.covariance.only([which]).between(locations, locations)[0]
    covariance += slopes.T @ slopes - known.T @ known
    scale = float(covariance.diagonal().max())
    if scale <= 0.0:
        return np.asarray(mean)
    # For nearly equal places, a Cholesky factor would give different draws on different processors.
    # The symmetric root does not. Rounding errors may make eigenvalues slightly negative.
    values, vectors = np.linalg.eigh(covariance)
    lengths = np.sqrt(np.maximum(values, 0.0) + _JITTER * scale)
    return np.asarray(mean + vectors @ (lengths * (vectors.T @ white)))


@dataclass(frozen=True)
class MeanOnly(Bandit):
    """Policy that chooses the largest mean, ``argmax_x μ(x)``. [Srinivas2010, Sec. 6]."""

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``μ`` [unit of the readings]."""
        return view.mean


@dataclass(frozen=True)
class VarianceOnly(Bandit):
    """Policy that chooses the largest variance, ``argmax_x σ(x)``. [Srinivas2010, Eq. 4]."""

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``σ`` [unit of the readings]."""
        return view.std
