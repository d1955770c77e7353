"""SUMO traffic as the simulated world of a mission."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError, ResourceError, RunError, listed
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.robot import SimulatedRobot
from gp_active_sensing.sim.traffic import LiveTruth, TrafficConfig
from gp_active_sensing.sim.world import World
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.resources import find_resource
from gp_active_sensing_bench.traffic.session import Session, require_sumo
from gp_active_sensing_bench.traffic.vehicle import ProbeVehicle, Visit

logger = logging.getLogger(__name__)

_BUCKETS = 10


class EdgeSpeeds:
    """Mean speed of the cars on each edge during a sliding time window.

    The mean speed is ``Σ n v Δt / Σ n Δt`` over the steps of the window, for n cars with mean speed
    v. It includes standing cars, as in SUMO's edgeData. An edge without a car in the window keeps
    its last mean speed. Before the first car, this is the speed on an empty edge.

    Args:
        session: the simulation.
        edges: (n,) ids of the edges.
        free: (n,) speeds on empty edges [m/s].
        window: length of the window [s]. The actual length is up to 10 % larger.
    """

    def __init__(
        self, session: Session, edges: Sequence[str], free: FloatArray, window: float
    ) -> None:
        self._session = session
        self._index = {name: i for i, name in enumerate(edges)}
        lanes = session.api.edge.getLaneNumber
        self._lanes = [(i, f"{e}_{k}") for i, e in enumerate(edges) for k in range(lanes(e))]
        self._last = np.array(free, dtype=np.float64)
        self._steps = max(1, round(window / (_BUCKETS * session.dt)))
        self._done = 0
        shape = (2, len(self._index))
        self._current = np.zeros(shape)
        self._before: deque[FloatArray] = deque(maxlen=_BUCKETS)

    def note(self) -> None:
        """Add the last step of the simulation. The cost is O(number of lanes).

        The mean is computed from lanes, because SUMO's mean speed of an edge includes empty lanes.
        """
        api, dt = self._session.api, self._session.dt
        for i, name in self._lanes:
            cars = api.lane.getLastStepVehicleNumber(name)
            if cars:
                self._current[0, i] += cars * api.lane.getLastStepMeanSpeed(name) * dt
                self._current[1, i] += cars * dt
        for car in api.simulation.getDepartedIDList():  # inserted without driving there
            i = self._index.get(api.vehicle.getRoadID(car), -1)
            if i >= 0:
                self._current[:, i] -= dt * api.vehicle.getSpeed(car), dt
        self._done += 1
        if self._done == self._steps:
            self._before.append(self._current)
            self._current = np.zeros_like(self._current)
            self._done = 0
            self._last = self.now()

    def now(self) -> FloatArray:
        """Return the (n,) mean speeds [m/s]."""
        metres, seconds = sum(self._before, self._current)
        known = seconds > 0.5 * self._session.dt
        means = np.divide(metres, seconds, out=np.zeros_like(metres), where=known)
        return np.where(known, means, self._last)


class LiveTraffic:
    """Simulated traffic with the robot as one of the cars.

    Equal files, seeds and paths of the robot give exactly equal traffic.

    Args:
        topology: map whose places have the ids of SUMO's edges as names.
        traffic: settings of the traffic.
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
        """Simulate one step. Return the edges of the path that the robot has completed."""
        self._running()
        visits = self.vehicle.step()
        self._speeds.note()
        return visits

    def visit(self, path: Sequence[int], visit: Visit) -> tuple[int, int, float | None]:
        """Return (place, mission time [ns], value) of a completed edge; value None = no reading."""
        value = None if visit.speed is None else float(self._value(visit.speed))
        return path[visit.index], round(1e9 * (visit.seconds - self._zero)), value

    def go(self, path: Sequence[int], then: Sequence[int] = ()) -> None:
        """Set the path of the robot. `then` has the likely places after its end."""
        self._running()
        names = self.topology.names
        self.vehicle.drive([names[p] for p in path], [names[p] for p in then])

    def give_up(self) -> tuple[Visit, ...]:
        """Put the robot at the end of its path. Return the remaining edges without values."""
        self.vehicle.notes.append(
            f"{self._running().time:g} s: the drive took longer than {self.traffic.patience:g} s; "
            "the probe was put at its waypoint, without a reading"
        )
        logger.warning("SUMO, %s", self.vehicle.notes[-1])
        return self.vehicle.tow()

    def robot(self, world: World, *, readings: int, on_the_way: bool) -> SimulatedRobot:
        """Return a robot that drives in this traffic."""
        from gp_active_sensing_bench.traffic.robot import TrafficRobot

        return TrafficRobot(world, self, readings=readings, on_the_way=on_the_way)

    def close(self) -> None:
        """End SUMO. Do nothing if it has not started."""
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


def build_traffic(
    config: TrafficConfig, field: FieldConfig, topology: Topology, seed: int
) -> LiveTraffic:
    """Return the traffic of a scenario. SUMO is not started yet.

    Raises:
        ConfigError: the network is not given, a file does not exist, or the map has no roads.
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


_SHOWN = 5


class Network:
    """Lengths, speeds on empty edges, and lane connections of the map's edges.

    Args:
        session: the simulation.
        topology: the map.

    Raises:
        MapError: a place is not an edge or is closed to cars, or no lane allows a move.
    """

    def __init__(self, session: Session, topology: Topology) -> None:
        api, names = session.api, topology.names
        known = set(api.edge.getIDList())
        _refuse([n for n in names if n not in known], topology, "are no edge of SUMO's network")
        lanes = {n: [f"{n}_{k}" for k in range(api.edge.getLaneNumber(n))] for n in names}
        cars = {n: [lane for lane in lanes[n] if _open_to_cars(api, lane)] for n in names}
        _refuse([n for n in names if not cars[n]], topology, "are closed to cars")
        self.lengths = {n: float(api.lane.getLength(cars[n][0])) for n in names}
        self.free_speeds = np.array([api.lane.getMaxSpeed(cars[n][0]) for n in names])
        self.onward: dict[str, dict[str, str]] = {n: {} for n in names}
        for name in names:
            for lane in cars[name]:
                for link in api.lane.getLinks(lane):
                    to = str(api.lane.getEdgeID(link[0]))
                    if _open_to_cars(api, link[0]):
                        self.onward[name].setdefault(to, str(link[6]))
        moves = (
            f"{names[a]} to {names[b]}"
            for a in range(topology.n)
            for b in topology.neighbours(a).tolist()
            if names[b] not in self.onward[names[a]]
        )
        _refuse(list(moves), topology, "are moves that no lane of SUMO's network allows")


def _refuse(wrong: Sequence[str], topology: Topology, what: str) -> None:
    if wrong:
        shown = listed(wrong, _SHOWN)
        msg = (
            f"map {topology.name!r} and traffic.net do not fit: {len(wrong)} {what}: {shown}; make "
            "the map from this network (map.file may be the .net.xml itself)"
        )
        raise MapError(msg)


def _open_to_cars(api: Any, lane: str) -> bool:
    allowed = api.lane.getAllowed(lane)
    return not allowed or "passenger" in allowed
