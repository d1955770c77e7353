"""Maps of generated places: points, a line, and grids on areas, occupancy grids or rasters.

Places on an occupancy grid or a raster form a lattice with the configured spacing. The lattice is
fixed in the map's frame and does not depend on the extent of the grid. When an occupancy grid
grows, shifts or turns, its earlier places therefore stay the same.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.base import FreeTopology, GraphTopology, Places
from gp_active_sensing.topology.geometry import (
    HEIGHTS,
    Cells,
    FreeGround,
    OccupancyGrid,
    Outline,
    Speeds,
    bounds_of,
    common,
    inside_of,
    polygon,
)
from gp_active_sensing.topology.loaders import find_map, map_server
from gp_active_sensing.topology.loaders.areas import Areas, read_areas
from gp_active_sensing.topology.loaders.rasters import load_raster_cells, usual_step
from gp_active_sensing.topology.map_config import (
    USUAL_PLACES,
    AreasConfig,
    GridConfig,
    OccupancyConfig,
    RasterConfig,
)
from gp_active_sensing.topology.search import Move
from gp_active_sensing.topology.segments import part_of
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

logger = logging.getLogger(__name__)

_NAME = re.compile(r"c(-?\d+)r(-?\d+)")
_STREAM = 0xB0C5


def make_points(
    count: int,
    low: Sequence[float],
    high: Sequence[float],
    *,
    seed: int = 0,
    speed: float = 1.0,
    name: str = "points",
    frame: str = "map",
) -> FreeTopology:
    """Make a map of `count` points of a scrambled Sobol sequence; all moves are possible.

    Features are the coordinates x1 … xd in the box from `low` (d,) to `high` (d,). `seed`
    determines the sequence. `speed` is the speed of the probe [m/s].
    """
    from scipy.stats import qmc  # slow to import

    rng = np.random.default_rng([seed, _STREAM])
    corner, size = np.asarray(low, dtype=np.float64), np.subtract(high, low)
    # A Sobol sequence is balanced if its length is a power of two; take its first points.
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
) -> Places:
    """Make a line of places along x with a `spacing` [m]; the only feature is x.

    `origin` is the position of the first place [m]. The other arguments are those of `make_grid`.
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
"""Largest number of cells of a grid, including the cells outside of its outline."""


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
) -> Places:
    """Make a grid; the place in column c and row r has the name "c{c}r{r}".

    A cell is a place if its centre lies inside the outline and outside all obstacles. No move
    leaves the outline or touches an obstacle. A diagonal move exists only if both cells beside it
    are places.

    Args:
        columns: number of cells along x; 0 = as many as fit the outline.
        rows: number of cells along y; 0 = as many as fit the outline.
        spacing: distance between neighbouring centres, along x and along y [m].
        neighbours: 4 or 8.
        outline: area with places, including its edge [m]: corners, or a Polygon or MultiPolygon of
            shapely. None = the rectangle of columns and rows.
        obstacles: areas without places, in the same forms as `outline`.
        inflation: smallest distance of places and moves from outline and obstacles [m].
        moves: "adjacent" (to the neighbours) or "free" (to any place, in a straight line).
        origin: centre of cell c0r0 [m]; None = the lower left corner of the outline if columns and
            rows are 0, else (0, 0).
        heights: z of the layers, upwards [m]; () = a grid in the plane. The name of the cell above
            c2r3 in layer k is "c2r3z{k}". Moves up and down lead to the next layer.
        speed: speed of the probe [m/s], or its `Speeds`.
        reach: largest driving distance to the next place [m]; 0 = adjacent places only.
        name: name of the map.
        frame: metric frame of the positions.

    Raises:
        ConfigError: an outline is no polygon, no cell is left, or there are too many cells.
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
    how: dict[str, Any] = {"moves": moves, "speed": speed, "reach": reach}
    return map_of(names, points, pairs, name=name, frame=frame, **how).over(ground)


_NO_PAIRS: IntArray = np.zeros((0, 2), dtype=np.int64)


def _box(columns: int, rows: int) -> IntArray:
    """Return the column and row of each cell, (columns · rows, 2), row by row."""
    row, column = np.divmod(np.arange(columns * rows), max(columns, 1))
    return np.column_stack([column, row])


def cell_names(cells: IntArray) -> list[str]:
    """Return the names of cells with columns and rows (n, 2) in a lattice."""
    return [f"c{c}r{r}" for c, r in cells.tolist()]


def neighbouring(
    cells: IntArray, neighbours: int, *, standing: BoolArray | None = None, beside: bool = False
) -> IntArray:
    """Return the indices (m, 2) of neighbouring cells, each pair once.

    `cells` (n, 2) are columns and rows. `standing` (n,) are flags of the cells to use, None = all.
    With `beside`, a diagonal pair counts only if both cells beside the diagonal are used.
    """
    index = np.arange(len(cells)) if standing is None else np.flatnonzero(standing)
    if not len(index):
        return _NO_PAIRS
    low = cells.min(axis=0) - 1
    width = int(np.ptp(cells[:, 0])) + 3
    code = ((cells[:, 1] - low[1]) * width + cells[:, 0] - low[0])[index]
    order = np.argsort(code)  # sorted, since a table would span the bounding box

    def at(offset: int) -> IntArray:
        """Return the index of the cell at an offset from each cell; -1 = no such cell."""
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
    names: Sequence[str],
    points: FloatArray,
    pairs: IntArray,
    *,
    name: str,
    frame: str,
    moves: str,
    speed: float | Speeds,
    reach: float = 0.0,
    numbers: Mapping[str, FloatArray] | None = None,
) -> Places:
    """Return the map of places at `points` (n, 2 or 3): x, y, z upwards [m].

    Straight moves in both directions join the two places of each pair in `pairs` (m, 2). The other
    arguments are those of `make_grid`.
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
    """Return the spacing (2,) along x and y [m]. Raises ConfigError unless both are above 0."""
    step = np.array(np.broadcast_to(np.asarray(spacing, dtype=np.float64), (2,)))
    if not (np.isfinite(step).all() and (step > 0.0).all()):
        msg = f"spacing: must be above 0 [m], got {spacing}"
        raise ConfigError(msg)
    return step


