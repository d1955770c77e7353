"""From a predictive mixture to S successor beliefs: by cells, or by the published draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from gp_active_sensing.planning.entropy import discrete_entropy
from gp_active_sensing.types import FloatArray

__all__ = ["Successors", "by_cells", "by_draws"]

_LOG_2PI = math.log(2.0 * math.pi)
_OFFSETS = np.array([-4.5, -3.0, -2.0, -1.25, -0.6, 0.0, 0.6, 1.25, 2.0, 3.0, 4.5])
"""Where the mixture's distribution function is tabulated, in standard deviations."""


@dataclass(frozen=True)
class Successors:
    """What may be read at each of A candidates, in S branches.

    Args:
        values: (A, S) reading of each branch.
        probability: (A, S); sums to one over the branches.
        weights: (A, S, L) belief after it.
        reward: (A,) stage reward [nat].
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
    r"""Cut the mixture of each candidate into S cells of about equal probability.

    With ``w_i(λ) = P(Z ∈ cell i | λ)``, ``w_i = Σ b(λ) w_i(λ)`` and
    ``b_i(λ) = b(λ) w_i(λ) / w_i`` the beliefs average exactly to the present one,
    ``Σ_i w_i b_i = b``. The reading of a branch is the cell's median; the reward is what a reading
    tells about field and cell,

    .. math:: \sum_\lambda b(\lambda) H[Z_x | \lambda] + H(b) - \sum_i w_i H(b_i).

    The chain-rule bounds of `bounds` hold at every state of the tree this makes (docs/theory.md).

    Args:
        weights: (L,) belief b.
        mean: (L, A) predictive means.
        variance: (L, A) predictive variances, noise included.
        entropy: (L, A) ``H[Z_x | λ]`` less the reference entropy.
        samples: number of cells S.
    """
    std = np.sqrt(variance)
    cuts, medians = _quantiles(weights, mean, std, samples)
    below = ndtr((cuts[None] - mean[:, :, None]) / std[:, :, None])
    ends = np.zeros((*mean.shape, 1))
    per_lambda = np.diff(np.concatenate([ends, below, ends + 1.0], axis=2), axis=2)
    joint = np.moveaxis(weights[:, None, None] * per_lambda, 0, 2)
    probability = joint.sum(axis=2)
    # A cell no component reaches keeps the belief; its probability of zero removes it anyway.
    empty = probability <= 0.0
    after = np.where(
        empty[:, :, None], weights, joint / np.where(empty, 1.0, probability)[:, :, None]
    )
    told = discrete_entropy(weights) - (probability * discrete_entropy(after)).sum(axis=1)
    # Rounding may make the information about a cell a hair negative; it cannot be.
    reward = weights @ entropy + np.maximum(told, 0.0)
    return Successors(medians, probability, after, reward)


def _quantiles(
    weights: FloatArray, mean: FloatArray, std: FloatArray, samples: int
) -> tuple[FloatArray, FloatArray]:
    """Return cell boundaries (A, S-1) and medians (A, S), by interpolating the cdf.

    Any boundaries are sound; these only have to be near to equal probability.
    """
    live = weights > 1e-9 * weights.max()
    b, m, s = weights[live], mean[live], std[live]
    A = mean.shape[1]
    grid = np.sort((m[:, :, None] + s[:, :, None] * _OFFSETS).swapaxes(0, 1).reshape(A, -1), axis=1)
    cdf = np.tensordot(b, ndtr((grid[None] - m[:, :, None]) / s[:, :, None]), axes=1) / b.sum()
    levels = np.arange(1, 2 * samples) / (2.0 * samples)
    points = np.stack([np.interp(levels, c, g) for c, g in zip(cdf, grid, strict=True)])
    return points[:, 1::2], points[:, 0::2]


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
    L, A = mean.shape
    uniform = rng.random((A, samples))
    normal = rng.standard_normal((A, samples))
    component = np.minimum(np.searchsorted(np.cumsum(weights), uniform, side="right"), L - 1)
    column = np.arange(A)[:, None]
    z = mean[component, column] + np.sqrt(variance[component, column]) * normal
    z = np.clip(z, *limit)
    deviation = z[:, :, None] - mean.T[:, None, :]
    v = variance.T[:, None, :]
    with np.errstate(divide="ignore"):
        log_joint = np.log(weights) - 0.5 * (deviation**2 / v + np.log(v) + _LOG_2PI)
    peak = log_joint.max(axis=2)
    density = np.exp(log_joint - peak[:, :, None])
    total = density.sum(axis=2)
    surprise = -(peak + np.log(total))
    return Successors(
        z,
        np.full((A, samples), 1.0 / samples),
        density / total[:, :, None],
        surprise.mean(axis=1) - reference,
    )
