"""Composite kernels in GPyTorch: the same matrices, the same priors, there and back."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import MATERN, parse, sentences

pytestmark = pytest.mark.heavy("learn")

LEVEL3 = sentences(3)
OTHERS = (
    *sentences(2, (*MATERN, "SE")),
    parse("(SE+PER)×(LIN+RQ)"),
    parse("((SE+PER)×LIN+RQ)×MAT32"),
    parse("(SE×PER+LIN)×SE"),
    parse("(SE+PER)×(LIN+RQ)×SE"),
)


def drawn(composite: Composite, seed: int) -> np.ndarray:
    """Return θ drawn from its prior."""
    mean, std = composite.prior
    return mean + std * np.random.default_rng([7, seed]).normal(size=composite.size)


def worst(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the largest difference, relative to the largest entry where that is above one."""
    return float(np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("d", [1, 3])
def test_the_covariance_is_that_of_the_composite(d: int) -> None:
    import torch

    from gp_active_sensing.learning.kernel_selection.gpytorch_kernels import as_gpytorch, theta_of

    rng = np.random.default_rng(d)
    X, Z = rng.normal(size=(7, d)), rng.normal(size=(5, d))
    for seed, expression in enumerate((*LEVEL3, *OTHERS)):
        composite = Composite(expression, d)
        theta = drawn(composite, seed)
        kernel = as_gpytorch(composite, theta)
        with torch.no_grad():
            between = kernel(torch.from_numpy(X), torch.from_numpy(Z)).to_dense().numpy()
            gram = kernel(torch.from_numpy(X)).to_dense().numpy()
            diagonal = kernel(torch.from_numpy(X), diag=True).numpy()
        assert worst(between, composite.covariance(theta, X, Z)) < 1e-10, expression
        assert worst(diagonal, composite.variance(theta, X)) < 1e-10, expression
        # At one place the square of a distance is rounded, and MAT12 has its root.
        loose = 2e-7 if "MAT12" in composite.leaves else 1e-10
        assert worst(gram, composite.covariance(theta, X, X)) < loose, expression
        np.testing.assert_allclose(theta_of(composite, kernel, math.exp(theta[0])), theta)


def test_sums_and_products_are_exact_where_gpytorch_s_own_are_not() -> None:
    """Matrices of rank 1: factors with jitter would not give their product."""
    import torch

    from gp_active_sensing.learning.kernel_selection.gpytorch_kernels import as_gpytorch

    composite = Composite(parse("LIN×LIN×LIN"), 1)
    theta = np.array([0.0, 1.0, -0.5, 0.2, -0.4])
    X = np.linspace(-1.0, 2.0, 9)[:, None]
    with torch.no_grad():
        gram = as_gpytorch(composite, theta)(torch.from_numpy(X)).to_dense().numpy()
    stated = math.exp(2.0 * theta[1] - 2.0 * theta[2:].sum()) * (X @ X.T) ** 3
    np.testing.assert_allclose(gram, stated, rtol=1e-12, atol=1e-13)


def test_every_parameter_has_one_place() -> None:
    from gp_active_sensing.learning.kernel_selection.gpytorch_kernels import as_gpytorch, bindings

    for expression in (*LEVEL3, *OTHERS):
        composite = Composite(expression, 2)
        bound = bindings(composite)
        where = np.sort(np.concatenate([b.indices for b in bound]))
        np.testing.assert_array_equal(where, np.arange(1, composite.size))
        names = [name for name, _ in as_gpytorch(composite).named_parameters()]
        assert sorted(names) == sorted(b.name for b in bound), expression


def log_prior(composite: Composite, theta: np.ndarray) -> float:
    """Return log p(θ) without the noise."""
    mean, std = (v[1:] for v in composite.prior)
    z = (theta[1:] - mean) / std
    return float((-0.5 * z**2 - np.log(std) - 0.5 * math.log(2.0 * math.pi)).sum())


@pytest.mark.parametrize("name", ["(PER+RQ)×LIN", "PER×LIN×SE", "MAT32", "LIN"])
def test_priors_are_those_of_the_composite(name: str) -> None:
    from gp_active_sensing.learning.kernel_selection.gpytorch_kernels import as_gpytorch, likelihood

    composite = Composite(parse(name), 3)
    theta = drawn(composite, 5)
    kernel = as_gpytorch(composite, theta)
    found = sum(
        prior.log_prob(closure(module)).sum().item()
        for _, module, prior, closure, _ in kernel.named_priors()
    )
    assert found == pytest.approx(log_prior(composite, theta), abs=1e-10)
    noise = likelihood(composite, theta, floor=0.25)
    assert noise.noise.item() == pytest.approx(0.0625 + math.exp(2.0 * theta[0]))
    ((_, module, prior, closure, _),) = noise.named_priors()
    mean, std = (float(v[0]) for v in composite.prior)
    stated = -0.5 * ((theta[0] - mean) / std) ** 2 - math.log(std) - 0.5 * math.log(2 * math.pi)
    assert prior.log_prob(closure(module)).item() == pytest.approx(stated, abs=1e-10)


def test_hyper_parameters_can_be_drawn_from_their_priors() -> None:
    import torch

    from gp_active_sensing.learning.kernel_selection.gpytorch_kernels import as_gpytorch, theta_of

    composite = Composite(parse("PER×LIN×RQ"), 2)
    kernel = as_gpytorch(composite)
    np.testing.assert_allclose(theta_of(composite, kernel), composite.prior[0])
    found = []
    with torch.random.fork_rng():
        torch.manual_seed(3)
        for _ in range(400):
            for name, module, *_ in list(kernel.named_priors()):
                module.sample_from_prior(name.rsplit(".", 1)[-1])
            found.append(theta_of(composite, kernel)[1:])
    mean, std = (v[1:] for v in composite.prior)
    z = (np.array(found) - mean) / std
    assert np.abs(z.mean(axis=0)).max() < 5.0 / math.sqrt(400)
    assert np.abs(z.std(axis=0) - 1.0).max() < 5.0 / math.sqrt(800)


def test_a_kernel_can_be_copied_and_has_slopes() -> None:
    import torch

    from gp_active_sensing.learning.kernel_selection.gpytorch_kernels import as_gpytorch, bindings

    composite = Composite(parse("(PER+RQ)×LIN"), 2)
    theta = drawn(composite, 2)
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(6, 2)), rng.normal(size=(6, 6))

    def value(at: np.ndarray) -> float:
        return float((weights * composite.covariance(at, X, X)).sum())

    kernel = copy.deepcopy(as_gpytorch(composite, theta))
    (torch.from_numpy(weights) * kernel(torch.from_numpy(X)).to_dense()).sum().backward()
    slopes = np.zeros(composite.size)
    parameters = dict(kernel.named_parameters())
    for bound in bindings(composite):
        slopes[bound.indices] = bound.factor * parameters[bound.name].grad.numpy().ravel()
    for i, step in enumerate(1e-6 * np.eye(composite.size)):
        difference = (value(theta + step) - value(theta - step)) / 2e-6
        assert slopes[i] == pytest.approx(difference, rel=1e-6, abs=1e-6)