def in_metres(step: FloatArray) -> str:
    """Format a spacing along x and y [m] as text."""
    across, up = step.tolist()
    return f"{across:g} m" if across == up else f"{across:g} × {up:g} m"


def _fitted(
    columns: int,
    rows: int,
    step: FloatArray,
    outline: Outline | None,
    origin: tuple[float, float] | None,
) -> tuple[int, int, tuple[float, float]]:
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


# -- places on the cells of an occupancy grid or a raster ------------------------------------------


def _free_lattice(
    cells: Cells,
    ground: FreeGround,
    step: FloatArray,
    anchor: tuple[float, float],
    name: str,
    where: str,
) -> IntArray:
    """Return the columns and rows (m, 2) of lattice points on free ground, row by row.

    The points lie in the bounding box of `cells`. `where` describes the free ground in a message.

    Raises:
        ConfigError: the box has more than `MOST_CELLS` points.
        MapError: no point is on free ground, and `where` is not empty.
    """
    corners = (cells.corners - np.asarray(anchor)) / step
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
    lattice = lattice[ground.free(anchor + lattice * step)]
    if where and not len(lattice):
        within = " inside the outline" if ground.shapes else ""
        msg = (
            f"map {name!r}: no place of a lattice of {in_metres(step)} lies {where}{within}; give "
            "a smaller spacing, or shift the lattice with origin"
        )
        raise MapError(msg)
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
) -> Places:
    """Make a map of places on the free ground of an occupancy grid, see `OccupancyGrid.blocked`.

    The place in column c and row r of the lattice is at `anchor` + `spacing` (c, r) [m]. Its name
    is "c{c}r{r}"; c and r may be below 0. A move joins two neighbours if the straight line between
    them touches no blocked cell. Everything outside the grid is blocked. Only the largest connected
    part becomes places. All other arguments are those of `make_grid`.

    `keep` has the names of earlier places, which come first in this order. A blocked earlier place
    stays on the map, but no move leads to it. New places are added if moves join them to the
    largest connected group of earlier places.

    Raises:
        ConfigError: the spacing is not above 0, there are more than `MOST_CELLS` cells, or a name
            in `keep` is not the name of a cell.
        MapError: no cell is free, or no place is on a free cell.
    """
    step = spacings(spacing)
    blocked = grid.blocked(inflation=inflation, unknown=unknown)
    if blocked.all() and not keep:
        raise MapError(_nothing_free(grid, name, inflation, unknown))
    ground = FreeGround(outline, obstacles, inflation, cells=grid, blocked=blocked)
    earlier = _parsed(keep)
    lattice = _free_lattice(grid, ground, step, anchor, name, "" if keep else "on free ground")
    known, before = set(earlier), len(earlier)
    found = [cell for cell in map(tuple, lattice.tolist()) if cell not in known]
    cells = np.array([*earlier, *found], dtype=np.int64).reshape(-1, 2)
    positions = anchor + cells * step
    standing = np.ones(len(cells), dtype=np.bool_)
    standing[:before] = ground.free(positions[:before])
    pairs = neighbouring(cells, neighbours, standing=standing)
    pairs = pairs[ground.passable(positions, pairs)]
    part, counted = part_of(pairs, len(cells)), standing.copy()
    if standing[:before].any():
        counted[before:] = False
    kept = standing & (part == np.argmax(np.bincount(part[counted], minlength=1)))
    kept[:before] = True
    number = np.cumsum(kept) - 1
    ends = number[pairs[kept[pairs].all(axis=1)]]
    how: dict[str, Any] = {"moves": moves, "speed": speed, "reach": reach}
    names, points = cell_names(cells[kept]), positions[kept]
    made = map_of(names, points, ends, name=name, frame=frame, **how)
    made.lost = positions[standing & ~kept]
    return made.over(ground)


