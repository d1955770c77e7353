"""Current time of a belief, and when each place was last read."""

from __future__ import annotations

import logging
import math

import numpy as np

from gp_active_sensing.types import BoolArray, FloatArray

__all__ = ["VisitTimes"]

logger = logging.getLogger(__name__)


class VisitTimes:
    """The latest time heard of, and when a probe last read each place.

    Args:
        n: number of places.
        matters: whether time is of consequence, so that it is worth saying when it goes back.
    """

    def __init__(self, n: int, *, matters: bool) -> None:
        self.visited: BoolArray = np.zeros(n, dtype=np.bool_)
        self.newest: FloatArray = np.full(n, -math.inf)
        self.now = -math.inf
        self._matters = matters
        self._said = False

    def copy(self) -> VisitTimes:
        """Return an independent copy."""
        other = VisitTimes.__new__(VisitTimes)
        other.__dict__.update(self.__dict__)
        other.visited, other.newest = self.visited.copy(), self.newest.copy()
        return other

    def see(self, place: int, seconds: float, *, expert: bool) -> None:
        """Record a reading; an expert's leaves its place unvisited."""
        self.now = max(self.now, seconds)
        if not expert:
            self.visited[place] = True
            self.newest[place] = max(self.newest[place], seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass; it never goes back.

        Raises:
            ValueError: the time is not finite.
        """
        if not math.isfinite(seconds):
            msg = f"expected a time in seconds, got {seconds}"
            raise ValueError(msg)
        if seconds < self.now and self._matters and not self._said:
            self._said = True
            logger.info(
                "the time given is %.3g s behind the newest reading, or behind what it was: it is "
                "taken as standing still until then (said once)",
                self.now - seconds,
            )
        self.now = max(self.now, seconds)

    def seen_within(self, seconds: float | None) -> BoolArray:
        """(n,) places visited less than so long ago; None = ever."""
        if seconds is None:
            return np.array(self.visited)
        return np.asarray(self.visited & (self.now - self.newest < seconds))
