"""Scores of a map against the truth: RMSPE, NLPD and coverage."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.records.ground_truth import GroundTruth, SensorModel
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.groups import nearby_groups

LEVELS = (0.5, 0.9, 0.95)
"""Probabilities of the central intervals whose coverage is computed."""
MOST_SCORED = 2000
"""Largest number of places in the scores of a stage; the final scores use all places."""


def rmspe(mean: FloatArray, truth: FloatArray, observed: BoolArray) -> float | None:
    """Return the root mean squared prediction error over the places not observed.

    The error is ``sqrt(mean over x not in D of (mean_x - f_x)^2)`` with D the observed places and f
    the **noise-free** truth.

    Args:
        mean: (n,) predicted values.
        truth: (n,) noise-free values, in the same unit.
        observed: (n,) True for a place with a reading.

    Returns:
        The error in the values' unit; None if every place is observed.
    """
    return rmse(mean[~observed], truth[~observed])


def rmse(mean: FloatArray, truth: FloatArray, weights: FloatArray | None = None) -> float | None:
    """Return the root mean squared error of (m,) values, with `weights` (m,); None if m is 0."""
    if mean.shape != truth.shape:
        msg = f"expected as many predictions as true values, got {mean.shape} and {truth.shape}"
        raise ValueError(msg)
    if mean.size == 0:
        return None
    return float(np.sqrt(np.average(np.square(mean - truth), weights=weights)))


def nlpd(
    mean: FloatArray, variance: FloatArray, truth: FloatArray, observed: BoolArray
) -> float | None:
    """Return the mean negative log predictive density over the places not observed [nat].

    The score is ``mean over x not in D of ½ log(2π v_x) + (f_x - mean_x)²/(2 v_x)`` with D the
    observed places and f the **noise-free** truth.

    Args:
        mean: (n,) predicted values.
        variance: (n,) predicted variances of the noise-free field.
        truth: (n,) noise-free values.
        observed: (n,) True for a place with a reading.

    Returns:
        The score (smaller is better); None if every place is observed.
    """
    left = ~observed
    if not bool(left.any()):
        return None
    spread = np.maximum(variance[left], np.finfo(np.float64).tiny)
    square = np.square(truth[left] - mean[left]) / spread
    return float(np.mean(0.5 * (math.log(2.0 * math.pi) + np.log(spread) + square)))


def ends(level: float) -> tuple[float, float]:
    """Return the probabilities below the lower and the upper end of a central interval."""
    return 0.5 * (1.0 - level), 0.5 * (1.0 + level)


def coverage(below: FloatArray, level: float) -> float | None:
    """Return the fraction of (m,) true values inside central intervals of probability `level`.

    A value v is inside if ``(1 - level)/2 <= F(v) <= (1 + level)/2``. A calibrated belief has a
    fraction of about `level`.

    Args:
        below: (m,) predicted probability F(v) of a value below the true value v.
        level: probability of the interval.

    Returns:
        0 to 1; None if m is 0.
    """
    low, high = ends(level)
    return mean_of(((below >= low) & (below <= high)).astype(np.float64))


def mean_of(values: FloatArray) -> float | None:
    """Return the mean of (m,) values; None if m is 0."""
    return float(np.mean(values)) if values.size else None


def sampled(topology: Topology) -> IntArray | None:
    """Return the places that the scores of a stage use; None = all places.

    On a map with more than `MOST_SCORED` places, the scores use about that many, spread evenly. If
    some weights are 0, about as many places with a weight above 0 are added.
    """
    if topology.n <= MOST_SCORED:
        return None
    counted = np.flatnonzero(topology.weights)
    groups = nearby_groups(topology.points, np.arange(topology.n), MOST_SCORED)
    if len(counted) < topology.n:
        groups += nearby_groups(topology.points, counted, min(MOST_SCORED, len(counted)))
    return np.unique([group[len(group) // 2] for group in groups])


COVERAGES = ("coverage_50", "coverage_90", "coverage_95")
"""Names of scores: fraction of true values inside the belief's central intervals."""
READING_COVERAGES = tuple(f"reading_{name}" for name in COVERAGES)
"""Names of scores: mean probability that a new reading is inside its predicted interval."""
SCORES = ("rmspe", "nlpd", *COVERAGES, *READING_COVERAGES)

Scores: TypeAlias = dict[str, float | None]
"""Values of `SCORES` over the places not observed; None = no such place or no truth."""
NO_SCORES: Scores = dict.fromkeys(SCORES)


class Scorer:
    """Comparison of beliefs with a truth.

    All scores leave out places without a known true value.

    Args:
        truth: noise-free field.
        sensor: distribution of readings; None = no scores for new readings.
    """

    def __init__(self, truth: GroundTruth, sensor: SensorModel | None = None) -> None:
        self.truth = truth
        self.sensor = sensor

    def of(
        self,
        belief: Belief,
        seconds: float,
        found: Mixture | None = None,
        places: IntArray | None = None,
    ) -> Scores:
        """Return the scores of a belief.

        Args:
            belief: the belief, which is not changed.
            seconds: mission time of the comparison [s].
            found: prediction of the belief at the places; None = compute it.
            places: places of the comparison, see `sampled`; None = all.
        """
        found = belief.mixture(places) if found is None else found
        some = slice(None) if places is None else places
        truth, known = self.truth.at(seconds)[some], self.truth.known(seconds)[some]
        left = ~belief.observed[some] & known
        mean, variance = found.moments()
        scores = NO_SCORES.copy()
        scores["rmspe"] = rmspe(mean, truth, ~left)
        scores["nlpd"] = nlpd(mean, variance, truth, ~left)
        if not bool(left.any()):
            return scores
        found, truth = found.at(left), truth[left]
        below = found.below(truth)
        scores |= {name: coverage(below, p) for name, p in zip(COVERAGES, LEVELS, strict=True)}
        if self.sensor is not None:
            of_readings = _of_readings(belief, found, truth, self.sensor)
            scores |= dict(zip(READING_COVERAGES, of_readings, strict=True))
        return scores

    def error_everywhere(
        self, mean: FloatArray, seconds: float, weights: FloatArray
    ) -> float | None:
        """Return the RMSE of `mean` (n,) over all places at a time [s], weighted by `weights`."""
        known: BoolArray = self.truth.known(seconds) & (weights > 0.0)
        return rmse(mean[known], self.truth.at(seconds)[known], weights[known])


def _of_readings(
    belief: Belief, found: Mixture, truth: FloatArray, sensor: SensorModel
) -> list[float | None]:
    """Return, for each level, the mean probability that a reading is in its predicted interval."""
    reading = found.noisier(belief.noise_of(None))
    quantiles = reading.quantiles(np.array([ends(level) for level in LEVELS]).ravel())
    pairs = quantiles.reshape(len(LEVELS), 2, -1)
    return [mean_of(sensor.chance(truth, low, high)) for low, high in pairs]
