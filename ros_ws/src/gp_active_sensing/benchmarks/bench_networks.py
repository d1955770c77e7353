"""Leave-out prediction of speeds on road networks: which covariance knows the network."""

from __future__ import annotations

import logging
import math
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from common import Section
from network_data import Network, data_folder, san_jose, sumo

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.learning import PriorReadings, belief_section, learn
from gp_active_sensing.topology import Roads

SPLITS = 10
STARTS = 2
RELATIONAL = {"features": ("relational",)}
BY_ROAD = {"features": ("relational",), "relational": ("road_distance",)}


@dataclass(frozen=True)
class Method:
    """A covariance and a mean.

    Args:
        name: in the table.
        belief: keys of the belief.
        roads: arguments of the map.
    """

    name: str
    belief: dict[str, Any] = field(default_factory=dict)
    roads: dict[str, Any] = field(default_factory=dict)


def methods(trend: tuple[str, ...], *, ends: bool) -> list[Method]:
    """The rows of a table; with columns for a linear mean, and with values at segments' ends."""
    found = [
        Method("straight-line SE"),
        Method("SE of road distance", roads=BY_ROAD),
        Method("relational SE", roads=RELATIONAL),
        Method("graph Matérn 3/2", {"kernel": "graph_matern"}),
    ]
    linear = {"mean": "linear", "mean_features": trend}
    if trend:
        found += [Method(f"{m.name}, linear mean", m.belief | linear, m.roads) for m in found]
    if ends:
        at_end = {"anchor": 1.0}
        found += [
            Method("straight-line SE, linear mean, at ends", linear, at_end),
            Method("SE of road distance, linear mean, at ends", linear, BY_ROAD | at_end),
            Method(
                "graph Matérn 3/2, linear mean, at ends",
                {"kernel": "graph_matern"} | linear,
                at_end,
            ),
        ]
    return found


def halves(network: Network, split: int) -> tuple[np.ndarray, np.ndarray]:
    """The sensors that are known and those that are left out."""
    order = np.random.default_rng([split, 0x5A17]).permutation(len(network.places))
    half = len(order) // 2
    return np.sort(order[:half]), np.sort(order[half:])


def score(values: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[float, float]:
    """RMSE and mean negative log density of readings."""
    error = values - mean
    density = 0.5 * (np.log(2.0 * math.pi * variance) + error**2 / variance)
    return math.sqrt(float(np.mean(error**2))), float(np.mean(density))


def constant(known: np.ndarray, left: np.ndarray) -> tuple[float, float]:
    """Scores of the known values' mean and variance."""
    size = len(left)
    return score(left, np.full(size, known.mean()), np.full(size, known.var(ddof=1)))


def predicted(
    network: Network, config: BeliefConfig, roads: Roads, split: int, values: np.ndarray
) -> tuple[float, float]:
    """Scores of one field: hyper-parameters and belief from the known half only."""
    known, left = halves(network, split)
    readings = PriorReadings(network.places[known], values[known], network.road_map.name)
    section = belief_section(learn(config, roads, readings, starts=STARTS), config, "grid")
    belief = belief_on(section, roads)
    for place, value in zip(readings.places, readings.values, strict=True):
        belief.observe(int(place), float(value))
    mean, variance = belief.predict(network.places[left], noisy=True)
    return score(values[left], mean, variance)


def scores(network: Network, method: Method | None, splits: int) -> np.ndarray:
    """(splits, 2) RMSE and NLPD of the half left out, averaged over the replicates of the field."""
    if method is not None:
        roads = Roads(network.road_map, **method.roads)
        config = BeliefConfig(**method.belief)
    found = []
    for split in range(splits):
        known, left = halves(network, split)
        each = [
            constant(values[known], values[left])
            if method is None
            else predicted(network, config, roads, split, values)
            for values in network.values
        ]
        found.append(np.mean(each, axis=0))
    return np.array(found)


def table(network: Network, rows: list[Method], splits: int) -> list[list[object]]:
    """Mean and standard error of both scores, and the paired difference to the first covariance."""
    base = scores(network, rows[0], splits)
    lines: list[list[object]] = []
    for method in [None, *rows]:
        found = base if method is rows[0] else scores(network, method, splits)
        gain = found[:, 0] - base[:, 0]
        lines.append(
            [
                network.road_map.name,
                "constant" if method is None else method.name,
                shown(found[:, 0]),
                shown(gain) if method is not rows[0] else "",
                shown(found[:, 1], 3),
            ]
        )
        sys.stderr.write(" | ".join(str(v) for v in lines[-1]) + "\n")
    return lines


def shown(values: np.ndarray, digits: int = 2) -> str:
    error = values.std(ddof=1) / math.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def run(splits: int = SPLITS) -> Section:
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    section = Section(
        "Predicting speeds that were left out",
        "GPAS_DATA=… python benchmarks/run.py networks",
        f"{splits} random halves; each predicts the other. Length-scale, signal and noise are "
        "learned from the known half only (`gp-active-sensing learn`: GPyTorch, 2 starts, a grid "
        "of 7 length-scales about the estimate), then the known half is given to the belief and "
        "the other half predicted. RMSE in the field's unit (mph in San Jose, else km/h), NLPD of "
        "readings in nats, ± one standard error over the halves; the difference is paired, to the "
        "straight-line SE on the same halves. San Jose: the mean over 13 Mondays, each learned and "
        "predicted by itself; 325 sensors, each on a piece of road of its own; its map has length "
        "and direction only. Tampines, town: SUMO's mean speeds of edges; linear means in speed "
        "limit, lanes and length.",
        ("network", "covariance", "RMSE", "difference", "NLPD"),
    )
    folder = data_folder()
    if folder is None:
        section.text += " **Not run: GPAS_DATA names no folder.**"
        return section
    columns = ("speed_limit", "lanes", "length")
    section.rows += table(san_jose(folder), methods((), ends=False), splits)
    for name in ("tampines", "town"):
        section.rows += table(sumo(folder, name), methods(columns, ends=True), splits)
    return section
