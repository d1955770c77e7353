"""Robots that behave like real ones, and missions that send them around without nodes.

A robot accelerates, brakes and overshoots; its localisation is noisy, drifts, jumps, falls silent
or sends a pose only after a motion; its sensor is late. What a test looks at is the robot's own
log, not the mission's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import networkx as nx
import numpy as np

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.requests import DecisionRequest

SECOND = 1_000_000_000
Point = tuple[float, float]


@dataclass
class Robot:
    """A body that drives straight to its goal, as far as it can.

    Args:
        x, y: where it is [m].
        speed: cruise [m/s].
        acceleration: of starting and braking [m/s²]; inf = at once, without overshoot.
        tolerance: distance from the goal at which it is content [m].
    """

    x: float
    y: float
    speed: float = 3.0
    acceleration: float = 1.0
    tolerance: float = 0.5
    goal: Point | None = None
    vx: float = 0.0
    vy: float = 0.0
    then: deque[Point] = field(default_factory=deque)
    """Goals after it: of a robot that follows a path."""
    radius: float = 3.0
    """Distance from a goal at which it drives on to the next of them [m]."""
    metres: float = 0.0
    """Driven, really."""
    way: list[Point] = field(default_factory=list)

    def step(self, dt: float) -> None:
        wish = (0.0, 0.0)
        while self.then and self.goal and math.dist(self.goal, (self.x, self.y)) <= self.radius:
            self.goal = self.then.popleft()
        if self.goal is not None:
            dx, dy = self.goal[0] - self.x, self.goal[1] - self.y
            left = math.hypot(dx, dy)
            if left > self.tolerance:
                brakes = math.sqrt(2.0 * self.acceleration * left)
                fast = min(self.speed, left / dt, math.inf if self.then else brakes)
                wish = fast * dx / left, fast * dy / left
        ax, ay = wish[0] - self.vx, wish[1] - self.vy
        most = min(1.0, self.acceleration * dt / max(1e-12, math.hypot(ax, ay)))
        self.vx, self.vy = self.vx + most * ax, self.vy + most * ay
        self.x, self.y = self.x + self.vx * dt, self.y + self.vy * dt
        self.metres += math.hypot(self.vx, self.vy) * dt
        self.way.append((self.x, self.y))


class Localisation:
    """Makes poses of where a robot is.

    Args:
        white: noise of each pose, along each axis [m].
        slow: standard deviation of a drift, along each axis [m].
        memory: how long the drift lasts [s].
        variance: that its publisher claims (x and y added) [m²]; 0 = it says nothing.
        seed: key of the noise.
    """

    def __init__(
        self,
        white: float = 0.0,
        slow: float = 0.0,
        memory: float = 60.0,
        variance: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.white, self.slow, self.memory, self.variance = white, slow, memory, variance
        self._rng = np.random.default_rng([11, seed])
        self._drift = slow * self._rng.normal(size=2)
        self._then_ns: int | None = None
        self.offset: Point = (0.0, 0.0)
        """Of a multipath, while it lasts [m]."""

    def pose(self, now_ns: int, x: float, y: float, heading: float = math.nan) -> Pose:
        """Return the pose of a robot that is at (x, y)."""
        dt = 0.0 if self._then_ns is None else 1e-9 * (now_ns - self._then_ns)
        self._then_ns = now_ns
        keep = math.exp(-dt / self.memory)
        self._drift *= keep
        self._drift += self.slow * math.sqrt(1.0 - keep * keep) * self._rng.normal(size=2)
        dx, dy = self._drift + self.white * self._rng.normal(size=2) + self.offset
        return Pose(now_ns, "map", x + float(dx), y + float(dy), heading, self.variance)


class Voyage:
    """A mission that sends a robot around, in virtual time.

    Args:
        config: of the node.
        robot: where it begins.
        localisation: makes its poses; None = exact ones.
        rate: poses a second [Hz].
        delay: of the sensor [s]; its readings are stamped when they were taken, or when they come
            where the configuration has that `reading.delay`.
    """

    def __init__(
        self,
        config: dict[str, Any],
        robot: Robot,
        localisation: Localisation | None = None,
        *,
        rate: float = 5.0,
        delay: float = 0.0,
    ) -> None:
        self.config, self.robot = config, robot
        self.localisation = localisation or Localisation()
        self.now_ns, self.dt, self.delay = SECOND, 1.0 / rate, delay
        self.legs: list[tuple[Point, Point]] = []
        """Where the robot was when it was sent, and where to."""
        self.routes: list[tuple[int, ...]] = []
        self.paths: list[tuple[int, ...]] = []
        """Places of each ``next_path``."""
        self.late: deque[RawReading] = deque()
        self.field: Callable[[float, float], float] = lambda x, y: math.sin(0.1 * x) + 0.05 * y
        self.silent = False
        """It sends no poses."""
        self.on_motion: float | None = None
        """It sends a pose only so far from the last one, as AMCL does [m]; None = always."""
        self.follows = False
        """It drives along ``next_path``, not to ``next_waypoint``."""
        self._posed: Point | None = None
        self.start()

    def start(self) -> None:
        config = from_mapping(ActiveSensingConfig, self.config)
        self.ahead = config.waypoint.ahead
        self.stamped_late_ns = round(SECOND * config.reading.delay)
        self.parts = build_parts(config, None, clock=lambda: 1e-9 * self.now_ns)
        self.mission = self.parts.mission
        if self.mission.state == "idle":
            self.mission.start()

    def start_again(self) -> None:
        self.parts.recorder.close()
        self.start()

    def step(self) -> None:
        self.now_ns += round(SECOND * self.dt)
        self.robot.step(self.dt)
        x, y = self.robot.x, self.robot.y
        moved = self._posed is None or math.dist(self._posed, (x, y)) >= (self.on_motion or 0.0)
        if moved and not self.silent:
            self._posed = x, y
            self.mission.inbox.put(self.localisation.pose(self.now_ns, x, y), 1e-9 * self.now_ns)
        self.late.append(RawReading(self.now_ns, self.field(x, y), 0.01))
        while self.late and self.now_ns - self.late[0].stamp_ns >= 1e9 * self.delay:
            reading = self.late.popleft()
            reading = replace(reading, stamp_ns=reading.stamp_ns + self.stamped_late_ns)
            self.mission.inbox.put(reading, 1e-9 * self.now_ns)
        for output in self.mission.step(self.now_ns):
            if isinstance(output.job, DecisionRequest) and output.job.decide:
                plan = output.job.ask()
                if self.mission.decided(output.job, plan) and plan.path:
                    self.routes.append(plan.path)
                    self.send()
            elif output.job is not None:
                self.mission.showing = False
            elif output.again is not None or output.leg is not None:
                self.send()

    def send(self) -> None:
        """Send the robot to its waypoint, as the node publishes it."""
        probe, topology = self.mission.probe, self.mission.loop.topology
        place = probe.waypoint
        if place is None:  # given up in the same step; another place is chosen
            return
        goal = tuple(topology.goals[place, :2].tolist())
        if goal != self.robot.goal:
            self.legs.append(((self.robot.x, self.robot.y), goal))
            self.robot.goal = goal
        if self.follows:
            path = list(probe.places_ahead(self.ahead))
            self.paths.append(tuple(path))
            self.robot.then = deque(map(tuple, topology.goals[path[1:], :2].tolist()))

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Go on for a time, until the mission is over or something is so; say whether it is."""
        for _ in range(round(seconds / self.dt)):
            if until() or self.mission.state == "ended":
                return True
            self.step()
        return until()


