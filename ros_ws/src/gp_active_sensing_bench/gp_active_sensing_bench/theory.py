"""Bounds that the papers prove: information gain, cumulative regret, windows of least regret.

No policy needs them. They say what the theorems promise for a mission of given length.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from gp_active_sensing.planning.bandits.information_gain import SHARE
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import first_best

__all__ = [
    "allocation",
    "batch_est_bound",
    "batch_ucb_bound",
    "dpp_sample_bound",
    "est_bound",
    "greedy_gain",
    "information_gain",
    "recommended_share",
    "recommended_window",
    "spectral_bound",
    "trace_bound",
    "ucb_bound",
]


def information_gain(covariance: FloatArray, noise_variance: float) -> float:
    """Return ``F(A) = ½ log|I + σ⁻² K_A|`` [nat]. [Srinivas2010, Eq. 3].

    Args:
        covariance: (m, m) K_A of the places that are read; a place read twice stands there twice.
        noise_variance: σ².
    """
    m = len(covariance)
    factor = np.linalg.cholesky(np.eye(m) + np.asarray(covariance) / noise_variance)
    return float(np.log(np.diagonal(factor)).sum())


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


def recommended_window(steps: int, variation: float, gain: float) -> float:
    """Return the window, in steps, of the least regret bound: ``γ_T^(1/4) (T / B_T)^(1/2)``.

    For `r_gp_ucb` and `sw_gp_ucb`, up to a constant; at least one step, at most all of them.
    [Zhou2021]

    Args:
        steps: T, decisions of the whole mission.
        variation: B_T, ``Σ_t ‖f_{t+1} - f_t‖_k``; 1 where nothing is known of it.
        gain: γ_T, largest information gain of T readings [nat].
    """
    window = math.sqrt(math.sqrt(gain) * steps / variation)
    return min(max(window, 1.0), float(steps))


def recommended_share(steps: int, variation: float, gain: float) -> float:
    """Return the weight γ of a reading one step old: ``1 - γ_T^(-1/4) (B_T / T)^(1/2)``.

    For `w_gp_ucb`, up to a constant. [Deng2022]

    Args:
        steps: T, decisions of the whole mission.
        variation: B_T, see `recommended_window`.
        gain: γ_T [nat].
    """
    return 1.0 - 1.0 / max(recommended_window(steps, variation, gain), 1.0 + 1e-9)
