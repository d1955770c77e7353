"""Rasters in the frame of a map: a place is where one has data.

The cells of the raster stay as they are stored. Places lie on a lattice in the metres of the map,
and each is looked up in the raster's own coordinates, so that a raster in degrees, one of a
national grid and one that is turned need no resampling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from gp_active_sensing.topology.geometry import inflated
from gp_active_sensing.topology.loaders.rasters import RasterFile, read_raster
from gp_active_sensing.topology.projection import LOCAL, LONLAT, in_system, locate, own_origin
from gp_active_sensing.topology.segments import Point
from gp_active_sensing.types import BoolArray, FloatArray

__all__ = ["RasterCells", "load_raster_cells", "usual_step"]

_ALONG = 16
"""Points of an edge of a raster: its edges are bent in the map's frame."""


@dataclass(frozen=True, eq=False)
class RasterCells:
    """A raster in the frame of a map."""

    where: str  # the file, for messages
    raster: RasterFile  # as it is stored
    crs: str  # system of its coordinates, `LOCAL` for metres of the map
    # longitude and latitude of the origin of the map's frame; None with `LOCAL`
    datum: Point | None
    corners: FloatArray  # (m, 2) points of the edge of its data in the map's frame [m]
    # centre of its cell in the first column of the last row, mostly the south-west one, in the
    # map's frame [m]
    first: Point
    notes: tuple[str, ...]  # what was taken for granted, a sentence each

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        rows, columns = self.raster.values.shape
        return rows, columns

    @cached_property
    def empty(self) -> BoolArray:
        """(rows, columns) cells without data."""
        return np.isnan(self.raster.values)

    def blocked(self, inflation: float = 0.0) -> BoolArray:
        """(rows, columns) cells without data, or nearer than `inflation` to one or the edge [m]."""
        edged = np.pad(self.empty, 1, constant_values=True) if inflation else self.empty
        found = inflated(edged, self.cell, inflation) if inflation else edged
        return found[1:-1, 1:-1] if inflation else found

    def cells_of(self, points: FloatArray) -> FloatArray:
        """(m, 2) columns and rows, with fractions, of (m, 2) points in the map's frame [m]."""
        if self.datum is not None:
            points = in_system(points, self.datum, self.crs, where=self.where)
        a, b, c, d, e, f = self.raster.transform
        if self.crs.startswith((LONLAT, "GEOG")) and c + a * self.shape[1] > 180.0:  # 0 … 360
            east = np.where(points[:, 0] < 0.0, points[:, 0] + 360.0, points[:, 0])
            points = np.column_stack([east, points[:, 1]])
        x, y = points[:, 0] - c, points[:, 1] - f
        area = a * e - b * d
        return np.column_stack([e * x - b * y, a * y - d * x]) / area

    @cached_property
    def cell(self) -> tuple[float, float]:
        """Width and height of a cell in the middle of the data, in metres of the map."""
        middle = 0.5 * (self.corners.min(axis=0) + self.corners.max(axis=0))
        step = 1e-3 * max(float(np.ptp(self.corners, axis=0).max()), 1e-3)
        at = self.cells_of(middle + step * np.array([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]))
        # Columns: what a column and what a row is, in metres.
        sides = np.linalg.inv((at[1:] - at[0]).T / step)
        width, height = np.hypot(sides[0], sides[1]).tolist()
        return round(width, 6), round(height, 6)

    def values_at(self, points: FloatArray) -> FloatArray:
        """(m,) values at points (m, 2) on cells with data: bilinear between four centres.

        Where one of the four has no data, or lies beyond the edge, the value of the cell that the
        point is in.
        """
        rows, columns = self.shape
        cells = self.cells_of(points)
        own = np.clip(np.floor(cells).astype(np.int64), 0, (columns - 1, rows - 1))
        nearest = self.raster.values[own[:, 1], own[:, 0]]
        low = np.floor(cells - 0.5).astype(np.int64)
        (tx, ty) = (cells - 0.5 - low).T
        total = np.zeros(len(points))
        for right, down, weight in (
            (0, 0, (1.0 - tx) * (1.0 - ty)),
            (1, 0, tx * (1.0 - ty)),
            (0, 1, (1.0 - tx) * ty),
            (1, 1, tx * ty),
        ):
            column, row = np.clip(low + np.array((right, down)), 0, (columns - 1, rows - 1)).T
            # What has no part in the value, but for rounding, does no harm.
            part = weight > 1e-6
            total += np.where(part, weight * self.raster.values[row, column], 0.0)
        # A point at an edge may be just beyond the data by rounding.
        return np.asarray(np.where(np.isnan(total), nearest, total))


def load_raster_cells(
    path: Path, datum: Point | None = None, value: str = "", crs: str = ""
) -> RasterCells:
    """Read a raster and lay it into local metres, see `read_raster`.

    `datum` is longitude and latitude of the origin of the map's frame; None = that of the raster's
    own frame where it is a local one, as an export of a map has it, else the middle of its data.
    `crs` is that of its coordinates, "" = what the file says.

    Raises:
        MapError: a file that cannot be used; an unknown coordinate system.
        MissingDependencyError: rasterio or pyproj is needed and missing.
    """
    raster = read_raster(path, value)
    raster = replace(raster, crs=crs) if crs else raster
    known = ~np.isnan(raster.values)
    rows, columns = np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0))
    box = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
    edge = [_outer(raster, column, row) for column, row in _around(*map(int, box))]
    first = _outer(raster, 0.5, len(raster.values) - 0.5)
    if datum is None and raster.crs not in ("", LOCAL, LONLAT):
        datum = own_origin(raster.crs, where=str(path))
    made = locate(
        np.array([*edge, first]),
        raster.crs,
        where=str(path),
        datum=datum,
        degrees=False if raster.crs == LOCAL else None,
        chosen=bool(crs),
    )
    notes = (*raster.notes, *made.notes)
    if not raster.crs:
        beside = path.with_suffix(".prj").name
        notes += (
            f"neither it nor a file {beside} beside it says a coordinate system; map.crs does, too",
        )
    x, y = made.points[-1].tolist()
    return RasterCells(str(path), raster, made.crs, made.datum, made.points[:-1], (x, y), notes)


def _outer(raster: RasterFile, column: float, row: float) -> Point:
    a, b, c, d, e, f = raster.transform
    return a * column + b * row + c, d * column + e * row + f


def _around(left: int, top: int, right: int, bottom: int) -> list[Point]:
    """Return points along the edge of a box of columns and rows."""
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    return [
        (x0 + (x1 - x0) * k / _ALONG, y0 + (y1 - y0) * k / _ALONG)
        for (x0, y0), (x1, y1) in pairwise(corners)
        for k in range(_ALONG)
    ]


def usual_step(cells: RasterCells, usual: float) -> float | tuple[float, float]:
    """Return a spacing near a usual one that is not finer than the raster's cells [m].

    Of a raster in metres of the map whole multiples of its cells, so that places are at centres.
    """
    width, height = cells.cell
    if cells.crs != LOCAL:
        return max(usual, float(f"{math.sqrt(width * height):.2g}"))
    found = tuple(side * max(1, round(usual / side)) for side in (width, height))
    return found[0] if found[0] == found[1] else (found[0], found[1])