def _nothing_free(grid: OccupancyGrid, name: str, inflation: float, unknown: str) -> str:
    counts = grid.counts()
    rows, columns = grid.shape
    text = ", ".join(f"{count} {what}" for what, count in counts.items())
    advice = "is it the right map, and in the right mode (negate, thresholds)?"
    if counts["free"]:
        advice = f"inflation {inflation:g} m blocks all that is free; make it smaller"
    elif counts["unknown"] and unknown == "blocked":
        advice = "drive a little so that it gets to know some, or set unknown: free"
    return (
        f"map {name!r}: the occupancy grid has no cell for a place: of {columns} × {rows} cells of "
        f"{grid.resolution:g} m {text}; {advice}"
    )


def _parsed(names: Sequence[str]) -> list[tuple[int, int]]:
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


# -- grids as a configuration describes them -------------------------------------------------------

Step: TypeAlias = float | tuple[float, float]
Built: TypeAlias = tuple[Places, GridConfig]
"""Grid, and its configuration with the chosen spacing and origin."""

_TRIED = 3
"""Number of round spacings that are tried as the default spacing."""
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""Leading digits of round spacings."""


def _near(area: float) -> list[float]:
    """Return round spacings [m]; the first one gives `area` [m²] about `USUAL_PLACES` places."""
    wanted = math.sqrt(area / USUAL_PLACES)
    power = 10.0 ** math.floor(math.log10(wanted))
    found = {float(f"{r * p:.6g}") for r in _ROUND for p in (0.1 * power, power, 10.0 * power)}
    return sorted(found, key=lambda spacing: (abs(math.log(spacing / wanted)), spacing))


def usual_map(
    grid: OccupancyGrid, config: OccupancyConfig, build: Callable[[float], Places]
) -> tuple[float, Places]:
    """Return the default spacing of a map on an occupancy grid [m], and that map.

    The default is the round spacing whose number of places is nearest to `USUAL_PLACES`. It is at
    least the width of a cell. Each spacing is tried with `build`, which makes the map, since walls
    and doors remove more places than their area suggests.

    Raises:
        MapError: no spacing gives a place.
    """
    free = np.count_nonzero(~grid.blocked(**config.counting))
    round_ones = _near(max(1, int(free)) * grid.resolution**2)[:_TRIED]
    tried: dict[float, Places] = {}
    for spacing in sorted({max(wanted, grid.resolution) for wanted in round_ones}):
        with suppress(MapError):  # no place on free ground; a finer spacing may have some
            tried[spacing] = build(spacing)
    if not tried:
        build(min(max(wanted, grid.resolution) for wanted in round_ones))  # raises the reason
    spacing = min(tried, key=lambda spacing: abs(math.log(tried[spacing].n / USUAL_PLACES)))
    return spacing, tried[spacing]


class _AreaLayout:
    """Outline, obstacles and regions of a map in metres, from its configuration and its files.

    `path` is the file of the map, None = no file. `notes` and `datum` are those of the cells in
    this file. `metres` is the first source of coordinates in metres, for messages; "" = none yet.
    """

    def __init__(
        self,
        config: GridConfig,
        path: Path | None,
        base_dir: Path | None,
        metres: str = "",
        datum: tuple[float, float] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.notes = list(notes)
        self.regions: list[tuple[str, Any, float]] = []
        self.obstacles: list[Any] = []
        self.outline: Outline | None = None
        self.of_file = path is not None
        self.datum = config.lonlat or datum
        self._config, self._metres = config, metres
        if path is not None and isinstance(config, AreasConfig):
            self._add_file("file", path)
        if isinstance(config.outline, str):
            self._add_file("outline", find_map(config.outline, base_dir))
        elif config.outline is not None:
            self._metres = self._metres or "outline"
            self._cut("outline", config.outline)
        for number, obstacle in enumerate(config.shut):
            key = f"obstacles[{number}]"
            if isinstance(obstacle, str):
                self.obstacles.append(self._read(key, find_map(obstacle, base_dir)).everything)
            else:
                self._metres = self._metres or key
                self.obstacles.append(obstacle)
        if config.inflation:
            self.notes += _narrowed(self.ground(), config.inflation)
        self.arguments: dict[str, Any] = {
            "name": config.name or (path.name.partition(".")[0] if path else config.kind),
            "frame": config.frame or "map",
            "outline": self.outline,
            "obstacles": self.obstacles,
            **config.making,
        }

    def _read(self, key: str, path: Path) -> Areas:
        areas = read_areas(path, datum=self.datum, crs=self._config.crs if key == "file" else "")
        if self.datum is None and areas.datum is not None and self._metres:
            msg = (
                f"{key}: {path} is in degrees, and {self._metres} in metres: say where the origin "
                "of these lies with map.datum: [latitude, longitude]"
            )
            raise ConfigError(msg)
        self.datum = self.datum or areas.datum
        if areas.datum is None:
            self._metres = self._metres or f"{key} {path.name}"
        self.notes += areas.notes
        return areas

    def _add_file(self, key: str, path: Path) -> None:
        areas = self._read(key, path)
        if areas.outline is None:
            msg = (
                f"{path}: has obstacles or regions, but no outline that places lie in; add its "
                "polygon, or give map.outline and name this file in map.obstacles"
            )
            raise MapError(msg)
        self._cut(key, areas.outline)
        self.of_file = True
        self.obstacles += areas.obstacles
        self.regions += areas.regions

    def _cut(self, key: str, shape: Outline) -> None:
        self.outline = shape if self.outline is None else common(self.outline, shape, key)

    def ground(self) -> Any:
        """Return the outline without the obstacles as a shape; None = no outline.

        The result is also None if a shape is no polygon; `FreeGround` raises that error later.
        """
        if self.outline is None:
            return None
        import shapely

        shape = polygon(self.outline, "outline", [])
        others = [polygon(obstacle, "obstacles", []) for obstacle in self.obstacles]
        if shape is None or None in others:
            return None
        return shape.difference(shapely.union_all(others))

    def finished(self, places: Places, spacing: Step, origin: tuple[float, float]) -> Built:
        """Add datum, notes and weights of regions to a grid; also return its configuration."""
        if not isinstance(self._config, OccupancyConfig):  # it is the largest part already
            places = self._in_parts(places)
        if self.regions:
            weights = np.ones(places.n)
            for name, shape, weight in self.regions:
                covered = inside_of(shape, places.positions)
                weights[covered] = weight
                count = int(covered.sum())
                self.notes.append(f"region {name!r} of weight {weight:g}: {count} places")
            places = places.weighted(weights)
        settled = replace(self._config, spacing=spacing, origin=origin)
        return places.located(self.datum).noted(self.notes), settled

    def _in_parts(self, places: Places) -> Places:
        if not isinstance(places, GraphTopology) or places.components.weak == 1:
            return places
        parts, kept = places.components.weak, sorted(places.components.largest)
        if not self._config.largest_component:
            if self.of_file or self._config.inflation:
                logger.warning(
                    "map %r: no move joins its %d parts; the largest one has %d of %d places; a "
                    "smaller spacing may join them, map.largest_component: true keeps the largest "
                    "only",
                    *(places.name, parts, len(kept), places.n),
                )
            return places
        self.notes.append(
            f"kept the largest part, {len(kept)} of {places.n} places, since no move joins the "
            f"{parts} parts"
        )
        number = {place: i for i, place in enumerate(kept)}
        return GraphTopology(
            places.name,
            places.frame,
            [places.names[i] for i in kept],
            places.positions[kept],
            [[Move(number[to], *cost) for to, *cost in places.moves[i]] for i in kept],
            heights=None if places.heights is None else places.heights[kept],
            numbers={key: values[kept] for key, values in places.numbers.items()},
            reach=places.reach,
        ).over(places.ground)

    def note_spacing(self, spacing: Step) -> None:
        """Add a note on a default spacing."""
        self.notes.append(
            f"the spacing of {in_metres(spacings(spacing))} follows from the area of the map; "
            "map.spacing makes it finer or coarser"
        )


def of_areas(config: AreasConfig, path: Path | None, base_dir: Path | None) -> Built:
    """Build the grid of a rectangle or of areas; `path` is the file of the areas, None = no file.

    Raises:
        ConfigError: an outline or an obstacle is no polygon, or no place is left.
        MapError: a file cannot be used.
    """
    layout = _AreaLayout(config, path, base_dir)
    sized = bool(config.columns and config.rows)
    spacing, origin = config.spacing or 1.0, config.origin
    if not (config.spacing or sized) and (shape := layout.ground()) is not None:
        free = shape.buffer(-config.inflation) if config.inflation else shape
        if free.area > 0.0:
            spacing = _near(free.area)[0]
            layout.note_spacing(spacing)
    if origin is None and layout.of_file and layout.outline is not None and not sized:
        # Centre the grid in the outline.
        low_x, low_y, high_x, high_y = bounds_of(layout.outline)
        across, up = spacings(spacing).tolist()
        origin = (
            low_x + 0.5 * math.fmod(high_x - low_x, across),
            low_y + 0.5 * math.fmod(high_y - low_y, up),
        )
    more = {"heights": config.heights, "origin": origin, **layout.arguments}
    places = make_grid(config.columns, config.rows, spacing, **more)
    if origin is None:  # same default as in `make_grid`
        cornered = layout.outline is not None and not (config.columns or config.rows)
        origin = bounds_of(layout.outline)[:2] if cornered and layout.outline else (0.0, 0.0)
    return layout.finished(places, spacing, origin)


def of_raster(config: RasterConfig, path: Path, base_dir: Path | None) -> Built:
    """Build the grid of places on the raster's cells with data. Raises the errors of `of_areas`."""
    cells = load_raster_cells(path, config.lonlat, config.value, config.crs)
    metres = "" if cells.datum else f"file {path.name}"
    layout = _AreaLayout(config, path, base_dir, metres, cells.datum, cells.notes)
    shared, notes = layout.arguments, layout.notes
    free = int(np.count_nonzero(~cells.empty))
    rows, columns = cells.shape
    each = math.prod(cells.cell)
    notes.append(
        f"{columns} × {rows} cells of {in_metres(np.array(cells.cell))}: {free} with data, "
        f"{cells.empty.size - free} without"
    )
    if free == cells.empty.size:
        notes.append("every cell has data, so there is no shore: map.outline cuts the map smaller")
    if config.inflation:
        wide = int(np.count_nonzero(~cells.blocked(config.inflation)))
        notes.append(_lost_area(config.inflation, free * each, wide * each))
        free = wide
    spacing = config.spacing
    if not spacing:
        spacing = usual_step(cells, _near(max(free, 1) * each)[0])
        layout.note_spacing(spacing)
    step, origin = spacings(spacing), config.origin or cells.first
    ground = FreeGround(
        shared.pop("outline"),
        shared.pop("obstacles"),
        config.inflation,
        cells=cells,
        blocked=cells.blocked(shared.pop("inflation")),
    )
    where = f"where {cells.where} has data"
    lattice = _free_lattice(cells, ground, step, origin, shared["name"], where)
    points = origin + lattice * step
    pairs = neighbouring(lattice, shared.pop("neighbours"))
    pairs = pairs[ground.passable(points, pairs)]
    numbers: dict[str, FloatArray] = {}
    if config.value.lower() in HEIGHTS:
        points = np.column_stack([points, cells.values_at(points)])
    elif config.value:
        numbers[config.value] = cells.values_at(points)
    places = map_of(cell_names(lattice), points, pairs, numbers=numbers, **shared)
    # A straight line between two heights may cross the ground between them.
    places = places.over(ground if places.heights is None else None)
    return layout.finished(places, spacing, origin)


