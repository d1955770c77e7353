"""Readings with their times, and the time of the latest visit to each place."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from copy import copy

import numpy as np

from gp_active_sensing.belief.collapsed import CollapsedReadings
from gp_active_sensing.belief.drift import FRACTION, Ageing
from gp_active_sensing.belief.prior import LocationCovariance, Points
from gp_active_sensing.types import BoolArray, FloatArray, IntArray, Off

logger = logging.getLogger(__name__)

_ROOM = 512
"""Slots are dropped or merged only if there are this number of slots or more."""
_EXACT = 2.0**52
"""Slot index above which each time has its own slot, because such large floats have no fraction."""


class DatedReadings:
    """Slots of readings: all readings of a place within ``ageing.slot`` seconds share a slot.

    A slot has the time of its first reading. To limit memory, slots that are too old to affect the
    belief are dropped each time the number of slots has doubled. If readings of any age affect the
    belief, slots of one place with nearly the same age are merged. Under the forgetting kernel,
    each slot is a row of a matrix, and only the latest slots are stored. The stored slots depend on
    the readings only, not on the times of queries.
    """

    def __init__(self, n: int, ageing: Ageing) -> None:
        self.ageing = ageing
        self.count: IntArray = np.zeros(n, dtype=np.int64)
        """(n,) number of readings of each place, including dropped readings."""
        self.latest: IntArray = np.full(n, -1, dtype=np.int64)
        """(n,) slot of each place's latest reading; -1 = no stored reading."""
        self.first, self.newest, self.newest_probe = math.inf, -math.inf, -math.inf
        self.slots = 0
        self.stats = CollapsedReadings(16)
        self._place: IntArray = np.zeros(16, dtype=np.int64)
        self._time: FloatArray = np.zeros((2, 16))
        self._index: dict[tuple[int, float], int] = {}
        self._limit = _ROOM
        self._cutoff = -math.inf
        """Time [s] before which all readings were dropped to limit memory."""
        self._most_warned = False

    @property
    def place(self) -> IntArray:
        """(S,) place of each slot."""
        return self._place[: self.slots]

    @property
    def time(self) -> FloatArray:
        """(S,) time of the earliest reading of each slot [s]."""
        return self._time[0, : self.slots]

    @property
    def last(self) -> FloatArray:
        """(S,) time of the latest reading of each slot [s]."""
        return self._time[1, : self.slots]

    def grow(self, n: int) -> None:
        """Extend the arrays to n places; the existing places come first."""
        more = n - self.count.size
        self.count = np.concatenate([self.count, np.zeros(more, dtype=np.int64)])
        self.latest = np.concatenate([self.latest, np.full(more, -1, dtype=np.int64)])

    def copy(self) -> DatedReadings:
        """Return an independent copy."""
        other = copy(self)
        other.count, other.latest = self.count.copy(), self.latest.copy()
        other.stats = self.stats.copy()
        other._place, other._time = self._place.copy(), self._time.copy()
        other._index = dict(self._index)
        return other

    def add(
        self,
        place: int,
        value: float,
        variance: float | None,
        seconds: float,
        expert: bool = False,
        off: Off | None = None,
    ) -> int:
        """Add one reading and return its slot; amortised O(1)."""
        self.count[place] += 1
        self.first, self.newest = min(self.first, seconds), max(self.newest, seconds)
        if not expert:
            self.newest_probe = max(self.newest_probe, seconds)
        key = self._key(place, seconds)
        slot = self._index.get(key)
        if slot is None:
            slot = self._index[key] = self._begin(place, seconds)
        self._time[1, slot] = max(self._time[1, slot], seconds)
        latest = self.latest[place]
        if latest < 0 or self.last[slot] >= self.last[latest]:
            self.latest[place] = slot
        self.stats.add(slot, value, variance, off)
        return slot

    def amend(
        self,
        place: int,
        before: tuple[float, float | None, float, Off | None],
        value: float,
        variance: float | None,
        seconds: float,
        off: Off | None = None,
    ) -> int | None:
        """Replace a reading of a probe; the new reading keeps the slot of the replaced reading.

        Arguments are as in `Belief.amend`. Values are transformed.

        Returns:
            The slot; None if the slot was dropped. The belief then uses neither reading.
        """
        slot = self._index.get(self._key(place, before[2]))
        self.newest = max(self.newest, seconds)
        self.newest_probe = max(self.newest_probe, seconds)
        if slot is None:
            return None
        self.stats.remove(slot, before[0], before[1], before[3])
        self.stats.add(slot, value, variance, off)
        self._time[1, slot] = max(self._time[1, slot], seconds)
        return slot

    def _key(self, place: int, seconds: float) -> tuple[int, float]:
        number = seconds / self.ageing.slot
        return place, math.floor(number) if abs(number) < _EXACT else number

    def _begin(self, place: int, seconds: float) -> int:
        slot = self.slots
        if slot == self._place.size:
            size = max(16, 2 * slot)
            self.stats.grow(size)
            self._place = np.concatenate([self._place, np.zeros(size - slot, dtype=np.int64)])
            self._time = np.concatenate([self._time, np.zeros((2, size - slot))], axis=1)
        self._place[slot], self._time[:, slot] = place, seconds
        self.slots = slot + 1
        return slot

    def used(self, now: float) -> BoolArray:
        """Return the (S,) mask of slots whose latest reading affects the belief at time `now`."""
        return self.counting(self.last, now)

    def counting(self, times: FloatArray, now: float) -> BoolArray:
        """Return a mask of `times`: True where a reading of that time affects the belief `now`.

        With `discard_step`, the newest reading of a probe always affects the belief, and so do the
        answers of experts after this reading.
        """
        counting = self.ageing.used(times, now, self.first)
        if self.ageing.config.discard_step is not None:
            newest = self.newest_probe if math.isfinite(self.newest_probe) else self.newest
            counting |= times >= newest
        return counting & (times >= self._cutoff)

    def prune(self) -> bool:
        """Drop and merge slots if there are too many; return whether the slots changed."""
        if self.slots < self._limit:
            return False
        before, most = self.slots, self.ageing.most_slots
        used = self.used(self.newest)
        if int(used.sum()) > most:
            self._cutoff = float(np.partition(self.last, -most)[-most])
            used &= self.last >= self._cutoff
            if not self._most_warned:
                self._most_warned = True
                logger.info(
                    "the forgetting kernel keeps %d pairs of time and place; the oldest pairs, "
                    "from an age of %.3g s, are dropped (reported once)",
                    most,
                    self.newest - self._cutoff,
                )
        if not used.all():
            self._regroup(np.flatnonzero(used))
        if self.ageing.lasting and self.slots >= _ROOM:
            order, begins = self._neighbours()
            if len(begins) < self.slots:
                self._regroup(order, begins)
        self._limit = max(_ROOM, min(2 * self.slots, most + most // 4))
        return self.slots != before

    def _neighbours(self) -> tuple[IntArray, IntArray]:
        """Return all slots sorted by place and time, and the first index of each group to merge."""
        order = np.lexsort((self.time, self.place))
        place, time = self.place[order].tolist(), self.time[order].tolist()
        begins, start = [0], 0
        for i in range(1, len(order)):
            # Added variance is quadratic in age, so its relative change is 2 / FRACTION in a group.
            wide = max(self.ageing.slot, (self.newest - time[i]) / FRACTION)
            if place[i] != place[start] or time[i] - time[start] > wide:
                begins.append(i)
                start = i
        return order, np.array(begins)

    def _regroup(self, order: IntArray, begins: IntArray | None = None) -> None:
        """Keep the slots `order`, and merge each group of them.

        `begins` are the indices in `order` of the groups' first slots; None = merge nothing.
        """
        begins = np.arange(len(order)) if begins is None else begins
        group = np.searchsorted(begins, np.arange(len(order)), side="right") - 1
        number = dict(zip(order.tolist(), group.tolist(), strict=True))
        self._index = {k: number[s] for k, s in self._index.items() if s in number}
        self.stats = self.stats.merged(order, begins)
        self._place = self._place[order[begins]]
        last = self.last[order]
        last = np.maximum.reduceat(last, begins) if len(begins) else last
        self._time = np.stack([self.time[order[begins]], last])
        self.slots = len(begins)
        self.latest[:] = -1
        by_time = np.argsort(self.last, kind="stable")
        self.latest[self.place[by_time]] = by_time


class SlotCovariance:
    """Covariance ``k(x, x') exp(-|t - t'| / τ)`` between slots (pairs of a place and a time).

    The covariance k is `space`. The slots and the time constant τ are those of `history`.
    """

    def __init__(self, space: LocationCovariance, history: DatedReadings) -> None:
        self.space = space
        self.hyperparameters = space.hyperparameters
        self.history = history
        self.time_scale = history.ageing.constant

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance between the slots with indices `rows` and `columns`."""
        place, time = self.history.place, self.history.time
        apart = np.abs(time[rows][:, None] - time[columns])
        return self.space.between(place[rows], place[columns]) * np.exp(-apart / self.time_scale)

    def with_places(self, rows: IntArray, places: IntArray, now: float) -> FloatArray:
        """Return the (L, r, m) covariance of the slots `rows` with `places` at the time `now`."""
        return self.space.between(self.history.place[rows], places) * self._faded(rows, now)

    def with_points(
        self, rows: IntArray, points: Points, now: float, which: Sequence[int]
    ) -> FloatArray:
        """Return the (W, r, m) covariance between slots `rows` and `points` for λ in `which`."""
        space = self.space.only(which)
        return space.with_points(self.history.place[rows], points) * self._faded(rows, now)

    def _faded(self, rows: IntArray, now: float) -> FloatArray:
        apart = np.abs(now - self.history.time[rows])
        return np.asarray(np.exp(-np.minimum(apart / self.time_scale, 700.0))[:, None])


class VisitTimes:
    """Current time, and time of a probe's latest reading at each of n places.

    If `matters` is True, a clock that goes back is logged.
    """

    def __init__(self, n: int, *, matters: bool) -> None:
        self.visited: BoolArray = np.zeros(n, dtype=np.bool_)
        self.newest: FloatArray = np.full(n, -math.inf)
        self.now = -math.inf
        self._matters = matters
        self._warned = False

    def grow(self, n: int) -> None:
        """Extend the arrays to n places; the existing places come first."""
        more = n - self.visited.size
        self.visited = np.concatenate([self.visited, np.zeros(more, dtype=np.bool_)])
        self.newest = np.concatenate([self.newest, np.full(more, -math.inf)])

    def copy(self) -> VisitTimes:
        """Return an independent copy."""
        other = copy(self)
        other.visited, other.newest = self.visited.copy(), self.newest.copy()
        return other

    def see(self, place: int, seconds: float, *, expert: bool) -> None:
        """Record a reading; an expert's answer leaves its place unvisited."""
        self.now = max(self.now, seconds)
        if not expert:
            self.visited[place] = True
            self.newest[place] = max(self.newest[place], seconds)

    def advance(self, seconds: float) -> None:
        """Advance the clock to `seconds`; an earlier time is ignored.

        Raises:
            ValueError: `seconds` is not finite.
        """
        if not math.isfinite(seconds):
            msg = f"expected a time in seconds, got {seconds}"
            raise ValueError(msg)
        if seconds < self.now and self._matters and not self._warned:
            self._warned = True
            logger.info(
                "the given time is %.3g s earlier than the newest reading or an earlier given "
                "time: that later time is used (reported once)",
                self.now - seconds,
            )
        self.now = max(self.now, seconds)

    def seen_within(self, seconds: float | None) -> BoolArray:
        """Return the (n,) mask of places visited within the last `seconds`; None = at any time."""
        if seconds is None:
            return np.array(self.visited)
        return np.asarray(self.visited & (self.now - self.newest < seconds))
