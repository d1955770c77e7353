r"""Shortest ways of a probe that cannot turn on the spot: arcs of a least radius, and straights.

From a pose to a point, with any heading there, the shortest path that never turns tighter than a
radius r is an arc and a straight line, or, to a point within one of the two turning circles beside
the pose, an arc away from it and an arc of the other circle through it [Boissonnat1994]. With the
pose at the origin, facing along x, the point at (x, y), and the first arc to the left (mirror y for
one to the right):

- arc and straight: :math:`t = \sqrt{x^2 + (y - r)^2 - r^2}`, the angle of the arc
  :math:`\alpha = \mathrm{atan2}(y - r, x) + \mathrm{atan2}(r, t)`, the length :math:`r\alpha + t`;
- two arcs: with q = (x, y - r) from the centre of the first circle, and D its length, the second
  centre is 2r from the first one and r from the point, so that the angle between its direction and
  q has the cosine (D² + 3r²) / (4 r D); the length is r times the sum of both angles.

All angles are taken between 0 and 2π; the shortest of the six is the way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gp_active_sensing.types import FloatArray

__all__ = ["Arrivals", "curve", "excess", "turn_to"]

_TURN = 2.0 * math.pi
_SAME = 1e-9
"""A point nearer than that, in radii, is where the probe is."""
_STEP = math.radians(5.0)
"""Angle between two points of an arc that is drawn: 0.03 % of its length are cut off."""


class Arrivals(NamedTuple):
    """How points are reached.

    Args:
        metres: (m,) length of the way to each.
        heading: (m,) on arriving there [rad].
    """

    metres: FloatArray
    heading: FloatArray


class _Ways(NamedTuple):
    """The ways of a kind: signed angles of two arcs, and a straight after them."""

    first: FloatArray
    second: FloatArray
    straight: FloatArray


def excess(radius: float) -> float:
    """Return by how much a way is longer than the straight line at most, whatever the heading [m].

    A whole turn and a tenth: the longest are those to a point just beside the pose.
    """
    return 1.1 * _TURN * radius


def turn_to(
    start: npt.ArrayLike, heading: npt.ArrayLike, points: npt.ArrayLike, radius: float
) -> Arrivals:
    """Return how points are reached from poses by the shortest way; O(m).

    Args:
        start: (2,) or (m, 2) where it begins [m].
        heading: () or (m,) there [rad].
        points: (m, 2) where it ends [m].
        radius: least radius of a curve [m]; 0 = it turns on the spot.
    """
    delta = np.asarray(points, dtype=np.float64) - np.asarray(start, dtype=np.float64)
    facing = np.broadcast_to(np.asarray(heading, dtype=np.float64), len(delta))
    apart = np.hypot(delta[:, 0], delta[:, 1])
    if radius <= 0.0:
        aim = np.arctan2(delta[:, 1], delta[:, 0])
        return Arrivals(apart, np.where(apart > 0.0, aim, facing))
    length, ways = _shortest(delta, facing, radius)
    there = apart <= _SAME * radius
    turned = np.where(there, 0.0, ways.first + ways.second)
    return Arrivals(np.where(there, 0.0, length), _folded(facing + turned))


def curve(
    start: tuple[float, float], heading: float, end: tuple[float, float], radius: float
) -> FloatArray:
    """Return (m, 2) points along the shortest way, both ends among them [m].

    Args:
        start: where it begins [m].
        heading: there [rad].
        end: where it ends [m].
        radius: least radius of a curve [m].
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
    """Return the length of the shortest way of each, and that way."""
    cos, sin = np.cos(facing), np.sin(facing)
    x, y = cos * delta[:, 0] + sin * delta[:, 1], cos * delta[:, 1] - sin * delta[:, 0]
    kinds: list[_Ways] = []
    for side in (1.0, -1.0):
        for first, second, straight in (_arc_and_straight(x, side * y, r), *_arcs(x, side * y, r)):
            kinds.append(_Ways(side * first, side * second, straight))
    lengths = np.array([r * (abs(w.first) + abs(w.second)) + w.straight for w in kinds])
    lengths = np.where(np.isnan(lengths), np.inf, lengths)
    # Of equally long ones (a point straight behind) the first, whatever the rounding.
    best = np.argmax(lengths <= lengths.min(axis=0) + 1e-9 * r, axis=0)
    rows = np.arange(len(delta))
    chosen = (np.array([w[part] for w in kinds])[best, rows] for part in range(3))
    return lengths[best, rows], _Ways(*chosen)


def _arc_and_straight(x: FloatArray, y: FloatArray, r: float) -> _Ways:
    """Return the ways by an arc to the left; NaN for points within that circle."""
    square = x * x + y * (y - 2.0 * r)
    # A point on the circle may be within it by rounding.
    square = np.where(np.abs(square) <= 1e-12 * r * r, 0.0, square)
    with np.errstate(invalid="ignore"):
        straight = np.sqrt(square)
    return _Ways(_full(np.arctan2(y - r, x) + np.arctan2(r, straight)), 0.0 * x, straight)


def _arcs(x: FloatArray, y: FloatArray, r: float) -> tuple[_Ways, _Ways]:
    """Return the ways by an arc to the left and one to the right; NaN for points too far off."""
    east, north = x, y - r
    far = np.hypot(east, north)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = np.arccos((far * far + 3.0 * r * r) / (4.0 * r * far))
    # Angle from the start of the first arc, which is south of its centre, round to the left.
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
    """Return angles from 0 to 2π; one just below a whole turn is none, by rounding."""
    found = np.mod(angle, _TURN)
    return np.where(found > _TURN - 1e-9, 0.0, found)


def _folded(angle: FloatArray) -> FloatArray:
    return np.asarray(np.arctan2(np.sin(angle), np.cos(angle)))
