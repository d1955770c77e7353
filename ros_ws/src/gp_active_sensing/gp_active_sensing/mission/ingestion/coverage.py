"""Hold the readings of a road segment until enough of it was driven.

A pose near a crossing may be matched to the wrong road for a moment; a reading taken there must not
mark that road as observed. So readings of a segment are held until the probe has driven the
configured part of it, and counted as ``partial_visit`` when it leaves without having done so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gp_active_sensing.types import Reading

__all__ = ["PendingReading", "SegmentCoverage"]

_TOLERANCE = 0.01
"""Part of a segment by which a visit may fall short (poses come at intervals)."""
GAP_SECONDS = 5.0
"""A segment left for less than this is still being visited (a pose was matched elsewhere)."""
MOST_HELD = 10_000
"""Most readings held for one segment (a probe may stand on it for hours); the oldest go."""


@dataclass
class PendingReading:
    """A reading with its place, and when the last message it waited for came.

    Args:
        reading: with its place, once that is known.
        received: monotonic seconds.
        count: how many readings it is the average of.
        first_ns: stamp of the first of these; None = its own.
        taken_back: why it counts after all, although it was gated; "" = it never was.
    """

    reading: Reading
    received: float
    count: int = 1
    first_ns: int | None = None
    taken_back: str = ""


@dataclass
class _Visit:
    low: float
    high: float
    last_ns: int
    held: list[PendingReading] = field(default_factory=list)


class SegmentCoverage:
    """What was driven of which segment, and the readings that wait for more.

    Args:
        coverage: part of a segment that must be driven.
        follows: says whether a legal move leads from the first place to the second.
    """

    def __init__(self, coverage: float, follows: Callable[[int, int], bool]) -> None:
        self._needed = max(0.0, coverage - _TOLERANCE)
        self._follows = follows
        self._visits: dict[int, _Visit] = {}
        self._current: int | None = None
        self.left: list[PendingReading] = []
        """Readings of visits that were too short, to be counted by anyone who takes them."""

    @property
    def waiting(self) -> int:
        """Number of readings held."""
        return sum(len(visit.held) for visit in self._visits.values())

    def clear(self) -> None:
        """End all visits; the readings they hold are left over."""
        for visit in self._visits.values():
            self.left.extend(visit.held)
        self._visits.clear()
        self._current = None

    def drive(
        self, place: int, fraction: float, stamp_ns: int, received: float
    ) -> list[PendingReading]:
        """Record that the probe is somewhere; return the readings that count now."""
        ready: list[PendingReading] = []
        before = self._current
        if before is not None and before != place:
            old = self._visits.get(before)
            if old is not None and self._follows(before, place):
                old.high = 1.0  # between two poses it drove on to the end
                ready += self._release(old, received)
        self._current = place
        visit = self._visits.get(place)
        if visit is not None and stamp_ns - visit.last_ns > GAP_SECONDS * 1e9:
            self.left.extend(visit.held)
            visit = None
        if visit is None or visit.low > visit.high:
            entered = before is not None and before != place and self._follows(before, place)
            held = [] if visit is None else visit.held
            visit = _Visit(0.0 if entered else fraction, fraction, stamp_ns, held)
            self._visits[place] = visit
        visit.low, visit.high = min(visit.low, fraction), max(visit.high, fraction)
        visit.last_ns = max(visit.last_ns, stamp_ns)
        ready += self._release(visit, received)
        self._forget(stamp_ns)
        return ready

    def hold(self, place: int, reading: Reading, received: float) -> list[PendingReading]:
        """Take a reading; return it (and those before it) if the visit is long enough."""
        held = PendingReading(reading, received)
        visit = self._visits.get(place)
        if visit is None:  # no pose was matched to this place: a reading in between
            visit = self._visits[place] = _Visit(1.0, 0.0, reading.stamp_ns)
        visit.held.append(held)
        if len(visit.held) > MOST_HELD:
            self.left.append(visit.held.pop(0))
        return self._release(visit, received)

    def _release(self, visit: _Visit, received: float) -> list[PendingReading]:
        if visit.high - visit.low < self._needed or not visit.held:
            return []
        ready = visit.held
        visit.held = []
        for held in ready:
            held.received = max(held.received, received)
        return ready

    def _forget(self, now_ns: int) -> None:
        for place, visit in list(self._visits.items()):
            if place != self._current and now_ns - visit.last_ns > GAP_SECONDS * 1e9:
                self.left.extend(visit.held)
                del self._visits[place]