def of_occupancy(config: OccupancyConfig, path: Path, base_dir: Path | None) -> Built:
    """Build the grid on the free cells of a map of map_server. Raises the errors of `of_areas`."""
    layout = _AreaLayout(config, path, base_dir, f"file {path.name}")
    shared, notes = layout.arguments, layout.notes
    grid, found = map_server.load(path)
    notes += found
    counts = ", ".join(f"{count} {what}" for what, count in grid.counts().items())
    rows, columns = grid.shape
    notes.append(f"{columns} × {rows} cells of {grid.resolution:g} m: {counts}")
    spacing, origin = config.spacing, config.origin or (0.0, 0.0)

    def build(step: Step) -> Places:
        return make_occupancy_map(grid, step, anchor=origin, **shared)

    if spacing:
        places = build(spacing)
    else:
        spacing, places = usual_map(grid, config, build)
        layout.note_spacing(spacing)
    for note in _lost_places(places, spacing, grid.resolution, build):
        logger.warning("map %r: %s", places.name, note)
        notes.append(note)
    notes += _lost_ground(grid, config, places)
    return layout.finished(places, spacing, origin)


# -- lost ground -----------------------------------------------------------------------------------

_LEAST = 0.01
"""Smallest reported loss, as a fraction of the free ground or of the places."""
_FINER = (0.8, 0.65, 0.5, 0.35, 0.25)
"""Factors of the spacing that are tried in turn to keep lost places."""


