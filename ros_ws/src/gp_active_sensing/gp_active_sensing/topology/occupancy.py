"""Maps of places on cells that somebody else made: occupancy grids as robots keep them, rasters.

Places lie on a lattice of their own, at a spacing of the user's, that is fixed in the map's frame,
whatever piece of it the grid covers: an occupancy grid (nav_msgs/OccupancyGrid) that grows, shifts
or turns gives the same places again, and more of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.generated import MOST_CELLS, FreeTopology, in_metres, spacings
from gp_active_sensing.topology.geometry import FreeGround, Outline, Speeds
from gp_active_sensing.topology.graph import GraphTopology, Move
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

__all__ = [
    "HAIR",
    "MOST_GROUND",
    "OCCUPIED",
    "UNKNOWN",
    "CellGround",
    "Cells",
    "OccupancyGrid",
    "free_points",
    "lattice_over",
    "make_occupancy_map",
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


UNKNOWN: tuple[str, ...] = ("blocked", "free")
"""What unknown cells may count as."""
MOST_GROUND = 25_000_000
"""Cells of an occupancy grid: distances from walls take 16 bytes a cell (250 m at 0.05 m)."""
OCCUPIED = 65
"""Cells of this value and more are occupied, unless told otherwise: the 0.65 of map_server [%]."""

_NAME = re.compile(r"c(-?\d+)r(-?\d+)")


@dataclass(frozen=True, eq=False)
class OccupancyGrid:
    """What is known of the ground, cell by cell, as in nav_msgs/OccupancyGrid.

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
    _blocked: dict[tuple[float, str, int], BoolArray] = field(
        default_factory=dict, init=False, repr=False
    )
    """What `blocked` returned last, by what it was asked: the distances of a large grid take
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

    def counts(self, occupied: int = OCCUPIED) -> dict[str, int]:
        """Return how many cells are free, occupied, unknown."""
        taken = int(np.count_nonzero(self.values >= occupied))
        unknown = int(np.count_nonzero(self.values < 0))
        return {
            "free": self.values.size - taken - unknown,
            "occupied": taken,
            "unknown": unknown,
        }

    def blocked(
        self, *, inflation: float = 0.0, unknown: str = "blocked", occupied: int = OCCUPIED
    ) -> BoolArray:
        """(rows, columns) cells that a probe cannot be in, read-only; what is asked again is kept.

        Nearer than `inflation` [m], the radius of the probe, to an occupied cell a cell is blocked,
        too, measured from its middle to the edge of the occupied one. Unknown cells ("blocked" or
        "free") are not inflated, as in Nav2. Cells of `occupied` [%] and more are occupied.
        """
        asked = inflation, unknown, occupied
        if (known := self._blocked.get(asked)) is not None:
            return known
        taken = self.values >= occupied
        found = taken.copy()
        if inflation > 0.0 and taken.any():
            from scipy.ndimage import distance_transform_edt

            apart = distance_transform_edt(~taken)
            found |= apart - 0.5 < inflation / self.resolution - HAIR
        if unknown == "blocked":
            found |= self.values < 0
        kept: BoolArray = np.asarray(found)
        kept.setflags(write=False)
        self._blocked.clear()
        self._blocked[asked] = kept
        return kept


def make_occupancy_map(
    grid: OccupancyGrid,
    spacing: float | tuple[float, float],
    *,
    inflation: float = 0.0,
    unknown: str = "blocked",
    occupied: int = OCCUPIED,
    neighbours: int = 4,
    moves: str = "adjacent",
    outline: Outline | None = None,
    obstacles: Sequence[Outline] = (),
    anchor: tuple[float, float] = (0.0, 0.0),
    keep: Sequence[str] = (),
    speed: float = 1.0,
    reach: float = 0.0,
    name: str = "grid",
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Make a map of places on the free ground of an occupancy grid, see `OccupancyGrid.blocked`.

    The place in column c and row r of the lattice is at `anchor` + `spacing` (c, r) [m] and called
    "c{c}r{r}"; both may be below 0. Two neighbours are joined where the straight line between them
    touches no blocked cell; beyond the grid all is blocked. Of what is not joined the largest part
    is kept. The arguments that are not named here are those of `make_grid`.

    Places whose names are in `keep` come first, in this order, with the same indices, even where
    they are blocked now (then no move leads there). New ones follow: those of the part that most of
    the earlier ones are in.

    Raises:
        ConfigError: a spacing of 0 or less, or one with more than `MOST_CELLS` cells; names to keep
            that are none of such a lattice.
        MapError: no free cell, or no place on one.
    """
    step = spacings(spacing)
    blocked = grid.blocked(inflation=inflation, unknown=unknown, occupied=occupied)
    if blocked.all() and not keep:
        raise MapError(_nothing_free(grid, name, inflation, unknown, occupied))
    ground = CellGround(grid, blocked, outline, obstacles)
    earlier = _parsed(keep)
    lattice = lattice_over(grid, step, anchor, name)
    points = anchor + lattice * step
    lattice = lattice[ground.free(points)]
    if not len(lattice) and not keep:
        msg = (
            f"map {name!r}: no place of a lattice of {in_metres(step)} lies on free ground"
            f"{' inside the outline' if outline is not None else ''}; give a smaller spacing, or "
            "shift the lattice with origin"
        )
        raise MapError(msg)
    known = {cell: i for i, cell in enumerate(earlier)}
    found = [(c, r) for c, r in lattice.tolist() if (c, r) not in known]
    cells = np.array([*earlier, *found], dtype=np.int64).reshape(-1, 2)
    positions = anchor + cells * step
    standing = np.ones(len(cells), dtype=np.bool_)
    before = positions[: len(earlier)]
    standing[: len(earlier)] = ground.free(before)
    pairs = neighbouring(cells, standing, neighbours)
    pairs = pairs[ground.passable(positions, pairs)]
    kept = _kept(pairs, standing, len(earlier))
    number = np.full(len(cells), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    ends = number[pairs[(number[pairs] >= 0).all(axis=1)]]
    made = map_of(
        name,
        frame,
        cells[kept],
        positions[kept],
        ends,
        moves=moves,
        speeds=Speeds(speed),
        reach=reach,
    )
    made.lost = positions[standing & (number < 0)]
    return made.over(ground)


def _nothing_free(
    grid: OccupancyGrid, name: str, inflation: float, unknown: str, occupied: int
) -> str:
    counts = grid.counts(occupied)
    rows, columns = grid.shape
    said = ", ".join(f"{count} {what}" for what, count in counts.items())
    advice = "is it the right map, and in the right mode (negate, thresholds)?"
    if counts["free"]:
        advice = f"inflation {inflation:g} m blocks all that is free; make it smaller"
    elif counts["unknown"] and unknown == "blocked":
        advice = "drive a little so that it gets to know some, or set unknown: free"
    return (
        f"map {name!r}: the occupancy grid has no cell for a place: of {columns} × {rows} cells of "
        f"{grid.resolution:g} m {said}; {advice}"
    )


def _parsed(names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the columns and rows of places by their names."""
    cells = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            msg = f"keep: expected names of cells, such as c12r-3, got {name!r}"
            raise ConfigError(msg)
        cells.append((int(match[1]), int(match[2])))
    if len(set(cells)) < len(cells):
        msg = "keep: a cell is there more than once"
        raise ConfigError(msg)
    return cells


def _kept(pairs: IntArray, standing: BoolArray, earlier: int) -> IntArray:
    """Return the earlier places, in their order, then the others of the part that is kept."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(standing)
    joined = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    _, part = connected_components(joined, directed=False)
    first = np.arange(earlier)
    if not standing.any():
        return first
    counted = standing.copy()
    if standing[:earlier].any():
        counted[earlier:] = False
    chosen = np.argmax(np.bincount(part[counted], minlength=part.max() + 1))
    new = np.flatnonzero((part == chosen) & standing)
    return np.concatenate([first, new[new >= earlier]])
