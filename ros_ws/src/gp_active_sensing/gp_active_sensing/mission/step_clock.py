"""Clock that stands still during one step of a mission."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gp_active_sensing.types import Clock

__all__ = ["StepClock", "elapsed", "noted"]

_DIGITS = 6
"""Of seconds: what a trace keeps of a time."""


class StepClock:
    """Monotonic seconds, the same from the beginning of a step to its end.

    What a mission makes of its messages depends on how long they have waited. On a busy machine a
    step takes long, and a clock that went on would say more than the trace of the mission does:
    its replay would then put a reading elsewhere.

    Args:
        clock: monotonic seconds that go on.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: float | None = None

    def __call__(self) -> float:
        """Return the time of the step, or now between two steps."""
        return self._clock() if self._at is None else self._at

    @contextmanager
    def standing(self) -> Iterator[float]:
        """Stand still from now on; the mission's lock is held."""
        self._at = noted(self._clock())
        try:
            yield self._at
        finally:
            self._at = None


def noted(seconds: float) -> float:
    """Return a time to the digits that a trace keeps of it [s]."""
    return round(seconds, _DIGITS)


def elapsed(since: float, now: float) -> float:
    """Return how long something has waited [s], to the same digits."""
    return round(now - since, _DIGITS)