def _around(parts: Iterable[tuple[float, float, float]]) -> str:
    """Describe the three largest parts of the ground; a part is (area [m²], x [m], y [m])."""
    ordered = sorted(parts, key=lambda part: -part[0])
    shown = [f"{size:.3g} m² around ({x:.1f}, {y:.1f})" for size, x, y in ordered[:3]]
    more = f" and {len(ordered) - 3} smaller parts" if len(ordered) > 3 else ""
    return ", ".join(shown) + more


def _lost_area(inflation: float, free: float, wide: float) -> str:
    return f"inflation {inflation:g} m takes {free - wide:.6g} of {free:.6g} m² of free ground"


def _narrowed(shape: Any, inflation: float) -> Iterator[str]:
    """Yield notes on the ground that an inflation [m] removes from `shape` (None = no ground)."""
    if shape is None or shape.is_empty:
        return
    import shapely

    narrowed = shape.buffer(-inflation)
    yield _lost_area(inflation, shape.area, narrowed.area)
    gone, cut = [], []
    for part in shapely.get_parts(shape):
        left = [p for p in shapely.get_parts(narrowed.intersection(part)) if p.area > 0.0]
        middle = part.representative_point()
        if not left:
            gone.append((part.area, middle.x, middle.y))
        elif len(left) > 1:
            cut += [(p.area, *p.representative_point().coords[0]) for p in left]
    if gone:
        yield f"{_around(gone)} are wholly within that inflation"
    if cut:
        yield f"that inflation cuts the ground into {len(cut)} parts: {_around(cut)}"


