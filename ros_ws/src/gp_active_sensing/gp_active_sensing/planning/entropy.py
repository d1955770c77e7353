"""Entropies of Gaussians and of Gaussian mixtures, and the reward made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import xlogy

from gp_active_sensing.types import BoolArray, FloatArray, IntArray

__all__ = [
    "discrete_entropy",
    "gaussian_entropy",
    "mixture_entropy",
    "noise_entropy",
    "reported_offset",
]

_LOG_2PI = math.log(2.0 * math.pi)


def gaussian_entropy(variance: FloatArray) -> FloatArray:
    """Return ``½ log(2πe σ²)`` [nat]."""
    return np.asarray(0.5 * (np.log(variance) + (_LOG_2PI + 1.0)))


def discrete_entropy(weights: FloatArray) -> FloatArray:
    """Return ``-Σ w log w`` over the last axis [nat]."""
    return np.asarray(-xlogy(weights, weights).sum(axis=-1))


def noise_entropy(noise_variance: FloatArray) -> FloatArray:
    """Return ``½ log(2πe σ_n²(λ))``, (L,) [nat]: what every planner takes off an entropy.

    What is left is the information a reading gives. It is never negative, does not depend on
    the unit of the readings, and does not reward noise where candidates differ in it.
    """
    return gaussian_entropy(noise_variance)


def reported_offset(noise_variance: FloatArray, readings: int) -> float:
    """Return what makes the paper's value out of the information of so many readings [nat].

    Where all candidates have the same noise that is the entropy of the noise: reported values
    are then joint entropies ``H[Z]`` as in the paper. Where they differ it is zero: the value is
    the information ``H[Z] - Σ_λ b(λ) ½ log(2πe σ_n²(λ))`` a reading.
    """
    if np.ptp(noise_variance) > 1e-12 * noise_variance.max():
        return 0.0
    return readings * float(noise_entropy(noise_variance)[0])


_NEGLIGIBLE = 1e-9
"""Weight below which a component is left out: it changes an entropy by less than 1e-7 nat."""
_REACH, _STEP = 5.0, 1.0
"""Equal steps: how far beyond the means [its own deviations], and how wide [the least of them]."""
_NODES = (8, 12, 16, 20, 24, 32)
"""Numbers of equal steps; mixtures that need more are integrated with growing ones."""
_GROWTH, _CENTRE = 0.25, 3.5
"""Growing steps: part of the distance from the narrowest component, and where growth sets in."""
_GROWING = (24, 32, 48, 64, 96, 128)
"""Numbers of growing steps; mixtures that need more, or do not fit, are integrated on panels."""
_OFFSETS = np.array([-6.5, -3.0, 0.0, 3.0, 6.5])
"""Panel edges of a component, in its own standard deviations about its mean."""
_CHUNK = 2_000_000
"""Densities evaluated at a time, to bound memory."""


@lru_cache(maxsize=1)
def _legendre() -> tuple[FloatArray, FloatArray]:
    x, w = np.polynomial.legendre.leggauss(5)
    return x, w


def mixture_entropy(weights: FloatArray, means: FloatArray, variances: FloatArray) -> FloatArray:
    r"""Return the entropy of one-dimensional Gaussian mixtures [nat].

    .. math:: H = -\int p(z) \log p(z)\, dz, \quad
        p(z) = \sum_\lambda b(\lambda) N(z; \mu_\lambda, \sigma_\lambda^2)

    Where the components are of like width, by the trapezoidal rule, whose error falls
    exponentially for such a p: 8 to 32 equal steps. Where narrow components lie within wide ones,
    by the same rule after ``z = sinh(u)`` about the narrowest, so that steps grow with the distance
    from it. Else by Gauss-Legendre quadrature on panels whose edges are a few points of every
    component. Largest error seen 3e-4 nat (16-point Gauss-Hermite under each component: 0.2). The
    result is put into the bracket that holds for every mixture, ``Σ b H_λ ≤ H ≤ Σ b H_λ + H(b)``
    and ``H ≤ ½ log 2πe Var``, so that no quadrature error ever leaves it.

    Args:
        weights: (…, L) mixture weights.
        means: (…, L).
        variances: (…, L), above 0.

    Returns:
        (…) entropies. Time O(10 L) to O(25 L²) each.
    """
    if not weights.shape == means.shape == variances.shape:
        weights, means, variances = np.broadcast_arrays(weights, means, variances)
    shape, L = means.shape[:-1], means.shape[-1]
    b, m, v = weights.reshape(-1, L), means.reshape(-1, L), variances.reshape(-1, L)
    # In units of a typical deviation, so that the unit of the readings makes no difference.
    scale = np.sqrt((b * v).sum(axis=1))
    m, std = m / scale[:, None], np.sqrt(v) / scale[:, None]
    lower = (b * gaussian_entropy(v)).sum(axis=-1)
    centred = m - (b * m).sum(axis=1)[:, None]
    moment = gaussian_entropy((b * (v + centred * centred * (scale**2)[:, None])).sum(axis=1))
    upper = np.maximum(lower, np.minimum(lower + discrete_entropy(b), moment))
    live = b > _NEGLIGIBLE
    # A component nobody gives weight to costs as much as any other and adds nothing.
    used = live.any(axis=0)
    if not used.all():
        b, m, std, live = b[:, used], m[:, used], std[:, used], live[:, used]
    beyond = np.where(live, _REACH * std, -np.inf)
    low, high = (m - beyond).min(axis=1), (m + beyond).max(axis=1)
    steps = (high - low) / (_STEP * np.where(live, std, np.inf).min(axis=1))
    value, least = np.empty(len(m)), 0
    arrays = (b * live, m, std, low, high)
    for n in _NODES:
        rows = np.flatnonzero((steps > least) & (steps <= n))
        _in_chunks(_equal_steps, n * b.shape[1], rows, value, arrays, n)
        least = n
    # "not <=" and not ">": steps that are not finite belong to the panels in the end.
    rows = np.flatnonzero(~(steps <= least))
    if rows.size:
        value[rows] = _wide(b[rows], m[rows], std[rows], live[rows], low[rows], high[rows])
    return np.asarray(np.clip(value + np.log(scale), lower, upper).reshape(shape))


def _wide(
    b: FloatArray,
    m: FloatArray,
    std: FloatArray,
    live: BoolArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Return ``-∫ p log p`` of K mixtures (K, L) of components that differ much in width."""
    value, least = np.empty(len(b)), 0
    narrow = np.where(live, std, np.inf).argmin(axis=1)[:, None]
    centre = np.take_along_axis(m, narrow, axis=1)[:, 0]
    width = _CENTRE * np.take_along_axis(std, narrow, axis=1)[:, 0]
    first, last = np.arcsinh((low - centre) / width), np.arcsinh((high - centre) / width)
    # Every component is to be met by steps no longer than it is wide.
    step = _GROWTH * np.sqrt(width[:, None] ** 2 + (m - centre[:, None]) ** 2)
    steps = np.where((std >= step) | ~live, 0.0, np.inf).max(axis=1) + (last - first) / _GROWTH
    arrays = (b * live, m, std, centre, width, first, last)
    for n in _GROWING:
        rows = np.flatnonzero((steps > least) & (steps <= n))
        _in_chunks(_growing_steps, n * b.shape[1], rows, value, arrays, n)
        least = n
    rows = np.flatnonzero(~(steps <= least))
    _in_chunks(_panels, 25 * b.shape[1] ** 2, rows, value, (b, m, std))
    return value


