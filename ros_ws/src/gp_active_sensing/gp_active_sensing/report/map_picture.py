"""Pictures of maps with matplotlib: roads with speed limits, places with shores and walls."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.report.frame import VALUES
from gp_active_sensing.topology.base import GraphTopology, Topology
from gp_active_sensing.topology.geometry import OCCUPIED, OccupancyGrid
from gp_active_sensing.topology.roads import parts_of
from gp_active_sensing.topology.segments import RoadMap, Segment, length_of
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.files import write_whole
from gp_active_sensing.util.lazy import library

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OUTSIDE, _INK, _NO_LIMIT = "#d1242f", "#1f2328", "#9aa0a6"
_PLACE, _MOVE, _WALL, _UNKNOWN = "#2f7d9f", "#b9d3dd", "#57606a", "#eaeef2"
_INCHES = 10.0
"""Longer side of the map in a picture [inch]."""
_KMH = 3.6
_MOST_ARROWS = 1500
"""A map with more segments than this is drawn without arrows."""
_MOST_NAMES = 40
"""A map with more places than this is drawn without names."""


def _figure(title: str, low: Sequence[float], high: Sequence[float]) -> tuple[Figure, Axes]:
    drawn = library("matplotlib.figure", "pictures of maps are drawn with matplotlib", extra="plot")
    size = np.maximum(np.subtract(high, low), 1e-9)
    width, height = np.maximum(_INCHES * size / size.max(), 0.4 * _INCHES)
    figure = drawn.Figure(figsize=(width, height))
    axes = figure.add_subplot()
    margin = 0.03 * float(size.max())
    axes.set(
        title=title,
        xlabel="x [m]",
        ylabel="y [m]",
        aspect="equal",
        xlim=(low[0] - margin, high[0] + margin),
        ylim=(low[1] - margin, high[1] + margin),
    )
    return figure, axes


def _legend(axes: Axes, entries: Sequence[tuple[str, str, str]]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="" if marker else "-", label=words)
        for words, colour, marker in entries
    ]
    if handles:
        below: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0)}
        axes.legend(handles=handles, ncols=4, borderaxespad=4.5, **below)


def save_picture(figure: Figure, path: Path) -> None:
    """Write a picture as SVG or PNG, chosen by the file suffix."""
    from matplotlib import rc_context

    made, kind = io.BytesIO(), path.suffix.lower()[1:]
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "map"}):
        metadata: Any = {"Date": None} if kind == "svg" else {}
        figure.savefig(made, format=kind, bbox_inches="tight", metadata=metadata)
    write_whole(path, made.getvalue())


def road_picture(road_map: RoadMap) -> Figure:
    """Draw a road map with speed limits and one-way arrows; unreachable roads are red.

    Raises:
        MissingDependencyError: matplotlib is missing.
    """
    segments = road_map.segments
    corners = np.array([point for segment in segments for point in segment.line])
    ends = {(segment.start, segment.end) for segment in segments}
    one_way = [s for s in segments if (s.end, s.start) not in ends]
    metres = sum(segment.length for segment in segments)
    title = (
        f"{road_map.name}: {len(segments)} segments, {metres / 1000:.1f} km, "
        f"{100 * len(one_way) / len(segments):.0f} % one-way"
    )
    figure, axes = _figure(title, corners.min(axis=0).tolist(), corners.max(axis=0).tolist())
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap, Normalize

    limits = [_KMH * s.speed_limit for s in segments if s.speed_limit is not None]
    scale = ScalarMappable(
        Normalize(min(limits, default=0.0), max(limits, default=1.0)), ListedColormap(VALUES)
    )
    outside = set(parts_of(road_map).outside)
    colours = [
        _OUTSIDE
        if i in outside
        else _NO_LIMIT
        if segment.speed_limit is None
        else scale.to_rgba(np.float64(_KMH * segment.speed_limit))
        for i, segment in enumerate(segments)
    ]
    widths = [0.7 + 0.5 * min(segment.lanes or 1.0, 4.0) for segment in segments]
    lines = [segment.line for segment in segments]
    axes.add_collection(
        LineCollection(lines, colors=colours, linewidths=widths, capstyle="round", gid="roads")
    )
    if one_way and len(segments) <= _MOST_ARROWS:
        x, y, dx, dy = np.array([_arrow(segment) for segment in one_way]).T
        axes.quiver(x, y, dx, dy, pivot="mid", scale=90.0, width=0.003, color=_INK, gid="arrows")
    if limits:
        figure.colorbar(scale, ax=axes, label="limit [km/h]", shrink=0.6)
    entries = [("no limit known", _NO_LIMIT, "")] if len(limits) < len(segments) else []
    if outside:
        entries.append((f"outside the largest part ({len(outside)})", _OUTSIDE, ""))
    _legend(axes, entries)
    return figure


def _arrow(segment: Segment) -> tuple[float, float, float, float]:
    """Return the middle of a segment and its direction at the middle (unit vector)."""
    left = length_of(segment.line) / 2.0
    for (x0, y0), (x1, y1) in pairwise(segment.line):
        leg = math.hypot(x1 - x0, y1 - y0)
        if leg > 0.0 and left <= leg * (1.0 + 1e-9):
            dx, dy = (x1 - x0) / leg, (y1 - y0) / leg
            return x0 + left * dx, y0 + left * dy, dx, dy
        left -= leg
    return (*segment.line[-1], 1.0, 0.0)


def place_picture(places: Topology, title: str) -> Figure:
    """Draw a map of places with its moves, shores and walls.

    Places outside the largest connected part are red.

    Raises:
        MissingDependencyError: matplotlib is missing.
    """
    points = places.positions[:, :2]
    rings, cells = _rings(places), None if places.ground is None else places.ground.cells
    shown = [points, *rings]
    if isinstance(cells, OccupancyGrid):
        shown.append(_known_corners(cells))
    every = np.concatenate(shown)
    low, high = every.min(axis=0).tolist(), every.max(axis=0).tolist()
    figure, axes = _figure(title, low, high)
    from matplotlib.collections import LineCollection

    entries = [("place", _PLACE, "o")]
    if isinstance(cells, OccupancyGrid):
        entries += _draw_cells(axes, cells)
    axes.add_collection(LineCollection(rings, colors=_INK, linewidths=1.0, gid="shore"))
    outside: list[int] = []
    if isinstance(places, GraphTopology):
        outside = sorted(set(range(places.n)) - set(places.components.largest))
        pairs = {(min(i, m.to), max(i, m.to)) for i in range(places.n) for m in places.moves[i]}
        moves = [points[list(pair)] for pair in sorted(pairs)]
        axes.add_collection(LineCollection(moves, colors=_MOVE, linewidths=0.8, gid="moves"))
        entries.append(("move", _MOVE, ""))
    if len(places.lost):
        x, y = places.lost.T
        axes.scatter(x, y, s=20.0, c=_OUTSIDE, marker="x", gid="lost")
        entries.append((f"left out ({len(places.lost)})", _OUTSIDE, "x"))
    size = float(np.clip(200.0 / math.sqrt(places.n), 1.0, 8.0))
    inside = np.setdiff1d(np.arange(places.n), outside)
    for colour, those in ((_PLACE, inside), (_OUTSIDE, np.array(outside, dtype=np.int64))):
        axes.plot(*points[those].T, "o", color=colour, markersize=size, gid=colour)
    if places.n <= _MOST_NAMES:
        for name, point in zip(places.names, points.tolist(), strict=True):
            axes.annotate(name, point, (4, 4), textcoords="offset points", parse_math=False)
    if outside:
        entries.append((f"outside the largest part ({len(outside)})", _OUTSIDE, "o"))
    _legend(axes, entries)
    return figure


def _rings(places: Topology) -> list[FloatArray]:
    if places.ground is None or not places.ground.shapes:
        return []
    import shapely

    polygons: Any = shapely.get_parts(places.ground.shapes)
    rings = [ring for part in polygons for ring in (part.exterior, *part.interiors)]
    return [shapely.get_coordinates(ring) for ring in rings]


def _known_corners(grid: OccupancyGrid) -> FloatArray:
    """Return the (4, 2) corners of a grid's known rectangle, or of the whole grid [m]."""
    known = grid.values >= 0
    if not known.any():
        return grid.corners
    rows, columns = (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
    low, high = (columns[0], rows[0]), (columns[-1] + 1, rows[-1] + 1)
    box = [low, (high[0], low[1]), high, (low[0], high[1])]
    return grid.position_of(np.array(box, dtype=np.float64))


def _draw_cells(axes: Axes, grid: OccupancyGrid) -> list[tuple[str, str, str]]:
    from matplotlib.colors import ListedColormap
    from matplotlib.transforms import Affine2D

    kinds = np.where(grid.values >= OCCUPIED, 2, np.where(grid.values < 0, 1, 0))
    rows, columns = grid.shape
    side = grid.resolution
    axes.imshow(
        kinds,
        ListedColormap(["#ffffff", _UNKNOWN, _WALL]),
        vmin=0,
        vmax=2,
        origin="lower",
        interpolation="nearest",
        extent=(0.0, columns * side, 0.0, rows * side),
        transform=Affine2D().rotate(grid.yaw).translate(*grid.origin) + axes.transData,
        aspect="equal",
    )
    named = ((1, "unknown", _UNKNOWN), (2, "occupied", _WALL))
    return [(words, colour, "s") for kind, words, colour in named if (kinds == kind).any()]
