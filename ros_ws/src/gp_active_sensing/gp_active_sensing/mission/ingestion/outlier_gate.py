"""Set aside very improbable readings until other readings agree with them.

The belief predicts a reading by a mixture of normal distributions, one for each hyperparameter
candidate. The tail probability of the reading is the probability of a more extreme value on the
same side. The reading's deviation is the number of standard deviations at which a single normal
distribution has the same tail probability. A reading is gated if its deviation is above the limit.
A wide component enlarges the tail probability in proportion to its weight, so that an uncertain
belief gates few readings.

Gated readings are stored. They are used when at least `AGREEING` of them agree, are from one place
and span at least `AGREEING_SECONDS`. An ungated reading of a place ends the place's series of gated
readings. Two readings agree if noise explains their difference. The readings of a glitch stay
gated, because a glitch is shorter than `AGREEING_SECONDS`. Random values stay gated, because they
do not agree. A visit without a used reading is repeated, so that further readings come. A sensor
that is stuck for longer than `AGREEING_SECONDS` is not detected, since its readings of one place
agree.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import IDENTITY, Transform
from gp_active_sensing.loop import Receiver
from gp_active_sensing.records.events import ReadingGated, ReadingUsed
from gp_active_sensing.types import FloatArray, Reading

KEPT = 4000
"""Largest number of stored gated readings: enough for two seconds of the fastest sensor."""
AGREEING = 3
"""Gated readings are used when at least this number of them agree."""
AGREEING_SECONDS = 1.0
"""Time that the stamps of agreeing readings must span before the readings are used [s]."""
_LOOK_NS = 100_000_000
"""Smallest time between two comparisons of the gated readings of a place [ns]."""


@dataclass
class _Row:
    """Gated readings of one place since its last ungated reading."""

    readings: list[Reading]
    looked_ns: int


class OutlierGate:
    """Gate that sets very improbable readings aside and stores them.

    Args:
        limit: deviation above which a reading is gated [standard deviations]; 0 = no limit.
        places: no reading is gated until this number of places is observed.
        capacity: largest number of stored readings.
    """

    def __init__(
        self, loop: Receiver, limit: float = 0.0, places: int = 10, capacity: int = KEPT
    ) -> None:
        self.limit = limit
        self.places = places
        self.capacity = capacity
        self.noise: Callable[[], float] = lambda: 0.0
        """Function that returns the noise variance for readings without one; 0 = unknown.

        The belief's noise is not used here, since it is the noise of averages.
        """
        self.forgotten = 0
        self._loop = loop
        self._kept: deque[Reading] = deque()
        self._rows: dict[int | None, _Row] = {}
        self._known: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._weights: FloatArray = np.ones(1)
        self._noise: FloatArray = np.ones(1)
        self._until = -1
        """Number of observed places when the predictions in `_known` were computed."""
        self._transform: Transform = IDENTITY
        self._at = 0.0

    def __len__(self) -> int:
        return len(self._kept)

    # -- judging -------------------------------------------------------------------------------

    def off(self, reading: Reading) -> float | None:
        """Return the deviation of a gated reading [standard deviations]; None = not gated."""
        belief, place = self._loop.belief, reading.location
        if self.limit <= 0.0 or place is None:
            return None
        observed = int(np.count_nonzero(belief.observed))
        if observed < self.places:
            return None
        stale = observed != self._until or belief.transform != self._transform
        if stale or belief.seconds - self._at >= belief.tick:
            self._begin(belief, observed)
        if place not in self._known:
            mean, variance = belief.marginals(np.array([place]))
            self._known[place] = mean[:, 0], variance[:, 0]
        mean, variance = self._known[place]
        seen = belief.seen(reading.value, reading.noise_variance)
        value, own = (reading.value, None) if seen is None else seen
        noise = self._noise
        if own is not None:
            noise = np.full_like(noise, own)
        elif seen is not None and (more := self.noise()):
            noise = np.maximum(noise, belief.transform.seen_variance(np.array(reading.value), more))
        if reading.position_variance or reading.height_variance:  # the position is uncertain
            across, up = reading.position_variance, reading.height_variance
            noise = noise + belief.varies_by(place, across, up)
        variance = variance + noise
        if seen is None:  # the value has no logarithm
            mean, variance = belief.transform.moments(mean, variance)
            variance = np.maximum(variance, self.noise() or 0.0)
        z = (value - mean) / np.sqrt(variance)
        if np.abs(z).max() <= self.limit:  # below the limit under each component
            return None
        off = _deviations(self._weights, z)
        return off if off > self.limit else None

    def _begin(self, belief: Belief, observed: int) -> None:
        """Drop the predictions of an earlier state of the belief."""
        self._known.clear()
        self._weights, self._noise = belief.weights, belief.noise_variance
        self._until, self._at, self._transform = observed, belief.seconds, belief.transform

    # -- keeping -------------------------------------------------------------------------------

    def keep(self, reading: Reading) -> list[Reading]:
        """Store a gated reading; if enough stored readings agree, remove and return them."""
        row = self._add(reading)
        if abs(reading.stamp_ns - row.looked_ns) < _LOOK_NS:
            return []
        row.looked_ns = reading.stamp_ns
        agreeing = self._agreeing(row.readings, reading)
        self._forget(agreeing)
        return agreeing

    def _add(self, reading: Reading) -> _Row:
        if reading.location is None:
            msg = f"expected a reading with a place, got {reading}"
            raise ValueError(msg)
        if len(self._kept) >= self.capacity:
            self._forget([self._kept[0]])
            self.forgotten += 1
        self._kept.append(reading)
        row = self._rows.setdefault(reading.location, _Row([], reading.stamp_ns))
        row.readings.append(reading)
        return row

    def _agreeing(self, readings: list[Reading], newest: Reading) -> list[Reading]:
        if len(readings) < AGREEING:
            return []
        belief = self._loop.belief
        seen = belief.seen(newest.value, newest.noise_variance)
        if seen is None:  # all values without a logarithm agree
            return self._enough([r for r in readings if belief.seen(r.value, None) is None])
        value, own = seen
        noise = float(self._weights @ self._noise) if own is None else own
        reach = self.limit * math.sqrt(2.0 * noise)
        apart = belief.transform.seen(np.array([r.value for r in readings])) - value
        found = [r for r, far in zip(readings, apart, strict=True) if abs(far) <= reach]
        return self._enough(found)

    @staticmethod
    def _enough(found: list[Reading]) -> list[Reading]:
        """Return `found` if it has enough readings that span enough time; otherwise []."""
        stamps = [r.stamp_ns for r in found]
        if len(found) < AGREEING or max(stamps) - min(stamps) < 1e9 * AGREEING_SECONDS:
            return []
        return found

    def passed(self, place: int) -> None:
        """Record an ungated reading of a place, which ends its series of gated readings."""
        self._rows.pop(place, None)

    def pop_all(self) -> list[Reading]:
        """Remove and return all stored readings."""
        kept = list(self._kept)
        self._kept.clear()
        self._rows.clear()
        return kept

    def _forget(self, readings: list[Reading]) -> None:
        gone = {id(reading) for reading in readings}
        self._kept = deque(r for r in self._kept if id(r) not in gone)
        for place in {r.location for r in readings if r.location in self._rows}:
            row = self._rows[place]
            row.readings = [r for r in row.readings if id(r) not in gone]
            if not row.readings:
                del self._rows[place]

    # -- after a restart -----------------------------------------------------------------------

    def restore(self, event: ReadingUsed | ReadingGated) -> None:
        """Restore the stored readings from an event of the journal."""
        reading = event.reading
        if isinstance(event, ReadingGated):
            self._add(reading)  # the agreeing readings have events of their own
            return
        if reading.location is None:
            return
        if not event.taken_back:
            self.passed(reading.location)
            return
        first_ns = reading.stamp_ns if event.first_ns is None else event.first_ns
        back = [
            r
            for r in self._kept
            if r.location == reading.location and first_ns <= r.stamp_ns <= reading.stamp_ns
        ]
        self._forget(back[: event.count])


def _deviations(weights: FloatArray, z: FloatArray) -> float:
    """Return the deviation at which a normal distribution has the tail probability of a mixture.

    `weights` (L,) are those of the mixture's components. `z` (L,) is the deviation of the value
    from each component. All deviations are in standard deviations.
    """
    from scipy.special import log_ndtr, logsumexp, ndtri_exp

    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    upper = float(logsumexp(log_weights + log_ndtr(-z)))
    lower = float(logsumexp(log_weights + log_ndtr(z)))
    return -float(ndtri_exp(min(upper, lower, 0.0)))
