"""Places on the cells of a grid that somebody else made: which are free, and which ways between.

The cells may be those of an occupancy grid or of a raster. Places lie on a lattice of their own, at
a spacing of the user's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.generated import MOST_CELLS, FreeTopology, in_metres
from gp_active_sensing.topology.geometry import FreeGround, Outline, Speeds
from gp_active_sensing.topology.graph import GraphTopology, Move
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

__all__ = [
    "HAIR",
    "CellGround",
    "Cells",
    "free_lines",
    "free_points",
    "lattice_over",
    "map_of",
    "neighbouring",
]

HAIR = 1e-6
"""What lies so near to the edge of a cell touches the cell beyond it as well [cells]."""
_AT_ONCE = 1 << 21
"""Cells that lines are looked up in at a time."""


class Cells(Protocol):
    """Rows and columns of cells, wherever and however turned they lie."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        ...

    @property
    def corners(self) -> FloatArray:
        """(m, 2) points of the edge in the map's frame, whose box holds all cells [m]."""
        ...

    def cells_of(self, points: FloatArray) -> FloatArray:
        """(m, 2) columns and rows, with fractions, of (m, 2) points in the map's frame [m]."""
        ...


def lattice_over(grid: Cells, step: FloatArray, anchor: tuple[float, float], name: str) -> IntArray:
    """(m, 2) columns and rows of the lattice in the box about the grid, row by row."""
    corners = (grid.corners - np.asarray(anchor)) / step
    low = np.ceil(corners.min(axis=0) - 1e-9).astype(np.int64)
    high = np.floor(corners.max(axis=0) + 1e-9).astype(np.int64)
    across, up = np.maximum(high - low + 1, 0).tolist()
    if across * up > MOST_CELLS:
        msg = (
            f"spacing: {across} × {up} cells of {in_metres(step)} on map {name!r} are more than "
            f"{MOST_CELLS}; give a larger spacing"
        )
        raise ConfigError(msg)
    rows, columns = np.divmod(np.arange(across * up), max(across, 1))
    lattice: IntArray = np.column_stack([columns, rows]) + low
    return lattice


def _lookup(grid: Cells, blocked: BoolArray, cells: FloatArray) -> BoolArray:
    """Return whether the cells at (…, 2) columns and rows are blocked; beyond the grid they are."""
    rows, columns = grid.shape
    at = np.floor(cells).astype(np.int64)
    column, row = at[..., 0], at[..., 1]
    outside = (column < 0) | (row < 0) | (column >= columns) | (row >= rows)
    column, row = np.clip(column, 0, columns - 1), np.clip(row, 0, rows - 1)
    return np.asarray(outside | blocked[row, column])


_SIDES = HAIR * np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])
"""To look on either side of an edge."""


def free_points(grid: Cells, blocked: BoolArray, points: FloatArray) -> BoolArray:
    """(m,) points that touch no blocked cell of a grid; beyond it all are blocked."""
    cells = grid.cells_of(points)
    hit = np.zeros(len(cells), dtype=np.bool_)
    for side in _SIDES:
        hit |= _lookup(grid, blocked, cells + side)
    return ~hit


def neighbouring(cells: IntArray, standing: BoolArray, neighbours: int) -> IntArray:
    """(m, 2) neighbours on the lattice that are both standing, each pair once, as indices."""
    if not standing.any():
        return np.zeros((0, 2), dtype=np.int64)
    low = cells.min(axis=0) - 1
    width = int(np.ptp(cells[:, 0])) + 3
    index = np.flatnonzero(standing)
    code = ((cells[:, 1] - low[1]) * width + cells[:, 0] - low[0])[index]
    order = np.argsort(
        code
    )  # looked up in order: a table of all cells is as wide as they lie apart
    ahead = (1, width) if neighbours == 4 else (1, width, width + 1, width - 1)
    found = []
    for offset in ahead:
        at = order[np.searchsorted(code, code + offset, sorter=order).clip(max=len(order) - 1)]
        joined = code[at] == code + offset
        found.append(np.column_stack([index[joined], index[at[joined]]]))
    return np.concatenate(found)


