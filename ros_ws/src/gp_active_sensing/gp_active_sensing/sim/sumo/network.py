"""SUMO's network as the probe needs it, checked against the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gp_active_sensing.errors import MapError, listed
from gp_active_sensing.sim.sumo.session import Session
from gp_active_sensing.topology.base import Topology

__all__ = ["Network"]

_SHOWN = 5


class Network:
    """Lengths and free speeds of the map's edges, and where their lanes lead.

    Args:
        session: the simulation.
        topology: the map.

    Raises:
        MapError: places that are no edges, or closed to cars; moves that no lane allows.
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
