"""Comparison of SUMO's network with the map, and mean speed of the cars on each edge."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from gp_active_sensing.errors import MapError, listed
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray
from gp_active_sensing_bench.traffic.session import Session

_BUCKETS = 10


class EdgeSpeeds:
    """Mean speed of the cars on each edge during a sliding time window.

    The mean speed is ``Σ n v Δt / Σ n Δt`` over the steps of the window, for n cars with mean speed
    v. Standing cars are included, as in SUMO's edgeData. An edge without a car in the window keeps
    the last mean speed. Before the first car, an edge has the speed of an empty edge.

    Args:
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
        """Add the last step of the simulation to the mean speeds. The cost is O(number of lanes).

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


_SHOWN = 5


class Network:
    """Lengths, speeds on empty edges, and lane connections of the map's edges.

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
