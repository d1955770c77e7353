"""Data sets of measured fields, simulated fields, and fields of the shipped scenarios.

The fields of a data set have numbers 0, 1, …. A field is a day, a window of a raster, or a random
draw. A data set with a single field returns this field for all numbers.
"""

from __future__ import annotations

import csv
import logging
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from network_data import Network, data_folder, rows_of, san_jose, sumo

from gp_active_sensing.sim import load_scenario
from gp_active_sensing.sim.fields.truth import build_truth
from gp_active_sensing.topology import Roads, build_topology
from gp_active_sensing.topology.base import FreeTopology, Topology
from gp_active_sensing.topology.grids import make_grid
from gp_active_sensing.topology.roads import keep_largest

KEY = 0xBE11
"""First entry of all random seeds."""
ROAD_NOISE = 2.5
"""Standard deviation of a speed reading on roads, in the unit of the data set."""
SHARE = 0.1
"""Standard deviation of a reading, in standard deviations of the field, on maps without roads."""
PIXEL, SIDE = 30.0, 24
"""Size of a pixel of the terrain [m], and number of places along the side of a window."""
FLAT = 0.1
"""Smallest standard deviation of a window, relative to that of the whole tile. Windows that vary
less are left out, such as those on a lake."""
DEGREE = 111_000.0
"""Length of a degree on the map of the ocean [m]."""
DAYS = 13
"""Number of evenly spaced times that are taken from a long record."""
MOVING = {"plume": (600.0, 720.0), "town_slots": (300.0, 300.0)}
"""Time of field 0 and interval between fields [s], for scenarios with a changing field."""
SCENARIOS = (
    "bloom", "hot_spot", "lake", "line", "plume", "terrain", "town", "town_slots", "warehouse",
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """Field on a map.

    Args:
        topology: map of n places.
        values: (n,) noise-free values; NaN = unknown.
        noise: standard deviation of a reading, in the unit of the values.
    """

    topology: Topology
    values: np.ndarray
    noise: float

    @property
    def known(self) -> np.ndarray:
        """Places (s,) with a known value."""
        return np.flatnonzero(np.isfinite(self.values))


@dataclass(frozen=True)
class DataSet:
    """Numbered fields of one origin. `what` describes this origin."""

    name: str
    what: str
    unit: str
    field: Callable[[int], Field]


def rng_of(name: str, *more: int) -> np.random.Generator:
    """Return a random generator whose seed consists of a name and further numbers."""
    return np.random.default_rng([KEY, zlib.crc32(name.encode()), *more])


def data_sets() -> dict[str, DataSet]:
    """Return all data sets by name. Measured fields need the folder in GPAS_DATA."""
    folder = data_folder()
    found = [*(_measured(folder) if folder else ()), *_shipped()]
    return {one.name: one for one in found}


def _measured(folder: Path) -> list[DataSet]:
    lab = "half-hours of 1-3 March 2004, 50 motes"
    raster = f"windows of {SIDE} × {SIDE} places of tile N17E073"
    return [
        DataSet(
            "San Jose", "13 Mondays 17:30, 325 road sensors", "mph", partial(_san_jose, folder)
        ),
        *(
            DataSet(name, "SUMO's mean speeds of edges", "km/h", partial(_sumo, folder, key))
            for name, key in (("Tampines", "tampines"), ("Monaco", "monaco"), ("town 7", "town"))
        ),
        DataSet("lab temperature", lab, "°C", partial(_lab, folder, "temp_C")),
        DataSet("lab humidity", lab, "% RH", partial(_lab, folder, "rh_pct")),
        *(
            DataSet(f"N17E073, {s * PIXEL:g} m", raster, "grey levels", partial(_tile, folder, s))
            for s in (1, 4)
        ),
        DataSet("Pacific, 4°", "months, the whole basin", "°C", partial(_sea, folder, 2)),
        DataSet("Pacific, 2°", "months, 20 × 30 places of the middle", "°C",
                partial(_sea, folder, 1)),
    ]  # fmt: skip


def _shipped() -> list[DataSet]:
    found = []
    for name in SCENARIOS:
        config = load_scenario(name).field
        what = {"gp": "draws of its Gaussian process"}.get(config.kind, "its field")
        what = "its field at several times" if name in MOVING else what
        unit = config.unit or "–"
        found.append(DataSet(f"sim/{name}", what, unit, partial(_scenario, name)))
    return found


def _spread(values: np.ndarray) -> float:
    """Return a typical standard deviation over the places, for w fields (w, n)."""
    return float(np.sqrt(np.nanvar(values, axis=1).mean()))


def _day(count: int, number: int) -> int:
    """Return the time index of field `number` in a record of `count` times."""
    return int(np.linspace(0, count - 1, min(count, DAYS)).round()[number % min(count, DAYS)])


def _on(topology: Topology, places: np.ndarray, values: np.ndarray, noise: float) -> Field:
    everywhere = np.full(topology.n, np.nan)
    everywhere[places] = values
    return Field(topology, everywhere, noise)


@lru_cache(maxsize=1)
def _freeways(folder: Path) -> tuple[Network, Roads]:
    network = san_jose(folder)
    return network, _roads(network)


def _roads(network: Network) -> Roads:
    """Return the map of a road network. Suppress warnings of the loader."""
    logger = logging.getLogger("gp_active_sensing.topology")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return Roads(network.road_map)
    finally:
        logger.setLevel(before)


def _san_jose(folder: Path, number: int) -> Field:
    network, roads = _freeways(folder)
    return _on(roads, network.places, network.values[number % len(network.values)], ROAD_NOISE)


@lru_cache(maxsize=2)
def _sumo_field(folder: Path, name: str) -> Field:
    """Return a field on the largest strongly connected part of a SUMO network."""
    network = sumo(folder, name)
    road_map = keep_largest(network.road_map)
    index = {segment.id: i for i, segment in enumerate(road_map.segments)}
    names = [network.road_map.segments[place].id for place in network.places]
    kept = [k for k, one in enumerate(names) if one in index]
    roads = Roads(road_map)
    places = np.array([index[names[k]] for k in kept])
    return _on(roads, places, network.values[0][kept], ROAD_NOISE)


def _sumo(folder: Path, name: str, number: int) -> Field:
    del number  # single field
    return _sumo_field(folder, name)


@lru_cache(maxsize=2)
def _motes(folder: Path, what: str) -> tuple[FreeTopology, np.ndarray]:
    """Return the map of the lab, and values (143, 50) by time and place."""
    data = folder / "intel"
    at = {
        f"m{int(row['mote']):02d}": (float(row["x_m"]), float(row["y_m"]))
        for row in rows_of(data / "mote_locs_54.csv")
    }
    with (data / f"intel50_{what}_30min_mar01_03.csv").open(encoding="utf-8") as lines:
        (_, *names), *table = list(csv.reader(lines))
    lab = FreeTopology("lab", "map", names, [at[name] for name in names])
    return lab, np.array([[float(v) for v in line[1:]] for line in table])


def _lab(folder: Path, what: str, number: int) -> Field:
    lab, values = _motes(folder, what)
    return Field(lab, values[_day(len(values), number)], SHARE * _spread(values))


@lru_cache(maxsize=2)
def _window(stride: int) -> Topology:
    return make_grid(SIDE, SIDE, stride * PIXEL, neighbours=8, name="terrain")


@lru_cache(maxsize=1)
def _heights(folder: Path) -> np.ndarray:
    with np.load(folder / "fields" / "srtm_N17E073_360.npz") as data:
        return np.asarray(data["elev"], dtype=float)


def _tile(folder: Path, stride: int, number: int) -> Field:
    heights = _heights(folder)
    reach = stride * (SIDE - 1) + 1
    rng, part = rng_of("tile", stride, number), np.zeros((SIDE, SIDE))
    while part.std() < FLAT * heights.std():
        r, c = rng.integers(0, np.array(heights.shape) - reach + 1)
        # Row 0 of a raster is its northern edge. Row 0 of a grid is its southern edge.
        part = heights[r : r + reach : stride, c : c + reach : stride][::-1]
    return Field(_window(stride), part.ravel(), SHARE * float(part.std()))


@lru_cache(maxsize=2)
def _ocean(folder: Path, stride: int) -> tuple[Topology, np.ndarray]:
    """Return the map of the ocean without land, and values (120, n) by month and place."""
    with np.load(folder / "fields" / "sst_pacific_monthly.npz") as data:
        months, lon, lat = np.asarray(data["sst"], dtype=float), data["lon"], data["lat"]
    if stride > 1:
        months, lon, lat = months[:, ::stride, ::stride], lon[::stride], lat[::stride]
    else:
        months, lon, lat = months[:, 5:25, 27:57], lon[27:57], lat[5:25]
    spacing = DEGREE * float(lon[1] - lon[0])
    land = [
        [(spacing * (c - 0.4), spacing * (r - 0.4)), (spacing * (c + 0.4), spacing * (r + 0.4))]
        for r, c in np.argwhere(~np.isfinite(months).all(axis=0)).tolist()
    ]
    sea = make_grid(len(lon), len(lat), spacing, neighbours=8, obstacles=land, name="ocean")
    cells = np.rint(sea.positions / spacing).astype(int)
    return sea, months[:, cells[:, 1], cells[:, 0]]


def _sea(folder: Path, stride: int, number: int) -> Field:
    sea, values = _ocean(folder, stride)
    return Field(sea, values[_day(len(values), number)], SHARE * _spread(values))


@lru_cache(maxsize=2)
def _map(name: str) -> Topology:
    return build_topology(load_scenario(name).map)


def _scenario(name: str, number: int) -> Field:
    scenario, topology = load_scenario(name), _map(name)
    truth = build_truth(scenario.field, topology, number)
    first, step = MOVING.get(name, (0.0, 0.0))
    values = np.array(truth.at(first + step * number))
    return Field(topology, values, scenario.sensor.noise_std)
