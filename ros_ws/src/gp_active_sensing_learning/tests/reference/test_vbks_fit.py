"""What VBKS tells of a fit, against brute force: local ELBO, evidence, predictions."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.kernel_model.model import KernelFit, KernelModel
from gp_active_sensing.kernels.grammar import K12, parse
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_selection.config import VbksConfig
from learning_support import direct_vbks as direct
from learning_support.direct_vbks import Q, Task
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

NAMES = ("SE", "PER×LIN", "LIN")


def rows(n: int = 40, seed: int = 0) -> Dataset:
    rng = np.random.default_rng([51, seed])
    X = rng.uniform(10.0, 20.0, size=(n, 1))
    y = np.sin(1.3 * X[:, 0]) + 0.2 * X[:, 0] + 0.15 * rng.normal(size=n)
    return Dataset(X, 7.0 + 3.0 * y, ("x",), "v", "made rows")


@functools.cache
def learned(
    whitened: bool, hyperparameters: str, names: tuple[str, ...], n: int, iterations: int = 160
) -> KernelModel:
    """Return a model of which nothing is sampled but θ."""
    from gp_active_sensing_learning.kernel_selection import select_kernels

    config = VbksConfig(
        inducing=8,
        batch=n,
        iterations=iterations,
        restarts=2,
        evaluate_every=20,
        whitened=whitened,
        hyperparameters=hyperparameters,
        theta_samples=64,
    )
    return select_kernels(rows(n), [parse(name) for name in names], config)


def posed(model: KernelModel, fit: KernelFit, n: int) -> tuple[Task, Q]:
    given = rows(n)
    X, y = model.scaling.inputs(given.inputs), model.scaling.outputs(given.outputs)
    task = Task(fit.composite, X, y, fit.inducing, fit.noise_floor)
    q = Q(fit.theta_mean, fit.theta_root, fit.mean, fit.root @ fit.root.T, fit.whitened)
    return task, q


def sampled_elbo(task: Task, q: Q, samples: int, seed: int = 0) -> tuple[float, float, float]:
    """Return the local ELBO of a q by sampling θ: mean, its standard error, the spread."""
    rng = np.random.default_rng([52, seed])
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


WAYS = for_each(
    ("whitened", "hyperparameters"),
    [(True, "full"), (False, "full"), (True, "point"), (False, "point")],
)


@WAYS
@for_each("name", NAMES)
def test_the_bound_told_is_the_bound_of_the_q_told(
    name: str, whitened: bool, hyperparameters: str
) -> None:
    """The local ELBO of the very q(θ), q(v) in the model, by brute force."""
    model = learned(whitened, hyperparameters, NAMES, 40)
    (fit,) = (fit for fit in model.fits if fit.name == name)
    task, q = posed(model, fit, 40)
    value, error, spread = sampled_elbo(task, q, 800)
    own = spread / math.sqrt(256)  # of the model's own samples of θ: the most there are
    assert fit.bound == pytest.approx(value, abs=1e-3 + 4.0 * math.hypot(error, own))
    assert own < 0.5, "well enough known to compare kernels"


@WAYS
def test_the_bound_is_below_the_evidence(whitened: bool, hyperparameters: str) -> None:
    """p(y) by quadrature over all of θ."""
    model = learned(whitened, hyperparameters, NAMES, 40)
    for fit in model.fits:
        if fit.name not in ("SE", "LIN"):
            continue
        task, q = posed(model, fit, 40)
        if hyperparameters == "point":
            # log p(θ) stands in the place of a divergence: a bound of log p(y, θ).
            exact = direct.log_marginal(task, q.mean) + direct.log_prior(task.composite, q.mean)
        else:
            exact = direct.log_evidence(task, 91)
        assert fit.bound < exact + 0.01
        assert fit.bound > exact - 6.0, "and not far below"


def test_little_is_lost_where_one_inducing_variable_says_all() -> None:
    """A line: what is lost is only that q(v) and q(θ) are independent."""
    model = learned(True, "full", ("LIN",), 40, 400)
    (fit,) = model.fits
    task, _ = posed(model, fit, 40)
    assert fit.bound == pytest.approx(direct.log_evidence(task, 91), abs=1.5)


@pytest.mark.slow
def test_it_is_below_the_evidence_for_all_of_k12() -> None:
    """p(y) of ten readings by importance sampling, from q(θ) widened, with its standard error."""
    from gp_active_sensing_learning.kernel_selection import select_kernels

    given = rows(10)
    config = VbksConfig(inducing=10, batch=10, iterations=300, restarts=1, theta_samples=64)
    model = select_kernels(given, K12, config)
    assert {fit.name for fit in model.fits} == {str(k) for k in K12}
    for fit in model.fits:
        task, q = posed(model, fit, 10)
        rng = np.random.default_rng(1)
        P = len(q.mean)
        # A Student t with the prior's and twice q's spread, so that the weights stay bounded.
        mean, std = fit.composite.prior
        draws = 4000
        of_prior = rng.random(draws) < 0.5
        wide = 2.0 * q.root
        samples = np.where(
            of_prior[:, None],
            mean + std * rng.normal(size=(draws, P)),
            q.mean + rng.normal(size=(draws, P)) @ wide.T,
        )
        z = (samples - mean) / std
        first = -0.5 * (z**2).sum(axis=1) - np.log(std).sum()
        z = np.linalg.solve(wide, (samples - q.mean).T).T
        second = -0.5 * (z**2).sum(axis=1) - np.log(np.abs(wide.diagonal())).sum()
        logs = np.logaddexp(first, second) - math.log(2.0) - 0.5 * P * math.log(2.0 * math.pi)
        exact, error = direct.sampled_evidence(task, samples, logs)
        assert error < 0.3, "known well enough"
        assert fit.bound < exact + 3.0 * error, fit.name
        assert fit.bound > exact - 15.0, fit.name


@for_each("whitened", [True, False])
@for_each("hyperparameters", ["full", "point"])
def test_predictions_are_those_of_sampling(whitened: bool, hyperparameters: str) -> None:
    """Draw k, θ, v, f and a reading one after the other; moments of what is drawn."""
    model = learned(whitened, hyperparameters, NAMES, 40)
    X = np.array([[8.0], [11.3], [15.0], [19.0], [23.0]])
    rng = np.random.default_rng(3)
    Z = model.scaling.inputs(X)
    kernels = np.searchsorted(np.cumsum(model.belief.probabilities), rng.random(2500))
    drawn = np.array([draw(model.fits[min(k, len(model.fits) - 1)], Z, rng) for k in kernels])
    values = model.scaling.output_shift + model.scaling.output_scale * drawn
    for column, noisy in enumerate((False, True)):
        mean, variance = model.predict(X, noisy=noisy, samples=2000)
        found = values[:, column]
        error = np.sqrt(variance / len(found))
        assert (np.abs(found.mean(axis=0) - mean) < 5.0 * error).all()
        kurtosis = ((found - found.mean(axis=0)) ** 4).mean(axis=0) / found.var(axis=0) ** 2
        relative = 5.0 * np.sqrt((kurtosis - 1.0) / len(found)) + 0.05
        assert (np.abs(found.var(axis=0) / variance - 1.0) < relative).all()


def draw(fit: KernelFit, Z: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return values of f and readings of them at Z, all normalised, drawn from one kernel's q."""
    P, M = len(fit.theta_mean), len(fit.mean)
    theta = fit.theta_mean + fit.theta_root @ rng.normal(size=P)
    v = fit.mean + fit.root @ rng.normal(size=M)
    K = fit.composite.covariance(theta, fit.inducing, fit.inducing)
    K = K + direct.JITTER * K.diagonal().mean() * np.eye(M)
    u = np.linalg.cholesky(K) @ v if fit.whitened else v
    A = np.linalg.solve(K, fit.composite.covariance(theta, fit.inducing, Z)).T
    rest = fit.composite.variance(theta, Z) - (A * (A @ K)).sum(axis=1)
    f = A @ u + np.sqrt(np.maximum(rest, 0.0)) * rng.normal(size=len(Z))
    noise = math.sqrt(fit.noise_floor**2 + math.exp(2.0 * theta[0]))
    return f, f + noise * rng.normal(size=len(Z))


@for_each("whitened", [True, False])
@for_each("name", ["PER×LIN×SE", "(PER+RQ)×LIN", "LIN"])
def test_no_narrow_q_of_theta_is_better(name: str, whitened: bool) -> None:
    """About the mean of q(θ) a tenth as wide, where q(u) hardly depends on θ: one value stands."""
    names = ("PER×LIN×SE", "(PER+RQ)×LIN", "LIN")
    model = learned(whitened, "full", names, 120)
    (fit,) = (fit for fit in model.fits if fit.name == name)
    task, q = posed(model, fit, 120)
    mean, std = fit.composite.prior
    price = direct.kl(q.mean, 0.01 * q.root @ q.root.T, mean, np.diag(std**2))
    narrow = direct.collapsed_bound(task, q.mean)[0] - price
    assert fit.bound > narrow - 2.0


def test_other_units_give_the_same_belief() -> None:
    """Wildly different scales are scaled away: the same bounds, predictions in the other units."""
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
    mean, variance = one.predict(X)
    found: Any = two.predict(1e6 * X - 3e8)
    np.testing.assert_allclose(found[0], 1e-7 * mean + 2e-5, rtol=1e-6)
    np.testing.assert_allclose(found[1], 1e-14 * variance, rtol=1e-4)
