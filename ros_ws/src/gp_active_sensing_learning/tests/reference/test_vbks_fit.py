"""Results of a VBKS fit, compared with brute force: local ELBO, evidence, predictions."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.kernel_model.model import KernelFit, KernelModel
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_predictor import predict
from gp_active_sensing_learning.kernel_selection.config import VbksConfig
from learning_support import direct_vbks as direct
from learning_support.direct_vbks import Q, Task
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

NAMES = ("SE", "PER×LIN", "LIN")


def rows() -> Dataset:
    rng = np.random.default_rng([51, 0])
    X = rng.uniform(10.0, 20.0, size=(40, 1))
    y = np.sin(1.3 * X[:, 0]) + 0.2 * X[:, 0] + 0.15 * rng.normal(size=40)
    return Dataset(X, 7.0 + 3.0 * y, ("x",), "v", "made rows")


@functools.cache
def learned(hyperparameters: str) -> KernelModel:
    """Return a model that was learned from all rows in each step, with samples of θ only."""
    from gp_active_sensing_learning.kernel_selection import select_kernels

    config = VbksConfig(
        inducing=8, batch=40, iterations=160, restarts=2, evaluate_every=20, theta_samples=64,
        hyperparameters=hyperparameters,
    )  # fmt: skip
    return select_kernels(rows(), [parse(name) for name in NAMES], config)


def posed(model: KernelModel, fit: KernelFit) -> tuple[Task, Q]:
    given = rows()
    X, y = model.scaling.inputs(given.inputs), model.scaling.outputs(given.outputs)
    task = Task(fit.composite, X, y, fit.inducing, fit.noise_floor)
    q = Q(fit.theta_mean, fit.theta_root, fit.mean, fit.root @ fit.root.T, fit.whitened)
    return task, q


def sampled_elbo(task: Task, q: Q, samples: int) -> tuple[float, float, float]:
    """Return the local ELBO of a q from samples of θ: mean, standard error of it, spread."""
    rng = np.random.default_rng([52, 0])
    mean, std = task.composite.prior
    if not q.root.any():
        return direct.local_elbo(task, q), 0.0, 0.0
    price = direct.kl(q.mean, q.root @ q.root.T, mean, np.diag(std**2))
    half = rng.normal(size=(samples // 2, len(mean)))
    found = np.zeros(samples // 2)
    for sign in (1.0, -1.0):
        for s, eta in enumerate(sign * half):
            theta = q.mean + q.root @ eta
            found[s] += 0.5 * (
                direct.data_term(task, theta, q, 4) - direct.price_of_u(task, theta, q)
            )
    spread = float(found.std(ddof=1))
    return float(found.mean()) - price, spread / math.sqrt(len(found)), spread


@for_each("hyperparameters", ["full", "point"])
@for_each("name", NAMES)
def test_the_bound_told_is_the_bound_of_the_q_told(name: str, hyperparameters: str) -> None:
    """Brute force computes the local ELBO of the model's q(θ) and q(v)."""
    model = learned(hyperparameters)
    (fit,) = (fit for fit in model.fits if fit.name == name)
    task, q = posed(model, fit)
    value, error, spread = sampled_elbo(task, q, 800)
    own = spread / math.sqrt(256)  # of the model's own samples of θ: the most there are
    assert fit.bound == pytest.approx(value, abs=1e-3 + 4.0 * math.hypot(error, own))
    assert own < 0.5, "well enough known to compare kernels"
    if hyperparameters == "full":  # and no narrow q(θ) about its mean is much better
        mean, std = fit.composite.prior
        price = direct.kl(q.mean, 0.01 * q.root @ q.root.T, mean, np.diag(std**2))
        assert fit.bound > direct.collapsed_bound(task, q.mean)[0] - price - 2.0


def test_other_units_give_the_same_belief() -> None:
    """Other scales of inputs and outputs give the same bounds, and scaled predictions."""
    from gp_active_sensing_learning.kernel_selection import select_kernels

    config = VbksConfig(inducing=6, batch=40, iterations=60, restarts=1)
    kernels = [parse("SE"), parse("LIN×PER")]
    given = rows()
    other = dataclasses.replace(
        given, inputs=1e6 * given.inputs - 3e8, outputs=1e-7 * given.outputs + 2e-5
    )
    one, two = (select_kernels(r, kernels, config) for r in (given, other))
    assert one.names == two.names
    for a, b in zip(one.fits, two.fits, strict=True):
        assert a.bound == pytest.approx(b.bound, abs=1e-4)
    X = np.array([[12.0], [25.0]])
    mean, variance = predict(one, X)
    found: Any = predict(two, 1e6 * X - 3e8)
    np.testing.assert_allclose(found[0], 1e-7 * mean + 2e-5, rtol=1e-6)
    np.testing.assert_allclose(found[1], 1e-14 * variance, rtol=1e-4)
