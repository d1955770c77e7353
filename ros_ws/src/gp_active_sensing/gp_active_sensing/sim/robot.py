"""Simulate the position, sensor and battery of a robot in steps of virtual time."""

from __future__ import annotations

import logging
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from gp_active_sensing.engine.config import SortieConfig
from gp_active_sensing.mission.course import places_along
from gp_active_sensing.sim.sensor import SimulatedSensor
from gp_active_sensing.sim.world import World, way_to
from gp_active_sensing.topology.base import FreeTopology, Topology
from gp_active_sensing.types import BoolArray, Cost, Reading, Route

logger = logging.getLogger(__name__)

EPOCH_NS = 1
"""Start of simulated time [ns]. In ROS, time 0 means that the time is not known."""
TimedPose: TypeAlias = tuple[int, tuple[float, ...]]
"""Time [ns] and pose: x, y [m], heading [rad], and z [m] on a map with heights."""
POSES = 2.0
"""Longest time between two published poses on a road [s]."""


@dataclass(frozen=True)
class Observation:
    """Pose, speed and new readings of a simulated robot.

    Args:
        stamp_ns: simulated time [ns].
        pose: x, y [m], heading [rad], and z [m] on a map with heights.
        speed: mean speed since the previous observation [m/s].
        readings: readings since the previous observation.
        way: poses since the previous observation, such as at corners of the path.
    """

    stamp_ns: int
    pose: tuple[float, ...]
    speed: float
    readings: tuple[Reading, ...]
    way: tuple[TimedPose, ...] = ()


@dataclass(frozen=True)
class PlannedWay:
    """Planned route to a waypoint.

    Args:
        begin: place where the route begins; None = the probe has not passed a place yet.
        route: path and cost.
        then: expected waypoints after this waypoint.
    """

    begin: int | None
    route: Route
    then: tuple[int, ...] = ()


@dataclass
class SharedWorld:
    """Visited places and goals of all probes in one world.

    Args:
        passed: (n,) True for a place that a probe has passed.
        visits: number of readings taken at each place; the sensor's noise depends on this number.
        goals: current goal of each probe, by the probe's name.
    """

    passed: BoolArray
    visits: Counter[int] = field(default_factory=Counter)
    goals: dict[str, int] = field(default_factory=dict)

    @classmethod
    def on(cls, topology: Topology) -> SharedWorld:
        """Return the state before any probe has visited a place of the map."""
        return cls(np.zeros(topology.n, dtype=np.bool_))

    def unavailable_to(self, name: str) -> BoolArray:
        """Return (n,) True for passed places and for goals of other probes."""
        known: BoolArray = self.passed.copy()
        known[[goal for other, goal in self.goals.items() if other != name]] = True
        return known


