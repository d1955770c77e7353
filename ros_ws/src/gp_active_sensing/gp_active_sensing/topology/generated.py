"""Maps made without a file: drawn points, a line, and a grid with outline and obstacles."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.geometry import FreeGround, Outline, Speeds, bounds_of, common
from gp_active_sensing.topology.graph import GraphTopology, Move
from gp_active_sensing.topology.search import Ways, WaysFrom
from gp_active_sensing.types import BoolArray, Cost, FloatArray, IntArray, Route

__all__ = [
    "MOST_CELLS",
    "FreeTopology",
    "Outline",
    "in_metres",
    "make_grid",
    "make_line",
    "make_points",
    "spacings",
]


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
        following = [goal] * self.n
        following[goal] = -1
        costs = tuple(map(Cost, metres.tolist(), seconds.tolist()))
        return Ways(goal, costs, tuple(following))

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
    seed: int = 0,
    speed: float = 1.0,
    name: str = "points",
    frame: str = "map",
) -> FreeTopology:
    """Make a map of points of a scrambled Sobol sequence, of which any may be next.

    Features are their coordinates x1 … xd in the box from `low` (d,) to `high` (d,); `seed` is the
    key of the draw, `speed` that of the probe [m/s].
    """
    from scipy.stats import qmc  # heavy, and seldom wanted

    rng = np.random.default_rng([seed, _STREAM])
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
    may be next, too; 0 = adjacent ones only.
    """
    x = origin[0] + spacing * np.arange(count)
    positions = np.column_stack([x, np.full(count, origin[1])])
    names = [str(i) for i in range(count)]
    if moves == "free":
        return FreeTopology(
            name,
            frame,
            names,
            positions,
            features=positions[:, :1],
            feature_names=("x",),
            speed=speed,
        )
    steps = [
        [Move(j, spacing, spacing / speed) for j in (i - 1, i + 1) if 0 <= j < count]
        for i in range(count)
    ]
    return GraphTopology(
        name,
        frame,
        names,
        positions,
        steps,
        features=positions[:, :1],
        feature_names=("x",),
        reach=reach,
    ).over(FreeGround(None, ()))


