"""Maximum likelihood for one Gaussian process, as a user of another package would do it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

NUMERICAL = (-12.0, 12.0)
"""Range of every logarithm: beyond, numbers overflow. No other bounds, no prior."""
STARTS = tuple((ell, noise) for ell in (0.5, 1.5, 4.0, 10.0) for noise in (0.1, 0.7))
"""Length-scale [m] and noise over signal that the search starts from."""


class Fitted(NamedTuple):
    """The most likely hyper-parameters, and the map they give."""

    length_scale: float
    signal_std: float
    noise_std: float
    mean: np.ndarray
    variance: np.ndarray


def maximum_likelihood(positions: np.ndarray, values: np.ndarray, everywhere: np.ndarray) -> Fitted:
    """Fit log ℓ, log σ_s, log σ_n by L-BFGS from several starts; the constant mean is profiled.

    Args:
        positions: (k, 2) of the readings [m].
        values: (k,) readings.
        everywhere: (n, 2) where the map is wanted.

    Returns:
        The best of all starts; the map is that of the fitted process, its mean taken as known.
    """
    square = ((positions[:, None] - positions) ** 2).sum(axis=-1)
    spread = float(values.std()) or 1.0
    best, theta = np.inf, np.zeros(3)
    for ell, noise in STARTS:
        start = np.log([ell, spread, noise * spread])
        found = minimize(
            _cost, start, (square, values), "L-BFGS-B", jac=True, bounds=[NUMERICAL] * 3
        )
        if found.fun < best:
            best, theta = float(found.fun), np.asarray(found.x)
    ell, signal, noise = (float(v) for v in np.exp(theta))
    K = _covariance(theta, square)[0]
    inverse = np.linalg.inv(K)
    constant = (inverse @ values).sum() / inverse.sum()
    far = ((everywhere[:, None] - positions) ** 2).sum(axis=-1)
    cross = signal**2 * np.exp(-0.5 * far / ell**2)
    mean = constant + cross @ inverse @ (values - constant)
    variance = signal**2 - ((cross @ inverse) * cross).sum(axis=1)
    return Fitted(ell, signal, noise, mean, np.maximum(variance, 1e-12 * signal**2))


def _covariance(theta: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ell2, signal2, noise2 = np.exp(2.0 * theta)
    smooth = signal2 * np.exp(-0.5 * square / ell2)
    hair = 1e-8 * signal2 + 1e-300
    return smooth + (noise2 + hair) * np.eye(len(square)), smooth


def _cost(theta: np.ndarray, square: np.ndarray, values: np.ndarray) -> tuple[float, np.ndarray]:
    """Negative log-likelihood at the best constant mean, and its gradient."""
    K, smooth = _covariance(theta, square)
    ell2, signal2, noise2 = np.exp(2.0 * theta)
    try:
        L = np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros(3)
    inverse = np.linalg.inv(K)
    constant = (inverse @ values).sum() / inverse.sum()
    weighted = inverse @ (values - constant)
    cost = 0.5 * weighted @ (values - constant) + np.log(np.diag(L)).sum()
    # The constant is at its optimum: its own change adds nothing to the gradient.
    inner = inverse - np.outer(weighted, weighted)
    eye = np.eye(len(values))
    slopes = (smooth * square / ell2, 2.0 * smooth + 2e-8 * signal2 * eye, 2.0 * noise2 * eye)
    return float(cost), np.array([0.5 * (inner * slope).sum() for slope in slopes])
