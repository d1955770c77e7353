"""Time at the present place, so that a slow sensor can settle before its readings count."""

from __future__ import annotations

import math
from collections import deque

__all__ = ["SettlingTimer"]

_KEPT = 64
"""Most times at places that are remembered, for readings that come late."""


class SettlingTimer:
    """Takes note of when the probe was where.

    At a point it is within a radius of it, at a road segment while it is on it.

    Args:
        seconds: how long it has to have been there; 0 = not at all.
        radius: of a point [m].
    """

    def __init__(self, seconds: float = 0.0, radius: float = math.inf) -> None:
        self.seconds = seconds
        self.radius = radius
        self._times: deque[tuple[int, int, int]] = deque(maxlen=_KEPT)
        """Place, first and last stamp there [ns]."""
        self._there = False

    def drive(self, place: int | None, apart: float, stamp_ns: int) -> None:
        """Add a pose.

        Args:
            place: that it belongs to; None = none.
            apart: distance from the place's point [m], 0 on a road.
            stamp_ns: when.
        """
        if place is None or apart > self.radius:
            self._there = False
        elif self._there and self._times[-1][0] == place:
            self._times[-1] = (place, self._times[-1][1], stamp_ns)
        else:
            self._times.append((place, stamp_ns, stamp_ns))
            self._there = True

    def has_settled(self, place: int, stamp_ns: int) -> bool:
        """Whether the probe had been at a place for long enough at some time."""
        if self.seconds <= 0.0:
            return True
        for number, (there, first_ns, last_ns) in enumerate(reversed(self._times)):
            if there != place or stamp_ns < first_ns:
                continue
            now = number == 0 and self._there  # and no pose says that it has left since
            return (now or stamp_ns <= last_ns) and stamp_ns - first_ns >= 1e9 * self.seconds
        return False

    def clear(self) -> None:
        """Forget everything (the clock went back)."""
        self._times.clear()
        self._there = False
