"""From predictive mixtures to S successor beliefs each: by cells, or by the published draws.

Leading dimensions (…) are states that have visited the same places: their readings differ, and
so their weights and means; their variances do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from gp_active_sensing.planning.entropy import discrete_entropy
from gp_active_sensing.ties import first_best
from gp_active_sensing.types import FloatArray

__all__ = ["Successors", "by_cells", "by_draws", "drawn_reward"]

_LOG_2PI = math.log(2.0 * math.pi)
_OFFSETS = np.array([-2.8, -1.6, -0.8, 0.0, 0.8, 1.6, 2.8])
"""Where the mixture's distribution function is tabulated, in standard deviations."""
_NEGLIGIBLE = 1e-6
"""Weight, relative to the largest, below which a component does not shape the cells."""


@dataclass(frozen=True)
class Successors:
    """What may be read at each of A candidates, in S branches.

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
        arrays = (self.values, self.probability, self.weights, self.reward)
        return sum(array.nbytes for array in arrays)


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
    std = np.sqrt(variance).T
    mean = np.swapaxes(mean, -1, -2)  # (…, A, L)
    cuts, medians = _quantiles(weights[..., None, :], mean, std, samples)
    below = ndtr((cuts[..., None] - mean[..., None, :]) / std[:, None, :])
    joint = np.empty((*below.shape[:-2], samples, below.shape[-1]))
    joint[..., :-1, :] = below
    joint[..., -1, :] = 1.0
    joint[..., 1:, :] -= below
    joint *= weights[..., None, None, :]
    probability = joint.sum(axis=-1)
    # A cell no component reaches keeps the belief; its probability of zero removes it anyway.
    empty = probability <= 0.0
    if empty.any():
        after = np.where(
            empty[..., None],
            weights[..., None, None, :],
            joint / np.where(empty, 1.0, probability)[..., None],
        )
    else:
        after = joint / probability[..., None]
    told = discrete_entropy(weights)[..., None]
    told = told - (probability * discrete_entropy(after)).sum(axis=-1)
    # Rounding may make the information about a cell a hair negative; it cannot be.
    reward = weights @ entropy + np.maximum(told, 0.0)
    return Successors(medians, probability, after, reward)


def _quantiles(
    weights: FloatArray, mean: FloatArray, std: FloatArray, samples: int
) -> tuple[FloatArray, FloatArray]:
    """Return cell boundaries (…, A, S-1) and medians (…, A, S), by interpolating the cdf.

    Any boundaries are sound; these only have to be near to equal probability.
    """
    *lead, A, L = mean.shape
    # A component without weight would only spread the table: it copies the weightiest one.
    live = weights > _NEGLIGIBLE * weights.max(axis=-1, keepdims=True)
    first = first_best(weights)[..., None]
    source = np.where(live, np.arange(L), first)
    source = np.broadcast_to(source, mean.shape)
    m = np.take_along_axis(mean, source, axis=-1)
    s = np.take_along_axis(np.broadcast_to(std, mean.shape), source, axis=-1)
    table = np.sort((m[..., None] + s[..., None] * _OFFSETS).reshape(*lead, A, -1), axis=-1)
    cdf = ndtr((table[..., None] - mean[..., None, :]) / std[:, None, :])
    cdf = (cdf @ np.broadcast_to(weights, mean.shape)[..., None])[..., 0]
    levels = np.arange(1, 2 * samples) / (2.0 * samples)
    above = (cdf[..., None, :] <= levels[:, None]).sum(axis=-1)
    right = np.clip(above, 1, table.shape[-1] - 1)
    z0, z1 = (np.take_along_axis(table, i, axis=-1) for i in (right - 1, right))
    c0, c1 = (np.take_along_axis(cdf, i, axis=-1) for i in (right - 1, right))
    share = np.clip((levels - c0) / np.maximum(c1 - c0, 1e-300), 0.0, 1.0)
    points = np.maximum.accumulate(z0 + share * (z1 - z0), axis=-1)
    return points[..., 1::2], points[..., 0::2]


def by_draws(
    weights: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    reference: float,
    samples: int,
    rng: np.random.Generator,
    limit: tuple[float, float],
    *,
    common: bool = False,
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
        common: all candidates share the same underlying uniform and normal numbers, which takes
            much of the sampling error out of comparisons between them.
    """
    z, log_joint = _drawn(weights, mean, variance, samples, rng, limit, common)
    peak, total = _normalise(log_joint)
    log_joint /= total
    return Successors(
        z,
        np.full(z.shape, 1.0 / samples),
        np.moveaxis(log_joint, 0, -1),
        -(peak + np.log(total)).mean(axis=1) - reference,
    )


def drawn_reward(
    weights: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    reference: float,
    samples: int,
    rng: np.random.Generator,
    limit: tuple[float, float],
    *,
    common: bool = False,
) -> FloatArray:
    """Return the (A,) rewards of `by_draws` alone: what the last stage needs."""
    _, log_joint = _drawn(weights, mean, variance, samples, rng, limit, common)
    peak, total = _normalise(log_joint)
    return np.asarray(-(peak + np.log(total)).mean(axis=1) - reference)


def _drawn(
    weights: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    samples: int,
    rng: np.random.Generator,
    limit: tuple[float, float],
    common: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return the readings (A, S) and ``log b(λ) p(z | λ)``, (L, A, S).

    λ comes first, so that sums over the few λ run along whole rows of memory.
    """
    A = mean.shape[1]
    shape = (1 if common else A, samples)
    uniform = np.broadcast_to(rng.random(shape), (A, samples))
    normal = np.broadcast_to(rng.standard_normal(shape), (A, samples))
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
    log_joint = z - mean[:, :, None]
    log_joint /= std[:, :, None]
    log_joint *= log_joint
    log_joint *= -0.5
    log_joint += constant[:, :, None]
    return z, log_joint


def _normalise(log_joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Put ``exp(log_joint - peak)`` in place of (L, …); return peak and its sum over λ."""
    peak = log_joint.max(axis=0)
    log_joint -= peak
    np.exp(log_joint, out=log_joint)
    return peak, log_joint.sum(axis=0)
