"""Score a belief against the truth, for the records of stages and the summary."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.records.ground_truth import GroundTruth, SensorLaw
from gp_active_sensing.records.metrics import LEVELS, coverage, ends, mean_of, nlpd, rmse, rmspe
from gp_active_sensing.types import BoolArray, FloatArray

__all__ = ["NO_SCORES", "SCORES", "Scorer", "Scores"]


class Scores(TypedDict):
    """Scores of a map over the places not observed; None where there is no such place, or no truth.

    Args:
        rmspe: see `metrics.rmspe`.
        nlpd: see `metrics.nlpd`.
        coverage_50, coverage_90, coverage_95: share of true values inside the belief's central
            intervals for them.
        reading_coverage_50, reading_coverage_90, reading_coverage_95: probability that a new
            reading is inside the belief's central interval for one, mean over the places.
    """

    rmspe: float | None
    nlpd: float | None
    coverage_50: float | None
    coverage_90: float | None
    coverage_95: float | None
    reading_coverage_50: float | None
    reading_coverage_90: float | None
    reading_coverage_95: float | None


SCORES: tuple[str, ...] = tuple(Scores.__annotations__)
"""Keys of the scores in records and summaries."""
NO_SCORES: Scores = Scores(
    rmspe=None,
    nlpd=None,
    coverage_50=None,
    coverage_90=None,
    coverage_95=None,
    reading_coverage_50=None,
    reading_coverage_90=None,
    reading_coverage_95=None,
)
"""Where nothing is known to compare with."""


class Scorer:
    """Compares beliefs with a truth.

    Places whose true value is not known, since the field was given one for want of it, are left
    out of everything.

    Args:
        truth: the noise-free field.
        sensor: which reads it; None = nothing is said of new readings.
    """

    def __init__(self, truth: GroundTruth, sensor: SensorLaw | None = None) -> None:
        self.truth = truth
        self.sensor = sensor

    def of(self, belief: Belief, seconds: float, found: Mixture | None = None) -> Scores:
        """Return the scores of a belief.

        Args:
            belief: it stays as it is.
            seconds: time of the mission when it is compared [s].
            found: what it believes of every place, where that was asked already.
        """
        found = belief.mixture() if found is None else found
        truth, known = self.truth.at(seconds), self.truth.known(seconds)
        left = ~belief.observed & known
        mean, variance = found.moments()
        scores = NO_SCORES.copy()
        scores["rmspe"] = rmspe(mean, truth, ~left)
        scores["nlpd"] = nlpd(mean, variance, truth, ~left)
        if not bool(left.any()):
            return scores
        found, truth = found.at(left), truth[left]
        below = found.below(truth)
        scores["coverage_50"], scores["coverage_90"], scores["coverage_95"] = (
            coverage(below, level) for level in LEVELS
        )
        if self.sensor is None:
            return scores
        (
            scores["reading_coverage_50"],
            scores["reading_coverage_90"],
            scores["reading_coverage_95"],
        ) = _of_readings(belief, found, truth, self.sensor)
        return scores

    def error_everywhere(
        self, mean: FloatArray, seconds: float, weights: FloatArray
    ) -> float | None:
        """Return the root mean squared error of (n,) means over all places, observed ones too.

        Args:
            mean: (n,) of the field.
            seconds: time of the mission [s].
            weights: (n,) of the places.
        """
        known: BoolArray = self.truth.known(seconds) & (weights > 0.0)
        return rmse(mean[known], self.truth.at(seconds)[known], weights[known])


def _of_readings(
    belief: Belief, found: Mixture, truth: FloatArray, sensor: SensorLaw
) -> list[float | None]:
    """Return the probability of a reading inside the belief's interval for one, of each level.

    Args:
        belief: says which noise it expects.
        found: what it believes of the noise-free field at m places.
        truth: (m,) noise-free values there.
        sensor: which reads them.
    """
    own = None
    if (variance := sensor.reported_variance) is not None:
        own = belief.transform.seen_variance(truth, variance)
    reading = found.noisier(belief.noise_of(own))
    quantiles = reading.quantiles(np.array([ends(level) for level in LEVELS]).ravel())
    pairs = quantiles.reshape(len(LEVELS), 2, -1)
    return [mean_of(sensor.chance(truth, low, high)) for low, high in pairs]
