"""Detect jumps of the node's clock by comparing it with a monotonic clock."""

from __future__ import annotations

from collections.abc import Callable

from gp_active_sensing.types import Clock

__all__ = ["ClockMonitor"]


class ClockMonitor:
    """Compares two clocks each time the mission looks at one of them.

    The node's clock is read between two readings of the monotonic one, so that it is known between
    which bounds the difference of the two lies, however long the machine took over it: what cannot
    be explained by that is a step. Simulated time may go at any speed and is not judged.

    Args:
        now_ns: the node's clock; 0 = there is no time yet.
        clock: monotonic seconds.
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
