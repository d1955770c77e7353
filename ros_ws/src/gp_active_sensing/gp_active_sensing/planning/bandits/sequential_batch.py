"""Batches whose members are chosen one after another: GP-BUCB, B-EST and LP-UCB.

[Desautels2014; Kathuria2016, Algorithm 1; Gonzalez2016]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.prior import length_scales_of
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.acquisition import safe_std
from gp_active_sensing.planning.bandits.base import View
from gp_active_sensing.planning.bandits.batch import Batch, ByEstimate, BySchedule, Start
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.ties import first_best


class AnticipatedStd:
    """Standard deviations of the field after unknown readings. [Desautels2014, Sec. 3].

    Unknown readings are replaced by their expectations. The means and the weights of the
    hyperparameter candidates λ stay the same. A reading at x reduces the covariances:
    ``C_λ ← C_λ - c_x c_xᵀ / (c_xx + σ_n²)``, where c_x is the column of x in C_λ.
    """

    def __init__(self, belief: Belief) -> None:
        self._belief = belief
        self._mean, self._variance = belief.marginals()
        self._rows: list[FloatArray] = []

    def read(self, place: int) -> None:
        """Reduce the variances as one reading of a place would do."""
        c = self._belief.cross(np.array([place], dtype=np.int64))[:, 0]
        for row in self._rows:
            c = c - row[:, [place]] * row
        pivot = np.maximum(c[:, place], 0.0) + self._belief.noise_variance
        row = c / np.sqrt(pivot)[:, None]
        self._rows.append(row)
        self._variance = np.maximum(self._variance - row * row, 0.0)

    def std(self) -> FloatArray:
        """Return the (n,) standard deviations, in the unit of the readings."""
        belief = self._belief
        found = Mixture(belief.weights, self._mean, self._variance, belief.transform)
        return np.sqrt(found.moments()[1])


@dataclass(frozen=True)
class Hallucination(Batch):
    """Base class of policies that choose members as if earlier members had been observed.

    The next member has the largest ``μ_fb(x) + C' √β_t σ_{t-1}(x)``. The means μ_fb contain only
    readings that have arrived. Reducing σ without readings makes the confidence bounds too narrow,
    by a factor of at most exp(C). C is an upper bound on the information that readings of the other
    members contain about a place [nat]. To correct this, √β_t is multiplied by the factor C', by
    default exp(C). The t of β_t counts readings. [Desautels2014; Kathuria2016, Algorithm 1]
    """

    information: float = param(
        0.0,
        help="C: upper bound on the information that the other places of a batch give about a "
        "place. 0 = bounds are not widened, as is usual in practice",
        unit="nat",
        low=0.0,
        high=100.0,
    )
    widening: str = param(
        "exp_c",
        help="factor C' on √β, computed from information (C): exp_c = exp(C), which the proof "
        "needs; exp_2c = exp(2C), as printed by Kathuria et al.",
        choices=("exp_c", "exp_2c"),
    )
    initial: int = param(
        0,
        help="number of first readings that are chosen by the largest standard deviation "
        "(two-stage initialisation). These readings make C small",
        unit="readings",
        low=0,
    )

    @property
    def factor(self) -> float:
        """Factor C' by which √β_t is multiplied."""
        return math.exp(self.information if self.widening == "exp_c" else 2.0 * self.information)

    def choose(self, start: Start, size: int, rng: np.random.Generator) -> list[int]:
        """Choose the next members of the batch; see `Batch.choose`."""
        locations, mean = start.view.locations, start.view.mean
        ahead = AnticipatedStd(start.belief)
        for member in start.members:
            ahead.read(member)
        chosen: list[int] = []
        for stage in range(start.stage, start.stage + size):
            std = ahead.std()[locations]
            left = np.ones(std.size, dtype=np.bool_)
            left[chosen] = False
            scores = std
            if stage > self.initial:
                width = start.widths(stage, locations[left], std[left])
                scores = mean + self.factor * width * std
            scores = np.where(left, scores, -np.inf)
            chosen.append(int(first_best(scores)))
            if len(chosen) < size:
                ahead.read(int(locations[chosen[-1]]))
        return chosen


