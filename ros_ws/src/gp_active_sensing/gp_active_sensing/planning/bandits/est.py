"""EST: an estimate of the maximum sets the width of the confidence bound. [Wang2016]."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.improvement import Incumbent, safe_std
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray

__all__ = ["Est", "MaximumEstimate", "est_a", "est_n", "gap_width", "log_exceedance"]

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
    """Return ``∫ [1 - Π Φ((w - μ)/σ)] dw`` between two levels."""
    nodes, fine, coarse = _rules()
    # Between numbers that rounding can hardly tell apart there is nothing to be halved.
    narrowest = max(_NARROWEST * (stop - start), 4.0 * float(np.spacing(max(-start, stop, 0.0))))
    edges = np.linspace(start, stop, _PANELS + 1)
    low, high = edges[:-1], edges[1:]
    total = 0.0
    while low.size:
        half = 0.5 * (high - low)
        levels = (0.5 * (low + high))[:, None] + half[:, None] * nodes
        values = _exceeding(levels.ravel(), mean, std).reshape(levels.shape)
        found = half * (values @ fine)
        error = np.abs(found - half * (values[:, ::2] @ coarse))
        small = 2.0 * half <= narrowest
        done = (error <= _TOLERANCE * 2.0 * half) | small
        total += float(found[done].sum())
        low, high = low[~done], high[~done]
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return total


def _exceeding(levels: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
    """Return ``1 - Π Φ((w - μ)/σ)`` at each level (k,)."""
    step = max(1, _CHUNK // mean.size)
    parts = [
        1.0 - ndtr((levels[i : i + step, None] - mean) / std).prod(axis=1)
        for i in range(0, levels.size, step)
    ]
    return np.concatenate(parts)


def _rules() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the 17 points of Clenshaw and Curtis on [-1, 1], and the weights of 17 and of 9."""
    return -np.cos(np.pi * np.arange(_INTERVALS + 1) / _INTERVALS), _FINE, _COARSE


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
    """Return ``√β_t = min_x (m̂ - μ(x))/σ(x)``, by which EST is an upper confidence bound.

    Args:
        level: m̂.
        mean: (n,) μ.
        std: (n,) σ.
    """
    return float(((level - mean) / safe_std(mean, std)).min())


@dataclass(frozen=True)
class MaximumEstimate(Incumbent):
    """The keys that say how the maximum is estimated, where a policy needs it."""

    estimate: str = param(
        "n",
        help="of the maximum: n = its expectation by quadrature, a = by half a Gaussian, quicker",
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
