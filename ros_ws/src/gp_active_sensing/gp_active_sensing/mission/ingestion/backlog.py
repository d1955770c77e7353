"""Queue messages from before the node's start, and drop readings that were already used."""

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
"""Time without a missed message after which the queue is released [s, real time]."""
MOST_SECONDS = 30.0
"""Longest wait for missed messages [s, real time], even if all stamps look old."""
MOST_WAITING = 50_000
"""Largest number of queued messages of a probe; a full queue is released."""


class Backlog:
    """Queue of a probe's first messages until all missed messages have arrived.

    After a restart of the node, publishers with transient local durability send stored messages,
    topic by topic. New messages come in between. The queue sorts the messages by stamp, so that a
    reading comes after the poses of its time. The queue releases messages in batches, so that
    commands can take effect between two batches. Later messages are released after the sorted
    messages.

    Args:
        wanted: True = messages may have been missed.
    """

    def __init__(self, clock: Clock, *, wanted: bool) -> None:
        self._clock = clock
        self._until: float | None = None
        self._at_most = 0.0
        self._begun_ns = 0
        """Time of the node's clock at the first call [ns]; older messages were missed."""
        self._kept: deque[Envelope] = deque()
        self.going_on = wanted
        """True until all missed messages are released; until then no visit counts as missed."""
        self.hands_on = False
        """True when the queue is sorted and releases messages."""

    @property
    def waiting(self) -> int:
        """Number of queued messages."""
        return len(self._kept)

    def pass_on(
        self, messages: Collection[Envelope], clock_ns: int | None, most: int = BATCH
    ) -> Collection[Envelope]:
        """Queue messages; return the messages that may be used now.

        During the release, a call returns as many messages as it receives, or `most` if it receives
        none.
        """
        if not self.going_on:
            return messages
        self._kept.extend(messages)
        if not self.hands_on:
            if self._expects_more(messages, clock_ns):
                return ()
            self._sort()
        piece = [self._kept.popleft() for _ in range(min(len(messages) or most, len(self._kept)))]
        self.going_on = self.hands_on = bool(self._kept)
        return piece

    def release(self) -> Collection[Envelope]:
        """Remove and return all queued messages, sorted by stamp."""
        if not self.hands_on:
            self._sort()
        self.going_on = self.hands_on = False
        taken, self._kept = self._kept, deque()
        return taken

    def _expects_more(self, messages: Collection[Envelope], clock_ns: int | None) -> bool:
        now = self._clock()
        self._begun_ns = self._begun_ns or clock_ns or 0
        if self._until is None and messages:
            self._until, self._at_most = now + CATCH_UP_SECONDS, now + MOST_SECONDS
        if any(message.what.stamp_ns < self._begun_ns for message in messages):
            self._until = min(now + CATCH_UP_SECONDS, self._at_most)
        if len(self._kept) >= MOST_WAITING:
            logger.warning(
                "the queue for messages missed during a restart is full (%d messages): they are "
                "used now. A reading whose pose comes later is placed at an earlier position of "
                "the probe",
                len(self._kept),
            )
            return False
        return self._until is None or now < self._until

    def _sort(self) -> None:
        """Sort the queue by stamp, and set all arrival times to the present time.

        A reading therefore still waits if its pose is in a later batch.
        """
        now = self._clock()
        found = sorted(self._kept, key=lambda message: message.what.stamp_ns)
        self._kept = deque(message._replace(received=now) for message in found)
        self.hands_on = True


MOST_KNOWN = 10_000
"""Largest number of stored readings, and of messages requested from a publisher."""


class DuplicateFilter:
    """Filter for readings that were used before a restart. Each stored reading is matched once.

    Readings with the same stamp and value are the same. For an averaging window the journal has the
    first and last stamp; all readings between these stamps match. The filter stores the newest
    events in the order of the journal, since a clock that was set back disorders the stamps.

    Args:
        most: largest number of stored readings, and of stored windows.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._single: Counter[tuple[int, float]] = Counter()
        self._windows: deque[tuple[int, int]] = deque(maxlen=most)
        self._spans: tuple[list[int], list[int]] | None = None
        """Sorted first stamps of windows, and running maximum of last stamps; None = outdated."""

    def __len__(self) -> int:
        return self._single.total() + len(self._windows)

    def add(self, reading: tuple[int, float]) -> None:
        """Store a reading's stamp [ns] and value."""
        self._single[reading] += 1
        if len(self._single) > self._most:
            del self._single[next(iter(self._single))]

    def note(self, event: ReadingUsed | ReadingGated) -> None:
        """Store the readings of an event; a gated reading that was used later is stored once."""
        reading = event.reading
        if isinstance(event, ReadingUsed) and event.first_ns is not None:
            self._windows.append((event.first_ns, reading.stamp_ns))
            self._spans = None
        elif isinstance(event, ReadingGated) or not event.taken_back:
            self.add((reading.stamp_ns, reading.value))

    def discard(self, stamp_ns: int, value: float) -> bool:
        """Return whether a reading is stored; if so, remove the reading."""
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
    begins, ends = zip(*sorted(windows), strict=True) if windows else ((), ())
    return list(begins), list(itertools.accumulate(ends, max))