MOST_CELLS = 1_000_000
"""Cells of a grid, those outside its outline among them."""
_STRAIGHT = ((-1, 0), (0, -1), (0, 1), (1, 0))
_DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def make_grid(
    columns: int = 0,
    rows: int = 0,
    spacing: float | tuple[float, float] = 1.0,
    *,
    neighbours: int = 4,
    outline: Outline | None = None,
    geofence: Outline | None = None,
    obstacles: Sequence[Outline] = (),
    moves: str = "adjacent",
    origin: tuple[float, float] | None = None,
    heights: Sequence[float] = (),
    speed: float | Speeds = 1.0,
    reach: float = 0.0,
    name: str = "grid",
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Make a grid; the place in column c and row r is called "c{c}r{r}", row by row.

    Without columns and rows there are as many as the outline takes; without an origin, too, the
    grid then begins at the outline's lower left corner.

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
        geofence: no place and no move is outside of this, either; likewise. Beside an outline what
            both have in common counts.
        obstacles: their outlines, likewise.
        moves: "free" (any place next, straight distance) or "adjacent".
        origin: centre of cell c0r0 [m]; None = (0, 0), or the corner of the outline.
        heights: of its layers, upwards [m]; () = a grid in the plane. The cell above c2r3 in the
            layer k is called "c2r3z{k}", layer by layer; a move up or down leads to the next one.
        speed: of the probe [m/s], or its speeds along a leg and up and down.
        reach: places within so many metres may be next, too; 0 = adjacent ones only.
        name: name of the map.
        frame: metric frame of the positions.

    Raises:
        ConfigError: outlines that are no polygons, an outline and a geofence with nothing in
            common, no cell left, or more than `MOST_CELLS`.
    """
    bound = "outline" if geofence is None or outline is not None else "geofence"
    if geofence is not None:
        outline = common(outline, geofence, "geofence")
    ground = FreeGround(outline, obstacles)
    step = spacings(spacing)
    columns, rows, origin = _fitted(columns, rows, step, outline, origin)
    if columns * rows * len(heights) > MOST_CELLS:
        msg = (
            f"heights: {columns} × {rows} cells in {len(heights)} layers are more than "
            f"{MOST_CELLS}; give fewer"
        )
        raise ConfigError(msg)
    across, up = np.meshgrid(np.arange(columns), np.arange(rows))
    cells = [(int(c), int(r)) for c, r in zip(across.ravel(), up.ravel(), strict=True)]
    centres = np.asarray(origin) + step * np.array(cells, dtype=np.float64)
    inside, blocked = ground.inside(centres), ground.blocked(centres)
    kept = np.flatnonzero(inside & ~blocked)
    if not inside.any():
        (x0, y0), (x1, y1) = centres.min(axis=0), centres.max(axis=0)
        msg = (
            f"{bound}: holds none of the {columns} × {rows} cell centres (x {x0:g} … {x1:g}, "
            f"y {y0:g} … {y1:g} m), {in_metres(step)} apart; give a smaller spacing, or move the "
            "grid with origin"
        )
        raise ConfigError(msg)
    if not len(kept):
        where = f"all {columns} × {rows} cells" if outline is None else "all cells of the outline"
        msg = f"obstacles: cover {where}; leave at least one"
        raise ConfigError(msg)
    places = {cells[k]: i for i, k in enumerate(kept)}
    names = [f"c{c}r{r}" for c, r in places]
    positions = centres[kept]
    speeds = speed if isinstance(speed, Speeds) else Speeds(speed)
    steps = []
    if moves != "free":
        steps = _steps(places, positions, neighbours, ground, speeds.along)
    above: FloatArray | None = None
    if heights:
        steps = _with_layers(steps, len(names), heights, speeds)
        above = np.repeat(np.asarray(heights, dtype=np.float64), len(names))
        positions = np.tile(positions, (len(heights), 1))
        names = [f"{cell}z{k}" for k in range(len(heights)) for cell in names]
    if moves == "free":
        free = FreeTopology(name, frame, names, positions, speed=speeds, heights=above)
        return free.over(ground)
    return GraphTopology(name, frame, names, positions, steps, reach=reach, heights=above).over(
        ground
    )


def _with_layers(
    steps: Sequence[Sequence[Move]], n: int, heights: Sequence[float], speeds: Speeds
) -> list[list[Move]]:
    """Return the moves of n cells in each layer (() = none), and those from each layer to the next.

    `heights` of the layers [m] ascend or descend.
    """
    if not steps:
        return []
    found: list[list[Move]] = []
    for k, height in enumerate(heights):
        up: list[tuple[int, float, float]] = []
        for other in (k - 1, k + 1):
            if 0 <= other < len(heights):
                offset = np.array([0.0, 0.0, heights[other] - height])
                up.append((other * n, *speeds.leg(np.zeros(3), offset)))
        for i, out in enumerate(steps):
            level = [move._replace(to=move.to + k * n) for move in out]
            found.append(level + [Move(first + i, *cost) for first, *cost in up])
    return found


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


def _steps(
    places: dict[tuple[int, int], int],
    positions: npt.NDArray[np.float64],
    neighbours: int,
    ground: FreeGround,
    speed: float,
) -> list[list[Move]]:
    pairs: list[tuple[int, int]] = []
    for (c, r), i in places.items():
        for dc, dr in _STRAIGHT + (_DIAGONAL if neighbours == 8 else ()):
            j = places.get((c + dc, r + dr))
            beside = (c + dc, r) in places and (c, r + dr) in places
            if j is not None and beside:
                pairs.append((i, j))
    steps: list[list[Move]] = [[] for _ in places]
    for (i, j), free in zip(pairs, ground.passable(positions, pairs), strict=True):
        if free:
            metres = math.dist(positions[i], positions[j])
            steps[i].append(Move(j, metres, metres / speed))
    return steps
