"""Entropies of Gaussian distributions and of Gaussian mixtures."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gp_active_sensing.types import BoolArray, FloatArray, IntArray

_LOG_2PI = math.log(2.0 * math.pi)
_TINY = 1e-300
"""Smallest argument of the logarithm in ``x log x``."""
_NEGLIGIBLE = 1e-9
"""Weight below which a mixture component is ignored. The error of the entropy is below 1e-7 nat."""
_CLOSE = 1e-4
"""Difference of the bounds on an entropy up to which the upper bound is used [nat]."""
_LIKE = (
    (9, 1.0, 0.75, 4.5, 0.2),
    (11, 1.0, 0.75, 5.5, 0.1),
    (17, 0.7, 0.5, 6.1, 0.2),
)
"""Quadrature rules for mixtures of similar components, with errors below 2e-4 nat. A rule lists its
number of points, its step, and three limits. The limits are the smallest σ and the largest
``|μ| + 4σ`` of a component, and the largest difference of the bounds on the entropy [nat]. The
step, μ and σ are in standard deviations of the mixture."""
_REACH, _STEP = 5.0, 1.0
"""Integration range on each side of a mean [standard deviations of the component], and largest
step [smallest standard deviation of a component]."""
_NODES = (8, 12, 16, 20, 24, 32)
"""Possible numbers of equal integration steps."""
_GROWTH, _CENTRE = 0.25, 3.5
"""Largest step of u after the substitution ``z = c sinh(u)``, and the factor c [standard deviations
of the narrowest component]."""
_GROWING = (24, 32, 48, 64, 96, 128)
"""Possible numbers of integration steps after the substitution ``z = c sinh(u)``."""
_OFFSETS = np.array([-6.5, -3.0, 0.0, 3.0, 6.5])
"""Limits of the integration intervals around a mean [standard deviations of the component]."""
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(5)
"""Points and weights of the 5-point Gauss-Legendre rule on [-1, 1]."""
_IN_CACHE = 1 << 15
"""Largest number of densities that are computed at once and fit into the processor's cache."""


def gaussian_entropy(variance: FloatArray) -> FloatArray:
    """Return the entropy ``½ log(2πe σ²)`` for each variance σ² [nat]."""
    return np.asarray(0.5 * (np.log(variance) + (_LOG_2PI + 1.0)))


def discrete_entropy(weights: FloatArray) -> FloatArray:
    """Return the entropy ``-Σ w log w`` of weights along the last axis [nat]."""
    log = np.log(np.maximum(weights, _TINY))
    return np.asarray(-np.einsum("...l,...l->...", weights, log))


def xlogx(x: FloatArray) -> FloatArray:
    """Return ``x log x`` for x ≥ 0; the result for x = 0 is 0."""
    log = np.log(np.maximum(x, _TINY))
    log *= x
    return np.asarray(log)


def sum_of_largest(entropy: FloatArray, k: int) -> FloatArray:
    """Return the sum of the k largest entropies along the last axis."""
    if k == 1:
        return np.asarray(entropy.max(axis=-1))
    first = max(entropy.shape[-1] - k, 0)
    return np.asarray(np.partition(entropy, first, axis=-1)[..., first:].sum(axis=-1))


def noise_entropy(noise_variance: FloatArray) -> FloatArray:
    """Return the entropies ``½ log(2πe σ_n²(λ))`` (L,) of the noise [nat].

    The entropy of a reading minus the entropy of its noise is the information of the reading. The
    information is never negative and does not depend on the unit of the readings.
    """
    return gaussian_entropy(noise_variance)


def information(variance: FloatArray, noise_variance: FloatArray) -> FloatArray:
    """Return ``½ log(1 + v/σ_n²)`` for variances v (L, m) of the field, given σ_n² (L,) [nat]."""
    of_noise = noise_entropy(noise_variance)
    return gaussian_entropy(variance + noise_variance[:, None]) - of_noise[:, None]


def reported_offset(noise_variance: FloatArray, readings: int) -> float:
    """Return the difference between a plan's values and the information of some readings [nat].

    If all hyperparameter candidates have the same noise, the difference is the entropy of the noise
    of all `readings`. Plans then contain joint entropies ``H[Z]``, as in [Hoang2014]. Otherwise, it
    is zero.
    """
    if np.ptp(noise_variance) > 1e-12 * noise_variance.max():
        return 0.0
    return readings * float(noise_entropy(noise_variance)[0])


class Bracket(NamedTuple):
    """Lower and upper bounds on the entropies of K one-dimensional mixtures.

    Args:
        centred: (L, K) means of the components minus the mean of the mixture.
        total: (K,) variances of the mixtures.
        lower: (K,) lower bounds ``Σ b H_λ``, with the entropies H_λ of the components [nat].
        upper: (K,) upper bounds ``min(Σ b H_λ + H(b), ½ log 2πe Var)`` [nat].
    """

    centred: FloatArray
    total: FloatArray
    lower: FloatArray
    upper: FloatArray


