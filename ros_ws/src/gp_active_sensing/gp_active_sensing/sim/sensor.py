"""Simulated sensor with reproducible noise, bias, dropouts and outliers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from gp_active_sensing.config import param
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim.fields.config import HUGE
from gp_active_sensing.types import FloatArray, Reading

_STREAM = 0x5E2501
"""Constant that separates the random numbers of readings from all other random numbers."""


@dataclass(frozen=True)
class SensorConfig:
    """Settings of a simulated sensor."""

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"report_variance": "was removed; the belief has the noise (belief.noise_std)"}
    )
    WERE: ClassVar[Mapping[str, Any]] = MappingProxyType({"report_variance": False})

    noise_std: float = param(
        0.1, help="standard deviation of the noise", unit="field unit", low=0.0, high=HUGE
    )
    bias: float = param(
        0.0, help="constant error of every reading", unit="field unit", low=-HUGE, high=HUGE
    )
    dropout: float = param(0.0, help="probability that a reading does not come", low=0.0, high=1.0)
    outlier: float = param(0.0, help="probability that a reading is an outlier", low=0.0, high=1.0)
    outlier_size: float = param(
        0.0, help="error of an outlier, with either sign", unit="field unit", low=0.0, high=HUGE
    )
    readings: int = param(1, help="number of readings at each visit", low=1, high=10_000)
    on_the_way: bool = param(True, help="true = also read the places on the way")
    seconds: float = param(
        0.0,
        help="duration of a stop for the readings of a visit. The readings are taken at the end of "
        "the stop. The stop counts as time driven",
        unit="s",
        low=0.0,
        high=HUGE,
    )
    retries: int = param(
        2, help="number of repeated visits without a reading before the place is set aside", low=0
    )


class SimulatedSensor:
    """Simulated readings of a known field.

    The random numbers of a reading depend only on (seed, place, visit).

    Args:
        truth: noise-free field.
        config: noise, bias, dropouts and outliers.
        seed: seed of the random numbers.
    """

    def __init__(self, truth: GroundTruth, config: SensorConfig, seed: int) -> None:
        self.truth = truth
        self.config = config
        self.seed = seed

    def chance(self, exact: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the probability that a reading of each noise-free value is within [low, high].

        The reading is assumed not to be a dropout. All arrays are (m,).
        """
        config = self.config

        def of(centre: FloatArray) -> FloatArray:
            if config.noise_std == 0.0:
                return ((low <= centre) & (centre <= high)).astype(np.float64)
            std = config.noise_std
            return np.asarray(ndtr((high - centre) / std) - ndtr((low - centre) / std))

        centre = exact + config.bias
        if config.outlier == 0.0:
            return of(centre)
        size = config.outlier_size
        wild = 0.5 * (of(centre + size) + of(centre - size))
        return (1.0 - config.outlier) * of(centre) + config.outlier * wild

    def read(
        self, location: int, visit: int, stamp_ns: int, exact: float | None = None
    ) -> Reading | None:
        """Return reading number `visit` (from 0) of a place; None for a dropout.

        A reading is ``z = f(t) + bias + noise_std ε`` with the noise-free value f and standard
        normal ε. An outlier is larger or smaller by ``outlier_size``.

        Args:
            location: index of the place.
            visit: number of earlier readings of the place.
            stamp_ns: time of the reading; the field is read at ``t = stamp_ns * 1e-9`` [s].
            exact: noise-free value; None = ``f(t)``.
        """
        config = self.config
        rng = np.random.default_rng([self.seed, location, visit, _STREAM])
        # Draw all numbers always: a changed probability then changes no other number.
        silent, wild, up = rng.random(3)
        noise = float(rng.standard_normal())
        if silent < config.dropout:
            return None
        if exact is None:
            exact = float(self.truth.at(1e-9 * stamp_ns)[location])
        value = exact + config.bias + config.noise_std * noise
        if wild < config.outlier:
            value += config.outlier_size if up < 0.5 else -config.outlier_size
        return Reading(stamp_ns=stamp_ns, location=location, value=value, source="simulated sensor")
