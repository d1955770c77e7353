"""From predictive mixtures to S successor beliefs each: by cells, or by the published draws.

Leading dimensions (…) are states that have visited the same places: their readings differ, and
so their weights and means; their variances do not.
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
"""Where the mixture's distribution function is tabulated, in standard deviations."""
_CHUNK = 1 << 18
"""Numbers in the largest temporary array of such a table."""
_OFF = 0.01
"""How far a boundary may be from its level before it is looked for in a table."""
_SKEW, _EXCESS = 0.4, 0.8
"""How far from a Gaussian four moments still give boundaries and medians."""
_AWAY, _NARROW = 1.5, 0.5
"""How far off a mean and how narrow a component may be for that [deviations of the mixture]."""
_NEGLIGIBLE = 1e-6
"""Weight, relative to the largest, below which a component does not shape the cells."""


class Successors(NamedTuple):
    """Possible readings at each of A candidates, in S branches.

    Args:
        values: (…, A, S) reading of each branch.
        probability: (…, A, S); sums to one over the branches.
        weights: (…, A, S, L) belief after it.
        reward: (…, A) stage reward [nat].
    """

    values: FloatArray
    probability: FloatArray
    weights: FloatArray
    reward: FloatArray

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        return sum(array.nbytes for array in self)


def by_cells(
    weights: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    entropy: FloatArray,
    samples: int,
) -> Successors:
    r"""Cut the mixture of each candidate into S cells of about equal probability.

    With ``w_i(λ) = P(Z ∈ cell i | λ)``, ``w_i = Σ b(λ) w_i(λ)`` and
    ``b_i(λ) = b(λ) w_i(λ) / w_i`` the beliefs average exactly to the present one,
    ``Σ_i w_i b_i = b``. The reading of a branch is the cell's median; the reward is what a reading
    tells about field and cell,

    .. math:: \sum_\lambda b(\lambda) H[Z_x | \lambda] + H(b) - \sum_i w_i H(b_i).

    The chain-rule bounds of `bounds` hold at every state of the tree this makes (docs/theory.md).

    Args:
        weights: (…, L) belief b.
        mean: (…, L, A) predictive means.
        variance: (L, A) predictive variances, noise included.
        entropy: (L, A) ``H[Z_x | λ]`` less the reference entropy.
        samples: number of cells S.
    """
    lead, (L, A) = weights.shape[:-1], variance.shape
    shape = (*lead, A)
    # λ comes first and all K mixtures, candidate by candidate within a state, last: sums over the
    # few λ then run along whole rows of memory.
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
    # A cell no component reaches keeps the belief; its probability of zero removes it anyway.
    empty = probability <= 0.0
    if empty.any():
        joint = np.where(empty, b[:, None], joint)
        after = joint / np.where(empty, 1.0, probability)
    else:
        after = np.divide(joint, probability, out=joint)
    # Rounding may make the information about a cell a hair negative; it cannot be.
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
    """Cut K mixtures (L, K) into S cells.

    Returns:
        The probability (L, S-1, K) of each component below each boundary, and the medians (S, K).
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
    """Return the (L, C, K) probability of each component below cuts (C, K)."""
    t = cuts - m[:, None]
    t /= std[:, None]
    return np.asarray(ndtr(t, out=t))


def _expanded(
    b: FloatArray, m: FloatArray, std: FloatArray, samples: int
) -> tuple[FloatArray, BoolArray]:
    """Return quantiles (2S-1, K) of K mixtures (L, K) from four moments, and where to use them.

    By the expansion of Cornish and Fisher, which holds near a Gaussian. Any boundaries are sound;
    these only have to be near to equal probability, which `_cut` checks as well.
    """
    middle = (b * m).sum(axis=0)
    c = m - middle
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sqrt((b * (c * c + std * std)).sum(axis=0))
        # In deviations of the mixture.
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
    """Return quantiles (K, 2S-1) of any K mixtures (K, L), by interpolating their tabulated cdf."""
    # A component without weight would only spread the table: it copies the weightiest one.
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
    """Draw S τ-truncated observations of each candidate. [Hoang2014, Definition 1 and Eq. 8].

    Args:
        weights: (L,) belief b.
        mean: (L, A) predictive means.
        variance: (L, A) predictive variances, noise included.
        reference: reference entropy of the belief, taken off the reward.
        samples: number of draws S.
        rng: keyed by the state's path, so that the order of work does not change the draws.
        limit: readings are clipped to this interval, ±τ̂ about the centre.
    """
    A = mean.shape[1]
    uniform, normal = rng.random((A, samples)), rng.standard_normal((A, samples))
    std = np.sqrt(variance)
    # The last λ takes what rounding leaves over.
    component = np.cumsum(weights)[:-1].searchsorted(uniform.ravel(), side="right")
    component *= A
    component += np.repeat(np.arange(A), samples)
    z = std.ravel().take(component)
    z *= normal.ravel()
    z += mean.ravel().take(component)
    z = np.clip(z, *limit, out=z).reshape(A, samples)
    with np.errstate(divide="ignore"):
        constant = np.log(weights)[:, None] - np.log(std) - 0.5 * _LOG_2PI
    # ``log b(λ) p(z | λ)``, λ first: sums over the few λ then run along whole rows of memory.
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
