"""Does a probe come nearer to its waypoint? One that does not cannot get there."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.mission.intake import Intake
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Plan

__all__ = ["Progress"]


class Progress:
    """Watches the way that is left of a drive.

    Args:
        topology: the map.
        intake: knows where the probe is.
    """

    def __init__(self, topology: Topology, intake: Intake) -> None:
        self._topology = topology
        self._intake = intake
        self._least = math.inf
        self._since_ns: int | None = None

    def forget(self) -> None:
        """Begin anew, with another waypoint."""
        self._least, self._since_ns = math.inf, None

    def stalled(self, plan: Plan, now_ns: int, *, step: float, patience: float) -> bool:
        """Say whether the probe has come no nearer for too long.

        Args:
            plan: the drive.
            now_ns: time of the node's clock.
            step: how much nearer counts [m].
            patience: how long it may take [s].
        """
        left = self._left(plan)
        if self._since_ns is None or left <= self._least - step:
            self._least = min(left, self._least)
            self._since_ns = now_ns
            return False
        return now_ns - self._since_ns >= 1e9 * patience

    def _left(self, plan: Plan) -> float:
        """Return what is left of the way, from waypoint to waypoint of its places [m].

        A probe that is on none of them has all of them before it.
        """
        pose, here = self._intake.track.newest, self._intake.here
        if pose is None:
            return math.inf
        ends = self._topology.goals[list(plan.path), :2]
        passed = plan.path.index(here.place) if here is not None and here.place in plan.path else 0
        steps = np.diff(ends[passed:], axis=0)
        nearest = math.hypot(pose.x - ends[passed, 0], pose.y - ends[passed, 1])
        return nearest + float(np.hypot(steps[:, 0], steps[:, 1]).sum())
