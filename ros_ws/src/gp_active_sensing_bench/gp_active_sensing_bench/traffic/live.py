"""SUMO traffic as the simulated world of a mission, and the robot that drives in it.

SUMO is one step ahead of the mission's clock, and poses are interpolated between SUMO's steps. The
measurement of a road is therefore known while the pose is still on that road.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gp_active_sensing.errors import ConfigError, ResourceError, RunError
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.robot import EPOCH_NS, Observation, PlannedWay, SimulatedRobot
from gp_active_sensing.sim.traffic import LiveTruth, TrafficConfig
from gp_active_sensing.sim.world import World
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.resources import find_resource
from gp_active_sensing_bench.traffic.network import EdgeSpeeds, Network
from gp_active_sensing_bench.traffic.session import Session, require_sumo
from gp_active_sensing_bench.traffic.vehicle import ProbeVehicle, Visit

logger = logging.getLogger(__name__)

_PART = 0.75
"""Fraction of a road's length at which the reading of the road is stamped."""


class LiveTraffic:
    """Simulated traffic with the robot as one of the cars.

    Equal files, seeds and paths of the robot give exactly equal traffic.

    Args:
        topology: map whose places have the ids of SUMO's edges as names.
        arguments: arguments of the command ``sumo``.
        scale: factor on speeds [field unit per m/s].
        offset: constant that is added after scaling [field unit].
    """

    def __init__(
        self,
        topology: Topology,
        traffic: TrafficConfig,
        arguments: Sequence[str],
        *,
        scale: float = 1.0,
        offset: float = 0.0,
    ) -> None:
        self.topology = topology
        self.traffic = traffic
        self.truth = LiveTruth()
        self._arguments = tuple(arguments)
        self._scale, self._offset = scale, offset
        self._session: Session | None = None

    def start(self) -> None:
        """Start or restart SUMO, and simulate until the mission's start.

        Raises:
            RunError: SUMO rejects its files.
            MapError: a place is not an edge, or SUMO's network does not allow a move.
        """
        self.close()
        session = Session(self._arguments)
        try:
            self._begin(session)
        except BaseException:
            session.close()
            raise
        self._session = session

    def _begin(self, session: Session) -> None:
        names = self.topology.names
        network = Network(session, self.topology)
        speeds = EdgeSpeeds(session, names, network.free_speeds, self.traffic.window)
        begin = session.time if self.traffic.begin is None else self.traffic.begin
        if begin > session.time:
            logger.info("SUMO: running traffic from %g to %g s", session.time, begin)
        while session.time < begin:
            session.step()
            speeds.note()
        if session.api.simulation.getMinExpectedNumber() == 0:
            logger.warning("SUMO: no car is left at %g s; the probe is alone", session.time)
        self._speeds = speeds
        self._zero = session.time
        self.vehicle = ProbeVehicle(session, network.lengths, network.onward)
        self.truth.begin(self.values())

    @property
    def seconds(self) -> float:
        """Time of the mission [s]."""
        return self._running().time - self._zero

    @property
    def dt(self) -> float:
        """Length of a step [s]."""
        return self._running().dt

    def values(self) -> Any:
        """Return the current mean speeds (n,) of the edges [field unit]."""
        return self._value(self._speeds.now())

    def step(self) -> tuple[Visit, ...]:
        """Simulate one step. Return the edges that the robot has completed."""
        self._running()
        visits = self.vehicle.step()
        self._speeds.note()
        return visits

    def visit(self, path: Sequence[int], visit: Visit) -> tuple[int, int, float | None]:
        """Return (place, mission time [ns], value) of a completed edge; value None = no reading."""
        value = None if visit.speed is None else float(self._value(visit.speed))
        return path[visit.index], round(1e9 * (visit.seconds - self._zero)), value

    def go(self, path: Sequence[int], then: Sequence[int] = ()) -> None:
        """Set the path of the robot. `then` has the likely places after the path."""
        self._running()
        names = self.topology.names
        self.vehicle.drive([names[p] for p in path], [names[p] for p in then])

    def give_up(self) -> tuple[Visit, ...]:
        """Put the robot at the end of its path. Return the skipped edges, which have no speed."""
        self.vehicle.notes.append(
            f"{self._running().time:g} s: the drive took longer than {self.traffic.patience:g} s; "
            "the probe was put at its waypoint, without a reading"
        )
        logger.warning("SUMO, %s", self.vehicle.notes[-1])
        return self.vehicle.tow()

    def robot(self, world: World) -> SimulatedRobot:
        """Return a robot that drives in this traffic."""
        return TrafficRobot(world, self)

    def close(self) -> None:
        """End SUMO, if SUMO is running."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _value(self, speed: Any) -> Any:
        return self._offset + self._scale * speed

    def _running(self) -> Session:
        if self._session is None:
            self.start()
        if self._session is None:
            msg = "SUMO did not start"
            raise RunError(msg)
        return self._session


class TrafficRobot(SimulatedRobot):
    """Robot that drives through SUMO's traffic to waypoints and measures its own speed.

    Without a waypoint the robot is parked. A waypoint at the robot's current place gives the last
    measured speed with new noise.

    Args:
        world: map, sensor and start.

    Raises:
        ActiveSensingError: SUMO is not installed or does not start.
    """

    def __init__(self, world: World, traffic: LiveTraffic) -> None:
        super().__init__(world)
        self._traffic = traffic
        self._at = world.start
        self._path: tuple[int, ...] = ()
        self._measured: dict[int, float] = {}
        self._traffic.start()
        self._step_ns = round(1e9 * self._traffic.dt)
        self._sumo_ns = EPOCH_NS
        """Time of SUMO's last step, at or after the clock [ns]."""
        self._progress = (0.0, 0.0)
        """Driven part of the path before and after SUMO's last step, as a number of places."""
        self._left_ns = EPOCH_NS

    @property
    def at(self) -> int | None:
        """Last driven place; None = the robot has driven no place."""
        return self._at

    @property
    def pose(self) -> tuple[float, float, float]:
        """Position x, y [m] and heading [rad]."""
        return self._pose()

    @property
    def seconds_to_event(self) -> float | None:
        """Time until SUMO's next step or the next reading [s]; None = the robot is parked."""
        if not self._traffic.vehicle.done or self._next_goal is not None:
            return self._traffic.dt
        return min((1e-9 * (r.stamp_ns - self.now_ns) for r in self._taken), default=None)

    def go_to(self, place: int, planned: PlannedWay | None = None) -> None:
        """Drive to a place when the current path has ended."""
        self._next_goal, self._planned = place, planned
        if self._traffic.vehicle.done and self.now_ns >= self._sumo_ns:
            self._depart()

    def close(self) -> None:
        """End SUMO."""
        self._traffic.close()

    def step(self, seconds: float) -> Observation:
        """Advance the clock by `seconds` above 0. Return pose, speed and new readings."""
        before = self._pose()
        self.now_ns += round(1e9 * seconds)
        while self._sumo_ns <= self.now_ns:
            self._step_sumo()
        pose = self._pose()
        speed = math.hypot(pose[0] - before[0], pose[1] - before[1]) / seconds
        due = [reading for reading in self._taken if reading.stamp_ns <= self.now_ns]
        self._taken = [reading for reading in self._taken if reading.stamp_ns > self.now_ns]
        return Observation(self.now_ns, pose, speed, tuple(due))

    def _step_sumo(self) -> None:
        """Simulate one step of SUMO. Do not advance the clock."""
        traffic = self._traffic
        if traffic.vehicle.done and self._next_goal is not None:
            self._depart()
        driving = not traffic.vehicle.done
        begun = traffic.vehicle.progress
        visits = list(traffic.step())
        waited = 1e-9 * (self._sumo_ns - self._left_ns)
        if driving and waited > traffic.traffic.patience and not traffic.vehicle.done:
            visits += traffic.give_up()
        self._progress = (begun, traffic.vehicle.progress)
        for visit in visits:
            place, _, value = traffic.visit(self._path, visit)
            self._at = place
            self._traces.passed[place] = True
            self._take(place, value, self._on_it(visit.index))
        self._sumo_ns += self._step_ns

    def _on_it(self, index: int) -> int:
        """Return the time [ns] at which the fraction `_PART` of a road in the path is driven."""
        begun, ended = self._progress
        share = (max(begun, index + _PART) - begun) / max(ended - begun, 1e-9)
        return self._sumo_ns + int(min(1.0, share) * self._step_ns)

    def _depart(self) -> None:
        goal, self._next_goal = self._next_goal, None
        planned, self._planned = self._planned, None
        if goal is None:
            return
        self.goal = goal
        if goal == self._at:
            self._take(goal, self._measured.get(goal), self.now_ns)
            return
        route = self._way(self._at, goal, planned)
        if route is None:
            return
        self._path = route.path
        self._left_ns = self._sumo_ns
        self._traffic.go(route.path, () if planned is None else planned.then)
        self._progress = (0.0, 0.0)

    def _take(self, place: int, value: float | None, stamp_ns: int) -> None:
        """Take the readings of a driven place; value None = no reading."""
        if value is not None:
            self._measured[place] = value
        if not (self._sensor.on_the_way or place == self.goal):
            return
        for _ in range(self._sensor.readings):
            visit = self._traces.visits[place]
            self._traces.visits[place] += 1
            reading = None
            if value is not None:
                reading = self._world.sensor.read(place, visit, stamp_ns, value)
            if reading is None:
                self.dropouts += 1
            else:
                self._taken.append(reading)

    def _pose(self) -> tuple[float, float, float]:
        """Interpolate the pose at the time of the clock."""
        if not self._path:
            goals = self._topology.goals
            x, y, heading = goals[0 if self._at is None else self._at]
            return float(x), float(y), float(heading)
        share = 1.0 - min(1.0, max(0, self._sumo_ns - self.now_ns) / self._step_ns)
        done = (1.0 - share) * self._progress[0] + share * self._progress[1]
        index = min(int(done), len(self._path) - 1)
        return _along(self._topology.geometry(self._path[index]), done - index)


