"""A belief that a policy keeps: JSON-serialisable, and true to λ when the candidates change."""

from __future__ import annotations

from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.types import FloatArray

__all__ = ["freeze", "thaw"]


def freeze(belief: Belief, weights: FloatArray) -> dict[str, Any]:
    """Return ``{"weights": …}`` to keep, with the candidates they belong to where these may change.

    Args:
        belief: whose candidates the weights are of.
        weights: (L,).
    """
    frozen: dict[str, Any] = {"weights": weights.tolist()}
    if belief.grid is not None:
        frozen["candidates"] = _candidates(belief).tolist()
    return frozen


def thaw(frozen: dict[str, Any], belief: Belief) -> FloatArray:
    """Return the kept weights (L,) over the candidates of today.

    Where the candidates have followed the readings since, the mass of each goes to the nearest of
    those there are now, by the logarithms of length-scales, signal and noise.
    """
    weights = np.array(frozen["weights"])
    if "candidates" not in frozen:
        return weights
    then, now = np.log(frozen["candidates"]), np.log(_candidates(belief))
    if then.shape == now.shape and np.array_equal(then, now):
        return weights
    nearest = np.square(then[:, None] - now[None]).sum(axis=2).argmin(axis=1)
    moved = np.bincount(nearest, weights=weights, minlength=len(now))
    return np.asarray(moved, dtype=np.float64)


def _candidates(belief: Belief) -> FloatArray:
    """(L, p + 2) length-scales, signal and noise of each candidate, before any common scale."""
    return np.array(
        [[*h.length_scales, h.signal_std, h.noise_std] for h in belief.covariance.hyperparameters]
    )
