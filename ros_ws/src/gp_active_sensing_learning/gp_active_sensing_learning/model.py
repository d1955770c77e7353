"""The Gaussian process that is learned, with its gradient by torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from gp_active_sensing.errors import BeliefError
from gp_active_sensing.kernels import build_graph_kernel
from gp_active_sensing.kernels.grammar import base_kernel
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.problem import (
    NOISE_SHARE,
    PLACE_SHARE,
    SPREAD,
    VAGUE,
    MarginalLikelihoodProblem,
)

__all__ = ["Model"]

_LOG_2PI = math.log(2.0 * math.pi)
_JITTERS = (0.0, 1e-8, 1e-7)
"""Values added in turn to the diagonal of a matrix that rounding made indefinite."""


class _Correlation:
    """The kernel of a problem in torch, as a function of the logarithms of its length-scales."""

    def __init__(self, problem: MarginalLikelihoodProblem) -> None:
        self._spectrum, self._median = problem.spectrum, problem.median
        if self._spectrum is not None:
            self._graph = build_graph_kernel(problem.kernel)
            self._values = torch.from_numpy(self._spectrum.values)
            self._rows = torch.from_numpy(self._spectrum.vectors[problem.inputs[:, 0].astype(int)])
            return
        self._kernel = base_kernel(problem.kernel)
        apart = np.square(problem.inputs[:, None, :] - problem.inputs[None, :, :])
        # (m, m, scales) squared differences: 0 stays 0, whatever the length-scales are.
        self._apart = torch.from_numpy(apart if problem.scales > 1 else apart.sum(2)[:, :, None])

    def __call__(self, lengths: Any) -> Any:
        """Return the (m, m) correlations."""
        if self._spectrum is None:
            square = (self._apart @ torch.exp(-2.0 * lengths)).clamp_min(1e-30)
            return self._kernel.of_square(square, torch)
        density: Any = self._graph.density(self._values, torch.exp(lengths[0]) * self._median)
        rest = torch.zeros(()) if self._spectrum.whole else density[-1]
        K = (self._rows * (density - rest)) @ self._rows.T + rest * torch.eye(len(self._rows))
        scale = K.diagonal().rsqrt()
        return K * scale[:, None] * scale


class Model:
    """Log posterior density of `MarginalLikelihoodProblem.stds`, with its gradient.

    With n_i readings of place i, of mean z̄_i, and W the sum of their squares about these means:

        log p(z) = log N(z̄; 0, σ_s² K + VAGUE² H Hᵀ + σ_u² I + σ_n² diag(1 / n_i))
                   - ½ Σ_i ((n_i - 1) log 2πσ_n² + log n_i) - W / 2σ_n²

    which is the density of all readings, with the mean's coefficients integrated out.

    Args:
        problem: what is learned.
    """

    def __init__(self, problem: MarginalLikelihoodProblem) -> None:
        self.problem = problem
        self._y = torch.from_numpy(problem.values)
        self._counts = torch.from_numpy(problem.counts)
        H = torch.from_numpy(problem.basis)
        # A vague mean, integrated out: h(x)ᵀ h(x') VAGUE².
        self._trend = VAGUE**2 * H @ H.T
        self._correlation = _Correlation(problem)

    def negative(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log posterior density and its gradient. O(m³)."""
        k = self.problem.scales
        at = torch.tensor(parameters, dtype=torch.float64, requires_grad=True)
        lengths, rest = at[:k], at[k:]
        factor, noise = self._factor(at)
        white = torch.linalg.solve_triangular(factor, self._y[:, None], upper=False)
        loss = 0.5 * (white**2).sum() + factor.diagonal().log().sum()
        repeats = self.problem.repeats
        loss = loss + 0.5 * (repeats * noise.log() + self.problem.within / noise)
        loss = loss + 0.5 * (self.problem.readings * _LOG_2PI + self._counts.log().sum())
        # Normal priors of the logarithms, so that they do not depend on the parametrisation.
        loss = loss - _normal(lengths, 0.0, self.problem.spread).sum()
        for value, centre in zip(rest, self._centres(), strict=True):
            loss = loss - _normal(value, centre, SPREAD)
        loss.backward()
        assert at.grad is not None
        return float(loss.detach()), at.grad.numpy().astype(np.float64)

    def own_prior(self, parameters: FloatArray) -> float:
        """Return the log prior density of the place part; 0 where there is none."""
        if not self.problem.own:
            return 0.0
        return float(_normal(torch.tensor(parameters[-1]), math.log(PLACE_SHARE), SPREAD))

    def coefficients(self, parameters: FloatArray) -> FloatArray:
        """Return the (q,) expectation of the mean's coefficients, in the readings' unit. O(m³)."""
        with torch.no_grad():
            factor, _ = self._factor(torch.tensor(parameters))
            weights = torch.cholesky_solve(self._y[:, None], factor)[:, 0].numpy()
        return np.asarray(VAGUE**2 * self.problem.basis.T @ weights)

    def _factor(self, at: Any) -> tuple[Any, Any]:
        """Return the Cholesky factor of the means' covariance, and the variance of the noise."""
        problem = self.problem
        lengths, rest = at[: problem.scales], at[problem.scales :]
        noise = torch.tensor(0.0 if problem.noise is None else problem.noise**2).double()
        if problem.noise is None:
            noise = (2.0 * rest[1]).exp()
        own = noise / self._counts
        if problem.own:
            own = own + (2.0 * rest[-1]).exp()
        K = (2.0 * rest[0]).exp() * self._correlation(lengths) + self._trend
        return _cholesky(K + torch.diag(own)), noise

    def _centres(self) -> list[float]:
        noise = [math.log(NOISE_SHARE)] if self.problem.noise is None else []
        return [0.0, *noise, *([math.log(PLACE_SHARE)] if self.problem.own else [])]


def _cholesky(K: Any) -> Any:
    """Return the lower factor of a matrix.

    Raises:
        BeliefError: it is far from positive definite, or not finite.
    """
    for jitter in _JITTERS:
        factor, failed = torch.linalg.cholesky_ex(K + jitter * torch.eye(len(K)).to(K))
        if not failed:
            return factor
    msg = "the covariance of the readings is not positive definite; try another kernel"
    raise BeliefError(msg)


def _normal(value: Any, mean: float, std: float) -> Any:
    """Return the log density of a normal distribution."""
    return -0.5 * (((value - mean) / std) ** 2 + _LOG_2PI) - math.log(std)
