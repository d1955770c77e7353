"""A small selection of kernels on synthetic rows, and a comparison of two fits."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.kernel_model.model import KernelFit, KernelModel
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_selection import VbksConfig

SMALL = VbksConfig(
    inducing=6, batch=16, iterations=40, restarts=2, evaluate_every=10, theta_samples=4
)
KERNELS = tuple(parse(name) for name in ("SE", "RQ", "PER", "LIN+SE", "LIN×PER"))


def rows(n: int = 48, d: int = 1, seed: int = 0) -> Dataset:
    rng = np.random.default_rng([9, seed])
    X = rng.uniform(-5.0, 5.0, size=(n, d))
    y = np.sin(1.3 * X[:, 0]) + 0.2 * X[:, -1] + 0.1 * rng.normal(size=n)
    return Dataset(X, y, tuple("xyz"[:d]), "v", "made rows")


def same(a: KernelFit, b: KernelFit, tolerance: float = 0.0) -> None:
    """Assert that two fits are equal, to the bit or approximately."""
    assert a.name == b.name
    assert a.iterations == b.iterations
    for field in ("bound", "theta_mean", "theta_root", "inducing", "mean", "root", "trace"):
        one, other = np.asarray(getattr(a, field)), np.asarray(getattr(b, field))
        if tolerance:
            size = tolerance * max(1.0, float(np.abs(one).max()))
            np.testing.assert_allclose(one, other, rtol=0, atol=size, err_msg=f"{a.name} {field}")
        else:
            np.testing.assert_array_equal(one, other, err_msg=f"{a.name} {field}")


def same_model(a: KernelModel, b: KernelModel) -> None:
    assert (a.names, a.dropped) == (b.names, b.dropped)
    assert [fit.outcome for fit in a.fits] == [fit.outcome for fit in b.fits]
    for one, other in zip(a.fits, b.fits, strict=True):
        same(one, other)
    np.testing.assert_array_equal(a.history.bounds, b.history.bounds)
    np.testing.assert_array_equal(a.history.rows, b.history.rows)
    np.testing.assert_array_equal(a.belief.probabilities, b.belief.probabilities)
