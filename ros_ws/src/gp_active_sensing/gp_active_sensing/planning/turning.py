r"""View of a map for a probe that cannot turn on the spot.

The cost of a move depends on the heading at the start of the move. A view is made for one decision,
from the place and the heading of the probe. At any other place, the view uses the heading after a
drive from the probe's place. The cost of a drive to a place, and then to the end place, is
therefore exact. If the heading is unknown, the view uses an upper bound on the length of the path.
Roads have no view, because road lines already have curves.

The shortest path from a pose to a point with curves of radius r or more is an arc and a straight
line [Boissonnat1994]. If the point lies within one of the two turning circles beside the pose, the
path is two arcs. The first arc turns away from the point, and the second arc turns in the other
direction. In the formulas the pose is at the origin, facing along x, and the point is at (x, y).
The first arc turns left. For a first arc to the right, the sign of y changes.

- arc and straight: :math:`t = \sqrt{x^2 + (y - r)^2 - r^2}`, the angle of the arc
  :math:`\alpha = \mathrm{atan2}(y - r, x) + \mathrm{atan2}(r, t)`, the length :math:`r\alpha + t`;
- two arcs: q = (x, y - r) is the vector from the centre of the first circle to the point. Its
  length is D. The centre of the second circle is 2r from the first centre and r from the point.
  The angle between q and the line of both centres has the cosine (D² + 3r²) / (4 r D). The length
  is r times the sum of the angles of both arcs.

All angles are between 0 and 2π. For each side of the first arc, there is one path with a straight
line, and there are two paths with two arcs. The shortest of these six paths is used.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Sequence
from functools import cache, cached_property
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.search import Ways, WaysFrom, depths
from gp_active_sensing.types import BoolArray, Cost, FloatArray, IntArray, Route

_TURN = 2.0 * math.pi
EXCESS = 1.1 * _TURN
"""Upper bound on a path's length minus the straight distance, for any heading [radii]."""
_SAME = 1e-9
"""Distance up to which two points count as equal [radii]."""
_STEP = math.radians(5.0)
"""Angle between successive points of a drawn arc [rad]."""


class Arrivals(NamedTuple):
    """Lengths and final headings of the shortest paths to m points."""

    metres: FloatArray  # (m,) length of each path
    heading: FloatArray  # (m,) heading at the end of each path [rad]


class _Ways(NamedTuple):
    """Paths that consist of two arcs and a straight line; a part may have length 0."""

    first: FloatArray  # (m,) angle of the first arc, positive to the left [rad]
    second: FloatArray  # (m,) angle of the second arc [rad]
    straight: FloatArray  # (m,) length of the straight line [m]


def turn_to(
    start: npt.ArrayLike, heading: npt.ArrayLike, points: npt.ArrayLike, radius: float
) -> Arrivals:
    """Return the shortest paths from poses to (m, 2) points [m].

    `start` is (2,) or (m, 2) [m], and `heading` is () or (m,) [rad]. Radius 0 = the probe turns on
    the spot.
    """
    delta = np.asarray(points, dtype=np.float64) - np.asarray(start, dtype=np.float64)
    facing = np.broadcast_to(np.asarray(heading, dtype=np.float64), len(delta))
    apart = np.hypot(delta[:, 0], delta[:, 1])
    if radius <= 0.0:
        aim = np.arctan2(delta[:, 1], delta[:, 0])
        return Arrivals(apart, np.where(apart > 0.0, aim, facing))
    length, ways = _shortest(delta, facing, radius)
    there = apart <= _SAME * radius
    after = facing + np.where(there, 0.0, ways.first + ways.second)
    return Arrivals(np.where(there, 0.0, length), np.arctan2(np.sin(after), np.cos(after)))


