"""The Gaussian process that is learned, in GPyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gpytorch
import numpy as np
import torch

from gp_active_sensing.learning.problem import NOISE_SHARE, SPREAD, VAGUE, Problem
from gp_active_sensing.types import FloatArray

__all__ = ["Model"]

_SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


class _GraphMatern(gpytorch.kernels.Kernel):  # type: ignore[misc]
    """`kernels.GraphMatern` with a derivative; inputs are places."""

    has_lengthscale = True

    def __init__(self, problem: Problem, **options: Any) -> None:
        super().__init__(**options)
        assert problem.spectrum is not None
        self._nu = problem.smoothness
        self._unit = problem.median
        self._whole = problem.spectrum.whole
        self._values = torch.from_numpy(problem.spectrum.values)
        self._vectors = torch.from_numpy(problem.spectrum.vectors)

    def forward(self, x1: Any, x2: Any, diag: bool = False, **_: Any) -> Any:
        length = self.lengthscale[0, 0] * self._unit
        scaled = self._values * length**2 / (2.0 * self._nu)
        density = (1.0 + scaled) ** -(self._nu + 0.5)
        rest = density[-1] if not self._whole else torch.zeros_like(density[-1])
        density = density - rest
        rows = self._vectors[x1[..., 0].long()]
        if diag:
            return torch.ones(x1.shape[:-1], dtype=x1.dtype)
        columns = self._vectors[x2[..., 0].long()]
        left = rows * density
        k = left @ columns.transpose(-1, -2)
        a = ((left * rows).sum(-1) + rest).rsqrt()
        b = ((columns * density * columns).sum(-1) + rest).rsqrt()
        same = x1[..., :1] == x2[..., :1].transpose(-1, -2)
        correlation = k * a.unsqueeze(-1) * b.unsqueeze(-2)
        return torch.where(same, torch.ones_like(correlation), correlation)


class _Exact(gpytorch.models.ExactGP):  # type: ignore[misc]
    def __init__(self, problem: Problem, x: Any, y: Any, likelihood: Any) -> None:
        super().__init__(x, y, likelihood)
        p, q = problem.inputs.shape[1], problem.basis.shape[1]
        positive = gpytorch.constraints.Positive(transform=torch.exp, inv_transform=torch.log)
        options: dict[str, Any] = {
            "active_dims": tuple(range(p)),
            "lengthscale_constraint": positive,
            "ard_num_dims": problem.scales if problem.scales > 1 else None,
        }
        kernel: Any
        if problem.kernel == "se":
            kernel = gpytorch.kernels.RBFKernel(**options)
        elif problem.kernel in _SMOOTHNESS:
            kernel = gpytorch.kernels.MaternKernel(nu=_SMOOTHNESS[problem.kernel], **options)
        else:
            kernel = _GraphMatern(problem, **options)
        self.mean_module = gpytorch.means.ZeroMean()
        self.field = gpytorch.kernels.ScaleKernel(kernel, outputscale_constraint=positive)
        # A vague mean, integrated out: h(x)ᵀ h(x') VAGUE².
        self.trend = gpytorch.kernels.LinearKernel(active_dims=tuple(range(p, p + q)))
        self.trend.variance = VAGUE**2
        self.trend.raw_variance.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        covariance = self.field(x) + self.trend(x)
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), covariance)


class Model:
    """Log posterior density of length-scale, signal and noise, with its gradient.

    Parameters are the logarithms of length-scale (in units of the prior's median), signal and
    noise (in units of the readings' standard deviation), in this order.

    Args:
        problem: what is learned.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        x = torch.from_numpy(np.column_stack([problem.inputs, problem.basis]))
        y = torch.from_numpy(problem.values)
        positive = gpytorch.constraints.Positive(transform=torch.exp, inv_transform=torch.log)
        self._likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=positive)
        self._gp = _Exact(problem, x, y, self._likelihood).double()
        self._likelihood.double()
        self._x, self._y = x, y
        self._add_priors()
        self._mll = gpytorch.mlls.ExactMarginalLogLikelihood(self._likelihood, self._gp)
        self._gp.train()
        self._likelihood.train()

    def _add_priors(self) -> None:
        """Normal priors of the logarithms, so that they do not depend on the parametrisation."""
        normal = gpytorch.priors.NormalPrior
        kernel = self._gp.field.base_kernel
        kernel.register_prior(
            "log_length", normal(0.0, self.problem.spread), lambda m: m.lengthscale.log()
        )
        self._gp.field.register_prior(
            "log_signal", normal(0.0, SPREAD), lambda m: 0.5 * m.outputscale.log()
        )
        self._likelihood.noise_covar.register_prior(
            "log_noise",
            normal(math.log(NOISE_SHARE), SPREAD),
            lambda m: 0.5 * m.noise.log(),
        )

    def negative(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log posterior density (up to a constant) and its gradient. O(r³)."""
        k = self.problem.scales
        kernel = self._gp.field.base_kernel
        with torch.no_grad():
            kernel.raw_lengthscale.copy_(torch.as_tensor(parameters[:k]).reshape(1, -1))
            self._gp.field.raw_outputscale.copy_(torch.as_tensor(2.0 * parameters[k]))
            self._likelihood.noise_covar.raw_noise.fill_(float(2.0 * parameters[k + 1]))
        self._gp.zero_grad()
        with _exact():
            loss = -self._mll(self._gp(self._x), self._y) * len(self._y)
            loss.backward()
        gradient = np.concatenate(
            [
                kernel.raw_lengthscale.grad.numpy().ravel(),
                2.0 * self._gp.field.raw_outputscale.grad.numpy().ravel(),
                2.0 * self._likelihood.noise_covar.raw_noise.grad.numpy().ravel(),
            ]
        )
        return float(loss.detach()), gradient.astype(np.float64)

    def coefficients(self, parameters: FloatArray) -> FloatArray:
        """Return the (q,) expectation of the mean's coefficients, in the readings' unit. O(r³)."""
        self.negative(parameters)
        with torch.no_grad(), _exact():
            K = self._gp.field(self._x).to_dense().numpy()
        H = self.problem.basis
        K = K + self._likelihood.noise.item() * np.eye(len(H)) + VAGUE**2 * H @ H.T
        return np.asarray(VAGUE**2 * H.T @ np.linalg.solve(K, self.problem.values))


@contextmanager
def _exact() -> Iterator[None]:
    """Cholesky factors, no iterative solvers."""
    settings = gpytorch.settings
    with (
        settings.max_cholesky_size(100_000),
        settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False),
        settings.cholesky_jitter(double_value=1e-8),
    ):
        yield
