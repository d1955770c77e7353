"""Values that are known for slots of time: which counts when, and what stands in empty cells."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.types import BoolArray, FloatArray

__all__ = [
    "Slot",
    "SlotTable",
    "check_slots",
    "fill_from_other_slots",
    "slot_in",
    "with_ends",
]

_TIMES = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)_(\d+(?:\.\d+)?)(?![\d.])")


class Slot(NamedTuple):
    """A stretch of time of a table's clock [s]."""

    begin: float
    end: float


@dataclass(frozen=True)
class SlotTable:
    """Values of n places in k slots of time.

    Args:
        slots: (k,) in order.
        values: (k, n), all finite.
        linear: between the middles of the slots values change linearly; otherwise a slot's values
            hold until the next begins.
        start: the table's clock when the mission begins [s].
        known: (k, n) which of the values the table itself has; the others stand in for want of
            one. None = all.
    """

    slots: tuple[Slot, ...]
    values: FloatArray
    linear: bool
    start: float
    known: BoolArray | None = None

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) values at a time of the mission [s]; before and after, those of the ends.

        O(n + k).
        """
        k, after, share = self._between(seconds)
        if not share:
            return np.asarray(self.values[k])
        return np.asarray((1.0 - share) * self.values[k] + share * self.values[after])

    def known_at(self, seconds: float) -> BoolArray:
        """Return the (n,) places whose value at a time of the mission [s] the table itself has.

        Between two slots: those of which it has both values. O(n + k).
        """
        if self.known is None:
            return np.ones(self.values.shape[1], dtype=np.bool_)
        k, after, share = self._between(seconds)
        return np.asarray(self.known[k] & self.known[after]) if share else self.known[k].copy()

    def _between(self, seconds: float) -> tuple[int, int, float]:
        """Return the slots before and after a time of the mission, and the share of the second."""
        time = self.start + seconds
        last = len(self.slots) - 1
        if not self.linear:
            k = min(max(int(np.searchsorted(self._begins, time, side="right")) - 1, 0), last)
            return k, k, 0.0
        where = float(np.interp(time, self._middles, np.arange(last + 1)))
        k = min(int(where), max(last - 1, 0))
        return k, min(k + 1, last), where - k

    @cached_property
    def _begins(self) -> FloatArray:
        return np.array([slot.begin for slot in self.slots])

    @cached_property
    def _middles(self) -> FloatArray:
        return np.array([0.5 * (slot.begin + slot.end) for slot in self.slots])


def slot_in(name: str) -> Slot | None:
    """Return the slot that a column's name says (v_900_1800: 900 to 1800 s), None without one."""
    found = _TIMES.search(name)
    if found is None:
        return None
    return Slot(float(found.group(1)), float(found.group(2)))


def check_slots(slots: Sequence[Slot], source: str) -> None:
    """Do nothing for slots in order that do not overlap.

    Raises:
        MapError: otherwise; the message says which.
    """
    for slot in slots:
        if not slot.end > slot.begin:
            msg = f"{source}: a time slot from {slot.begin:g} to {slot.end:g} s has no length"
            raise MapError(msg)
    for one, two in pairwise(slots):
        if two.begin < one.end:
            msg = (
                f"{source}: expected time slots in order that do not overlap, got "
                f"{one.begin:g} to {one.end:g} s and then {two.begin:g} to {two.end:g} s"
            )
            raise MapError(msg)


def fill_from_other_slots(slots: Sequence[Slot], values: FloatArray) -> tuple[FloatArray, int]:
    """Return values (k, n) without the gaps (NaN) that another slot of the same place can fill.

    The slot whose middle is nearest stands in, the earlier one of two equally near. A place
    without any value keeps its NaN.

    Returns:
        The values, and how many cells were filled.
    """
    filled = np.array(values, dtype=np.float64)
    empty = np.isnan(filled)
    middles = np.array([0.5 * (slot.begin + slot.end) for slot in slots])
    for place in np.flatnonzero(empty.any(axis=0) & ~empty.all(axis=0)).tolist():
        gaps, known = np.flatnonzero(empty[:, place]), np.flatnonzero(~empty[:, place])
        after = np.searchsorted(known, gaps)
        earlier = known[np.maximum(after - 1, 0)]
        later = known[np.minimum(after, known.size - 1)]
        is_later = np.abs(middles[later] - middles[gaps]) < np.abs(middles[earlier] - middles[gaps])
        filled[gaps, place] = values[np.where(is_later, later, earlier), place]
    return filled, int(np.count_nonzero(empty & ~np.isnan(filled)))


def with_ends(begins: Sequence[float]) -> tuple[Slot, ...]:
    """Return slots that each end where the next begins; the last is as long as the one before."""
    ends = [*begins[1:], 2.0 * begins[-1] - begins[-2] if len(begins) > 1 else math.inf]
    return tuple(Slot(a, b) for a, b in zip(begins, ends, strict=True))
