"""MAP estimate of hyper-parameters from prior readings, and a section `belief:` for scenarios."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import BeliefError, ConfigError, MissingDependencyError
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.yaml_files import comment
from gp_active_sensing_learning.data.readings import PriorReadings
from gp_active_sensing_learning.problem import build_problem

if TYPE_CHECKING:
    from gp_active_sensing_learning.model import Model

logger = logging.getLogger(__name__)

STARTS = 4
SUBSET = 1000
"""Default of the largest number m of places for learning. The cost is O(m³)."""
_SAME = 0.01
"""Largest difference in log posterior between two optima that count as equal [nat]."""
_STEP = 1e-3
"""Step of the finite differences that estimate the curvature."""
_SIGNAL = (math.log(1e-2), math.log(30.0))
_NOISE = (math.log(1e-3), math.log(5.0))
_OWN = (math.log(1e-3), math.log(5.0))
"""Limits of the logarithm of `place_std`, which is in standard deviations of the readings."""
_LEAST_GAIN = 3.0
"""Smallest gain in log-evidence for accepting `place_std` [nat]."""


@dataclass(frozen=True)
class HyperParameterEstimate:
    """Hyper-parameters learned from prior readings, in the units of map and readings.

    The independent component is a random offset of each place, uncorrelated between places.

    Args:
        length_scales: one common length-scale, or one length-scale per feature.
        signal_std: standard deviation of the transformed field about its mean.
        noise_std: standard deviation of a reading about the field. If `place_gain` is None,
            `noise_std` includes the independent component.
        errors: standard errors of the logarithms of the first length-scale, `signal_std`,
            `noise_std` and `place_std`, from the curvature at the optimum. inf = no estimate, 0 =
            the noise was given.
        mean: constant of the mean, followed by its slopes on the standardised features.
        log_posterior: log posterior at the optimum of each start minus the largest log posterior,
            in descending order.
        readings: number of readings used.
        places: number of places of these readings.
        place_std: standard deviation of the independent component; 0 = not learned.
        place_gain: gain in log-evidence from the independent component [nat]; None = the readings
            cannot separate the independent component from noise.
    """

    length_scales: tuple[float, ...]
    signal_std: float
    noise_std: float
    errors: tuple[float, float, float, float]
    mean: tuple[float, ...]
    log_posterior: tuple[float, ...]
    readings: int
    places: int
    place_std: float = 0.0
    place_gain: float | None = None

    @property
    def place_part_found(self) -> bool:
        """True if the readings support the independent component."""
        return self.place_gain is not None and self.place_gain > _LEAST_GAIN

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
    noise: float | None = None,
) -> HyperParameterEstimate:
    """Return the hyper-parameters with the largest posterior density.

    The density is the marginal likelihood of the readings times log-normal priors. The mean is
    integrated out. The length-scale has the default prior of the map. The prior medians of
    `signal_std`, `noise_std` and `place_std` are 1, 0.3 and 0.3 standard deviations of the
    readings. The logarithm of each has a prior standard deviation of 1. L-BFGS searches for the
    optimum from several starts. `place_std` is learned if the noise is known or places were
    read repeatedly.

    Args:
        config: kernel, mean and transform; other settings are ignored.
        topology: the map.
        readings: readings at places of the map.
        starts: number of starting points.
        subset: largest number of places in use. If there are more, a random subset is used.
        seed: seed of the random subset.
        per_feature: True for a separate length-scale for each feature.
        noise: standard deviation of the sensor's noise after the transform; None = learn it.

    Raises:
        MissingDependencyError: GPyTorch is not installed.
        ConfigError: the kernel cannot be learned or does not fit the map, or `noise` is not a
            number above 0.
        ReadingError: a value is outside the transform's domain.
        BeliefError: no start led to an optimum.
    """
    try:
        from gp_active_sensing_learning.model import Model
    except ImportError as error:
        msg = (
            f"learning needs PyTorch and GPyTorch ({error}): pip install "
            "torch gpytorch, or in a checkout: make heavy"
        )
        raise MissingDependencyError(msg) from error
    if noise is not None and not (math.isfinite(noise) and noise > 0.0):
        msg = f"noise: expected a finite number above 0, got {noise!r}"
        raise ConfigError(msg)
    used = readings.subset(subset, seed)
    if used is not readings:
        logger.info(
            "%s: %d of %d places used", readings.source, subset, len(np.unique(readings.places))
        )
    problem = build_problem(config, topology, used, per_feature=per_feature, noise=noise)
    model = Model(problem)
    found = [_search(model, start) for start in problem.starts(starts)]
    good = sorted((f for f in found if math.isfinite(f[0])), key=lambda f: f[0])
    if not good:
        msg = f"{readings.source}: no optimum found from {starts} starts; try another kernel"
        raise BeliefError(msg)
    best, at = good[0]
    signal, random, own = (problem.unit * std for std in problem.stds(at))
    scales = problem.median * np.exp(at[: problem.scales]) * problem.shape
    mean = problem.unit * model.coefficients(at)
    mean[0] += problem.centre
    gain: float | None = None
    if problem.own:
        gain = _without(Model(replace(problem, own=False)), at) - best - model.own_prior(at)
    return HyperParameterEstimate(
        tuple(float(v) for v in scales),
        float(signal),
        float(random),
        _errors(model, at),
        tuple(float(v) for v in mean),
        tuple(best - value for value, _ in good),
        problem.readings,
        len(problem.counts),
        float(own),
        gain,
    )


def _search(model: Model, start: FloatArray) -> tuple[float, FloatArray]:
    """Return the smallest negative log posterior found from a start, and its parameters."""
    from scipy.optimize import minimize

    problem = model.problem
    low, high = math.log(problem.low / problem.median), math.log(problem.high / problem.median)
    bounds = [(low, high)] * problem.scales + [_SIGNAL]
    bounds += [_NOISE] * (problem.noise is None) + [_OWN] * problem.own
    start = np.clip(start, [b[0] for b in bounds], [b[1] for b in bounds])
    try:
        found = minimize(model.negative, start, jac=True, method="L-BFGS-B", bounds=bounds)
    except BeliefError as error:
        logger.debug("a start is given up: %s", error)
        return math.inf, start
    return float(found.fun), np.asarray(found.x, dtype=np.float64)


def _without(model: Model, at: FloatArray) -> float:
    """Return the smallest negative log posterior of the model without `place_std`.

    `at` is the optimum of the model with `place_std`. The search begins at several points near
    `at`. At one point, the noise variance is increased by ``place_std²``. At another point, the
    length-scales are shorter.
    """
    noise = at[:-1].copy()
    if model.problem.noise is None:
        noise[-1] = 0.5 * np.logaddexp(2.0 * at[-2], 2.0 * at[-1])
    short = at[:-1].copy()
    short[: model.problem.scales] -= 1.0
    values = [_search(model, start)[0] for start in (noise, at[:-1], short)]
    return min((v for v in values if math.isfinite(v)), default=math.inf)


def _errors(model: Model, at: FloatArray) -> tuple[float, float, float, float]:
    """Return the field `errors` of the estimate, computed with finite differences."""
    problem, none = model.problem, (math.inf, math.inf, math.inf, math.inf)
    steps = _STEP * np.eye(len(at))
    rows = [(model.negative(at + s)[1] - model.negative(at - s)[1]) / (2.0 * _STEP) for s in steps]
    curvature = 0.5 * (np.array(rows) + np.array(rows).T)
    values, vectors = np.linalg.eigh(curvature)
    if values[0] <= 0.0:  # flat, or at a bound
        return none
    errors = np.sqrt((vectors**2 / values).sum(axis=1))
    k = problem.scales
    noise = float(errors[k + 1]) if problem.noise is None else 0.0
    own = float(errors[-1]) if problem.own else math.inf
    return float(errors[0]), float(errors[k]), noise, own


WAYS = ("grid", "paper", "point")
"""Names of the methods that compute candidate length-scales from an estimate."""
CANDIDATES = 7
"""Number of candidate length-scales in a grid."""
NOISE_SHARES, OWN_SHARE = (0.2, 0.8), 0.5
"""Fractions of the unexplained variance: two candidates for the noise, and one value for the
independent component."""
_LEAST, _MOST = math.log(2.0), math.log(8.0)
"""Limits of the logarithm of the largest factor in a grid."""


def factors(estimate: HyperParameterEstimate, way: str) -> FloatArray:
    """Return the (K,) ratios of the candidate length-scales to the estimated length-scale.

    Args:
        estimate: the estimate.
        way: "grid" = log-spaced factors within two standard errors of the estimate; "paper" = 1 and
            2(i + 1) for i = 1 … 6 [Hoang2014, Sec. 4.2]; "point" = 1 only.

    Raises:
        ConfigError: `way` is unknown.
    """
    if way == "point":
        return np.ones(1)
    if way == "paper":
        return np.array([1.0, *(2.0 * (i + 1) for i in range(1, 7))])
    if way != "grid":
        msg = f"lambda: expected one of {', '.join(WAYS)}, got {way!r}"
        raise ConfigError(msg)
    reach = min(max(2.0 * estimate.errors[0], _LEAST), _MOST)
    return np.exp(np.linspace(-reach, reach, CANDIDATES))


def belief_section(
    estimate: HyperParameterEstimate, config: BeliefConfig, way: str = "grid"
) -> BeliefConfig:
    """Return the configuration of a mission's prior belief from an estimate.

    Signal, noise, `place_std` and mean have the estimated values. If the readings do not support
    `place_std`, 0 is a second candidate. If the readings cannot separate `place_std` from the
    noise, ``place_std²`` is half of the unexplained variance.

    `mean_std` equals the standard deviation of the field, because the mean may differ on another
    day. For a linear mean, `mean_std` is at least the largest slope.

    Args:
        estimate: the estimate.
        config: configuration with all other settings.
        way: method for the candidate length-scales, one of `WAYS`.
    """
    scales = [
        tuple(_rounded(factor * ell) for ell in estimate.length_scales)
        for factor in factors(estimate, way)
    ]
    noise, own = _parts(estimate, way)
    spread = max(estimate.signal_std, *(abs(slope) for slope in estimate.mean[1:]), 0.0)
    return dataclasses.replace(
        config,
        length_scales=tuple(ell if len(ell) > 1 else ell[0] for ell in scales),
        signal_std=(_rounded(estimate.signal_std),),
        noise_std=tuple(_rounded(std) for std in noise),
        place_std=tuple(_rounded(std) for std in own),
        mean_value=_rounded(estimate.mean[0]),
        mean_std=_rounded(spread),
        # `config` may come from a run with a kernel model.
        model=None,
        model_mark=None,
    )


def _parts(
    estimate: HyperParameterEstimate, way: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the candidates of `noise_std` and of `place_std`.

    If only the sum of the two variances is known, ``place_std²`` is half of the sum. Intervals at
    unobserved places are then neither far too narrow nor far too wide. The noise gets a low and a
    high candidate. Repeated readings of a place can decide between these two candidates.
    """
    if estimate.place_gain is None:
        shares = (1.0 - OWN_SHARE,) if way == "point" else NOISE_SHARES
        both = estimate.noise_std
        return tuple(math.sqrt(s) * both for s in shares), (math.sqrt(OWN_SHARE) * both,)
    noise, own = (estimate.noise_std,), estimate.place_std
    if way == "point":
        return noise, (own if estimate.place_gain > 0.0 else 0.0,)
    return noise, ((own,) if estimate.place_part_found else (0.0, own))


def section_text(section: BeliefConfig, remarks: Mapping[str, str]) -> str:
    """Return the YAML section `belief:`, with `remarks` as comments before it.

    Most keys with a default value are left out.
    """
    defaults = {f.name: f.default for f in dataclasses.fields(BeliefConfig)}
    kept: dict[str, Any] = {
        key: value
        for key, value in to_mapping(section).items()
        if key in ("kernel", "mean_value", "mean_std") or getattr(section, key) != defaults[key]
    }
    body = yaml.safe_dump({"belief": kept}, sort_keys=False, default_flow_style=None, width=100)
    return "".join(f"{comment(f'{word}: {text}')}\n" for word, text in remarks.items()) + body


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
