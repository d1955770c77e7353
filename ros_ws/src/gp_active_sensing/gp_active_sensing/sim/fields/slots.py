"""Fields known for slots of time: which value counts when, and how empty cells are filled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.types import BoolArray, FloatArray

__all__ = [
    "Slot",
    "TimeSeriesField",
    "check_slots",
    "fill_from_other_slots",
    "slot_in",
]

_TIMES = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)_(\d+(?:\.\d+)?)(?![\d.])")


class Slot(NamedTuple):
    """A stretch of time of a table's clock [s]."""

    begin: float
    end: float


class TimeSeriesField(GroundTruth):
    """A field known for slots of time, such as recorded traffic.

    Args:
        slots: (k,) in order.
        values: (k, n), all finite.
        linear: between the middles of the slots values change linearly; otherwise a slot's values
            hold until the next begins.
        start: clock of the slots when the mission begins [s].
        known: (k, n) which of the values were given; the others stand in for want of one. None =
            all.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        values: FloatArray,
        *,
        linear: bool,
        start: float,
        known: BoolArray | None = None,
    ) -> None:
        self._begins = np.array([slot.begin for slot in slots])
        self._middles = np.array([0.5 * (slot.begin + slot.end) for slot in slots])
        self._table, self._linear, self._start = values, linear, start
        self._given = np.ones(values.shape, dtype=np.bool_) if known is None else known
        super().__init__(self.at(0.0))

    @property
    def changes(self) -> bool:
        """The field changes as time goes by."""
        return True

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) values at a time of the mission [s]; read-only. O(n + k).

        Before and after the slots they are those of the ends.
        """
        k, after, share = self._between(seconds)
        values = np.array(self._table[k])
        if share:
            values = (1.0 - share) * values + share * self._table[after]
        values.setflags(write=False)
        return values

    def known(self, seconds: float) -> BoolArray:
        """Return the (n,) places whose value at a time of the mission [s] was given.

        Between two slots: those with both values. O(n + k).
        """
        k, after, share = self._between(seconds)
        return np.asarray(self._given[k] & self._given[after]) if share else self._given[k].copy()

    def _between(self, seconds: float) -> tuple[int, int, float]:
        """Return the slots before and after a time of the mission, and the share of the second."""
        time = self._start + seconds
        last = len(self._begins) - 1
        if not self._linear:
            k = min(max(int(np.searchsorted(self._begins, time, side="right")) - 1, 0), last)
            return k, k, 0.0
        where = float(np.interp(time, self._middles, np.arange(last + 1)))
        k = min(int(where), max(last - 1, 0))
        return k, min(k + 1, last), where - k


def slot_in(name: str) -> Slot | None:
    """Return the slot that a column's name says (v_900_1800: 900 to 1800 s), None without one."""
    found = _TIMES.search(name)
    if found is None:
        return None
    return Slot(float(found.group(1)), float(found.group(2)))


def check_slots(slots: Sequence[Slot], source: str) -> None:
    """Check that slots are in order and do not overlap.

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
