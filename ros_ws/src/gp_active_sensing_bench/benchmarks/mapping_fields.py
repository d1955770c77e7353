"""Arenas of the mapping benchmark: data sets with a rule for moves.

Fields come from `belief_data`, or are draws of Gaussian processes with random length-scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from belief_data import SHARE, Field, data_sets, rng_of

from gp_active_sensing.config import from_mapping
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.fields.truth import build_truth
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.topology.base import FreeTopology, Topology
from gp_active_sensing.topology.grids import make_grid

MOVES, FREE = "moves", "free"
MEASURED = (
    "N17E073, 30 m", "N17E073, 120 m", "Pacific, 2°", "Pacific, 4°",
    "San Jose", "Tampines", "Monaco",
)  # fmt: skip
SHIPPED = ("sim/town", "sim/terrain", "sim/lake", "sim/bloom", "sim/warehouse")
QUICK = (
    ("N17E073, 120 m", MOVES),
    ("sim/town", MOVES),
    ("sim/lake", MOVES),
    ("draws/island", MOVES),
    ("draws/plane", FREE),
)
LENGTHS = (1.5, 8.0)
"""Range of the log-uniform length-scale of random fields on a plane [cells]."""
ROAD_LENGTHS = (80.0, 800.0)
"""Range of the log-uniform length-scale of random fields on the town's roads [m]."""
_SAMPLE = 300
"""Largest number of places from which the typical length of a move is computed."""


@dataclass(frozen=True)
class Arena:
    """Data set with a rule for moves: between neighbours (`MOVES`), or to any place (`FREE`).

    A full run of the benchmark has `draws` missions in an arena.
    """

    name: str
    mode: str
    what: str
    unit: str
    draws: int
    roads: bool = False
    """True if the map has roads."""

    def field(self, number: int) -> Field:
        """Return field `number`. An arena with a single field ignores the number."""
        found = _sources()[self.name](number)
        if self.mode == FREE and not found.topology.free:
            found = Field(_freed(found.topology), found.values, found.noise)
        return found


def arenas(starts: int, draws: int) -> dict[tuple[str, str], Arena]:
    """Return all arenas by (name, mode).

    Args:
        starts: number of missions on a data set of `belief_data`.
        draws: number of missions on a kind of random fields.
    """
    known = data_sets()
    found: list[Arena] = []
    for name in (*MEASURED, *SHIPPED, *DRAWS):
        if name in DRAWS:
            what, unit, count = DRAWS[name][0], "σ", draws
        elif name in known:
            what, unit, count = known[name].what, known[name].unit, starts
        else:
            continue
        roads = name in ("San Jose", "Tampines", "Monaco", "sim/town", "draws/town")
        modes = (MOVES,) if roads else (MOVES, FREE)
        found += [Arena(name, mode, what, unit, count, roads) for mode in modes]
    return {(one.name, one.mode): one for one in found}


@lru_cache(maxsize=1)
def _sources() -> dict[str, Callable[[int], Field]]:
    known = {name: one.field for name, one in data_sets().items()}
    return known | {name: make for name, (_, make) in DRAWS.items()}


@lru_cache(maxsize=8)
def _freed(topology: Topology) -> FreeTopology:
    """Return the same places with free choice of the next place."""
    return FreeTopology(topology.name, topology.frame, topology.names, topology.positions)


@lru_cache(maxsize=32)
def step_of(topology: Topology) -> float:
    """Return the typical length of a move [m]."""
    if topology.free or not topology.roads:
        x = topology.positions
        apart = np.hypot(*(x[:, None, :] - x[None, :, :]).transpose(2, 0, 1))
        np.fill_diagonal(apart, math.inf)
        return float(np.median(apart.min(axis=1)))
    nothing = np.zeros(topology.n, dtype=bool)
    places = np.unique(np.linspace(0, topology.n - 1, _SAMPLE).astype(int)).tolist()
    metres = [
        topology.route(at, int(to), nothing).cost.metres
        for at in places
        for to in topology.neighbours(at)
    ]
    return float(np.mean(metres))


# -- draws -------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _ground(name: str) -> Topology:
    if name == "draws/plane":
        return make_grid(20, 20, 1.0, neighbours=8, name="plane")
    if name == "draws/island":
        around = [(6.6, 4.6), (11.4, 3.6), (15.4, 6.6), (13.4, 11.4), (8.6, 10.4)]
        lake = [(3, -0.5), (19, -0.5), (23.5, 5), (22, 13), (15, 17.5), (5, 16), (-0.5, 10), (0, 4)]
        return make_grid(
            24, 18, 1.0, neighbours=8, outline=lake, obstacles=[around], name="lake with an island"
        )
    return build_topology(from_mapping(MapConfig, {"kind": "roads", "file": "town.geojson"}))


def _drawn(name: str, number: int) -> Field:
    """Return a random field with a random length-scale."""
    topology = _ground(name)
    low, high = ROAD_LENGTHS if topology.roads else LENGTHS
    length = math.exp(rng_of(name, number, 7).uniform(math.log(low), math.log(high)))
    kernel = "graph_matern32" if topology.roads else "matern32"
    config = FieldConfig(kind="gp", kernel=kernel, length_scale=length, signal_std=1.0)
    values = np.array(build_truth(config, topology, number).at(0.0))
    return Field(topology, values, SHARE)


DRAWS: dict[str, tuple[str, Callable[[int], Field]]] = {
    "draws/plane": (
        "Matérn 3/2 on 20 × 20 cells, ℓ from 1.5 to 8 cells", partial(_drawn, "draws/plane"),
    ),
    "draws/island": (
        "Matérn 3/2 on a lake of 24 × 18 cells with an island, ℓ from 1.5 to 8 cells",
        partial(_drawn, "draws/island"),
    ),
    "draws/town": (
        "graph Matérn 3/2 on the town's roads, ℓ from 80 to 800 m", partial(_drawn, "draws/town"),
    ),
}  # fmt: skip
