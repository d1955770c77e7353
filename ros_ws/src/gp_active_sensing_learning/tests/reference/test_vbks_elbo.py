"""Local ELBO of VBKS and its gradient, compared with brute force for ten readings."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.kernel_sets import K12
from learning_support import direct_vbks as direct
from learning_support.direct_vbks import Q, Task
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

N, M = 10, 4
WAYS = for_each("whitened", [True, False])


def task(name: str = "SE", *, d: int = 1, seed: int = 0) -> Task:
    """Return ten noisy readings of a draw from the kernel's prior."""
    rng = np.random.default_rng([41, seed])
    composite = Composite(parse(name), d)
    X = rng.uniform(-1.7, 1.7, size=(N, d))
    mean, std = composite.prior
    K = composite.covariance(mean + 0.5 * std * rng.normal(size=composite.size), X, X)
    y = np.linalg.cholesky(K + 1e-9 * K.diagonal().mean() * np.eye(N)) @ rng.normal(size=N)
    y = y / max(1e-3, float(y.std())) + 0.3 * rng.normal(size=N)
    Z = X[rng.permutation(N)[:M]] + 0.1 * rng.normal(size=(M, d))
    return Task(composite, X, y, Z, floor=0.05)


def q_theta(of: Task, *, full: bool, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng([42, seed])
    P = of.composite.size
    mean, std = of.composite.prior
    centre = mean + 0.4 * std * rng.normal(size=P)
    root = np.zeros((P, P))
    if full:
        root = np.tril(0.125 * rng.normal(size=(P, P)), -1)
        root += np.diag(0.25 * rng.uniform(0.5, 1, P))
    return centre, root


def q_u(of: Task, theta: FloatArray, *, whitened: bool) -> tuple[Any, Any]:
    """Return mean and covariance of some q(v), or of the equivalent q(u) at θ."""
    rng = np.random.default_rng([43, 0])
    size = len(of.Z)
    root = np.tril(0.3 * rng.normal(size=(size, size)), -1) + np.diag(rng.uniform(0.2, 0.8, size))
    L = np.eye(size) if whitened else np.linalg.cholesky(of.of_inducing(theta))
    return L @ rng.normal(size=size), L @ root @ root.T @ L.T


class Engine:
    """The package's functions for one kernel, with arrays instead of tensors."""

    def __init__(self, of: Task, *, whitened: bool) -> None:
        import torch

        from gp_active_sensing_learning.kernel_selection import local_elbo
        from gp_active_sensing_learning.kernel_selection.covariances import Covariances

        self.torch, self.elbo, self.task, self.whitened = torch, local_elbo, of, whitened
        self.covariances = Covariances([of.composite], torch.device("cpu"))
        self.options = {"floor": of.floor, "whitened": whitened}

    def tensor(self, values: Any) -> Any:
        return self.torch.as_tensor(np.asarray(values, dtype=np.float64))

    def total(self, mean: FloatArray, root: FloatArray, nodes: int, **more: Any) -> Any:
        """Return the sums over all rows, averaged over quadrature nodes of q(θ)."""
        of, found, weight = self.task, None, 0.0
        options = {"weight": 1.0, "chunk": 4096, **self.options, **more}
        for w, theta in direct.cube(mean, root, nodes):
            here = self.elbo.sums(
                self.covariances,
                self.tensor(theta)[None],
                self.tensor(of.Z)[None],
                self.tensor(of.X),
                self.tensor(of.y),
                **options,
            )
            weight += w
            found = here if found is None else found.mixed(here, w / weight)
        return found

    def price(self, mean: FloatArray, root: FloatArray) -> float:
        prior = [self.tensor(v)[None] for v in self.task.composite.prior]
        used = self.torch.ones(1, len(mean), dtype=self.torch.bool)
        if root.any():
            return self.elbo.divergence(
                self.tensor(mean)[None], self.tensor(root)[None], *prior, used
            ).item()
        return -self.elbo.log_density(self.tensor(mean)[None], *prior, used).item()

    def collapsed(self, mean: FloatArray, root: FloatArray, nodes: int) -> tuple[float, Q]:
        """Return the local ELBO at the best q(v), and this q."""
        total = self.total(mean, root, nodes)
        centre, C = self.elbo.Inducing(total.precision, total.linear).moments()
        inverse = np.linalg.inv(C[0].numpy())
        bound = self.elbo.collapsed(total).item() - self.price(mean, root)
        return bound, Q(mean, root, centre[0].numpy(), inverse.T @ inverse, self.whitened)

    def batch(
        self, theta: Any, Z: Any, q: Q | None, rows: Any = slice(None), weight: float = 1.0
    ) -> Any:
        """Return the estimate from a mini-batch, a tensor; θ (P,) and Z (M, d) may be tensors."""
        inducing = None
        if q is not None:
            precision = np.linalg.inv(q.spread)
            inducing = self.elbo.Inducing(
                self.tensor(precision)[None], self.tensor(precision @ q.centre)[None]
            )
        X, y = self.task.X[rows], self.task.y[rows]
        value, natural = self.elbo.batch_bound(
            self.covariances,
            theta[None],
            Z[None],
            self.tensor(X),
            self.tensor(y),
            inducing,
            weight=weight,
            **self.options,
        )
        return value[0], natural


def constant(of: Task, q: Q) -> float:
    """Return the term missing in `batch_bound`: entropy of q(u), or divergence of q(v)."""
    if q.whitened:
        return -direct.kl(q.centre, q.spread, np.zeros(len(of.Z)), np.eye(len(of.Z)))
    entropy = 0.5 * np.linalg.slogdet(2.0 * math.pi * math.e * q.spread)[1]
    return float(entropy - 0.5 * len(of.Z) * math.log(2.0 * math.pi))


@WAYS
@for_each("full", [True, False])
@for_each(("name", "d"), [("SE", 1), ("LIN", 1), ("MATERN32", 1), ("SE", 2)])
def test_the_bound_is_that_of_brute_force(name: str, d: int, *, full: bool, whitened: bool) -> None:
    """Brute force uses quadrature over θ and over every f(x), and dense matrices."""
    of = task(name, d=d, seed=d)
    mean, root = q_theta(of, full=full)
    nodes = 5
    bound, q = Engine(of, whitened=whitened).collapsed(mean, root, nodes)
    assert bound == pytest.approx(direct.local_elbo(of, q, nodes), abs=1e-6)


@WAYS
def test_rows_in_pieces_and_with_a_weight_give_the_same_sums(*, whitened: bool) -> None:
    of = task("PER×RQ+SE", d=2, seed=3)
    mean, root = q_theta(of, full=False)
    engine = Engine(of, whitened=whitened)
    whole, pieces = (engine.total(mean, root, 1, chunk=chunk) for chunk in (4096, 3))
    weighted = engine.total(mean, root, 1, weight=3.0)
    thrice = dataclasses.replace(of, X=np.tile(of.X, (3, 1)), y=np.tile(of.y, 3))
    repeated = Engine(thrice, whitened=whitened).total(mean, root, 1)
    for a, b in ((pieces, whole), (weighted, repeated)):
        for found, wanted in zip(dataclasses.astuple(a), dataclasses.astuple(b), strict=True):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-9)


