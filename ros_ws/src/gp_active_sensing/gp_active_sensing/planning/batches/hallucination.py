"""GP-BUCB and B-EST: the members of a batch one after another, each as if the others were read.

[Desautels2014; Kathuria2016, Algorithm 1]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.config import param
from gp_active_sensing.planning.batches.ahead import Ahead
from gp_active_sensing.planning.batches.base import Batch, Start
from gp_active_sensing.planning.batches.confidence import ByEstimate, BySchedule
from gp_active_sensing.util.ties import first_best

__all__ = ["BEst", "GpBucb", "Hallucination"]


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
