"""Keep messages from before the node started until all have come; then use them in time order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection

from gp_active_sensing.mission.inbox import BATCH, Envelope
from gp_active_sensing.types import Clock

__all__ = ["CATCH_UP_SECONDS", "MOST_HELD", "MOST_SECONDS", "Backlog"]

logger = logging.getLogger(__name__)

CATCH_UP_SECONDS = 2.0
"""How long the next of what was missed may take to come [s, real time]."""
MOST_SECONDS = 30.0
"""How long all of it may take: where clocks differ, stamps stay old [s, real time]."""
MOST_HELD = 50_000
"""Messages of a probe that are kept; when there are so many, they are used without waiting on."""


class Backlog:
    """Keeps the first messages of a probe until all that was missed may have come.

    A publisher that keeps its messages hands them to a node that was started again, one topic
    after the other and beside those of now, and on a busy machine slowly. Sorted by their stamps
    they are what was missed: a reading that is used before the poses of its time have come would
    be put where the probe had been before. They are handed on in pieces, so that a command may come
    in between; what comes meanwhile is behind them.

    Args:
        clock: monotonic seconds.
        wanted: the node asks for them at all.
    """

    def __init__(self, clock: Clock, *, wanted: bool) -> None:
        self._clock = clock
        self._until: float | None = None
        self._at_most = 0.0
        self._begun_ns = 0
        """Node's time at the first look: what is older was missed [ns]."""
        self._held: deque[Envelope] = deque()
        self.going_on = wanted
        """Nothing is to be concluded yet from a reading that is not there."""
        self.hands_on = False
        """What is kept is sorted, and the next piece may be taken."""

    @property
    def waiting(self) -> int:
        """Messages that are kept."""
        return len(self._held)

    def pass_on(
        self, messages: Collection[Envelope], clock_ns: int | None, most: int = BATCH
    ) -> Collection[Envelope]:
        """Return what may be used now.

        Args:
            messages: what came; while what is kept is handed on, as many are returned.
            clock_ns: the node's time, None while it is not known [ns].
            most: messages that are handed on when none came.
        """
        if not self.going_on:
            return messages
        self._held.extend(messages)
        if not self.hands_on:
            if self._more_may_come(messages, clock_ns):
                return ()
            self._sort()
        piece = [self._held.popleft() for _ in range(min(len(messages) or most, len(self._held)))]
        self.going_on = self.hands_on = bool(self._held)
        return piece

    def release(self) -> Collection[Envelope]:
        """Return everything that is kept, in its order, and keep nothing any more."""
        if not self.hands_on:
            self._sort()
        self.going_on = self.hands_on = False
        held, self._held = self._held, deque()
        return held

    def _more_may_come(self, messages: Collection[Envelope], clock_ns: int | None) -> bool:
        now = self._clock()
        self._begun_ns = self._begun_ns or clock_ns or 0
        if self._until is None and messages:
            self._until, self._at_most = now + CATCH_UP_SECONDS, now + MOST_SECONDS
        if any(message.what.stamp_ns < self._begun_ns for message in messages):
            self._until = min(now + CATCH_UP_SECONDS, self._at_most)
        if len(self._held) >= MOST_HELD:
            logger.warning(
                "%d messages came before all that was missed can have come: no more can be kept. "
                "They are used now; a reading among them whose pose comes later is put where the "
                "probe was before",
                len(self._held),
            )
            return False
        return self._until is None or now < self._until

    def _sort(self) -> None:
        """Put what is kept in the order of the stamps.

        All of it waits from now on: a reading goes on waiting for a pose in a later piece.
        """
        now = self._clock()
        found = sorted(self._held, key=lambda message: message.what.stamp_ns)
        self._held = deque(message._replace(received=now) for message in found)
        self.hands_on = True
