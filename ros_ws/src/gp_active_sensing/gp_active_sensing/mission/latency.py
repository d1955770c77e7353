"""Median and 99th percentile of processing times."""

from __future__ import annotations

from collections import deque

import numpy as np

__all__ = ["Latency"]


class Latency:
    """Durations of one kind, the latest of them.

    Args:
        capacity: how many are kept.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        self._seconds: deque[float] = deque(maxlen=capacity)
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
