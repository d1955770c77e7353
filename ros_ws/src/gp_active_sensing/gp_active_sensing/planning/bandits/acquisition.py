"""Bandits of one score each: improvement, EST, Thompson sampling, mean or variance alone.

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
"""Least deviation that is divided by, as a share of what the means and deviations span."""
_FAR = 1e6
"""Deviations below which the leading term of the tail is all that can be computed."""
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_CERTAIN = 7.5
"""Deviations below a level beyond which a place does not exceed it: less than 1e-13."""
_TOLERANCE = 1e-8
"""Error of the integral, as a share of its range."""
_INTERVALS = 16
_PANELS = 2
_NARROWEST = 1e-13
_CHUNK = 1_000_000
"""Numbers worked on at a time, to bound memory."""
_RARE = 1e-9
"""Probability below which exceeding twice at once does not count."""
_LARGE = 0.5
"""ESTa: largest probability of exceeding the level that its tail is fitted at."""
_DEVIATIONS = 3.0
"""Deviations above the mean by which places are ranked where there are too many."""
_JITTER = 1e-8
"""Variance, relative to the largest, that is added to every direction of a draw."""


@dataclass(frozen=True)
class Incumbent:
    """Key that defines the value of the best place so far."""

    incumbent: str = param(
        "mean",
        help="best so far: the largest posterior mean, or the best average "
        "reading of a place, which noise makes too high",
        choices=("mean", "reading"),
    )

    def standing(self, view: View) -> float:
        """Return the incumbent value; before the first reading the largest mean."""
        if view.best is None or self.incumbent == "mean":
            return float(view.everywhere[0].max())
        return view.best


@dataclass(frozen=True)
class Improvement(Incumbent):
    """The keys of policies that want to improve on the best place so far."""

    noise_share: ClassVar[float] = 0.0
    """Default margin, in standard deviations of a reading's noise."""

    margin: float | None = param(
        None,
        help="amount by which it must be exceeded; null = as the policy says",
        unit="unit of the readings",
        low=0.0,
    )

    def excess(self, view: View) -> tuple[FloatArray, FloatArray]:
        """Return ``u = (μ - m)/σ`` and the σ it is made with, (m,) each."""
        margin = self.margin
        if margin is None:
            margin = self.noise_share * math.sqrt(view.noise_variance)
        std = safe_std(view.mean, view.std)
        return (view.mean - self.standing(view) - margin) / std, std


def safe_std(mean: FloatArray, std: FloatArray) -> FloatArray:
    """Return deviations to divide by: none is zero, so that what is certain still has an order.

    Where nothing is uncertain at all, a ratio then prefers the largest mean.
    """
    span = max(float(np.max(std)), float(np.ptp(mean)))
    return np.asarray(np.maximum(std, _LEAST * span if span > 0.0 else 1.0))


def log_expected_improvement(u: FloatArray, std: FloatArray) -> FloatArray:
    """Return ``log E[max(f - m, 0)]`` of ``f ~ N(μ, σ²)``, with ``u = (μ - m)/σ``.

    ``E = σ (φ(u) + u Φ(u))`` [Mockus1978]; far below the incumbent it is less than the smallest
    float, and only its logarithm distinguishes places [Ament2023, Eq. 9].

    Args:
        u: (m,).
        std: (m,) σ, above 0.
    """
    near = np.maximum(u, -1.0)
    log_phi = -0.5 * u * u - _LOG_ROOT_2PI
    above = np.log(np.exp(-0.5 * near * near - _LOG_ROOT_2PI) + near * ndtr(near))
    low = np.minimum(u, -1.0)
    ratio = math.sqrt(0.5 * math.pi) * erfcx(-np.maximum(low, -_FAR) / math.sqrt(2.0))
    tail = np.log1p(np.maximum(low, -_FAR) * ratio)
    # Beyond, 1 + u Φ/φ is a difference of equals: what is left of it is 1/u².
    tail = np.where(u > -1e4, tail, -2.0 * np.log(-low))
    return np.asarray(np.log(std) + np.where(u > -1.0, above, log_phi + tail))


