"""Cells and layers of a grid: row and column of each place, and position of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import RunError
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray, IntArray

_NEAR = 0.25
"""Largest distance between a requested height and a layer, as a fraction of the layer spacing."""
_OFF = 1e-3
"""Largest distance of a place from the centre of its cell [cell]."""
MOST_CELLS = 25_000_000


@dataclass(frozen=True)
class Lattice:
    """Places as cells of a raster, row 0 in the south and column 0 in the west.

    Args:
        centre: centre of the south-west cell [m].
        cell: width and height of a cell [m].
        shape: numbers of rows and columns.
        row: (n,) row of each place.
        column: (n,) column of each place.
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
        """Return values (n,) as a raster (rows, columns), south row first, elsewhere `empty`."""
        raster = np.full(self.shape, empty, dtype=np.float64)
        raster[self.row, self.column] = values
        return raster


@dataclass(frozen=True)
class Layer:
    """Places of a grid at one height.

    Args:
        places: (k,) indices of the places.
        lattice: cells of the places, with the same rows and columns in all layers of a map.
        height: height of the layer, upwards [m]; None = a map without layers.
    """

    places: IntArray
    lattice: Lattice
    height: float | None = None

    @property
    def word(self) -> str:
        """Prefix of the layer in file names, such as ``z-3m``; "" without layers."""
        return "" if self.height is None else f"z{self.height:.12g}m"

    def named(self, what: str) -> str:
        """Return a name with the prefix of the layer, such as ``z-3m_mean``."""
        return f"{self.word}_{what}" if self.word else what


def layers_of(topology: Topology) -> tuple[Layer, ...]:
    """Return the layers of a map, the highest first; one layer for a map without heights.

    Raises:
        RunError: the places are roads or scattered points instead of cells of grids.
    """
    cells = _cells(topology)
    rows, columns = cells.shape
    cell = cells.row * columns + cells.column
    if len(np.unique(cell)) == topology.n:
        if not _share_beside([cells]) > 0.5:
            raise _refused(topology, "most of its places have no other one beside them")
        return (Layer(np.arange(topology.n), cells),)
    if topology.heights is None:
        raise _refused(topology, "several places stand at one position")
    heights, which = np.unique(np.round(topology.heights, 6) + 0.0, return_inverse=True)
    if len(np.unique(which * rows * columns + cell)) < topology.n:
        raise _refused(topology, "several places stand at one position and height")
    layers = [
        Layer(places, replace(cells, row=cells.row[places], column=cells.column[places]), height)
        for number, height in reversed(list(enumerate(heights.tolist())))
        for places in [np.flatnonzero(which == number)]
    ]
    if not _share_beside([layer.lattice for layer in layers]) > 0.5:
        raise _refused(topology, "most of its places have no other one beside them at their height")
    return tuple(layers)


def layer_at(topology: Topology, height: float) -> Layer:
    """Return the layer of a map near a height [m]. Raises RunError if there is no such layer."""
    if topology.heights is None:
        msg = f"map {topology.name!r} lies in the plane, it has no layers; leave the layer out"
        raise RunError(msg)
    layers = layers_of(topology)
    heights = np.array([layer.height for layer in layers if layer.height is not None])
    if not len(heights):
        msg = f"map {topology.name!r} has no layers, one above another; leave the layer out"
        raise RunError(msg)
    apart = np.abs(heights - height)
    step = float(np.abs(np.diff(heights)).min())
    if not apart.min() <= _NEAR * step:  # also true for NaN
        shown = ", ".join(f"{each:g}" for each in heights.tolist())
        msg = (
            f"map {topology.name!r} has no layer at {height:g} m: its layers are at {shown} m "
            "(z counts upwards, depths are negative)"
        )
        raise RunError(msg)
    return layers[int(apart.argmin())]


def lattice_of(topology: Topology) -> Lattice:
    """Return the cells of a grid. Raises RunError for roads, scattered points and layers."""
    layers = layers_of(topology)
    if len(layers) > 1:
        raise _refused(topology, "several places stand at one position, one above another")
    return layers[0].lattice


def _cells(topology: Topology) -> Lattice:
    if topology.roads or any(len(topology.geometry(i)) > 1 for i in range(min(topology.n, 2))):
        raise _refused(topology, "its places are pieces of roads")
    x, y = topology.positions.T
    across, up = _step(x), _step(y)
    cell = across or up, up or across
    if not cell[0]:
        several = topology.n > 1
        why = "its places stand above one another" if several else "it has one place only"
        raise _refused(topology, why)
    centre = float(x.min()), float(y.min())
    column, off_centre_x = _numbered(x, cell[0])
    row, off_centre_y = _numbered(y, cell[1])
    if max(off_centre_x, off_centre_y) > _OFF:
        raise _refused(topology, "its places do not stand in rows and columns")
    rows, columns = int(row.max()) + 1, int(column.max()) + 1
    if rows * columns > MOST_CELLS:
        raise _refused(topology, f"it would have {rows} × {columns} cells, more than {MOST_CELLS}")
    return Lattice(centre, cell, (rows, columns), row, column)


def _step(values: FloatArray) -> float:
    """Return the typical smallest distance of different coordinates; 0 if all are equal."""
    gaps = np.diff(np.unique(values))
    gaps = gaps[gaps > 1e-6 * max(float(np.ptp(values)), 1e-9)]
    return float(np.median(gaps[gaps < (1.0 + 2.0 * _OFF) * gaps.min()])) if len(gaps) else 0.0


def _numbered(values: FloatArray, step: float) -> tuple[IntArray, float]:
    """Return the number of each coordinate in steps from the smallest, and the largest error."""
    steps = (values - values.min()) / step
    number = np.rint(steps)
    return number.astype(np.int64), float(np.abs(steps - number).max())


def _share_beside(lattices: Sequence[Lattice]) -> float:
    """Return the fraction of places with a neighbour to the east, west, north or south."""
    beside = []
    for lattice in lattices:
        occupied = np.zeros((lattice.shape[0] + 2, lattice.shape[1] + 2), dtype=np.bool_)
        row, column = lattice.row + 1, lattice.column + 1
        occupied[row, column] = True
        found = occupied[row + 1, column] | occupied[row - 1, column]
        beside.append(found | occupied[row, column + 1] | occupied[row, column - 1])
    return float(np.concatenate(beside).mean())


def _refused(topology: Topology, why: str) -> RunError:
    return RunError(
        f"map {topology.name!r} is no grid: {why}. Rasters (asc, pgm, geotiff) need cells of "
        "one size in rows and columns; csv and geojson take any map"
    )
