"""Mixtures of Gaussians: distribution function and quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import lognorm, norm

from gp_active_sensing.belief import Belief, FeatureCovariance, HyperParameters, PriorMean
from gp_active_sensing.belief.mixture import Mixture, MostProbableKernel, most_probable
from gp_active_sensing.belief.prior import LOG
from gp_active_sensing.kernels import build_kernel
from tests.cases import for_each

LEVELS = np.array([0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975])


def drawn(seed: int, transform=None) -> Mixture:
    rng = np.random.default_rng([5, seed])
    L, m = int(rng.integers(1, 12)), 15
    more = {} if transform is None else {"transform": transform}
    return Mixture(
        rng.dirichlet(np.full(L, 0.5)),
        rng.normal(0.0, float(rng.choice([0.1, 1.0, 5.0])), (L, m)),
        rng.uniform(0.01, 1.0, (L, m)) ** 2,
        **more,
    )


@pytest.mark.seeds
def test_it_is_the_sum_of_its_components(seed: int) -> None:
    found = drawn(seed)
    values = np.linspace(-4.0, 4.0, 15)
    direct = [
        found.weights @ norm.cdf(value, found.mean[:, i], np.sqrt(found.variance[:, i]))
        for i, value in enumerate(values)
    ]
    np.testing.assert_allclose(found.below(values), direct, atol=2e-10)
    mean, variance = found.moments()
    expected = found.weights @ found.mean
    np.testing.assert_allclose(mean, expected)
    squares = found.weights @ (found.variance + found.mean**2)
    np.testing.assert_allclose(variance, squares - expected**2, rtol=1e-9, atol=1e-9)


@pytest.mark.seeds
def test_quantiles_are_its_inverse(seed: int) -> None:
    found = drawn(seed)
    quantiles = found.quantiles(LEVELS)
    assert quantiles.shape == (7, 15)
    assert (np.diff(quantiles, axis=0) > 0).all()
    for level, values in zip(LEVELS, quantiles, strict=True):
        np.testing.assert_allclose(found.below(values), level, atol=2e-9)
    place = found.at(np.array([3]))
    root = brentq(lambda v: place.below(np.array([v]))[0] - 0.25, -40.0, 40.0, xtol=1e-12)
    assert quantiles[2, 3] == pytest.approx(root, abs=1e-6)


def test_modes_far_apart_leave_the_density_between_them_at_nothing() -> None:
    found = Mixture(np.array([0.3, 0.7]), np.array([[-1e3], [1e3]]), np.array([[1e-6], [1.0]]))
    low, edge, high = found.quantiles(np.array([0.1, 0.3, 0.9]))[:, 0]
    assert low == pytest.approx(norm.ppf(0.1 / 0.3, -1e3, 1e-3), abs=1e-9)
    assert -1e3 < edge < 1e3  # anywhere between them
    assert high == pytest.approx(norm.ppf(0.6 / 0.7, 1e3, 1.0), abs=1e-6)


def test_a_certain_value_is_a_step() -> None:
    found = Mixture(np.ones(1), np.array([[2.0, 2.0, 2.0]]), np.zeros((1, 3)))
    np.testing.assert_array_equal(found.below(np.array([1.9, 2.0, 2.1])), [0.0, 0.5, 1.0])
    np.testing.assert_allclose(found.quantiles(np.array([0.05, 0.95])), 2.0)


def test_it_is_seen_through_the_transform() -> None:
    found = Mixture(np.ones(1), np.array([[0.5, 0.5]]), np.array([[0.04, 0.04]]), LOG)
    law = lognorm(s=0.2, scale=np.exp(0.5))
    np.testing.assert_allclose(found.below(np.array([1.4, -1.0])), [law.cdf(1.4), 0.0])
    np.testing.assert_allclose(found.quantiles(np.array([0.9]))[0], law.ppf(0.9), rtol=1e-8)
    mean, variance = found.moments()
    assert mean[0] == pytest.approx(law.mean())
    assert variance[0] == pytest.approx(law.var())
    np.testing.assert_allclose(LOG.seen_variance(np.array([2.0]), 1.0), 0.25)


@for_each("scale_known", [True, False])
def test_a_belief_s_mixture_is_what_it_predicts(scale_known: bool) -> None:
    x = np.arange(10.0)[:, None]
    hyper = [HyperParameters((2.0,), 1.0, 0.5), HyperParameters((5.0,), 1.0, 0.1)]
    belief = Belief(
        FeatureCovariance(build_kernel("se"), x, hyper),
        PriorMean.constant(10, 0.0, 3.0),
        scale_known=scale_known,
    )
    for place, value in ((1, 4.0), (4, 6.5), (7, 5.0), (8, 1.0)):
        belief.observe(place, value)
    found = belief.mixture()
    for mine, theirs in zip(found.moments(), belief.predict(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    noisy = found.noisier(belief.noise_of())
    for mine, theirs in zip(noisy.moments(), belief.predict(noisy=True), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_allclose(
        found.at(np.array([2, 3])).mean, belief.marginals(np.arange(10))[0][:, 2:4]
    )
    own = np.full(10, 0.3)
    expected = 0.3 + (0.0 if scale_known else belief.noise_variance[:, None])
    np.testing.assert_allclose(belief.noise_of(own), np.broadcast_to(expected, (2, 10)))


def test_the_length_scale_is_of_the_most_probable_kernel() -> None:
    """Length-scale 2 has the largest total weight, but mostly with the less probable kernel."""
    candidates = [
        ("matern12", (1.0,), 0.125),
        ("matern12", (2.0,), 0.25),
        ("matern12", (1.0 + 3e-16,), 0.175),  # the same length-scale, with a rounding error
        ("se", (2.0,), 0.2),
        ("se", (2.0,), 0.2),
        ("se", (4.0,), 0.05),
    ]
    assert most_probable(candidates) == MostProbableKernel("matern12", 0.55, (1.0,), 0.3)


def test_a_wide_component_of_no_weight_has_no_say_through_a_logarithm() -> None:
    """Its expectation alone, exp(1 + 80 / 2), would be all of the mixture's."""
    law = Mixture(np.array([1.0, 1e-7]), np.array([[0.5], [1.0]]), np.array([[0.3], [80.0]]), LOG)
    mean, variance = law.moments()
    alone = lognorm(s=np.sqrt(0.3), scale=np.exp(0.5))
    assert mean[0] == pytest.approx(alone.mean(), rel=1e-4)
    assert variance[0] == pytest.approx(alone.var(), rel=1e-2)
    wide = np.array([[4.0], [4.0 * (1.0 + 1e-12)]])
    laws = [Mixture(np.full(2, 0.5), np.zeros((2, 1)), v, LOG) for v in (wide, wide[[0, 0]])]
    uneven, even = (np.array(law.moments()) for law in laws)
    assert uneven == pytest.approx(even, rel=1e-6), "rounding decides nothing"


@for_each("signal_std", [1.0, 1.5, 2.0])
def test_noise_widens_a_mixture_through_a_logarithm(signal_std: float) -> None:
    law = Mixture(np.array([0.2, 0.3, 0.5]), np.zeros((3, 4)), np.full((3, 4), signal_std**2), LOG)
    noise = np.array([[0.01], [0.0225], [0.01]])
    assert (law.noisier(noise).moments()[1] > law.moments()[1]).all()
