"""q(g), compared with quadrature and with the best Gaussian by direct optimisation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.kernel_belief import kernel_belief
from tests.cases import for_each

CASES = [
    ((0.0, -0.7), 1.0),
    ((0.0, -20.0), 0.5),
    ((0.0, -20.0), 1.0),
    ((-300.0, 0.0), 2.0),
    ((0.0, -1.0, -2.5), 1.0),
    ((0.0, -1.0, -30.0), 1.0),
    ((-8.0, 3.0, -8.0), 0.7),
    ((0.0, -400.0, -410.0), 1.5),
]


def nodes(K: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Return (count^K, K) Gauss-Hermite nodes and weights of a standard normal."""
    x, w = np.polynomial.hermite_e.hermegauss(count)
    w = w / w.sum()
    grid = np.stack([g.ravel() for g in np.meshgrid(*[x] * K, indexing="ij")], axis=1)
    weights = np.prod(np.stack([g.ravel() for g in np.meshgrid(*[w] * K, indexing="ij")]), axis=0)
    return grid, weights


def log_evidence(L: FloatArray, s: float) -> tuple[float, FloatArray]:
    """Return log ∫ p(g) exp(Σ softmax(g)_i L_i) dg and E[softmax(g)], by a fine grid.

    The sum of g has no effect, so that the grid is over the other directions.
    """
    K = len(L)
    basis = np.linalg.svd(np.eye(K) - 1.0 / K)[0][:, : K - 1]
    axis = np.linspace(-9.0 * s, 9.0 * s, 4001 if K == 2 else 401)
    z = np.stack([g.ravel() for g in np.meshgrid(*[axis] * (K - 1), indexing="ij")], axis=1)
    p = softmax(z @ basis.T, axis=1)
    log_density = p @ L - 0.5 * (z**2).sum(axis=1) / s**2
    cell = (K - 1) * (math.log(axis[1] - axis[0]) - 0.5 * math.log(2.0 * math.pi * s**2))
    total = float(logsumexp(log_density))
    return total + cell, np.exp(log_density - total) @ p


def elbo_of(parameters: FloatArray, L: FloatArray, s: float, count: int) -> float:
    K = len(L)
    root = np.zeros((K, K))
    root[np.tril_indices(K)] = parameters[K:]
    x, w = nodes(K, count)
    value = w @ (softmax(parameters[:K] + x @ root.T, axis=1) @ L)
    log_det = 2.0 * np.log(np.abs(np.diagonal(root))).sum()
    square = (root**2).sum() + (parameters[:K] ** 2).sum()
    return float(value - 0.5 * (square / s**2 - K - log_det + 2.0 * K * math.log(s)))


def best_gaussian(L: FloatArray, s: float, count: int) -> float:
    """Return the largest ELBO of any Gaussian, by BFGS from several starts."""
    K, best = len(L), -math.inf
    low = np.tril_indices(K)
    for lead in (0.1, 1.0, 3.0, 5.0):
        mean = np.full(K, -lead * s / K)
        mean[int(L.argmax())] += lead * s
        start = np.concatenate([mean, (0.8 * s * np.eye(K))[low]])
        found = minimize(lambda v: -elbo_of(v, L, s, count), start, method="BFGS")
        best = max(best, -float(found.fun))
    return best


@pytest.mark.slow
@for_each(("bounds", "s"), CASES)
def test_elbo_is_below_the_evidence_and_that_of_the_best_gaussian(
    bounds: tuple[float, ...], s: float
) -> None:
    L = np.array(bounds)
    found = kernel_belief(L, prior_std=s, samples=20_000)
    evidence, probabilities = log_evidence(L, s)
    count = 60 if len(L) == 2 else 22
    own = elbo_of(np.concatenate([found.mean, found.root[np.tril_indices(len(L))]]), L, s, count)
    best = best_gaussian(L, s, count)
    assert own <= evidence + 1e-6
    assert own > best - 1e-3
    assert found.elbo == pytest.approx(own, abs=1e-3)
    # The gap is KL[q(g) ‖ p(g | y)], which the true posterior's skewness causes: it is small.
    assert evidence - own < 0.1
    assert np.abs(found.probabilities - probabilities).max() < 0.02
    exact = nodes(len(L), 60 if len(L) == 2 else 30)
    mean = exact[1] @ softmax(found.mean + exact[0] @ found.root.T, axis=1)
    assert np.all(np.abs(found.probabilities - mean) < 5.0 * found.errors + 1e-6)
