"""GP-BUCB and B-EST: each member of a batch is chosen as if the others had been read.

[Desautels2014; Kathuria2016, Algorithm 1]

"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.view import mixture_moments
from gp_active_sensing.planning.batches.base import Batch, ByEstimate, BySchedule, Start
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.ties import first_best

__all__ = ["Ahead", "BEst", "GpBucb", "Hallucination"]


class Ahead:
    """Moments of the field as one place after another is taken as read.

    The values are not known, so each is taken to be what is expected: means and the belief over λ
    stay, variances shrink, ``σ²_λ ← σ²_λ - c_x c_xᵀ / (c_xx + σ_n²)``. [Desautels2014, Sec. 3]

    Args:
        belief: over the field; not changed.
    """

    def __init__(self, belief: Belief) -> None:
        self._belief = belief
        self._mean, self._variance = belief.marginals()
        self._rows: list[FloatArray] = []

    def read(self, place: int) -> None:
        """Take a place as read once (more); O(L |D| n)."""
        c = self._belief.cross(np.array([place], dtype=np.int64))[:, 0]
        for row in self._rows:
            c = c - row[:, [place]] * row
        pivot = np.maximum(c[:, place], 0.0) + self._belief.noise_variance
        row = c / np.sqrt(pivot)[:, None]
        self._rows.append(row)
        self._variance = np.maximum(self._variance - row * row, 0.0)

    def std(self) -> FloatArray:
        """Return the (n,) standard deviation of the mixture, in the sensor's unit."""
        _, spread = mixture_moments(self._belief, self._mean, self._variance)
        return np.sqrt(spread)


@dataclass(frozen=True)
class Hallucination(Batch):
    """Largest ``μ_fb(x) + C' √β_t σ_{t-1}(x)``: means of the last feedback, deviations updated.

    Deviations that shrink without feedback make bounds too narrow, by a factor of at most exp(C)
    where the other members of the batch tell at most C nat about a place. C' makes up for that.
    The t of β_t counts readings, in a batch too [Desautels2014; Kathuria2016, Algorithm 1].
    """

    information: float = param(
        0.0,
        help="C: what the other members of a batch tell about a place at most; 0 = bounds are not "
        "widened, as most do in practice",
        unit="nat",
        low=0.0,
        high=100.0,
    )
    widening: str = param(
        "exp_c",
        help="C', the factor on √β: exp_c = exp(C), which suffices; exp_2c = exp(2C), as printed "
        "by Kathuria et al.",
        choices=("exp_c", "exp_2c"),
    )
    initial: int = param(
        0,
        help="so many readings are chosen first by the largest deviation alone (two-stage "
        "initialisation), which makes C small for what follows",
        unit="readings",
        low=0,
    )

    @property
    def factor(self) -> float:
        """C', the factor on √β."""
        return math.exp(self.information if self.widening == "exp_c" else 2.0 * self.information)

    def choose(self, start: Start, size: int, rng: np.random.Generator) -> list[int]:
        """Return the next members of the batch; see `Batch.choose`."""
        locations, mean = start.view.locations, start.view.mean
        ahead = Ahead(start.belief)
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
    """GP-BUCB: upper confidence bounds, as if the rest of the batch were read. [Desautels2014]."""


@dataclass(frozen=True)
class BEst(ByEstimate, Hallucination):
    """B-EST: as gp_bucb, with the bounds of est. [Kathuria2016, Theorem 3.2].

    ``√β_t = min_x (m̂ - μ_fb(x))/σ_{t-1}(x)``.
    """
