r"""Local ELBOs of many kernels. [Teng2020, Eq. 9].

.. math:: L_i = E_q\Big[\sum_x \log N(y; \mu_x, \sigma_n^2) -
    \frac{k(x,x) - A_x^T A_x}{2\sigma_n^2}\Big]
    - KL[q(u_i)q(\theta_i) \| p(u_i|\theta_i)p(\theta_i)]

with ``A_x = chol(K_UU)⁻¹ k_U(x)``. K_UU and k_U(x) are the covariances of the inducing inputs with
themselves and with x. The trace term is included [Teng2020, App. C.1]. Whitening replaces the
inducing variables u by ``v = chol(K_UU)⁻¹ u`` with prior ``N(0, I)``. The divergence of q(v) from
this prior does not depend on θ.

With Gaussian noise, the best q(u) given q(θ) is Gaussian. Its natural parameters are sums over the
rows (`Sums`). A sample of the rows gives a natural gradient [Hensman2013, Sec. 3].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from gp_active_sensing.kernel_model.model import JITTER
from gp_active_sensing_learning.kernel_selection.covariances import Covariances

_TABLE = 4_000_000
"""Largest number of covariances in memory at a time."""


@dataclass
class Inducing:
    """Natural parameters of the Gaussian q of the inducing variables.

    Args:
        precision: (K, M, M) precision.
        linear: (K, M) precision times mean.
    """

    precision: Any
    linear: Any

    def moments(self) -> tuple[Any, Any]:
        """Return the mean (K, M), and the Cholesky factor (K, M, M) of the precision.

        A kernel whose precision is not positive definite gets NaN.
        """
        C = factor(self.precision)
        mean = torch.cholesky_solve(self.linear.unsqueeze(2), C).squeeze(2)
        return mean, C


@dataclass
class Sums:
    """Sums over rows, for one θ of each kernel.

    The sums are the natural parameters of the best q(u), and the terms of the bound that do not
    depend on q(u). For whitened inducing variables, B_x is the A_x of the module's equation.
    Otherwise B_x is ``chol(K_UU)⁻ᵀ A_x``.

    Args:
        precision: (K, M, M) prior precision plus ``Σ_x B_x B_xᵀ / σ_n²``.
        linear: (K, M) ``Σ_x B_x y_x / σ_n²``.
        rest: (K,) terms that do not depend on q(u), including the prior's normalisation.
    """

    precision: Any
    linear: Any
    rest: Any

    def plus(self, other: Sums) -> Sums:
        """Add the sums over other rows. `other` must not include the prior."""
        return Sums(
            self.precision + other.precision, self.linear + other.linear, self.rest + other.rest
        )

    def mixed(self, other: Sums, share: float) -> Sums:
        """Return ``(1 - share) self + share other``."""
        return Sums(
            torch.lerp(self.precision, other.precision, share),
            torch.lerp(self.linear, other.linear, share),
            torch.lerp(self.rest, other.rest, share),
        )


def factor(K: Any) -> Any:
    """Return lower Cholesky factors (K, M, M); NaN if a matrix is not positive definite."""
    L, failed = torch.linalg.cholesky_ex(K)
    return torch.where((failed != 0)[:, None, None], torch.full_like(L, math.nan), L)


def prior_factor(covariances: Covariances, theta: Any, Z: Any) -> Any:
    """Return chol(K_UU) (K, M, M), with `JITTER` on the diagonal of K_UU."""
    K = covariances.between(theta, Z, Z)
    size = JITTER * torch.diagonal(K, dim1=1, dim2=2).mean(1)
    return factor(K + torch.diag_embed(size[:, None].expand(-1, K.shape[1])))


def noise_variance(theta: Any, floor: float) -> Any:
    """Return the (K,) noise variances σ_n²."""
    return floor**2 + torch.exp(2.0 * theta[:, 0])


def sums(
    covariances: Covariances,
    theta: Any,
    Z: Any,
    X: Any,
    y: Any,
    *,
    weight: float,
    floor: float,
    whitened: bool,
    prior: bool = True,
    chunk: int | None = None,
) -> Sums:
    """Return the sums over rows for one θ of each kernel. The cost is O(K b M²).

    Args:
        covariances: covariances of K kernels.
        theta: (K, P) hyper-parameters.
        Z: (K, M, d) inducing inputs.
        X: (b, d) inputs of the rows.
        y: (b,) outputs of the rows.
        weight: number of rows that each given row represents.
        floor: smallest standard deviation of the noise.
        whitened: True for whitened inducing variables.
        prior: True to include the terms of the prior.
        chunk: number of rows that are processed at a time; None = as many as fit into the cache.
    """
    L = prior_factor(covariances, theta, Z)
    noise = noise_variance(theta, floor)
    M = Z.shape[1]
    AA = torch.zeros_like(L)
    Ay = L.new_zeros((len(L), M))
    trace = L.new_zeros(len(L))
    chunk = chunk or max(64, _TABLE // (covariances.leaves * M))
    for first in range(0, len(y), chunk):
        part = X[first : first + chunk][None]
        A = torch.linalg.solve_triangular(L, covariances.between(theta, Z, part), upper=False)
        AA += A @ A.transpose(1, 2)
        Ay += A @ y[first : first + chunk]
        trace += covariances.variance(theta, part).sum(1)
    trace = trace - torch.diagonal(AA, dim1=1, dim2=2).sum(1)
    rows = weight * len(y)
    rest = -0.5 * (
        rows * torch.log(2.0 * math.pi * noise) + weight * ((y * y).sum() + trace) / noise
    )
    AA, Ay = weight * AA / noise[:, None, None], weight * Ay / noise[:, None]
    eye = torch.eye(M, dtype=AA.dtype, device=AA.device)
    if prior:
        AA = AA + eye
    if whitened:
        return Sums(AA, Ay, rest)
    # Convert the sums from v to u = L v.
    inverse = torch.linalg.solve_triangular(L, eye.expand_as(L), upper=False)
    if prior:
        rest = rest - torch.log(torch.diagonal(L, dim1=1, dim2=2)).sum(1)
    linear = (inverse.transpose(1, 2) @ Ay.unsqueeze(2)).squeeze(2)
    return Sums(inverse.transpose(1, 2) @ AA @ inverse, linear, rest)


def collapsed(total: Sums) -> Any:
    """Return the bound (K,) at the best q(u), without the divergence of q(θ). [Titsias2009].

    `total` has the sums over all rows, averaged over samples of θ.
    """
    C = factor(total.precision)
    half = torch.linalg.solve_triangular(C, total.linear.unsqueeze(2), upper=False).squeeze(2)
    log_root = torch.log(torch.diagonal(C, dim1=1, dim2=2)).sum(1)
    return total.rest + 0.5 * (half * half).sum(1) - log_root


def batch_bound(
    covariances: Covariances,
    theta: Any,
    Z: Any,
    X: Any,
    y: Any,
    q: Inducing | None,
    *,
    weight: float,
    floor: float,
    whitened: bool,
) -> tuple[Any, Sums]:
    """Return an unbiased estimate (K,) of the bound from some rows, and the sums over these rows.

    The estimate leaves out KL[q(θ)‖p(θ)], and terms that do not depend on θ.

    Args:
        covariances: covariances of K kernels.
        theta: (K, P) sample of q(θ).
        Z: (K, M, d) inducing inputs.
        X: (b, d) inputs of the rows.
        y: (b,) outputs of the rows.
        q: fixed q(u); None = the best q(u) for the given rows.
        weight: number of rows that each given row represents.
        floor: smallest standard deviation of the noise.
        whitened: True for whitened inducing variables.
    """
    L = prior_factor(covariances, theta, Z)
    noise = noise_variance(theta, floor)
    A = torch.linalg.solve_triangular(L, covariances.between(theta, Z, X[None]), upper=False)
    own = covariances.variance(theta, X[None]) - (A * A).sum(1)
    B = A if whitened else torch.linalg.solve_triangular(L.transpose(1, 2), A, upper=True)
    natural = _natural(L.detach(), B.detach(), y, noise.detach(), weight, whitened=whitened)
    if q is None:
        q = Inducing(natural.precision, natural.linear)
    mean, C = q.moments()
    spread = torch.linalg.solve_triangular(C, B, upper=False)
    error = y - (mean.unsqueeze(1) @ B).squeeze(1)
    data = -0.5 * (
        len(y) * torch.log(2.0 * math.pi * noise)
        + ((error * error) + own + (spread * spread).sum(1)).sum(1) / noise
    )
    bound = weight * data
    if not whitened:
        bound = bound + _prior(L, mean, C)
    return bound, natural


def _prior(L: Any, mean: Any, C: Any) -> Any:
    """Return E_q(u)[log p(u|θ)] (K,) up to a constant."""
    size = torch.linalg.solve_triangular(L, mean.unsqueeze(2), upper=False)
    # tr(K⁻¹ S) with S = C⁻ᵀ C⁻¹ is the sum of the squares of L⁻¹ C⁻ᵀ.
    spread = torch.linalg.solve_triangular(C, _eye(C), upper=False).transpose(1, 2)
    spread = torch.linalg.solve_triangular(L, spread, upper=False)
    log_root = torch.log(torch.diagonal(L, dim1=1, dim2=2)).sum(1)
    return -log_root - 0.5 * ((size * size).sum((1, 2)) + (spread * spread).sum((1, 2)))


def _natural(L: Any, B: Any, y: Any, noise: Any, weight: float, *, whitened: bool) -> Sums:
    """Return the natural parameters of the best q(u) for a mini-batch."""
    scale = weight / noise
    precision = scale[:, None, None] * (B @ B.transpose(1, 2))
    if whitened:
        precision = precision + _eye(L)
    else:
        precision = precision + torch.cholesky_inverse(L)
    return Sums(precision, scale[:, None] * (B @ y), torch.zeros_like(noise))


def _eye(like: Any) -> Any:
    return torch.eye(like.shape[1], dtype=like.dtype, device=like.device).expand_as(like)


def divergence(mean: Any, root: Any, prior_mean: Any, prior_std: Any, used: Any) -> Any:
    """Return KL[q(θ)‖p(θ)] (K,) for ``q = N(mean, root rootᵀ)`` and a p of independent normals.

    Args:
        mean: (K, P) mean of q(θ).
        root: (K, P, P) lower Cholesky factor of the covariance of q(θ).
        prior_mean: (K, P) mean of p(θ).
        prior_std: (K, P) standard deviation of p(θ).
        used: (K, P) mask, False where θ is padding.
    """
    scaled = root / prior_std.unsqueeze(2)
    away = (mean - prior_mean) / prior_std
    log_root = torch.log(torch.diagonal(scaled, dim1=1, dim2=2).abs().clamp_min(1e-300))
    each = 0.5 * ((scaled * scaled).sum(2) + away * away - 1.0) - log_root
    return torch.where(used, each, torch.zeros_like(each)).sum(1)


def log_density(theta: Any, prior_mean: Any, prior_std: Any, used: Any) -> Any:
    """Return log p(θ) (K,) for independent normals p. Entries that are not `used` contribute 0."""
    away = (theta - prior_mean) / prior_std
    each = -0.5 * (away * away + math.log(2.0 * math.pi)) - torch.log(prior_std)
    return torch.where(used, each, torch.zeros_like(each)).sum(1)