def map_of(
    name: str,
    frame: str,
    lattice: IntArray,
    points: FloatArray,
    pairs: IntArray,
    *,
    moves: str,
    speeds: Speeds,
    reach: float = 0.0,
    heights: FloatArray | None = None,
    numbers: Mapping[str, FloatArray] | None = None,
) -> FreeTopology | GraphTopology:
    """Return the map of (n, 2) points [m] at (n, 2) columns and rows of a lattice.

    The place in column c and row r is called "c{c}r{r}"; `pairs` (m, 2) are joined by a move, each
    given once. `heights` (n,) is z [m], None = in the plane; the rest is as in `make_grid`.
    """
    names = [f"c{c}r{r}" for c, r in lattice.tolist()]
    more: dict[str, Any] = {"heights": heights, "numbers": numbers}
    if moves == "free":
        return FreeTopology(name, frame, names, points, speed=speeds, **more)
    ends = points if heights is None else np.column_stack([points, heights])
    steps: list[list[Move]] = [[] for _ in names]
    for way in (pairs, pairs[:, ::-1]):
        offsets = ends[way[:, 1]] - ends[way[:, 0]]
        metres = speeds.metres(offsets)
        costs = zip(metres.tolist(), speeds.seconds(offsets, metres).tolist(), strict=True)
        for (i, j), cost in zip(way.tolist(), costs, strict=True):
            steps[i].append(Move(j, *cost))
    return GraphTopology(name, frame, names, points, steps, reach=reach, **more)


def free_lines(
    grid: Cells, blocked: BoolArray, positions: FloatArray, pairs: IntArray
) -> BoolArray:
    """(len(pairs),) straight lines between two points that touch no blocked cell."""
    if not len(pairs):
        return np.zeros(0, dtype=np.bool_)
    cells = grid.cells_of(positions)
    starts, ways = cells[pairs[:, 0]], cells[pairs[:, 1]] - cells[pairs[:, 0]]
    crossed = int(np.ceil(np.abs(ways)).max(axis=0).sum()) + 4
    size = max(1, _AT_ONCE // crossed)
    hit = np.zeros(len(pairs), dtype=np.bool_)
    for first in range(0, len(pairs), size):
        part = slice(first, first + size)
        for side in _SIDES:
            on_the_way = _cells_between(starts[part] + side, ways[part])
            hit[part] |= _lookup(grid, blocked, on_the_way).any(axis=1)
    return ~hit


def _cells_between(starts: FloatArray, ways: FloatArray) -> FloatArray:
    """(m, k, 2) a point in each cell crossed by lines, from `starts` (m, 2) by `ways` [cells]."""
    shares = [np.zeros((len(starts), 1)), np.ones((len(starts), 1))]
    for axis in (0, 1):
        begin, way = starts[:, axis, None], ways[:, axis, None]
        longest = int(np.ceil(np.abs(way).max())) + 1
        forward = way > 0.0
        first = np.where(forward, np.floor(begin) + 1.0, np.ceil(begin) - 1.0)
        edges = first + np.where(forward, 1.0, -1.0) * np.arange(longest)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (edges - begin) / way
        shares.append(np.clip(np.nan_to_num(share, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0))
    at = np.sort(np.concatenate(shares, axis=1), axis=1)
    middle = 0.5 * (at[:, 1:] + at[:, :-1])
    return np.asarray(starts[:, None, :] + middle[:, :, None] * ways[:, None, :])


class CellGround(FreeGround):
    """The cells not `blocked` (rows, columns), inside the outline and off the obstacles."""

    def __init__(
        self,
        cells: Cells,
        blocked: BoolArray,
        outline: Outline | None = None,
        obstacles: Sequence[Outline] = (),
    ) -> None:
        super().__init__(outline, obstacles)
        self._cells, self._blocked = cells, blocked

    @property
    def bounded(self) -> bool:
        """Whether some points are not free: all beyond the grid are."""
        return True

    def free(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside the outline that no obstacle covers and no blocked cell touches."""
        return super().free(points) & free_points(self._cells, self._blocked, points)

    def passable(
        self, points: npt.NDArray[np.float64], pairs: Sequence[tuple[int, int]] | IntArray
    ) -> npt.NDArray[np.bool_]:
        """(len(pairs),) straight lines between two points that stay inside and touch nothing."""
        free = free_lines(self._cells, self._blocked, points, np.asarray(pairs, dtype=np.int64))
        free[free] = super().passable(points, np.asarray(pairs)[free])
        return free
