"""Log posterior density of the hyper-parameters, with GPyTorch kernels."""

from __future__ import annotations

import math
from typing import Any

import gpytorch
import numpy as np
import torch

from gp_active_sensing.errors import BeliefError
from gp_active_sensing.kernels import build_graph_kernel
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.problem import (
    NOISE_SHARE,
    PLACE_SHARE,
    SPREAD,
    VAGUE,
    MarginalLikelihoodProblem,
)

_SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
_LOG_2PI = math.log(2.0 * math.pi)
_JITTERS = (0.0, 1e-8, 1e-7)
"""These values are added to the diagonal, one after another, until the factorisation succeeds."""


class _GraphMatern(gpytorch.kernels.Kernel):  # type: ignore[misc]
    """Differentiable version of `kernels.GraphMatern`. Its inputs are indices of places."""

    has_lengthscale = True

    def __init__(self, problem: MarginalLikelihoodProblem, **options: Any) -> None:
        super().__init__(**options)
        spectrum = problem.spectrum
        assert spectrum is not None
        self._graph = build_graph_kernel(problem.kernel)
        self._median, self._whole = problem.median, spectrum.whole
        self._values = torch.from_numpy(spectrum.values)
        self._vectors = torch.from_numpy(spectrum.vectors)

    def forward(self, x1: Any, x2: Any, diag: bool = False, **_: Any) -> Any:
        if diag:
            return torch.ones(x1.shape[:-1], dtype=x1.dtype)
        density: Any = self._graph.density(self._values, self.lengthscale[0, 0] * self._median)
        rest = torch.zeros_like(density[-1]) if self._whole else density[-1]
        density = density - rest
        rows, columns = (self._vectors[x[..., 0].long()] for x in (x1, x2))
        a, b = (((v * density * v).sum(-1) + rest).rsqrt() for v in (rows, columns))
        correlation = (rows * density) @ columns.mT * a.unsqueeze(-1) * b.unsqueeze(-2)
        same = x1[..., :1] == x2[..., :1].mT
        return torch.where(same, torch.ones_like(correlation), correlation)


def _correlation(problem: MarginalLikelihoodProblem) -> Any:
    """Return a kernel of unit variance that is a function of the log length-scale."""
    options: dict[str, Any] = {
        "lengthscale_constraint": gpytorch.constraints.Positive(
            transform=torch.exp, inv_transform=torch.log
        ),
        "ard_num_dims": problem.scales if problem.scales > 1 else None,
    }
    kernel: Any
    if problem.kernel == "se":
        kernel = gpytorch.kernels.RBFKernel(**options)
    elif problem.kernel in _SMOOTHNESS:
        kernel = gpytorch.kernels.MaternKernel(nu=_SMOOTHNESS[problem.kernel], **options)
    else:
        kernel = _GraphMatern(problem, **options)
    return kernel.double()


