"""Hold the readings of a place until the probe is as near to its point as it gets.

A place on a plane stands for the cell about its point. A probe that comes into the cell on its way
to the point gives its first reading at the border, farther off than any other. If that one ended
the stage, the probe would be sent on before it has been at any place, and each of its readings
would be half a cell off on the side that it comes from. So the first readings of a place wait until
the probe is near its point, comes no nearer, or has left the cell.

Only poses say how near it is, each as of the time for which its readings have come: behind its
stamp by what these are late. A reading is nowhere else than a pose, and its stamp lies between two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gp_active_sensing.mission.ingestion.coverage import MOST_HELD, PendingReading

__all__ = ["ClosestPoint"]

_NEAR = 0.1
"""So near is near enough, in distances between neighbouring places."""
_STEP = 0.02
"""A probe comes nearer if it does by so much, in the same unit."""
_PATIENCE = 1.0
"""How long a probe may come no nearer before its readings count [s]."""
_SILENCE = 3.0
"""How long after the newest pose a reading takes the probe to stand where that was [s]: some
publishers say nothing more of one that does."""


_LONGEST = 60.0
"""A reading stamped later than that after the newest pose is taken for one of a wrong clock [s]."""


@dataclass
class _Approach:
    held: list[PendingReading]
    since_ns: int
    """When it was nearest first."""
    until_ns: int
    """Stamp of the newest reading."""
    nearest: float = math.inf


class ClosestPoint:
    """Readings of points that wait for the probe to come nearer.

    Args:
        spacing: distance between neighbouring places [m].
    """

    def __init__(self, spacing: float) -> None:
        self._near = _NEAR * spacing
        self._step = _STEP * spacing
        self._approaches: dict[int, _Approach] = {}
        self._here: tuple[int | None, float, int] | None = None
        """Place, distance from its point and stamp of the newest pose."""

    def __len__(self) -> int:
        return sum(len(approach.held) for approach in self._approaches.values())

    def hold(self, place: int, held: PendingReading) -> list[PendingReading]:
        """Take a reading; return it (and those before it) if it counts now.

        Args:
            place: a point.
            held: the reading.
        """
        stamp_ns = held.reading.stamp_ns
        approach = self._approaches.setdefault(place, _Approach([], stamp_ns, stamp_ns))
        approach.held.append(held)
        approach.until_ns = max(approach.until_ns, stamp_ns)
        if len(approach.held) > MOST_HELD:
            return self._release(place, held.received)
        return [] if self._here is None else self._look(place, held.received)

    def drive(
        self, place: int | None, distance: float, stamp_ns: int, received: float
    ) -> list[PendingReading]:
        """Set where the probe is now; return the readings that count now.

        Args:
            place: whose cell it is in; None = no place's.
            distance: to that place's point [m].
            stamp_ns: when; not before the last one.
            received: when the pose came (monotonic seconds).
        """
        self._here = place, distance, stamp_ns
        return [held for each in list(self._approaches) for held in self._look(each, received)]

    def stand(self, stamp_ns: int, received: float) -> list[PendingReading]:
        """Use a reading that has no pose as a sign that time has passed since the newest one.

        Args:
            stamp_ns: of the reading; one far ahead of the poses says nothing.
            received: when it came (monotonic seconds).

        Returns:
            The readings of the place where the probe seems to stand, if it has for long enough.
        """
        if self._here is None:
            return []
        place, _, here_ns = self._here
        if place is None or place not in self._approaches:
            return []
        since = 1e-9 * (stamp_ns - here_ns)
        return self._release(place, received) if _SILENCE <= since <= _LONGEST else []

    def restart(self) -> None:
        """Forget where the probe was: the stamps of what follows are others. Readings wait on."""
        self._here = None
        for approach in self._approaches.values():
            approach.nearest, approach.since_ns, approach.until_ns = math.inf, 0, 0

    def take_all(self) -> list[PendingReading]:
        """Return everything that waits, and let nothing wait."""
        self._here = None
        waiting = [held for approach in self._approaches.values() for held in approach.held]
        self._approaches.clear()
        return waiting

    def _look(self, place: int, received: float) -> list[PendingReading]:
        """Return the readings of a place if the probe has done what they wait for."""
        assert self._here is not None
        approach = self._approaches[place]
        here, distance, stamp_ns = self._here
        if approach.until_ns - stamp_ns >= 1e9 * _SILENCE:
            return self._release(place, received)
        if here != place:
            # Else it was not there yet: a reading may be newer than the pose.
            return self._release(place, received) if stamp_ns >= approach.until_ns else []
        if distance < approach.nearest - self._step:
            approach.nearest, approach.since_ns = distance, max(approach.since_ns, stamp_ns)
        stands = stamp_ns - approach.since_ns >= 1e9 * _PATIENCE
        leaves = distance > approach.nearest + self._step
        if distance <= self._near or stands or leaves:
            return self._release(place, received)
        return []

    def _release(self, place: int, received: float) -> list[PendingReading]:
        ready = self._approaches.pop(place).held
        for held in ready:
            held.received = max(held.received, received)
        return ready
