"""Places on a straight line, and on a grid: a rectangle or a polygon, with obstacles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.free import FreeTopology
from gp_active_sensing.topology.geometry import Outline, bounds_of, polygon, widened
from gp_active_sensing.topology.graph import GraphTopology, Move

__all__ = ["Outline", "make_grid", "make_line"]


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
    """Make a line of places along x; its one feature is x.

    Args:
        count: number of places.
        spacing: between neighbours [m].
        moves: "free" (any place next) or "adjacent" (the next place to either side).
        origin: position of the first place [m].
        speed: of the probe [m/s].
        reach: places within so many metres may be next, too; 0 = adjacent ones only.
        name: name of the map.
        frame: metric frame of the positions.
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
    )


MOST_CELLS = 1_000_000
"""Cells of a grid, those outside its outline among them."""
_STRAIGHT = ((-1, 0), (0, -1), (0, 1), (1, 0))
_DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def make_grid(
    columns: int = 0,
    rows: int = 0,
    spacing: float = 1.0,
    *,
    neighbours: int = 4,
    outline: Outline | None = None,
    obstacles: Sequence[Outline] = (),
    moves: str = "adjacent",
    origin: tuple[float, float] = (0.0, 0.0),
    speed: float = 1.0,
    reach: float = 0.0,
    name: str = "grid",
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Make a grid; the place in column c and row r is called "c{c}r{r}", row by row.

    Without columns and rows there are as many as the outline takes; with the default origin, too,
    the grid then begins at the outline's lower left corner.

    A cell whose centre lies outside the outline, or that an obstacle covers, is no place. No move
    leaves the outline or touches an obstacle, and a diagonal move needs both cells beside it, so
    that no corner is cut.

    Args:
        columns: number of cells along x; 0 = as many as the outline takes.
        rows: number of cells along y; 0 = as many as the outline takes.
        spacing: between neighbouring centres [m].
        neighbours: 4 or 8.
        outline: of the area with places, in metres; its edge is part of it. Corners, or a Polygon
            or MultiPolygon of shapely. None = the rectangle.
        obstacles: their outlines, likewise.
        moves: "free" (any place next, straight distance) or "adjacent".
        origin: centre of cell c0r0 [m].
        speed: of the probe [m/s].
        reach: places within so many metres may be next, too; 0 = adjacent ones only.
        name: name of the map.
        frame: metric frame of the positions.

    Raises:
        ConfigError: outlines that are no polygons, no cell left, or more than `MOST_CELLS`.
    """
    ground = _Ground(outline, obstacles)
    columns, rows, origin = _extent(columns, rows, spacing, outline, origin)
    across, up = np.meshgrid(np.arange(columns), np.arange(rows))
    cells = [(int(c), int(r)) for c, r in zip(across.ravel(), up.ravel(), strict=True)]
    centres = np.asarray(origin) + spacing * np.array(cells, dtype=np.float64)
    inside, blocked = ground.inside(centres), ground.blocked(centres)
    kept = np.flatnonzero(inside & ~blocked)
    if not inside.any():
        (x0, y0), (x1, y1) = centres.min(axis=0), centres.max(axis=0)
        msg = (
            f"outline: holds none of the {columns} × {rows} cell centres (x {x0:g} … {x1:g}, "
            f"y {y0:g} … {y1:g} m); move it, or the grid with origin and spacing"
        )
        raise ConfigError(msg)
    if not len(kept):
        where = f"all {columns} × {rows} cells" if outline is None else "all cells of the outline"
        msg = f"obstacles: cover {where}; leave at least one"
        raise ConfigError(msg)
    places = {cells[k]: i for i, k in enumerate(kept)}
    names = [f"c{c}r{r}" for c, r in places]
    positions = centres[kept]
    if moves == "free":
        return FreeTopology(name, frame, names, positions, speed=speed)
    steps = _steps(places, positions, spacing, neighbours, ground, speed)
    return GraphTopology(name, frame, names, positions, steps, reach=reach)


def _extent(
    columns: int,
    rows: int,
    spacing: float,
    outline: Outline | None,
    origin: tuple[float, float],
) -> tuple[int, int, tuple[float, float]]:
    """Return columns, rows and origin; those that are left out cover the outline."""
    if not (columns and rows):
        if outline is None:
            msg = "columns, rows: are required without an outline"
            raise ConfigError(msg)
        left, bottom, right, top = bounds_of(outline)
        if not (columns or rows) and origin == (0.0, 0.0):
            origin = (left, bottom)
        across = math.floor((right - origin[0]) / spacing + 1e-9) + 1
        up = math.floor((top - origin[1]) / spacing + 1e-9) + 1
        columns, rows = columns or across, rows or up
        if columns < 1 or rows < 1:
            msg = (
                f"origin: the grid begins at {origin[0]:g}, {origin[1]:g} m, beyond the outline, "
                f"which ends at {right:g}, {top:g} m; leave origin out, or correct it"
            )
            raise ConfigError(msg)
    if columns * rows > MOST_CELLS:
        msg = (
            f"columns, rows: {columns} × {rows} cells of {spacing:g} m are more than "
            f"{MOST_CELLS}; give a larger spacing"
        )
        raise ConfigError(msg)
    return columns, rows, origin


def _steps(
    places: dict[tuple[int, int], int],
    positions: npt.NDArray[np.float64],
    spacing: float,
    neighbours: int,
    ground: _Ground,
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


class _Ground:
    """The outline and the obstacles, with shapely loaded only when there are any."""

    def __init__(self, outline: Outline | None, obstacles: Sequence[Outline]) -> None:
        self._area: Any = None
        self._obstacles: Any = None
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
        if shapes:
            self._obstacles = shapely.union_all(shapes)
            shapely.prepare(self._obstacles)
        if area is not None:
            self._area = widened(area)
            shapely.prepare(self._area)

    def inside(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside or on the edge of the outline."""
        if self._area is None:
            return np.ones(len(points), dtype=np.bool_)
        import shapely

        return np.asarray(shapely.intersects_xy(self._area, points[:, 0], points[:, 1]))

    def blocked(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside or on the edge of an obstacle."""
        if self._obstacles is None:
            return np.zeros(len(points), dtype=np.bool_)
        import shapely

        return np.asarray(shapely.intersects_xy(self._obstacles, points[:, 0], points[:, 1]))

    def passable(
        self, points: npt.NDArray[np.float64], pairs: Sequence[tuple[int, int]]
    ) -> npt.NDArray[np.bool_]:
        """(len(pairs),) straight lines between two points that stay inside and touch nothing."""
        free = np.ones(len(pairs), dtype=np.bool_)
        if not pairs or (self._area is None and self._obstacles is None):
            return free
        import shapely

        lines = shapely.linestrings(points[pairs])
        if self._obstacles is not None:
            free &= ~shapely.intersects(self._obstacles, lines)
        if self._area is not None:
            free &= shapely.covers(self._area, lines)
        return free
