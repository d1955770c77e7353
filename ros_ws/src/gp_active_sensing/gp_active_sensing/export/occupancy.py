"""The map of a grid as an occupancy grid: levels 0 … 100 between two limits, -1 = no place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import RunError
from gp_active_sensing.export.field_map import FieldMap
from gp_active_sensing.export.lattice import Lattice, lattice_of
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray

__all__ = [
    "LEVELS",
    "UNKNOWN",
    "Limits",
    "as_map_server",
    "as_messages",
    "levels_of",
    "limits_of",
    "square_lattice",
]

LEVELS = 100
"""The highest level."""
UNKNOWN = -1
"""Level of a cell that is no place."""
_SKEW = 1e-6
"""Share by which width and height of a cell may differ."""


class Limits(NamedTuple):
    """Values of level 0 and of level 100, in the sensor's unit."""

    low: float
    high: float


@dataclass(frozen=True)
class _OccupancyLayer:
    """One of the two grids that are written.

    Args:
        name: mean or std.
        title: what it is, with its unit.
        limits: of its levels.
        levels: (rows, columns) from south to north.
    """

    name: str
    title: str
    limits: Limits
    levels: npt.NDArray[np.int8]

    @property
    def scale(self) -> str:
        """How a level becomes a value, as a sentence."""
        low, high = self.limits
        return (
            f"{self.title}: value = {low:.9g} + level * {(high - low) / LEVELS:.9g}, "
            f"level 0 ... {LEVELS}; other levels: no place"
        )


def limits_of(values: FloatArray, low: float | None = None, high: float | None = None) -> Limits:
    """Return the limits of the levels of values (n,); the higher one is above the lower one.

    Args:
        values: of the places.
        low: of level 0; None = the smallest value.
        high: of level 100; None = the largest value.
    """
    first = float(values.min()) if low is None else low
    last = float(values.max()) if high is None else high
    if not last > first:
        last = first + max(abs(first) * 1e-9, 1e-9)
    return Limits(first, last)


def levels_of(lattice: Lattice, values: FloatArray, limits: Limits) -> npt.NDArray[np.int8]:
    """Return (rows, columns) levels from south to north; what lies beyond the limits gets theirs.

    Args:
        lattice: the cells.
        values: (n,) of the places.
        limits: of the levels.
    """
    share = (values - limits.low) / (limits.high - limits.low)
    level = np.rint(LEVELS * np.clip(np.nan_to_num(share), 0.0, 1.0))
    return lattice.filled(level, UNKNOWN).astype(np.int8)


def square_lattice(topology: Topology) -> Lattice:
    """Return the cells of a map, which have to be squares.

    Raises:
        RunError: it is no grid, or its cells are no squares.
    """
    lattice = lattice_of(topology)
    width, height = lattice.cell
    if abs(width - height) > _SKEW * width:
        msg = (
            f"map {topology.name!r}: cells of {width:g} × {height:g} m; an occupancy grid "
            "has squares only. Use asc, geotiff, csv or geojson"
        )
        raise RunError(msg)
    return lattice


def _layers(field: FieldMap, lattice: Lattice) -> Iterator[_OccupancyLayer]:
    unit = f" [{field.unit}]" if field.unit else ""
    for name, title, values, low in (
        ("mean", f"{field.quantity}, estimate{unit}", field.mean, None),
        ("std", f"{field.quantity}, standard deviation{unit}", field.std, 0.0),
    ):
        limits = limits_of(values, low)
        yield _OccupancyLayer(name, title, limits, levels_of(lattice, values, limits))


def as_map_server(field: FieldMap, name: str) -> dict[str, str | bytes]:
    """Return the image and the YAML of Nav2's map_server for mean and deviation, by file name.

    The mode is ``raw``: a pixel is the level, 255 = no place.

    Args:
        field: the map.
        name: begins the names of all files.

    Raises:
        RunError: the map is no grid of squares.
    """
    lattice = square_lattice(field.topology)
    x, y = lattice.corner
    files: dict[str, str | bytes] = {}
    for layer in _layers(field, lattice):
        image = f"{name}_{layer.name}.pgm"
        rows, columns = lattice.shape
        pixels = layer.levels[::-1].astype(np.uint8)  # from north to south; -1 becomes 255
        files[image] = f"P5\n{columns} {rows}\n255\n".encode("ascii") + pixels.tobytes()
        files[f"{name}_{layer.name}.yaml"] = (
            f"# {layer.scale}\n"
            f"image: {image}\nmode: raw\nresolution: {_metres(lattice.cell[0])}\n"
            f"origin: [{_metres(x)}, {_metres(y)}, 0.0]\nnegate: 0\n"
            "occupied_thresh: 1.0\nfree_thresh: 0.0\n"
        )
    return files


def as_messages(field: FieldMap) -> dict[str, str]:
    """Return ``nav_msgs/msg/OccupancyGrid`` of mean and deviation as YAML, by the word for a name.

    As ``ros2 topic pub`` takes it and ``ros2 topic echo`` writes it.

    Raises:
        RunError: the map is no grid of squares.
    """
    lattice = square_lattice(field.topology)
    (rows, columns), (x, y) = lattice.shape, lattice.corner
    return {
        layer.name: (
            f"# nav_msgs/msg/OccupancyGrid; {layer.scale}\n"
            f"header:\n  frame_id: {_quoted(field.topology.frame)}\n"
            f"info:\n  resolution: {_metres(lattice.cell[0])}\n"
            f"  width: {columns}\n  height: {rows}\n"
            f"  origin:\n    position: {{x: {_metres(x)}, y: {_metres(y)}, z: 0.0}}\n"
            "    orientation: {x: 0.0, y: 0.0, z: 0.0, w: 1.0}\n"
            f"data: [{', '.join(map(str, layer.levels.ravel().tolist()))}]\n"
        )
        for layer in _layers(field, lattice)
    }


def _metres(value: float) -> str:
    """Return a number that YAML takes for a real one."""
    return repr(float(f"{value:.12g}"))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
