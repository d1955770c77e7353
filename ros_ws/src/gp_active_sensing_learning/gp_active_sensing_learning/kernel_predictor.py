"""Predict with a belief over kernels, and keep only its most probable kernels. [Teng2020]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from gp_active_sensing.errors import BeliefError
from gp_active_sensing.kernel_model.model import JITTER, KernelFit, KernelModel
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.kernel_belief import SAMPLES as DRAWS
from gp_active_sensing_learning.kernel_belief import kernel_belief

_BLOCK = 2_000_000
"""Largest number of entries in a matrix (inducing inputs, rows), which limits the memory."""
SAMPLES = 32
"""Default number of samples of θ for a prediction."""


def drawn(fit: KernelFit, samples: int, seed: int) -> FloatArray:
    """Return (S, P) samples of q(θ) in symmetric pairs about the mean; (1, P) for a point q(θ)."""
    if fit.point:
        return fit.theta_mean[None]
    half = np.random.default_rng([seed, fit.composite.size]).standard_normal(
        (max(samples + 1, 2) // 2, fit.composite.size)
    )
    return np.asarray(fit.theta_mean + np.concatenate([half, -half]) @ fit.theta_root.T)


def moments(
    fit: KernelFit, Z: FloatArray, *, noisy: bool, samples: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    r"""Return mean and variance (m,) of one kernel's prediction in normalised units.

    .. math:: \mu_i = \frac{1}{S} \sum_s \mu_{i|\theta_s}, \quad
        \sigma_i^2 = \frac{1}{S} \sum_s (\sigma_{i|\theta_s}^2 + \mu_{i|\theta_s}^2) - \mu_i^2

    [Teng2020, App. D.2]. The cost is O(S M² (M + m)) for M inducing inputs.

    Args:
        fit: fit of the kernel.
        Z: (m, d) inputs in normalised units.
        noisy: True to add the noise of a reading.
        samples: number S of samples of θ; ignored for a point q(θ).
        seed: seed of the samples.

    Raises:
        BeliefError: the covariance is not positive definite.
    """
    thetas = drawn(fit, samples, seed)
    total, square = np.zeros(len(Z)), np.zeros(len(Z))
    within = np.zeros(len(Z))
    first: FloatArray | None = None
    for theta in thetas:
        mean, variance = _given(fit, theta, Z)
        if noisy:
            noise = fit.composite.where("noise")[0]
            variance = variance + fit.noise_floor**2 + np.exp(2.0 * theta[noise])
        # Deviations from the first mean avoid cancellation.
        first = mean if first is None else first
        total += mean - first
        square += (mean - first) ** 2
        within += variance
    S = len(thetas)
    assert first is not None
    spread = np.maximum(square / S - (total / S) ** 2, 0.0)
    return first + total / S, within / S + spread


def _given(fit: KernelFit, theta: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (m,) of the noise-free function given θ."""
    kernel, U = fit.composite, fit.inducing
    K = kernel.covariance(theta, U, U)
    K[np.diag_indices_from(K)] += JITTER * K.diagonal().mean()
    try:
        chol = np.linalg.cholesky(K)
    except np.linalg.LinAlgError as error:
        msg = f"kernel {fit.name}: the covariance of its inducing inputs is not positive definite"
        raise BeliefError(msg) from error
    centre, root = fit.mean, fit.root
    if not fit.whitened:
        centre = solve_triangular(chol, centre, lower=True)
        root = solve_triangular(chol, root, lower=True)
    mean, variance = np.empty(len(Z)), np.empty(len(Z))
    rows = max(1, _BLOCK // len(U))
    for start in range(0, len(Z), rows):
        some = slice(start, min(len(Z), start + rows))
        A = solve_triangular(chol, kernel.covariance(theta, U, Z[some]), lower=True)
        mean[some] = A.T @ centre
        unknown = kernel.variance(theta, Z[some]) - (A * A).sum(axis=0)
        variance[some] = np.maximum(unknown, 0.0) + ((root.T @ A) ** 2).sum(axis=0)
    return mean, variance


def predict(
    model: KernelModel,
    X: FloatArray,
    *,
    noisy: bool = False,
    samples: int = SAMPLES,
    kernels: Sequence[int] | None = None,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    r"""Return mean and variance (m,) of the average over kernels. [Teng2020, Eqs. 14-15].

    .. math:: \mu = \sum_i q^*(k_i) \mu_i, \quad
        \sigma^2 = \sum_i q^*(k_i) (\sigma_i^2 + (\mu_i - \mu)^2)

    Args:
        model: belief over kernels.
        X: (m, d) inputs in their original units.
        noisy: True to add the noise of a reading.
        samples: number S of samples of θ; ignored for a point q(θ).
        kernels: indices of the averaged kernels, whose probabilities are scaled to sum to one;
            None = all kernels.
        seed: seed of the samples.

    Returns:
        Mean in the unit of the outputs, and variance in the square of this unit.

    Raises:
        ValueError: `X` has a wrong shape or is not finite, or a kernel does not exist.
        BeliefError: a covariance is not positive definite.
    """
    given = np.asarray(X, dtype=np.float64)
    d = model.dimensions
    if given.ndim != 2 or given.shape[1] != d:
        names = ", ".join(model.input_names)
        msg = f"expected inputs (m, {d}) with the columns {names}, got shape {given.shape}"
        raise ValueError(msg)
    if not np.isfinite(given).all():
        bad = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        msg = f"expected finite inputs, row {bad} has {given[bad].tolist()}"
        raise ValueError(msg)
    chosen = list(range(len(model.fits)) if kernels is None else kernels)
    if not chosen or not all(0 <= k < len(model.fits) for k in chosen):
        msg = f"expected some of the kernels 0 … {len(model.fits) - 1}, got {chosen}"
        raise ValueError(msg)
    weights = model.belief.probabilities[chosen]
    weights = np.full(len(chosen), 1.0) if weights.sum() <= 0.0 else weights
    weights = weights / weights.sum()
    Z = model.scaling.inputs(given)
    found = [moments(model.fits[k], Z, noisy=noisy, samples=samples, seed=seed) for k in chosen]
    means = np.array([mean for mean, _ in found])
    variances = np.array([variance for _, variance in found])
    mean = weights @ means
    variance = weights @ (variances + (means - mean) ** 2)
    scale = model.scaling.output_scale
    return model.scaling.output_shift + scale * mean, scale**2 * variance


def prune(
    model: KernelModel, top: int, *, samples: int | None = None, seed: int | None = None
) -> KernelModel:
    """Return the model of the `top` most probable kernels.

    Each kernel keeps its fit. The belief over the kernels is computed again, from `samples` random
    samples with the seed `seed`; None = the value that is stored in the model.

    Raises:
        ValueError: `top` is below 1.
    """
    if top < 1:
        msg = f"expected to keep at least one kernel, got {top}"
        raise ValueError(msg)
    whole = model.ordered()
    if top >= len(whole.fits):
        return whole
    kept = whole.fits[:top]
    why = f"pruned: not among the {top} most probable"
    gone = tuple((fit.name, why) for fit in whole.fits[top:])
    vbks = whole.settings.get("vbks")
    learned = vbks if isinstance(vbks, Mapping) else {}
    belief = kernel_belief(
        [fit.bound for fit in kept],
        prior_std=whole.belief.prior_std,
        samples=learned.get("samples", DRAWS) if samples is None else samples,
        seed=learned.get("seed", 0) if seed is None else seed,
    )
    pruned = replace(whole, fits=kept, belief=belief, dropped=(*whole.dropped, *gone))
    return pruned.ordered()
