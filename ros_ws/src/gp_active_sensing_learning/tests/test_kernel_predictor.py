"""Predictor: moments compared with sampling, the average over kernels, pruning."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model import model_file
from gp_active_sensing.kernel_model.model import JITTER, KernelModel
from gp_active_sensing.kernel_model.schema import HEADER, pack
from gp_active_sensing_learning.kernel_predictor import moments, predict, prune
from tests.kernel_models import make_fit, make_model, rows

NAMES = ("SE", "LIN×RQ", "PER+SE")
BOUNDS = {"SE": -1.0, "LIN×RQ": -1.5, "PER+SE": -2.5}


@pytest.fixture(scope="module")
def model() -> KernelModel:
    return make_model(NAMES, *rows(), bounds=BOUNDS, theta_std=0.15)


def test_without_a_spread_of_theta_it_is_the_sparse_gaussian_process() -> None:
    """Compare with the joint Gaussian of q(u) and p(f | u)."""
    X, y = rows(n=30)
    Z, z = X / 50.0 - 1.0, (y - y.mean()) / y.std()
    fit = make_fit("LIN×SE+PER", Z, z, theta_std=0.0, inducing=9)
    new = np.random.default_rng(1).normal(size=(7, 2))
    k, theta, U = fit.composite, fit.theta_mean, fit.inducing
    K = k.covariance(theta, U, U)
    K += JITTER * K.diagonal().mean() * np.eye(len(U))
    L = np.linalg.cholesky(K)
    mean_u, cov_u = L @ fit.mean, L @ fit.root @ fit.root.T @ L.T
    A = k.covariance(theta, new, U) @ np.linalg.inv(K)
    expected = k.covariance(theta, new, new) - A @ (K - cov_u) @ A.T
    mean, variance = moments(fit, new, noisy=False, samples=8, seed=0)
    assert mean == pytest.approx(A @ mean_u, abs=1e-9)
    assert variance == pytest.approx(expected.diagonal(), abs=1e-7)
    _, noisy = moments(fit, new, noisy=True, samples=8, seed=0)
    noise = fit.noise_floor**2 + math.exp(2.0 * theta[0])
    assert noisy - variance == pytest.approx(np.full(7, noise))


def test_an_unwhitened_fit_says_the_same() -> None:
    X, y = rows(n=30)
    fit = make_fit("SE", X / 50.0 - 1.0, (y - y.mean()) / y.std(), theta_std=0.0)
    K = fit.composite.covariance(fit.theta_mean, fit.inducing, fit.inducing)
    L = np.linalg.cholesky(K + JITTER * K.diagonal().mean() * np.eye(len(K)))
    plain = dataclasses.replace(fit, whitened=False, mean=L @ fit.mean, root=L @ fit.root)
    new = np.random.default_rng(1).normal(size=(5, 2))
    for one, other in zip(
        moments(fit, new, noisy=True, samples=8, seed=0),
        moments(plain, new, noisy=True, samples=8, seed=0),
        strict=True,
    ):
        assert one == pytest.approx(other, abs=1e-8)


@pytest.mark.slow
def test_moments_against_brute_sampling(model: KernelModel) -> None:
    """The samples draw kernel, θ, u and f in turn, as the model defines."""
    X = np.array([[20.0, 30.0], [55.0, 60.0], [120.0, 10.0]])
    Z = model.scaling.inputs(X)
    rng = np.random.default_rng(7)
    which = rng.choice(len(model.fits), size=20_000, p=model.belief.probabilities)
    values = np.empty((len(which), len(X)))
    for draw, number in enumerate(which):
        fit = model.fits[number]
        theta = fit.theta_mean + fit.theta_root @ rng.standard_normal(fit.composite.size)
        U = fit.inducing
        K = fit.composite.covariance(theta, U, U)
        L = np.linalg.cholesky(K + JITTER * K.diagonal().mean() * np.eye(len(K)))
        u = L @ (fit.mean + fit.root @ rng.standard_normal(len(U)))
        A = np.linalg.solve(L, fit.composite.covariance(theta, U, Z))
        rest = fit.composite.variance(theta, Z) - (A * A).sum(axis=0)
        noise = fit.noise_floor**2 + math.exp(2.0 * theta[0])
        spread = np.sqrt(np.maximum(rest, 0.0) + noise)
        values[draw] = A.T @ np.linalg.solve(L, u) + spread * rng.standard_normal(len(X))
    scaling = model.scaling
    values = scaling.output_shift + scaling.output_scale * values
    mean, variance = predict(model, X, noisy=True, samples=512)
    error = values.std(axis=0) / math.sqrt(len(values))
    # 512 samples of θ have an error of their own, a sixth of that of the draws.
    assert np.all(np.abs(mean - values.mean(axis=0)) < 4.5 * error)
    assert variance == pytest.approx(values.var(axis=0), rel=0.06)


def test_the_average_is_that_of_the_kernels(model: KernelModel) -> None:
    X = np.array([[20.0, 30.0], [55.0, 60.0]])
    each = [predict(model, X, kernels=[k]) for k in range(3)]
    means, variances = (np.array([pair[i] for pair in each]) for i in (0, 1))
    q = model.belief.probabilities
    mean, variance = predict(model, X)
    assert mean == pytest.approx(q @ means)
    assert variance == pytest.approx(q @ (variances + means**2) - mean**2)
    some, _ = predict(model, X, kernels=[0, 2])
    assert some == pytest.approx((q[0] * means[0] + q[2] * means[2]) / (q[0] + q[2]))


def test_pruning_keeps_bounds_and_makes_q_anew(model: KernelModel) -> None:
    pruned = prune(model, 2)
    assert pruned.names == model.names[:2]
    assert [fit.bound for fit in pruned.fits] == [fit.bound for fit in model.fits[:2]]
    assert pruned.belief.probabilities.sum() == pytest.approx(1.0)
    assert pruned.belief.mean.shape == (2,)
    # With fewer kernels there is less doubt, so it is not only scaled up.
    assert pruned.belief.softmax[0] == pytest.approx(1.0 / (1.0 + math.exp(-0.5)))
    assert pruned.dropped[-1][0] == model.names[2]
    assert "pruned" in pruned.dropped[-1][1]
    assert pruned.history is model.history
    assert prune(model, 5) is model
    with pytest.raises(ValueError, match="at least one kernel"):
        prune(model, 0)
    alone = prune(model, 1)
    assert alone.belief.probabilities.tolist() == [1.0]
    assert predict(alone, np.zeros((1, 2)))[0] == pytest.approx(
        predict(model, np.zeros((1, 2)), kernels=[0])[0]
    )


def test_hundreds_of_files_with_wrong_contents_and_a_right_digest(model: KernelModel) -> None:
    """A file that passes the checks gives finite predictions; others raise an error."""
    X, y = rows(n=20)
    made = make_model(("SE", "LIN×(PER+RQ)"), X, y)
    header, whole = model_file._header(made), model_file._arrays(made)
    rng = np.random.default_rng(1)
    values = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, 1e-300, 3.0)
    names = sorted(whole)
    passed = 0
    for _ in range(300):
        arrays = dict(whole)
        key = names[rng.integers(len(names))]
        array = arrays[key] = arrays[key].copy()
        if array.size:
            array.flat[rng.integers(array.size)] = values[rng.integers(len(values))]
        signed = {**header, "digest": model_file._digest(header, arrays)}
        text = np.frombuffer(json.dumps(signed).encode(), np.uint8)
        try:
            found = model_file.model_from(pack({HEADER: text} | arrays), "f.npz")
        except ConfigError:
            continue
        passed += 1
        with np.errstate(all="ignore"):
            mean, variance = predict(found, np.array([[10.0, 20.0], [80.0, 5.0]]), samples=4)
        assert np.isfinite(mean).all()
        assert np.isfinite(variance).all()
        assert (variance >= 0.0).all()
    assert 20 < passed < 280
