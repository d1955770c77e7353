"""The incremental, collapsed belief equals Bayes' rule written down plainly."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, FeatureCovariance, HyperParameters, PriorMean
from gp_active_sensing.belief.place_covariance import with_attributes, with_places
from gp_active_sensing.kernels import build_kernel, kernels

from .direct_bayes import DirectBelief


def random_case(seed: int):
    """A random belief, its plain twin, and readings: repeated places, mixed noise, any order."""
    rng = np.random.default_rng([20140621, seed])
    n, p = int(rng.integers(3, 13)), int(rng.integers(1, 4))
    features = rng.uniform(0, 10, size=(n, p))
    width = 1 if rng.random() < 0.5 else p
    hyper = tuple(
        HyperParameters(
            tuple(float(v) for v in rng.uniform(0.5, 8.0, size=width)),
            float(rng.uniform(0.5, 5.0)),
            float(rng.uniform(0.2, 1.5)),
            place_std=float(rng.choice([0.0, 0.3, 4.0])),
            attribute_std=float(rng.choice([0.0, 2.0])),
        )
        for _ in range(int(rng.integers(1, 6)))
    )
    kernel = build_kernel(str(rng.choice(kernels.names())))
    value = float(rng.normal(0, 20))
    std = float(rng.choice([0.0, 1.0, 30.0]))
    mean = (
        PriorMean.linear(features, value, std)
        if rng.random() < 0.3
        else PriorMean.constant(n, value, std)
    )
    prior = rng.dirichlet(np.ones(len(hyper)))
    attributes = rng.standard_normal((n, 2))
    family = with_attributes(with_places(partial(FeatureCovariance, kernel, features)), attributes)
    belief = Belief(family(hyper), mean, prior)
    direct = DirectBelief(
        kernel, features, hyper, mean.basis, mean.std, mean.offset, prior, attributes
    )
    readings = [
        (
            int(rng.integers(n)),
            float(value + rng.normal(0, 5)),
            None if rng.random() < 0.6 else float(rng.uniform(0.05, 2.0)),
        )
        for _ in range(int(rng.integers(1, 40)))
    ]
    return rng, belief, direct, readings


@pytest.mark.seeds
def test_belief_equals_direct_bayes(seed: int) -> None:
    rng, belief, direct, readings = random_case(seed)
    where = np.arange(belief.n)
    for reading in readings:
        belief.observe(*reading)
        direct.observe(*reading)
        if rng.random() < 0.5:  # looking in between must not change the end
            assert np.isfinite(belief.weights).all()
    np.testing.assert_allclose(belief.weights, direct.weights(), rtol=1e-8, atol=1e-10)
    joint = belief.joint(where)
    marginal_mean, marginal_variance = belief.marginals()
    for i, hyper in enumerate(direct.hyperparameters):
        mean, covariance, evidence = direct.posterior(hyper, where)
        np.testing.assert_allclose(joint.mean[i], mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(joint.covariance[i], covariance, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(marginal_mean[i], mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(marginal_variance[i], np.diag(covariance), rtol=1e-8, atol=1e-8)
        # The log-evidence of a vague mean is a density over values far apart: compare per λ
        # up to the same 1e-8 of its size.
        assert belief.log_evidence[i] == pytest.approx(evidence, rel=1e-8, abs=1e-8)


@pytest.mark.seeds
def test_order_of_readings_does_not_matter(seed: int) -> None:
    rng, first, _, readings = random_case(seed)
    second = first.copy()
    for reading in readings:
        first.observe(*reading)
    for i in rng.permutation(len(readings)):
        second.observe(*readings[i])
        _ = second.weights
    np.testing.assert_allclose(first.weights, second.weights, rtol=1e-8, atol=1e-12)
    for a, b in zip(first.predict(), second.predict(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