@for_each("expression", K12)
def test_the_bound_is_below_the_exact_log_marginal_likelihood(expression: Any) -> None:
    """For a known θ and U = D, the bound is tight except for the jitter's bounded effect."""
    for seed in range(6):
        of = task(str(expression), seed=seed, d=1 + seed % 2)
        mean, root = q_theta(of, full=False, seed=seed)
        prior = direct.log_prior(of.composite, mean)
        exact = direct.log_marginal(of, mean)
        for count in (1, 3, 6, N):
            some = dataclasses.replace(of, Z=of.X[:count])
            bound = Engine(some, whitened=True).collapsed(mean, root, 1)[0] - prior
            stated, lost = direct.collapsed_bound(some, mean)
            assert bound == pytest.approx(stated, abs=1e-5)
            assert bound < exact
            # What a bound may be short of, in terms of the trace. [Burt2020]
            noise = of.noise(mean)
            assert exact - bound <= 0.5 * lost * (1.0 + (of.y @ of.y) / noise / (1.0 + lost))
        assert exact - bound < 0.15


@WAYS
@for_each("full", [True, False])
def test_the_estimate_of_all_rows_is_the_bound(*, full: bool, whitened: bool) -> None:
    """This holds for any q(u), not only for the best one."""
    of = task("SE", seed=4)
    mean, root = q_theta(of, full=full)
    q = Q(mean, root, *q_u(of, mean, whitened=whitened), whitened=whitened)
    engine = Engine(of, whitened=whitened)
    found = sum(
        w * engine.batch(engine.tensor(t), engine.tensor(of.Z), q)[0].item()
        for w, t in direct.cube(mean, root, 7)
    )
    found += constant(of, q) - engine.price(mean, root)
    assert found == pytest.approx(direct.local_elbo(of, q, 7), rel=1e-8)


