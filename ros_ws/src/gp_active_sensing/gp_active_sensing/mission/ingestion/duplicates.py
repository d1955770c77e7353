"""Recognise readings that were used before a restart and are sent again."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter, deque
from collections.abc import Collection

from gp_active_sensing.records.events import ReadingGated, ReadingUsed

__all__ = ["MOST_KNOWN", "DuplicateFilter"]

MOST_KNOWN = 10_000
"""Events remembered: no more messages than that are asked of a publisher that keeps them."""


class DuplicateFilter:
    """Says of a reading whether it is one of those, each of them once.

    A reading is known by its stamp and value. Of an averaging window the journal keeps the first
    and the last stamp: everything in between had come by then, and was averaged or rejected.
    The newest events of the journal are remembered, whatever their stamps: a clock may be set.

    Args:
        most: readings, and windows, that are remembered.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._single: Counter[tuple[int, float]] = Counter()
        self._windows: deque[tuple[int, int]] = deque(maxlen=most)
        self._spans: tuple[list[int], list[int]] | None = None
        """Where windows begin, in order, and until when those so far go; None = to be made."""

    def __len__(self) -> int:
        return self._single.total() + len(self._windows)

    def add(self, reading: tuple[int, float]) -> None:
        """Remember a reading by its stamp [ns] and value."""
        self._single[reading] += 1
        if len(self._single) > self._most:
            del self._single[next(iter(self._single))]

    def note(self, event: ReadingUsed | ReadingGated) -> None:
        """Remember the readings of an event.

        One that was gated first and taken back later is in two: it is remembered once.
        """
        reading = event.reading
        if isinstance(event, ReadingUsed) and event.first_ns is not None:
            self._windows.append((event.first_ns, reading.stamp_ns))
            self._spans = None
        elif isinstance(event, ReadingGated) or not event.taken_back:
            self.add((reading.stamp_ns, reading.value))

    def holds(self, stamp_ns: int, value: float) -> bool:
        """Return whether a reading is known; the next one like it is then another one."""
        if not self._single and not self._windows:
            return False
        left = self._single.get((stamp_ns, value), 0)
        if left:
            if left == 1:
                del self._single[stamp_ns, value]
            else:
                self._single[stamp_ns, value] = left - 1
            return True
        if self._spans is None:
            self._spans = _spans(self._windows)
        begins, until = self._spans
        at = bisect.bisect_right(begins, stamp_ns) - 1
        return at >= 0 and stamp_ns <= until[at]


def _spans(windows: Collection[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return where windows begin, in order, and until when those up to each of them go."""
    begins, ends = zip(*sorted(windows), strict=True) if windows else ((), ())
    return list(begins), list(itertools.accumulate(ends, max))
