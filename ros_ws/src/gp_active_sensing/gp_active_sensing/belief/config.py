"""Configuration of a belief, and the belief it describes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.covariance import FeatureCovariance, HyperParameters
from gp_active_sensing.belief.grid import CandidateGrid, default_grid
from gp_active_sensing.belief.mean import PriorMean
from gp_active_sensing.belief.transform import TRANSFORMS
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.kernels import build_kernel, kernels
from gp_active_sensing.types import FloatArray

__all__ = ["BeliefConfig", "build_belief"]

logger = logging.getLogger(__name__)

VAGUE = 100.0
"""Standard deviation of an unconfigured mean, in multiples of the largest signal_std."""
FLAT = 1e6
"""The same where the scale is not known: so wide that where it is centred makes no difference."""

CANDIDATES = 24
"""Size of Λ where the length-scales come from the map."""
NOISE_SHARES = (0.03, 0.12, 0.5)
"""Noise as a share of the signal, where one of them is not known."""


@dataclass(frozen=True)
class BeliefConfig:
    """Prior belief: the candidates Λ are all combinations of the three lists.

    What is not given is not known: length-scales then come from the map and follow the readings,
    the signal's scale is integrated out, noise is a few shares of the signal.
    """

    length_scales: tuple[float | tuple[float, ...], ...] | None = param(
        None,
        help="candidate length-scales; an entry may be a list, one per feature; null = from the "
        "spacing and extent of the map, following the readings",
        unit="feature units, metres on a map",
        above=0.0,
        min_items=1,
    )
    kernel: str = param("se", help="covariance function")
    signal_std: tuple[float, ...] | None = param(
        None,
        help="candidate standard deviations of the field about its mean; null = not known",
        unit="unit of the readings",
        above=0.0,
        min_items=1,
    )
    noise_std: tuple[float, ...] | None = param(
        None,
        help="candidate standard deviations of a reading's noise; null = not known, a few shares "
        "of the signal's",
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
        f"null = not known at all ({VAGUE:g} times the largest signal_std)",
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
        if self.weights is not None:
            if self.length_scales is None or (self.signal_std is None and self.noise_std is None):
                problems.append("weights: need length_scales, and signal_std or noise_std, given")
            elif len(self.weights) != (L := len(self.length_scales) * len(self.pairs())):
                problems.append(
                    f"weights: expected {L} (one per combination), got {len(self.weights)}"
                )
            elif sum(self.weights) <= 0:
                problems.append("weights: expected at least one above 0")
        if not self.scale_known and self.mean_std:
            problems.append(
                "mean_std: has no unit to be in while signal_std and noise_std are not given; give "
                "signal_std, or mean_std: 0 (the mean is mean_value), or null (not known)"
            )
        if problems:
            raise ConfigError(problems)

    @property
    def scale_known(self) -> bool:
        """Signal or noise has been given, so that the readings' unit means something."""
        return self.signal_std is not None or self.noise_std is not None

    def pairs(self) -> tuple[tuple[float, float], ...]:
        """Return the (signal_std, noise_std) that every length-scale is combined with.

        With neither given the signal is 1, times the scale that is integrated out.
        """
        if self.signal_std is not None and self.noise_std is not None:
            return tuple(product(self.signal_std, self.noise_std))
        if self.noise_std is not None:
            return tuple((noise / r, noise) for noise in self.noise_std for r in NOISE_SHARES)
        signals = self.signal_std or (1.0,)
        return tuple((signal, signal * r) for signal in signals for r in NOISE_SHARES)

    def hyperparameters(self) -> tuple[HyperParameters, ...]:
        """Return the candidates Λ, length-scale slowest.

        Raises:
            ValueError: the length-scales are to come from a map.
        """
        if self.length_scales is None:
            msg = "length_scales is null: the candidates depend on the map, see build_belief"
            raise ValueError(msg)
        scales = [v if isinstance(v, tuple) else (v,) for v in self.length_scales]
        return tuple(
            HyperParameters(ell, signal, noise) for ell in scales for signal, noise in self.pairs()
        )


def build_belief(
    config: BeliefConfig, features: FloatArray, names: Sequence[str] | None = None
) -> Belief:
    """Return the belief described by `config` over locations with `features` (n, p).

    Args:
        config: what is known beforehand.
        features: what the covariance is a function of.
        names: of the features, for length-scales that come from the map; default coordinates.

    Raises:
        ConfigError: features that are not finite, or length-scales that do not fit them.
    """
    features = np.asarray(features, dtype=np.float64)
    grid: CandidateGrid | None = None
    weights: FloatArray | None = None if config.weights is None else np.array(config.weights)
    try:
        if config.length_scales is None:
            if features.ndim != 2 or not len(features) or not np.isfinite(features).all():
                msg = f"features must be (n, p), finite, at least one; got shape {features.shape}"
                raise ValueError(msg)
            pairs = config.pairs()
            count = max(3, CANDIDATES // len(pairs))
            scales = default_grid(features, tuple(names or ()), count)
            grid = CandidateGrid(scales, pairs, build_kernel(config.kernel), features)
            covariance, weights = grid.build()
            logger.info(
                "length-scales from the map: %s", ", ".join(f"{p:.3g}" for p in scales.points)
            )
        else:
            kernel = build_kernel(config.kernel)
            covariance = FeatureCovariance(kernel, features, config.hyperparameters())
    except ValueError as error:
        msg = f"belief: {error}"
        raise ConfigError(msg) from error
    std = config.mean_std
    if std is None:
        std = VAGUE * max(signal for signal, _ in config.pairs())
        if not config.scale_known:
            std = FLAT
    if config.mean == "linear":
        mean = PriorMean.linear(features, config.mean_value, std)
    else:
        mean = PriorMean.constant(covariance.n, config.mean_value, std)
    return Belief(
        covariance,
        mean,
        weights,
        TRANSFORMS[config.transform],
        scale_known=config.scale_known,
        grid=grid,
    )
