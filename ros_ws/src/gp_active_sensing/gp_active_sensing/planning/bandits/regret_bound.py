"""What the regret of a mission is bounded by, with probability 1-δ. [Srinivas2010; Wang2016]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import IDENTITY
from gp_active_sensing.planning.bandits.gp_ucb import GpUcb
from gp_active_sensing.planning.bandits.information_gain import largest_gain, prior_gains

if TYPE_CHECKING:
    from gp_active_sensing.planning.base import Policy

__all__ = [
    "batch_est_bound",
    "batch_ucb_bound",
    "constant",
    "dpp_sample_bound",
    "est_bound",
    "regret_bound",
    "ucb_bound",
]


def constant(variance: float, noise_variance: float, factor: float = 8.0) -> float:
    """Return ``C₁ = 8 v / log(1 + v/σ²)``, which is ``8 / log(1 + σ⁻²)`` for v = 1.

    Of ``Σ σ²_{t-1}(x_t) ≤ (2v / log(1 + v/σ²)) γ_T`` and a regret of at most ``2 √β_t σ_{t-1}``
    each. [Srinivas2010, Theorem 1 and Lemma 5.4, for any v = max k(x, x)]

    Args:
        variance: v, the largest prior variance.
        noise_variance: σ².
        factor: 8; 36 for batches [Kathuria2016], 2 for EST.
    """
    return factor * variance / math.log1p(variance / noise_variance)


def ucb_bound(rounds: int, beta: float, gain: float, c1: float, extra: float = 0.0) -> float:
    """Return ``√(C₁ T β_T γ_T)``, plus 2 for a compact region. [Srinivas2010, Theorems 1-3].

    Args:
        rounds: T.
        beta: β_T.
        gain: γ_T [nat].
        c1: C₁, see `constant`.
        extra: 2 for the schedule of a compact region.
    """
    return math.sqrt(c1 * rounds * max(beta, 0.0) * gain) + extra


def est_bound(rounds: int, width: float, gain: float, c1: float, delta: float) -> float:
    """Return ``√(C T γ_T) (ν + √ζ_T)``, ``ζ_T = 2 log(π²T²/(6δ))``. [Wang2016, Theorem 3.1].

    It holds where every m̂ is at least the field's maximum.

    Args:
        rounds: T.
        width: ν, the largest ``min_x (m̂ - μ)/σ`` of all rounds.
        gain: γ_T [nat].
        c1: C = `constant` with the factor 2.
        delta: δ.
    """
    zeta = 2.0 * math.log(math.pi**2 * rounds**2 / (6.0 * delta))
    return math.sqrt(c1 * rounds * gain) * (width + math.sqrt(zeta))


def batch_ucb_bound(rounds: int, batch: int, beta: float, gain: float, c1: float) -> float:
    """Return ``√(C₁ T B β_T γ_TB)`` of UCB-DPP-MAX. [Kathuria2016, Theorem 3.3].

    Args:
        rounds: T.
        batch: B.
        beta: β_T.
        gain: γ_TB [nat].
        c1: C₁ = `constant` with the factor 36.
    """
    return math.sqrt(c1 * rounds * batch * beta * gain)


def batch_est_bound(
    rounds: int, batch: int, width: float, gain: float, c1: float, delta: float
) -> float:
    """Return ``√(C₁ T B γ_TB) (√β_t* + √ζ_T)`` of EST-DPP-MAX. [Kathuria2016, Theorem 3.3].

    With ``ζ_T = 2 log(π²T²/(3δ))``; the arguments are those of `est_bound` and `batch_ucb_bound`.
    """
    zeta = 2.0 * math.log(math.pi**2 * rounds**2 / (3.0 * delta))
    return math.sqrt(c1 * rounds * batch * gain) * (width + math.sqrt(zeta))


def dpp_sample_bound(
    rounds: int, batch: int, factor: float, gain: float, c1: float, size: int, entropy: float
) -> float:
    """Return the bound on the expected regret of DPP-SAMPLE. [Kathuria2016, Theorem 3.4].

    ``√(2 T B C₁ η [γ_TB - Σ_t H(DPP_t) + T (B-1) log|X|])`` with ``η = β_T`` for UCB and
    ``(√β_t* + √ζ_T)²`` for EST, or the bound of DPP-MAX where that is smaller. As printed the last
    term lacks its factor T, and the sum could be negative; an entropy of B-1 places out of |X| is
    at most ``(B-1) log|X|``, so that this one cannot.

    Args:
        rounds: T.
        batch: B.
        factor: η.
        gain: γ_TB [nat].
        c1: C₁ = `constant` with the factor 36.
        size: |X|.
        entropy: Σ_t H of the (B-1)-DPPs that were drawn from [nat].
    """
    spread = rounds * (batch - 1) * math.log(size) - entropy
    sampled = math.sqrt(2.0 * rounds * batch * c1 * factor * (gain + max(spread, 0.0)))
    return min(sampled, math.sqrt(c1 * rounds * batch * factor * gain))


def regret_bound(policy: Policy, belief: Belief, readings: int) -> float | None:
    """Return what the cumulative regret of so many decisions is bounded by, None where nothing is.

    Known for gp_ucb with its full β_t (``scale`` 1 or less), for a field that is drawn from the
    prior: with one λ, whose scale is known, and without a transform. For one probe that reads each
    place before it chooses the next.

    Args:
        policy: of the mission.
        belief: before the first reading.
        readings: number T of decisions.
    """
    # Exactly this one: what is derived from it chooses in batches, or forgets readings.
    if type(policy) is not GpUcb or policy.schedule == "constant" or policy.scale > 1.0:
        return None
    if belief.transform is not IDENTITY or not belief.scale_known or readings < 1:
        return None
    if np.count_nonzero(belief.weights) != 1:
        return None
    (gains,) = prior_gains(belief).values()
    beta = policy.unscaled(readings, belief.n, belief) / policy.scale
    c1 = constant(gains.largest_variance, gains.noise_variance)
    extra = 2.0 if policy.schedule == "compact" else 0.0
    return ucb_bound(readings, beta, largest_gain(belief, readings), c1, extra)
