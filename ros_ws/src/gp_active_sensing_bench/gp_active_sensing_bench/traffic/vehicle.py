"""Vehicle in SUMO that follows a path of edges and measures the time on each edge."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gp_active_sensing_bench.traffic.session import Session

logger = logging.getLogger(__name__)

_NAME = "gp_active_sensing_probe"
_STRAIGHTEST = "sRLrlt"
"""SUMO's letters for the direction of a turn, from straight to U-turn."""
_MOST_ACCELERATION = 5.0
"""Upper bound of the vehicle's acceleration [m/s²]."""


@dataclass(frozen=True)
class Visit:
    """Completed edge of the path.

    Args:
        index: index of the edge in the path.
        seconds: simulated time at which the vehicle left the edge [s].
        speed: length of the edge divided by the time on the edge [m/s]; None = the vehicle did not
            drive the whole edge, such as after a teleport.
    """

    index: int
    seconds: float
    speed: float | None


class ProbeVehicle:
    """Vehicle that drives paths in SUMO.

    Without a path, the vehicle is parked off the road at the end of its last path. If a new path
    begins with the expected next edge, the vehicle continues without a stop. Otherwise the vehicle
    enters the first edge of the path at the next gap of the traffic.

    SUMO's default model has a constant speed during a step. The times of entering and leaving an
    edge are therefore exact.

    Args:
        lengths: length of each edge [m].
        onward: next edges of each edge, with SUMO's letter for the direction of the turn.
    """

    def __init__(
        self,
        session: Session,
        lengths: Mapping[str, float],
        onward: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._session, self._lengths, self._onward = session, lengths, onward
        self._path: tuple[str, ...] = ()
        self._after: str | None = None
        self._next = 0
        """Index of the first edge of the path that is not completed."""
        self._entered: float | None = None
        """Time at which the vehicle entered the current edge at its start [s]; None = unknown."""
        self._spoiled = False
        self._offset = 0
        """Index of an edge in SUMO's route minus its index in the path."""
        self._name: str | None = None
        self._count = 0
        self._seen: tuple[float, str, float, float] | None = None
        self.notes: list[str] = []
        """Messages about unusual events of the vehicle, in order."""
        self._kind = _vehicle_type(session)

    @property
    def done(self) -> bool:
        """True if all edges of the path are completed."""
        return self._next >= len(self._path)

    @property
    def progress(self) -> float:
        """Number of driven edges of the path, including the fraction of the current edge."""
        if self.done or self._seen is None:
            return float(self._next)
        _, road, position, _ = self._seen
        edge = self._path[self._next]
        if road != edge:
            return float(self._next)
        return self._next + min(1.0, position / self._lengths[edge])

    def drive(self, path: Sequence[str], then: Sequence[str] = ()) -> None:
        """Set a new path that begins at the end of the last path.

        Args:
            path: ids of consecutive edges.
            then: likely edges after the path. The vehicle queues in a lane for the first likely
                edge.
        """
        before, expected = self._path, self._after
        self._path = tuple(path)
        self._after = self._expected(self._path[-1], then)
        self._next, self._spoiled = 0, False
        if self._name is not None and before and expected == self._path[0]:
            if self._go_on(before[-1]):
                return
        self.park()

    def park(self) -> None:
        """Remove the vehicle from the road."""
        if self._name is not None:
            with contextlib.suppress(self._session.api.TraCIException):  # already removed
                self._session.api.vehicle.remove(self._name)
        self._forget()

    def tow(self) -> tuple[Visit, ...]:
        """Put the vehicle at the end of its path. Return the skipped edges, which have no speed."""
        now = self._session.time
        left = tuple(Visit(k, now, None) for k in range(self._next, len(self._path)))
        self.park()
        self._next = len(self._path)
        return left

    def step(self) -> tuple[Visit, ...]:
        """Simulate one step. Return the edges that the vehicle has completed, in order."""
        if self.done:
            self.park()
            self._session.step()
            return ()
        if self._name is None:
            self._enter()
        self._session.step()
        return self._observe()

    def _enter(self) -> None:
        api = self._session.api
        self._count += 1
        name = f"{_NAME}.{self._count}"
        rest = [*self._path[self._next :], *(() if self._after is None else (self._after,))]
        api.route.add(name, rest)
        api.vehicle.add(
            name,
            name,
            typeID=self._kind,
            depart="now",
            departLane="best",
            departPos="base",
            departSpeed="max",
        )
        self._name, self._offset, self._seen, self._entered = name, -self._next, None, None

    def _go_on(self, last: str) -> bool:
        """Continue from the edge `last` without a stop. Return False if that is not possible."""
        api, name = self._session.api, self._name
        rest = [*self._path, *(() if self._after is None else (self._after,))]
        on_it = self._seen is not None and self._seen[1] == self._path[0]
        try:
            api.vehicle.setRoute(name, rest if on_it else [last, *rest])
            # SUMO may keep driven edges at the beginning of the new route.
            index = int(api.vehicle.getRouteIndex(name))
        except api.TraCIException as error:
            logger.debug("the probe cannot go on to %s at once: %s", self._path[0], error)
            return False
        self._offset = index if on_it else index + 1
        if not on_it:
            self._entered = None
        return True

    def _observe(self) -> tuple[Visit, ...]:
        """Record the position of the vehicle after a step. Return the completed edges."""
        api, name = self._session.api, self._name
        now, dt = self._session.time, self._session.dt
        if name in api.simulation.getStartingTeleportIDList():
            self._log(f"stood on {self._path[self._next]} and was teleported on")
            self._spoiled = True
        if name in api.simulation.getCollidingVehiclesIDList():
            self._log(f"collided on {self._path[self._next]}")
        if name not in api.vehicle.getIDList():
            if name in api.simulation.getPendingVehicles():
                return ()  # waits for a gap in the traffic
            return self._vanished(now)
        road = str(api.vehicle.getRoadID(name))
        if not road:
            return ()  # during a teleport
        position, speed = (
            float(api.vehicle.getLanePosition(name)),
            float(api.vehicle.getSpeed(name)),
        )
        index = int(api.vehicle.getRouteIndex(name)) - self._offset
        if not road.startswith(":") and not self._is_at(index, road):
            self._log(f"left its path for {road} and begins again")
            self.park()
            return ()
        seen, self._seen = self._seen, (now, road, position, speed)
        visits: list[Visit] = []
        current = index + 1 if road.startswith(":") else index
        while self._next < min(current, len(self._path)):
            visits.append(self._leave(now, dt, seen, speed))
        if not road.startswith(":") and (seen is None or seen[1] != road):
            # The vehicle entered during this step, or was inserted or teleported before.
            self._entered = now - min(dt, position / speed) if speed > 0.0 else now
            if self._spoiled and index == self._next and seen is not None:
                self._entered = None
            self._spoiled = False
        return tuple(visits)

    def _is_at(self, index: int, road: str) -> bool:
        onward = [*self._path, *(() if self._after is None else (self._after,))]
        return 0 <= index < len(onward) and onward[index] == road

    def _leave(
        self, now: float, dt: float, seen: tuple[float, str, float, float] | None, speed: float
    ) -> Visit:
        """Complete the current edge, whose end the vehicle passed during the last step."""
        edge = self._path[self._next]
        length = self._lengths[edge]
        left = now
        if seen is not None and seen[1] == edge and speed > 0.0:
            left = min(now, max(seen[0], now - dt) + max(0.0, length - seen[2]) / speed)
        value: float | None = None
        if not self._spoiled:
            if seen is not None and seen[1] == edge and self._entered is not None:
                value = length / max(left - self._entered, 1e-9)
            elif seen is not None and seen[1] != edge and speed > 0.0:
                value = speed  # the whole edge in one step
        visit = Visit(self._next, left, value)
        self._next += 1
        self._entered = None
        return visit

    def _vanished(self, now: float) -> tuple[Visit, ...]:
        """Handle a vehicle that SUMO has removed. Return the completed edges."""
        seen, spoiled = self._seen, self._spoiled
        if seen is not None and not spoiled and self._was_at_the_end(seen):
            visits = []
            while not self.done:
                visits.append(self._leave(now, self._session.dt, seen, seen[3]))
            self._forget()
            return tuple(visits)
        self._forget()
        if seen is None:
            self._log(f"found no way onto {self._path[self._next]} and tries again")
            return ()
        edge = self._path[self._next]
        self._log(f"was taken off the road at {edge}; it enters again where its path goes on")
        visit = Visit(self._next, now, None)
        self._next += 1
        return (visit,)

    def _was_at_the_end(self, seen: tuple[float, str, float, float]) -> bool:
        """Return whether the vehicle could drive the remaining path within one step."""
        _, road, position, speed = seen
        left = sum(self._lengths[edge] for edge in self._path[self._next :])
        if road == self._path[self._next]:
            left -= position
        dt = self._session.dt
        return left <= (speed + _MOST_ACCELERATION * dt) * dt

    def _forget(self) -> None:
        self._name = self._seen = self._entered = None
        self._spoiled = False

    def _log(self, what: str) -> None:
        note = f"{self._session.time:g} s: the probe {what}"
        self.notes.append(note)
        logger.warning("SUMO, %s", note)

    def _expected(self, edge: str, then: Sequence[str]) -> str | None:
        """Return the edge that probably follows the path's last `edge`; None = no edge follows."""
        onward = self._onward.get(edge, {})
        if then and then[0] in onward:
            return then[0]
        rank = {letter: k for k, letter in enumerate(_STRAIGHTEST)}
        return min(onward, key=lambda e: (rank.get(onward[e], len(rank)), e), default=None)


def _vehicle_type(session: Session) -> str:
    """Define the vehicle's type: SUMO's car without random speed and without rerouting."""
    api: Any = session.api
    api.vehicletype.copy("DEFAULT_VEHTYPE", _NAME)
    api.vehicletype.setSpeedFactor(_NAME, 1.0)
    api.vehicletype.setSpeedDeviation(_NAME, 0.0)
    api.vehicletype.setParameter(_NAME, "has.rerouting.device", "false")
    return _NAME
