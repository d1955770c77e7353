"""A probe that moves along the geometry of a map."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gp_active_sensing.planning.turning import curve_through, turn_to
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.types import Cost, FloatArray, Route

_MARKS = (0.005, 0.25, 0.5, 0.75, 0.995)
"""Fractions of a road's length at which the probe sends its pose."""
_ROUNDING = 1e-9
"""Tolerance of a position along a line [m]."""


@dataclass(frozen=True)
class _Leg:
    """Path of the probe from its previous position to the end of a place (point or road).

    Args:
        place: index of the place.
        points: (m, d) corners of the path [m].
        lengths: (m,) path length up to each corner [m].
        begins: path length up to the beginning of the place [m].
        heading: heading at the end of the path [rad]; None = heading of the place's waypoint.
    """

    place: int
    points: FloatArray
    lengths: FloatArray
    begins: float
    heading: float | None = None

    @property
    def metres(self) -> float:
        return float(self.lengths[-1])

    @property
    def half(self) -> float:
        """Path length up to the middle of the place [m]."""
        return 0.5 * (self.begins + self.metres)

    @cached_property
    def marks(self) -> tuple[float, ...]:
        """Path lengths at which the probe sends its pose [m]: at corners and at `_MARKS`."""
        own = self.metres - self.begins
        parts = [self.begins + part * own for part in _MARKS] if own > 0.0 else []
        return (*self.lengths.tolist(), *parts)


class SimulatedProbe:
    """Probe that drives along routes. A road counts as passed when the probe reaches its end.

    Args:
        topology: the map.
        start: place at which the probe starts; None = the first place of the first route.
        speed: speed [m/s], or "limit" for the travel times of the map.
        turn_radius: smallest radius of a curve [m]; 0 = the probe turns on the spot. On roads the
            radius is ignored.
    """

    def __init__(
        self,
        topology: Topology,
        start: int | None = None,
        speed: float | str = "limit",
        turn_radius: float = 0.0,
    ) -> None:
        if speed != "limit" and not (isinstance(speed, int | float) and speed > 0):
            msg = f"speed of the probe: expected a number above 0 [m/s] or 'limit', got {speed!r}"
            raise ValueError(msg)
        self.topology = topology
        self.speed = speed
        self._radius = 0.0 if topology.roads else turn_radius
        self.at = start
        """Last place that the probe passed; None = no place yet."""
        self._legs: list[_Leg] = []
        self._done = 0.0
        self._rate = math.inf
        self._pose: tuple[float, ...] | None = None if start is None else self._at(start)

    @property
    def pose(self) -> tuple[float, ...]:
        """Pose: x, y [m], heading [rad], and z [m] on a map with heights.

        A probe without a start is at place 0 before its first route.
        """
        return self._at(0) if self._pose is None else self._pose

    def _at(self, place: int) -> tuple[float, ...]:
        up = self.topology.heights
        return (*self.topology.goals[place].tolist(), *([] if up is None else [float(up[place])]))

    @property
    def arrived(self) -> bool:
        """True if the probe has no route left to drive."""
        return not self._legs

    @property
    def may_read(self) -> int | None:
        """Place of a reading that is taken now; None before the place's middle or at rest."""
        if not self._legs:
            return None
        leg = self._legs[0]
        return leg.place if self._done >= leg.half - _ROUNDING else None

    @property
    def seconds_to_next(self) -> float:
        """Time until the end of the current place [s]; 0 after arrival."""
        return self._seconds_to(()) if self._legs else 0.0

    @property
    def seconds_to_half(self) -> float:
        """Time until the middle of the current place [s]; after the middle, until its end."""
        return self._seconds_to((self._legs[0].half,)) if self._legs else 0.0

    @property
    def seconds_to_turn(self) -> float:
        """Time until the probe reaches the next corner or mark of its path [s]; 0 after arrival."""
        return self._seconds_to(self._legs[0].marks) if self._legs else 0.0

    def _seconds_to(self, marks: Iterable[float]) -> float:
        """Return the time to the next path length in `marks` or to the end of the place [s]."""
        ahead = [mark for mark in marks if mark > self._done + _ROUNDING]
        left = min([*ahead, self._legs[0].metres]) - self._done
        return left / self._rate if left > 0.0 else 0.0

    def cost(self, route: Route) -> Cost:
        """Return the cost of a route at the probe's speed."""
        if isinstance(self.speed, str):
            return route.cost
        return Cost(route.cost.metres, route.cost.metres / self.speed)

    def drive(self, route: Route) -> None:
        """Begin a route at the current position. An unfinished route is dropped."""
        here = None
        if self._pose is not None:
            here = np.array([*self._pose[:2], *self._pose[3:]])
        heading = 0.0 if self._pose is None else self._pose[2]
        self._legs = []
        self._done = 0.0
        for place in route.path:
            line = np.asarray(self.topology.geometry(place), dtype=np.float64)
            if self.topology.heights is not None:
                line = self.topology.points[place : place + 1]
            points = line if here is None else np.vstack([here, line])
            ends = None
            if here is not None and self._radius > 0.0:
                points = curve_through((here[0], here[1]), heading, line, self._radius)
                heading = float(turn_to(here, heading, line[-1:], self._radius).heading[0])
                ends = heading
            steps = Speeds().metres(np.diff(points, axis=0))
            lengths = np.concatenate([[0.0], np.cumsum(steps)])
            self._legs.append(_Leg(place, points, lengths, float(lengths[-len(line)]), ends))
            here = line[-1]
        metres = sum(leg.metres for leg in self._legs)
        if not isinstance(self.speed, str):
            self._rate = float(self.speed)
        elif self._radius > 0.0 and route.cost.seconds > 0.0:
            self._rate = route.cost.metres / route.cost.seconds  # curves do not change the speed
        elif route.cost.seconds > 0.0 and metres > 0.0:
            self._rate = metres / route.cost.seconds
        else:
            self._rate = math.inf
        if self._legs:
            self._place_on(self._legs[0])

    def advance(self, dt_seconds: float) -> tuple[int, ...]:
        """Move for a time [s]; return the passed places. Raises ValueError for a negative time."""
        if math.isnan(dt_seconds) or dt_seconds < 0.0:
            msg = f"a probe moves forward in time, got {dt_seconds} s"
            raise ValueError(msg)
        passed: list[int] = []
        left = dt_seconds
        while self._legs:
            needed = self.seconds_to_next
            if needed > left:
                self._done += left * self._rate
                self._place_on(self._legs[0])
                break
            left -= needed
            leg = self._legs.pop(0)
            self._done = 0.0
            self.at = leg.place
            x, y, heading, *up = self._at(leg.place)
            self._pose = (x, y, heading if leg.heading is None else leg.heading, *up)
            passed.append(leg.place)
        return tuple(passed)

    def _place_on(self, leg: _Leg) -> None:
        done = min(self._done, leg.metres)
        x, y, *up = (float(np.interp(done, leg.lengths, column)) for column in leg.points.T)
        step = min(int(np.searchsorted(leg.lengths, done, side="right")), len(leg.points) - 1)
        while step < len(leg.points) - 1 and leg.lengths[step] == leg.lengths[step - 1]:
            step += 1
        heading = self._pose[2] if self._pose is not None else 0.0
        if step > 0:
            dx, dy = (leg.points[step] - leg.points[step - 1])[:2]
            if dx or dy:
                heading = math.atan2(dy, dx)
        self._pose = (x, y, heading, *up)