class SimulatedRobot:
    """Robot that drives to waypoints along legal routes and takes readings.

    The robot reads a road when it passes the middle of the road, and a point when it arrives. If a
    waypoint is sent again, the robot repeats the readings of the waypoint's place.

    Args:
        world: map, truth, sensor and start.
        name: name of the probe; "" for a single probe.
        traces: state shared by all probes of the world; None = there is one probe.
    """

    def __init__(self, world: World, *, name: str = "", traces: SharedWorld | None = None) -> None:
        self._world = world
        self._name = name
        self._traces = SharedWorld.on(world.topology) if traces is None else traces
        self._topology = world.topology
        self._probe = world.probe()
        self._sensor = world.sensor.config
        self._most = POSES if world.topology.roads else math.inf
        """Longest time between two published poses [s]."""
        self._due_ns: int | None = None
        """Time of the readings at the goal [ns]; None = the robot is not waiting at the goal."""
        self.now_ns = EPOCH_NS
        """Simulated time [ns]."""
        self._done_this_visit: set[int] = set()
        self.goal: int | None = None
        """Place that the robot drives to or has reached; None = no place."""
        self._next_goal: int | None = None
        self._planned: PlannedWay | None = None
        self._taken: list[Reading] = []
        self.dropouts = 0
        if self._probe.at is not None:
            self._traces.passed[self._probe.at] = True

    @property
    def at(self) -> int | None:
        """Last place that the robot passed; None = no place yet."""
        return self._probe.at

    @property
    def pose(self) -> tuple[float, ...]:
        """Pose: x, y [m], heading [rad], and z [m] on a map with heights."""
        return self._probe.pose

    def place_of(self, x: float, y: float, heading: float, z: float = 0.0) -> int | None:
        """Return the place whose waypoint is nearest in position and heading; None beyond 1 m."""
        goals, heights = self._topology.goals, self._topology.heights
        distances = np.hypot(goals[:, 0] - x, goals[:, 1] - y)
        if heights is not None:
            distances = np.hypot(distances, heights - z)
        turn_costs = 1.0 - np.cos(goals[:, 2] - heading) if math.isfinite(heading) else 0.0
        best = int(np.argmin(distances + turn_costs))
        return best if distances[best] <= 1.0 else None

    def close(self) -> None:
        """Do nothing. The subclass for live traffic ends its simulator here."""

    def go_to(self, place: int, planned: PlannedWay | None = None) -> None:
        """Drive to a place. A moving robot first drives to the end of its current place.

        A `planned` route is used if it begins at that end; otherwise `way_to` computes a route.
        """
        self._next_goal, self._planned = place, planned
        if self._probe.arrived:
            self._depart()

    def _depart(self) -> None:
        goal, self._next_goal = self._next_goal, None
        planned, self._planned = self._planned, None
        if goal is None:
            return
        self.goal = self._traces.goals[self._name] = goal
        self._done_this_visit.clear()
        at = self._probe.at
        if goal == at:
            self._visit(goal)
            return
        self._due_ns = None
        if (route := self._way(at, goal, planned)) is not None:
            route = self._over_ground(route)
            self._probe.drive(Route(route.path, self._probe.cost(route)))

    def _way(self, at: int | None, goal: int, planned: PlannedWay | None) -> Route | None:
        if planned is not None and planned.begin == at:
            return planned.route
        route = way_to(self._world, at, goal, self._traces.unavailable_to(self._name))
        if route is None:
            begin = "nowhere" if at is None else self._topology.names[at]
            logger.warning("there is no way from %s to %s", begin, self._topology.names[goal])
            self.goal = None
        return route

    def _over_ground(self, route: Route) -> Route:
        """Return a route; on open ground, add the places that lead around obstacles."""
        topology = self._topology
        path = places_along(topology, self._probe.pose, route.path)
        if path == route.path or not path or not isinstance(topology, FreeTopology):
            return route
        legs = topology.points[[*path[:1], *path]]
        legs[0] = [*self._probe.pose[:2], *self._probe.pose[3:]]
        costs = [topology.speeds.leg(a, b) for a, b in pairwise(legs)]
        metres, seconds = np.sum(costs, axis=0).tolist()
        return Route(path, Cost(metres, seconds))

    def step(self, seconds: float) -> Observation:
        """Advance by a positive time [s]; return the observation."""
        before = self._probe.pose
        end_ns = self.now_ns + round(1e9 * seconds)
        way: list[TimedPose] = []
        while self.now_ns < end_ns:
            left = 1e-9 * (end_ns - self.now_ns)
            if self._probe.arrived:
                if self._due_ns is not None and self._due_ns <= end_ns:
                    self.now_ns, self._due_ns = self._due_ns, None
                    self._read(self._probe.at)
                self.now_ns = end_ns
                break
            part = min(left, self._probe.seconds_to_turn, self._most)
            passed = self._probe.advance(part)
            self.now_ns = min(end_ns, self.now_ns + round(1e9 * part))
            way.append((self.now_ns, self._probe.pose))
            for place in passed:
                self._traces.passed[place] = True
                self._visit(place)
                self._done_this_visit.discard(place)
            if passed and self._next_goal is not None:
                self._depart()
            elif (place_now := self._probe.may_read) is not None:
                self._visit(place_now)
        pose = self._probe.pose
        moved = zip((*pose[:2], *pose[3:]), (*before[:2], *before[3:]), strict=True)
        speed = math.hypot(*(a - b for a, b in moved)) / seconds
        taken, self._taken = self._taken, []
        return Observation(self.now_ns, pose, speed, tuple(taken), tuple(way))

    @property
    def seconds_to_event(self) -> float | None:
        """Time until a reading, or until the robot reaches the middle or end of a place [s].

        The earliest of these events counts; None = no event is due.
        """
        if self._taken:
            return 0.0
        if not self._probe.arrived:
            return self._probe.seconds_to_half
        return None if self._due_ns is None else 1e-9 * (self._due_ns - self.now_ns)

    def _visit(self, place: int) -> None:
        """Read a place once per visit; if the robot must stop at the goal first, set `_due_ns`."""
        if place in self._done_this_visit or not (self._sensor.on_the_way or place == self.goal):
            return
        if self._sensor.seconds and place == self.goal:
            if self._probe.arrived and self._due_ns is None:
                self._due_ns = self.now_ns + round(1e9 * self._sensor.seconds)
            return
        self._done_this_visit.add(place)
        self._read(place)

    def _read(self, place: int | None) -> None:
        if place is None:
            return
        first = self._traces.visits[place]
        for visit in range(first, first + self._sensor.readings):
            self._traces.visits[place] += 1
            self._add("", self._world.sensor, place, visit)
        for name, sensor in self._world.further.items():
            if sensor.config.on_the_way or place == self.goal:
                for number in range(sensor.config.readings):
                    self._add(name, sensor, place, first * sensor.config.readings + number)

    def _add(self, quantity: str, sensor: SimulatedSensor, place: int, visit: int) -> None:
        reading = sensor.read(place, visit, self.now_ns)
        if reading is None:
            self.dropouts += 1
        else:
            self._taken.append(replace(reading, quantity=quantity))


