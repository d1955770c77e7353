"""Cells and draws: what the proofs and the paper ask of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gp_active_sensing.planning.bal.discretise import by_cells, by_draws
from gp_active_sensing.planning.entropy import gaussian_entropy, mixture_entropy
from tests.cases import for_each


def case(seed: int):
    rng = np.random.default_rng(seed)
    L, A, S = int(rng.integers(1, 8)), int(rng.integers(1, 6)), int(rng.integers(1, 9))
    weights = rng.dirichlet(np.ones(L))
    if L > 2:
        weights[0] = 0.0
        weights /= weights.sum()
    mean = rng.normal(0, 3, size=(L, A))
    variance = np.exp(rng.uniform(-3, 3, size=(L, A)))
    return weights, mean, variance, S


@pytest.mark.seeds
def test_cells_average_to_the_present_belief(seed: int) -> None:
    weights, mean, variance, S = case(seed)
    found = by_cells(weights, mean, variance, gaussian_entropy(variance), S)
    np.testing.assert_allclose(found.probability.sum(axis=1), 1.0, atol=1e-12)
    average = (found.probability[:, :, None] * found.weights).sum(axis=1)
    np.testing.assert_allclose(average, np.broadcast_to(weights, average.shape), atol=1e-12)
    np.testing.assert_allclose(found.weights.sum(axis=2), 1.0, atol=1e-12)
    assert (np.diff(found.values, axis=1) >= 0).all()


@for_each("samples", [2, 5, 9])
@for_each("spread", [0.05, 0.3, 1.0])
def test_cells_of_many_states_are_of_about_equal_probability(samples: int, spread: float) -> None:
    """By moments where components agree, else by a table: the cells show no difference."""
    rng = np.random.default_rng(4)
    weights = rng.dirichlet(np.ones(6), size=50)
    mean = spread * rng.normal(size=(50, 6, 3))
    variance = np.exp(spread * rng.uniform(-1.0, 1.0, size=(6, 3)))
    found = by_cells(weights, mean, variance, gaussian_entropy(variance), samples)
    assert found.values.shape == (50, 3, samples)
    below = np.cumsum(found.probability, axis=-1)
    level = np.arange(1, samples + 1) / samples
    np.testing.assert_allclose(below, np.broadcast_to(level, below.shape), atol=0.03)
    t = (found.values[..., None] - mean.swapaxes(1, 2)[:, :, None]) / np.sqrt(variance).T[:, None]
    cdf = (weights[:, None, None] * stats.norm.cdf(t)).sum(axis=-1)
    middle = below - 0.5 * found.probability
    np.testing.assert_allclose(cdf, middle, atol=0.03)


@pytest.mark.seeds
def test_cell_reward_lies_between_known_and_full_information(seed: int) -> None:
    """Knowing only the cell tells less about λ than knowing the reading: reward ≤ H[Z_x]."""
    weights, mean, variance, S = case(seed)
    entropy = gaussian_entropy(variance)
    found = by_cells(weights, mean, variance, entropy, S)
    full = mixture_entropy(weights, mean.T, variance.T)
    assert (found.reward >= weights @ entropy - 1e-12).all()
    assert (found.reward <= full + 1e-4).all()
    many = by_cells(weights, mean, variance, entropy, 200)
    np.testing.assert_allclose(many.reward, full, atol=0.02)


def test_draws_follow_bayes_and_the_truncation() -> None:
    weights, mean, variance, _ = case(7)
    rng = np.random.default_rng(0)
    found = by_draws(weights, mean, variance, 0.25, 4000, rng, (-2.0, 2.0))
    assert found.values.min() >= -2.0
    assert found.values.max() <= 2.0
    z = found.values[0, 17]
    joint = weights * stats.norm.pdf(z, mean[:, 0], np.sqrt(variance[:, 0]))
    np.testing.assert_allclose(found.weights[0, 17], joint / joint.sum(), rtol=1e-9)
    density = np.array(
        [weights @ stats.norm.pdf(v, mean[:, 0], np.sqrt(variance[:, 0])) for v in found.values[0]]
    )
    assert found.reward[0] == pytest.approx(-np.log(density).mean() - 0.25)
