"""Readings of one stay at a place are one reading: their average, as sure as it can be.

A place stands for a cell of a grid or a segment of a road. A fast sensor that is carried through it
gives many readings which all have the same error in common: that they were taken somewhere else in
the place. Taken for independent ones they would make a belief sure of a value that nobody measured.
So the belief holds one reading of each stay; it is there from the first reading on, and follows
those that come.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gp_active_sensing.errors import RunError
from gp_active_sensing.types import Reading

__all__ = ["GAP_SECONDS", "Stay", "Stays", "Told", "noise_of"]

GAP_SECONDS = 5.0
"""A place left for less than this is still being visited (poses jump to and fro at a border)."""
_LEAST = 1e-24
"""Least variance of an average, relative to the square of its value."""
_SURE = 3.0
"""Standard deviations by which a sample variance has to be off before it counts as off."""


class Stay:
    """The readings of one stay, summed up: weighted averages, those near the place's point first.

    Args:
        reading: the first.
        off: how far from the place's point it was taken, in units in which its weight halves twice.
    """

    def __init__(self, reading: Reading, off: float) -> None:
        self.count = 0
        self.value = 0.0
        """Average."""
        self.last = reading.value
        self.x = self.y = 0.0
        """Average position [m]; NaN = not known."""
        self.variance: float | None = 0.0
        """Average of the noise variances they bring; None = one of them brings none."""
        self.first_ns = self.last_ns = reading.stamp_ns
        self.told = reading
        """What the belief holds of it, with the stamp under which it does."""
        self._squares = self._weight = self._weight_squares = 0.0
        self.add(reading, off)

    def add(self, reading: Reading, off: float) -> None:
        """Take a reading in."""
        self.count += 1
        self.last = reading.value
        weight = 1.0 / (1.0 + off * off) ** 2
        self._weight += weight
        self._weight_squares += weight * weight
        part = weight / self._weight
        # By differences: exact for equal values, and no sum that overflows.
        delta = reading.value - self.value
        self.value += delta * part
        self._squares += weight * delta * (reading.value - self.value)
        if self.variance is None or reading.noise_variance is None:
            self.variance = None
        else:
            self.variance += (reading.noise_variance - self.variance) * part
        x, y = (math.nan, math.nan) if reading.position is None else reading.position
        self.x += (x - self.x) * part
        self.y += (y - self.y) * part
        self.first_ns = min(self.first_ns, reading.stamp_ns)
        self.last_ns = max(self.last_ns, reading.stamp_ns)

    @property
    def worth(self) -> float:
        """So many readings of equal weight would be as many; 1 or more."""
        return max(1.0, self._weight**2 / self._weight_squares)

    @property
    def sample_variance(self) -> float:
        """Variance of one of its readings by how they differ; 0 where nothing tells."""
        freedom = self._weight - self._weight_squares / self._weight
        return max(0.0, self._squares / freedom) if freedom > 0.0 else 0.0


@dataclass(frozen=True)
class Told:
    """What the belief is to hold of a stay.

    Args:
        reading: the average, with its noise variance.
        before: what it held so far, with the stamp of the first reading; None = nothing.
        count: readings that it is the average of.
    """

    reading: Reading
    before: Reading | None
    count: int

    def to_mapping(self) -> dict[str, Any]:
        """Return what an event says of it."""
        return {
            "count": self.count,
            "value": self.reading.value,
            "noise_variance": self.reading.noise_variance,
            "off": self.reading.off,
        }


Noise = Callable[[Reading], float | None]
"""Variance of one reading by itself; 0 = not known, None = the belief takes none."""


class Stays:
    """Tells which readings belong together, and what they come to.

    Args:
        noise_of_one: says how large the noise of a reading is that brings none.
        place_at: (x, y) of a place [m].
        longest: a stay is not longer than this [s]: where the field changes, a reading that is
            older than that counts as older.
    """

    def __init__(
        self,
        noise_of_one: Noise,
        place_at: Callable[[int], tuple[float, float]],
        longest: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._noise_of_one = noise_of_one
        self._place_at = place_at
        self.near: Callable[[int], float] = lambda place: math.inf
        """How far off its place's point a reading weighs a quarter [m]; inf = all weigh the same,
        as on a road, whose value is the average along it."""
        self._longest = longest
        self._open: dict[int, Stay] = {}
        self._pairs = 0
        self._differences = 0.0

    def __len__(self) -> int:
        return len(self._open)

    def take(self, reading: Reading, *, begins: bool = False) -> Told:
        """Take a reading of a known place; return what the belief is to hold.

        Args:
            reading: one that will be used.
            begins: it begins a stay whatever came before.
        """
        stay = None if begins else self._stay_of(reading)
        if stay is None:
            return self._begin(reading)
        self._add(stay, reading)
        variance, off = self._noise(stay, reading)
        return self._tell(
            stay, replace(reading, value=stay.value, noise_variance=variance, off=off)
        )

    def take_again(self, reading: Reading, average: Reading | None) -> Told:
        """Take a reading of the journal.

        Args:
            reading: as it came.
            average: what its event says of the stay that it goes on with; None = it begins one.

        Raises:
            RunError: no stay has begun at its place.
        """
        if average is None:
            return self._begin(reading)
        stay = self._open.get(-1 if reading.location is None else reading.location)
        if stay is None:
            msg = f"journal: a reading goes on with a stay that never began: {reading}"
            raise RunError(msg)
        self._add(stay, reading)
        return self._tell(stay, average)

    @property
    def noise(self) -> float:
        """Variance of one reading by how it differs from the one before it; 0 = not known yet.

        What the field varies by along the way is hardly in it, nor is what all have in common.
        """
        return self._differences / (2.0 * self._pairs) if self._pairs else 0.0

    def clear(self) -> None:
        """Let every stay be over: the next reading of any place begins another one."""
        self._open.clear()

    def _begin(self, reading: Reading) -> Told:
        assert reading.location is not None
        self._forget(reading.stamp_ns)
        self._open[reading.location] = Stay(reading, self._off(reading))
        return Told(reading, None, 1)

    def _add(self, stay: Stay, reading: Reading) -> None:
        self._pairs += 1
        self._differences += (reading.value - stay.last) ** 2
        stay.add(reading, self._off(reading))

    def _stay_of(self, reading: Reading) -> Stay | None:
        """Return the stay that a reading belongs to; None = it begins one."""
        assert reading.location is not None
        stay = self._open.get(reading.location)
        if stay is None:
            return None
        stamp_ns = reading.stamp_ns
        apart = max(stay.first_ns - stamp_ns, stamp_ns - stay.last_ns)
        whole = max(stay.last_ns, stamp_ns) - min(stay.first_ns, stamp_ns)
        if apart >= 1e9 * GAP_SECONDS or whole >= 1e9 * self._longest():
            return None
        return stay

    def _tell(self, stay: Stay, average: Reading) -> Told:
        before = stay.told
        now = replace(average, stamp_ns=max(before.stamp_ns, average.stamp_ns))
        stay.told = replace(now, stamp_ns=before.stamp_ns)
        return Told(now, before, stay.count)

    def _noise(self, stay: Stay, reading: Reading) -> tuple[float | None, float | None]:
        """Return variance and distance from the place's point of a stay's average.

        None, None = it is taken like any other reading.
        """
        noise = self._noise_of_one(reading) if stay.variance is None else stay.variance
        if noise is None:
            return None, None
        noise = noise or self.noise
        assert reading.location is not None
        x, y = self._place_at(reading.location)
        off = math.hypot(stay.x - x, stay.y - y)
        variance = noise_of(stay.worth, stay.sample_variance, noise)
        # Readings of a coarse scale may be all the same: what noise they have is the belief's then.
        variance = max(variance, _LEAST * (1.0 + stay.value**2))
        return variance, 0.0 if math.isnan(off) else float(f"{off:.6g}")

    def _off(self, reading: Reading) -> float:
        """Return how far off its place's point a reading was taken, in units of `near`."""
        place = reading.location
        assert place is not None
        near = self.near(place)
        if reading.position is None or not math.isfinite(near):
            return 0.0
        x, y = self._place_at(place)
        return math.hypot(reading.position[0] - x, reading.position[1] - y) / near

    def _forget(self, now_ns: int) -> None:
        """Drop stays that are over for long, so that what is kept stays small."""
        if len(self._open) < 64:
            return
        least_ns = now_ns - round(60e9)
        self._open = {p: s for p, s in self._open.items() if s.last_ns >= least_ns}


def noise_of(count: float, sample: float, noise: float) -> float:
    r"""Return the noise variance of the average of `count` readings of one stay.

    With the sensor's variance :math:`\sigma^2` and the sample variance :math:`s^2`

    .. math:: v = c + \frac{\sigma^2 - c}{n} + e

    - c, what is left of :math:`\sigma^2` beyond :math:`s^2`: an error that all of them have in
      common (a slow drift, a coarse scale), which no average removes;
    - e, what is left of :math:`s^2` beyond :math:`\sigma^2`: the field itself, which varies along
      the way; no number of readings removes that either.

    A sample variance of n readings is itself uncertain by :math:`\sqrt{2/(n-1)}`; it counts as
    different from :math:`\sigma^2` beyond three times that. In six digits, so that it is the same
    on every processor.

    Args:
        count: n, 1 or more.
        sample: s².
        noise: σ².
    """
    common = excess = 0.0
    if count > 1.0:
        room = 1.0 + _SURE * math.sqrt(2.0 / (count - 1.0))
        common = max(0.0, noise - sample * room)
        excess = max(0.0, sample - noise * room)
    return float(f"{common + (noise - common) / count + excess:.6g}")
