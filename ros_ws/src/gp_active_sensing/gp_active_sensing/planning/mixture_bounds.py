"""Bounds on the entropy of a Gaussian mixture from distances between its components, in pairs."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.planning.entropy import gaussian_entropy
from gp_active_sensing.types import FloatArray

__all__ = ["pairwise_bounds"]


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
