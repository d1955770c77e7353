"""Average of the readings of one stay at a place, and its variance."""

from __future__ import annotations

import math

from gp_active_sensing.types import Reading

__all__ = ["StayAverage", "noise_of"]

_SURE = 3.0
"""Standard deviations by which a sample variance has to be off before it counts as off."""


class StayAverage:
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
        self.further = False
        """It is a part of a stay, and not the first."""
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

    def stand_for(self, count: int, value: float) -> None:
        """Count as so many readings like the first one, of which only the average is known."""
        self.count, self.value = count, value
        self._weight *= count
        self._weight_squares *= count

    @property
    def worth(self) -> float:
        """So many readings of equal weight would be as many; 1 or more."""
        return max(1.0, self._weight**2 / self._weight_squares)

    @property
    def sample_variance(self) -> float:
        """Variance of one of its readings by how they differ; 0 where nothing tells."""
        freedom = self._weight - self._weight_squares / self._weight
        return max(0.0, self._squares / freedom) if freedom > 0.0 else 0.0


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
