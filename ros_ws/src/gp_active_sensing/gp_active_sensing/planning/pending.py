"""The belief after the readings at places that other probes are on their way to."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from gp_active_sensing.belief import Belief, Posterior
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["joint_given_pending", "marginals_given_pending", "unread"]


def joint_given_pending(belief: Belief, locations: IntArray, pending: Collection[int]) -> Posterior:
    """Return the joint posterior at `locations` as if each pending place had been read once.

    Their values are not known, so means stay; a posterior covariance needs no values.
    """
    extra = unread(belief, pending)
    if not extra.size:
        return belief.joint(locations)
    m = len(locations)
    joint = belief.joint(np.concatenate([locations, extra]))
    C = joint.covariance
    block = C[:, m:, m:] + belief.noise_variance[:, None, None] * np.eye(len(extra))
    cross = C[:, :m, m:]
    covariance = C[:, :m, :m] - cross @ np.linalg.solve(block, np.swapaxes(cross, 1, 2))
    return Posterior(joint.mean[:, :m], covariance)


def marginals_given_pending(
    belief: Belief, locations: IntArray, pending: Collection[int]
) -> tuple[FloatArray, FloatArray]:
    """Return mean and latent variance (L, m) as if each pending place had been read once."""
    if not unread(belief, pending).size:
        return belief.marginals(locations)
    posterior = joint_given_pending(belief, locations, pending)
    variance = np.diagonal(posterior.covariance, axis1=1, axis2=2)
    return posterior.mean, np.maximum(variance, 0.0)


def unread(belief: Belief, pending: Collection[int]) -> IntArray:
    """Return the pending places without a reading, each once, in their order."""
    return np.array([p for p in dict.fromkeys(pending) if not belief.observed[p]], dtype=np.int64)
