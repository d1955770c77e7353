"""The picture of a map of places: grids, areas, stations, on the ground that they were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.report.map_picture import INK, OUTSIDE, Picture, PictureFrame, legend
from gp_active_sensing.topology.generated import FreeTopology
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.occupancy import OccupancyGrid
from gp_active_sensing.topology.segments import Point

__all__ = ["DrawnGround", "ground_of", "place_picture"]

_PLACE, _MOVE, _WALL, _UNKNOWN = "#2f7d9f", "#b9d3dd", "#57606a", "#eaeef2"
_MOST_CELLS = 400
"""Of an occupancy grid, along its longer side; of more, several are drawn as one."""
_MOST_NAMES = 40
_LARGEST, _SMALLEST = 5.0, 0.8
"""Radius of a place [pixel]."""


@dataclass(frozen=True)
class DrawnGround:
    """What a map's file says of the ground below its places.

    Args:
        outlines: rings [m].
        cells: of an occupancy grid, None where there is none.
        occupied: cells of this value and more are occupied [%].
    """

    outlines: tuple[tuple[Point, ...], ...] = ()
    cells: OccupancyGrid | None = None
    occupied: int = 65


def ground_of(path: Path, places: FreeTopology | GraphTopology, occupied: int) -> DrawnGround:
    """Return the ground that a file describes; of a format that says none, nothing.

    Args:
        path: of the map that the places were made of.
        places: in whose metres the ground is given.
        occupied: cells of an occupancy grid of this value and more are occupied [%].
    """
    from gp_active_sensing.topology.loaders import map_server
    from gp_active_sensing.topology.loaders.areas import AREA_ENDS, read_areas

    name = path.name.lower()
    if name.endswith((".yaml", ".yml")):
        return DrawnGround(cells=map_server.load(path)[0], occupied=occupied)
    if not name.endswith(AREA_ENDS):
        return DrawnGround()
    areas = read_areas(path, datum=places.datum)
    return DrawnGround(tuple(_rings([areas.outline, *areas.obstacles])))


def _rings(shapes: Sequence[Any]) -> list[tuple[Point, ...]]:
    """Return the rings of polygons of shapely, closed."""
    import shapely

    polygons = shapely.get_parts([shape for shape in shapes if shape is not None])
    rings = [ring for part in polygons for ring in (part.exterior, *part.interiors)]
    return [tuple((x, y) for x, y, *_ in ring.coords) for ring in rings]


def place_picture(places: FreeTopology | GraphTopology, ground: DrawnGround, title: str) -> Picture:
    """Return the picture of a map of places: moves, and what lies outside the largest part in red.

    Args:
        places: the map.
        ground: that they lie on.
        title: of the picture.
    """
    points = places.positions[:, :2]
    shown = [points, *(np.array(ring) for ring in ground.outlines)]
    if ground.cells is not None:
        shown.append(_known_corners(ground.cells))
    (west, south), (east, north) = (
        np.min([part.min(axis=0) for part in shown], axis=0).tolist(),
        np.max([part.max(axis=0) for part in shown], axis=0).tolist(),
    )
    frame = PictureFrame(west, south, east, north)
    picture = frame.picture(title)
    entries = []
    if ground.cells is not None:
        entries += _draw_cells(picture, frame, ground.cells, ground.occupied)
    outside: set[int] = set()
    if isinstance(places, GraphTopology):
        outside = set(range(places.n)) - set(places.components.largest)
        pairs = {(min(i, m.to), max(i, m.to)) for i in range(places.n) for m in places.moves[i]}
        ways = [tuple(frame.at(*points[k]) for k in pair) for pair in sorted(pairs)]
        if ways:
            picture.lines[_MOVE, 1.2] = ways
    if ground.outlines:
        rings = [tuple(frame.at(x, y) for x, y in ring) for ring in ground.outlines]
        picture.lines[INK, 1.5] = rings
    radius = _radius(frame, points)
    apart = {_PLACE: [i for i in range(places.n) if i not in outside], OUTSIDE: sorted(outside)}
    for colour, those in apart.items():
        if those:
            picture.dots[colour, radius] = [frame.at(*points[i]) for i in those]
    if places.n <= _MOST_NAMES:
        for name, (x, y) in zip(places.names, points.tolist(), strict=True):
            across, up = frame.at(x, y)
            picture.texts.append((across + radius + 3.0, up - radius, 12.0, name))
    entries.insert(0, (11.0, 11.0, _PLACE, "place"))
    if outside:
        entries.append((11.0, 11.0, OUTSIDE, f"outside the largest part ({len(outside)})"))
    if isinstance(places, GraphTopology):
        entries.append((18.0, 2.0, _MOVE, "move"))
    legend(picture, frame, entries)
    return picture


def _radius(frame: PictureFrame, points: np.ndarray) -> float:
    """Return how large to draw a place [pixel]: a quarter of the way to the nearest, about."""
    apart = frame.scale * frame.extent / np.sqrt(max(len(points), 1))
    return float(np.clip(round(0.14 * apart, 1), _SMALLEST, _LARGEST))


def _known_corners(grid: OccupancyGrid) -> np.ndarray:
    """(4, 2) corners of the part of a grid that is known [m]; of all of it where nothing is."""
    known = grid.values >= 0
    if not known.any():
        return grid.corners
    rows, columns = (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
    low, high = (columns[0], rows[0]), (columns[-1] + 1, rows[-1] + 1)
    box = [low, (high[0], low[1]), high, (low[0], high[1])]
    return grid.position_of(np.array(box, dtype=np.float64))


def _draw_cells(
    picture: Picture, frame: PictureFrame, grid: OccupancyGrid, occupied: int
) -> list[tuple[float, float, str, str]]:
    """Draw the occupied and the unknown cells; return the entries of the legend.

    A grid that is turned is drawn cell by cell at its corners, each an upright box.
    """
    step = max(1, -(-max(grid.shape) // _MOST_CELLS))
    rows, columns = (-(-side // step) for side in grid.shape)
    values = np.full((rows * step, columns * step), -1, dtype=np.int8)
    values[: grid.shape[0], : grid.shape[1]] = grid.values
    blocks = values.reshape(rows, step, columns, step).swapaxes(1, 2).reshape(rows, columns, -1)
    taken = (blocks >= occupied).any(axis=2)
    unknown = (blocks < 0).all(axis=2) & ~taken
    entries = []
    (west, south), (east, north) = (
        pick(_known_corners(grid), axis=0).tolist() for pick in (np.min, np.max)
    )
    left, top = frame.at(west, north)
    right, floor = frame.at(east, south)
    side = step * grid.resolution * frame.scale
    for what, colour, cells in (("unknown", _UNKNOWN, unknown), ("occupied", _WALL, taken)):
        boxes = []
        for row, first, last in _runs(cells) if not grid.yaw else _single(cells):
            middle = np.array([[0.5 * step * (first + last), step * (row + 0.5)]])
            x, y = frame.at(*grid.position_of(middle)[0])
            box = x - 0.5 * side * (last - first), y - 0.5 * side, side * (last - first), side
            if (inside := _within(box, (left, top, right, floor))) is not None:
                boxes.append(inside)
        if boxes:
            picture.ground[colour] = boxes
            entries.append((11.0, 11.0, colour, what))
    return entries


def _within(
    box: tuple[float, float, float, float], frame: tuple[float, float, float, float]
) -> tuple[float, float, float, float] | None:
    """Return what of a box lies within left, top, right and floor."""
    x, y, width, height = box
    left, top = max(x, frame[0]), max(y, frame[1])
    right, floor = min(x + width, frame[2]), min(y + height, frame[3])
    if right - left < 0.05 or floor - top < 0.05:
        return None
    return left, top, right - left, floor - top


def _runs(cells: np.ndarray) -> list[tuple[int, int, int]]:
    """Return row, first column and the one after the last of each run of cells that are set."""
    edges = np.diff(np.pad(cells.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    return [(int(r), int(a), int(b)) for (r, a), (_, b) in zip(starts, ends, strict=True)]


def _single(cells: np.ndarray) -> list[tuple[int, int, int]]:
    return [(int(r), int(c), int(c) + 1) for r, c in np.argwhere(cells)]
