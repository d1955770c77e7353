"""Bounds on the last stage where candidates are many: a Gaussian has the largest entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp_active_sensing.planning.bal.discretise import Successors
from gp_active_sensing.planning.entropy import discrete_entropy, gaussian_entropy
from gp_active_sensing.planning.mixture_bounds import pairwise_bounds
from gp_active_sensing.types import FloatArray

if TYPE_CHECKING:
    from gp_active_sensing.planning.bal.tree import Block

__all__ = ["last_stage_bounds"]

_CHUNK = 2_000_000
"""Numbers in the largest temporary array."""


def last_stage_bounds(
    block: Block, found: Successors, reference: FloatArray, *, pairwise: bool = False
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
    for start in range(0, A, step):
        sequence.problem.check()
        part = slice(start, min(start + step, A))
        latent = sequence.latent_after(part)
        entropy = sequence.problem.entropy(latent)  # (L, a, m)
        variance = latent + noise[:, None, None]
        ahead = sequence.allowed_after(part)
        here = sequence.candidates[part]
        for row in range(len(block.row)):
            weights = found.weights[row, part]  # (a, S, L)
            expected = np.einsum("asl,lam->asm", weights, entropy, optimize=True)
            # Var = Σ b (σ² + (μ - Σ b μ)²), with μ = mean + gain · surprise in each branch.
            surprise = found.values[row, part][:, :, None] - block.mean[row][:, here].T[:, None, :]
            gain = np.swapaxes(sequence.gain[:, part], 0, 1)[:, None]
            mu = block.mean[row] + surprise[..., None] * gain  # (a, S, L, m)
            centre = np.einsum("asl,aslm->asm", weights, mu, optimize=True)
            mu -= centre[:, :, None]
            total = np.einsum("asl,aslm->asm", weights, mu * mu, optimize=True)
            total += np.einsum("asl,lam->asm", weights, variance, optimize=True)
            moment = gaussian_entropy(total) - (weights @ reference)[..., None]
            chain = expected + discrete_entropy(weights)[..., None]
            most = np.minimum(moment, chain)
            if pairwise:
                spread = np.moveaxis(variance, 0, -1)[:, None]  # (a, 1, m, L)
                _, near = pairwise_bounds(weights[:, :, None], np.swapaxes(mu, 2, 3), spread)
                most = np.minimum(most, near - (weights @ reference)[..., None])
            closed = ~ahead[:, None]
            expected[np.broadcast_to(closed, expected.shape)] = -np.inf
            most[np.broadcast_to(closed, most.shape)] = -np.inf
            lower[row, part] = expected.max(axis=-1)
            upper[row, part] = most.max(axis=-1)
    # A dead end: no reading to come, nothing to bound.
    lower = np.where(np.isfinite(lower), lower, 0.0)
    return lower, np.maximum(lower, np.where(np.isfinite(upper), upper, 0.0))
