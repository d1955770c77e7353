r"""Belief over kernels from local ELBOs. [Teng2020, Sec. 3.1 and Eq. 13].

With ``p(k_i | g) = softmax(g)_i``, ``p(g) = N(0, s² I)`` and ``q(g) = N(m, C Cᵀ)`` with full
covariance, the ELBO is

.. math:: E_{q(g)}\Big[\sum_i softmax(g)_i L_i\Big] - KL[q(g) \| p(g)]

``L_i`` is the local ELBO of kernel i, and q* is the belief over kernels. The prior makes q* less
extreme than softmax(L). If two kernels differ by 20 nats, the better kernel has q* = 0.81, 0.92 or
0.97 for s = 0.5, 1 or 2.

Two kernels may have equal local ELBOs that lie thousands of nats above all others. q(g) then
prefers one of the two kernels, because the prior penalises one large entry of g less than
two large entries. For s = 1 and a third kernel 5000 nats below, the two kernels have q* = 0.88 and
0.12. softmax(L) would give 0.5 to each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_softmax, ndtri, softmax

from gp_active_sensing.kernel_model.model import KernelPosterior
from gp_active_sensing.types import FloatArray

SAMPLES = 2000
"""Default number S of samples in Eq. 13, as in the paper."""
_COARSE, _FINE = 1 << 10, 1 << 13
"""Numbers of quasi-random points for expectations: during the search, and in the final steps."""
_LEAST = 5
"""Binary logarithm of the smallest number of quasi-random points."""
_ROUNDS = 200
"""Largest number of steps with `_FINE` points."""
_STEP = 0.5
_REACH = 1.0
"""Largest step of the mean, in standard deviations of q(g)."""
_SETTLED = 1e-5
"""Relative change of mean and precision below which the optimisation has converged."""
_CHUNK = 4_000_000
"""Largest number of entries in an array of quasi-random points."""


class _Moments(NamedTuple):
    """Expectations of f(g) = Σ softmax(g)_i L_i under q(g).

    Args:
        value: E[f].
        gradient: (K,) E[∇f].
        hessian: (K, K) E[∇²f].
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray


def kernel_belief(
    bounds: Sequence[float] | FloatArray,
    *,
    prior_std: float = 1.0,
    samples: int = SAMPLES,
    seed: int = 0,
) -> KernelPosterior:
    r"""Return the Gaussian q(g) with the largest ELBO, and the belief over kernels from it.

    The gradients of E[f] with respect to mean and covariance are ``E[∇f]`` and ``½ E[∇²f]``
    (theorems of Bonnet and Price). At the optimum

    .. math:: m = s^2 E[\nabla f], \quad (C C^T)^{-1} = I / s^2 - E[\nabla^2 f]

    The search takes natural-gradient steps [Khan2017], in a form that keeps the precision positive
    definite [Lin2020]. Several starting points are used, because there may be several local optima.
    All steps use the same N points of a scrambled Sobol sequence. A step costs O(K² N). The error
    of the ELBO is at most 0.01 nat for s up to 3, and some tenths of a nat for s above 10.

    Args:
        bounds: (K,) local ELBOs L_i [nat].
        prior_std: standard deviation s.
        samples: number S of samples. The standard error of q* is proportional to 1/√S.
        seed: seed of the Sobol points and of the samples.

    Raises:
        ValueError: there is no bound, a bound is not finite, s is not above 0, or S is below 2.
    """
    L = np.asarray(bounds, dtype=np.float64)
    if L.ndim != 1 or not L.size or not np.isfinite(L).all():
        msg = f"expected the local ELBOs of one or more kernels, all finite, got {L.tolist()}"
        raise ValueError(msg)
    if not (math.isfinite(prior_std) and prior_std > 0.0):
        msg = f"expected a standard deviation of g above 0, got {prior_std}"
        raise ValueError(msg)
    if samples < 2:
        msg = f"expected at least 2 samples of g, got {samples}"
        raise ValueError(msg)
    if L.size == 1:
        one = np.ones(1)
        root = np.array([[float(prior_std)]])
        return KernelPosterior(0.0 * one, root, float(prior_std), one, 0.0 * one, one, float(L[0]))
    # Sort the bounds, so that the order of the kernels has no effect.
    order = np.argsort(-L, kind="stable")
    highest = float(L[order[0]])
    mean, root = _best_gaussian(L[order] - highest, prior_std, seed)
    # The points differ from those of the search.
    elbo = highest + _value(
        L[order] - highest, mean, root, prior_std, _points(L.size, 4 * _FINE, seed)
    )
    rng = np.random.default_rng([seed, 1])
    p = softmax(mean + rng.standard_normal((samples, L.size)) @ root.T, axis=1)
    back = np.argsort(order, kind="stable")
    covariance = (root @ root.T)[np.ix_(back, back)]
    return KernelPosterior(
        mean=mean[back],
        root=np.linalg.cholesky(covariance),
        prior_std=float(prior_std),
        probabilities=p.mean(axis=0)[back],
        errors=(p.std(axis=0, ddof=1) / math.sqrt(samples))[back],
        softmax=np.asarray(softmax(L)),
        elbo=elbo,
    )