def _along(line: FloatArray, share: float) -> tuple[float, float, float]:
    """Return x, y and heading at a fraction `share` of a line's length."""
    steps = np.hypot(*np.diff(line, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    at = min(max(share, 0.0), 1.0) * along[-1]
    x, y = (float(np.interp(at, along, line[:, k])) for k in (0, 1))
    leg = min(int(np.searchsorted(along, at, side="left")), len(steps))
    leg = max(leg, 1)
    while steps[leg - 1] == 0.0 and leg < len(steps):
        leg += 1
    dx, dy = line[leg] - line[leg - 1]
    return x, y, math.atan2(dy, dx)


def build_traffic(
    config: TrafficConfig, field: FieldConfig, topology: Topology, seed: int
) -> LiveTraffic:
    """Return the traffic of a scenario. SUMO is not started yet.

    Raises:
        ConfigError: no SUMO network is given, a file does not exist, or the map has no roads.
        MissingDependencyError: SUMO is not installed.
    """
    problems: list[str] = []
    if config.net is None:
        problems.append("net: is required for a field of kind sumo")
    if topology.free or np.asarray(topology.geometry(0)).shape[0] < 2:
        problems.append("a field of kind sumo needs a map of kind roads")
    arguments: list[str] = []
    for key, names in (("net", filter(None, (config.net,))), ("routes", config.routes)):
        try:
            paths = [str(find_resource("maps", name).absolute()) for name in names]
        except ResourceError as error:
            problems.append(f"{key}: {error}")
        else:
            arguments += [f"-{key[0]}", ",".join(paths)] if paths else []
    if problems:
        raise ConfigError(problems)
    require_sumo()
    arguments += ["--seed", str(seed)]
    arguments += ["--random", "false", "--ignore-route-errors", "true", "--no-warnings", "true"]
    arguments += ["--no-step-log", "true", "--duration-log.disable", "true", "--threads", "1"]
    arguments += config.options
    return LiveTraffic(topology, config, arguments, scale=field.scale, offset=field.offset)
