"""Concentration of a plume that drifts with a flow, spreads and decays.

The concentration is an integral over Gaussian puffs in two dimensions. The source emits q per
second and per metre of depth of the mixed layer:

    c(x, t) = ∫_0^A  q / (2π s(a)²)  exp(-‖x - p(t, a)‖² / (2 s(a)²))  exp(-a / lifetime)  da
    s(a)² = size² + 2 · diffusivity · a,      p(t, a) = source(t - a) + ∫_{t-a}^{t} flow(u) du

Here a is the age of a puff, p is its centre, s is its standard deviation, and A is 20 lifetimes.
[Seinfeld2016, Sec. 18]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.types import FloatArray

MOST_PUFFS = 20_000
"""Largest number of puffs in a plume."""
_LIFETIMES = 20.0
"""Largest age of a puff, in lifetimes."""
_STEP = 0.5
"""Largest distance between two successive puffs, as a fraction of their size."""
_NODES = 8
"""Number of Gauss-Legendre nodes per time interval; each node is a puff."""
_CELLS = 2_000_000
"""Largest number of elements in a (places, puffs) array."""


@dataclass(frozen=True)
class PlumeConfig:
    """Source of a plume, and the flow that carries it."""

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"turn_rate": "was removed; the flow turns by swing and swing_period"}
    )

    source: tuple[float, float] = param(
        (0.0, 0.0), help="position of the source when the mission begins", unit="m"
    )
    source_velocity: tuple[float, float] = param(
        (0.0, 0.0), help="velocity of the source", unit="m/s", low=-1000.0, high=1000.0
    )
    rate: float = param(
        1.0,
        help="emission of the source for each metre of mixing depth",
        unit="field unit · m²/s",
        above=0.0,
        high=1e12,
    )
    flow_speed: float = param(
        0.5, help="speed of the wind or current", unit="m/s", low=0.0, high=1000.0
    )
    flow_direction: float = param(
        0.0,
        help="direction of the flow when the mission begins, counter-clockwise from +x (east)",
        unit="deg",
        low=-360.0,
        high=360.0,
    )
    swing: float = param(
        0.0,
        help="largest angle by which the flow swings to either side",
        unit="deg",
        low=0.0,
        high=180.0,
    )
    swing_period: float = param(
        3600.0, help="duration of a whole swing, there and back", unit="s", above=0.0
    )
    size: float = param(
        10.0,
        help="width (standard deviation) of each puff when the source emits it",
        unit="m",
        above=0.0,
        high=1e9,
    )
    diffusivity: float = param(
        1.0, help="diffusivity, by which puffs spread", unit="m²/s", low=0.0, high=1e9
    )
    lifetime: float = param(
        3600.0, help="decay: after this time 1/e of a puff is left", unit="s", above=0.0, high=1e12
    )

    def __post_init__(self) -> None:
        if (count := self.puffs) > MOST_PUFFS:
            msg = (
                f"size: {self.size:g} m is so small for the flow, diffusivity and lifetime that "
                f"{count:.3g} puffs were needed, {MOST_PUFFS} are the most; expected a larger "
                "size or a shorter lifetime"
            )
            raise ConfigError(msg)

    @property
    def spacing(self) -> float:
        """Time between two puffs [s]."""
        fastest = self.flow_speed + math.hypot(*self.source_velocity)
        bounds = [0.05 * self.lifetime]
        if fastest > 0.0:
            bounds.append(_STEP * self.size / fastest)
        if self.diffusivity > 0.0:
            bounds.append(0.25 * self.size**2 / self.diffusivity)
        # A longer time between puffs would miss the swing.
        if self.swing > 0.0 and self.flow_speed > 0.0:
            bounds.append(0.05 * self.swing_period)
        return min(bounds)

    @property
    def puffs(self) -> int:
        """Number of puffs in the plume."""
        ratio = _LIFETIMES * self.lifetime / self.spacing if self.spacing > 0.0 else math.inf
        return math.ceil(min(ratio, 1e18))


class PlumeField:
    """Concentration of a plume at given places, at any time.

    Args:
        config: source and flow.
        positions: (n, 2) places [m].
    """

    def __init__(self, config: PlumeConfig, positions: FloatArray) -> None:
        self._config = config
        self._positions = np.asarray(positions, dtype=np.float64)
        swings = config.flow_speed > 0.0 and config.swing > 0.0
        self.changes = any(config.source_velocity) or swings
        """True if the plume changes with time."""

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) concentrations at a time of the mission [s]. O(n · puffs)."""
        config = self._config
        total = np.zeros(len(self._positions))
        oldest = _LIFETIMES * config.lifetime
        stretches = max(1, math.ceil(oldest / (_NODES * config.spacing)))
        count, half = _NODES * stretches, 0.5 * oldest / stretches
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        ages = (half * (2.0 * np.arange(stretches)[:, None] + 1.0 + nodes)).ravel()
        steps = half * np.tile(weights, stretches)
        centres = self._centres(seconds, ages)
        squares = config.size**2 + 2.0 * config.diffusivity * ages
        masses = config.rate * steps * np.exp(-ages / config.lifetime) / (2.0 * np.pi * squares)
        rows = max(1, _CELLS // count)
        for first in range(0, len(total), rows):
            part = slice(first, first + rows)
            apart = np.square(self._positions[part, None, :] - centres).sum(axis=2)
            total[part] = np.exp(-0.5 * apart / squares) @ masses
        return total

    def _centres(self, seconds: float, ages: FloatArray) -> FloatArray:
        """Return the (m, 2) puff positions at a time [m]; the ages must increase."""
        config = self._config
        source = np.array(config.source)
        velocity = np.array(config.source_velocity)
        given_off = source + velocity * (seconds - ages)[:, None]
        # Displacement: the cumulative integral of the flow, by Gauss's rule.
        edges = np.concatenate([[0.0], ages])
        nodes, weights = np.polynomial.legendre.leggauss(4)
        middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
        flow = self._flow(seconds - (middle[:, None] + half[:, None] * nodes))
        carried = np.cumsum((flow * (half[:, None] * weights)[:, :, None]).sum(axis=1), axis=0)
        return np.asarray(given_off + carried)

    def _flow(self, times: FloatArray) -> FloatArray:
        config = self._config
        swing = config.swing * np.sin(2.0 * np.pi * times / config.swing_period)
        angle = np.deg2rad(config.flow_direction + swing)
        return config.flow_speed * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
