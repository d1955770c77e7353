"""The cells of a grid: which row and column each place has, and where the grid lies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import RunError
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["Lattice", "lattice_of"]

_OFF = 1e-3
"""Share of a cell by which a place may lie beside its centre."""
MOST_CELLS = 25_000_000
"""Of a raster; those that are no places count as well."""


@dataclass(frozen=True)
class Lattice:
    """Places as cells of a raster, row 0 in the south and column 0 in the west.

    Args:
        centre: of the south-west cell [m].
        cell: width and height of a cell [m].
        shape: rows and columns.
        row: (n,) of each place.
        column: (n,) of each place.
    """

    centre: tuple[float, float]
    cell: tuple[float, float]
    shape: tuple[int, int]
    row: IntArray
    column: IntArray

    @cached_property
    def corner(self) -> tuple[float, float]:
        """South-west corner of the south-west cell [m]."""
        return self.centre[0] - 0.5 * self.cell[0], self.centre[1] - 0.5 * self.cell[1]

    @cached_property
    def top(self) -> float:
        """North edge of the northernmost row [m]."""
        return self.corner[1] + self.shape[0] * self.cell[1]

    def filled(self, values: npt.ArrayLike, empty: float = np.nan) -> FloatArray:
        """Return (rows, columns) from south to north; `empty` where there is no place.

        Args:
            values: (n,) of the places.
            empty: of the other cells.
        """
        raster = np.full(self.shape, empty, dtype=np.float64)
        raster[self.row, self.column] = values
        return raster


def lattice_of(topology: Topology) -> Lattice:
    """Return the cells of a map.

    Raises:
        RunError: its places are no cells of one grid: roads, scattered points, heights.
    """
    if topology.roads or any(len(topology.geometry(i)) > 1 for i in range(min(topology.n, 2))):
        raise _refused(topology, "its places are pieces of roads")
    x, y = topology.positions.T
    across, up = _step(x), _step(y)
    cell = across or up, up or across
    if not cell[0]:
        raise _refused(topology, "it has one place only")
    centre = float(x.min()), float(y.min())
    column, columns = _counted(x, centre[0], cell[0])
    row, rows = _counted(y, centre[1], cell[1])
    off = max(_off(x, centre[0], cell[0]), _off(y, centre[1], cell[1]))
    if off > _OFF:
        raise _refused(topology, "its places do not stand in rows and columns")
    if rows * columns > MOST_CELLS:
        raise _refused(topology, f"it would have {rows} × {columns} cells, more than {MOST_CELLS}")
    place = row * columns + column
    if len(np.unique(place)) < topology.n:
        raise _refused(topology, "several places stand at one position, such as above one another")
    found = Lattice(centre, cell, (rows, columns), row, column)
    if not _adjacent(found):
        raise _refused(topology, "most of its places have no other one beside them")
    return found


def _step(values: FloatArray) -> float:
    """Return the smallest distance of two different coordinates; 0 where all are one."""
    gaps = np.diff(np.unique(values))
    gaps = gaps[gaps > 1e-6 * max(float(np.ptp(values)), 1e-9)]
    return float(np.median(gaps[gaps < (1.0 + 2.0 * _OFF) * gaps.min()])) if len(gaps) else 0.0


def _counted(values: FloatArray, first: float, step: float) -> tuple[IntArray, int]:
    number = np.rint((values - first) / step).astype(np.int64)
    return number, int(number.max()) + 1


def _off(values: FloatArray, first: float, step: float) -> float:
    steps = (values - first) / step
    return float(np.abs(steps - np.rint(steps)).max())


def _adjacent(lattice: Lattice) -> bool:
    """Say whether most places have another one in the cell to the east, west, north or south."""
    held = np.zeros((lattice.shape[0] + 2, lattice.shape[1] + 2), dtype=np.bool_)
    row, column = lattice.row + 1, lattice.column + 1
    held[row, column] = True
    beside = held[row + 1, column] | held[row - 1, column]
    beside |= held[row, column + 1] | held[row, column - 1]
    return bool(beside.mean() > 0.5)


def _refused(topology: Topology, why: str) -> RunError:
    return RunError(
        f"map {topology.name!r} is no grid: {why}. Rasters (asc, pgm, geotiff, ros) need cells of "
        "one size in rows and columns; csv and geojson take any map"
    )