CHANGE_SECONDS = 60.0
"""Duration of a simulated battery change [s]."""


def home_of(topology: Topology, end: int | str | None) -> tuple[float, float] | None:
    """Return x and y where batteries are changed [m]; None = where each probe begins."""
    if end is None or (isinstance(end, str) and end not in topology.names):
        return None
    place = topology.names.index(end) if isinstance(end, str) else end
    x, y, _ = topology.goals[place].tolist()
    return x, y


class SimulatedBattery:
    """Battery of a simulated probe.

    Args:
        sortie: range of a full battery, in metres or seconds.
        home: x and y of the place where the battery is changed [m]; None = the first pose.
    """

    def __init__(self, sortie: SortieConfig, home: tuple[float, float] | None = None) -> None:
        self._sortie, self._home = sortie, home
        self._last: tuple[int, tuple[float, ...]] | None = None
        self._metres = self._seconds = self._stood = 0.0

    @property
    def used(self) -> float:
        """Used fraction of the range; above 1 = the battery became empty while driving."""
        lasts = self._sortie.metres or math.inf, self._sortie.seconds or math.inf
        return max(self._metres / lasts[0], self._seconds / lasts[1])

    @property
    def level(self) -> float:
        """Charge from 0 (empty) to 1 (full)."""
        return max(0.0, 1.0 - self.used)

    def fill(self) -> None:
        """Replace the battery by a full one."""
        self._metres = self._seconds = self._stood = 0.0

    def step(self, moment: Observation) -> None:
        """Use the energy of a step; after `CHANGE_SECONDS` at home the battery is full."""
        for stamp_ns, pose in (*moment.way, (moment.stamp_ns, moment.pose)):
            here = (*pose[:2], *pose[3:])
            if self._last is not None:
                then_ns, there = self._last
                metres, seconds = math.dist(here, there), 1e-9 * (stamp_ns - then_ns)
                self._metres, self._seconds = self._metres + metres, self._seconds + seconds
                home = self._home is None or math.dist(here[:2], self._home) <= 1.0
                self._stood = self._stood + seconds if home and metres == 0.0 else 0.0
            elif self._home is None:
                self._home = here[0], here[1]
            self._last = stamp_ns, here
        if self._stood >= CHANGE_SECONDS:
            self.fill()
