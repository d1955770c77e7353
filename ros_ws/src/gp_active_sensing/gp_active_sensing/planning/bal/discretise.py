"""Branches for the possible values of a reading: cells of equal probability, or random draws.

The leading dimensions (…) of arrays run over states with the same visited places. The states differ
in weights and means, and have equal variances.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from gp_active_sensing.planning.entropy import discrete_entropy, xlogx
from gp_active_sensing.types import BoolArray, FloatArray
from gp_active_sensing.util.ties import first_best

_LOG_2PI = math.log(2.0 * math.pi)
_OFFSETS = np.array([-2.8, -1.6, -0.8, 0.0, 0.8, 1.6, 2.8])
"""Distances from a component's mean at which its distribution function is tabulated [standard
deviations]."""
_CHUNK = 1 << 18
"""Largest number of entries of a table of distribution functions."""
_OFF = 0.01
"""Largest accepted error of the probability below a cell boundary."""
_SKEW, _EXCESS = 0.4, 0.8
"""Skewness and excess kurtosis up to which the cells are computed from four moments."""
_AWAY, _NARROW = 1.5, 0.5
"""Limits for cells from four moments [standard deviations of the mixture]: largest distance of a
component's mean from the mixture's mean, and smallest standard deviation of a component."""
_NEGLIGIBLE = 1e-6
"""Weight, relative to the largest weight, below which a component has no effect on the cells."""


class Successors(NamedTuple):
    """Possible readings at each of A candidate places, in S branches.

    Args:
        values: (…, A, S) reading of each branch.
        probability: (…, A, S) probability of each branch.
        weights: (…, A, S, L) weights of the hyperparameter candidates after each branch.
        reward: (…, A) reward of a reading at each place [nat].
    """

    values: FloatArray
    probability: FloatArray
    weights: FloatArray
    reward: FloatArray


def by_cells(
    weights: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    entropy: FloatArray,
    samples: int,
) -> Successors:
    r"""Divide the predictive distribution at each place into S cells of about equal probability.

    Let ``w_i(λ) = P(Z ∈ cell i | λ)``, ``w_i = Σ b(λ) w_i(λ)`` and
    ``b_i(λ) = b(λ) w_i(λ) / w_i``. The weights b_i after the branches average exactly to the
    present weights, ``Σ_i w_i b_i = b``. The reading of a branch is the median of its cell. The
    reward is

    .. math:: \sum_\lambda b(\lambda) H[Z_x | \lambda] + H(b) - \sum_i w_i H(b_i).

    The chain-rule bounds of `bounds` hold at every state of the resulting tree (docs/theory.md).

    Args:
        weights: (…, L) weights b of the hyperparameter candidates.
        mean: (…, L, A) predictive means.
        variance: (L, A) predictive variances with the noise.
        entropy: (L, A) entropies ``H[Z_x | λ]`` minus the entropy of the noise [nat].
        samples: number S of cells.
    """
    lead, (L, A) = weights.shape[:-1], variance.shape
    shape = (*lead, A)
    # λ comes first and the K mixtures come last, so sums over λ run along contiguous memory.
    rows = weights.reshape(-1, L).T
    b = rows.repeat(A, axis=1)  # (L, K)
    m = mean.reshape(-1, L, A).swapaxes(0, 1).reshape(L, -1)
    std = np.sqrt(variance)[:, None].repeat(rows.shape[1], axis=1).reshape(L, -1)
    below, medians = _cut(b, m, std, samples)
    joint = np.empty((L, samples, b.shape[1]))  # b(λ) P(Z ∈ cell | λ)
    joint[:, :-1] = below
    joint[:, -1] = 1.0
    joint[:, 1:] -= below
    joint *= b[:, None]
    probability = joint.sum(axis=0)
    # With p = b w for the joint probabilities, Σ_i w_i H(b_i) = Σ_i w_i log w_i - Σ p log p.
    doubt = xlogx(joint).sum(axis=(0, 1)) - xlogx(probability).sum(axis=0)
    told = discrete_entropy(weights).ravel().repeat(A) + doubt
    # A cell of probability zero keeps the belief.
    empty = probability <= 0.0
    if empty.any():
        joint = np.where(empty, b[:, None], joint)
        after = joint / np.where(empty, 1.0, probability)
    else:
        after = np.divide(joint, probability, out=joint)
    # The information about a cell is not negative, except for rounding errors.
    reward = weights @ entropy + np.maximum(told, 0.0).reshape(shape)
    return Successors(
        np.ascontiguousarray(medians.T).reshape(*shape, samples),
        np.ascontiguousarray(probability.T).reshape(*shape, samples),
        np.ascontiguousarray(after.T).reshape(*shape, samples, L),
        reward,
    )


def _cut(
    b: FloatArray, m: FloatArray, std: FloatArray, samples: int
) -> tuple[FloatArray, FloatArray]:
    """Divide K mixtures (L, K) into S cells.

    Returns:
        below: (L, S-1, K) probability that a component is below a boundary between cells.
        medians: (S, K) medians of the cells.
    """
    points, near = _expanded(b, m, std, samples)
    cuts = points[1::2]
    below = _below(cuts, m, std)
    level = np.arange(1, samples)[:, None] / samples
    off = np.abs((below * b[:, None]).sum(axis=0) - level) > _OFF
    bad = ~near | off.any(axis=0) | ~(points[1:] >= points[:-1]).all(axis=0)
    medians = np.ascontiguousarray(points[0::2])
    (again,) = np.nonzero(bad)
    step = max(1, _CHUNK // (len(_OFFSETS) * len(b) ** 2))
    for start in range(0, len(again), step):
        part = again[start : start + step]
        few, mean, width = b[:, part], m[:, part], std[:, part]
        points = _tabulated(few.T, mean.T, width.T, samples).T
        below[:, :, part] = _below(points[1::2], mean, width)
        medians[:, part] = points[0::2]
    return below, medians


def _below(cuts: FloatArray, m: FloatArray, std: FloatArray) -> FloatArray:
    """Return the probability (L, C, K) that a component (L, K) is below a cut (C, K)."""
    t = cuts - m[:, None]
    t /= std[:, None]
    return np.asarray(ndtr(t, out=t))


def _expanded(
    b: FloatArray, m: FloatArray, std: FloatArray, samples: int
) -> tuple[FloatArray, BoolArray]:
    """Return Cornish-Fisher quantiles (2S-1, K) of K mixtures (L, K).

    The second array (K,) is False for mixtures whose quantiles are inaccurate. `_cut` also checks
    that the cells have about equal probability.
    """
    middle = (b * m).sum(axis=0)
    c = m - middle
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sqrt((b * (c * c + std * std)).sum(axis=0))
        # In standard deviations of the mixture.
        c /= size
        width = std / size
    alike = (np.abs(c) <= _AWAY) & (width >= _NARROW)
    near = (alike | (b <= _NEGLIGIBLE)).all(axis=0)
    c, width = np.where(alike, c, 0.0), np.where(alike, width, 1.0)
    c2, v = c * c, width * width
    skew = (b * (c * (c2 + 3.0 * v))).sum(axis=0)
    excess = (b * (c2 * (c2 + 6.0 * v) + 3.0 * (v * v))).sum(axis=0) - 3.0
    near &= (np.abs(skew) <= _SKEW) & (np.abs(excess) <= _EXCESS)
    z, skewed, peaked, twice = _terms(samples)
    points = z + skew * skewed + excess * peaked - (skew * skew) * twice
    return middle + size * points, near


@lru_cache(maxsize=8)
def _terms(samples: int) -> tuple[FloatArray, ...]:
    z = ndtri(np.arange(1, 2 * samples) / (2.0 * samples))[:, None]
    skewed, peaked = (z * z - 1.0) / 6.0, (z**3 - 3.0 * z) / 24.0
    return z, skewed, peaked, (2.0 * z**3 - 5.0 * z) / 36.0


def _tabulated(b: FloatArray, m: FloatArray, std: FloatArray, samples: int) -> FloatArray:
    """Return quantiles (K, 2S-1) of K mixtures (K, L), interpolated from their tabulated cdf."""
    # A component of negligible weight copies the heaviest component, so the table stays narrow.
    live = b > _NEGLIGIBLE * b.max(axis=-1, keepdims=True)
    source = np.where(live, np.arange(b.shape[1]), first_best(b)[:, None])
    centre = np.take_along_axis(m, source, axis=-1)
    width = np.take_along_axis(std, source, axis=-1)
    table = np.sort((centre[..., None] + width[..., None] * _OFFSETS).reshape(len(b), -1), axis=-1)
    cdf = ndtr((table[..., None] - m[:, None]) / std[:, None])
    cdf = (cdf @ b[..., None])[..., 0]
    levels = np.arange(1, 2 * samples) / (2.0 * samples)
    above = (cdf[..., None, :] <= levels[:, None]).sum(axis=-1)
    right = np.clip(above, 1, table.shape[-1] - 1)
    z0, z1 = (np.take_along_axis(table, i, axis=-1) for i in (right - 1, right))
    c0, c1 = (np.take_along_axis(cdf, i, axis=-1) for i in (right - 1, right))
    share = np.clip((levels - c0) / np.maximum(c1 - c0, 1e-300), 0.0, 1.0)
    return np.asarray(np.maximum.accumulate(z0 + share * (z1 - z0), axis=-1))


def by_draws(
    weights: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    reference: float,
    samples: int,
    rng: np.random.Generator,
    limit: tuple[float, float],
) -> Successors:
    """Draw S τ-truncated readings at each place. [Hoang2014, Definition 1 and Eq. 8].

    Args:
        weights: (L,) weights b of the hyperparameter candidates.
        mean: (L, A) predictive means.
        variance: (L, A) predictive variances with the noise.
        reference: expected entropy of the noise, which is subtracted from the reward [nat].
        samples: number S of draws.
        rng: source of randomness, seeded by the path to the state.
        limit: interval to which readings are clipped.
    """
    A = mean.shape[1]
    uniform, normal = rng.random((A, samples)), rng.standard_normal((A, samples))
    std = np.sqrt(variance)
    # The last λ has no upper limit, so rounding errors leave no gap.
    component = np.cumsum(weights)[:-1].searchsorted(uniform.ravel(), side="right")
    component *= A
    component += np.repeat(np.arange(A), samples)
    z = std.ravel().take(component)
    z *= normal.ravel()
    z += mean.ravel().take(component)
    z = np.clip(z, *limit, out=z).reshape(A, samples)
    with np.errstate(divide="ignore"):
        constant = np.log(weights)[:, None] - np.log(std) - 0.5 * _LOG_2PI
    # ``log b(λ) p(z | λ)`` with λ first, so sums over λ run along contiguous memory.
    log_joint = z - mean[:, :, None]
    log_joint /= std[:, :, None]
    log_joint *= log_joint
    log_joint *= -0.5
    log_joint += constant[:, :, None]
    peak = log_joint.max(axis=0)
    log_joint -= peak
    np.exp(log_joint, out=log_joint)
    total = log_joint.sum(axis=0)
    log_joint /= total
    return Successors(
        z,
        np.full(z.shape, 1.0 / samples),
        np.moveaxis(log_joint, 0, -1),
        -(peak + np.log(total)).mean(axis=1) - reference,
    )
