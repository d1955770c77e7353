"""Local ELBO of VBKS by brute force: dense matrices, quadrature over f and over θ.

Only the covariance of kernels is shared with the package.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray

JITTER = 1e-6


@dataclass(frozen=True)
class Task:
    """Small problem in normalised units.

    Args:
        composite: the kernel.
        X: (n, d) inputs.
        y: (n,) outputs.
        Z: (M, d) inducing inputs.
        floor: least noise standard deviation.
    """

    composite: Composite
    X: FloatArray
    y: FloatArray
    Z: FloatArray
    floor: float = 1e-3

    def noise(self, theta: FloatArray) -> float:
        return self.floor**2 + math.exp(2.0 * theta[0])

    def of_inducing(self, theta: FloatArray) -> FloatArray:
        """Return the prior covariance of u (M, M), including the jitter."""
        K = self.composite.covariance(theta, self.Z, self.Z)
        return K + JITTER * K.diagonal().mean() * np.eye(len(K))


@dataclass(frozen=True)
class Q:
    """q(θ) = N(mean, root rootᵀ) and q(v) = N(centre, spread); v is u if not whitened."""

    mean: FloatArray
    root: FloatArray
    centre: FloatArray
    spread: FloatArray
    whitened: bool


def normal_nodes(count: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights that integrate against the standard normal density."""
    nodes, weights = hermegauss(count)
    return nodes, weights / weights.sum()


def cube(mean: FloatArray, root: FloatArray, count: int) -> Iterator[tuple[float, FloatArray]]:
    """Yield weights and values of θ that integrate against N(mean, root rootᵀ).

    The integral is over columns of `root` that are not zero.
    """
    columns = np.flatnonzero(root.any(axis=0))
    nodes, weights = normal_nodes(count)
    for chosen in itertools.product(range(count), repeat=len(columns)):
        weight = math.prod(float(weights[c]) for c in chosen)
        yield weight, mean + root[:, columns] @ nodes[list(chosen)]


def kl(m1: FloatArray, S1: FloatArray, m2: FloatArray, S2: FloatArray) -> float:
    """Return KL[N(m1, S1) ‖ N(m2, S2)] by its definition."""
    inverse = np.linalg.inv(S2)
    away = m2 - m1
    logs = np.linalg.slogdet(S2)[1] - np.linalg.slogdet(S1)[1]
    return float(0.5 * (np.trace(inverse @ S1) + away @ inverse @ away - len(m1) + logs))


def of_f(task: Task, theta: FloatArray, q: Q) -> tuple[FloatArray, FloatArray]:
    """Return means and variances (n,) of f under p(f|u,θ)q(u), by full matrices."""
    K_uu = task.of_inducing(theta)
    K_xu = task.composite.covariance(theta, task.X, task.Z)
    K_xx = task.composite.covariance(theta, task.X, task.X)
    L = np.linalg.cholesky(K_uu) if q.whitened else np.eye(len(K_uu))
    centre, spread = L @ q.centre, L @ q.spread @ L.T
    A = K_xu @ np.linalg.inv(K_uu)
    covariance = K_xx - A @ K_xu.T + A @ spread @ A.T
    return A @ centre, covariance.diagonal()


def data_term(task: Task, theta: FloatArray, q: Q, nodes: int = 20) -> float:
    """Return E[log p(y|f)], by quadrature over each f(x)."""
    mean, variance = of_f(task, theta, q)
    z, w = normal_nodes(nodes)
    noise = task.noise(theta)
    f = mean[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * z
    logs = -0.5 * (np.log(2.0 * math.pi * noise) + (task.y[:, None] - f) ** 2 / noise)
    return float((logs @ w).sum())


def price_of_u(task: Task, theta: FloatArray, q: Q) -> float:
    """Return KL[q(v) ‖ p(v)], or KL[q(u) ‖ p(u|θ)]."""
    M = len(task.Z)
    prior = np.eye(M) if q.whitened else task.of_inducing(theta)
    return kl(q.centre, q.spread, np.zeros(M), prior)


def local_elbo(task: Task, q: Q, nodes: int = 12) -> float:
    """Return the local ELBO. [Teng2020, Eq. 9].

    For a point (root = 0), -log p(θ) replaces KL[q(θ) ‖ p(θ)].
    """
    mean, std = task.composite.prior
    if q.root.any():
        price = kl(q.mean, q.root @ q.root.T, mean, np.diag(std**2))
    else:
        price = -log_prior(task.composite, q.mean)
    inner = sum(
        weight * (data_term(task, theta, q) - price_of_u(task, theta, q))
        for weight, theta in cube(q.mean, q.root, nodes)
    )
    return inner - price


def log_prior(composite: Composite, theta: FloatArray) -> float:
    mean, std = composite.prior
    z = (theta - mean) / std
    return float((-0.5 * z**2 - np.log(std) - 0.5 * math.log(2.0 * math.pi)).sum())


def log_marginal(task: Task, theta: FloatArray) -> float:
    """Return log p(y|θ) of the exact Gaussian process."""
    C = task.composite.covariance(theta, task.X, task.X)
    C = C + task.noise(theta) * np.eye(len(C))
    logs = np.linalg.slogdet(2.0 * math.pi * C)[1]
    return float(-0.5 * (logs + task.y @ np.linalg.solve(C, task.y)))


def collapsed_bound(task: Task, theta: FloatArray) -> tuple[float, float]:
    """Return the bound at the best q(u) for one θ, and tr(K - Q)/σ². [Titsias2009].

    It is ``log N(y; 0, Q + σ² I) - tr(K - Q) / 2σ²`` with ``Q = K_xu K_uu⁻¹ K_ux``.
    """
    K_xu = task.composite.covariance(theta, task.X, task.Z)
    Q = K_xu @ np.linalg.solve(task.of_inducing(theta), K_xu.T)
    noise = task.noise(theta)
    lost = float((task.composite.variance(theta, task.X) - Q.diagonal()).sum()) / noise
    C = Q + noise * np.eye(len(Q))
    logs = np.linalg.slogdet(2.0 * math.pi * C)[1]
    return float(-0.5 * (logs + task.y @ np.linalg.solve(C, task.y) + lost)), lost
