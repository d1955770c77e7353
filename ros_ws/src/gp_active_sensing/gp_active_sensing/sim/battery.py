"""A simulated battery: empty after the metres or seconds of a sortie, changed at the end place."""

from __future__ import annotations

import math

from gp_active_sensing.engine.config import SortieConfig
from gp_active_sensing.sim.robot import Observation
from gp_active_sensing.topology.base import Topology

__all__ = ["CHANGE_SECONDS", "SimulatedBattery", "home_of"]

CHANGE_SECONDS = 60.0
"""Time that a simulated change of batteries takes [s]."""


def home_of(topology: Topology, end: int | str | None) -> tuple[float, float] | None:
    """Return where batteries are changed [m]; None = where the probe begins."""
    if end is None or (isinstance(end, str) and end not in topology.names):
        return None
    place = topology.names.index(end) if isinstance(end, str) else end
    x, y, _ = topology.goals[place].tolist()
    return x, y


class SimulatedBattery:
    """The battery of a simulated probe.

    Args:
        sortie: what it lasts for, metres or seconds.
        home: where it is changed [m]; None = where the probe is first.
    """

    def __init__(self, sortie: SortieConfig, home: tuple[float, float] | None = None) -> None:
        self._sortie, self._home = sortie, home
        self._last: tuple[int, tuple[float, ...]] | None = None
        self._metres = self._seconds = self._stood = 0.0

    @property
    def used(self) -> float:
        """Part of what it lasts for that was used; more than 1 = it was empty on the way."""
        lasts = self._sortie.metres or math.inf, self._sortie.seconds or math.inf
        return max(self._metres / lasts[0], self._seconds / lasts[1])

    @property
    def level(self) -> float:
        """Charge, 1 = full to 0 = empty."""
        return max(0.0, 1.0 - self.used)

    def fill(self) -> None:
        """Change it."""
        self._metres = self._seconds = self._stood = 0.0

    def step(self, moment: Observation) -> None:
        """Use what a step takes; change it once the probe has stood at its end place for long."""
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
