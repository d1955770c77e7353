"""Robust estimate of how much a sensor's readings differ from one to the next."""

from __future__ import annotations

from collections import deque
from statistics import median

__all__ = ["NoiseLevel"]

_BLOCK = 10
"""Differences that are summed up as one."""
_KEPT = 101
"""Blocks kept; the oldest go: a sensor may change."""
_MEDIAN = (1.0 - 2.0 / (9.0 * _BLOCK)) ** 3
"""Median of the mean of so many squares of standard normal numbers, by Wilson and Hilferty."""


class NoiseLevel:
    """Variance of a reading by its difference to the one before it.

    The differences are summed up in blocks, and the median of the blocks counts. So a glitch ("no
    data" as -999), which spoils a block or two, is of no consequence; and readings of a coarse
    scale, of which most are equal, still say how much they vary.
    """

    def __init__(self) -> None:
        self._blocks: deque[float] = deque(maxlen=_KEPT)
        self._begun = 0
        self._sum = 0.0
        self._variance = 0.0

    def add(self, difference: float) -> None:
        """Take the difference between two readings that follow each other."""
        self._begun += 1
        self._sum += difference * difference
        if self._begun < _BLOCK:
            return
        self._blocks.append(self._sum / _BLOCK)
        self._begun, self._sum = 0, 0.0
        # Of two blocks the smaller one: the other may have the glitch.
        ordered = sorted(self._blocks)
        middle = min(ordered) if len(ordered) < 3 else median(ordered)
        self._variance = 0.5 * middle / _MEDIAN

    @property
    def variance(self) -> float:
        """Variance of one reading; 0 = not known yet."""
        return self._variance if self._blocks else 0.5 * self._sum / max(self._begun, 1)
