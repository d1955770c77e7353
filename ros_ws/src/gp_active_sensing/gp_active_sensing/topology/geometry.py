"""Geometry in metres: outlines, occupancy grids, free ground, and straight lines with durations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from shapely import MultiPolygon, Polygon


NEAR = 0.1
"""Largest distance of a start position from a map, as a fraction of the map's diagonal."""


class Cells(Protocol):
    """Grid of cells with any position and orientation."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        ...

    @property
    def corners(self) -> FloatArray:
        """Points (m, 2) [m] in the map's frame; their bounding box contains all data."""
        ...

    def cells_of(self, points: FloatArray) -> FloatArray:
        """Convert positions (m, 2) in the map's frame [m] to fractional columns and rows (m, 2)."""
        ...


class FreeGround:
    """Ground inside an outline, but outside of obstacles and blocked cells.

    Args:
        outline: area of the ground [m]; None = everywhere.
        obstacles: areas that are not free [m].
        inflation: smallest distance of free ground from outline and obstacles [m].
        cells: grid with blocked cells; everything outside the grid is blocked. None = no grid.
        blocked: (rows, columns) flags of the blocked cells.

    Raises:
        ConfigError: an outline is no polygon, or the inflation leaves no ground.
    """

    def __init__(
        self,
        outline: Outline | None = None,
        obstacles: Sequence[Outline] = (),
        inflation: float = 0.0,
        *,
        cells: Cells | None = None,
        blocked: BoolArray | None = None,
    ) -> None:
        self._area: Any = None
        self._obstacles: Any = None
        self._bars: Any = None
        self._cells = None if cells is None or blocked is None else _BlockedCells(cells, blocked)
        self.cells = cells
        self.shapes: tuple[Any, ...] = ()
        """Outline and obstacles without inflation, as shapes of shapely."""
        if outline is None and not obstacles:
            return
        import shapely

        problems: list[str] = []
        shapes = [
            polygon(obstacle, f"obstacles[{number}]", problems)
            for number, obstacle in enumerate(obstacles)
        ]
        area = None if outline is None else polygon(outline, "outline", problems)
        if problems:
            raise ConfigError(problems)
        self.shapes = (*([] if area is None else [area]), *shapes)
        if shapes:
            self._obstacles = shapely.union_all(shapes).buffer(inflation)
            shapely.prepare(self._obstacles)
        if area is not None:
            narrowed = area.buffer(-inflation) if inflation else area
            if narrowed.is_empty:
                msg = f"inflation: {inflation:g} m leaves nothing of the outline; make it smaller"
                raise ConfigError(msg)
            self._area = widened(narrowed)
            shapely.prepare(self._area)

    @property
    def bounded(self) -> bool:
        """Return whether the ground has limits: an outline, obstacles, blocked cells or bars."""
        parts = (self._area, self._obstacles, self._cells, self._bars)
        return any(part is not None for part in parts)

    def inside(self, points: FloatArray) -> BoolArray:
        """Return flags (m,): True for a point that is at least `inflation` inside the outline."""
        return _touched(self._area, points, if_none=True)

    def blocked(self, points: FloatArray) -> BoolArray:
        """Return flags (m,): True for a point in an obstacle or at most `inflation` from it."""
        return _touched(self._obstacles, points, if_none=False)

    def free(self, points: FloatArray) -> BoolArray:
        """Return flags (m,): True for a point on free ground."""
        free = self.inside(points) & ~self.blocked(points)
        return free if self._cells is None else free & self._cells.free_points(points)

    def passable(
        self, points: FloatArray, pairs: Sequence[tuple[int, int]] | IntArray
    ) -> BoolArray:
        """Return flags (len(pairs),): True if the line between two points is on free ground."""
        ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        free = np.ones(len(ends), dtype=np.bool_)
        if self._cells is not None:
            free = self._cells.free_lines(points, ends)
        if not free.any() or (self._area is self._obstacles is self._bars is None):
            return free
        import shapely

        lines: Any = shapely.linestrings(points[ends[free]])  # typed as a single line
        # None intersects nothing.
        hit = shapely.intersects(self._obstacles, lines) | shapely.intersects(self._bars, lines)
        free[free] = ~hit if self._area is None else ~hit & shapely.covers(self._area, lines)
        return free

    def without(self, squares: FloatArray, width: float) -> FreeGround:
        """Return this ground without squares: centres `squares` (m, 2), side `width` [m]."""
        import shapely

        other = copy(self)
        half = 0.5 * width * (1.0 - HAIR)  # a path between two squares touches neither
        gone = shapely.box(*(squares - half).T, *(squares + half).T)
        shapes = gone if self._obstacles is None else [*gone, self._obstacles]
        other._obstacles = shapely.union_all(shapes)
        shapely.prepare(other._obstacles)
        return other

    def barred(self, bars: FloatArray) -> FreeGround:
        """Return the same ground with bars: line segments (k, 2, 2) [m] that no path may cross."""
        import shapely

        other = copy(self)
        other._bars = shapely.union_all(shapely.linestrings(bars))
        shapely.prepare(other._bars)
        return other

    def in_sight(self, start: FloatArray, ends: FloatArray) -> BoolArray:
        """Return flags for m `ends` (m, 2) [m]: True = the line from `start` to the end is free."""
        points = np.vstack([start[None, :2], ends[:, :2]])
        pairs = np.column_stack([np.zeros(len(ends), np.int64), np.arange(1, len(points))])
        return self.passable(points, pairs)

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """Return a free point near a position [m], at most 5 % farther than the nearest free point.

        Return the position itself if it is free, or if nothing within 1,000 km is free.
        """
        here = np.array([[x, y]])
        if self.free(here)[0]:
            return x, y
        around = np.column_stack([np.cos(_AROUND), np.sin(_AROUND)])
        radius = _NEAREST
        while radius < _FARTHEST:
            ring = here + radius * around
            if (free := np.flatnonzero(self.free(ring))).size:
                return float(ring[free[0], 0]), float(ring[free[0], 1])
            radius *= 1.05
        return x, y


