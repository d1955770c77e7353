"""Occupancy grids: free, occupied and unknown cells of the ground."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.geometry import inflated
from gp_active_sensing.types import BoolArray, FloatArray

UNKNOWN: tuple[str, ...] = ("blocked", "free")
"""Allowed values for unknown cells."""
MOST_GROUND = 25_000_000
"""Cells of an occupancy grid: distances from walls take 16 bytes a cell (250 m at 0.05 m)."""
OCCUPIED = 65
"""Cells of this value and more are occupied: the 0.65 of map_server [%]."""


@dataclass(frozen=True, eq=False)
class OccupancyGrid:
    """Occupancy of the ground, cell by cell, as in nav_msgs/OccupancyGrid.

    Args:
        values: (rows, columns) int8: 0 free … 100 occupied [%], -1 unknown. Row 0 is at the origin.
        resolution: width of a cell [m].
        origin: x and y of the outer corner of cell (0, 0) in the map's frame [m].
        yaw: direction of the rows in the map's frame, counter-clockwise from x [rad].

    Raises:
        MapError: values that are no grid of -1 … 100, more than `MOST_GROUND` of them, a resolution
            of 0 or less.
    """

    values: np.ndarray
    resolution: float
    origin: tuple[float, float] = (0.0, 0.0)
    yaw: float = 0.0
    _blocked: dict[tuple[float, str], BoolArray] = field(
        default_factory=dict, init=False, repr=False
    )
    """Last result of `blocked`, by its arguments: the distances of a large grid take
    seconds."""

    def __post_init__(self) -> None:
        given = np.asarray(self.values)
        if given.ndim != 2 or not given.size:
            msg = f"occupancy grid: expected rows and columns of cells, got shape {given.shape}"
            raise MapError(msg)
        if given.size > MOST_GROUND:
            msg = (
                f"occupancy grid: {given.shape[1]} × {given.shape[0]} cells are more than "
                f"{MOST_GROUND}; cut it down, or make its cells larger"
            )
            raise MapError(msg)
        if given.dtype.kind not in "iu" or given.min() < -1 or given.max() > 100:
            what = f"{given.min()} … {given.max()}" if given.dtype.kind in "iuf" else given.dtype
            msg = f"occupancy grid: expected whole numbers from -1 to 100, got {what}"
            raise MapError(msg)
        if not (math.isfinite(self.resolution) and self.resolution > 0.0):
            msg = (
                "occupancy grid: the resolution must be above 0, the width of a cell in metres; "
                f"got {self.resolution:g}"
            )
            raise MapError(msg)
        if not all(map(math.isfinite, (*self.origin, self.yaw))):
            msg = (
                "occupancy grid: expected a finite origin (x, y, yaw), got "
                f"({self.origin[0]:g}, {self.origin[1]:g}, {self.yaw:g})"
            )
            raise MapError(msg)
        values = given.astype(np.int8)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        rows, columns = self.values.shape
        return rows, columns

    @property
    def corners(self) -> FloatArray:
        """(4, 2) outer corners in the map's frame, counter-clockwise from the origin [m]."""
        rows, columns = self.shape
        at = np.array([(0, 0), (columns, 0), (columns, rows), (0, rows)], dtype=np.float64)
        return self.position_of(at)

    def position_of(self, cells: FloatArray) -> FloatArray:
        """(m, 2) metres in the map's frame of (m, 2) columns and rows, counted from the corner."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        turned = cells @ np.array([(cos, sin), (-sin, cos)])
        return np.asarray(np.asarray(self.origin) + self.resolution * turned)

    def cells_of(self, points: FloatArray) -> FloatArray:
        """(m, 2) columns and rows, with fractions, of (m, 2) points in the map's frame [m]."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        turned = (points - np.asarray(self.origin)) @ np.array([(cos, -sin), (sin, cos)])
        return np.asarray(turned / self.resolution)

    def counts(self) -> dict[str, int]:
        """Return how many cells are free, occupied, unknown."""
        taken = int(np.count_nonzero(self.values >= OCCUPIED))
        unknown = int(np.count_nonzero(self.values < 0))
        return {
            "free": self.values.size - taken - unknown,
            "occupied": taken,
            "unknown": unknown,
        }

    def blocked(self, *, inflation: float = 0.0, unknown: str = "blocked") -> BoolArray:
        """(rows, columns) cells that a probe cannot be in, read-only; what is asked again is kept.

        Nearer than `inflation` [m], the radius of the probe, to an occupied cell a cell is blocked,
        too, measured from its middle to the edge of the occupied one. Unknown cells ("blocked" or
        "free") are not inflated, as in Nav2.
        """
        asked = inflation, unknown
        if (known := self._blocked.get(asked)) is not None:
            return known
        taken = self.values >= OCCUPIED
        kept = inflated(taken, (self.resolution, self.resolution), inflation)
        if unknown == "blocked":
            kept = kept | (self.values < 0)
        kept.setflags(write=False)
        self._blocked.clear()
        self._blocked[asked] = kept
        return kept
