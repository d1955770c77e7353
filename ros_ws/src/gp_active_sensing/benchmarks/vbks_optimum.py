"""How large a local ELBO can be made when nothing is spared: what an optimisation is held against.

The collapsed bound of all rows with a point estimate of θ, by L-BFGS from the best of many draws of
θ; inducing inputs move along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from vbks_data import KEY

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.learning.kernel_selection.covariances import Covariances
from gp_active_sensing.learning.kernel_selection.local_elbo import collapsed, sums
from gp_active_sensing.types import FloatArray

DRAWS, FEW, NOISES = 300, 256, (0.02, 0.1, 0.4)
"""Draws of θ from its prior; rows that they are compared on; standard deviations of the noise."""
FLOOR = 1e-3
FAILED = 1e10


class Bound:
    """The collapsed bound and log p(θ) of one kernel.

    Args:
        composite: the kernel.
        X, y: (n, d), (n,) rows, scaled.
        inducing: (M, d) where the inducing inputs begin.
    """

    def __init__(
        self, composite: Composite, X: FloatArray, y: FloatArray, inducing: FloatArray
    ) -> None:
        self.composite, self.inducing = composite, inducing
        self.X, self.y = torch.tensor(X), torch.tensor(y)
        self.mean, self.std = (torch.tensor(v) for v in composite.prior)

    def many(self, thetas: FloatArray) -> FloatArray:
        """Return the bounds (N,) of θ (N, P) on a few rows, which stand for all."""
        rows = np.random.default_rng([KEY, 7]).permutation(len(self.y))[:FEW]
        Z = torch.tensor(self.inducing)[None].expand(len(thetas), -1, -1)
        with torch.no_grad():
            found = collapsed(
                sums(
                    Covariances([self.composite] * len(thetas), torch.device("cpu")),
                    torch.tensor(thetas), Z, self.X[rows], self.y[rows],
                    weight=len(self.y) / len(rows), floor=FLOOR, whitened=True,
                )
            )  # fmt: skip
        return np.nan_to_num(found.numpy(), nan=-FAILED)

    def best(self, theta: FloatArray, steps: int) -> float:
        """Return the largest bound that L-BFGS finds from θ (P,)."""
        covariances = Covariances([self.composite], torch.device("cpu"))
        P, (M, d) = self.composite.size, self.inducing.shape

        def minus(values: FloatArray) -> tuple[float, FloatArray]:
            v = torch.tensor(values, requires_grad=True)
            found = sums(
                covariances, v[:P][None], v[P:].reshape(1, M, d), self.X, self.y,
                weight=1.0, floor=FLOOR, whitened=True,
            )  # fmt: skip
            bound = collapsed(found).sum()
            bound = bound + torch.distributions.Normal(self.mean, self.std).log_prob(v[:P]).sum()
            if not torch.isfinite(bound):
                return FAILED, np.zeros_like(values)
            (slope,) = torch.autograd.grad(bound, v)
            return -float(bound.detach()), -np.nan_to_num(slope.numpy())

        begin = np.concatenate([theta, self.inducing.ravel()])
        done: Any = minimize(minus, begin, jac=True, method="L-BFGS-B", options={"maxiter": steps})
        return -float(done.fun)


def optimum(bound: Bound, starts: int, steps: int, known: Sequence[FloatArray] = ()) -> float:
    """Return the largest bound from the best `starts` of many draws, and from the θ given."""
    mean, std = bound.composite.prior
    rng = np.random.default_rng([KEY, 8, bound.composite.size])
    thetas = mean + std * rng.standard_normal((DRAWS, bound.composite.size))
    where = bound.composite.where("noise")
    tried = []
    for noise in NOISES:
        thetas[:, where] = np.log(noise)
        tried.append(bound.many(thetas))
    order = np.argsort(-np.max(tried, axis=0))[:starts]
    thetas[:, where] = np.log(np.array(NOISES)[np.argmax(tried, axis=0)])[:, None]
    return max(bound.best(theta, steps) for theta in (*thetas[order], *known))
