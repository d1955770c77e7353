"""Hold readings until the pose of their time has arrived."""

from __future__ import annotations

from collections import deque

from gp_active_sensing.mission.ingestion.coverage import PendingReading
from gp_active_sensing.mission.poses import PoseTrack
from gp_active_sensing.mission.step_clock import elapsed

__all__ = ["PoseSynchronizer"]


class PoseSynchronizer:
    """A bounded queue; what is in it is looked at only when something has changed for it.

    How long a reading has waited is asked with the time at which the message came that is being
    used: a pose that lies behind it in the inbox is not late because the mission was.

    Args:
        track: looks up poses.
        seconds: how long a reading waits for a pose that is not older than itself [s, real time].
        capacity: most readings.
    """

    def __init__(self, track: PoseTrack, seconds: float, capacity: int) -> None:
        self.capacity = capacity
        self._track = track
        self._seconds = seconds
        self._fresh: deque[PendingReading] = deque()
        self._patient: deque[PendingReading] = deque()
        """Those that have waited long enough: any pose near enough will do."""

    def __len__(self) -> int:
        return len(self._patient) + len(self._fresh)

    def has_pose(self, held: PendingReading, now: float) -> bool:
        """Return whether no better pose is worth waiting for (`now`: monotonic seconds)."""
        stamp_ns = held.reading.stamp_ns
        if not self._track.may_come(stamp_ns):
            return True
        return self._is_patient(held, now) and self._track.at(stamp_ns) is not None

    def _is_patient(self, held: PendingReading, now: float) -> bool:
        """Return whether a reading has waited long enough for the best pose."""
        return elapsed(held.received, now) >= self._seconds

    def add(self, held: PendingReading) -> PendingReading | None:
        """Let a reading wait; return the oldest one when there is no room for it any more."""
        oldest = None
        if len(self) >= self.capacity:
            oldest = (self._patient or self._fresh).popleft()
        self._fresh.append(held)
        return oldest

    def after_pose(self, now: float) -> list[PendingReading]:
        """Return the readings that a new pose came for."""
        found = [held for held in self._patient if self.has_pose(held, now)]
        if found:
            self._patient = deque(h for h in self._patient if not self.has_pose(h, now))
        ready = [h for h in self._fresh if not self._track.may_come(h.reading.stamp_ns)]
        if ready:
            self._fresh = deque(h for h in self._fresh if self._track.may_come(h.reading.stamp_ns))
        return found + ready

    def after_time(self, now: float) -> list[PendingReading]:
        """Return the readings that have waited long enough for another pose.

        They came in this order, so the first ones have waited the longest. One that has no pose at
        all yet is not looked at again before the next pose.
        """
        ready: list[PendingReading] = []
        while self._fresh and self._is_patient(self._fresh[0], now):
            held = self._fresh.popleft()
            if self.has_pose(held, now):
                ready.append(held)
            else:
                self._patient.append(held)
        return ready

    def take_all(self) -> list[PendingReading]:
        """Return everything that waits, and let nothing wait."""
        everything = [*self._patient, *self._fresh]
        self._patient.clear()
        self._fresh.clear()
        return everything