class Model:
    """Log posterior density of the hyper-parameters, with its gradient.

    n_i is the number of readings at place i, and z̄_i is their mean. W is the sum of squares of the
    readings about these means. K is the correlation matrix of the places. The columns of H are the
    basis functions of the mean. σ_s, σ_u and σ_n are the standard deviations of signal, independent
    component and noise.

        log p(z) = log N(z̄; 0, σ_s² K + VAGUE² H Hᵀ + σ_u² I + σ_n² diag(1 / n_i))
                   - ½ Σ_i ((n_i - 1) log 2πσ_n² + log n_i) - W / 2σ_n²

    The coefficients of the mean are integrated out.
    """

    def __init__(self, problem: MarginalLikelihoodProblem) -> None:
        self.problem = problem
        self._x = torch.from_numpy(problem.inputs)
        self._y = torch.from_numpy(problem.values)
        self._counts = torch.from_numpy(problem.counts)
        H = torch.from_numpy(problem.basis)
        # The mean's coefficients have a vague prior, with covariance h(x)ᵀ h(x') VAGUE².
        self._trend = VAGUE**2 * H @ H.T
        self._kernel = _correlation(problem)

    def negative(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log posterior density and its gradient. The cost is O(m³)."""
        k = self.problem.scales
        rest = torch.tensor(parameters[k:], dtype=torch.float64, requires_grad=True)
        self._kernel.zero_grad()
        factor, noise = self._factor(parameters, rest)
        white = torch.linalg.solve_triangular(factor, self._y[:, None], upper=False)
        loss = 0.5 * (white**2).sum() + factor.diagonal().log().sum()
        repeats = self.problem.repeats
        loss = loss + 0.5 * (repeats * noise.log() + self.problem.within / noise)
        loss = loss + 0.5 * (self.problem.readings * _LOG_2PI + self._counts.log().sum())
        # The priors of the logarithms are normal.
        lengths = torch.tensor(parameters[:k])
        loss = loss - _normal(lengths, 0.0, self.problem.spread).sum()
        for value, centre in zip(rest, self._centres(), strict=True):
            loss = loss - _normal(value, centre, SPREAD)
        loss.backward()
        by_length = self._kernel.raw_lengthscale.grad.numpy().ravel()
        by_length = by_length + parameters[:k] / self.problem.spread**2
        assert rest.grad is not None
        gradient = np.concatenate([by_length, rest.grad.numpy()])
        return float(loss.detach()), gradient.astype(np.float64)

    def own_prior(self, parameters: FloatArray) -> float:
        """Return the log prior density of `place_std`; 0 if `place_std` is not learned."""
        if not self.problem.own:
            return 0.0
        return float(_normal(torch.tensor(parameters[-1]), math.log(PLACE_SHARE), SPREAD))

    def coefficients(self, parameters: FloatArray) -> FloatArray:
        """Return the posterior means (q,) of the mean's coefficients, in the readings' unit."""
        with torch.no_grad():
            rest = torch.tensor(parameters[self.problem.scales :])
            factor, _ = self._factor(parameters, rest)
            weights = torch.cholesky_solve(self._y[:, None], factor)[:, 0].numpy()
        return np.asarray(VAGUE**2 * self.problem.basis.T @ weights)

    def _factor(self, parameters: FloatArray, rest: Any) -> tuple[Any, Any]:
        """Return a Cholesky factor (m, m) and the noise variance.

        The factor is that of the covariance of the places' mean readings.
        """
        problem = self.problem
        with torch.no_grad():
            lengths = torch.as_tensor(parameters[: problem.scales]).reshape(1, -1)
            self._kernel.raw_lengthscale.copy_(lengths)
        noise = torch.tensor(0.0 if problem.noise is None else problem.noise**2).double()
        if problem.noise is None:
            noise = (2.0 * rest[1]).exp()
        own = noise / self._counts
        if problem.own:
            own = own + (2.0 * rest[-1]).exp()
        K = (2.0 * rest[0]).exp() * self._kernel(self._x).to_dense() + self._trend
        return _cholesky(K + torch.diag(own)), noise

    def _centres(self) -> list[float]:
        noise = [math.log(NOISE_SHARE)] if self.problem.noise is None else []
        return [0.0, *noise, *([math.log(PLACE_SHARE)] if self.problem.own else [])]


def _cholesky(K: Any) -> Any:
    """Return the lower Cholesky factor of a matrix.

    Raises:
        BeliefError: the matrix is not finite, or not positive definite up to rounding.
    """
    for jitter in _JITTERS:
        factor, failed = torch.linalg.cholesky_ex(K + jitter * torch.eye(len(K)).to(K))
        if not failed:
            return factor
    msg = "the covariance of the readings is not positive definite; try another kernel"
    raise BeliefError(msg)


def _normal(value: Any, mean: float, std: float) -> Any:
    return -0.5 * (((value - mean) / std) ** 2 + _LOG_2PI) - math.log(std)
