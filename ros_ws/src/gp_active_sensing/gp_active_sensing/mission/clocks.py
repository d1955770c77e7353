"""Clocks of a mission: one that stands still during a step, jumps of a clock, latencies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from gp_active_sensing.types import Clock

_DIGITS = 6
"""Digits of seconds that a trace keeps."""


class StepClock:
    """Monotonic seconds, the same from the beginning of a step to its end.

    What a mission makes of its messages depends on how long they have waited. On a busy machine a
    step takes long, and a clock that went on would say more than the trace of the mission does:
    its replay would then put a reading elsewhere.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: float | None = None

    def __call__(self) -> float:
        """Return the time of the step, or now between two steps."""
        return self._clock() if self._at is None else self._at

    @contextmanager
    def standing(self) -> Iterator[float]:
        """Stop the clock for one step, while the mission's lock is held."""
        self._at = noted(self._clock())
        try:
            yield self._at
        finally:
            self._at = None


def noted(seconds: float) -> float:
    """Return a time, rounded as in a trace [s]."""
    return round(seconds, _DIGITS)


def elapsed(since: float, now: float) -> float:
    """Return a waiting time [s], rounded as in a trace."""
    return round(now - since, _DIGITS)


class ClockMonitor:
    """Compares two clocks each time the mission looks at one of them.

    The node's clock is read between two readings of the monotonic one. These two bound the time
    that passed, even on a busy machine. The node's clock stepped if it advanced by more than the
    upper bound. Simulated time may run at any speed and is not checked.

    Args:
        now_ns: the node's clock; 0 = there is no time yet.
        simulated: whether the node's clock follows a simulation or a bag.
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        clock: Clock,
        simulated: Callable[[], bool] = lambda: False,
    ) -> None:
        self._now_ns = now_ns
        self._clock = clock
        self._simulated = simulated
        self._before: tuple[int, float] | None = None
        """The node's clock at the last look, and the monotonic one just before that."""

    def look(self) -> tuple[int, int]:
        """Return the time of the node's clock, and how far it stepped forward since the last look.

        Returns:
            Time and step [ns]: what the clock went on by beyond the time that passed at the most;
            0 when it did not, the first time, and of simulated time.
        """
        began = self._clock()
        now_ns = self._now_ns()
        ended = self._clock()
        before, self._before = self._before, None
        if now_ns <= 0 or self._simulated():
            return now_ns, 0
        self._before = now_ns, began
        if before is None:
            return now_ns, 0
        passed_ns = round(1e9 * (ended - before[1]))
        return now_ns, max(0, now_ns - before[0] - passed_ns)


class Latency:
    """Durations of one kind, the latest of them."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=100_000)
        self.count = 0

    def add(self, seconds: float) -> None:
        """Add a duration [s]."""
        self.count += 1
        self._seconds.append(seconds)

    def summary(self) -> dict[str, float | int | None]:
        """Return count, and median, p99 and maximum in milliseconds (None without any)."""
        if not self._seconds:
            return {"count": 0, "median_ms": None, "p99_ms": None, "max_ms": None}
        ms = 1e3 * np.array(self._seconds)
        return {
            "count": self.count,
            "median_ms": float(np.median(ms)),
            "p99_ms": float(np.percentile(ms, 99)),
            "max_ms": float(ms.max()),
        }


_TICK = 1e-9


class VirtualClock:
    """A monotonic clock that is set; a little later each time it is looked at.

    So that what happened one after the other keeps its order, as with a real clock.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def set(self, seconds: float) -> None:
        """Set it; never back."""
        self._seconds = max(self._seconds, seconds)

    def __call__(self) -> float:
        """Return the time [s]."""
        self._seconds += _TICK
        return self._seconds