class House:
    """True ground of a house in squares of 1 m, whose doors may be shut, for the robot itself."""

    def __init__(self, columns: int, rows: int, walls: set[tuple[int, int]]) -> None:
        self.columns, self.rows, self.walls = columns, rows, walls
        self.shut: set[tuple[int, int]] = set()
        """Squares that are doors, and shut."""

    @property
    def map(self) -> dict[str, Any]:
        """The mission's map, which knows no door that is shut."""
        half = 0.4
        walls = [
            [[x - half, y - half], [x + half, y - half], [x + half, y + half], [x - half, y + half]]
            for x, y in sorted(self.walls)
        ]
        size = {"columns": self.columns, "rows": self.rows, "spacing": 1.0}
        return {"kind": "grid", **size, "obstacles": walls}

    def way(self, start: tuple[int, int], goal: tuple[int, int]) -> list[tuple[int, int]]:
        """Return the squares from one to another, as a controller drives them; [] = none."""
        squares = nx.grid_2d_graph(self.columns, self.rows)
        squares.remove_nodes_from((self.walls | self.shut) - {start})
        try:
            return list(nx.shortest_path(squares, start, goal))
        except (nx.NodeNotFound, nx.NetworkXNoPath):
            return []


@dataclass
class HouseRobot(Robot):
    """A robot whose controller detours round a shut door in a house, or stops before it."""

    house: House = field(default_factory=lambda: House(1, 1, set()))
    detours: bool = True

    def step(self, dt: float) -> None:
        goal, here = self.goal, (round(self.x), round(self.y))
        if goal is not None:
            last = round(goal[0]), round(goal[1])
            shut, self.house.shut = self.house.shut, self.house.shut if self.detours else set()
            way = self.house.way(here, last)
            self.house.shut = shut
            following = way[1] if len(way) > 1 else last
            stops = not way or following in self.house.shut or following in self.house.walls
            self.goal = (self.x, self.y) if stops else (float(following[0]), float(following[1]))
        super().step(dt)
        self.goal = goal
