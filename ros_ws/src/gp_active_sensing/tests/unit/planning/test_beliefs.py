"""Candidates taken together: which ones, and what is kept of them."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.planning.beliefs import MergedCandidates, joined
from gp_active_sensing.planning.entropy import noise_entropy
from tests.cases import for_each


def merged(
    weights: np.ndarray, mean: np.ndarray, covariance: np.ndarray, noise: np.ndarray
) -> MergedCandidates:
    return MergedCandidates(weights, mean, covariance, noise, noise_entropy(noise))


def some(seed: int, L: int = 9) -> MergedCandidates:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(L, 6, 6))
    noise = rng.uniform(0.1, 1.0, size=L)
    covariance = root @ np.swapaxes(root, 1, 2)
    mean = rng.normal(size=(L, 6))
    return merged(rng.dirichlet(np.ones(L)), mean, covariance, noise)


def moments(found: MergedCandidates) -> tuple[np.ndarray, np.ndarray]:
    mean = found.weights @ found.mean
    apart = found.mean - mean
    spread = np.einsum("l,lx,ly->xy", found.weights, apart, apart)
    return mean, np.tensordot(found.weights, found.covariance, axes=1) + spread


@for_each("seed", range(5))
@for_each("most", [1, 2, 5, 8])
def test_weights_and_moments_of_the_mixture_are_kept(seed: int, most: int) -> None:
    given = some(seed)
    found = joined(given, most)
    assert len(found.weights) == most
    assert found.weights.sum() == pytest.approx(1.0)
    for a, b in zip(moments(found), moments(given), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert found.weights @ found.noise == pytest.approx(given.weights @ given.noise)
    assert found.weights @ found.reference == pytest.approx(given.weights @ given.reference)
    # Information of a reading is not negative under any of them.
    assert (noise_entropy(found.noise) >= found.reference - 1e-12).all()
    assert (np.linalg.eigvalsh(found.covariance) > -1e-9).all()


def test_those_are_joined_whose_predictions_agree() -> None:
    given = some(3, L=4)
    rng = np.random.default_rng(1)
    pick = rng.permutation(np.repeat(np.arange(4), 5))
    shares = rng.dirichlet(np.ones(20))
    many = merged(shares, given.mean[pick], given.covariance[pick], given.noise[pick])
    found = joined(many, 4)
    for i in range(4):
        g = int(np.abs(found.mean - given.mean[i]).sum(axis=1).argmin())
        assert found.weights[g] == pytest.approx(many.weights[pick == i].sum())
        np.testing.assert_allclose(found.mean[g], given.mean[i], atol=1e-9)
        np.testing.assert_allclose(found.covariance[g], given.covariance[i], atol=1e-9)


def test_candidates_that_all_agree_are_joined_whatever_rounding_says() -> None:
    one = some(4, L=1)
    rng = np.random.default_rng(2)
    mean, covariance = (np.repeat(part, 8, axis=0) for part in (one.mean, one.covariance))
    noise, weights = np.repeat(one.noise, 8), np.full(8, 0.125)
    hair = 1.0 + 1e-15 * rng.normal(size=(8, 1))
    found = [joined(merged(weights, mean * by, covariance, noise), 3) for by in (1.0, hair)]
    np.testing.assert_array_equal(found[0].weights, found[1].weights)