def _in_chunks(
    integrate: Callable[..., FloatArray],
    cost: int,
    rows: IntArray,
    value: FloatArray,
    arrays: tuple[FloatArray, ...],
    *more: Any,
) -> None:
    """Fill ``value[rows]``, so many rows at a time that memory stays bounded."""
    step = max(1, _CHUNK // cost)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        value[part] = integrate(*(array[part] for array in arrays), *more)


def _density(z: FloatArray, b: FloatArray, m: FloatArray, std: FloatArray) -> FloatArray:
    """Return the densities (K, N) of K mixtures (K, L) at points z (K, N)."""
    t = (z[:, :, None] - m[:, None, :]) / std[:, None, :]
    t *= t
    t *= -0.5
    np.exp(t, out=t)
    return np.asarray((t @ (b / std)[:, :, None])[:, :, 0] / math.sqrt(2.0 * math.pi))


def _equal_steps(
    b: FloatArray, m: FloatArray, std: FloatArray, low: FloatArray, high: FloatArray, n: int
) -> FloatArray:
    """Return ``-∫ p log p`` of K mixtures (K, L) from n equal steps between `low` and `high`."""
    h = (high - low) / n
    z = low[:, None] + h[:, None] * np.arange(n + 1)
    p = _density(z, b, m, std)
    return np.asarray(-h * xlogy(p, p).sum(axis=1))


def _growing_steps(
    b: FloatArray,
    m: FloatArray,
    std: FloatArray,
    centre: FloatArray,
    width: FloatArray,
    first: FloatArray,
    last: FloatArray,
    n: int,
) -> FloatArray:
    """Return ``-∫ p log p`` of K mixtures (K, L) from n equal steps of asinh(z)."""
    h = (last - first) / n
    u = first[:, None] + h[:, None] * np.arange(n + 1)
    z = centre[:, None] + width[:, None] * np.sinh(u)
    p = _density(z, b, m, std)
    return np.asarray(-h * width * (np.cosh(u) * xlogy(p, p)).sum(axis=1))


def _panels(b: FloatArray, m: FloatArray, std: FloatArray) -> FloatArray:
    """Return ``-∫ p log p`` of K mixtures (K, L), on panels between points of all components."""
    x, w = _legendre()
    edges = np.sort((m[:, :, None] + std[:, :, None] * _OFFSETS).reshape(len(m), -1), axis=1)
    half = 0.5 * np.diff(edges, axis=1)
    centre = 0.5 * (edges[:, 1:] + edges[:, :-1])
    z = (centre[:, :, None] + half[:, :, None] * x).reshape(len(m), -1)
    p = _density(z, b, m, std)
    area = (half[:, :, None] * w).reshape(len(m), -1)
    return np.asarray(-(area * xlogy(p, p)).sum(axis=1))
