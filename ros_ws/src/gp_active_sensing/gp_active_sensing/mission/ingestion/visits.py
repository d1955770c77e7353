"""Queue readings until the probe has visited their place: a road, or the point of a cell.

A pose near a crossing may be matched to the wrong road. A reading with this pose must not mark the
wrong road as observed. The readings of a segment therefore wait until the probe has driven the
configured fraction of the segment (`SegmentCoverage`). If the probe leaves the segment earlier, the
readings are rejected and counted as ``partial_visit``.

A point represents the cell around it. A probe on its way to the point takes its first reading at
the border of the cell. If this reading ended the stage, the probe would turn before the point, and
all readings would be half a cell off. The first readings of a place therefore wait until the probe
is near the point, comes no nearer, or has left the cell (`ClosestPoint`). For a sensor with a
delay, the probe's position at this time before the newest pose counts.

A slow sensor must settle at a place before its readings count (`SettlingTimer`). If
`reading.window` is set, the readings of a place within this time are averaged (`AveragingWindow`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gp_active_sensing.types import PlacedReading, Reading

_TOLERANCE = 0.01
"""Amount by which the driven fraction may be below `coverage`, since poses are discrete."""
GAP_SECONDS = 5.0
"""A visit of a segment ends when no pose has matched the segment for this time [s]."""
MOST_PENDING = 10_000
"""Largest number of readings that wait for the visit of one place."""


@dataclass
class PendingReading:
    """Reading that waits to be used, or average of such readings.

    Args:
        reading: the reading, with or without a place.
        received: arrival of the last message that the reading waited for (monotonic seconds).
        count: number of averaged readings.
        first_ns: stamp of the first averaged reading [ns]; None = stamp of `reading`.
        taken_back: reason why a gated reading is used; "" = the reading was not gated.
        mount: position of the sensor on the probe [m]; None = not given with the reading.
        placed: reading that the belief has checked; None = not checked yet, or an average.
    """

    reading: Reading
    received: float
    count: int = 1
    first_ns: int | None = None
    taken_back: str = ""
    mount: tuple[float, ...] | None = None
    placed: PlacedReading | None = None


def _waited(queued: list[PendingReading], received: float) -> list[PendingReading]:
    """Return readings that waited for a message received at a time (monotonic seconds)."""
    for each in queued:
        each.received = max(each.received, received)
    return queued


@dataclass
class _Visit:
    low: float
    high: float
    last_ns: int
    queued: list[PendingReading] = field(default_factory=list)


class SegmentCoverage:
    """Queue of the readings that wait until enough of their road segment is driven.

    Args:
        coverage: fraction of a segment that must be driven.
        follows: returns whether a probe can drive directly from the first place to the second.
    """

    def __init__(self, coverage: float, follows: Callable[[int, int], bool]) -> None:
        self._needed = max(0.0, coverage - _TOLERANCE)
        self._follows = follows
        self._visits: dict[int, _Visit] = {}
        self._current: int | None = None
        self.left: list[PendingReading] = []
        """Readings of visits that were too short; the caller counts and removes these readings."""

    @property
    def waiting(self) -> int:
        """Number of waiting readings."""
        return sum(len(visit.queued) for visit in self._visits.values())

    def clear(self) -> None:
        """End all visits; add their readings to `left`."""
        for visit in self._visits.values():
            self.left.extend(visit.queued)
        self._visits.clear()
        self._current = None

    def drive(
        self, place: int, fraction: float, stamp_ns: int, received: float
    ) -> list[PendingReading]:
        """Set the probe's position on a segment; return the readings that need not wait any longer.

        `fraction` is the position from the segment's start (0) to its end (1).
        """
        ready: list[PendingReading] = []
        before = self._current
        if before is not None and before != place:
            old = self._visits.get(before)
            if old is not None and self._follows(before, place):
                old.high = 1.0  # the segment was driven to its end between two poses
                ready += self._release(old, received)
        self._current = place
        visit = self._visits.get(place)
        if visit is not None and stamp_ns - visit.last_ns > GAP_SECONDS * 1e9:
            self.left.extend(visit.queued)
            visit = None
        if visit is None or visit.low > visit.high:
            entered = before is not None and before != place and self._follows(before, place)
            queued = [] if visit is None else visit.queued
            visit = _Visit(0.0 if entered else fraction, fraction, stamp_ns, queued)
            self._visits[place] = visit
        visit.low, visit.high = min(visit.low, fraction), max(visit.high, fraction)
        visit.last_ns = max(visit.last_ns, stamp_ns)
        ready += self._release(visit, received)
        self._forget(stamp_ns)
        return ready

    def add(self, place: int, queued: PendingReading) -> list[PendingReading]:
        """Add a reading; return the readings of its segment if enough of the segment is driven."""
        visit = self._visits.get(place)
        if visit is None:  # no pose was matched to this place
            visit = self._visits[place] = _Visit(1.0, 0.0, queued.reading.stamp_ns)
        visit.queued.append(queued)
        if len(visit.queued) > MOST_PENDING:
            self.left.append(visit.queued.pop(0))
        return self._release(visit, queued.received)

    def _release(self, visit: _Visit, received: float) -> list[PendingReading]:
        if visit.high - visit.low < self._needed:
            return []
        ready, visit.queued = visit.queued, []
        return _waited(ready, received)

    def _forget(self, now_ns: int) -> None:
        for place, visit in list(self._visits.items()):
            if place != self._current and now_ns - visit.last_ns > GAP_SECONDS * 1e9:
                self.left.extend(visit.queued)
                del self._visits[place]


_NEAR = 0.1
"""Largest distance from a point at which the point counts as reached [spacings of places]."""
_STEP = 0.02
"""Smallest decrease of the distance that counts as an approach [spacings of places]."""
_PATIENCE = 1.0
"""Waiting readings are used when the probe has not come nearer for this time [s]."""
_SILENCE = 3.0
"""Time without a pose after which the probe counts as standing [s]."""
_LONGEST = 60.0
"""Stamps of readings are ignored if they are more than this time after the newest pose [s]."""


@dataclass
class _Approach:
    queued: list[PendingReading]
    since_ns: int
    """Stamp of the pose with the smallest distance so far [ns]."""
    until_ns: int
    """Stamp of the newest reading [ns]."""
    nearest: float = math.inf


class ClosestPoint:
    """Queue for the readings of a point while the probe comes nearer to the point.

    Args:
        spacing: distance between neighbouring places [m].
    """

    def __init__(self, spacing: float) -> None:
        self._near = _NEAR * spacing
        self._step = _STEP * spacing
        self._approaches: dict[int, _Approach] = {}
        self._here: tuple[int | None, float, int] | None = None
        """Newest pose: its place, its distance from the place's point [m] and its stamp [ns]."""

    def __len__(self) -> int:
        return sum(len(approach.queued) for approach in self._approaches.values())

    def add(self, place: int, queued: PendingReading) -> list[PendingReading]:
        """Add a reading; return the readings of its place if they need not wait any longer."""
        stamp_ns = queued.reading.stamp_ns
        approach = self._approaches.setdefault(place, _Approach([], stamp_ns, stamp_ns))
        approach.queued.append(queued)
        approach.until_ns = max(approach.until_ns, stamp_ns)
        if len(approach.queued) > MOST_PENDING:
            return self._release(place, queued.received)
        return [] if self._here is None else self._release_due(place, queued.received)

    def drive(
        self, place: int | None, distance: float, stamp_ns: int, received: float
    ) -> list[PendingReading]:
        """Set the probe's position; return the readings that need not wait any longer.

        The pose is in the cell of `place` (None = in no cell), at a `distance` from the place's
        point [m]. The stamp must not be before the previous stamp.
        """
        self._here = place, distance, stamp_ns
        places = list(self._approaches)
        return [queued for each in places for queued in self._release_due(each, received)]

    def release_at_stop(self, stamp_ns: int, received: float) -> list[PendingReading]:
        """Return the waiting readings of the place at which the probe stands.

        The probe counts as standing if a reading's stamp `stamp_ns` is at least 3 s after the
        newest pose. A stamp more than 60 s after this pose is ignored.
        """
        if self._here is None:
            return []
        place, _, here_ns = self._here
        if place is None or place not in self._approaches:
            return []
        since = 1e-9 * (stamp_ns - here_ns)
        return self._release(place, received) if _SILENCE <= since <= _LONGEST else []

    def restart(self) -> None:
        """Forget the probe's position after a jump of stamps, but keep the waiting readings."""
        self._here = None
        for approach in self._approaches.values():
            approach.nearest, approach.since_ns, approach.until_ns = math.inf, 0, 0

    def pop_all(self) -> list[PendingReading]:
        """Remove and return all waiting readings."""
        self._here = None
        waiting = [queued for approach in self._approaches.values() for queued in approach.queued]
        self._approaches.clear()
        return waiting

    def _release_due(self, place: int, received: float) -> list[PendingReading]:
        """Return the readings of a place if they need not wait any longer."""
        assert self._here is not None
        approach = self._approaches[place]
        here, distance, stamp_ns = self._here
        if approach.until_ns - stamp_ns >= 1e9 * _SILENCE:
            return self._release(place, received)
        if here != place:
            # Before a reading's stamp, the probe may still come to the place.
            return self._release(place, received) if stamp_ns >= approach.until_ns else []
        if distance < approach.nearest - self._step:
            approach.nearest, approach.since_ns = distance, max(approach.since_ns, stamp_ns)
        stands = stamp_ns - approach.since_ns >= 1e9 * _PATIENCE
        leaves = distance > approach.nearest + self._step
        if distance <= self._near or stands or leaves:
            return self._release(place, received)
        return []

    def _release(self, place: int, received: float) -> list[PendingReading]:
        return _waited(self._approaches.pop(place).queued, received)