def _best_gaussian(L: FloatArray, s: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return mean (K,) and Cholesky factor (K, K) of q(g), for bounds L (K,) with maximum 0."""
    K = L.size
    points = _points(K, _COARSE, seed)
    found = [_raised(L, s, points)]
    found += [_settled(L, start, np.eye(K) / s**2, s, points) for start in _starts(L, s, points)]
    mean, precision = max(found, key=lambda q: _value(L, q[0], _root(q[1]), s, points))
    mean, precision = _settled(L, mean, precision, s, _points(K, _FINE, seed), _SETTLED, _ROUNDS)
    return mean, _root(precision)


def _raised(L: FloatArray, s: float, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Follow the optimum of q(g) while a factor on L grows to 1. Return mean and precision."""
    mean, precision = np.zeros(L.size), np.eye(L.size) / s**2
    share = min(1.0, 1.0 / max(-float(L[-1]), 1.0))
    while share < 1.0:
        mean, precision = _settled(share * L, mean, precision, s, points, rounds=6)
        share = min(1.0, 3.0 * share)
    return _settled(L, mean, precision, s, points)


def _starts(L: FloatArray, s: float, points: FloatArray) -> list[FloatArray]:
    """Return starting points (K,) for the mean. Each favours the best or the few best kernels."""
    spread = -float(L[-1])
    found: list[FloatArray] = []
    for temperature in (1e-9, 2.0, 20.0, 200.0):
        if temperature > spread:
            break
        towards = softmax(L / temperature)
        towards = towards - towards.mean()
        towards = towards / np.abs(towards).max()
        root = s * np.eye(L.size)
        far = s * np.geomspace(0.1, 2.0 + math.sqrt(2.0 * math.log1p(spread)) * (1.0 + 4.0 / s), 12)
        found.append(max((t * towards for t in far), key=lambda m: _value(L, m, root, s, points)))
    return found


def _settled(
    L: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
    s: float,
    points: FloatArray,
    tolerance: float = 1e-2,
    rounds: int = 60,
) -> tuple[FloatArray, FloatArray]:
    """Return mean and precision of q(g) after convergence, or after `rounds` steps."""
    for _ in range(rounds):
        mean, precision, change = _stepped(L, mean, precision, s, points)
        if change < tolerance:
            break
    return mean, precision


def _stepped(
    L: FloatArray, mean: FloatArray, precision: FloatArray, s: float, points: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return mean and precision of q(g) after one step, and their relative change."""
    root = _root(precision)
    found = _moments(L, mean, root, points)
    # P ← P + ρ G + ½ ρ² G P⁻¹ G = ½ [P + (P + ρ G) P⁻¹ (P + ρ G)] is positive definite for any G.
    G = np.eye(L.size) / s**2 - found.hessian - precision
    white = root.T @ G @ root
    precision = precision + _STEP * G + 0.5 * _STEP**2 * (G @ root) @ (root.T @ G)
    precision = 0.5 * (precision + precision.T)
    root = _root(precision)
    step = root.T @ (found.gradient - mean / s**2)
    length = float(np.linalg.norm(step))
    mean = mean + _STEP * root @ (step * min(1.0, _REACH / max(_STEP * length, 1e-300)))
    return mean, precision, max(length, float(np.abs(white).max()))


def _root(precision: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor (K, K) of the inverse of `precision`."""
    # Reversed rows and columns turn an upper factor into a lower factor.
    upper = np.linalg.cholesky(precision[::-1, ::-1])[::-1, ::-1]
    return np.asarray(solve_triangular(upper, np.eye(len(precision)), lower=False).T)


def _points(K: int, count: int, seed: int) -> FloatArray:
    """Return quasi-random normal points (N, K). N is a power of two, at least `count` / K."""
    from scipy.stats import qmc  # a slow import

    power = max(_LEAST, math.ceil(math.log2(count / K)))
    sobol = qmc.Sobol(K, scramble=True, seed=np.random.default_rng([seed, count]))
    uniform = sobol.random_base2(power)
    return np.asarray(ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12)))