@dataclass(frozen=True)
class GpBucb(BySchedule, Hallucination):
    """GP-BUCB: as gp_ucb, and places of other robots count as observed. [Desautels2014]."""


@dataclass(frozen=True)
class BEst(ByEstimate, Hallucination):
    """B-EST: as est, and places of other robots count as observed. [Kathuria2016, Theorem 3.2].

    The confidence width is ``√β_t = min_x (m̂ - μ_fb(x))/σ_{t-1}(x)`` for the estimated maximum m̂.
    """


@dataclass(frozen=True)
class LpUcb(BySchedule, Batch):
    """As gp_ucb; the upper bound is reduced near the places of other robots.

    Given the earlier members x_j of a batch, the policy chooses the largest
    ``g(f⁺(x)) Π_j φ(x; x_j)``. This is local penalisation. The function g is the softplus function
    of the standardised upper bound f⁺. The factor φ(x; x_j) is the probability that the maximum is
    not nearer to x_j than x. It is ``φ = ½ erfc(-z)`` with
    ``z = (S ‖x - x_j‖ - M + μ(x_j)) / √(2σ²(x_j))``. M is the best reading. S is the largest slope
    of the mean between neighbouring places. [Gonzalez2016, Secs. 3-4]
    """

    def choose(self, start: Start, size: int, rng: np.random.Generator) -> list[int]:
        """Choose the next members of the batch; see `Batch.choose`."""
        view = start.view
        mean, std = view.everywhere
        points = scaled_features(start.belief, start.topology.features)
        # Before any reading the mean is flat; the largest deviation then replaces the slope.
        slope = largest_slope(points, mean) or float(std.max())
        top = float(mean.max()) if view.best is None else view.best
        x = _standardised(view, start.upper())
        # ``log log(1 + exp(x))``
        scores = np.where(x > -30.0, np.log(np.logaddexp(0.0, np.maximum(x, -30.0))), x)
        safe = safe_std(mean, std)
        chosen: list[int] = []

        def penalise(place: int) -> None:
            distance = np.linalg.norm(points[view.locations] - points[place], axis=1)
            scores[:] += log_penalty(distance, slope, top, float(mean[place]), float(safe[place]))

        for member in start.members:
            penalise(member)
        while len(chosen) < size:
            open_ = np.where(np.isin(np.arange(scores.size), chosen), -np.inf, scores)
            chosen.append(int(first_best(open_)))
            penalise(int(view.locations[chosen[-1]]))
        return chosen


def log_penalty(
    distance: FloatArray, slope: float, top: float, mean: float, std: float
) -> FloatArray:
    """Return the log penalties log φ (m,) of places near a member x_j of a batch; see `LpUcb`.

    Args:
        distance: (m,) distances of the places from x_j.
        slope: largest slope S of the mean [unit of the readings per unit of `distance`].
        top: best reading M.
        mean: mean μ(x_j).
        std: standard deviation σ(x_j), above 0.
    """
    # ½ erfc(-z) is the normal distribution function at z √2.
    return np.asarray(log_ndtr((slope * distance - top + mean) / std))


def largest_slope(points: FloatArray, values: FloatArray) -> float:
    """Return the largest ``|v_i - v_j| / ‖p_i - p_j‖`` between neighbouring points (n, p).

    The neighbours of a point are the 2 p nearest points.
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
    """Return the features (n, p) of a map, divided by the expected length-scales."""
    scales = length_scales_of(belief.hyperparameters)
    if scales.shape[1] not in (1, features.shape[1]):
        scales = scales[:, :1]
    return np.asarray(features / (belief.weights @ scales))


def _standardised(view: View, upper: FloatArray) -> FloatArray:
    mean, std = view.everywhere
    spread = math.sqrt(float(np.mean(std**2) + np.var(mean)))
    return (upper - float(mean.mean())) / max(spread, float(np.finfo(np.float64).tiny))
