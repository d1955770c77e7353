"""Maps of regular places: points, a line, grids in outlines, on occupancy grids and on rasters.

Places on an occupancy grid or a raster lie on a lattice of their own. It has the user's spacing and
is fixed in the map's frame, whatever part of it the cells cover. An occupancy grid that grows,
shifts or turns therefore gives the same places again, and more of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.geometry import (
    HEIGHTS,
    Cells,
    FreeGround,
    Outline,
    Speeds,
    bounds_of,
)
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.occupancy import OccupancyGrid
from gp_active_sensing.topology.search import Move, Ways, WaysFrom
from gp_active_sensing.types import BoolArray, Cost, FloatArray, IntArray, Route

if TYPE_CHECKING:
    from gp_active_sensing.topology.loaders.rasters import RasterCells

_NAME = re.compile(r"c(-?\d+)r(-?\d+)")


class FreeTopology(Topology):
    """Any place may be next; a move costs the straight distance.

    The arguments are those of `Topology`, and the speed of the probe [m/s], or its speeds along a
    leg and up and down.
    """

    free = True

    def __init__(
        self,
        name: str,
        frame: str,
        names: Sequence[str],
        positions: npt.ArrayLike,
        *,
        speed: float | Speeds = 1.0,
        **more: Any,
    ) -> None:
        super().__init__(name, frame, names, positions, **more)
        self.speeds = speed if isinstance(speed, Speeds) else Speeds(speed)

    def neighbours(self, location: int) -> IntArray:
        """Return all the other places, sorted."""
        return np.delete(np.arange(self.n), location)

    def candidates(
        self, at: int | None, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> IntArray:
        """Return every unobserved place that may be chosen, sorted."""
        self._check(at, observed)
        return self._open_places(observed, unavailable)

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the straight way to `goal`; it costs nothing from nowhere."""
        self._check(at, observed)
        if at is None:
            return Route((goal,), Cost(0.0, 0.0))
        return Route((goal,), Cost(*self.speeds.leg(self.points[at], self.points[goal])))

    def ways_to(self, goal: int, by: str = "seconds") -> Ways:
        """Return the straight way to a place from every other, the least in either unit."""
        metres, seconds = self._legs(self.points[goal] - self.points)
        following = np.full(self.n, goal, dtype=np.int64)
        following[goal] = -1
        return Ways(goal, metres, seconds, following)

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the straight way from a place to every one; it costs nothing from nowhere."""
        offsets = np.zeros_like(self.points) if at is None else self.points - self.points[at]
        return WaysFrom(*self._legs(offsets), np.full(self.n, -1, dtype=np.int64))

    def _legs(self, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (n,) metres and seconds of legs with these offsets."""
        metres = self.speeds.metres(offsets)
        return metres, self.speeds.seconds(offsets, metres)

    def reachable(
        self,
        at: int | None,
        observed: BoolArray,
        readings: int,
        unavailable: Collection[int] = (),
    ) -> BoolArray:
        """(n,) every unobserved place, when there is a reading left."""
        self._check(at, observed)
        mask = np.zeros(self.n, dtype=np.bool_)
        if readings > 0:
            mask[self._open_places(observed, unavailable)] = True
        return mask


_STREAM = 0xB0C5


def make_points(
    count: int,
    low: Sequence[float],
    high: Sequence[float],
    *,
    speed: float = 1.0,
    name: str = "points",
    frame: str = "map",
) -> FreeTopology:
    """Make a map of points of a scrambled Sobol sequence; any point may be next.

    Features are their coordinates x1 … xd in the box from `low` (d,) to `high` (d,); `speed` is
    that of the probe [m/s].
    """
    from scipy.stats import qmc  # heavy, and seldom wanted

    rng = np.random.default_rng([0, _STREAM])
    corner, size = np.asarray(low, dtype=np.float64), np.subtract(high, low)
    # Whole powers of two are balanced; the first points of the next one are drawn.
    unit = qmc.Sobol(len(corner), seed=rng).random_base2(max(0, math.ceil(math.log2(count))))
    points = np.asarray(corner + size * unit[:count], dtype=np.float64)
    flat = np.zeros((count, 2))
    flat[:, : min(2, points.shape[1])] = points[:, :2]
    return FreeTopology(
        name,
        frame,
        [str(i) for i in range(count)],
        flat,
        features=points,
        feature_names=[f"x{i}" for i in range(1, points.shape[1] + 1)],
        speed=speed,
    )


