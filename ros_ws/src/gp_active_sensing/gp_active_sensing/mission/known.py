"""Readings that a journal says were used before a restart, and that may be sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

__all__ = ["Known"]


class Known:
    """Says of a reading whether it is one of those, each of them once.

    A reading is known by its stamp and value. Of an averaging window the journal keeps the first
    and the last stamp: everything in between had come by then, and was averaged or rejected.
    """

    def __init__(self) -> None:
        self._single: Counter[tuple[int, float]] = Counter()
        self._windows: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return self._single.total() + len(self._windows)

    def add(self, reading: tuple[int, float]) -> None:
        """Remember a reading by its stamp [ns] and value."""
        self._single[reading] += 1

    def note(self, event: Mapping[str, Any]) -> None:
        """Remember the readings of an event ``reading`` or ``gated``.

        One that was gated first and taken back later is in both: it is remembered once.

        Raises:
            KeyError, TypeError, ValueError: the event lacks something.
        """
        stamp_ns, value = int(event["stamp_ns"]), float(event["value"])
        if int(event.get("count", 1)) > 1:
            self._windows.append((int(event["first_ns"]), stamp_ns))
        elif not event.get("taken_back"):
            self.add((stamp_ns, value))

    def forget_before(self, stamp_ns: int) -> None:
        """Forget what is older: it will not be sent again."""
        self._single = Counter({k: n for k, n in self._single.items() if k[0] >= stamp_ns})
        self._windows = [window for window in self._windows if window[1] >= stamp_ns]

    def holds(self, stamp_ns: int, value: float) -> bool:
        """Say whether a reading is known; the next one like it is then another one."""
        if not self._single and not self._windows:
            return False
        left = self._single.get((stamp_ns, value), 0)
        if left:
            if left == 1:
                del self._single[stamp_ns, value]
            else:
                self._single[stamp_ns, value] = left - 1
            return True
        return any(first <= stamp_ns <= last for first, last in self._windows)
