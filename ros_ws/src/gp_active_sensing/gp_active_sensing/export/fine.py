"""Points of a map with more points than the mission had places: a lattice, or points on roads."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gp_active_sensing.errors import RunError
from gp_active_sensing.export.lattice import MOST_CELLS, Layer, layers_of
from gp_active_sensing.topology import FreeTopology, Topology
from gp_active_sensing.topology.geometry import FreeGround
from gp_active_sensing.types import FloatArray, IntArray

MOST_POINTS = 10_000_000


class FinePoints(NamedTuple):
    """Points of a fine map.

    Args:
        topology: map whose places are the points. Its weights are areas [m²] or lengths of road
            [m].
        within: (m,) road segment of each point; None on maps without roads.
    """

    topology: FreeTopology
    within: IntArray | None


def fine_points(topology: Topology, spacing: float) -> FinePoints:
    """Return points that cover the ground of a map; `spacing` is their distance [m].

    Roads get points along each segment. Other maps get a square lattice. The lattice covers the
    cells of a grid, the ground of a map with outline or obstacles, or the convex hull of scattered
    places.

    Raises:
        RunError: the spacing is not above 0, or gives no point or too many points.
    """
    if not (math.isfinite(spacing) and spacing > 0.0):
        msg = f"expected a spacing in metres, above 0, got {spacing:g}"
        raise RunError(msg)
    if topology.roads:
        return _along_roads(topology, spacing)
    try:
        layers = layers_of(topology)
    except RunError:
        return _inside_hull(topology, spacing)
    found = [_inside_layer(topology, layer, spacing) for layer in layers]
    positions = np.concatenate([points for points, _ in found])
    heights = None
    if layers[0].height is not None or topology.heights is not None:
        heights = np.concatenate([above for _, above in found])
    return _made(topology, positions, heights, spacing)


def _along_roads(topology: Topology, spacing: float) -> FinePoints:
    """Return the midpoints of equal parts of each road segment, at most `spacing` long."""
    positions, names, within = [], list[str](), list[int]()
    # Lengths of the straight pieces of each road segment.
    lengths = [np.hypot(*np.diff(topology.geometry(i), axis=0).T) for i in range(topology.n)]
    _check_count(sum(max(1, math.ceil(float(one.sum()) / spacing)) for one in lengths), spacing)
    for place, steps in enumerate(lengths):
        line, along = topology.geometry(place), np.concatenate([[0.0], np.cumsum(steps)])
        count = max(1, math.ceil(float(along[-1]) / spacing))
        at = (np.arange(count) + 0.5) / count * along[-1]
        positions.append(np.column_stack([np.interp(at, along, axis) for axis in line.T]))
        names += [f"{topology.names[place]}@{metres:g}" for metres in at.tolist()]
        within += [place] * count
    owner = np.array(within)
    points = FreeTopology(
        topology.name, topology.frame, _different(names), np.concatenate(positions)
    ).located(topology.datum)
    share = np.array([float(one.sum()) for one in lengths]) / np.bincount(owner)
    return FinePoints(points.weighted(np.maximum(share[owner], 1e-9)), owner)


def _different(names: list[str]) -> list[str]:
    if len(set(names)) == len(names):
        return names
    return [f"{name}#{number}" for number, name in enumerate(names)]


def _inside_layer(
    topology: Topology, layer: Layer, spacing: float
) -> tuple[FloatArray, FloatArray]:
    """Return points (m, 2) inside the cells of a layer, and their heights (m,)."""
    lattice, ground = layer.lattice, topology.ground
    bounded = ground is not None and ground.bounded
    margin = lattice.cell if bounded else (0.0, 0.0)  # one cell, up to the shore
    low = np.array(lattice.corner)
    high = low + np.array(lattice.cell) * lattice.shape[::-1]
    points = _lattice(low, high, spacing, margin)
    filled = np.zeros((lattice.shape[0] + 2, lattice.shape[1] + 2), dtype=np.bool_)
    filled[lattice.row + 1, lattice.column + 1] = True
    if bounded:  # The outline cuts cells beside places.
        grown = filled.copy()
        for axis in (0, 1):
            grown |= np.roll(grown, 1, axis) | np.roll(grown, -1, axis)
        filled = grown
    column, row = np.floor((points - low) / np.array(lattice.cell) + 1e-9).astype(np.int64).T + 1
    inside = filled[np.clip(row, 0, filled.shape[0] - 1), np.clip(column, 0, filled.shape[1] - 1)]
    points = points[inside]
    if bounded and ground is not None:
        points = points[ground.free(points)]
    height = layer.height
    if height is None:
        height = 0.0 if topology.heights is None else float(topology.heights[layer.places[0]])
    return points, np.full(len(points), height)


def _inside_hull(topology: Topology, spacing: float) -> FinePoints:
    """Return points inside the ground, or inside the convex hull of scattered places."""
    import shapely

    if topology.heights is not None:
        msg = (
            f"map {topology.name!r}: its places stand at different heights and not in layers; "
            "leave --spacing out"
        )
        raise RunError(msg)
    hull = shapely.MultiPoint(topology.positions).convex_hull.buffer(0.5 * spacing)
    low, high = np.array(hull.bounds[:2]), np.array(hull.bounds[2:])
    points = _lattice(low, high, spacing, (0.0, 0.0))
    points = points[shapely.contains_xy(hull, *points.T)]
    ground: FreeGround | None = topology.ground
    if ground is not None and ground.bounded:
        points = points[ground.free(points)]
    return _made(topology, points, None, spacing)


def _lattice(
    low: FloatArray, high: FloatArray, spacing: float, margin: tuple[float, float]
) -> FloatArray:
    """Return the centres (m, 2) of squares that cover a box extended by a margin [m]."""
    before = np.ceil(np.array(margin) / spacing - 1e-9)
    counts = np.ceil((high - low) / spacing - 1e-9) + 2.0 * before
    _check_count(counts.prod(), spacing, MOST_CELLS)
    columns, rows = counts.astype(np.int64).tolist()
    first = low + (0.5 - before) * spacing
    x, y = first[0] + spacing * np.arange(columns), first[1] + spacing * np.arange(rows)
    return np.column_stack([np.tile(x, rows), np.repeat(y, columns)])


def _made(
    topology: Topology, positions: FloatArray, heights: FloatArray | None, spacing: float
) -> FinePoints:
    _check_count(len(positions), spacing)
    if not len(positions):
        msg = f"map {topology.name!r}: no point at a spacing of {spacing:g} m; take a smaller one"
        raise RunError(msg)
    names = [f"p{number}" for number in range(len(positions))]
    points = FreeTopology(topology.name, topology.frame, names, positions, heights=heights)
    area = np.full(len(positions), spacing**2)
    return FinePoints(points.located(topology.datum).weighted(area), None)


def _check_count(count: float, spacing: float, most: int = MOST_POINTS) -> None:
    if count > most:
        made = f"a spacing of {spacing:g} m makes {count:.3g} points, more than {most}"
        msg = f"{made}; take a larger one"
        raise RunError(msg)