def curve(
    start: tuple[float, float], heading: float, end: tuple[float, float], radius: float
) -> FloatArray:
    """Return (m, 2) points along the shortest path to a point, including both ends [m].

    `heading` is the heading at the start [rad], and `radius` is the least radius of a curve [m].
    """
    delta = np.array([end]) - np.array([start])
    if radius <= 0.0 or math.hypot(*delta[0]) <= _SAME * radius:
        return np.array([start, end])
    _, ways = _shortest(delta, np.array([heading]), radius)
    points = [np.asarray(start, dtype=np.float64)]
    for angle in (float(ways.first[0]), float(ways.second[0])):
        count = math.ceil(abs(angle) / _STEP - 1e-9)
        side = math.copysign(1.0, angle)
        centre = points[-1] + side * radius * np.array([-math.sin(heading), math.cos(heading)])
        for k in range(1, count + 1):
            now = heading + angle * k / count
            points.append(centre + side * radius * np.array([math.sin(now), -math.cos(now)]))
        heading += angle
    last = np.asarray(end, dtype=np.float64)
    if len(points) > 1 and math.dist(points[-1], last) <= 1e-6 * radius:
        points.pop()  # the arc ends there
    return np.array([*points, last])


def _shortest(delta: FloatArray, facing: FloatArray, r: float) -> tuple[FloatArray, _Ways]:
    cos, sin = np.cos(facing), np.sin(facing)
    x, y = cos * delta[:, 0] + sin * delta[:, 1], cos * delta[:, 1] - sin * delta[:, 0]
    kinds: list[_Ways] = []
    for side in (1.0, -1.0):
        for first, second, straight in (_arc_and_straight(x, side * y, r), *_arcs(x, side * y, r)):
            kinds.append(_Ways(side * first, side * second, straight))
    lengths = np.array([r * (abs(w.first) + abs(w.second)) + w.straight for w in kinds])
    lengths = np.where(np.isnan(lengths), np.inf, lengths)
    # Of equally long paths (to a point straight behind) take the first, despite rounding.
    best = np.argmax(lengths <= lengths.min(axis=0) + 1e-9 * r, axis=0)
    rows = np.arange(len(delta))
    chosen = (np.array([w[part] for w in kinds])[best, rows] for part in range(3))
    return lengths[best, rows], _Ways(*chosen)


def _arc_and_straight(x: FloatArray, y: FloatArray, r: float) -> _Ways:
    """Return the paths of an arc to the left and a line; NaN for points within the circle."""
    square = x * x + y * (y - 2.0 * r)
    # A point on the circle may be within it by rounding.
    square = np.where(np.abs(square) <= 1e-12 * r * r, 0.0, square)
    with np.errstate(invalid="ignore"):
        straight = np.sqrt(square)
    return _Ways(_full(np.arctan2(y - r, x) + np.arctan2(r, straight)), 0.0 * x, straight)


def _arcs(x: FloatArray, y: FloatArray, r: float) -> tuple[_Ways, _Ways]:
    """Return the two paths that turn left and then right; NaN = there is no such path."""
    east, north = x, y - r
    far = np.hypot(east, north)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = np.arccos((far * far + 3.0 * r * r) / (4.0 * r * far))
    # Angle on the first arc from its start, south of the centre, to the left.
    towards = np.arctan2(north, east) + 0.5 * math.pi
    found = []
    for sign in (1.0, -1.0):
        first = _full(towards + sign * between)
        centre = 2.0 * r * np.sin(first), -2.0 * r * np.cos(first)
        begin = np.arctan2(-centre[1], -centre[0])
        end = np.arctan2(north - centre[1], east - centre[0])
        found.append(_Ways(first, -_full(begin - end), 0.0 * x))
    return found[0], found[1]


def _full(angle: FloatArray) -> FloatArray:
    """Return angles in 0 … 2π; an angle just below 2π becomes 0."""
    found = np.mod(angle, _TURN)
    return np.where(found > _TURN - 1e-9, 0.0, found)


