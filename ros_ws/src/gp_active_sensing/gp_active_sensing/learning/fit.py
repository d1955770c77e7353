"""The most probable length-scale, signal and noise of prior readings."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.errors import BeliefError, MissingDependencyError
from gp_active_sensing.learning.problem import Problem, pose
from gp_active_sensing.learning.readings import PriorReadings
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray

if TYPE_CHECKING:
    from gp_active_sensing.learning.model import Model

__all__ = ["Estimate", "learn"]

logger = logging.getLogger(__name__)

STARTS = 4
SUBSET = 1000
"""Places whose readings are used at most, unless told otherwise: the cost grows as their cube."""
_SAME = 0.01
"""Optima within so many nats are the same."""
_STEP = 1e-3
"""Of the differences that give the curvature."""
_SIGNAL = (math.log(1e-2), math.log(30.0))
_NOISE = (math.log(1e-3), math.log(5.0))
"""Limits of the logarithms, in standard deviations of the readings."""


@dataclass(frozen=True)
class Estimate:
    """Hyper-parameters learned from prior readings, in the units of map and readings.

    Args:
        length_scales: one, or one per feature.
        signal_std: of the field about its mean (after the belief's transform).
        noise_std: of a reading.
        errors: standard errors of the logarithms of the first length-scale, signal and noise, from
            the curvature at the optimum; inf where there is none.
        mean: coefficients of the mean: the constant, then the slopes on standardised columns.
        log_posterior: of each start's optimum less that of the best, the best first.
        readings: number used.
        places: number of places they are of.
    """

    length_scales: tuple[float, ...]
    signal_std: float
    noise_std: float
    errors: tuple[float, float, float]
    mean: tuple[float, ...]
    log_posterior: tuple[float, ...]
    readings: int
    places: int

    @property
    def agreeing(self) -> int:
        """Number of starts that ended at the best optimum."""
        return sum(value > -_SAME for value in self.log_posterior)


def learn(
    config: BeliefConfig,
    topology: Topology,
    readings: PriorReadings,
    *,
    starts: int = STARTS,
    subset: int = SUBSET,
    seed: int = 0,
    per_feature: bool = False,
) -> Estimate:
    """Return the hyper-parameters of largest posterior density.

    The marginal likelihood of the readings with the mean integrated out, times log-normal priors:
    of the length-scale the one that a belief without length-scales has on this map, of signal and
    noise about 1 and 0.3 standard deviations of the readings, each within a factor e. The optimum
    is searched from several starts with L-BFGS.

    Args:
        config: kernel, mean and transform; its lists of candidates do not matter.
        topology: the map.
        readings: of some of its places.
        starts: number of starting points.
        subset: number of places whose readings are used, drawn by the seed where there are more.
        seed: of the draw.
        per_feature: a length-scale for each feature.

    Raises:
        MissingDependencyError: GPyTorch is not installed.
        ConfigError: a kernel that cannot be learned, or that does not fit the map.
        ReadingError: a value outside the transform's domain.
        BeliefError: no start led anywhere.
    """
    try:
        from gp_active_sensing.learning.model import Model
    except ImportError as error:
        msg = (
            f"learning needs PyTorch and GPyTorch ({error}): pip install "
            "'gp_active_sensing[learn]', or in a checkout: make heavy"
        )
        raise MissingDependencyError(msg) from error
    used = readings.subset(subset, seed)
    if used is not readings:
        logger.info(
            "%s: %d of %d places used", readings.source, subset, len(np.unique(readings.places))
        )
    problem = pose(config, topology, used, per_feature=per_feature)
    model = Model(problem)
    found = [_search(model, problem, start) for start in problem.starts(starts)]
    good = sorted((f for f in found if math.isfinite(f[0])), key=lambda f: f[0])
    if not good:
        msg = f"{readings.source}: no optimum found from {starts} starts; try another kernel"
        raise BeliefError(msg)
    best, at = good[0]
    k = problem.scales
    scales = problem.median * np.exp(at[:k]) * problem.shape
    mean = problem.unit * model.coefficients(at)
    mean[0] += problem.centre
    return Estimate(
        tuple(float(v) for v in scales),
        float(problem.unit * np.exp(at[k])),
        float(problem.unit * np.exp(at[k + 1])),
        _errors(model, at, k),
        tuple(float(v) for v in mean),
        tuple(best - value for value, _ in good),
        len(used.values),
        len(np.unique(used.places)),
    )


def _search(model: Model, problem: Problem, start: FloatArray) -> tuple[float, FloatArray]:
    """Return the optimum found from a start: minus the log posterior, and where."""
    from scipy.optimize import minimize

    low, high = math.log(problem.low / problem.median), math.log(problem.high / problem.median)
    bounds = [(low, high)] * problem.scales + [_SIGNAL, _NOISE]
    start = np.clip(start, [b[0] for b in bounds], [b[1] for b in bounds])
    found = minimize(model.negative, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.fun), np.asarray(found.x, dtype=np.float64)


def _errors(model: Model, at: FloatArray, scales: int) -> tuple[float, float, float]:
    """Return standard errors of the logarithms, by differences of the gradient."""
    steps = _STEP * np.eye(len(at))
    rows = [(model.negative(at + s)[1] - model.negative(at - s)[1]) / (2.0 * _STEP) for s in steps]
    curvature = 0.5 * (np.array(rows) + np.array(rows).T)
    values, vectors = np.linalg.eigh(curvature)
    if values[0] <= 0.0:  # flat, or at a bound
        return (math.inf, math.inf, math.inf)
    variance = (vectors**2 / values).sum(axis=1)
    first, signal, noise = np.sqrt(variance[[0, scales, scales + 1]]).tolist()
    return first, signal, noise
