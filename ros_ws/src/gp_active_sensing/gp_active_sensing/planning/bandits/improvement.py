"""Expected and most probable improvement on the best place so far. [Mockus1978; Mockus1989]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, ndtr

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray

__all__ = [
    "ExpectedImprovement",
    "Improvement",
    "Incumbent",
    "ProbabilityOfImprovement",
    "log_expected_improvement",
    "safe_std",
]

_LEAST = 1e-9
"""Least deviation that is divided by, as a share of what the means and deviations span."""
_FAR = 1e6
"""Deviations below which the leading term of the tail is all that can be computed."""
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Incumbent:
    """The key that says what the best place so far is worth."""

    incumbent: str = param(
        "mean",
        help="what counts as the best so far: the largest posterior mean, or the best average "
        "reading of a place, which noise makes too high",
        choices=("mean", "reading"),
    )

    def standing(self, view: View) -> float:
        """Return what is to be exceeded; before the first reading the largest mean."""
        if view.best is None or self.incumbent == "mean":
            return float(view.everywhere[0].max())
        return view.best


@dataclass(frozen=True)
class Improvement(Incumbent):
    """The keys of policies that want to improve on the best place so far."""

    noise_share: ClassVar[float] = 0.0
    """Margin that nobody has chosen, in standard deviations of a reading's noise."""

    margin: float | None = param(
        None,
        help="by how much it is to be exceeded; null = as the policy says",
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
    float, and only its logarithm tells places apart [Ament2023, Eq. 9].

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

    With m the incumbent plus the margin, which is nothing where nobody has chosen it. [Mockus1978;
    Srinivas2010, Sec. 6]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the logarithm of the expected improvement [log of the unit of the readings]."""
        return log_expected_improvement(*self.excess(view))


@dataclass(frozen=True)
class ProbabilityOfImprovement(Improvement, Bandit):
    """Most probable improvement on the best place so far, ``argmax_x Pr{f(x) > m} = Φ(u)``.

    With ``u = (μ - m)/σ`` and m the incumbent plus the margin. Without a margin it would stay at
    the incumbent, where u is 0; where nobody has chosen one it is a quarter of the noise's standard
    deviation. [Mockus1989; Srinivas2010, Sec. 6]
    """

    noise_share: ClassVar[float] = 0.25

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return u, in the order of the probabilities even where these are all 0 or 1."""
        return self.excess(view)[0]
