"""Bounds on the last stage where candidates are many, from the variance or pair distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp_active_sensing.planning.bal.discretise import Successors
from gp_active_sensing.planning.entropy import discrete_entropy, gaussian_entropy
from gp_active_sensing.types import FloatArray

if TYPE_CHECKING:
    from gp_active_sensing.planning.bal.tree import StateBlock

__all__ = ["last_stage_bounds", "pairwise_bounds"]


def pairwise_bounds(
    weights: FloatArray, means: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return bounds on the entropy of one-dimensional Gaussian mixtures [nat].

    .. math:: \sum_i b_i H_i - \sum_i b_i \log \sum_j b_j e^{-B_{ij}} \le H \le
        \sum_i b_i H_i - \sum_i b_i \log \sum_j b_j e^{-K_{ij}}

    with the Bhattacharyya distance B and the Kullback-Leibler divergence K of components i and j
    [Kolchinsky2017]. Both lie within ``Σ b H`` and ``Σ b H + H(b)``. (docs/theory.md)

    Args:
        weights: (…, L).
        means: (…, L).
        variances: (…, L), above 0.

    Returns:
        Two arrays (…). Time O(L²) each.
    """
    weights, means, variances = np.broadcast_arrays(weights, means, variances)
    square = (means[..., :, None] - means[..., None, :]) ** 2
    v_i, v_j = variances[..., :, None], variances[..., None, :]
    distance = 0.25 * square / (v_i + v_j)
    distance += 0.5 * np.log(0.5 * (v_i + v_j) / np.sqrt(v_i * v_j))
    divergence = 0.5 * (np.log(v_j / v_i) + (v_i + square) / v_j - 1.0)
    known = (weights * gaussian_entropy(variances)).sum(axis=-1)
    return known + _overlap(weights, distance), known + _overlap(weights, divergence)


def _overlap(weights: FloatArray, distance: FloatArray) -> FloatArray:
    """Return ``-Σ_i b_i log Σ_j b_j exp(-d_ij)``, a component without weight counting nothing."""
    near = (np.exp(-np.maximum(distance, 0.0)) @ weights[..., None])[..., 0]
    live = weights > 0.0
    return np.asarray(-(weights * np.log(np.where(live, near, 1.0))).sum(axis=-1))


_CHUNK = 2_000_000
"""Numbers in the largest temporary array."""


def last_stage_bounds(
    block: StateBlock, found: Successors, reference: FloatArray, *, pairwise: bool = False
) -> tuple[FloatArray, FloatArray]:
    r"""Return bounds (r, A, S) on the states after each branch, with one reading to come.

    For every place y that may still be read, over the mixture of the branch,

    .. math:: \sum_\lambda b(\lambda) H[Z_y | \lambda] \le H[Z_y] \le \min\Big(
        \sum_\lambda b(\lambda) H[Z_y | \lambda] + H(b),\
        \tfrac12 \log 2\pi e \operatorname{Var}[Z_y] \Big)

    since of all densities with one variance the Gaussian has the largest entropy. Where the
    candidates λ agree about y that is far below H(b). Time O(A S L m) a row.

    Args:
        block: states with two readings to come.
        found: its branches.
        reference: (L,) reference entropies.
        pairwise: bound by the divergences of the components as well; time O(A S L² m).
    """
    sequence, noise = block.sequence, block.sequence.problem.noise
    A, m = len(sequence.candidates), len(sequence.locations)
    S = found.probability.shape[2]
    lower, upper = np.empty(found.probability.shape), np.empty(found.probability.shape)
    step = max(1, _CHUNK // (S * len(noise) * m * (len(noise) if pairwise else 1)))
    # Deviations from one mean of the map: squares below then are of small numbers.
    deviation = block.mean - (block.weights[:, None] @ block.mean)
    for start in range(0, A, step):
        sequence.problem.check()
        part = slice(start, min(start + step, A))
        latent = np.swapaxes(sequence.latent_after(part), 0, 1)  # (a, L, m)
        variance = latent + noise[:, None]
        entropy = np.swapaxes(sequence.problem.entropy(np.swapaxes(latent, 0, 1)), 0, 1)
        gain = np.swapaxes(sequence.gain[:, part], 0, 1)
        squared = gain * gain
        closed = ~sequence.allowed_after(part)[:, None]
        here = sequence.candidates[part]
        for row in range(len(block.row)):
            b = found.weights[row, part]  # (a, S, L)
            told = (b @ reference)[..., None]
            expected = b @ entropy
            surprise = found.values[row, part][:, :, None] - block.mean[row][:, here].T[:, None]
            # Var = Σ b σ² + Σ b μ² - (Σ b μ)², with μ = deviation + gain · surprise in each branch.
            mean, weighted = deviation[row], b * surprise
            centre = b @ mean + weighted @ gain
            total = b @ (variance + mean * mean) + 2.0 * (weighted @ (gain * mean))
            total += (weighted * surprise) @ squared - centre * centre
            total = np.maximum(total, b @ variance)
            most = np.minimum(
                gaussian_entropy(total) - told, expected + discrete_entropy(b)[..., None]
            )
            if pairwise:
                mu = np.swapaxes(mean + surprise[..., None] * gain[:, None], 2, 3)
                spread = np.swapaxes(variance, 1, 2)[:, None]
                _, near = pairwise_bounds(b[:, :, None], mu, spread)
                most = np.minimum(most, near - told)
            lower[row, part] = np.where(closed, -np.inf, expected).max(axis=-1)
            upper[row, part] = np.where(closed, -np.inf, most).max(axis=-1)
    # A dead end: no reading to come, nothing to bound.
    lower = np.where(np.isfinite(lower), lower, 0.0)
    return lower, np.maximum(lower, np.where(np.isfinite(upper), upper, 0.0))
