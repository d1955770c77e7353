"""Fields on road networks for Experiment 2 of the BAL paper.

`BELIEFS` comes from the command `learn`, on one field of each network. Missions do not use that
field.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from network_data import KMH, data_folder, rows_of, san_jose, sumo

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.topology import Roads
from gp_active_sensing.topology.roads import keep_largest

RELATIONAL = {"features": ("relational",)}
KEY = 0x20AD
"""First entry of all random seeds."""


@dataclass(frozen=True)
class RoadFields:
    """Fields on one map with a common belief.

    Args:
        name: name in the tables.
        unit: unit of the values.
        roads: map of n segments.
        values: (fields, n) values; NaN = segment without a value, which is never read.
        noise: standard deviation of the sensor's noise.
        belief: configuration of the belief at the start of each mission.
        blocks: (fields,) index of the block to which each field belongs. Fields of a block are
            close in time.
        checkpoints: numbers of readings after which the map is scored.
        truth: index of the candidate length-scale that generated the fields; None = unknown.
    """

    name: str
    unit: str
    roads: Roads
    values: np.ndarray
    noise: float
    belief: BeliefConfig
    blocks: tuple[int, ...]
    checkpoints: tuple[int, ...]
    truth: int | None = None


# From `learn --lambda paper`: Λ = ℓ*, 4ℓ*, 6ℓ*, … 14ℓ*, with an unknown mean.
_TAMPINES = (0.99, 3.95, 5.93, 7.9, 9.88, 11.9, 13.8)
BELIEFS: dict[str, dict[str, Any]] = {
    "tampines": {"length_scales": _TAMPINES, "signal_std": (7.7,), "noise_std": (10.5,)},
    "san_jose": {
        "length_scales": (2.83, 11.3, 17.0, 22.6, 28.3, 33.9, 39.6),
        "signal_std": (14.7,),
        "noise_std": (11.4,),
    },
    "tampines_slot": {
        "length_scales": (1.07, 4.29, 6.44, 8.59, 10.7, 12.9, 15.0),
        "signal_std": (7.82,),
        "noise_std": (10.6,),
    },
    "town_slot": {
        "length_scales": (3.02, 12.1, 18.1, 24.2, 30.2, 36.2, 42.3),
        "signal_std": (2.04,),
        "noise_std": (6.74,),
    },
    "monaco_slot": {
        "length_scales": (1.03, 4.1, 6.16, 8.21, 10.3, 12.3, 14.4),
        "signal_std": (15.4,),
        "noise_std": (12.2,),
    },
}
PAPER = (60, 120, 180, 240)
"""Budgets of the paper for 775 segments [readings]."""
SENSORS = (25, 50, 75, 100)
"""Budgets for the 325 detectors of San Jose [readings]: the same fractions as those of `PAPER`."""
DRAWS = 40
REACH = 3000.0
"""Largest distance of a move between detectors in San Jose [m]."""


def belief_of(name: str, **changed: Any) -> BeliefConfig:
    """Return the entry of `BELIEFS` for a network, with some settings changed."""
    common = {"kernel": "se", "mean_value": 0.0, "mean_std": 100.0}
    return BeliefConfig(**{**common, **BELIEFS[name], **changed})


@lru_cache(maxsize=2)
def traffic(name: str) -> tuple[Roads, np.ndarray]:
    """Return the largest connected part of a SUMO network, and its speeds [km/h].

    The speeds (w, n) are the mean speeds on n segments in w quarter-hours.
    """
    folder = _folder()
    road_map = keep_largest(sumo(folder, name).road_map)
    rows = {row["id"]: row for row in rows_of(folder / "sumo" / f"{name}.speeds.csv")}
    slots = [key for key in next(iter(rows.values())) if key[:2] == "v_" and key[2].isdigit()]
    values = [
        [float(rows[segment.id][slot] or "nan") for segment in road_map.segments] for slot in slots
    ]
    return _quiet(partial(Roads, road_map, **RELATIONAL)), KMH * np.array(values)


@lru_cache(maxsize=1)
def mondays() -> tuple[Roads, np.ndarray]:
    """Return the San Jose freeways, and their speeds (13, n) on Mondays at 17:30 [mph]."""
    network = san_jose(_folder())
    roads = _quiet(partial(Roads, network.road_map, reach=REACH, **RELATIONAL))
    values = np.full((len(network.values), roads.n), np.nan)
    values[:, network.places] = network.values
    values[:, sorted(roads.components.outside)] = np.nan
    return roads, values


def draws(name: str, scale: int, noise: float) -> RoadFields:
    """Return draws of a Gaussian process; `scale` = index of its length-scale in `BELIEFS`."""
    roads, _ = traffic("tampines")
    belief = belief_of("tampines", noise_std=(noise,))
    root = _root(scale)
    signal = BELIEFS["tampines"]["signal_std"][0]
    white = [np.random.default_rng([KEY, i]).standard_normal(roads.n) for i in range(DRAWS)]
    values = 36.0 + signal * np.array([root @ w for w in white])
    alone = tuple(range(DRAWS))
    return RoadFields(name, "km/h", roads, values, noise, belief, alone, PAPER, scale)


@lru_cache(maxsize=2)
def _root(scale: int) -> np.ndarray:
    """Return the symmetric root of the correlation matrix; `scale` = index of its length-scale."""
    features = traffic("tampines")[0].features
    lengths = np.array([BELIEFS["tampines"]["length_scales"][scale]])
    values, vectors = np.linalg.eigh(build_kernel("se").correlation(features, features, lengths))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)


def weeks() -> RoadFields:
    """Return twelve Mondays of San Jose. The belief was learned from an earlier Monday."""
    roads, values = mondays()
    count = len(values) - 1
    blocks = tuple(i // 3 for i in range(count))
    belief = belief_of("san_jose")
    return RoadFields("San Jose", "mph", roads, values[1:], 0.0, belief, blocks, SENSORS)


def quarters(name: str, title: str) -> RoadFields:
    """Return a field for each simulated quarter-hour but the first, which was used for learning."""
    roads, values = traffic(name)
    blocks = (0,) * (len(values) - 1)
    belief = belief_of(f"{name}_slot")
    return RoadFields(title, "km/h", roads, values[1:], 0.0, belief, blocks, PAPER)


FIELDS: dict[str, Callable[[], RoadFields]] = {
    "draws, as learned": partial(draws, "draws, as learned", 0, 10.5),
    "draws, clear": partial(draws, "draws, clear", 1, 2.5),
    "San Jose": weeks,
    "Tampines": partial(quarters, "tampines", "Tampines"),
    "town": partial(quarters, "town", "town"),
    "Monaco": partial(quarters, "monaco", "Monaco"),
}
TITLES = {
    "draws, as learned": "Draws of the relational Gaussian process on the roads of Tampines with "
    "ℓ*, signal and noise as learned from its simulated traffic, a field and a start a run.",
    "draws, clear": "The same with 4ℓ* and a noise of 2.5 km/h.",
    "San Jose": "San Jose: measured speeds of Mondays at 17:30, weeks 2 to 13; errors over weeks.",
    "Tampines": "Tampines: simulated traffic, three quarter-hours in a row: one block of time, so "
    "that the standard errors say how quarter-hours differ and nothing of other days.",
    "town": "The town: the same of its simulated traffic.",
    "Monaco": "Monaco: the same, two quarter-hours.",
}


def _folder() -> Path:
    folder = data_folder()
    if folder is None:
        msg = "GPAS_DATA: expected the folder with the road networks, it names none; see README.md"
        raise ConfigError(msg)
    return folder


def _quiet(make: Callable[[], Roads]) -> Roads:
    logger = logging.getLogger("gp_active_sensing.topology")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return make()
    finally:
        logger.setLevel(before)