def _moments(L: FloatArray, mean: FloatArray, root: FloatArray, points: FloatArray) -> _Moments:
    r"""Average f(g) = Σ p_i L_i and the derivatives of f over the quasi-random points.

    p is softmax(g), with the derivatives

    .. math:: \nabla p_i = p_i (e_i - p), \quad
        \nabla^2 p_i = p_i [(e_i - p)(e_i - p)^T + p p^T - diag(p)]

    Few values of g dominate E[p_i L_i] if p_i is small and L_i is large. Importance sampling
    therefore shifts the points by τ Σ a, with ``a = ∇ log p_i`` at the mean, C = `root` and Σ = C
    Cᵀ. A point ε has the weight ``exp(-τ aᵀ C ε - ½ τ² aᵀ Σ a)``.
    """
    K, N = L.size, len(points)
    middle = log_softmax(mean)
    steered = root.T @ (np.eye(K) - np.exp(middle)[:, None])  # Cᵀ a_i, a column for each kernel
    square = np.maximum((steered**2).sum(axis=0), 1e-300)
    tau = np.clip(-middle / square, 0.0, 1.0)
    first, outer, own, back = np.zeros(K), np.zeros((K, K)), np.zeros(K), np.zeros((K, K))
    at_once = max(1, _CHUNK // (K * N))
    log_weight = -tau * (points @ steered) - 0.5 * tau**2 * square  # (N, K)
    spread = points @ root.T
    for start in range(0, K, at_once):
        some = slice(start, min(K, start + at_once))
        centres = mean + (root @ (tau * steered)[:, some]).T
        p = softmax(centres[:, None, :] + spread[None], axis=2)
        mine = np.diagonal(p[:, :, some], axis1=0, axis2=2)  # (N, kernels)
        weight = (L[some] * np.exp(log_weight[:, some]) * mine).T / N
        own[some] = weight.sum(axis=1)
        back[some] = np.einsum("kn,knj->kj", weight, p)
        flat = p.reshape(-1, K)
        first += weight.ravel() @ flat
        outer += (flat * weight.reshape(-1, 1)).T @ flat
    gradient = own - first
    hessian = np.diag(gradient) - back - back.T + 2.0 * outer
    return _Moments(float(own.sum()), gradient, hessian)


def _value(
    L: FloatArray, mean: FloatArray, root: FloatArray, s: float, points: FloatArray
) -> float:
    """Return the ELBO of N(mean, root rootᵀ)."""
    K = L.size
    log_det = 2.0 * float(np.log(np.abs(root.diagonal())).sum())
    trace = (float((root**2).sum()) + float(mean @ mean)) / s**2
    kl = 0.5 * (trace - K - log_det + 2.0 * K * math.log(s))
    return _moments(L, mean, root, points).value - kl
