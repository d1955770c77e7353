"""Clocks and latencies of a mission."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from gp_active_sensing.types import Clock

_DIGITS = 6
"""Number of decimals of seconds in an input log."""


class StepClock:
    """Monotonic clock whose time stands still during a step of the mission.

    The use of a message depends on its waiting time by this clock. The input log stores only one
    time for each step. The clock therefore shows this time during the whole step. A replay then
    assigns readings to the same places.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: float | None = None

    def __call__(self) -> float:
        """Return the time of the current step [s]; between steps, the present time."""
        return self._clock() if self._at is None else self._at

    @contextmanager
    def standing(self) -> Iterator[float]:
        """Stop the clock for one step, under the mission's lock; yield the time of the step [s]."""
        self._at = noted(self._clock())
        try:
            yield self._at
        finally:
            self._at = None


def noted(seconds: float) -> float:
    """Round a time [s] to the decimals of an input log."""
    return round(seconds, _DIGITS)


def elapsed(since: float, now: float) -> float:
    """Return the time from `since` to `now` [s], rounded to the decimals of an input log."""
    return round(now - since, _DIGITS)


class ClockMonitor:
    """Detector of forward jumps of the node's clock.

    The monotonic clock gives an upper bound on the time since the last call. The node's clock has
    jumped if it advanced by more than this bound. Simulated time is not checked, since it may run
    at any speed.

    Args:
        now_ns: returns the time of the node's clock [ns]; 0 = the clock has not started.
        simulated: returns whether the node's clock follows a simulation or a bag.
    """

    def __init__(
        self, now_ns: Callable[[], int], clock: Clock, simulated: Callable[[], bool] = lambda: False
    ) -> None:
        self._now_ns = now_ns
        self._clock = clock
        self._simulated = simulated
        self._before: tuple[int, float] | None = None
        """Last time of the node's clock [ns], and the monotonic time just before it [s]."""

    def read(self) -> tuple[int, int]:
        """Return the time of the node's clock, and its jump since the last call [ns].

        The jump is the advance of the node's clock minus that of the monotonic clock, at least 0.
        It is 0 at the first call and for simulated time.
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
    """Statistics of the most recent durations of one kind."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=100_000)
        self.count = 0

    def add(self, seconds: float) -> None:
        """Add a duration [s]."""
        self.count += 1
        self._seconds.append(seconds)

    def summary(self) -> dict[str, float | int | None]:
        """Return count, median, 99th percentile and maximum [ms]; None without durations."""
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
    """Monotonic clock that a replay can set.

    Each call returns a slightly later time, so that consecutive events keep their order.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def set(self, seconds: float) -> None:
        """Set the time [s]; an earlier time is ignored."""
        self._seconds = max(self._seconds, seconds)

    def __call__(self) -> float:
        """Return the time [s]."""
        self._seconds += _TICK
        return self._seconds
