"""Average the readings of each stay at a place, and compute a realistic variance of the average.

A place represents a cell of a grid or a segment of a road. The readings of a fast sensor in one
cell have a common error, since they are taken beside the place's point. If these readings counted
as independent, the belief would be overconfident. The belief therefore has one value for each stay,
the average of its readings. Each further reading of the stay updates this average.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from gp_active_sensing.errors import ReadingError, RunError
from gp_active_sensing.records.events import ReadingUsed, StayRecord
from gp_active_sensing.types import Off, PlacedReading, Reading

_BLOCK = 10
"""Number of differences between readings in a block."""
_KEPT = 101
"""Largest number of blocks of readings that are used. They are the newest blocks."""
_MEDIAN = (1.0 - 2.0 / (9.0 * _BLOCK)) ** 3
"""Median of the mean of `_BLOCK` squared standard normal numbers (Wilson and Hilferty)."""


class NoiseLevel:
    """Estimator of the variance of a reading, which uses differences of consecutive readings.

    Each block of differences gives an estimate, and the median of these estimates is used. A
    glitch (-999 for "no data") changes only one or two of them. The median is above 0 even if
    the sensor's resolution is so coarse that most differences are 0.
    """

    def __init__(self) -> None:
        self._blocks: deque[float] = deque(maxlen=_KEPT)
        self._begun = 0
        self._sum = 0.0
        self._variance = 0.0

    def add(self, difference: float) -> None:
        """Add the difference of two consecutive readings."""
        self._begun += 1
        self._sum += difference * difference
        if self._begun < _BLOCK:
            return
        self._blocks.append(self._sum / _BLOCK)
        self._begun, self._sum = 0, 0.0
        # Of two blocks the smaller value counts, since the larger may have a glitch.
        ordered = sorted(self._blocks)
        middle = min(ordered) if len(ordered) < 3 else median(ordered)
        self._variance = 0.5 * middle / _MEDIAN

    @property
    def variance(self) -> float:
        """Variance of one reading; 0 = unknown."""
        return self._variance if self._blocks else 0.5 * self._sum / max(self._begun, 1)


_SURE = 3.0
"""Deviations of a sample variance up to this limit are ignored [standard errors]."""


class StayAverage:
    """Averages over the readings of one stay; readings far from the place's point have less weight.

    Args:
        reading: first reading.
        off: distance of the first reading from the place's point, in units of `Stays.near`.
    """

    def __init__(self, reading: Reading, off: float) -> None:
        self.count = 0
        self.value = 0.0
        self.last = reading.value
        self.x = self.y = self.z = 0.0
        """Average position [m]; NaN = unknown."""
        self.position_variance = self.height_variance = 0.0
        """Averages of the variances of the readings' positions [m²]."""
        self.variance: float | None = 0.0
        """Average noise variance of the readings; None = at least one reading has no variance."""
        self.first_ns = self.last_ns = reading.stamp_ns
        self.further = False
        """True for the second and later pieces of a stay that was cut because it was too long."""
        self.stored: PlacedReading
        """Average of the readings as it is stored in the belief."""
        self._squares = self._weight = self._weight_squares = 0.0
        self.add(reading, off)

    def add(self, reading: Reading, off: float) -> None:
        """Add a reading at a distance `off` from the place's point, in units of `Stays.near`."""
        self.count += 1
        self.last = reading.value
        weight = 1.0 / (1.0 + off * off) ** 2
        self._weight += weight
        self._weight_squares += weight * weight
        part = weight / self._weight
        # Differences are exact for equal values and do not overflow.
        delta = reading.value - self.value
        self.value += delta * part
        self._squares += weight * delta * (reading.value - self.value)
        if self.variance is None or reading.noise_variance is None:
            self.variance = None
        else:
            self.variance += (reading.noise_variance - self.variance) * part
        x, y, z = (*(reading.position or ()), *[math.nan] * 3)[:3]
        self.x += (x - self.x) * part
        self.y += (y - self.y) * part
        self.z += (z - self.z) * part
        self.position_variance += (reading.position_variance - self.position_variance) * part
        self.height_variance += (reading.height_variance - self.height_variance) * part
        self.first_ns = min(self.first_ns, reading.stamp_ns)
        self.last_ns = max(self.last_ns, reading.stamp_ns)

    def count_as(self, count: int, value: float) -> None:
        """Set the number of readings and their average value."""
        self.count, self.value = count, value
        self._weight *= count
        self._weight_squares *= count

    @property
    def effective_count(self) -> float:
        """Effective number of readings, at least 1."""
        return max(1.0, self._weight**2 / self._weight_squares)

    @property
    def sample_variance(self) -> float:
        """Sample variance of the readings; 0 = unknown."""
        freedom = self._weight - self._weight_squares / self._weight
        return max(0.0, self._squares / freedom) if freedom > 0.0 else 0.0