def check_radius(topology: Topology, radius: float) -> None:
    """Check that a probe with a turning radius [m] can turn on a map.

    Raises:
        ConfigError: the turning circle is wider than the map, or the map has heights.
    """
    if radius <= 0.0 or topology.roads or topology.n < 2:
        return
    if topology.heights is not None:
        msg = (
            f"drive.turn_radius: curves lie in the plane, and the places of map {topology.name!r} "
            f"have heights; expected 0, got {radius:g} m"
        )
        raise ConfigError(msg)
    width, height = np.ptp(topology.positions, axis=0).tolist()
    if 2.0 * radius > max(width, height):
        msg = (
            f"drive.turn_radius: a turning circle of {2.0 * radius:g} m across does not fit on map "
            f"{topology.name!r}, whose places cover {width:g} × {height:g} m; expected at most "
            f"{0.5 * max(width, height):g} m (metres, not the diameter?)"
        )
        raise ConfigError(msg)


def curve_through(
    start: tuple[float, float], heading: float, points: FloatArray, radius: float
) -> FloatArray:
    """Return (k, 2) points of the path through (m, 2) points, including both ends [m].

    The heading at the start is in rad; NaN = towards the first point.
    """
    pieces = [np.array([start], dtype=np.float64)]
    for point in np.asarray(points, dtype=np.float64):
        here = float(pieces[-1][-1, 0]), float(pieces[-1][-1, 1])
        if not math.isfinite(heading):
            heading = math.atan2(point[1] - here[1], point[0] - here[0])
        pieces.append(curve(here, heading, (float(point[0]), float(point[1])), radius)[1:])
        heading = float(turn_to(here, heading, [point], radius).heading[0])
    return np.concatenate(pieces)


