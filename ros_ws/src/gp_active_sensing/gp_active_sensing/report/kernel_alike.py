"""Kernels that say the same: of equal evidence and prediction, or of the same covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.kernel_model import KernelModel
from gp_active_sensing.types import FloatArray

__all__ = ["FIRST", "Alike", "alike"]

FIRST = 24
"""Kernels that are compared with each other, the most probable ones."""
_NATS = 1.0
_PREDICTION = 0.1
"""Root mean squared difference of means, and that of deviations, as a share of the deviation."""
_COVARIANCE = 0.01
"""Difference of covariances, as a share (Frobenius norms)."""
_POINTS = 60


@dataclass(frozen=True)
class Alike:
    """Kernels that cannot be told apart from the first of them.

    Args:
        kernels: their numbers, the most probable first.
        why: for each but the first.
    """

    kernels: tuple[int, ...]
    why: tuple[str, ...]


def alike(model: KernelModel, X: FloatArray, *, samples: int, seed: int) -> tuple[Alike, ...]:
    """Return groups of two or more kernels among the first that say the same.

    Two do when their covariances at the means of q(θ) differ by less than one per cent, whatever
    their local ELBOs; or when their local ELBOs are less than 1 nat apart and their predictions
    differ by less than a tenth of their standard deviation. Each kernel joins the most probable one
    that it agrees with.

    Args:
        model: whose kernels.
        X: (m, d) inputs in the given units, over which they are compared.
        samples: of θ for a prediction.
        seed: of the samples.
    """
    first = min(FIRST, len(model.fits))
    points = model.scaling.inputs(X[np.linspace(0, len(X) - 1, min(_POINTS, len(X))).astype(int)])
    covariances = [
        fit.composite.covariance(fit.theta_mean, points, points) for fit in model.fits[:first]
    ]
    predictions: dict[int, tuple[FloatArray, FloatArray]] = {}

    def predicted(i: int) -> tuple[FloatArray, FloatArray]:
        if i not in predictions:
            mean, variance = model.predict(X, samples=samples, kernels=[i], seed=seed)
            predictions[i] = mean, np.sqrt(variance)
        return predictions[i]

    def why(i: int, j: int) -> str:
        apart = _apart(covariances[i], covariances[j])
        if apart <= _COVARIANCE:
            return f"its covariance is the same, to {_per_cent(apart)}"
        behind = abs(model.fits[i].bound - model.fits[j].bound)
        if behind < _NATS and _same(predicted(i), predicted(j)):
            return f"its local ELBO is {behind:.2f} nat away and it predicts the same"
        return ""

    groups: dict[int, list[tuple[int, str]]] = {}
    for j in range(first):
        reasons = ((i, why(i, j)) for i in groups)
        leader, reason = next(((i, text) for i, text in reasons if text), (j, ""))
        groups.setdefault(leader, []).append((j, reason))
    return tuple(
        Alike(tuple(j for j, _ in members), tuple(reason for _, reason in members[1:]))
        for members in groups.values()
        if len(members) > 1
    )


def _apart(A: FloatArray, B: FloatArray) -> float:
    larger = max(float(np.linalg.norm(A)), float(np.linalg.norm(B)), 1e-300)
    return float(np.linalg.norm(A - B)) / larger


def _same(one: Sequence[FloatArray], other: Sequence[FloatArray]) -> bool:
    size = max(float(np.sqrt(np.mean(one[1] ** 2))), 1e-300)
    return all(
        float(np.sqrt(np.mean((a - b) ** 2))) <= _PREDICTION * size
        for a, b in zip(one, other, strict=True)
    )


def _per_cent(share: float) -> str:
    return "less than 0.1 %" if share < 1e-3 else f"{100.0 * share:.1f} %"