_KEPT = 64
"""Largest number of visits that are stored for readings that come late."""


class SettlingTimer:
    """Record of a probe's visits, to find out whether a slow sensor has settled.

    The probe is at a point while it is within `radius`. The probe is at a segment while it drives
    on the segment.

    Args:
        seconds: smallest time at a place before readings count [s]; 0 = readings count at once.
        radius: radius around a point [m].
    """

    def __init__(self, seconds: float = 0.0, radius: float = math.inf) -> None:
        self.seconds = seconds
        self.radius = radius
        self._times: deque[tuple[int, int, int]] = deque(maxlen=_KEPT)
        """Place, first stamp and last stamp [ns] of each visit."""
        self._there = False

    def drive(self, place: int | None, apart: float, stamp_ns: int) -> None:
        """Add a pose in the cell of `place` (None = in no cell), `apart` metres from its point."""
        if place is None or apart > self.radius:
            self._there = False
        elif self._there and self._times[-1][0] == place:
            self._times[-1] = (place, self._times[-1][1], stamp_ns)
        else:
            self._times.append((place, stamp_ns, stamp_ns))
            self._there = True

    def has_settled(self, place: int, stamp_ns: int) -> bool:
        """Return whether at a stamp [ns] the probe had been at a place for at least `seconds`."""
        if self.seconds <= 0.0:
            return True
        for number, (there, first_ns, last_ns) in enumerate(reversed(self._times)):
            if there != place or stamp_ns < first_ns:
                continue
            now = number == 0 and self._there  # no later pose is elsewhere
            return (now or stamp_ns <= last_ns) and stamp_ns - first_ns >= 1e9 * self.seconds
        return False

    def clear(self) -> None:
        """Drop all recorded times."""
        self._times.clear()
        self._there = False