def bracket(b: FloatArray, m: FloatArray, v: FloatArray) -> Bracket:
    """Return bounds on the entropies of K mixtures.

    Args:
        b: (L, K) mixture weights.
        m: (L, K) means.
        v: (L, K) or (L, 1) variances, above 0.
    """
    centred = m - (b * m).sum(axis=0)
    square = centred * centred
    square += v
    square *= b
    total = square.sum(axis=0)
    lower = (b * gaussian_entropy(v)).sum(axis=0)
    most = np.minimum(lower + discrete_entropy(b.T), gaussian_entropy(total))
    upper = np.maximum(lower, most)
    return Bracket(centred, total, lower, upper)


def mixture_entropy(weights: FloatArray, means: FloatArray, variances: FloatArray) -> FloatArray:
    r"""Return the entropy of one-dimensional Gaussian mixtures [nat].

    .. math:: H = -\int p(z) \log p(z)\, dz, \quad
        p(z) = \sum_\lambda b(\lambda) N(z; \mu_\lambda, \sigma_\lambda^2)

    H has the bounds ``Σ b H_λ ≤ H ≤ min(Σ b H_λ + H(b), ½ log 2πe Var)``. If the bounds differ by
    less than 1e-4 nat, the result is the upper bound. Otherwise the integral is computed by the
    first of these rules that applies. The result is clipped to the bounds.

    - similar components: trapezoidal rule for ``∫ p log(p / N)`` with a Gaussian N,
    - components of similar width: trapezoidal rule for ``∫ p log p``,
    - narrow and wide components: trapezoidal rule after the substitution ``z = sinh(u)``,
    - other components: Gauss-Legendre quadrature on intervals around the means.

    The largest observed error is 3e-4 nat. The time is O(L) to O(25 L²) for each mixture.

    Args:
        weights: (…, L) mixture weights.
        means: (…, L) means.
        variances: (…, L) variances, above 0.
    """
    if not weights.shape == means.shape == variances.shape:
        weights, means, variances = np.broadcast_arrays(weights, means, variances)
    shape, L = means.shape[:-1], means.shape[-1]
    b, m, v = (np.ascontiguousarray(a.reshape(-1, L).T) for a in (weights, means, variances))
    value = np.empty(b.shape[1])
    step = max(1, _IN_CACHE // L)
    for start in range(0, b.shape[1], step):
        part = slice(start, start + step)
        here = b[:, part], m[:, part], v[:, part]
        value[part] = entropy_between(here[0], here[2], bracket(*here))
    return np.asarray(value.reshape(shape))


def entropy_between(b: FloatArray, v: FloatArray, known: Bracket) -> FloatArray:
    """Return the entropies (K,) of mixtures whose bounds are known; see `mixture_entropy`.

    Args:
        b: (L, K) mixture weights.
        v: (L, K) variances, above 0.
        known: bounds from `bracket`.
    """
    value = known.upper.copy()
    doubt = known.upper - known.lower
    # "not <=" instead of ">" sends values that are not finite to the general rule.
    (rows,) = np.nonzero(~(doubt <= _CLOSE))
    if not rows.size:
        return np.asarray(value)
    c, total = known.centred, known.total
    if rows.size < len(value):
        b, v, c = b[:, rows], v[:, rows], c[:, rows]
        doubt, total = doubt[rows], total[rows]
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.sqrt(total)
        centred, std = c / size, np.sqrt(v) / size
        live = b > _NEGLIGIBLE
        all_live = bool(live.all())
        narrowest = (std if all_live else np.where(live, std, np.inf)).min(axis=0)
        far = np.abs(centred) + 4.0 * std
        reach = (far if all_live else np.where(live, far, 0.0)).max(axis=0)
    if not all_live:  # components without weight are ignored
        centred, std = np.where(live, centred, 0.0), np.where(live, std, 1.0)
    done = np.zeros(rows.size, dtype=bool)
    for n, h, least, most, widest in _LIKE:
        fits = ~done & (narrowest >= least) & (reach <= most) & (doubt <= widest)
        (mine,) = np.nonzero(fits)
        if not mine.size:
            continue
        done |= fits
        arrays = (b, centred, std)
        if mine.size < rows.size:
            arrays = (b[:, mine], centred[:, mine], std[:, mine])
        value[rows[mine]] = gaussian_entropy(total[mine]) - _missing(*arrays, n, h)
    (rest,) = np.nonzero(~done)
    if rest.size:
        value[rows[rest]] = _general(b[:, rest].T, c[:, rest].T, v[:, rest].T)
    return np.asarray(np.clip(value, known.lower, known.upper))


def _missing(b: FloatArray, c: FloatArray, std: FloatArray, n: int, h: float) -> FloatArray:
    """Return ``∫ p log(p / N(0, 1))`` of K mixtures (L, K) of mean 0 and variance 1.

    The trapezoidal rule has an odd number n of points with the spacing h. The ratio of a
    component's densities at two neighbouring points changes by a constant factor from point to
    point. Three exponentials per component therefore suffice.
    """
    L, K = c.shape
    half = (n - 1) // 2
    z = h * np.arange(-half, half + 1)
    out, step = np.empty(K), max(1, _IN_CACHE // (4 * L))
    for start in range(0, K, step):
        part = slice(start, start + step)
        t, flat = c[:, part], 0.5 / np.square(std[:, part])
        middle = np.exp(-flat * np.square(t))
        middle *= b[:, part]
        middle /= std[:, part]
        shrink = np.exp(-(h * h) * flat)
        slope = np.exp((2.0 * h) * (flat * t))
        p = np.empty((n, t.shape[1]))
        middle.sum(axis=0, out=p[half])
        flat = np.square(shrink, out=flat)
        for side, first in ((1, shrink * slope), (-1, shrink / slope)):
            factor, density = first, middle * first
            density.sum(axis=0, out=p[half + side])
            for number in range(2, half + 1):
                factor *= flat
                density *= factor
                density.sum(axis=0, out=p[half + side * number])
        log = np.log(np.maximum(p, _TINY))
        log += (0.5 * z * z)[:, None]
        out[part] = np.einsum("nk,nk->k", log, p)
    return np.asarray(out * (h / math.sqrt(2.0 * math.pi)))


def _general(b: FloatArray, m: FloatArray, v: FloatArray) -> FloatArray:
    # Division by a typical deviation makes the result independent of the unit of the readings.
    scale = np.sqrt((b * v).sum(axis=1))
    m, std = m / scale[:, None], np.sqrt(v) / scale[:, None]
    live = b > _NEGLIGIBLE
    # Components without weight only cost time.
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
    # "not <=" instead of ">" sends numbers of steps that are not finite to `_wide`.
    rows = np.flatnonzero(~(steps <= least))
    if rows.size:
        value[rows] = _wide(b[rows], m[rows], std[rows], live[rows], low[rows], high[rows])
    return np.asarray(value + np.log(scale))


def _wide(
    b: FloatArray,
    m: FloatArray,
    std: FloatArray,
    live: BoolArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Return ``-∫ p log p`` of K mixtures (K, L) whose standard deviations differ much."""
    value, least = np.empty(len(b)), 0
    narrow = np.where(live, std, np.inf).argmin(axis=1)[:, None]
    centre = np.take_along_axis(m, narrow, axis=1)[:, 0]
    width = _CENTRE * np.take_along_axis(std, narrow, axis=1)[:, 0]
    first, last = np.arcsinh((low - centre) / width), np.arcsinh((high - centre) / width)
    # At each component, a step must not be longer than the component's standard deviation.
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
    """Fill ``value[rows]`` with the results of `integrate`, in chunks of bounded memory."""
    step = max(1, _IN_CACHE // cost)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        value[part] = integrate(*(array[part] for array in arrays), *more)


def _density(z: FloatArray, b: FloatArray, m: FloatArray, std: FloatArray) -> FloatArray:
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
    return np.asarray(-h * xlogx(p).sum(axis=1))


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
    """Return ``-∫ p log p`` of K mixtures (K, L) from n equal steps of u.

    u is defined by ``z = centre + width sinh(u)``.
    """
    h = (last - first) / n
    u = first[:, None] + h[:, None] * np.arange(n + 1)
    z = centre[:, None] + width[:, None] * np.sinh(u)
    p = _density(z, b, m, std)
    return np.asarray(-h * width * (np.cosh(u) * xlogx(p)).sum(axis=1))


def _panels(b: FloatArray, m: FloatArray, std: FloatArray) -> FloatArray:
    """Return ``-∫ p log p`` of K mixtures (K, L) by Gauss-Legendre quadrature on intervals."""
    edges = np.sort((m[:, :, None] + std[:, :, None] * _OFFSETS).reshape(len(m), -1), axis=1)
    half = 0.5 * np.diff(edges, axis=1)
    centre = 0.5 * (edges[:, 1:] + edges[:, :-1])
    z = (centre[:, :, None] + half[:, :, None] * _POINTS).reshape(len(m), -1)
    p = _density(z, b, m, std)
    area = (half[:, :, None] * _WEIGHTS).reshape(len(m), -1)
    return np.asarray(-(area * xlogx(p)).sum(axis=1))
