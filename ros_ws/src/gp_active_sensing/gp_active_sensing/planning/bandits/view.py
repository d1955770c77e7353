"""What a search for hot spots sees of a belief: one mean and deviation a place, to be maximised."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import IDENTITY
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["View", "latent_given_pending", "view_of"]


@dataclass(frozen=True)
class View:
    """Moments of the mixture, in the sensor's unit, turned so that every policy maximises.

    Under ``objective: minimise`` means and readings have the other sign. Of the field, not of its
    readings: their noise is left out.

    Args:
        locations: (m,) places to choose from.
        mean: (m,) expectation of the field there.
        std: (m,) its standard deviation, pending places taken as read once (means stay).
        noise_variance: of a reading, ``Σ_λ b(λ) σ_n²(λ)``; with a transform of the readings that of
            a typical place, since it grows with the field.
        best: largest average reading of an observed place, None before the first one.
        stage: t ≥ 1 of β_t: decisions of this mission so far and this one, or rounds of a batch.
        size: |D|, number of places of the map.
        everywhere: mean and deviation (n,) of every place.
    """

    locations: IntArray
    mean: FloatArray
    std: FloatArray
    noise_variance: float
    best: float | None
    stage: int
    size: int
    everywhere: tuple[FloatArray, FloatArray]


def view_of(
    belief: Belief,
    locations: IntArray,
    pending: Collection[int] = (),
    *,
    stage: int = 1,
    sign: float = 1.0,
) -> View:
    """Return what a policy sees of a belief.

    The moments are those of the mixture over λ, ``μ = Σ b μ_λ`` and
    ``σ² = Σ b (σ_λ² + (μ_λ - μ)²)``: what is not known of the length-scale is uncertainty of the
    field, too. O(L |D| n), and O(L |D|² n) only for what the readings since the last call add.

    Args:
        belief: over the field; not changed.
        locations: (m,) places to choose from.
        pending: places on their way to be read.
        stage: t ≥ 1.
        sign: -1 to look for a minimum.
    """
    mean, variance = latent_given_pending(belief, pending)
    weights, noise = belief.weights, belief.noise_variance
    if belief.transform is IDENTITY:
        noise_variance = float(weights @ noise)
    else:
        _, wider = mixture_moments(belief, mean, variance + noise[:, None])
    centre, spread = mixture_moments(belief, mean, variance)
    if belief.transform is not IDENTITY:
        noise_variance = float(np.median(wider - spread))
    std = np.sqrt(spread)
    return View(
        locations=locations,
        mean=sign * centre[locations],
        std=std[locations],
        noise_variance=noise_variance,
        best=_best_reading(belief, sign),
        stage=stage,
        size=belief.n,
        everywhere=(sign * centre, std),
    )


def latent_given_pending(
    belief: Belief, pending: Collection[int] = ()
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (L, n) everywhere, as if each pending place had been read once more.

    As the Gaussian process sees them. Their values are not known, so means stay:
    ``σ² - c_p (C_pp + σ_n² I)⁻¹ c_pᵀ``. A place that is listed twice is taken as read twice; one
    that is observed already is read again. O(L |D| n), more by a factor for each pending place.
    """
    mean, variance = belief.marginals()
    if not pending:
        return mean, variance
    due = np.array(list(pending), dtype=np.int64)
    cross = belief.cross(due)
    block = cross[:, :, due] + belief.noise_variance[:, None, None] * np.eye(due.size)
    known = (cross * np.linalg.solve(block, cross)).sum(axis=1)
    return mean, np.maximum(variance - known, 0.0)


def mixture_moments(
    belief: Belief, mean: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (m,) of the mixture in the sensor's unit, from those under each λ.

    Args:
        belief: with the weights and the transform.
        mean: (L, m) as the Gaussian process sees them.
        variance: (L, m).
    """
    mean, variance = belief.transform.moments(mean, variance)
    weights = belief.weights
    centre = weights @ mean
    return centre, np.asarray(weights @ (variance + (mean - centre) ** 2))


def _best_reading(belief: Belief, sign: float) -> float | None:
    observed = np.flatnonzero(belief.observed)
    if not observed.size:
        return None
    averages = belief.transform.inverse(belief.weights @ belief.averages(observed))
    return float((sign * averages).max())
