"""Messages from before a node was there come stream by stream; they are used in their order."""

from __future__ import annotations

from collections.abc import Collection

from gp_active_sensing.mission.inbox import Arrival
from gp_active_sensing.types import Clock

__all__ = ["CATCH_UP_SECONDS", "CatchUp"]

CATCH_UP_SECONDS = 2.0
"""How long what was missed may take to come, from the first message on [s, real time]."""


class CatchUp:
    """Keeps the first messages of a probe until all that was missed may have come.

    A publisher that keeps its messages hands them to a node that was started again, one topic
    after the other and beside those of now. Sorted by their stamps they are what was missed.

    Args:
        clock: monotonic seconds.
        wanted: the node asks for them at all.
    """

    def __init__(self, clock: Clock, *, wanted: bool) -> None:
        self._clock = clock
        self._until: float | None = None
        self._held: list[Arrival] = []
        self.going_on = wanted
        """Nothing is to be concluded yet from a reading that is not there."""

    @property
    def waiting(self) -> int:
        """Messages that are kept."""
        return len(self._held)

    def pass_on(self, messages: Collection[Arrival]) -> Collection[Arrival]:
        """Return what may be used now."""
        if not self.going_on:
            return messages
        now = self._clock()
        if self._until is None and messages:
            self._until = now + CATCH_UP_SECONDS
        self._held.extend(messages)
        if self._until is None or now < self._until:
            return ()
        return self.release()

    def release(self) -> Collection[Arrival]:
        """Return everything that is kept, in the order of the stamps, and keep nothing any more."""
        self.going_on = False
        held, self._held = self._held, []
        now = self._clock()
        held.sort(key=lambda message: message.what.stamp_ns)
        return [message._replace(received=now) for message in held]