def noise_of(count: float, sample: float, noise: float) -> float:
    r"""Return the noise variance of the average of `count` readings of one stay.

    With n = `count`, the sensor's variance :math:`\sigma^2` (`noise`) and the sample variance
    :math:`s^2` (`sample`), the result is

    .. math:: v = c + \frac{\sigma^2 - c}{n} + e

    - c is the excess of :math:`\sigma^2` over :math:`s^2`: an error that all readings have in
      common (a slow drift, a coarse scale). Averaging does not reduce c.
    - e is the excess of :math:`s^2` over :math:`\sigma^2`: the variation of the field along the
      way. More readings do not reduce e.

    A sample variance of n readings has a relative standard deviation of :math:`\sqrt{2/(n-1)}`.
    Deviations of :math:`s^2` from :math:`\sigma^2` are ignored if they are below three of these
    standard deviations. The result is rounded to six digits, so that it is equal on all processors.
    """
    common = excess = 0.0
    if count > 1.0:
        room = 1.0 + _SURE * math.sqrt(2.0 / (count - 1.0))
        common = max(0.0, noise - sample * room)
        excess = max(0.0, sample - noise * room)
    return float(f"{common + (noise - common) / count + excess:.6g}")


GAP_SECONDS = 5.0
"""Longest gap in a stay [s]. Gaps occur at a border, where poses alternate between two places."""
_LEAST = 1e-24
"""Smallest variance of an average, as a multiple of 1 + value²."""
_AT = 0.08
"""Largest distance from the place's point that counts as 0, in units of `Stays.near`."""


@dataclass(frozen=True)
class StoredAverage:
    """Average of a stay, as it is stored in the belief.

    Args:
        placed: the average with its noise variance. A single reading at the place's point is
            stored unchanged.
        before: average without the newest reading, with the stamp of the stay's first reading;
            None = the stay has just begun.
        count: number of readings.
    """

    placed: PlacedReading
    before: PlacedReading | None
    count: int

    @property
    def reading(self) -> Reading:
        """The average as a reading."""
        return self.placed.reading

    def to_record(self) -> StayRecord | None:
        """Return what a journal event records of the stay; None = one reading, stored unchanged."""
        if self.before is None and self.reading.off is None:
            return None
        mean = self.reading
        return StayRecord(self.count, mean.value, mean.noise_variance, mean.off)