class AveragingWindow:
    """Average of the readings of one place within a time window, computed in constant memory.

    The average counts as one reading. Its noise variance is the mean noise variance of the
    readings, if each reading has a variance. The average has the stamp of its last reading.

    Args:
        seconds: length of the window, measured by stamps [s]; 0 = no averaging.
    """

    def __init__(self, seconds: float) -> None:
        self.length_ns = round(1e9 * seconds)
        self._open: PendingReading | None = None

    def __len__(self) -> int:
        return 0 if self._open is None else self._open.count

    @property
    def place(self) -> int | None:
        """Place of the present window; None = the window has no readings."""
        return None if self._open is None else self._open.reading.location

    def add(self, queued: PendingReading) -> list[PendingReading]:
        """Add a reading with a place; return the averages that are complete."""
        if self.length_ns <= 0:
            return [queued]
        stamp_ns, before = queued.reading.stamp_ns, self._open
        if before is None:
            self._open = replace(queued, first_ns=stamp_ns)
            return []
        first_ns, last_ns = _span(before)
        longest = max(last_ns, stamp_ns) - min(first_ns, stamp_ns)
        if queued.reading.location == self.place and longest < self.length_ns:
            self._open = _together(before, queued)
            return []
        if stamp_ns < first_ns:
            return [queued]  # a late reading does not end a newer window
        done = self.close()
        self._open = replace(queued, first_ns=stamp_ns)
        return done

    def pass_time(self, now_ns: int, here: int | None) -> list[PendingReading]:
        """End the window if its time is over or the probe is elsewhere; return its average."""
        if self._open is None:
            return []
        over = now_ns - _span(self._open)[0] >= self.length_ns
        return self.close() if over or here not in (None, self.place) else []

    def close(self) -> list[PendingReading]:
        """Return the average of the present window, if it has readings, and start a new window."""
        done, self._open = self._open, None
        return [] if done is None else [done]


def _span(queued: PendingReading) -> tuple[int, int]:
    last_ns = queued.reading.stamp_ns
    return last_ns if queued.first_ns is None else queued.first_ns, last_ns


def _together(before: PendingReading, queued: PendingReading) -> PendingReading:
    count, new, old = before.count + 1, queued.reading, before.reading
    first_ns, last_ns = _span(before)
    latest = new if new.stamp_ns >= last_ns else old
    variance = None
    if old.noise_variance is not None and new.noise_variance is not None:
        variance = old.noise_variance + (new.noise_variance - old.noise_variance) / count
    unsure = old.position_variance + (new.position_variance - old.position_variance) / count
    height = old.height_variance + (new.height_variance - old.height_variance) / count
    # Differences are exact for equal values and do not overflow.
    value = old.value + (new.value - old.value) / count
    return PendingReading(
        replace(
            latest,
            value=value,
            noise_variance=variance,
            position_variance=unsure,
            height_variance=height,
        ),
        max(before.received, queued.received),
        count=count,
        first_ns=min(first_ns, new.stamp_ns),
        taken_back=before.taken_back or queued.taken_back,
    )
