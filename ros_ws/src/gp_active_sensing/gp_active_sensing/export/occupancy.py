"""Export of a map as an occupancy grid.

The levels 0 … 100 span the values between two limits; -1 is a cell without a place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import RunError
from gp_active_sensing.export.field_map import FieldMap
from gp_active_sensing.export.lattice import Lattice, Layer, lattice_of, layers_of
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.yaml_files import check_meaning, comment, scalar

LEVELS = 100
UNKNOWN = -1
"""Level of a cell without a place."""
_SKEW = 1e-6
"""Largest difference between width and height of a square cell, as a fraction of the width."""


class Limits(NamedTuple):
    """Values whose levels are 0 and 100, in the sensor's unit."""

    low: float
    high: float


def limits_of(values: FloatArray, low: float | None = None, high: float | None = None) -> Limits:
    """Return the limits of the level scale for values (n,); the high limit is above the low limit.

    A missing limit becomes the smallest or the largest value.
    """
    first = float(values.min()) if low is None else low
    last = float(values.max()) if high is None else high
    if not last > first:
        last = first + max(abs(first) * 1e-9, 1e-9)
    return Limits(first, last)


def levels_of(lattice: Lattice, values: FloatArray, limits: Limits) -> npt.NDArray[np.int8]:
    """Return the levels 0 … 100 of values (n,) as a raster (rows, columns), south row first."""
    share = (values - limits.low) / (limits.high - limits.low)
    level = np.rint(LEVELS * np.clip(np.nan_to_num(share), 0.0, 1.0))
    return lattice.filled(level, UNKNOWN).astype(np.int8)


def square_lattice(topology: Topology) -> Lattice:
    """Return the cells of a map. Raises RunError unless the map is one grid of squares."""
    return _of_squares(topology, lattice_of(topology))


def square_layers(topology: Topology) -> tuple[Layer, ...]:
    """Return the layers of a map. Raises RunError unless the layers are grids of squares."""
    layers = layers_of(topology)
    _of_squares(topology, layers[0].lattice)
    return layers


def _of_squares(topology: Topology, lattice: Lattice) -> Lattice:
    width, height = lattice.cell
    if abs(width - height) > _SKEW * width:
        msg = (
            f"map {topology.name!r}: cells of {width:g} × {height:g} m; an occupancy grid "
            "has squares only. Use asc, geotiff, csv or geojson"
        )
        raise RunError(msg)
    return lattice


def as_map_server(field: FieldMap, name: str) -> dict[str, str | bytes]:
    """Return images and YAML files of map_server for mean and standard deviation, by name.

    Each layer of the map has its own files. A level means the same value in all files. A pixel is a
    level (mode ``raw``), or 255 for no place. All file names begin with `name`.

    Raises:
        RunError: the map is no grid of squares.
    """
    files: dict[str, str | bytes] = {}
    unit = f" [{field.unit}]" if field.unit else ""
    kinds = [
        ("mean", "estimate", field.mean, limits_of(field.mean)),
        ("std", "standard deviation", field.std, limits_of(field.std, 0.0)),
        *(
            (name, f"probability {name.replace('_', ' ')}", values, Limits(0.0, 1.0))
            for name, values in field.probabilities.items()
        ),
    ]
    for layer in square_layers(field.topology):
        (rows, columns), (x, y) = layer.lattice.shape, layer.lattice.corner
        above = "" if layer.height is None else f" at z {layer.height:g} m"
        for kind, title, values, limits in kinds:
            image = f"{name}_{layer.named(kind)}.pgm"
            levels = levels_of(layer.lattice, values[layer.places], limits)
            pixels = levels[::-1].astype(np.uint8)  # rows from north to south; -1 becomes 255
            files[image] = f"P5\n{columns} {rows}\n255\n".encode("ascii") + pixels.tobytes()
            step = (limits.high - limits.low) / LEVELS
            files[f"{name}_{layer.named(kind)}.yaml"] = _yaml(
                f"{field.quantity}, {title}{above}{unit}: value = {limits.low:.9g} + level * "
                f"{step:.9g}, level 0 ... {LEVELS}; other levels: no place",
                {
                    "image": image,
                    "mode": "raw",
                    "resolution": _metres(layer.lattice.cell[0]),
                    "origin": [_metres(x), _metres(y), 0.0],
                    "negate": 0,
                    "occupied_thresh": 1.0,
                    "free_thresh": 0.0,
                },
            )
    return files


def _yaml(title: str, data: dict[str, Any]) -> str:
    """Return data as YAML below a comment. Raises ConfigError if YAML cannot store the data."""
    text = "\n".join([comment(title), *(f"{k}: {scalar(v)}" for k, v in data.items())]) + "\n"
    check_meaning(text, data, what=title)
    return text


def _metres(value: float) -> float:
    return float(f"{value:.12g}")
