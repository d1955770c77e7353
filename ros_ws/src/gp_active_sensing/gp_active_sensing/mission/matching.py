"""Match a pose to the nearest place.

On roads, the heading, the last place and the planned way of the probe also count. They decide
between the roads that meet at a crossing. `Topology.snap` matches a position without these data.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.geometry import spacing_of

_NEAR = 0.125
"""Ratio of `MapMatcher.near` to the distance between neighbouring places."""
_PREFERENCE = 5.0
"""Distance by which the probe's last road and planned roads are treated as nearer [m]."""
_WRONG_WAY = 40.0
"""Distance by which a road is treated as farther if the probe heads against it [m].

At a right angle, half of this distance is used.
"""


class Match(NamedTuple):
    """Place of a pose, and the driven fraction (0 to 1) of the place's line; 1 for a point."""

    place: int
    fraction: float


class MapMatcher:
    """Matcher of poses to the places of a map.

    Args:
        snap_distance: largest distance of a pose from its place [m]; None = 30 m on roads,
            otherwise the distance between neighbouring places.
    """

    def __init__(self, topology: Topology, snap_distance: float | None = None) -> None:
        self._given = snap_distance
        self.move_to(topology)

    def move_to(self, topology: Topology) -> None:
        """Replace the map."""
        import shapely  # imported late, since the import is slow

        lines = [np.asarray(topology.geometry(place)) for place in range(topology.n)]
        self.has_lines = any(len(line) > 1 for line in lines)
        self.spacing = spacing_of(topology.positions).across or 1.0
        self._points = topology.points
        self.has_heights = topology.heights is not None
        """True if places have heights, so that a pose needs a z coordinate."""
        self.stretch = 1.0
        """Factor on heights: horizontal divided by vertical distance between neighbours."""
        self.layers: float | None = None
        """Vertical distance between neighbouring places [m]; None = no place is above another."""
        self.rise = math.inf
        """Height of the highest above the lowest place [m]; inf = no heights, or all are equal."""
        if self.has_heights:
            steps = spacing_of(topology.points)
            self.spacing = steps.across or steps.up or 1.0
            self.stretch = 1.0 / steps.ratio
            self.layers = steps.up
            self.rise = float(np.ptp(topology.points[:, 2])) or math.inf
        default = 30.0 if self.has_lines else self.spacing
        self.snap_distance = default if self._given is None else self._given
        self._shapes = np.asarray(shapely.points([line[0] for line in lines]))
        for place in [place for place, line in enumerate(lines) if len(line) > 1]:
            self._shapes[place] = shapely.LineString(lines[place])
        self._lengths = shapely.length(self._shapes)
        left, bottom, right, top = shapely.total_bounds(self._shapes).tolist()
        self.extent = math.hypot(right - left, top - bottom)
        """Diagonal of the bounding box of all places [m]."""
        self._tree = shapely.STRtree(self._shapes)

    def is_line(self, place: int) -> bool:
        """Return whether a place is a line (a road segment) and not a point."""
        return bool(self._lengths[place] > 0.0)

    def near(self, place: int) -> float:
        """Return the distance from a place at which a reading has a quarter of its full weight [m].

        The distance is infinite for a line, whose value is an average along the line.
        """
        return math.inf if self.is_line(place) else _NEAR * self.spacing

    def match(
        self,
        x: float,
        y: float,
        heading: float = math.nan,
        expected: Collection[int] = (),
        z: float = math.nan,
    ) -> Match | None:
        """Return the place of a pose; None = no place is within `snap_distance`.

        x, y and z are in metres in the map's frame. The heading is in radians. NaN = unknown. On a
        map with heights a pose without z has no place. `expected` contains the probe's last place
        and the places of its planned way.
        """
        import shapely

        if not (math.isfinite(x) and math.isfinite(y)):
            return None
        if self.has_heights:
            place, away = self.nearest(x, y, z)
            near_enough = math.isfinite(z) and away <= self.snap_distance
            return Match(place, 1.0) if near_enough else None

        point = shapely.Point(x, y)
        near = self._tree.query(point, predicate="dwithin", distance=self.snap_distance)
        best: tuple[float, int, float] | None = None
        for place in near.tolist():
            shape = self._shapes[place]
            score = float(shapely.distance(shape, point))
            fraction = 1.0
            if self._lengths[place] > 0.0:
                along = float(shapely.line_locate_point(shape, point))
                fraction = along / float(self._lengths[place])
                if math.isfinite(heading):
                    turn = math.cos(heading - self._direction(place, along))
                    score += 0.5 * _WRONG_WAY * (1.0 - turn)
                if place in expected:
                    score -= _PREFERENCE
            if best is None or (score, place) < best[:2]:
                best = (score, place, fraction)
        return None if best is None else Match(best[1], best[2])

    def apart(self, place: int, x: float, y: float, z: float = math.nan) -> float:
        """Return a position's distance from a place [m]; heights are scaled by `stretch`."""
        px, py, *up = self._points[place].tolist()
        return math.hypot(x - px, y - py, *(self.stretch * (z - height) for height in up))

    def driven(self, x: float, y: float, z: float) -> float:
        """Return the length of a displacement [m]; a finite z counts on a map with heights."""
        return math.hypot(x, y, z) if self.has_heights and math.isfinite(z) else math.hypot(x, y)

    def nearest(self, x: float, y: float, z: float = math.nan) -> tuple[int, float]:
        """Return the place nearest to a position, and its distance [m]; see `apart`."""
        import shapely

        if self.has_heights and math.isfinite(z):
            offsets = self._points - np.array([x, y, z])
            offsets[:, 2] *= self.stretch
            away = np.linalg.norm(offsets, axis=1)
            return int(away.argmin()), float(away.min())

        point = shapely.Point(x, y)
        place = int(self._tree.nearest(point))
        return place, float(shapely.distance(self._shapes[place], point))

    def _direction(self, place: int, along: float) -> float:
        """Return the direction of a place's line, `along` metres after the line's start [rad]."""
        import shapely

        shape, length = self._shapes[place], float(self._lengths[place])
        step = min(0.5, 0.5 * length)
        a = shapely.line_interpolate_point(shape, max(0.0, min(along, length) - step))
        b = shapely.line_interpolate_point(shape, min(length, along + step))
        return math.atan2(b.y - a.y, b.x - a.x)
