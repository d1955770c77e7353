"""Queue the messages that a restarted node missed, and drop readings that were already used."""

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
"""The queue is released when no missed message has arrived for this time [s, real time]."""
MOST_SECONDS = 30.0
"""Longest wait for missed messages [s, real time], even while more of them arrive."""
MOST_WAITING = 50_000
"""A probe's queue counts as full and is released at this number of messages."""


class Backlog:
    """Queue that holds a probe's first messages until all missed messages have arrived.

    After a restart of the node, publishers with transient local durability send their stored
    messages, one topic after the other. New messages arrive in between. The queue sorts the
    messages by stamp, so that a reading follows the poses with earlier stamps. The queue releases
    messages in batches, so that commands can take effect between two batches. Messages that arrive
    during the release are appended to the queue without sorting.

    Args:
        wanted: True = messages may have been missed.
    """

    def __init__(self, clock: Clock, *, wanted: bool) -> None:
        self._clock = clock
        self._until: float | None = None
        self._at_most = 0.0
        self._begun_ns = 0
        """Node's time at the first `pass_on` [ns]; messages with earlier stamps were missed."""
        self._kept: deque[Envelope] = deque()
        self.active = wanted
        """True until all missed messages are released; until then no stage of the probe ends."""
        self.releasing = False
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
        if not self.active:
            return messages
        self._kept.extend(messages)
        if not self.releasing:
            if self._expects_more(messages, clock_ns):
                return ()
            self._sort()
        piece = [self._kept.popleft() for _ in range(min(len(messages) or most, len(self._kept)))]
        self.active = self.releasing = bool(self._kept)
        return piece

    def release(self) -> Collection[Envelope]:
        """Remove and return all queued messages, sorted by stamp."""
        if not self.releasing:
            self._sort()
        self.active = self.releasing = False
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

        A reading's wait for its pose, which may be in a later batch, begins at this time.
        """
        now = self._clock()
        found = sorted(self._kept, key=lambda message: message.what.stamp_ns)
        self._kept = deque(message._replace(received=now) for message in found)
        self.releasing = True


MOST_KNOWN = 10_000
"""Largest number of readings that a `DuplicateFilter` stores."""


class DuplicateFilter:
    """Filter for readings that were used before a restart and are sent again.

    Two readings are the same if they have the same stamp and value. For an averaging window, the
    journal has only the first and the last stamp, so that all readings between these stamps match.
    A full filter drops the readings that came first in the journal. These may not have the oldest
    stamps, since stamps are out of order after a clock was set back.

    Args:
        most: largest number of stored readings, and of stored windows.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._single: Counter[tuple[int, float]] = Counter()
        self._windows: deque[tuple[int, int]] = deque(maxlen=most)
        self._spans: tuple[list[int], list[int]] | None = None
        """First stamps of the stored windows, sorted, and the running maximum of their last stamps.

        None = a window was added since these stamps were computed.
        """

    def __len__(self) -> int:
        return self._single.total() + len(self._windows)

    def add(self, reading: tuple[int, float]) -> None:
        """Store a reading's stamp [ns] and value."""
        self._single[reading] += 1
        if len(self._single) > self._most:
            del self._single[next(iter(self._single))]

    def note(self, event: ReadingUsed | ReadingGated) -> None:
        """Store the readings of an event; store a gated reading once, even if it is used later."""
        reading = event.reading
        if isinstance(event, ReadingUsed) and event.first_ns is not None:
            self._windows.append((event.first_ns, reading.stamp_ns))
            self._spans = None
        elif isinstance(event, ReadingGated) or not event.taken_back:
            self.add((reading.stamp_ns, reading.value))

    def discard(self, stamp_ns: int, value: float) -> bool:
        """Return whether a reading is stored or in a stored window; remove a stored reading."""
        reading = stamp_ns, value
        if self._single[reading]:
            self._single[reading] -= 1
            if not self._single[reading]:
                del self._single[reading]
            return True
        if not self._windows:
            return False
        if self._spans is None:
            first, last = zip(*sorted(self._windows), strict=True)
            self._spans = list(first), list(itertools.accumulate(last, max))
        begins, until = self._spans
        at = bisect.bisect_right(begins, stamp_ns) - 1
        return at >= 0 and stamp_ns <= until[at]
