"""Configuration of a belief, and the belief it describes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.covariance import FeatureCovariance, HyperParameters
from gp_active_sensing.belief.mean import PriorMean
from gp_active_sensing.belief.transform import TRANSFORMS
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.kernels import build_kernel, kernels
from gp_active_sensing.types import FloatArray

__all__ = ["BeliefConfig", "build_belief"]

VAGUE = 100.0
"""Standard deviation of an unconfigured mean, in multiples of the largest signal_std."""


@dataclass(frozen=True)
class BeliefConfig:
    """Prior belief: the candidates Λ are all combinations of the three lists."""

    length_scales: tuple[float | tuple[float, ...], ...] = param(
        help="candidate length-scales; an entry may be a list, one per feature",
        unit="feature units, metres on a map",
        above=0.0,
        min_items=1,
    )
    kernel: str = param("se", help="covariance function")
    signal_std: tuple[float, ...] = param(
        (1.0,),
        help="candidate standard deviations of the field about its mean",
        unit="unit of the readings",
        above=0.0,
        min_items=1,
    )
    noise_std: tuple[float, ...] = param(
        (0.1,),
        help="candidate standard deviations of a reading's noise",
        unit="unit of the readings",
        above=0.0,
        min_items=1,
    )
    weights: tuple[float, ...] | None = param(
        None,
        help="prior weights, one per combination (length-scale slowest); default uniform",
        low=0.0,
    )
    mean: str = param(
        "constant",
        help="prior mean: an unknown constant, or linear in the features as well",
        choices=("constant", "linear"),
    )
    mean_value: float = param(
        0.0, help="prior expectation of the mean", unit="unit of the readings"
    )
    mean_std: float | None = param(
        None,
        help="prior standard deviation of the mean (and of each slope); 0 = mean_value is known, "
        f"default {VAGUE:g} times the largest signal_std",
        unit="unit of the readings",
        low=0.0,
    )
    transform: str = param(
        "identity",
        help="applied to the readings first; signal, noise and mean are then those of the result",
        choices=tuple(TRANSFORMS),
    )

    def __post_init__(self) -> None:
        problems = []
        if self.kernel not in kernels:
            hint = suggest(self.kernel, kernels)
            problems.append(
                f"kernel: unknown kernel {self.kernel!r}.{hint} "
                f"Registered: {', '.join(kernels.names())}"
            )
        combinations = len(self.length_scales) * len(self.signal_std) * len(self.noise_std)
        if self.weights is not None:
            if len(self.weights) != combinations:
                problems.append(
                    f"weights: expected {combinations} (one per combination), "
                    f"got {len(self.weights)}"
                )
            elif sum(self.weights) <= 0:
                problems.append("weights: expected at least one above 0")
        if problems:
            raise ConfigError(problems)

    def hyperparameters(self) -> tuple[HyperParameters, ...]:
        """Return the candidates Λ, length-scale slowest."""
        scales = [v if isinstance(v, tuple) else (v,) for v in self.length_scales]
        return tuple(
            HyperParameters(ell, signal, noise)
            for ell, signal, noise in product(scales, self.signal_std, self.noise_std)
        )


def build_belief(config: BeliefConfig, features: FloatArray) -> Belief:
    """Return the belief described by `config` over locations with `features` (n, p).

    Raises:
        ConfigError: features that are not finite, or length-scales that do not fit them.
    """
    candidates = config.hyperparameters()
    try:
        covariance = FeatureCovariance(build_kernel(config.kernel), features, candidates)
    except ValueError as error:
        msg = f"belief: {error}"
        raise ConfigError(msg) from error
    std = config.mean_std
    if std is None:
        std = VAGUE * max(config.signal_std)
    if config.mean == "linear":
        mean = PriorMean.linear(np.asarray(features), config.mean_value, std)
    else:
        mean = PriorMean.constant(covariance.n, config.mean_value, std)
    return Belief(covariance, mean, config.weights, TRANSFORMS[config.transform])
