"""Covariances of many kernels in torch equal those of each kernel in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.kernels.base import Matern12
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import MATERN, parse
from gp_active_sensing_learning.kernel_selection.group import order_by_shape
from gp_active_sensing_learning.kernel_sets import sentences
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

KERNELS = (
    *sentences(3),
    *(parse(name) for name in MATERN),
    parse("MATERN12×LIN+MATERN52"),
    parse("(SE+PER)×(LIN+RQ)"),
    parse("((SE+PER)×LIN+RQ)×MATERN32"),
)


class Stack:
    def __init__(self, d: int, n: int = 6, m: int = 5) -> None:
        import torch

        from gp_active_sensing_learning.kernel_selection.covariances import Covariances

        made = [Composite(e, d) for e in KERNELS]
        self.composites = [made[k] for k in order_by_shape(made)]
        rng = np.random.default_rng(d)
        K, P = len(made), max(c.size for c in made)
        self.theta = np.full((K, P), 99.0)  # padding that would show
        for k, c in enumerate(self.composites):
            mean, std = c.prior
            self.theta[k, : c.size] = mean + 0.7 * std * rng.normal(size=c.size)
        self.own, self.shared = rng.normal(size=(K, n, d)), rng.normal(size=(1, m, d))
        self.covariances = Covariances(self.composites, torch.device("cpu"))

    def tensors(self) -> tuple[Any, Any, Any]:
        import torch

        return tuple(torch.from_numpy(v) for v in (self.theta, self.own, self.shared))


@for_each("d", [1, 3])
def test_every_kernel_has_its_own_covariance(d: int) -> None:
    stack = Stack(d)
    theta, own, shared = stack.tensors()
    across = stack.covariances.between(theta, own, shared).numpy()
    gram = stack.covariances.between(theta, own, own).numpy()
    variance = stack.covariances.variance(theta, shared).numpy()
    of_own = stack.covariances.variance(theta, own).numpy()
    for k, c in enumerate(stack.composites):
        t, X, Z = stack.theta[k, : c.size], stack.own[k], stack.shared[0]
        size = max(1.0, float(np.abs(gram[k]).max()))
        for found, wanted in (
            (across[k], c.covariance(t, X, Z)),
            (variance[k], c.variance(t, Z)),
            (of_own[k], c.variance(t, X)),
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10 * size, err_msg=c.name)
        loose = 1e-6 if Matern12() in c.leaves else 1e-9
        np.testing.assert_allclose(gram[k], c.covariance(t, X, X), rtol=0, atol=loose * size)


def test_a_kernel_depends_on_its_own_parameters_only() -> None:
    """The derivatives of a kernel are zero by other kernels' parameters and by padding."""
    stack = Stack(2)
    theta, own, shared = stack.tensors()
    for k in (0, 17, 80, len(stack.composites) - 1):
        at, X = theta.clone().requires_grad_(), own.clone().requires_grad_()
        stack.covariances.between(at, X, shared)[k].sum().backward()
        slopes, moved = at.grad.numpy(), X.grad.numpy()
        size = stack.composites[k].size
        assert np.isfinite(slopes).all()
        assert (slopes[k, 1:size] != 0.0).all(), "all but the noise"
        assert slopes[k, 0] == 0.0
        assert not slopes[k, size:].any()
        assert not np.delete(slopes, k, axis=0).any()
        assert not np.delete(moved, k, axis=0).any()


def test_slopes_are_finite_where_inputs_coincide() -> None:
    """Matérn kernels contain the root of a square that is 0 at coinciding inputs."""
    stack = Stack(2)
    theta, own, _ = stack.tensors()
    own[:, 3] = own[:, 1]
    at, X = theta.clone().requires_grad_(), own.clone().requires_grad_()
    stack.covariances.between(at, X, X).sum().backward()
    assert np.isfinite(at.grad.numpy()).all()
    assert np.isfinite(X.grad.numpy()).all()