class Stays:
    """Averages of the readings of each stay, for all places.

    Args:
        noise_of_one: returns the noise variance of a reading that has none; 0 = unknown, None = do
            not average the reading.
        place_at: returns the point of a place: (x, y), or (x, y, z) on a map with heights [m].
        longest: returns the longest duration of a stay [s]. Longer stays are cut into pieces, since
            in a changing field the weight of a reading must depend on its age.
        place: checks an average and returns it; raises ReadingError if the belief rejects it.
        parts: returns the effective number N of pieces of a cut stay. The pieces share the error
            from their distance to the place's point. The distance of each piece after the first is
            multiplied by √N, so that this error counts only once.
    """

    def __init__(
        self,
        noise_of_one: Callable[[Reading], float | None],
        place_at: Callable[[int], tuple[float, ...]],
        longest: Callable[[], float] = lambda: math.inf,
        place: Callable[[Reading], PlacedReading] = lambda reading: PlacedReading(
            reading, reading.location or 0, reading.value, reading.noise_variance
        ),
        parts: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._noise_of_one = noise_of_one
        self._place, self._parts = place, parts
        self._place_at = place_at
        self.near: Callable[[int], float] = lambda place: math.inf
        """Function that returns the distance at which a reading has a quarter of its weight."""
        self.stretch = 1.0
        """Factor that converts vertical metres to equivalent horizontal metres."""
        self._longest = longest
        self._open: dict[int, StayAverage] = {}
        self._spread = NoiseLevel()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, placed: PlacedReading, *, begins: bool = False) -> StoredAverage:
        """Add a reading to its stay and return the stay's average for the belief.

        `begins` True = the reading begins a new stay.
        """
        reading, stay = placed.reading, self._open.get(placed.place)
        if not begins and stay is not None and self._may_extend(stay, reading):
            after = copy.copy(stay)
            after.add(reading, self._off(reading))
            variance, off = self._noise(after, reading)
            average = replace(reading, value=after.value, noise_variance=variance, off=off)
            # The belief rejects absurd averages: the reading begins a separate stay.
            if (mean := self._checked(average)) is not None:
                return self._extend(stay, after, mean)
        further = not begins and self._is_cut(stay, reading)
        return self._begin(reading, self._single(placed, further=further), further=further)

    def restore_reading(
        self, event: ReadingUsed, *, gap: bool = False, begins: bool = False
    ) -> StoredAverage:
        """Add a journalled reading after a restart.

        `gap` True = earlier events may be missing; an average whose stay is unknown then begins a
        stay. `begins` True = a stay that begins with this reading does not continue a cut stay.

        Raises:
            RunError: `gap` is False, and there is no stay at the reading's place.
        """
        reading, average = event.reading, self._place(event.average)
        count = 1 if event.stay is None else event.stay.count
        stay = self._open.get(average.place)
        if count < 2:
            return self._begin(reading, average, further=not begins and self._is_cut(stay, reading))
        if gap and (stay is None or not self._may_extend(stay, reading, count - stay.count)):
            return self._begin(reading, average, count)
        if stay is None:
            msg = f"journal: a reading goes on with a stay that never began: {reading}"
            raise RunError(msg)
        after = copy.copy(stay)
        after.add(reading, self._off(reading))
        after.count = count
        return self._extend(stay, after, average)

    def widened(self, placed: PlacedReading) -> PlacedReading:
        """Return a reading outside a stay; its distance is its position's standard deviation."""
        reading = placed.reading
        across, up = math.sqrt(reading.position_variance), math.sqrt(reading.height_variance)
        return placed if across == up == 0.0 else self._beside(placed, across, up)

    @property
    def noise(self) -> float:
        """Noise variance of a reading, estimated from consecutive readings; 0 = unknown."""
        return self._spread.variance

    def clear(self) -> None:
        """End all stays."""
        self._open.clear()

    def _begin(
        self, reading: Reading, mean: PlacedReading, count: int = 1, *, further: bool = False
    ) -> StoredAverage:
        assert reading.location is not None
        self._forget(reading.stamp_ns)
        stay = self._open[reading.location] = StayAverage(reading, self._off(reading))
        stay.stored, stay.further = mean, further
        if count > 1:
            stay.count_as(count, mean.reading.value)
        return StoredAverage(mean, None, count)

    def _extend(
        self, before: StayAverage, stay: StayAverage, average: PlacedReading
    ) -> StoredAverage:
        self._open[average.place] = stay
        self._spread.add(stay.last - before.last)
        first_ns = before.stored.reading.stamp_ns
        now = average.stamped(max(first_ns, average.reading.stamp_ns))
        stay.stored = now.stamped(first_ns)
        return StoredAverage(now, before.stored, stay.count)

    def _may_extend(self, stay: StayAverage, reading: Reading, readings: int = 1) -> bool:
        stamp_ns = reading.stamp_ns
        apart = max(stay.first_ns - stamp_ns, stamp_ns - stay.last_ns)
        whole = max(stay.last_ns, stamp_ns) - min(stay.first_ns, stamp_ns)
        near = readings > 0 and apart < 1e9 * GAP_SECONDS * readings
        return near and whole < 1e9 * self._longest()

    def _is_cut(self, stay: StayAverage | None, reading: Reading) -> bool:
        """Return whether a stay would become too long with a reading, and must be cut before it."""
        if stay is None or self._may_extend(stay, reading):
            return False
        apart = max(stay.first_ns - reading.stamp_ns, reading.stamp_ns - stay.last_ns)
        return apart < 1e9 * GAP_SECONDS

    def _single(self, placed: PlacedReading, *, further: bool) -> PlacedReading:
        """Return the first reading of a stay, with its distance from the place's point."""
        reading, near = placed.reading, self.near(placed.place)
        across, up = math.sqrt(reading.position_variance), math.sqrt(reading.height_variance)
        if math.isfinite(near):
            beside, above = self._offset(placed.place, reading.position or ())
            across, up = math.hypot(beside, across), math.hypot(above, up)
            if math.hypot(across, self.stretch * up) <= _AT * near:
                return placed
        if across == up == 0.0:
            return placed
        times = self._farther(further=further)
        return self._beside(placed, across * times, up * times)

    def _beside(self, placed: PlacedReading, across: float, up: float) -> PlacedReading:
        reading = placed.reading
        noise = reading.noise_variance or self._noise_of_one(reading)
        if noise is None:
            return placed
        # A power would raise an error on overflow; a product does not.
        variance = max(noise, _LEAST * (1.0 + reading.value * reading.value))
        off = self._written(placed.place, across, up)
        beside = replace(reading, noise_variance=variance, off=off)
        return self._checked(beside) or placed

    def _checked(self, average: Reading) -> PlacedReading | None:
        try:
            return self._place(average)
        except ReadingError:
            return None

    def _noise(self, stay: StayAverage, reading: Reading) -> tuple[float | None, Off | None]:
        """Return the variance of a stay's average, and the average's distance from the point.

        (None, None) = the average is used like a single reading.
        """
        noise = self._noise_of_one(reading) if stay.variance is None else stay.variance
        if noise is None:
            return None, None
        noise = noise or self.noise
        assert reading.location is not None
        beside, above = self._offset(reading.location, (stay.x, stay.y, stay.z))
        times = self._farther(further=stay.further)
        across = times * math.hypot(beside, math.sqrt(stay.position_variance))
        up = times * math.hypot(above, math.sqrt(stay.height_variance))
        variance = noise_of(stay.effective_count, stay.sample_variance, noise)
        # Readings of a coarse scale may all be equal.
        variance = max(variance, _LEAST * (1.0 + stay.value * stay.value))
        return variance, self._written(reading.location, across, up)

    def _written(self, place: int | None, across: float, up: float) -> Off:
        """Return `across`, rounded to six digits [m]; on a map with heights, (`across`, `up`)."""
        assert place is not None
        metres = float(f"{across:.6g}")
        return metres if len(self._place_at(place)) == 2 else (metres, float(f"{up:.6g}"))

    def _offset(self, place: int, position: Sequence[float]) -> tuple[float, float]:
        """Return the horizontal and the vertical distance from a place's point [m]; 0 = unknown."""
        offsets = [a - b for a, b in zip(position, self._place_at(place), strict=False)]
        across, up = math.hypot(*offsets[:2]), abs(sum(offsets[2:]))
        return 0.0 if math.isnan(across) else across, 0.0 if math.isnan(up) else up

    def _farther(self, *, further: bool) -> float:
        """Return the factor that multiplies an average's distance: 1, √`parts` for later pieces."""
        return math.sqrt(self._parts()) if further else 1.0

    def _off(self, reading: Reading) -> float:
        """Return the distance of a reading from the place's point, in units of `near`."""
        place = reading.location
        assert place is not None
        near = self.near(place)
        if reading.position is None or not math.isfinite(near):
            return 0.0
        across, up = self._offset(place, reading.position)
        return math.hypot(across, self.stretch * up) / near

    def _forget(self, now_ns: int) -> None:
        """Drop stays that ended more than 60 s ago, to bound the memory."""
        if len(self._open) < 64:
            return
        least_ns = now_ns - round(60e9)
        self._open = {p: s for p, s in self._open.items() if s.last_ns >= least_ns}
