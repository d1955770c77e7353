"""Small models of a belief over kernels, fitted in closed form at given hyper-parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.special import softmax

from gp_active_sensing.kernel_model.model import (
    JITTER,
    History,
    KernelFit,
    KernelModel,
    KernelPosterior,
    Scaling,
)
from gp_active_sensing.kernel_model.model_file import write_model
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing.types import FloatArray


def make_fit(
    name: str,
    X: FloatArray,
    y: FloatArray,
    theta: FloatArray | None = None,
    *,
    inducing: int = 12,
    theta_std: float = 0.1,
    noise_floor: float = 1e-3,
    bound: float | None = None,
) -> KernelFit:
    """Return the best q(v) at θ for normalised rows, with a q(θ) of independent parameters.

    q(v) and the bound are those of [Titsias2009, Eqs. 9-10] at the mean of q(θ).
    """
    composite = Composite(parse(name), X.shape[1])
    if theta is None:
        theta = np.zeros(composite.size)
        theta[0] = math.log(0.2)
    U = X[np.linspace(0, len(X) - 1, min(inducing, len(X))).astype(int)]
    K = composite.covariance(theta, U, U)
    K[np.diag_indices_from(K)] += JITTER * K.diagonal().mean()
    A = np.linalg.solve(np.linalg.cholesky(K), composite.covariance(theta, U, X))
    noise = noise_floor**2 + math.exp(2.0 * theta[0])
    precision = np.eye(len(U)) + A @ A.T / noise
    covariance = np.linalg.inv(precision)
    mean = covariance @ A @ y / noise
    if bound is None:
        Q = A.T @ A + noise * np.eye(len(X))
        _, log_det = np.linalg.slogdet(2.0 * math.pi * Q)
        trace = (composite.variance(theta, X) - (A * A).sum(axis=0)).sum()
        bound = float(-0.5 * (y @ np.linalg.solve(Q, y) + log_det + trace / noise))
    return KernelFit(
        composite=composite,
        bound=bound,
        theta_mean=np.array(theta, dtype=np.float64),
        theta_root=theta_std * np.eye(composite.size),
        inducing=U,
        mean=mean,
        root=np.linalg.cholesky(0.5 * (covariance + covariance.T)),
        whitened=True,
        noise_floor=noise_floor,
        iterations=1,
        outcome="closed form",
        trace=np.array([[1.0, len(X), bound]]),
    )


def make_model(
    names: Sequence[str],
    X: FloatArray,
    y: FloatArray,
    *,
    input_names: Sequence[str] = ("x", "y"),
    thetas: dict[str, FloatArray] | None = None,
    theta_std: float = 0.1,
    bounds: dict[str, float] | None = None,
    settings: dict[str, object] | None = None,
) -> KernelModel:
    """Return the model of some kernels for rows (n, d), (n,) in given units."""
    spread = np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    scaling = Scaling(X.mean(axis=0), spread, float(y.mean()), float(y.std()) or 1.0)
    Z, z = scaling.inputs(X), scaling.outputs(y)
    fits = [
        make_fit(
            name,
            Z,
            z,
            (thetas or {}).get(name),
            theta_std=theta_std,
            bound=(bounds or {}).get(name),
        )
        for name in names
    ]
    fits.sort(key=lambda fit: -fit.bound)
    belief = _belief_over(np.array([fit.bound for fit in fits]))
    return KernelModel(
        fits=tuple(fits),
        belief=belief,
        dropped=(("PER×PER", "diverged"),),
        scaling=scaling,
        input_names=tuple(input_names)[: X.shape[1]],
        output_name="value",
        rows=len(X),
        source="rows of a test",
        history=History(
            rows=np.array([float(len(X))]),
            names=tuple(fit.name for fit in fits),
            bounds=np.array([[fit.bound for fit in fits]]),
            probabilities=belief.probabilities[None],
            softmax=belief.softmax[None],
        ),
        settings={"seed": 0, "transform": "identity", **(settings or {})},
    )


def write_three(path: Path, seed: int = 0) -> Path:
    """Write a model of three kernels for a map of 35 m."""
    X, y = rows(seed)
    bounds = {"SE": 0.0, "LIN": -0.4, "PER+SE": -0.8}
    return write_model(path, make_model(tuple(bounds), 0.35 * X, y - 10.0, bounds=bounds))


def _belief_over(bounds: FloatArray) -> KernelPosterior:
    """Return a belief that goes by the bounds, but leaves every kernel a chance."""
    q = softmax(np.maximum(bounds - bounds.max(), -4.0))
    root = 0.5 * np.eye(len(q))
    return KernelPosterior(np.log(q), root, 1.0, q, 0.01 * q, softmax(bounds), float(bounds.max()))


def rows(seed: int = 0, n: int = 60, d: int = 2) -> tuple[FloatArray, FloatArray]:
    """Return inputs (n, d) over 100 m and smooth outputs about 20 ± 3 with a little noise."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.uniform(0.0, 100.0, (n, d))
    y = 20.0 + 3.0 * np.sin(X[:, 0] / 15.0) + 2.0 * np.cos(X[:, -1] / 25.0)
    return X, y + 0.1 * rng.standard_normal(n)