def make_line(
    count: int,
    spacing: float,
    *,
    moves: str = "adjacent",
    origin: tuple[float, float] = (0.0, 0.0),
    speed: float = 1.0,
    reach: float = 0.0,
    name: str = "line",
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Make a line of places along x, `spacing` apart [m]; its one feature is x.

    `moves` are "free" (any place next) or "adjacent" (the next place to either side); `origin` is
    the position of the first place [m], `speed` that of the probe [m/s]. Places within `reach` [m]
    may also be next; 0 = adjacent ones only.
    """
    x = origin[0] + spacing * np.arange(count)
    positions = np.column_stack([x, np.full(count, origin[1])])
    names = [str(i) for i in range(count)]
    axis: dict[str, Any] = {"features": positions[:, :1], "feature_names": ("x",)}
    if moves == "free":
        return FreeTopology(name, frame, names, positions, speed=speed, **axis)
    steps = [
        [Move(j, spacing, spacing / speed) for j in (i - 1, i + 1) if 0 <= j < count]
        for i in range(count)
    ]
    made = GraphTopology(name, frame, names, positions, steps, reach=reach, **axis)
    return made.over(FreeGround())


MOST_CELLS = 1_000_000
"""Cells of a grid, those outside its outline among them."""


def make_grid(
    columns: int = 0,
    rows: int = 0,
    spacing: float | tuple[float, float] = 1.0,
    *,
    neighbours: int = 4,
    outline: Outline | None = None,
    obstacles: Sequence[Outline] = (),
    inflation: float = 0.0,
    moves: str = "adjacent",
    origin: tuple[float, float] | None = None,
    heights: Sequence[float] = (),
    speed: float | Speeds = 1.0,
    reach: float = 0.0,
    name: str = "grid",
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Make a grid; the place in column c and row r is called "c{c}r{r}", row by row.

    Without columns and rows there are as many as the outline takes. If the origin is also missing,
    the grid begins at the outline's lower left corner.

    A cell whose centre lies outside the outline, or that an obstacle covers, is no place. No move
    leaves the outline or touches an obstacle, and a diagonal move needs both cells beside it, so
    that no corner is cut.

    Args:
        columns: number of cells along x; 0 = as many as the outline takes.
        rows: number of cells along y; 0 = as many as the outline takes.
        spacing: between neighbouring centres, along x and along y [m].
        neighbours: 4 or 8.
        outline: of the area with places, in metres; its edge is part of it. Corners, or a Polygon
            or MultiPolygon of shapely. None = the rectangle.
        obstacles: their outlines, likewise.
        inflation: places and moves keep so far from outline and obstacles [m].
        moves: "free" (any place next, straight distance) or "adjacent".
        origin: centre of cell c0r0 [m]; None = (0, 0), or the corner of the outline.
        heights: of its layers, upwards [m]; () = a grid in the plane. The cell above c2r3 in the
            layer k is called "c2r3z{k}", layer by layer; a move up or down leads to the next one.
        speed: of the probe [m/s], or its speeds along a leg and up and down.
        reach: places within so many metres may also be next; 0 = adjacent ones only.
        name: name of the map.
        frame: metric frame of the positions.

    Raises:
        ConfigError: outlines that are no polygons, no cell left, or more than `MOST_CELLS`.
    """
    ground = FreeGround(outline, obstacles, inflation)
    step = spacings(spacing)
    columns, rows, origin = _fitted(columns, rows, step, outline, origin)
    if columns * rows * len(heights) > MOST_CELLS:
        msg = (
            f"heights: {columns} × {rows} cells in {len(heights)} layers are more than "
            f"{MOST_CELLS}; give fewer"
        )
        raise ConfigError(msg)
    cells = _box(columns, rows)
    centres = np.asarray(origin) + step * cells
    inside = ground.inside(centres)
    kept = inside & ~ground.blocked(centres)
    within = f" at {inflation:g} m from its edge" if inflation else ""
    if not inside.any():
        (x0, y0), (x1, y1) = centres.min(axis=0), centres.max(axis=0)
        msg = (
            f"outline: holds none of the {columns} × {rows} cell centres (x {x0:g} … {x1:g}, "
            f"y {y0:g} … {y1:g} m), {in_metres(step)} apart{within}; give a smaller spacing, or "
            "move the grid with origin"
        )
        raise ConfigError(msg)
    if not kept.any():
        where = f"all {columns} × {rows} cells" if outline is None else "all cells of the outline"
        msg = f"obstacles: cover {where}; leave at least one"
        raise ConfigError(msg)
    cells, points = cells[kept], centres[kept]
    pairs = neighbouring(cells, neighbours, beside=True) if moves != "free" else _NO_PAIRS
    pairs = pairs[ground.passable(points, pairs)]
    names = cell_names(cells)
    if heights:
        n = len(names)
        above = np.arange(n)[:, None] + n * np.arange(len(heights))
        up = np.stack([above[:, :-1], above[:, 1:]], axis=-1).reshape(-1, 2)
        level = [pairs + n * k for k in range(len(heights))]
        pairs = np.concatenate([*level, up])
        z = np.repeat(np.asarray(heights, dtype=np.float64), n)
        points = np.column_stack([np.tile(points, (len(heights), 1)), z])
        names = [f"{cell}z{k}" for k in range(len(heights)) for cell in names]
    made = map_of(name, frame, names, points, pairs, moves=moves, speed=speed, reach=reach)
    return made.over(ground)


_NO_PAIRS: IntArray = np.zeros((0, 2), dtype=np.int64)


def _box(columns: int, rows: int) -> IntArray:
    """Return (columns · rows, 2) columns and rows, row by row."""
    row, column = np.divmod(np.arange(columns * rows), max(columns, 1))
    return np.column_stack([column, row])


def cell_names(cells: IntArray) -> list[str]:
    """Return the names of places in (n, 2) columns and rows of a lattice."""
    return [f"c{c}r{r}" for c, r in cells.tolist()]


def neighbouring(
    cells: IntArray,
    neighbours: int,
    *,
    standing: BoolArray | None = None,
    beside: bool = False,
) -> IntArray:
    """(m, 2) neighbours among (n, 2) columns and rows, each pair once, as indices.

    Only `standing` ones, None = all; with `beside` diagonal ones need both cells beside them.
    """
    index = np.arange(len(cells)) if standing is None else np.flatnonzero(standing)
    if not len(index):
        return _NO_PAIRS
    low = cells.min(axis=0) - 1
    width = int(np.ptp(cells[:, 0])) + 3
    code = ((cells[:, 1] - low[1]) * width + cells[:, 0] - low[0])[index]
    order = np.argsort(code)  # a table of all cells would be as wide as they lie apart

    def at(offset: int) -> IntArray:
        """Return which one is at an offset from each; -1 where none is."""
        found = order[np.searchsorted(code, code + offset, sorter=order).clip(max=len(order) - 1)]
        return np.where(code[found] == code + offset, found, -1)

    north = at(width)
    ends = [at(1), north]
    for side in (1, -1) if neighbours == 8 else ():
        end = at(width + side)
        ends.append(np.where((at(side) >= 0) & (north >= 0), end, -1) if beside else end)
    return np.concatenate(
        [np.column_stack([index[end >= 0], index[end[end >= 0]]]) for end in ends]
    )


def map_of(
    name: str,
    frame: str,
    names: Sequence[str],
    points: FloatArray,
    pairs: IntArray,
    *,
    moves: str,
    speed: float | Speeds,
    reach: float = 0.0,
    numbers: Mapping[str, FloatArray] | None = None,
) -> FreeTopology | GraphTopology:
    """Return the map of (n, 2 or 3) points: x, y, z upwards [m].

    `pairs` (m, 2) are joined by a straight move, each given once. The rest is as in `make_grid`.
    """
    speeds = speed if isinstance(speed, Speeds) else Speeds(speed)
    heights = points[:, 2] if points.shape[1] == 3 else None
    more: dict[str, Any] = {"heights": heights, "numbers": numbers}
    if moves == "free":
        return FreeTopology(name, frame, names, points[:, :2], speed=speeds, **more)
    steps: list[list[Move]] = [[] for _ in names]
    for way in (pairs, pairs[:, ::-1]):
        offsets = points[way[:, 1]] - points[way[:, 0]]
        metres = speeds.metres(offsets)
        costs = zip(metres.tolist(), speeds.seconds(offsets, metres).tolist(), strict=True)
        for (i, j), cost in zip(way.tolist(), costs, strict=True):
            steps[i].append(Move(j, *cost))
    return GraphTopology(name, frame, names, points[:, :2], steps, reach=reach, **more)


def spacings(spacing: float | tuple[float, float]) -> FloatArray:
    """(2,) distance between neighbouring places along x and along y [m].

    Raises:
        ConfigError: one is 0 or less.
    """
    step = np.array(np.broadcast_to(np.asarray(spacing, dtype=np.float64), (2,)))
    if not (np.isfinite(step).all() and (step > 0.0).all()):
        msg = f"spacing: must be above 0 [m], got {spacing}"
        raise ConfigError(msg)
    return step


def in_metres(step: FloatArray) -> str:
    """Return a spacing along x and y in words."""
    across, up = step.tolist()
    return f"{across:g} m" if across == up else f"{across:g} × {up:g} m"


def _fitted(
    columns: int,
    rows: int,
    step: FloatArray,
    outline: Outline | None,
    origin: tuple[float, float] | None,
) -> tuple[int, int, tuple[float, float]]:
    """Return columns, rows and origin; those that are left out cover the outline."""
    if not (columns and rows):
        if outline is None:
            msg = "columns, rows: are required without an outline"
            raise ConfigError(msg)
        left, bottom, right, top = bounds_of(outline)
        if origin is None:
            origin = (0.0, 0.0) if columns or rows else (left, bottom)
        across = math.floor((right - origin[0]) / step[0] + 1e-9) + 1
        up = math.floor((top - origin[1]) / step[1] + 1e-9) + 1
        columns, rows = columns or across, rows or up
        if columns < 1 or rows < 1:
            msg = (
                f"origin: the grid begins at {origin[0]:g}, {origin[1]:g} m, beyond the outline, "
                f"which ends at {right:g}, {top:g} m; leave origin out, or correct it"
            )
            raise ConfigError(msg)
    if columns * rows > MOST_CELLS:
        msg = (
            f"columns, rows: {columns} × {rows} cells of {in_metres(step)} are more than "
            f"{MOST_CELLS}; give a larger spacing"
        )
        raise ConfigError(msg)
    return columns, rows, origin or (0.0, 0.0)


# -- places on cells that somebody else made -------------------------------------------------------


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
    lattice: IntArray = _box(across, up) + low
    return lattice


def make_occupancy_map(
    grid: OccupancyGrid,
    spacing: float | tuple[float, float],
    *,
    inflation: float = 0.0,
    unknown: str = "blocked",
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
    blocked = grid.blocked(inflation=inflation, unknown=unknown)
    if blocked.all() and not keep:
        raise MapError(_nothing_free(grid, name, inflation, unknown))
    ground = FreeGround(outline, obstacles, inflation, cells=grid, blocked=blocked)
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
    pairs = neighbouring(cells, neighbours, standing=standing)
    pairs = pairs[ground.passable(positions, pairs)]
    kept = _kept(pairs, standing, len(earlier))
    number = np.full(len(cells), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    ends = number[pairs[(number[pairs] >= 0).all(axis=1)]]
    names, points = cell_names(cells[kept]), positions[kept]
    made = map_of(name, frame, names, points, ends, moves=moves, speed=speed, reach=reach)
    made.lost = positions[standing & (number < 0)]
    return made.over(ground)


def _nothing_free(grid: OccupancyGrid, name: str, inflation: float, unknown: str) -> str:
    counts = grid.counts()
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


def make_raster_map(
    cells: RasterCells,
    spacing: float | tuple[float, float],
    *,
    value: str = "",
    neighbours: int = 4,
    moves: str = "adjacent",
    outline: Outline | None = None,
    obstacles: Sequence[Outline] = (),
    inflation: float = 0.0,
    anchor: tuple[float, float] | None = None,
    speed: float | Speeds = 1.0,
    reach: float = 0.0,
    name: str = "grid",
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Make a map of places where a raster has data; the place in column c and row r is "c{c}r{r}".

    It is at `anchor` + `spacing` (c, r) [m]; both may be below 0, and without an anchor it is the
    centre of the raster's south-west cell. Two neighbours are joined where the straight line
    between them touches no cell without data. The raster's `value` may be the name of a height,
    such as "height" or "depth" [m], or another one, under which it is a number of each place; "" =
    it is not kept. The other arguments are those of `make_grid`.

    Raises:
        ConfigError: a spacing of 0 or less, or one with more than `MOST_CELLS` cells.
        MapError: no place on a cell with data.
    """
    step = spacings(spacing)
    base = np.asarray(cells.first if anchor is None else anchor, dtype=np.float64)
    blocked = cells.blocked(inflation)
    ground = FreeGround(outline, obstacles, inflation, cells=cells, blocked=blocked)
    lattice = lattice_over(cells, step, (float(base[0]), float(base[1])), name)
    points = base + lattice * step
    kept = ground.free(points)
    lattice, points = lattice[kept], points[kept]
    if not len(lattice):
        within = " inside the outline" if outline is not None else ""
        msg = (
            f"map {name!r}: no place of a lattice of {in_metres(step)} lies where {cells.where} "
            f"has data{within}; give a smaller spacing, or shift the lattice with origin"
        )
        raise MapError(msg)
    pairs = neighbouring(lattice, neighbours)
    pairs = pairs[ground.passable(points, pairs)]
    numbers: dict[str, FloatArray] = {}
    if value.lower() in HEIGHTS:
        points = np.column_stack([points, cells.values_at(points)])
    elif value:
        numbers[value] = cells.values_at(points)
    how: dict[str, Any] = {"moves": moves, "speed": speed, "reach": reach}
    made = map_of(name, frame, cell_names(lattice), points, pairs, numbers=numbers, **how)
    # A line from height to height may go through what lies between.
    return made.over(ground if made.heights is None else None)