@WAYS
def test_mini_batches_are_unbiased(*, whitened: bool) -> None:
    """Means over all batches of two rows equal value, gradient and natural parameters."""
    of = task("RQ", seed=6)
    theta, root = q_theta(of, full=False)
    q = Q(theta, root, *q_u(of, theta, whitened=whitened), whitened=whitened)
    engine = Engine(of, whitened=whitened)

    def of_rows(rows: Any, weight: float) -> list[FloatArray]:
        t, Z = engine.tensor(theta).requires_grad_(), engine.tensor(of.Z).requires_grad_()
        value, natural = engine.batch(t, Z, q, rows, weight)
        value.backward()
        found = [value.detach(), t.grad, Z.grad, natural.precision, natural.linear]
        return [f.numpy() for f in found]

    pairs = [list(pair) for pair in itertools.combinations(range(N), 2)]
    several = [of_rows(pair, N / 2) for pair in pairs]
    for k, whole in enumerate(of_rows(slice(None), 1.0)):
        average = np.mean([found[k] for found in several], axis=0)
        np.testing.assert_allclose(average, whole, rtol=1e-9, atol=1e-9)


def test_natural_parameters_of_all_rows_are_the_best() -> None:
    for whitened in (True, False):
        of = task("PER", seed=8)
        theta, root = q_theta(of, full=False)
        engine = Engine(of, whitened=whitened)
        _, natural = engine.batch(engine.tensor(theta), engine.tensor(of.Z), None)
        total = engine.total(theta, root, 1)
        np.testing.assert_allclose(natural.precision, total.precision, rtol=1e-6)
        np.testing.assert_allclose(natural.linear, total.linear, rtol=1e-6, atol=1e-9)


def difference(value: Callable[[FloatArray], float], at: FloatArray) -> FloatArray:
    """Return the gradient by central differences of fourth order."""
    found, step = np.zeros_like(at), 1e-4
    for i in np.ndindex(at.shape):
        e = np.zeros_like(at)
        e[i] = step
        found[i] = (
            8.0 * (value(at + e) - value(at - e)) - (value(at + 2 * e) - value(at - 2 * e))
        ) / (12.0 * step)
    return found


@WAYS
@for_each("name", ["SE", "PER", "RQ", "LIN", "MATERN52", "(PER+RQ)×LIN"])
def test_the_gradient_of_the_data_term(name: str, *, whitened: bool) -> None:
    """Check the gradient by θ and by the inducing inputs for a fixed q(u), in two dimensions."""
    of = task(name, d=2, seed=9)
    theta, root = q_theta(of, full=False)
    q = Q(theta, root, *q_u(of, theta, whitened=whitened), whitened=whitened)
    engine = Engine(of, whitened=whitened)
    t, Z = engine.tensor(theta).requires_grad_(), engine.tensor(of.Z).requires_grad_()
    engine.batch(t, Z, q)[0].backward()

    def value(theta: FloatArray, Z: FloatArray) -> float:
        here = dataclasses.replace(of, Z=Z)
        return direct.data_term(here, theta, q) - direct.price_of_u(here, theta, q)

    # The covariance of LIN has rank 2: what is beyond it is as large as the jitter.
    near = 1e-4 if name == "LIN" else 1e-6
    slope = difference(lambda v: value(v, of.Z), theta)
    assert np.abs(t.grad.numpy() - slope).max() < near * np.abs(slope).max()
    slope = difference(lambda v: value(theta, v), of.Z)
    assert np.abs(Z.grad.numpy() - slope).max() < near * np.abs(slope).max()


def test_padding_of_theta_costs_nothing() -> None:
    of = task("PER×SE", seed=1)
    mean, root = q_theta(of, full=True)
    engine = Engine(of, whitened=True)
    prior_mean, prior_std = of.composite.prior
    stated = direct.kl(mean, root @ root.T, prior_mean, np.diag(prior_std**2))
    assert engine.price(mean, root) == pytest.approx(stated, rel=1e-10)
    P = of.composite.size
    big = np.zeros((P + 2, P + 2))
    big[:P, :P] = root
    wide = [np.append(part, [7.0, 7.0]) for part in (mean, prior_mean, prior_std)]
    args = [engine.tensor(part)[None] for part in (wide[0], big, *wide[1:])]
    used = engine.torch.arange(P + 2)[None] < P
    assert engine.elbo.divergence(*args, used).item() == pytest.approx(stated, rel=1e-10)