def _lost_places(
    places: Places, spacing: Step, finest: float, build: Callable[[Step], Places]
) -> Iterator[str]:
    """Yield a note if no move reaches some free places, with a spacing that keeps them.

    `finest` is the smallest tried spacing [m]. `build` makes the map with another spacing.
    """
    step = spacings(spacing)
    lost, each = places.lost, float(step.prod())
    if len(lost) <= _LEAST * places.n:
        return
    from scipy.spatial import cKDTree

    near = cKDTree(lost).query_pairs(1.01 * float(np.hypot(*step)), output_type="ndarray")
    part = part_of(near, len(lost))
    sizes = np.bincount(part)
    middles = [np.bincount(part, axis) / sizes for axis in lost.T]
    rooms = _around(zip((sizes * each).tolist(), *(m.tolist() for m in middles), strict=True))
    advice = "no smaller spacing keeps them"
    for share in _FINER:
        finer = tuple(float(f"{share * side:.2g}") for side in step.tolist())
        if min(finer) < finest:
            break
        made = build((finer[0], finer[1]))
        if len(made.lost) * math.prod(finer) <= 0.1 * len(lost) * each:
            shown = f"{finer[0]:g}" if finer[0] == finer[1] else f"[{finer[0]:g}, {finer[1]:g}]"
            advice = f"map.spacing: {shown} keeps them"
            break
    yield (
        f"left out: {len(lost)} places ({len(lost) * each:.3g} m²) of free ground that no move "
        f"joins to the others: {rooms}; {advice}"
    )


