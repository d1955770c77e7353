"""The newest map that came, for a thread that takes it when it has time. No ROS in here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from gp_active_sensing.types import Clock

__all__ = ["MapFeed"]

T = TypeVar("T")


class MapFeed(Generic[T]):
    """Keeps the newest message, and hands it on no more often than once in a while.

    A map is made again in tenths of a second and its publisher may send ten a second: those in
    between are never looked at.

    Args:
        period: least time between two messages that are handed on [s].
        clock: monotonic seconds.
    """

    def __init__(self, period: float, clock: Clock) -> None:
        self.received = 0
        self.passed_over = 0
        """Messages that a newer one came after before they were taken."""
        self._period, self._clock = period, clock
        self._newest: T | None = None
        self._taken_at: float | None = None
        self._changed = threading.Condition()
        self._open = True

    def put(self, message: T) -> None:
        """Leave a message; O(1)."""
        with self._changed:
            self.received += 1
            self.passed_over += self._newest is not None
            self._newest = message
            self._changed.notify_all()

    def take(self, wait: Callable[[threading.Condition, float], object] | None = None) -> T | None:
        """Return the newest message once it is due; None once `close` was called.

        Args:
            wait: waits so many seconds, or until something comes; None = as a condition does.
        """
        waits = wait or (lambda changed, seconds: changed.wait(seconds))
        with self._changed:
            while self._open:
                left = self._left()
                if self._newest is not None and left <= 0.0:
                    message, self._newest = self._newest, None
                    self._taken_at = self._clock()
                    return message
                waits(self._changed, left if self._newest is not None else 1.0)
            return None

    def _left(self) -> float:
        if self._taken_at is None:
            return 0.0
        return self._taken_at + self._period - self._clock()

    def close(self) -> None:
        """Hand nothing on any more; those who wait are let go."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