@dataclass(frozen=True)
class ExpectedImprovement(Improvement, Bandit):
    """Expected improvement on the best place so far, ``argmax_x E[max(f(x) - m, 0)]``.

    With m the incumbent plus the margin, which is 0 by default. [Mockus1978; Srinivas2010, Sec. 6]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the logarithm of the expected improvement [log of the unit of the readings]."""
        return log_expected_improvement(*self.excess(view))


@dataclass(frozen=True)
class ProbabilityOfImprovement(Improvement, Bandit):
    """Most probable improvement on the best place so far, ``argmax_x Pr{f(x) > m} = Φ(u)``.

    With ``u = (μ - m)/σ`` and m the incumbent plus the margin. Without a margin it would stay at
    the incumbent, where u is 0; by default it is a quarter of the noise's standard deviation.
    [Mockus1989; Srinivas2010, Sec. 6]
    """

    noise_share: ClassVar[float] = 0.25

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return u, in the order of the probabilities even where these are all 0 or 1."""
        return self.excess(view)[0]


def log_exceedance(level: float, mean: FloatArray, std: FloatArray) -> float:
    """Return ``log(1 - Π_x Φ((w - μ(x))/σ(x)))``: that some place is above a level w.

    The places are taken as independent.

    Args:
        level: w.
        mean: (n,) μ.
        std: (n,) σ, above 0.
    """
    u = (level - mean) / std
    below = float(log_ndtr(u).sum())
    if below > -_RARE:  # at most one place is: their probabilities add up
        return float(logsumexp(log_ndtr(-u)))
    return math.log(-math.expm1(below)) if below > -0.5 else math.log1p(-math.exp(below))


def est_a(mean: FloatArray, std: FloatArray, best: float | None) -> float:
    """Return ESTa, ``m̂ = m₀ + s p₀ √(π/2)``: the tail of the maximum as half a Gaussian.

    With ``p₀ = 1 - Π Φ((m₀ - μ)/σ)``, p₁ the same at ``m₀ + h``, ``s = h / √(-2 log p₁)``, and m₀
    the best reading. h is the largest σ, doubled until ``p₁ ≤ ½``. Never less than the largest
    mean, which the fit might fall short of. [Wang2016, Sec. 3; Kathuria2016]

    Args:
        mean: (n,) μ of every place.
        std: (n,) σ.
        best: m₀, the best so far; None = the largest mean.
    """
    std = safe_std(mean, std)
    top = float(mean.max())
    start = top if best is None else best
    step = float(std.max())
    at_step = log_exceedance(start + step, mean, std)
    while at_step > math.log(_LARGE):
        step *= 2.0
        at_step = log_exceedance(start + step, mean, std)
    spread = step / math.sqrt(-2.0 * at_step)
    share = math.exp(log_exceedance(start, mean, std))
    return max(start + spread * share * math.sqrt(0.5 * math.pi), top)


def est_n(mean: FloatArray, std: FloatArray, best: float | None) -> float:
    r"""Return ESTn, the expected maximum of independent places, not below the best reading.

    .. math:: \hat m = m_0 + \int_{m_0}^\infty
        \Big[1 - \prod_x \Phi\Big(\frac{w - \mu(x)}{\sigma(x)}\Big)\Big] dw

    By nested Clenshaw-Curtis rules on panels that are halved until the rules agree. Places that
    are nearly certain make steps, which panels narrow down. [Wang2016, Sec. 3; Kathuria2016]

    Args:
        mean: (n,) μ of every place.
        std: (n,) σ, 0 where the field is certain.
        best: m₀, the best so far; None = the largest mean.
    """
    start = float(mean.max()) if best is None else best
    certain = std <= 0.0
    if certain.any():  # nothing but certainty lies below the largest of these
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
    # Between numbers that rounding can hardly tell apart there is nothing to be halved.
    narrowest = max(_NARROWEST * (stop - start), 4.0 * float(np.spacing(max(-start, stop, 0.0))))
    edges = np.linspace(start, stop, _PANELS + 1)
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
    """Return the weights of the rule with an even number of intervals."""
    k = np.arange(intervals + 1)
    j = np.arange(1, intervals // 2 + 1)
    factor = np.where(j == intervals // 2, 1.0, 2.0) / (4.0 * j**2 - 1.0)
    weights = 1.0 - (factor * np.cos(2.0 * np.pi * np.outer(k, j) / intervals)).sum(axis=1)
    weights *= 2.0 / intervals
    weights[[0, -1]] *= 0.5
    return np.asarray(weights, dtype=np.float64)


_FINE, _COARSE = _clenshaw_curtis(_INTERVALS), _clenshaw_curtis(_INTERVALS // 2)


def gap_width(level: float, mean: FloatArray, std: FloatArray) -> float:
    """Return ``√β_t = min_x (m̂ - μ(x))/σ(x)``, by which EST is an upper confidence bound."""
    return float(((level - mean) / safe_std(mean, std)).min())


@dataclass(frozen=True)
class MaximumEstimate(Incumbent):
    """The keys that say how the maximum is estimated, where a policy needs it."""

    estimate: str = param(
        "n",
        help="estimate of the maximum: n = expectation by quadrature, a = half a Gaussian, faster",
        choices=("a", "n"),
    )

    def highest(self, view: View) -> float:
        """Return m̂, the estimate of the field's maximum [unit of the readings]."""
        estimate = est_a if self.estimate == "a" else est_n
        return estimate(*view.everywhere, self.standing(view))


