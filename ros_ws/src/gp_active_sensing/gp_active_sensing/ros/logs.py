"""Python's logging -> the ROS log: what the core says appears where the node's words do."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rclpy.logging import LoggingSeverity

from gp_active_sensing.mission.plan_ahead import DeferredLogs

__all__ = ["Throttle", "forward_logs"]

PACKAGE = "gp_active_sensing"


REPEAT_SECONDS = 1.0
"""A warning or error that comes more often (a sensor at 1 kHz) is said once in this time."""


class _RosHandler(logging.Handler):
    def __init__(self, target: Any, clock: Callable[[], float]) -> None:
        super().__init__()
        self.addFilter(DeferredLogs())
        self._target = target
        self._throttle = Throttle(REPEAT_SECONDS, clock)
        self._unsaid: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if record.levelno >= logging.WARNING:
            place = f"{record.name}:{record.lineno}"
            if not self._throttle.ready(place):
                self._unsaid[place] += 1
                return
            if more := self._unsaid.pop(place, 0):
                text += f" (and {more} more like this in between)"
        # One call a level: rclpy refuses a call site whose severity changes.
        if record.levelno >= logging.ERROR:
            self._target.error(text)
        elif record.levelno >= logging.WARNING:
            self._target.warning(text)
        elif record.levelno >= logging.INFO:
            self._target.info(text)
        else:
            self._target.debug(text)


def forward_logs(target: Any, clock: Callable[[], float] = time.monotonic) -> Callable[[], None]:
    """Send the package's log records to a ROS logger, repeated warnings once a second.

    Args:
        target: what ``node.get_logger()`` returned.
        clock: monotonic seconds.

    Returns:
        A function that undoes it.
    """
    source = logging.getLogger(PACKAGE)
    handler = _RosHandler(target, clock)
    level, propagate = source.level, source.propagate
    source.addHandler(handler)
    shown = target.is_enabled_for(LoggingSeverity.DEBUG)
    source.setLevel(logging.DEBUG if shown else logging.INFO)
    source.propagate = False

    def undo() -> None:
        source.removeHandler(handler)
        source.setLevel(level)
        source.propagate = propagate

    return undo


class Throttle:
    """Lets a message of each kind through once in a while.

    Args:
        period: least time between two messages of one kind [s].
        clock: monotonic seconds.
    """

    def __init__(self, period: float, clock: Callable[[], float]) -> None:
        self._period = period
        self._clock = clock
        self._last: dict[str, float] = {}

    def ready(self, kind: str) -> bool:
        """Return whether a message of this kind is due, and record that it was said."""
        now = self._clock()
        last = self._last.get(kind)
        if last is not None and now - last < self._period:
            return False
        self._last[kind] = now
        return True
