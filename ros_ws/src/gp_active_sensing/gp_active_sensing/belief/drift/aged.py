"""Readings whose noise grows with age, or which stop to count: all kinds but the kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief.conditioning import Conditioning
from gp_active_sensing.belief.covariance import LocationCovariance
from gp_active_sensing.belief.drift.config import Ageing
from gp_active_sensing.belief.drift.history import DatedReadings
from gp_active_sensing.belief.mean import PriorMean
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

__all__ = ["AgedConditioning"]


class _Present(NamedTuple):
    """What the readings of each place are worth now.

    Args:
        places: (P,) with readings that count, ascending.
        precision: (L, P).
        mean: (L, P) their average, weighted by what they are worth.
        log_within: (L, P) see `CollapsedReadings`.
        squares: (L, P) see `CollapsedReadings`.
        readings: how many there are, an aged one being a part of one.
    """

    places: IntArray
    precision: FloatArray
    mean: FloatArray
    log_within: FloatArray
    squares: FloatArray
    readings: float


class AgedConditioning(Conditioning):
    r"""L Gaussian processes given readings that are worth what their age leaves of them.

    A reading of age a is one of the field as it is now, with a larger noise variance:
    ``v + rate² a²``, or v / w with a weight w(a) ≤ 1 [Mauduit2025, Eqs. 10-12; Deng2022]. With a
    weight its likelihood is taken to the power w,

    .. math:: N(z; f, v)^{w} \propto N(z; f, v / w),

    so that posterior and mean are those of the heteroscedastic process, and a reading that is
    worth nothing says nothing about λ and the scale either. With the density of N(z; f, v/w) in
    its place, stale readings would go on to speak for whatever λ has the least noise.

    Everything is made again when time has passed, O(L |D|³ + L |D|² n) for a prediction everywhere;
    for windows only when a reading comes or goes.

    Args:
        covariance: prior covariance between locations under each λ.
        mean: prior mean of the field.
        scale_known: False to integrate out a factor of each λ's covariance and noise.
        ageing: how readings lose their worth.
    """

    def __init__(
        self,
        covariance: LocationCovariance,
        mean: PriorMean,
        *,
        scale_known: bool,
        ageing: Ageing,
    ) -> None:
        super().__init__(covariance, mean, scale_known=scale_known)
        self.ageing = ageing
        self.history = DatedReadings(covariance.n, ageing)
        self.now = -np.inf
        self._fresh = True
        """Up to date with readings and time."""
        self._counting: bytes = b""
        """Which slots counted at the last update."""
        self._all = np.zeros(3)
        """Number, mean and centred sum of squares of all readings ever."""
        self._present = self._at_present(np.zeros(0, dtype=np.int64))

    def begin(self, covariance: LocationCovariance) -> None:
        """Take another covariance under as many λ; the readings stay."""
        super().begin(covariance)
        self._fresh, self._counting = False, b""

    def _detach(self) -> None:
        """Have nothing in common any more with what this is a copy of."""
        super()._detach()
        self.history, self._all = self.history.copy(), self._all.copy()

    @property
    def begun(self) -> bool:
        """A reading has come."""
        return self.history.slots > 0

    @property
    def readings(self) -> IntArray:
        """(n,) number of readings of each place, those included that do not count any more."""
        return self.history.count

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds > self.now:
            self.now, self._fresh = seconds, False

    def counting(self, times: FloatArray) -> BoolArray:
        """Say which readings of probes, by their times, count now."""
        return self.history.counting(times, self.now)

    def add(
        self,
        location: int,
        value: float,
        noise_variance: float | None,
        seconds: float = 0.0,
        *,
        expert: bool = False,
        off: float | None = None,
    ) -> None:
        """Take in one reading, as the Gaussian process sees it; O(1), amortised."""
        self.history.prune()
        self.history.add(location, value, noise_variance, seconds, expert=expert, off=off)
        self.advance(seconds)
        self._fresh, self._counting = False, b""
        self._all[0] += 1.0
        delta = value - self._all[1]
        self._all[1] += delta / self._all[0]
        self._all[2] += delta * (value - self._all[1])

    def amend(
        self,
        location: int,
        before: tuple[float, float | None, float, float | None],
        value: float,
        noise_variance: float | None,
        seconds: float = 0.0,
        off: float | None = None,
    ) -> None:
        """Put a reading in the place of one that was added; it has that one's slot of time."""
        self.history.amend(location, before, value, noise_variance, seconds, off)
        self.advance(seconds)
        self._fresh, self._counting = False, b""

    def averages(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) average of the readings that count, by what they are worth."""
        self.update()
        return self._present.mean[:, np.searchsorted(self._present.places, locations)]

    def average_variances(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) noise variance of `averages`."""
        self.update()
        rows = np.searchsorted(self._present.places, locations)
        return np.asarray(1.0 / self._present.precision[:, rows])

    def update(self) -> None:
        """Bring factors, evidence and mean coefficients up to date with readings and time."""
        if self._fresh:
            return
        self._fresh = True
        used = self.history.used(self.now)
        counting = used.tobytes()
        if self.ageing.config.kind in ("window", "restart") and counting == self._counting:
            return
        self._counting = counting
        present = self._present = self._at_present(np.flatnonzero(used))
        self._truncate(0)
        if present.places.size:
            self.factor.append(present.places, present.precision, present.mean)
        self._summarise()

    def _at_present(self, slots: IntArray) -> _Present:
        """Return what readings of some slots are worth now, by place."""
        history, ageing = self.history, self.ageing
        slots = slots[np.argsort(history.place[slots], kind="stable")]
        precision, mean, within, squares = self._collapse_slots(history, slots)
        age = np.maximum(self.now - history.time[slots], 0.0)
        share = ageing.shares(age)
        precision, within, squares = precision * share, within * share, squares * share
        if (added := ageing.added(age)) is not None:
            # The change is the same for all readings of a slot: ∫ N(z̄; f + d, 1/p) N(d; 0, c) dd.
            grown = 1.0 / (1.0 / precision + added)
            within = within + 0.5 * np.log(grown / precision)
            precision = grown
        places, begins = np.unique(history.place[slots], return_index=True)
        readings = float((share * history.stats.count[slots]).sum())
        if not places.size:
            nothing = np.zeros((len(self.noise), 0))
            return _Present(places, nothing, nothing, nothing, nothing, 0.0)
        total = np.add.reduceat(precision, begins, axis=1)
        joint = np.add.reduceat(precision * mean, begins, axis=1) / total
        sizes = np.diff(np.append(begins, len(slots)))
        alone = sizes == 1
        joint[:, alone] = mean[:, begins[alone]]
        apart = precision * (mean - np.repeat(joint, sizes, axis=1)) ** 2
        return _Present(
            places,
            total,
            joint,
            np.add.reduceat(within - 0.5 * apart, begins, axis=1),
            np.add.reduceat(squares + apart, begins, axis=1),
            readings,
        )

    def _collapsed(
        self,
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray, float]:
        return self._present

    def _summarise(self) -> None:
        """Log-evidence and posterior mean coefficients from the factor's rows.

        A scale that nothing is known of any more is that of all readings there ever were.
        """
        super()._summarise()
        known = self.basis.shape[1]
        if not self.scale_known and self._present.readings - known < 1.0 and self._all[0] > 1.0:
            spread = self._all[2] / (self._all[0] - 1.0)
            self.scales = np.full_like(self.scales, spread if spread > 0.0 else 1.0)
