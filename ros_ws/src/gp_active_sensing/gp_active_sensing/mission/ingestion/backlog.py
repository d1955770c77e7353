"""Keep messages from before the node started until all have come, and drop those used before."""

from __future__ import annotations

import bisect
import itertools
import logging
from collections import Counter, deque
from collections.abc import Collection

from gp_active_sensing.mission.inbox import BATCH, Envelope
from gp_active_sensing.records.events import ReadingGated, ReadingUsed
from gp_active_sensing.types import Clock

logger = logging.getLogger(__name__)

CATCH_UP_SECONDS = 2.0
"""Longest gap between missed messages [s, real time]."""
MOST_SECONDS = 30.0
"""Longest time for all missed messages: with differing clocks stamps stay old [s, real time]."""
MOST_WAITING = 50_000
"""Messages of a probe that are kept; when there are so many, they are used without waiting on."""


class Backlog:
    """Keeps the first messages of a probe until all missed ones may have arrived.

    A publisher that keeps its messages hands them to a node that was started again, one topic
    after the other and beside those of now, and on a busy machine slowly. Sorted by their stamps
    they are what was missed: a reading that is used before the poses of its time have come would
    be put where the probe had been before. They are handed on in pieces, so that a command may come
    in between; what comes meanwhile is behind them.
    """

    def __init__(self, clock: Clock, *, wanted: bool) -> None:
        self._clock = clock
        self._until: float | None = None
        self._at_most = 0.0
        self._begun_ns = 0
        """Node's time at the first look: what is older was missed [ns]."""
        self._kept: deque[Envelope] = deque()
        self.going_on = wanted
        """Nothing is to be concluded yet from a reading that is not there."""
        self.hands_on = False
        """Set once the kept messages are sorted and may be used."""

    @property
    def waiting(self) -> int:
        """Messages that are kept."""
        return len(self._kept)

    def pass_on(
        self, messages: Collection[Envelope], clock_ns: int | None, most: int = BATCH
    ) -> Collection[Envelope]:
        """Return what may be used now.

        While what is kept is handed on, as many are returned as came, or `most` when none came.
        """
        if not self.going_on:
            return messages
        self._kept.extend(messages)
        if not self.hands_on:
            if self._more_may_come(messages, clock_ns):
                return ()
            self._sort()
        piece = [self._kept.popleft() for _ in range(min(len(messages) or most, len(self._kept)))]
        self.going_on = self.hands_on = bool(self._kept)
        return piece

    def release(self) -> Collection[Envelope]:
        """Return and drop all stored messages, in order."""
        if not self.hands_on:
            self._sort()
        self.going_on = self.hands_on = False
        taken, self._kept = self._kept, deque()
        return taken

    def _more_may_come(self, messages: Collection[Envelope], clock_ns: int | None) -> bool:
        now = self._clock()
        self._begun_ns = self._begun_ns or clock_ns or 0
        if self._until is None and messages:
            self._until, self._at_most = now + CATCH_UP_SECONDS, now + MOST_SECONDS
        if any(message.what.stamp_ns < self._begun_ns for message in messages):
            self._until = min(now + CATCH_UP_SECONDS, self._at_most)
        if len(self._kept) >= MOST_WAITING:
            logger.warning(
                "%d messages came before all that was missed can have come: no more can be kept. "
                "They are used now; a reading among them whose pose comes later is put where the "
                "probe was before",
                len(self._kept),
            )
            return False
        return self._until is None or now < self._until

    def _sort(self) -> None:
        """Sort the stored messages by stamp.

        All of it waits from now on: a reading goes on waiting for a pose in a later piece.
        """
        now = self._clock()
        found = sorted(self._kept, key=lambda message: message.what.stamp_ns)
        self._kept = deque(message._replace(received=now) for message in found)
        self.hands_on = True


MOST_KNOWN = 10_000
"""Events remembered: no more messages than that are asked of a publisher that keeps them."""


class DuplicateFilter:
    """Filter for readings that were stored before a restart. Each is matched once.

    A reading is known by its stamp and value. Of an averaging window the journal keeps the first
    and the last stamp: everything in between had come by then, and was averaged or rejected.
    The newest events of the journal are remembered, whatever their stamps: a clock may be set.

    Args:
        most: readings, and windows, that are remembered.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._single: Counter[tuple[int, float]] = Counter()
        self._windows: deque[tuple[int, int]] = deque(maxlen=most)
        self._spans: tuple[list[int], list[int]] | None = None
        """Where windows begin, in order, and until when those so far go; None = to be made."""

    def __len__(self) -> int:
        return self._single.total() + len(self._windows)

    def add(self, reading: tuple[int, float]) -> None:
        """Remember a reading by its stamp [ns] and value."""
        self._single[reading] += 1
        if len(self._single) > self._most:
            del self._single[next(iter(self._single))]

    def note(self, event: ReadingUsed | ReadingGated) -> None:
        """Remember the readings of an event.

        One that was gated first and taken back later is in two: it is remembered once.
        """
        reading = event.reading
        if isinstance(event, ReadingUsed) and event.first_ns is not None:
            self._windows.append((event.first_ns, reading.stamp_ns))
            self._spans = None
        elif isinstance(event, ReadingGated) or not event.taken_back:
            self.add((reading.stamp_ns, reading.value))

    def holds(self, stamp_ns: int, value: float) -> bool:
        """Return whether a reading is known; the next one like it is then another one."""
        if not self._single and not self._windows:
            return False
        left = self._single.get((stamp_ns, value), 0)
        if left:
            if left == 1:
                del self._single[stamp_ns, value]
            else:
                self._single[stamp_ns, value] = left - 1
            return True
        if self._spans is None:
            self._spans = _spans(self._windows)
        begins, until = self._spans
        at = bisect.bisect_right(begins, stamp_ns) - 1
        return at >= 0 and stamp_ns <= until[at]


def _spans(windows: Collection[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return where windows begin, in order, and until when those up to each of them go."""
    begins, ends = zip(*sorted(windows), strict=True) if windows else ((), ())
    return list(begins), list(itertools.accumulate(ends, max))
