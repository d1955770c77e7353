"""A belief over a field with drift equals a plain implementation of Bayes' rule at any time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from gp_active_sensing.belief import Belief, FeatureCovariance, HyperParameters, PriorMean
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.belief.place_covariance import PlaceCovariance
from gp_active_sensing.kernels import build_kernel, kernels
from tests.cases import for_each

from .direct_drift import DirectDrift

DRIFTS = {
    "rate": DriftConfig(kind="injection", rate=0.3),
    "doubling": DriftConfig(kind="injection", doubling=4.0),
    "discard": DriftConfig(kind="injection", doubling=4.0, discard_step=1.5),
    "kernel": DriftConfig(kind="kernel", time_scale=8.0),
    "window": DriftConfig(kind="window", window=6.0),
    "restart": DriftConfig(kind="restart", window=7.0),
    "weights": DriftConfig(kind="weights", time_scale=5.0),
}


def random_case(drift: DriftConfig, seed: int):
    """Return a random belief and its plain twin after readings in random order of time."""
    rng = np.random.default_rng([20250601, seed])
    n, p = int(rng.integers(3, 11)), int(rng.integers(1, 3))
    features = rng.uniform(0, 10, size=(n, p))
    hyper = tuple(
        HyperParameters(
            (float(rng.uniform(0.5, 8.0)),),
            float(rng.uniform(0.5, 5.0)),
            float(rng.uniform(0.2, 1.5)),
            place_std=float(rng.choice([0.0, 0.3, 4.0])),
        )
        for _ in range(int(rng.integers(1, 5)))
    )
    kernel = build_kernel(str(rng.choice(kernels.names())))
    value, std = float(rng.normal(0, 20)), float(rng.choice([0.0, 1.0, 30.0]))
    mean = (
        PriorMean.linear(features, value, std)
        if rng.random() < 0.3
        else PriorMean.constant(n, value, std)
    )
    prior = rng.dirichlet(np.ones(len(hyper)))
    covariance = PlaceCovariance(FeatureCovariance(kernel, features, hyper))
    belief = Belief(covariance, mean, prior, drift=drift)
    direct = DirectDrift(kernel, features, hyper, mean.basis, mean.std, mean.offset, prior)
    direct.drift = drift
    # Times differ by more than a slot; readings within a slot are tested below.
    times = rng.choice(200, size=int(rng.integers(1, 30)), replace=False) * 0.1
    readings = [
        (
            int(rng.integers(n)),
            float(value + rng.normal(0, 5)),
            None if rng.random() < 0.6 else float(rng.uniform(0.05, 2.0)),
            float(t),
        )
        for t in times
    ]
    return rng, belief, direct, readings


def assert_same(belief: Belief, direct: DirectDrift, now: float) -> None:
    where = np.arange(belief.n)
    np.testing.assert_allclose(belief.weights, direct.weights_at(now), rtol=1e-9, atol=1e-9)
    joint, (marginal_mean, marginal_variance) = belief.joint(where), belief.marginals()
    some = where[::2]
    for i, hyper in enumerate(direct.hyperparameters):
        mean, covariance, evidence = direct.at(hyper, where, now)
        close = {"rtol": 1e-9, "atol": 1e-9 * max(1.0, np.abs(covariance).max())}
        np.testing.assert_allclose(joint.mean[i], mean, **close)
        np.testing.assert_allclose(joint.covariance[i], covariance, **close)
        np.testing.assert_allclose(marginal_mean[i], mean, **close)
        np.testing.assert_allclose(marginal_variance[i], np.diag(covariance), **close)
        np.testing.assert_allclose(belief.marginals(some)[0][i], mean[some], **close)
        np.testing.assert_allclose(belief.cross(some)[i], covariance[some], **close)
        assert belief.log_evidence[i] == pytest.approx(evidence, rel=1e-9, abs=1e-9)


@pytest.mark.slow
@pytest.mark.seeds(0.3)
@for_each("name", DRIFTS)
def test_belief_equals_direct_bayes_while_readings_come_and_time_goes(name: str, seed: int) -> None:
    rng, belief, direct, readings = random_case(DRIFTS[name], seed)
    now = -math.inf
    for reading in readings:
        belief.observe(*reading[:3], seconds=reading[3])
        direct.observe_at(*reading)
        now = max(now, reading[3])
        if rng.random() < 0.3:
            assert np.isfinite(belief.weights).all()
        if rng.random() < 0.2:
            assert np.isfinite(belief.predict()).all()
    assert_same(belief, direct, now)
    for _ in range(3):
        now += float(rng.exponential(4.0))
        belief.advance(now)
        assert belief.seconds == now
        if rng.random() < 0.5:
            late = (int(rng.integers(belief.n)), 3.0, None, now - 5.05)
            belief.observe(*late[:3], seconds=late[3])
            direct.observe_at(*late)
        assert_same(belief, direct, now)
        assert_same(belief.copy(), direct, now)


@for_each("name", ["doubling", "weights"])
def test_evidence_is_that_of_likelihoods_to_a_power(name: str) -> None:
    """Compare the evidence of two readings of one place with quadrature over the field."""
    hyper = HyperParameters((1.0,), 2.0, 0.5)
    covariance = FeatureCovariance(build_kernel("se"), np.zeros((1, 1)), (hyper,))
    drift = DRIFTS[name]
    belief = Belief(covariance, PriorMean.known(1, 1.0), drift=drift)
    belief.observe(0, 2.5, seconds=0.0)
    belief.observe(0, 0.2, 0.09, seconds=3.0)
    belief.advance(5.0)
    power = (
        [1 / (1 + (5 / 4) ** 2), 1 / (1 + (2 / 4) ** 2)]
        if name == "doubling"
        else [math.exp(-1.0), math.exp(-0.4)]
    )

    def density(f: float) -> float:
        return (
            norm.pdf(2.5, f, 0.5) ** power[0]
            * norm.pdf(0.2, f, 0.3) ** power[1]
            * norm.pdf(f, 1.0, 2.0)
        )

    integral = quad(density, -15, 15, epsabs=1e-13, epsrel=1e-13, limit=200)[0]
    assert belief.log_evidence[0] == pytest.approx(math.log(integral), abs=1e-9)


@for_each("name", ["rate", "doubling", "weights", "kernel"])
def test_readings_at_the_same_time_collapse_exactly(name: str) -> None:
    """Readings within one slot share the field's change, and each has its own noise."""
    hyper = HyperParameters((2.0,), 2.0, 0.5)
    features = np.arange(4.0)[:, None]
    covariance = FeatureCovariance(build_kernel("se"), features, (hyper,))
    many = Belief(covariance, PriorMean.constant(4, 0.0, 3.0), drift=DRIFTS[name])
    one = many.copy()
    values = np.array([1.0, 1.4, 0.7, 1.1])
    for value in values:
        many.observe(1, float(value), 0.25, seconds=2.0)
    one.observe(1, float(values.mean()), 0.25 / 4, seconds=2.0)
    for belief in (many, one):
        belief.observe(3, 0.3, 0.25, seconds=5.0)
        belief.advance(6.0)
    for a, b in zip(many.predict(), one.predict(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert many.readings.tolist() == [0, 4, 0, 1]


def test_a_field_without_drift_takes_no_notice_of_time() -> None:
    hyper = HyperParameters((2.0,), 2.0, 0.5)
    covariance = FeatureCovariance(build_kernel("se"), np.arange(5.0)[:, None], (hyper,))
    timeless = Belief(covariance, PriorMean.constant(5, 0.0, 3.0))
    timed = timeless.copy()
    for place, value, seconds in [(0, 1.0, 50.0), (3, 2.0, -3.0), (0, 1.5, 1e9)]:
        timeless.observe(place, value)
        timed.observe(place, value, seconds=seconds)
        timed.advance(seconds + 100.0)
    for a, b in zip(timeless.predict(), timed.predict(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(timeless.log_evidence, timed.log_evidence)
    assert timed.seconds == 1e9 + 100.0
    assert timed.tick == math.inf
