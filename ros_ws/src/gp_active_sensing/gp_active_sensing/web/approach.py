"""Distance, direction and time to the place that a probe is sent to."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gp_active_sensing.topology import Topology
from gp_active_sensing.types import Plan

_MEMORY_SECONDS = 30.0
"""Time over which the speed is averaged [s]."""
_STANDING = 0.2
"""Share of the planned speed below which a probe is standing."""


@dataclass
class SpeedLog:
    """SpeedLog of the probes, from their odometers."""

    _marks: dict[str, deque[tuple[int, float]]] = field(default_factory=dict)

    def take(self, name: str, stamp_ns: int, odometer: float) -> None:
        """Take in an odometer [m] at a time [ns]."""
        marks = self._marks.setdefault(name, deque())
        if marks and stamp_ns < marks[-1][0]:
            marks.clear()
        marks.append((stamp_ns, odometer))
        while marks[-1][0] - marks[0][0] > 1e9 * _MEMORY_SECONDS:
            marks.popleft()

    def of(self, name: str, plan: Plan) -> float | None:
        """Return the speed of a probe; that of its plan while it stands; None = unknown [m/s]."""
        cost = plan.cost
        planned = cost.metres / cost.seconds if cost.seconds > 0.0 else 0.0
        marks = self._marks.get(name, deque())
        seconds = 1e-9 * (marks[-1][0] - marks[0][0]) if marks else 0.0
        driven = (marks[-1][1] - marks[0][1]) / seconds if seconds > 1.0 else 0.0
        return (driven if driven > _STANDING * planned else planned) or None


@dataclass(frozen=True)
class Approach:
    """The rest of a way.

    Args:
        metres: along the way.
        bearing: direction of its end, clockwise from north, or from the map's y axis [degree].
        seconds: until arrival; None = unknown.
        north: the bearing is from true north, since the map has a datum.
    """

    metres: float
    bearing: float
    seconds: float | None
    north: bool

    @classmethod
    def along(
        cls, topology: Topology, path: Sequence[int], at: Sequence[float], speed: float | None
    ) -> Approach:
        """Return the rest of the way through the places of a path from a position [m]."""
        goals = topology.goals[list(path), :2]
        here = np.asarray(at, dtype=np.float64)[:2]
        starts, ways = goals[:-1], np.diff(goals, axis=0)
        lengths = np.linalg.norm(ways, axis=1)
        metres = float(np.linalg.norm(goals[0] - here) + lengths.sum())
        if len(goals) > 1:  # some of it may be driven: from the nearest point of the way
            squares = np.maximum(lengths**2, 1e-12)
            shares = np.clip(np.sum((here - starts) * ways, axis=1) / squares, 0.0, 1.0)
            off = np.linalg.norm(starts + shares[:, None] * ways - here, axis=1)
            leg = int(np.argmin(off))
            metres = float(off[leg] + (1.0 - shares[leg]) * lengths[leg] + lengths[leg + 1 :].sum())
        east, north = (goals[-1] - here).tolist()
        bearing = math.degrees(math.atan2(east, north)) % 360.0
        seconds = None if speed is None else metres / speed
        return cls(metres, bearing, seconds, topology.datum is not None)

    def told(self) -> dict[str, Any]:
        """Return it as plain data."""
        seconds = None if self.seconds is None else round(self.seconds, 1)
        return {
            "metres": round(self.metres, 1), "bearing": round(self.bearing, 1),
            "seconds": seconds, "north": self.north,
        }  # fmt: skip
