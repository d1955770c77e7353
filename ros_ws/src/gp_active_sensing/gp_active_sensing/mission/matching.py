"""Match a pose to a place: the nearest one, by heading where roads overlap.

`Topology.snap` answers this for a single position. A moving probe knows more: which way it faces,
where it was a moment ago and where it is being sent; without that, a pose at a crossing belongs to
any of the roads that meet there.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.geometry import spacing_of
from gp_active_sensing.types import FloatArray

_NEAR = 0.125
"""See `MapMatcher.near`, in distances between neighbouring places."""
_PREFERENCE = 5.0
"""Extra distance at which the expected place is still preferred to another [m]."""
_WRONG_WAY = 40.0
"""Distance that equals driving against a road [m]; across it, half."""


class Match(NamedTuple):
    """A place and how far along its line the pose is, 0 at the start to 1 at the end."""

    place: int
    fraction: float


class MapMatcher:
    """Finds the place of poses.

    Args:
        snap_distance: farthest distance of a pose from its place [m]; None = 30 m on roads,
            otherwise the distance between neighbouring places.
    """

    def __init__(self, topology: Topology, snap_distance: float | None = None) -> None:
        self._given = snap_distance
        self.move_to(topology)

    def move_to(self, topology: Topology) -> None:
        """Use another map."""
        import shapely  # not where only the package is imported

        lines = [np.asarray(topology.geometry(place)) for place in range(topology.n)]
        self.has_lines = any(len(line) > 1 for line in lines)
        self.spacing = spacing_of(topology.positions).across or 1.0
        self._points = topology.points
        self.has_heights = topology.heights is not None
        """A pose needs a z, which says above or below which others its place is."""
        self.stretch = 1.0
        """Horizontal metres that equal a metre of height, by the spacing of places [m]."""
        self.layers: float | None = None
        """Distance from a place to the next one above it [m]; None where none is above another."""
        self.rise = math.inf
        """How far it reaches upwards [m]; inf where all places are at one height, or at none."""
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
        """Return whether a place is driven along (a road segment) rather than stood on."""
        return bool(self._lengths[place] > 0.0)

    def near(self, place: int) -> float:
        """Return how far off a place's point a reading counts a quarter of one at it [m].

        Infinite for what is driven along: its value is the average along it.
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
        """Return the place of a pose, None when none is near enough.

        x, y and z are metres in the map's frame, the heading is in radians; NaN = not known. Where
        the map has heights there is no place without z. Expected are the places where the probe was
        a moment ago, and where it is going.
        """
        import shapely

        if self.has_heights:
            if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
                return None
            away = self._away(x, y, z)
            place = int(away.argmin())
            return Match(place, 1.0) if away[place] <= self.snap_distance else None

        if not (math.isfinite(x) and math.isfinite(y)):
            return None
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

    def _away(self, x: float, y: float, z: float) -> FloatArray:
        """Return (n,) how far every place of a map with heights is [m], upwards as `stretch` is."""
        offsets = self._points - np.array([x, y, z])
        offsets[:, 2] *= self.stretch
        return np.asarray(np.linalg.norm(offsets, axis=1))

    def apart(self, place: int, x: float, y: float, z: float = math.nan) -> float:
        """Return how far a position is from a place's point [m], upwards as `stretch` is."""
        px, py, *up = self._points[place].tolist()
        return math.hypot(x - px, y - py, *(self.stretch * (z - height) for height in up))

    def driven(self, x: float, y: float, z: float) -> float:
        """Return the length of a way [m]; z counts on a map with heights.

        Where z is not known, as after a restart, it does not count.
        """
        return math.hypot(x, y, z) if self.has_heights and math.isfinite(z) else math.hypot(x, y)

    def nearest(self, x: float, y: float, z: float = math.nan) -> tuple[int, float]:
        """Return the place nearest to a position, and how far it is [m]."""
        import shapely

        if self.has_heights and math.isfinite(z):
            away = self._away(x, y, z)
            return int(away.argmin()), float(away.min())

        point = shapely.Point(x, y)
        place = int(self._tree.nearest(point))
        return place, float(shapely.distance(self._shapes[place], point))

    def _direction(self, place: int, along: float) -> float:
        """Return the direction of a line at a distance from its start [rad]."""
        import shapely

        shape, length = self._shapes[place], float(self._lengths[place])
        step = min(0.5, 0.5 * length)
        a = shapely.line_interpolate_point(shape, max(0.0, min(along, length) - step))
        b = shapely.line_interpolate_point(shape, min(length, along + step))
        return math.atan2(b.y - a.y, b.x - a.x)
