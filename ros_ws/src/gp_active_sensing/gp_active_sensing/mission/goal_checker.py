"""Check whether the probe has arrived, and how long it has waited there for a reading."""

from __future__ import annotations

import math

from gp_active_sensing.mission.poses import PoseTrack
from gp_active_sensing.topology.base import Topology

__all__ = ["GoalChecker"]


class GoalChecker:
    """Watches the probe at its waypoint.

    Args:
        topology: where the waypoints are.
        track: where the probe is.
        radius: distance to the waypoint at which it has arrived [m].
        timeout: how long to wait for a reading [s].
    """

    def __init__(
        self, topology: Topology, track: PoseTrack, *, radius: float, timeout: float
    ) -> None:
        self.radius = radius
        self.timeout = timeout
        self._topology = topology
        self._track = track
        self._since_ns: int | None = None

    def forget(self) -> None:
        """Wait again."""
        self._since_ns = None

    def left(self, now_ns: int) -> float:
        """Return how long it still waits; all of the time where it does not wait yet [s].

        Args:
            now_ns: time of the node's clock.
        """
        waited = 0.0 if self._since_ns is None else 1e-9 * (now_ns - self._since_ns)
        return self.timeout - waited if waited < self.timeout else self.timeout

    def overdue(self, target: int, now_ns: int) -> bool:
        """Return whether it has waited long enough; the next wait then begins.

        Args:
            target: the place being driven to, which has no reading yet.
            now_ns: time of the node's clock.
        """
        if not self.inside(target):
            self._since_ns = None
            return False
        if self._since_ns is None:
            self._since_ns = now_ns
        if now_ns - self._since_ns < 1e9 * self.timeout:
            return False
        self._since_ns = now_ns
        return True

    def inside(self, target: int) -> bool:
        """Return whether the probe is where the waypoint of a place is."""
        pose = self._track.newest
        if pose is None:
            return False
        x, y, _ = self._topology.goals[target]
        return math.hypot(pose.x - x, pose.y - y) <= self.radius
