"""When does a reading of a point count? When the probe is as near to it as it gets.

A place on a plane stands for the cell about its point. A probe that comes into the cell on its way
to the point gives its first reading at the border, farther off than any other. If that one ended
the stage, the probe would be sent on before it has been at any place, and each of its readings
would be half a cell off on the side that it comes from. So the first readings of a place wait until
the probe is near its point, comes no nearer, or has left the cell.
"""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.mission.visits import MOST_HELD, Held

__all__ = ["Nearing"]

_NEAR = 0.1
"""So near is near enough, in distances between neighbouring places."""
_STEP = 0.02
"""A probe comes nearer if it does by so much, in the same unit."""
_PATIENCE = 1.0
"""How long a probe may come no nearer before its readings count [s]."""


@dataclass
class _Approach:
    held: list[Held]
    nearest: float
    since_ns: int
    """When it was nearest first."""


class Nearing:
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

    def hold(self, place: int, distance: float, held: Held) -> list[Held]:
        """Take a reading; return it (and those before it) if it counts now.

        Args:
            place: a point.
            distance: from it to where the reading was taken [m].
            held: the reading.
        """
        stamp_ns = held.reading.stamp_ns
        approach = self._approaches.setdefault(place, _Approach([], distance, stamp_ns))
        approach.held.append(held)
        if len(approach.held) > MOST_HELD:
            return self._release(place, held.received)
        ready = self._look(place, distance, stamp_ns, held.received)
        if not ready and self._here is not None and self._here[2] > stamp_ns:
            ready = self.drive(*self._here, held.received)  # it has been driving on since
        return ready

    def drive(
        self, place: int | None, distance: float, stamp_ns: int, received: float
    ) -> list[Held]:
        """Take note of where the probe is now; return the readings that count now.

        Args:
            place: whose cell it is in; None = no place's.
            distance: to that place's point [m].
            stamp_ns: when.
            received: when the pose came (monotonic seconds).
        """
        if self._here is None or stamp_ns >= self._here[2]:
            self._here = place, distance, stamp_ns
        left = [other for other in self._approaches if other != place]
        ready = [held for other in left for held in self._release(other, received)]
        if place is not None and place in self._approaches:
            ready += self._look(place, distance, stamp_ns, received)
        return ready

    def take_all(self) -> list[Held]:
        """Return everything that waits, and let nothing wait."""
        self._here = None
        waiting = [held for approach in self._approaches.values() for held in approach.held]
        self._approaches.clear()
        return waiting

    def _look(self, place: int, distance: float, stamp_ns: int, received: float) -> list[Held]:
        approach = self._approaches[place]
        if distance < approach.nearest - self._step:
            approach.nearest, approach.since_ns = distance, max(approach.since_ns, stamp_ns)
        stands = stamp_ns - approach.since_ns >= 1e9 * _PATIENCE
        leaves = distance > approach.nearest + self._step
        if distance <= self._near or stands or leaves:
            return self._release(place, received)
        return []

    def _release(self, place: int, received: float) -> list[Held]:
        ready = self._approaches.pop(place).held
        for held in ready:
            held.received = max(held.received, received)
        return ready
