"""The incremental belief equals a plain implementation of Bayes' rule."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from gp_active_sensing.belief import Belief, FeatureCovariance, HyperParameters, PriorMean
from gp_active_sensing.belief.place_covariance import with_components
from gp_active_sensing.kernels import build_kernel, kernels

from .direct_bayes import DirectBelief


def random_case(seed: int):
    """Return a random belief and its plain twin after readings in random order, some repeated."""
    rng, slopes = (np.random.default_rng([20140621, seed + k]) for k in (0, 10**6))
    n, p = int(rng.integers(3, 13)), int(rng.integers(1, 4))
    features = rng.uniform(0, 10, size=(n, p))
    width = 1 if rng.random() < 0.5 else p
    far = float(rng.uniform(3.0, 30.0))
    hyper = tuple(
        HyperParameters(
            tuple(float(v) for v in rng.uniform(0.5, 8.0, size=width)),
            float(rng.uniform(0.5, 5.0)),
            float(rng.uniform(0.2, 1.5)),
            place_std=float(rng.choice([0.0, 0.3, 4.0])),
            attribute_std=float(rng.choice([0.0, 2.0])),
            long_std=float(rng.choice([0.0, 3.0])),
            long_scales=(far,),
            amplitude_slopes=tuple(slopes.normal(0.0, 0.5, p)) if slopes.random() < 0.5 else (),
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
    family = with_components(partial(FeatureCovariance, kernel, features), features, attributes)
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


def told(belief: Belief, direct: DirectBelief) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, means and variances for an unknown noise and scale, in plain form.

    Averages of places update the field, differences of readings of one place update the noise.
    """
    places = list(dict.fromkeys(place for place, *_ in direct.readings))
    values = [np.array([v for p, v, _ in direct.readings if p == place]) for place in places]
    counts = np.array([len(v) for v in values])
    z = np.array([v.mean() for v in values])
    freedom = int((counts - 1).sum())
    squares = sum(float(((v - v.mean()) ** 2).sum()) for v in values)
    D, q = len(places), direct.basis.shape[1]
    # Differences from the first reading, about which an unknown mean is centred.
    first = direct.readings[0][1] if q else 0.0
    offset = first if q else direct.offset[places]
    H = direct.basis[places] * direct.basis_std
    logs, means, variances = [], [], []
    steps, where = 0.5 * np.log(2.0), np.arange(belief.n)
    for hyper, prior in zip(direct.hyperparameters, direct.prior, strict=True):
        K = direct._prior(hyper, np.array(places), np.array(places))
        smooth = K - H @ H.T
        noise = hyper.noise_std**2
        if freedom and D >= 5 + q:
            order = np.argsort(places)
            columns = np.column_stack([np.ones(D), direct.basis[places][order] * direct.basis_std])
            rest = z[order] - z.mean()
            rest = rest - columns @ np.linalg.lstsq(columns, rest, rcond=None)[0]
            own = np.trace(smooth)
            apart = own / D - (smooth.sum() - own) / (D * (D - 1))
            unit = rest @ rest / (D - max(q, 1)) / max(apart, 0.01 * own / D)
            unit = 2.0 ** (np.round(2.0 * np.log2(unit)) / 2.0)
            found = np.log(squares / 2.0) - digamma(freedom / 2.0)
            found = steps * np.round(found / steps)
            spread = polygamma(1, 2.0 ** (np.round(2.0 * np.log2(freedom)) / 2.0) / 2.0)
            share = np.log(10.0) ** 2 / (np.log(10.0) ** 2 + spread)
            noise = np.exp(share * (found - np.log(unit)) + (1.0 - share) * np.log(noise))
            noise = max(noise, 1e-8 * hyper.variance)
        whole = K + np.diag(noise / counts)
        Q = (z - offset) @ np.linalg.solve(whole, z - offset)
        nu = D - q
        logs.append(np.log(prior) - 0.5 * np.linalg.slogdet(whole)[1] - 0.5 * nu * np.log(Q))
        cross = direct._prior(hyper, where, np.array(places))
        at = first if q else direct.offset
        means.append(at + cross @ np.linalg.solve(whole, z - offset))
        left = direct._prior(hyper, where, where)
        left = np.diag(left - cross @ np.linalg.solve(whole, cross.T))
        variances.append(Q / max(nu - 2, 1) * left)
    weights = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum(), np.array(means), np.array(variances)


@pytest.mark.seeds
def test_a_belief_of_unknown_noise_and_scale_equals_direct_bayes(seed: int) -> None:
    rng, _, direct, readings = random_case(seed)
    direct.basis = (
        np.ones((len(direct.features), 1))
        if rng.random() < 0.7
        else np.zeros((len(direct.features), 0))
    )
    direct.basis_std = np.full(direct.basis.shape[1], 30.0)
    smooth = partial(FeatureCovariance, direct.kernel, direct.features)
    family = with_components(smooth, direct.features, direct.attributes)
    mean = PriorMean(direct.offset, direct.basis, direct.basis_std)
    belief = Belief(
        family(direct.hyperparameters), mean, direct.prior, scale_known=False, noise_known=False
    )
    for place, value, _ in readings:
        belief.observe(place, value)
        direct.observe(place, value)
        if rng.random() < 0.3:
            assert np.isfinite(belief.weights).all()
    if len({place for place, *_ in readings}) < 2 + direct.basis.shape[1]:
        return
    weights, means, variances = told(belief, direct)
    np.testing.assert_allclose(belief.weights, weights, rtol=1e-7, atol=1e-9)
    found = belief.marginals()
    np.testing.assert_allclose(found[0], means, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found[1], variances, rtol=1e-6, atol=1e-8 * variances.max())
