"""A map as a probe sees it that cannot turn on the spot: ways begin with its heading.

What a move costs then depends on the heading at its beginning. A view of the map is made for one
decision: it knows where the probe is and which way it faces. Ways from there are exact, along
every place that they pass. From any other place the probe leaves as it would arrive there from
where it is now. So a drive to a place and the way home after it, which is what a budget has to
last for, are exact together. Where the heading is not known the longest way counts.

Roads have the curves of their geometry: they are seen as they are.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Sequence
from functools import cache, cached_property

import numpy as np

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.base import Places, Topology
from gp_active_sensing.topology.curves import curve, excess, turn_to
from gp_active_sensing.topology.search import Ways, WaysFrom
from gp_active_sensing.types import BoolArray, Cost, FloatArray, IntArray, Route

__all__ = ["Turning", "check_radius", "curve_through", "turning"]


def check_radius(topology: Topology, radius: float) -> None:
    """Refuse a radius with which a probe cannot turn on a map.

    Args:
        topology: the map.
        radius: least radius of a curve [m].

    Raises:
        ConfigError: the turning circle is wider than the map is long, or the map has heights.
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
    """Return (k, 2) points of the way through some points, both ends among them [m].

    Args:
        start: where it begins [m].
        heading: there [rad]; NaN = towards the first point.
        points: (m, 2) in the order in which they are passed [m].
        radius: least radius of a curve [m].
    """
    pieces = [np.array([start], dtype=np.float64)]
    for point in np.asarray(points, dtype=np.float64):
        here = float(pieces[-1][-1, 0]), float(pieces[-1][-1, 1])
        if not math.isfinite(heading):
            heading = math.atan2(point[1] - here[1], point[0] - here[0])
        pieces.append(curve(here, heading, (float(point[0]), float(point[1])), radius)[1:])
        heading = float(turn_to(here, heading, [point], radius).heading[0])
    return np.concatenate(pieces)


