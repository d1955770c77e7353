"""A limit on how many messages of a stream are used, whatever its publisher does."""

from __future__ import annotations

from gp_active_sensing.types import Clock

__all__ = ["RateLimit"]


class RateLimit:
    """Lets so many messages a second through, evenly, and a second's worth of them at once.

    A second's worth, because a node that was busy for a while finds its queue full.

    Args:
        rate: messages a second.
        clock: monotonic seconds.
        burst: most at once; None = a second's worth.
    """

    def __init__(self, rate: float, clock: Clock, burst: float | None = None) -> None:
        self._rate = rate
        self._clock = clock
        self._burst = max(1.0, rate if burst is None else burst)
        self._left = self._burst
        self._then = clock()

    def allows(self) -> bool:
        """Return whether one more message may be used now, and count it if it may."""
        now = self._clock()
        self._left = min(self._burst, self._left + self._rate * (now - self._then))
        self._then = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