def _lost_ground(grid: OccupancyGrid, config: OccupancyConfig, places: Places) -> Iterator[str]:
    """Yield notes on rooms without a place, and on ground that the inflation takes."""
    from scipy.ndimage import center_of_mass, label

    free = ~grid.blocked(**{**config.counting, "inflation": 0.0})
    wide = ~grid.blocked(**config.counting)
    cell = grid.resolution**2
    least = max(_LEAST * float(wide.sum()), 1.0)

    def without(ground: np.ndarray, covered: Callable[[np.ndarray], np.ndarray]) -> str:
        rooms, count = label(ground)
        sizes = np.bincount(rooms.ravel(), minlength=count + 1)
        sizes[[0, *np.unique(covered(rooms))]] = 0
        empty = np.flatnonzero(sizes >= least)
        if not len(empty):
            return ""
        middles = np.array(center_of_mass(ground, rooms, empty))[:, ::-1] + 0.5
        at = grid.position_of(middles).tolist()
        return _around((sizes[k] * cell, x, y) for k, (x, y) in zip(empty, at, strict=True))

    at = np.concatenate([places.positions, places.lost])
    columns, rows = np.floor(grid.cells_of(at)).astype(np.int64).T
    inside = (columns >= 0) & (rows >= 0) & (columns < wide.shape[1]) & (rows < wide.shape[0])
    if empty := without(wide, lambda rooms: rooms[rows[inside], columns[inside]]):
        yield f"{empty} hold no place: a smaller spacing may"
    if config.inflation:
        yield _lost_area(config.inflation, free.sum() * cell, wide.sum() * cell)
        if empty := without(free, lambda rooms: rooms[wide]):
            yield f"{empty} are wholly within that inflation"