class Turning(Topology):
    """Base class of the views that `turning` returns."""

    straight: Topology
    """Map without a turning radius."""
    turn_radius: float
    """Smallest radius of a curve [m]."""
    turn_at: int | None
    """Place of the probe; None = not on the map yet."""
    turn_heading: float
    """Heading of the probe at its place [rad]; NaN = unknown."""
    _kept_ways: dict[tuple[int, str], Ways]
    _kept_rows: dict[int, FloatArray]

    @cached_property
    def pace(self) -> float:
        """Time per metre [s/m], which is constant on maps other than roads."""
        ways = self.straight.ways_from(0)
        reached = np.where(np.isfinite(ways.metres), ways.metres, 0.0)
        far = int(np.argmax(reached))
        return float(ways.seconds[far] / reached[far]) if reached[far] > 0.0 else 0.0

    def drive(self, path: Sequence[int], at: int | None = None) -> tuple[Cost, float]:
        """Return the cost of a drive through places, and the heading at its end [rad].

        The drive starts at the place `at`; None = the place of the probe.
        """
        at = self.turn_at if at is None else at
        if at is None or not path:
            return Cost(0.0, 0.0), self.turn_heading if at == self.turn_at else math.nan
        heading, metres = self._leaves(at), 0.0
        for place in path:
            legs, headings = self._legs(np.array([at]), np.array([heading]), np.array([place]))
            metres, heading, at = metres + float(legs[0]), float(headings[0]), place
        return Cost(metres, metres * self.pace), heading

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the route of the map `straight`, with a cost that includes the curves."""
        found = self.straight.route(at, goal, observed, unavailable)
        if at is None:
            return found
        if len(found.path) == 1:
            metres = float(self._row(at)[goal])
            return Route(found.path, Cost(metres, metres * self.pace))
        return Route(found.path, self.drive(found.path, at)[0])

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the routes of the map `straight`, with costs that include the curves."""
        found = self.straight.ways_from(at, by)
        if at is None:
            return found
        metres, _ = self._along(at, found)
        return WaysFrom(metres, metres * self.pace, found.before)

    def ways_to(self, goal: int, by: str = "seconds") -> Ways:
        """Return the routes of the map `straight`, with costs that include the curves."""
        if (kept := self._kept_ways.get((goal, by))) is not None:
            return kept
        ways = self.straight.ways_to(goal, by)
        # Drive from each place with the heading of arrival there.
        following, own = ways.following, np.isfinite(ways.seconds)
        here, heading = np.arange(self.n), self._arrivals.copy()
        metres = np.zeros(self.n)
        driving = np.flatnonzero(own & (here != goal))
        while driving.size:
            then = following[here[driving]]
            legs, turned = self._legs(here[driving], heading[driving], then)
            metres[driving] += legs
            heading[driving], here[driving] = turned, then
            driving = driving[then != goal]
        metres[~own] = math.inf
        found = self._kept_ways[goal, by] = Ways(goal, metres, metres * self.pace, following)
        return found

    def _row(self, at: int) -> FloatArray:
        if at not in self._kept_rows:
            everywhere = np.arange(self.n)
            starts, facing = np.full(self.n, at), np.full(self.n, self._leaves(at))
            self._kept_rows[at] = self._legs(starts, facing, everywhere)[0]
        return self._kept_rows[at]

    @cached_property
    def _arrivals(self) -> FloatArray:
        """Heading (n,) at each place after a drive from the place of the probe; NaN = unknown."""
        if self.turn_at is None:
            return np.full(self.n, math.nan)
        found = self._along(self.turn_at, self.straight.ways_from(self.turn_at))[1]
        found[self.turn_at] = self.turn_heading
        return found

    def _leaves(self, place: int) -> float:
        return self.turn_heading if place == self.turn_at else float(self._arrivals[place])

    def _legs(
        self, start: IntArray, heading: FloatArray, end: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lengths [m] of direct moves and the headings after them; NaN = unknown."""
        x = self.positions
        facing = np.where(np.isnan(heading), 0.0, heading)
        turn = turn_to(x[start], facing, x[end], self.turn_radius)
        known = ~np.isnan(heading)
        apart = np.hypot(*(x[end] - x[start]).T)
        longest = np.where(apart > 0.0, apart + self.turn_excess, 0.0)
        return np.where(known, turn.metres, longest), np.where(known, turn.heading, math.nan)

    def _along(self, at: int, ways: WaysFrom) -> tuple[FloatArray, FloatArray]:
        """Return the (n,) lengths of routes from a place [m], and the headings at their ends."""
        metres = np.where(np.isfinite(ways.metres), 0.0, math.inf)
        heading = np.full(self.n, self._leaves(at))
        reached = np.flatnonzero(np.isfinite(ways.metres))
        reached = reached[reached != at]
        depth, before = depths(ways.before), np.where(ways.before < 0, at, ways.before)
        for level in range(int(depth[reached].max(initial=0)) + 1):
            ends = reached[depth[reached] == level]
            starts = before[ends]
            legs, turned = self._legs(starts, heading[starts], ends)
            metres[ends], heading[ends] = metres[starts] + legs, turned
        return metres, heading


@cache
def _view_of(kind: type) -> type:
    return type(f"Turning{kind.__name__}", (Turning, kind), {})


def turning(topology: Topology, radius: float, at: int | None, heading: float | None) -> Topology:
    """Return the view of a map for a turning radius [m], a place and a heading of the probe [rad].

    With a radius of 0, and on roads, the result is the map itself. `at` is None before the probe is
    on the map. `heading` is None if unknown.
    """
    if radius <= 0.0 or topology.roads:
        return topology
    view, kind = copy.copy(topology), type(topology)
    view.__class__ = _view_of(cast(type, kind))
    assert isinstance(view, Turning)
    view.straight, view.turn_radius, view.turn_at = topology, radius, at
    view.turn_excess = EXCESS * radius
    view.turn_heading = math.nan if heading is None else heading
    view._kept_ways, view._kept_rows = {}, {}
    return view
