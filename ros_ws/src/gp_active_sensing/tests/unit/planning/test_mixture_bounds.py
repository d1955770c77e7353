"""Pairwise bounds hold the entropy, thousands of times, and are no looser than the bracket."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.planning.bal.last_stage import pairwise_bounds
from gp_active_sensing.planning.entropy import (
    discrete_entropy,
    gaussian_entropy,
    mixture_entropy,
)


@pytest.mark.parametrize("seed", range(5))
def test_they_hold_the_entropy(seed: int) -> None:
    rng = np.random.default_rng([21, seed])
    L = int(rng.integers(1, 9))
    weights = rng.dirichlet(np.full(L, 0.4), size=2000)
    means = rng.normal(0, np.exp(rng.uniform(-2, 2, size=(2000, 1))), size=(2000, L))
    variances = np.exp(2 * rng.uniform(-1.5, 1.5, size=(2000, L)))
    entropy = mixture_entropy(weights, means, variances)
    lower, upper = pairwise_bounds(weights, means, variances)
    assert (lower <= entropy + 2e-4).all()
    assert (entropy <= upper + 2e-4).all()
    known = (weights * gaussian_entropy(variances)).sum(axis=1)
    assert (lower >= known - 1e-9).all()
    assert (upper <= known + discrete_entropy(weights) + 1e-9).all()


def test_components_apart_and_components_alike() -> None:
    weights = np.array([0.3, 0.7, 0.0])
    apart = pairwise_bounds(weights, np.array([0.0, 1e6, 0.0]), np.ones(3))
    expected = float(gaussian_entropy(np.array(1.0)) + discrete_entropy(weights))
    np.testing.assert_allclose(apart, expected)
    alike = pairwise_bounds(weights, np.zeros(3), np.array([2.0, 2.0, 9.0]))
    np.testing.assert_allclose(alike, float(gaussian_entropy(np.array(2.0))))
