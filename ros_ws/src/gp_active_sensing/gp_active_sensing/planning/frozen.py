"""A belief that a policy keeps: JSON-serialisable, and true to λ when the candidates change."""

from __future__ import annotations

from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.covariance import length_scales_of
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
        if any(kernels := _kernels(belief)):
            frozen["kernels"] = kernels
    return frozen


def thaw(frozen: dict[str, Any], belief: Belief) -> FloatArray:
    """Return the kept weights (L,) over the candidates of today.

    Where the candidates have followed the readings since, the mass of each goes to the nearest of
    those of its kernel that there are now, by the logarithms of length-scales, signal and noise.
    """
    weights = np.array(frozen["weights"])
    if "candidates" not in frozen:
        return weights
    then, now = np.log(frozen["candidates"]), np.log(_candidates(belief))
    if then.shape == now.shape and np.array_equal(then, now):
        return weights
    apart = np.square(then[:, None] - now[None]).sum(axis=2)
    if "kernels" in frozen:
        apart[np.array(frozen["kernels"])[:, None] != np.array(_kernels(belief))] = np.inf
    nearest = apart.argmin(axis=1)
    moved = np.bincount(nearest, weights=weights, minlength=len(now))
    return np.asarray(moved, dtype=np.float64)


def _candidates(belief: Belief) -> FloatArray:
    """(L, p + 3) length-scales, signal, noise and variance, before any common scale.

    Without the last one where places have nothing of their own: it is then the signal's. With
    another where attributes count: that of the field and what they explain.
    """
    candidates = belief.covariance.hyperparameters
    scales = length_scales_of(candidates)
    rest = [[h.signal_std, h.noise_std] for h in candidates]
    columns = [scales, np.array(rest)]
    attributes = any(h.attribute_std for h in candidates)
    if attributes or any(h.place_std for h in candidates):
        columns.append(np.array([[h.variance] for h in candidates]))
    if attributes:
        columns.append(np.array([[h.variance + h.attribute_std**2] for h in candidates]))
    return np.hstack(columns)


def _kernels(belief: Belief) -> list[str]:
    return [h.kernel for h in belief.covariance.hyperparameters]
