"""LP-UCB: the upper bound, penalised around the other members of the batch. [Gonzalez2016]."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import length_scales_of
from gp_active_sensing.planning.bandits.improvement import safe_std
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.planning.batches.base import Batch, BySchedule, Start
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.ties import first_best

__all__ = ["LpUcb", "largest_slope", "log_penalty"]


@dataclass(frozen=True)
class LpUcb(BySchedule, Batch):
    """Largest ``g(f⁺(x)) Π_j φ(x; x_j)`` over the members x_j, after local penalisation.

    φ(x; x_j) is the probability that the maximum M is not nearer to x_j than x is, if the field
    changes by at most S a unit of distance, ``½ erfc(-z)``, ``z = (S ‖x - x_j‖ - M + μ(x_j)) /
    √(2σ²(x_j))``. M is the best reading; S the largest slope of the mean, on a finite set between
    places that are neighbours in the features, these in length-scales. g is the soft plus of the
    bound in standard deviations of the field. [Gonzalez2016, Secs. 3-4]
    """

    def choose(self, start: Start, size: int, rng: np.random.Generator) -> list[int]:
        """Return the next members of the batch; see `Batch.choose`."""
        view = start.view
        mean, std = view.everywhere
        points = scaled_features(start.belief, start.topology.features)
        # Before any reading the mean is flat: a deviation a length-scale is what the prior expects.
        slope = largest_slope(points, mean) or float(std.max())
        top = float(mean.max()) if view.best is None else view.best
        scores = _log_soft_plus(_standardised(view, start.upper()))
        safe = safe_std(mean, std)
        chosen: list[int] = []

        def penalise(place: int) -> None:
            distance = np.linalg.norm(points[view.locations] - points[place], axis=1)
            scores[:] += log_penalty(distance, slope, top, float(mean[place]), float(safe[place]))

        for member in start.members:
            penalise(member)
        while len(chosen) < size:
            open_ = np.where(np.isin(np.arange(scores.size), chosen), -np.inf, scores)
            # Where every penalty is total, the bound alone decides.
            chosen.append(int(first_best(open_)))
            penalise(int(view.locations[chosen[-1]]))
        return chosen


def log_penalty(
    distance: FloatArray, slope: float, top: float, mean: float, std: float
) -> FloatArray:
    """Return log φ, the penalty of places at some distance of a member of the batch.

    Args:
        distance: (m,) from the member.
        slope: S, the largest change of the field a unit of distance.
        top: M, the largest value.
        mean: μ(x_j) of the member.
        std: σ(x_j), above 0.
    """
    # ½ erfc(-z) is the normal distribution function at z √2.
    return np.asarray(log_ndtr((slope * distance - top + mean) / std))


def largest_slope(points: FloatArray, values: FloatArray) -> float:
    """Return the largest ``|v_i - v_j| / ‖p_i - p_j‖`` between neighbours.

    The neighbours of a point are the 2 p nearest ones: on a lattice those along each axis.

    Args:
        points: (n, p).
        values: (n,).
    """
    from scipy.spatial import cKDTree

    n, p = points.shape
    if n < 2:
        return 0.0
    found = cKDTree(points).query(points, k=min(2 * p, n - 1) + 1)
    distance, neighbour = np.asarray(found[0]), np.asarray(found[1])
    apart = distance > 1e-9 * float(np.ptp(points, axis=0).max())
    change = np.abs(values[neighbour] - values[:, None])
    return float((change[apart] / distance[apart]).max(initial=0.0))


def scaled_features(belief: Belief, features: FloatArray) -> FloatArray:
    """Return the features (n, p) of a map in units of the length-scales that are believed in."""
    scales = length_scales_of(belief.hyperparameters)
    if scales.shape[1] not in (1, features.shape[1]):
        scales = scales[:, :1]
    return np.asarray(features / (belief.weights @ scales))


def _standardised(view: View, upper: FloatArray) -> FloatArray:
    """Return bounds as deviations from the field's average, so that no unit matters."""
    mean, std = view.everywhere
    spread = math.sqrt(float(np.mean(std**2) + np.var(mean)))
    return (upper - float(mean.mean())) / max(spread, float(np.finfo(np.float64).tiny))


def _log_soft_plus(x: FloatArray) -> FloatArray:
    """Return ``log log(1 + exp(x))``."""
    return np.where(x > -30.0, np.log(np.logaddexp(0.0, np.maximum(x, -30.0))), x)
