"""Entropies against integrals, closed forms and Monte Carlo."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from gp_active_sensing.planning.entropy import (
    gaussian_entropy,
    mixture_entropy,
    noise_entropy,
    reported_offset,
)
from tests.cases import for_each


@pytest.mark.seeds
def test_mixture_entropy_is_the_integral(seed: int) -> None:
    rng = np.random.default_rng(seed)
    L = int(rng.integers(1, 8))
    weights = rng.dirichlet(np.ones(L))
    means = rng.normal(0, 10, size=L) * rng.choice([0.1, 1.0])
    std = np.exp(rng.uniform(np.log(0.25), np.log(10), size=L))

    def integrand(z: float) -> float:
        p = float(weights @ stats.norm.pdf(z, means, std))
        return -p * np.log(p) if p > 0 else 0.0

    points = np.unique((means[:, None] + std[:, None] * np.array([-9, -3, 0, 3, 9])).ravel())
    expected = sum(integrate.quad(integrand, a, b)[0] for a, b in itertools.pairwise(points))
    found = mixture_entropy(weights, means, std**2)
    assert found == pytest.approx(expected, abs=3e-4)


@for_each("spread", [0.02, 0.1, 0.3, 0.6])
def test_mixture_entropy_of_components_that_agree(spread: float) -> None:
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.ones(5), size=400)
    means = 50.0 + 7.0 * spread * rng.normal(size=(400, 5))
    std = 7.0 * np.exp(spread * rng.uniform(-1.0, 1.0, size=(400, 5)))
    z = np.linspace(-60.0, 160.0, 8001)
    density = np.einsum("kl,klz->kz", weights, stats.norm.pdf(z, means[..., None], std[..., None]))
    log = np.log(np.maximum(density, 1e-300))
    expected = -(density * log).sum(axis=1) * (z[1] - z[0])
    np.testing.assert_allclose(mixture_entropy(weights, means, std**2), expected, atol=3e-4)


def test_extreme_components_give_numbers() -> None:
    found = mixture_entropy(
        np.array([0.5, 0.5, 0.0]), np.array([-1e6, 1e6, 0.0]), np.array([1e-12, 1e12, 1.0])
    )
    assert np.isfinite(found)
    single = mixture_entropy(np.array([1.0]), np.array([3.0]), np.array([4.0]))
    assert single == pytest.approx(float(gaussian_entropy(np.array(4.0))), abs=1e-9)


def test_reported_values_are_entropies_when_the_noise_is_the_same() -> None:
    same, other = np.array([0.5, 0.5]), np.array([0.5, 1.0])
    np.testing.assert_allclose(noise_entropy(other), gaussian_entropy(other))
    assert reported_offset(same, 3) == pytest.approx(3 * float(gaussian_entropy(np.array(0.5))))
    assert reported_offset(other, 3) == 0.0
