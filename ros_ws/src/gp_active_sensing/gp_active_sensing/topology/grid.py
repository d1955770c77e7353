"""Places on a rectangular grid, with obstacles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.free import FreeTopology
from gp_active_sensing.topology.graph import GraphTopology, Move

__all__ = ["Outline", "make_grid"]

Outline = Sequence[tuple[float, float]]
"""Two opposite corners of a rectangle, or three and more corners of a polygon [m]."""

_STRAIGHT = ((-1, 0), (0, -1), (0, 1), (1, 0))
_DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def make_grid(
    columns: int,
    rows: int,
    spacing: float,
    *,
    neighbours: int = 4,
    obstacles: Sequence[Outline] = (),
    moves: str = "adjacent",
    origin: tuple[float, float] = (0.0, 0.0),
    speed: float = 1.0,
    name: str = "grid",
    frame: str = "map",
) -> Topology:
    """Make a grid; the place in column c and row r is called "c{c}r{r}", row by row.

    A cell whose centre an obstacle covers is no place. No move touches an obstacle, and a diagonal
    move needs both cells beside it, so that no corner is cut.

    Args:
        columns: number of cells along x.
        rows: number of cells along y.
        spacing: between neighbouring centres [m].
        neighbours: 4 or 8.
        obstacles: outlines, in metres.
        moves: "free" (any place next, straight distance) or "adjacent".
        origin: centre of cell c0r0 [m].
        speed: of the probe [m/s].
        name: name of the map.
        frame: metric frame of the positions.

    Raises:
        ConfigError: an outline that is not a polygon, or no cell left.
    """
    across, up = np.meshgrid(np.arange(columns), np.arange(rows))
    cells = [(int(c), int(r)) for c, r in zip(across.ravel(), up.ravel(), strict=True)]
    centres = np.asarray(origin) + spacing * np.array(cells, dtype=np.float64)
    blocked = _Obstacles(obstacles)
    kept = np.flatnonzero(~blocked.cover(centres))
    if not len(kept):
        msg = f"obstacles: cover all {columns} × {rows} cells; leave at least one"
        raise ConfigError(msg)
    places = {cells[k]: i for i, k in enumerate(kept)}
    names = [f"c{c}r{r}" for c, r in places]
    positions = centres[kept]
    if moves == "free":
        return FreeTopology(name, frame, names, positions, speed=speed)
    steps = _steps(places, positions, spacing, neighbours, blocked, speed)
    return GraphTopology(name, frame, names, positions, steps)


def _steps(
    places: dict[tuple[int, int], int],
    positions: npt.NDArray[np.float64],
    spacing: float,
    neighbours: int,
    blocked: _Obstacles,
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
    crossing = blocked.cross(positions, pairs)
    for (i, j), hit in zip(pairs, crossing, strict=True):
        if not hit:
            metres = math.dist(positions[i], positions[j])
            steps[i].append(Move(j, metres, metres / speed))
    return steps


class _Obstacles:
    """Obstacles, with shapely loaded only when there are any."""

    def __init__(self, outlines: Sequence[Outline]) -> None:
        self._area: Any = None
        if not outlines:
            return
        import shapely

        shapes = []
        problems: list[str] = []
        for number, outline in enumerate(outlines):
            if len(outline) < 2:
                problems.append(
                    f"obstacles[{number}]: expected 2 corners of a rectangle or the corners of a "
                    f"polygon, got {len(outline)}"
                )
                continue
            if len(outline) == 2:
                (x0, y0), (x1, y1) = outline
                shape = shapely.box(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
            else:
                shape = shapely.Polygon(outline)
            if not shape.is_valid:
                reason = shapely.is_valid_reason(shape)
                problems.append(f"obstacles[{number}]: is not a simple polygon ({reason})")
            shapes.append(shape)
        if problems:
            raise ConfigError(problems)
        self._area = shapely.union_all(shapes)
        shapely.prepare(self._area)

    def cover(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside or on the edge of an obstacle."""
        if self._area is None:
            return np.zeros(len(points), dtype=np.bool_)
        import shapely

        return np.asarray(shapely.intersects_xy(self._area, points[:, 0], points[:, 1]))

    def cross(
        self, points: npt.NDArray[np.float64], pairs: Sequence[tuple[int, int]]
    ) -> npt.NDArray[np.bool_]:
        """(len(pairs),) straight lines between two points that touch an obstacle."""
        if self._area is None or not pairs:
            return np.zeros(len(pairs), dtype=np.bool_)
        import shapely

        return np.asarray(shapely.intersects(self._area, shapely.linestrings(points[pairs])))