_AROUND = np.linspace(0.0, math.tau, 128, endpoint=False)
_NEAREST, _FARTHEST = 0.01, 1e6
"""Smallest and largest radius of the search for free ground [m]."""
HAIR = 1e-6
"""Distance from an edge within which a point also touches the neighbouring cell [cells]."""
_SIDES = HAIR * np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])
"""Offsets from a point to four test points [cells]. The point touches the cells of these four."""
_AT_ONCE = 1 << 21
"""Largest number of cells that are looked up in one step."""


class _BlockedCells(NamedTuple):
    cells: Cells
    blocked: BoolArray

    def _hit(self, at: FloatArray) -> BoolArray:
        rows, columns = self.cells.shape
        whole = np.floor(at).astype(np.int64)
        column, row = whole[..., 0], whole[..., 1]
        outside = (column < 0) | (row < 0) | (column >= columns) | (row >= rows)
        column, row = np.clip(column, 0, columns - 1), np.clip(row, 0, rows - 1)
        return np.asarray(outside | self.blocked[row, column])

    def free_points(self, points: FloatArray) -> BoolArray:
        """Return flags (m,): True for a point that touches no blocked cell."""
        cells = self.cells.cells_of(points)
        hit = np.zeros(len(cells), dtype=np.bool_)
        for side in _SIDES:
            hit |= self._hit(cells + side)
        return ~hit

    def free_lines(self, points: FloatArray, pairs: IntArray) -> BoolArray:
        """Return flags (len(pairs),): True if the line between two points is free."""
        if not len(pairs):
            return np.zeros(0, dtype=np.bool_)
        cells = self.cells.cells_of(points)
        starts, ways = cells[pairs[:, 0]], cells[pairs[:, 1]] - cells[pairs[:, 0]]
        crossed = int(np.ceil(np.abs(ways)).max(axis=0).sum()) + 4
        size = max(1, _AT_ONCE // crossed)
        hit = np.zeros(len(pairs), dtype=np.bool_)
        for first in range(0, len(pairs), size):
            part = slice(first, first + size)
            for side in _SIDES:
                hit[part] |= self._hit(_cells_between(starts[part] + side, ways[part])).any(axis=1)
        return ~hit


def _cells_between(starts: FloatArray, ways: FloatArray) -> FloatArray:
    """Return points (m, k, 2) [cells]: for each of m lines, a point in every cell on the line.

    Line i leads from `starts[i]` to `starts[i] + ways[i]`.
    """
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


def inflated(taken: BoolArray, cell: tuple[float, float], inflation: float) -> BoolArray:
    """Return flags (rows, columns): True for a taken cell and for a cell near a taken cell.

    A cell is near if its middle is less than `inflation` [m] from the edge of a taken cell. `cell`
    is the width and height of a cell [m].
    """
    if not (inflation > 0.0 and taken.any()):
        return taken
    from scipy.ndimage import distance_transform_edt

    apart = distance_transform_edt(~taken, sampling=cell[::-1])
    half = 0.5 * max(cell)
    return np.asarray(taken | (apart - half < inflation - HAIR * max(cell)))


UNKNOWN: tuple[str, ...] = ("blocked", "free")
MOST_GROUND = 25_000_000
"""Largest number of cells of an occupancy grid; inflating it takes 16 bytes of memory per cell."""
OCCUPIED = 65
"""Occupancy from which a cell counts as occupied, as in map_server [%]."""


@dataclass(frozen=True, eq=False)
class OccupancyGrid:
    """Occupancy of the cells of the ground, as in nav_msgs/OccupancyGrid.

    Args:
        values: (rows, columns) int8: 0 free … 100 occupied [%], -1 unknown. Row 0 is at the origin.
        resolution: width of a cell [m].
        origin: x and y of the outer corner of cell (0, 0) in the map's frame [m].
        yaw: direction of the rows in the map's frame, counter-clockwise from x [rad].

    Raises:
        MapError: a value is no whole number from -1 to 100, the grid has more than `MOST_GROUND`
            cells, or the resolution is not above 0.
    """

    values: np.ndarray
    resolution: float
    origin: tuple[float, float] = (0.0, 0.0)
    yaw: float = 0.0
    _blocked: dict[tuple[float, str], BoolArray] = field(
        default_factory=dict, init=False, repr=False
    )
    """Last result of `blocked`; the key is the arguments of the call."""

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
        """Outer corners (4, 2) [m] in the map's frame, counter-clockwise from the origin."""
        rows, columns = self.shape
        at = np.array([(0, 0), (columns, 0), (columns, rows), (0, rows)], dtype=np.float64)
        return self.position_of(at)

    def position_of(self, cells: FloatArray) -> FloatArray:
        """Convert fractional columns and rows (m, 2) to positions (m, 2) in the map's frame [m]."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        turned = cells @ np.array([(cos, sin), (-sin, cos)])
        return np.asarray(np.asarray(self.origin) + self.resolution * turned)

    def cells_of(self, points: FloatArray) -> FloatArray:
        """Convert positions (m, 2) in the map's frame [m] to fractional columns and rows (m, 2)."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        turned = (points - np.asarray(self.origin)) @ np.array([(cos, -sin), (sin, cos)])
        return np.asarray(turned / self.resolution)

    def counts(self) -> dict[str, int]:
        """Return the numbers of free, occupied and unknown cells."""
        taken = int(np.count_nonzero(self.values >= OCCUPIED))
        unknown = int(np.count_nonzero(self.values < 0))
        return {"free": self.values.size - taken - unknown, "occupied": taken, "unknown": unknown}

    def blocked(self, *, inflation: float = 0.0, unknown: str = "blocked") -> BoolArray:
        """Return read-only flags (rows, columns): True for a cell where a probe cannot be.

        Occupied cells are blocked. Cells whose middle is nearer than `inflation` [m] to the edge of
        an occupied cell are also blocked. Unknown cells count as `unknown`: "blocked" or "free".
        They are not inflated, as in Nav2.
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


Outline: TypeAlias = "Sequence[tuple[float, float]] | Polygon | MultiPolygon"
"""Two opposite corners of a rectangle, corners of a polygon, or a polygon of shapely [m]."""

_HAIR = 1e-9
"""Largest rounding error of a point on an outline, as a fraction of the outline's size."""


def polygon(outline: Outline, key: str, problems: list[str]) -> Any:
    """Return an outline as a shape, or add its fault to `problems` and return None."""
    import shapely

    shape: Any
    if isinstance(outline, shapely.Geometry):
        shape = outline
        if shape.is_empty or not isinstance(shape, shapely.Polygon | shapely.MultiPolygon):
            problems.append(f"{key}: expected a Polygon or a MultiPolygon, got {shape.wkt:.60}")
            return None
    elif len(outline) < 2:
        problems.append(
            f"{key}: expected 2 corners of a rectangle or the corners of a polygon, got "
            f"{len(outline)}"
        )
        return None
    elif len(outline) == 2:
        shape = shapely.box(*bounds_of(outline))
    else:
        shape = shapely.Polygon(outline)
    if fault := fault_of(shape):
        problems.append(f"{key}: is not a simple polygon: {fault}")
        return None
    return shape


def common(outline: Outline | None, other: Outline, key: str) -> Any:
    """Return the intersection of two outlines [m] as a shape of shapely.

    `outline` None = everywhere. `key` is the name of `other` in messages.

    Raises:
        ConfigError: an outline is no polygon, or the intersection is empty.
    """
    import shapely

    problems: list[str] = []
    before = None if outline is None else polygon(outline, "outline", problems)
    shape = polygon(other, key, problems)
    if problems:
        raise ConfigError(problems)
    if before is None:
        return shape
    parts = [part for part in shapely.get_parts(before.intersection(shape)) if part.area > 0.0]
    if not parts:
        msg = f"{key}: has nothing in common with the area of the file; do both lie right?"
        raise ConfigError(msg)
    return shapely.MultiPolygon(parts) if len(parts) > 1 else parts[0]


def fault_of(shape: Any) -> str:
    """Describe why and where a shape is no simple polygon; "" = no fault."""
    import shapely

    if shape.is_valid:  # False for a shape without area
        return ""
    reason, _, where = shapely.is_valid_reason(shape).rstrip("]").partition("[")
    at = f" at ({', '.join(f'{float(c):.8g}' for c in where.split())})" if where else ""
    if "elf-intersection" in reason:
        return f"its edges cross or touch each other{at}; move its corners there"
    return f"{reason.strip().lower()}{at}"


def bounds_of(outline: Outline) -> tuple[float, float, float, float]:
    """Return the smallest x and y and the largest x and y of an outline [m]."""
    if isinstance(outline, Sequence):
        xs, ys = zip(*outline, strict=True)
        return min(xs), min(ys), max(xs), max(ys)
    return outline.bounds


def widened(shape: Any) -> Any:
    """Return a shape that is slightly wider, so that points on its edge are inside."""
    import shapely

    return shapely.buffer(shape, _HAIR * math.sqrt(shapely.area(shape)), join_style="mitre")


def simple(geometry: Any) -> Iterator[Any]:
    """Yield the points, lines and polygons in a geometry of shapely; None contains nothing."""
    if hasattr(geometry, "geoms"):
        for part in geometry.geoms:
            yield from simple(part)
    elif geometry is not None:
        yield geometry


def inside_of(shape: Any, points: FloatArray) -> BoolArray:
    """Return flags (m,): True for a point of `points` (m, 2) inside a shape or on its edge."""
    import shapely

    wide = widened(shape)
    shapely.prepare(wide)
    return _touched(wide, points, if_none=False)


def _touched(shape: Any, points: FloatArray, *, if_none: bool) -> BoolArray:
    if shape is None:
        return np.full(len(points), if_none)
    import shapely

    return np.asarray(shapely.intersects_xy(shape, points[:, 0], points[:, 1]))


@dataclass(frozen=True)
class Speeds:
    """Speeds of a probe [m/s]."""

    along: float = 1.0  # speed along a straight line
    climb: float | None = None  # largest vertical speed; None = no limit

    @property
    def least(self) -> float:
        """Lower bound on the speed along any straight line [m/s]."""
        return min(self.along, self.climb or self.along)

    def metres(self, offsets: FloatArray) -> FloatArray:
        """Return the lengths (…) of lines; `offsets` (…, 2 or 3) lead from start to end [m]."""
        flat = np.hypot(offsets[..., 0], offsets[..., 1])
        return np.asarray(flat if offsets.shape[-1] == 2 else np.hypot(flat, offsets[..., 2]))

    def seconds(self, offsets: FloatArray, metres: FloatArray) -> FloatArray:
        """Return the durations (…) of lines with these offsets (…, 2 or 3) and lengths (…) [m]."""
        seconds = metres / self.along
        if offsets.shape[-1] == 3 and self.climb is not None:
            seconds = np.maximum(seconds, np.abs(offsets[..., 2]) / self.climb)
        return np.asarray(seconds)

    def leg(self, start: FloatArray, end: FloatArray) -> tuple[float, float]:
        """Return metres and seconds of the straight line from one point (2 or 3,) to another."""
        offset = np.asarray(end - start)
        metres = self.metres(offset)
        return float(metres), float(self.seconds(offset, metres))


class Spacing(NamedTuple):
    """Distances between neighbouring places [m]."""

    across: float  # in the plane
    up: float | None  # vertical; None = places have no heights

    @property
    def ratio(self) -> float:
        """Ratio of the vertical to the horizontal distance; 1 if a distance is missing."""
        return 1.0 if self.up is None or not self.across else self.up / self.across


def spacing_of(points: FloatArray) -> Spacing:
    """Return the median distances [m] between neighbouring points x, y, z (n, 2 or 3)."""
    from scipy.spatial import cKDTree  # slow to import

    plan, column = np.unique(np.round(points[:, :2], 6), axis=0, return_inverse=True)
    across = 0.0
    if len(plan) > 1:
        distances, _ = cKDTree(plan).query(plan, k=2)
        across = float(np.median(np.asarray(distances)[:, 1]))
    if points.shape[1] == 2:
        return Spacing(across, None)
    order = np.lexsort((points[:, 2], column.reshape(-1)))
    same = np.diff(column.reshape(-1)[order]) == 0
    gaps = np.diff(points[order, 2])[same]
    gaps = gaps[gaps > 1e-9]
    return Spacing(across, float(np.median(gaps)) if gaps.size else None)


# -- units of length, names of heights, signs of depths --------------------------------------------

HEIGHTS: Mapping[str, float] = {
    **dict.fromkeys(("z", "z_m", "height", "height_m", "altitude", "elevation"), 1.0),
    **dict.fromkeys(("depth", "depth_m"), -1.0),
}
"""Factor that converts the numbers of a column to heights; the keys are names of columns."""
_UNITS = {
    "": 1.0, "m": 1.0, "metre": 1.0, "metres": 1.0, "meter": 1.0, "meters": 1.0,
    "cm": 0.01, "mm": 0.001, "km": 1000.0,
    "ft": 0.3048, "feet": 0.3048, "foot": 0.3048, "fathoms": 1.8288, "fathom": 1.8288,
}  # fmt: skip
"""Length of each unit [m]; the keys are the names of the units."""


def metres_in(unit: str) -> float | None:
    """Return the length of a unit [m], None for an unknown unit."""
    return _UNITS.get(unit.strip().lower().removeprefix("us survey ").removeprefix("us_"))


def upwards_of(title: str) -> float | None:
    """Return the factor that converts a column with a title such as "z (ft)" to heights [m].

    The factor of a depth is negative. Return None if the title names neither height nor depth.
    """
    found = re.fullmatch(r"([a-z]+)(?:[ _]*[\[(]?([a-z]+)[\])]?)?", title.strip().lower())
    if found is None or found[1] not in HEIGHTS:
        return None
    unit = metres_in(found[2] or "")
    return None if unit is None else HEIGHTS[found[1]] * unit


def below_water(depths: FloatArray, where: str) -> tuple[FloatArray, tuple[str, ...]]:
    """Convert depths [m], all positive or all negative, to heights [m]; also return notes.

    Raises:
        MapError: some depths are above 0 and some are below 0.
    """
    known = depths[np.isfinite(depths)]
    below, above = int((known > 0.0).sum()), int((known < 0.0).sum())
    if below and above:
        msg = (
            f"{where}: {below} depths are above 0 and {above} below; depths count downwards from "
            "the water: give all one sign, or name it a height, which counts upwards"
        )
        raise MapError(msg)
    if not above:
        return -depths, ()
    return depths, (f"{where}: all depths are negative and were taken as heights below the water",)
