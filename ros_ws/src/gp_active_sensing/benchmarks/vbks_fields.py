"""Fields of today with a log of yesterday: what a probe finds, and what may be known before."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from network_data import rows_of, san_jose
from vbks_data import KEY, Truth, drawn, san_jose_roads

from gp_active_sensing.kernel_model import (
    History,
    KernelFit,
    KernelModel,
    KernelPosterior,
    Scaling,
)
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.generated import FreeTopology, make_grid

SIDE, NOISE, LOG = 20, 0.1, 200
"""Of drawn fields: places a side, noise of a reading, readings in the log of yesterday."""
KINDS = (
    Truth("SE", (1.0,), ((4.0,),)),
    Truth("PER+SE", (0.8, 0.6), ((1.0, 8.0), (4.0,))),
    Truth("LIN×SE", (1.0,), ((5.8,), (4.0,))),
)
"""Kernels of drawn fields; lengths and periods in metres, (0, 0) the middle of the map."""
DAY = 48
"""Half-hours."""


@dataclass(frozen=True)
class Field:
    """A field, where the probe begins, and what was read yesterday.

    Args:
        topology: where it may go.
        values: (n,) what it is to be compared with.
        readings: (n,) what a visit of each place reads.
        start: the place that is read first.
        places, log: of yesterday's readings.
        truth: the kernel it was drawn from.
    """

    topology: Topology
    values: np.ndarray
    readings: np.ndarray
    start: int
    places: np.ndarray
    log: np.ndarray
    truth: Truth | None = None

    def rows(self) -> Dataset:
        names = self.topology.feature_names
        return Dataset(self.topology.features[self.places], self.log, names, "value", "yesterday")


@lru_cache(maxsize=1)
def grid() -> Topology:
    corner = 0.5 * (1 - SIDE)
    return make_grid(SIDE, SIDE, 1.0, neighbours=8, moves="adjacent", origin=(corner, corner))


def drawn_field(truth: Truth, number: int) -> Field:
    """Two draws of a kernel with means of their own, today's and yesterday's."""
    rng = np.random.default_rng([KEY, 3, [k.name for k in KINDS].index(truth.name), number])
    at = grid().features
    covariance = truth.covariance(at, at)
    covariance += 1e-6 * np.eye(len(at))
    today, yesterday = (drawn(covariance, rng)[0] for _ in range(2))
    readings = today + NOISE * rng.standard_normal(len(at))
    places = rng.permutation(len(at))[:LOG]
    log = yesterday[places] + NOISE * rng.standard_normal(LOG)
    return Field(grid(), today, readings, int(rng.integers(len(at))), places, log, truth)


def speed_field(folder: Path, number: int) -> Field:
    """Speeds of a Monday in San Jose at 325 sensors; the log is that of one or two weeks before."""
    topology, values = _sensors(folder)
    week, back = number % len(values), 1 + number // len(values)
    rng = np.random.default_rng([KEY, 4, number])
    start = int(rng.integers(topology.n))
    log = values[(week - back) % len(values)]
    return Field(topology, values[week], values[week], start, np.arange(topology.n), log)


@lru_cache(maxsize=1)
def _sensors(folder: Path) -> tuple[Topology, np.ndarray]:
    network = san_jose(folder)
    roads = san_jose_roads(network)
    topology = FreeTopology(
        "sensors",
        "map",
        [roads.names[p] for p in network.places],
        roads.positions[network.places],
        features=roads.features[network.places],
        feature_names=roads.feature_names,
    )
    return topology, network.values


def lab_field(folder: Path, number: int) -> Field:
    """Temperatures of the Intel lab at 50 motes; the log is of the same hour the day before."""
    topology, values = _motes(folder)
    half_hours = np.linspace(DAY, len(values) - 1, 20).round().astype(int)
    today = int(half_hours[number])
    start = int(np.random.default_rng([KEY, 5, number]).integers(topology.n))
    return Field(
        topology, values[today], values[today], start, np.arange(topology.n), values[today - DAY]
    )


@lru_cache(maxsize=1)
def _motes(folder: Path) -> tuple[Topology, np.ndarray]:
    at = {
        f"m{int(row['mote']):02d}": (float(row["x_m"]), float(row["y_m"]))
        for row in rows_of(folder / "intel" / "mote_locs_54.csv")
    }
    with (folder / "intel" / "intel50_temp_C_30min_mar01_03.csv").open(encoding="utf-8") as lines:
        (_, *names), *table = list(csv.reader(lines))
    topology = FreeTopology("lab", "map", names, [at[name] for name in names])
    return topology, np.array([[float(v) for v in line[1:]] for line in table])


def informed(truth: Truth, noise: float = NOISE) -> KernelModel:
    """A model that says what a field was drawn from."""
    composite = truth.composite(2)
    theta = truth.theta(2, noise)
    P, nothing = composite.size, np.zeros(1)
    fit = KernelFit(
        composite, 0.0, theta, np.zeros((P, P)), np.zeros((1, 2)), nothing, np.eye(1), True,
        1e-6, 0, "given", np.zeros((0, 3)),
    )  # fmt: skip
    one = np.ones(1)
    belief = KernelPosterior(nothing, np.eye(1), 1.0, one, nothing, one, 0.0)
    history = History(one, (truth.name,), np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    scaling = Scaling(np.zeros(2), np.ones(2), 0.0, 1.0)
    names = ("x", "y")
    return KernelModel((fit,), belief, (), scaling, names, "value", 1, "the truth", history)


def kinds(folder: Path | None) -> dict[str, Callable[[int], Field]]:
    """All kinds of fields, by number; measured ones where there is the data."""
    found: dict[str, Callable[[int], Field]] = {
        truth.name: (lambda number, truth=truth: drawn_field(truth, number)) for truth in KINDS
    }
    if folder is not None:
        found["San Jose"] = lambda number: speed_field(folder, number)
        found["Intel lab"] = lambda number: lab_field(folder, number)
    return found
