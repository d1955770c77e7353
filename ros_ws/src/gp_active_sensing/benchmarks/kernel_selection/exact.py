r"""The exact Gaussian process of one kernel: where θ is most probable, and the evidence there.

.. math:: \log p(y) \approx \log p(y|\hat\theta) + \log p(\hat\theta) + \tfrac{P}{2} \log 2\pi
    - \tfrac{1}{2} \log |H|

with H the Hessian of minus log p(y|θ)p(θ) at its least value: the Laplace approximation
[MacKay1992]. O(n³) an evaluation, so for hundreds of rows.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize

from gp_active_sensing.errors import BeliefError
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.learning.kernel_selection.covariances import Covariances
from gp_active_sensing.types import FloatArray

__all__ = ["ExactFit", "Posterior", "fit_exact"]

_REACH = 6.0
"""Standard deviations of the prior within which θ is searched."""
_LEAST = 0.1
"""Least eigenvalue of the Hessian, that of the prior being 1: there is a flat direction where the
search did not end at a minimum."""


@dataclass(frozen=True, eq=False)
class ExactFit:
    """The most probable θ of one kernel.

    Args:
        composite: the kernel.
        theta: (P,) θ̂.
        log_likelihood: log p(y|θ̂) [nat].
        laplace: log evidence by the Laplace approximation [nat].
        bic: ``log p(y|θ̂) - ½ P' log n`` with P' the parameters that can be told apart
            [Schwarz1978]; at θ̂ rather than at the maximum of the likelihood, which need not exist.
    """

    composite: Composite
    theta: FloatArray
    log_likelihood: float
    laplace: float
    bic: float


class Posterior:
    """log p(y|θ)p(θ) with its derivatives.

    Args:
        composite: the kernel.
        X: (n, d) inputs, normalised.
        y: (n,) outputs, normalised.
        floor: of the noise.
    """

    def __init__(self, composite: Composite, X: FloatArray, y: FloatArray, floor: float) -> None:
        self.composite = composite
        self._covariances = Covariances([composite], torch.device("cpu"))
        self._X = torch.from_numpy(np.ascontiguousarray(X))[None]
        self._y = torch.from_numpy(np.ascontiguousarray(y))
        self._floor = floor
        mean, std = composite.prior
        self._mean, self._std = torch.from_numpy(mean), torch.from_numpy(std)

    def _parts(self, theta: Any) -> tuple[Any, Any]:
        """Return log p(y|θ) and log p(θ); NaN where the covariance is not positive definite."""
        n = len(self._y)
        K = self._covariances.between(theta[None], self._X, self._X)[0]
        # A share of the noise's own floor keeps a noise-free covariance positive definite.
        noise = self._floor**2 + torch.exp(2.0 * theta[0])
        L, failed = torch.linalg.cholesky_ex(K + noise * torch.eye(n, dtype=K.dtype))
        if int(failed):
            return theta.sum() * math.nan, theta.sum() * math.nan
        half = torch.linalg.solve_triangular(L, self._y[:, None], upper=False)
        log_root = torch.log(torch.diagonal(L)).sum()
        likelihood = -0.5 * (half * half).sum() - log_root - 0.5 * n * math.log(2.0 * math.pi)
        away = (theta - self._mean) / self._std
        prior = -0.5 * (away * away + math.log(2.0 * math.pi)) - torch.log(self._std)
        return likelihood, prior.sum()

    def log_likelihood(self, theta: FloatArray) -> float:
        """Return log p(y|θ)."""
        with torch.no_grad():
            return float(self._parts(torch.from_numpy(theta))[0])

    def negative(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return ``-log p(y|θ)p(θ)`` and its gradient (P,); 1e10 where there is none."""
        at = torch.from_numpy(np.array(theta, dtype=np.float64)).requires_grad_(True)
        likelihood, prior = self._parts(at)
        value = -(likelihood + prior)
        if not bool(torch.isfinite(value)):
            return 1e10, np.zeros(len(theta))
        (gradient,) = torch.autograd.grad(value, at)
        return float(value.detach()), np.asarray(gradient.numpy(), dtype=np.float64)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return the (P, P) second derivatives of `negative`."""
        at = torch.from_numpy(np.array(theta, dtype=np.float64))
        found = torch.autograd.functional.hessian(lambda t: -sum(self._parts(t)), at)
        return np.asarray(found.numpy(), dtype=np.float64)

    def laplace(self, theta: FloatArray) -> float:
        """Return log p(y) by the Laplace approximation at θ̂."""
        negative, _ = self.negative(theta)
        std = self._std.numpy()
        scaled = std[:, None] * self.hessian(theta) * std  # in units of the prior
        eigenvalues = np.maximum(np.linalg.eigvalsh(0.5 * (scaled + scaled.T)), _LEAST)
        log_root = 0.5 * float(np.log(eigenvalues).sum()) - float(np.log(std).sum())
        return -negative + 0.5 * len(theta) * math.log(2.0 * math.pi) - log_root


def fit_exact(
    composite: Composite,
    X: FloatArray,
    y: FloatArray,
    *,
    floor: float,
    restarts: int = 3,
    seed: int = 0,
) -> ExactFit:
    """Return the most probable θ of a kernel, searched with L-BFGS from several starts.

    The first start is the prior's mean, the others are drawn from the prior.

    Args:
        composite: the kernel.
        X: (n, d) inputs, normalised.
        y: (n,) outputs, normalised.
        floor: of the noise.
        restarts: number of starts.
        seed: of the draws.

    Raises:
        BeliefError: no start led anywhere.
    """
    posterior = Posterior(composite, X, y, floor)
    mean, std = composite.prior
    bounds = list(zip(mean - _REACH * std, mean + _REACH * std, strict=True))
    rng = np.random.default_rng([seed, zlib.crc32(composite.name.encode())])
    best: tuple[float, FloatArray] | None = None
    for number in range(restarts):
        # Never alike for two leaves of one kind, which would stay so for ever.
        start = mean + (0.1 if number == 0 else 0.8) * std * rng.standard_normal(composite.size)
        found = minimize(posterior.negative, start, jac=True, method="L-BFGS-B", bounds=bounds)
        if found.fun < 1e9 and (best is None or found.fun < best[0]):
            best = float(found.fun), np.asarray(found.x, dtype=np.float64)
    if best is None:
        msg = f"kernel {composite.name}: its covariance is not positive definite at any start"
        raise BeliefError(msg)
    theta = best[1]
    likelihood = posterior.log_likelihood(theta)
    bic = likelihood - 0.5 * composite.free * math.log(len(y))
    return ExactFit(composite, theta, likelihood, posterior.laplace(theta), bic)