class Turning(Places):
    """What the views of all maps share; made by `turning`."""

    straight: Topology
    """The map without a turning radius."""
    turn_radius: float
    turn_at: int | None
    turn_heading: float
    """Where the probe is and which way it faces there; NaN = not known."""

    @property
    def turn_excess(self) -> float:
        """By how much a move is longer than the straight one at most [m]."""
        return excess(self.turn_radius)

    @cached_property
    def pace(self) -> float:
        """Seconds a metre takes; the same everywhere on maps that are no roads."""
        ways = self.straight.ways_from(0)
        reached = np.where(np.isfinite(ways.metres), ways.metres, 0.0)
        far = int(np.argmax(reached))
        return float(ways.seconds[far] / reached[far]) if reached[far] > 0.0 else 0.0

    def drive(self, path: Sequence[int], at: int | None = None) -> tuple[Cost, float]:
        """Return what a drive along places costs, and the heading at its end [rad].

        Args:
            path: places in the order in which they are passed.
            at: where it begins; None = where the probe is.
        """
        at = self.turn_at if at is None else at
        if at is None or not path:
            return Cost(0.0, 0.0), self.turn_heading if at == self.turn_at else math.nan
        heading, metres = self._leaves(at), 0.0
        for place in path:
            told = self._legs(np.array([at]), np.array([heading]), np.array([place]))
            metres, heading, at = metres + float(told[0][0]), float(told[1][0]), place
        return Cost(metres, metres * self.pace), heading

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the way of the map, and what it costs with its curves."""
        found = self.straight.route(at, goal, observed, unavailable)
        if at is None:
            return found
        if len(found.path) == 1:
            metres = float(self._row(at)[goal])
            return Route(found.path, Cost(metres, metres * self.pace))
        return Route(found.path, self.drive(found.path, at)[0])

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the ways of the map, and what they cost with their curves."""
        found = self.straight.ways_from(at, by)
        if at is None:
            return found
        metres, _ = self._along(at, found)
        return WaysFrom(metres, metres * self.pace, found.before, found.order)

    def ways_to(self, goal: int, by: str = "seconds") -> Ways:
        """Return the ways of the map, and what they cost with their curves."""
        key = (goal, by)
        if key not in self._kept_ways:
            self._kept_ways[key] = self._to(self.straight.ways_to(goal, by))
        return self._kept_ways[key]

    @cached_property
    def _kept_ways(self) -> dict[tuple[int, str], Ways]:
        return {}

    def _row(self, at: int) -> FloatArray:
        """(n,) metres of the direct move from a place to each."""
        if at not in self._kept_rows:
            everywhere = np.arange(self.n)
            starts, facing = np.full(self.n, at), np.full(self.n, self._leaves(at))
            self._kept_rows[at] = self._legs(starts, facing, everywhere)[0]
        return self._kept_rows[at]

    @cached_property
    def _kept_rows(self) -> dict[int, FloatArray]:
        return {}

    @cached_property
    def _arrivals(self) -> FloatArray:
        """(n,) heading on arriving at each place from where the probe is; NaN = not known."""
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
        """Return metres of direct moves and the heading after each; NaN where it is not known."""
        x = self.positions
        facing = np.where(np.isnan(heading), 0.0, heading)
        told = turn_to(x[start], facing, x[end], self.turn_radius)
        known = ~np.isnan(heading)
        apart = np.hypot(*(x[end] - x[start]).T)
        longest = np.where(apart > 0.0, apart + self.turn_excess, 0.0)
        return (
            np.where(known, told.metres, longest),
            np.where(known, told.heading, math.nan),
        )

    def _along(self, at: int, ways: WaysFrom) -> tuple[FloatArray, FloatArray]:
        """Return (n,) metres of ways from a place, and the heading at the end of each."""
        metres = np.where(np.isfinite(ways.metres), 0.0, math.inf)
        heading = np.full(self.n, self._leaves(at))
        reached = np.flatnonzero(np.isfinite(ways.metres))
        reached = reached[reached != at]
        depth = np.zeros(self.n, dtype=np.int64)
        if ways.order is not None:
            for place in ways.order:
                if ways.before[place] >= 0:
                    depth[place] = depth[ways.before[place]] + 1
        first = heading[at]
        for level in range(int(depth[reached].max(initial=0)) + 1 if reached.size else 0):
            ends = reached[depth[reached] == level]
            if level:
                starts = ways.before[ends]
                begun, facing = metres[starts], heading[starts]
            else:
                starts = np.full(len(ends), at)
                begun, facing = np.zeros(len(ends)), np.full(len(ends), first)
            legs, turned = self._legs(starts, facing, ends)
            metres[ends], heading[ends] = begun + legs, turned
        return metres, heading

    def _to(self, ways: Ways) -> Ways:
        """Return the ways to a place with what they cost from where the probe leaves each."""
        following = np.array(ways.following, dtype=np.int64)
        own = np.array([cost is not None for cost in ways.costs])
        here, heading = np.arange(self.n), self._arrivals.copy()
        metres = np.zeros(self.n)
        driving = np.flatnonzero(own & (here != ways.goal))
        while driving.size:
            then = following[here[driving]]
            legs, turned = self._legs(here[driving], heading[driving], then)
            metres[driving] += legs
            heading[driving], here[driving] = turned, then
            driving = driving[then != ways.goal]
        costs = [
            Cost(float(m), float(m) * self.pace) if ok else None
            for m, ok in zip(metres, own, strict=True)
        ]
        return Ways(ways.goal, tuple(costs), ways.following)


@cache
def _view_of(kind: type) -> type:
    return type(f"Turning{kind.__name__}", (Turning, kind), {})


def turning(topology: Topology, radius: float, at: int | None, heading: float | None) -> Topology:
    """Return a map as a probe sees it; the map itself for one that turns on the spot, and roads.

    Args:
        topology: the map.
        radius: least radius of a curve [m]; 0 = it turns on the spot.
        at: where the probe is; None = nowhere yet.
        heading: there [rad]; None = not known.
    """
    if radius <= 0.0 or topology.roads:
        return topology
    view = copy.copy(topology)
    view.__class__ = _view_of(type(topology))
    assert isinstance(view, Turning)
    view.straight, view.turn_radius, view.turn_at = topology, radius, at
    view.turn_heading = math.nan if heading is None else heading
    return view