@dataclass(frozen=True)
class Est(MaximumEstimate, Bandit):
    """The place likeliest to reach the estimated maximum, ``argmin_x (m̂ - μ(x))/σ(x)``.

    The same place as with an upper confidence bound of ``√β_t = min_x (m̂ - μ)/σ``. [Wang2016]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``(μ - m̂)/σ``."""
        return (view.mean - self.highest(view)) / safe_std(view.mean, view.std)


@dataclass(frozen=True)
class Thompson(Bandit):
    """The highest place of one draw from the belief: λ by its weight, then the field given λ.

    Places in flight to other probes do not change the draw: it differs from call to call anyway.
    [Thompson1933; Russo2014]
    """

    joint: ClassVar[int] = 500
    """Largest number of places drawn together: those with the largest mean plus 3 deviations."""

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the draw [unit of the readings]; less than any of it where none was made."""
        kept = np.arange(view.locations.size)
        if kept.size > self.joint:
            highest = by_size(view.mean + _DEVIATIONS * view.std)
            kept = np.sort(highest[: self.joint])
        draw = self.sign * belief.transform.inverse(
            posterior_draw(belief, view.locations[kept], rng)
        )
        values = np.full(view.locations.size, float(draw.min()))
        values[kept] = draw
        return values


def posterior_draw(belief: Belief, locations: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return one draw (m,) of the latent field, as the Gaussian process sees it.

    O(|D| m² + m³) on top of what the belief does anyway.
    """
    which = int(rng.choice(belief.weights.size, p=belief.weights))
    white = rng.standard_normal(locations.size)
    scales, known, slopes, mean = (part[which] for part in belief.roots(locations))
    covariance = scales * belief.covariance.only([which]).between(locations, locations)[0]
    covariance += slopes.T @ slopes - known.T @ known
    scale = float(covariance.diagonal().max())
    draw = mean
    if scale <= 0.0:
        return np.asarray(draw)
    # The symmetric root: Cholesky's loses half of its digits where places hardly differ, and which
    # ones it loses depends on the processor. Rounding leaves negative eigenvalues, of about zero.
    values, vectors = np.linalg.eigh(covariance)
    lengths = np.sqrt(np.maximum(values, 0.0) + _JITTER * scale)
    return np.asarray(draw + vectors @ (lengths * (vectors.T @ white)))


@dataclass(frozen=True)
class MeanOnly(Bandit):
    """Largest posterior mean, ``argmax_x μ(x)``: sticks to the first high place it finds.

    [Srinivas2010, Sec. 6]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``μ`` [unit of the readings]."""
        return view.mean


@dataclass(frozen=True)
class VarianceOnly(Bandit):
    """Largest posterior variance, ``argmax_x σ(x)``: greedy for information about the whole field.

    [Srinivas2010, Eq. 4]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``σ`` [unit of the readings]."""
        return view.std
