"""Gaussian processes conditioned on readings that age, where the field changes in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from gp_active_sensing.belief.conditioning import Conditioning
from gp_active_sensing.belief.dated_readings import DatedReadings
from gp_active_sensing.belief.drift import Ageing
from gp_active_sensing.belief.factor import Factor, PredictionCache
from gp_active_sensing.belief.prior import LocationCovariance, PriorMean
from gp_active_sensing.types import BoolArray, FloatArray, IntArray, Off

__all__ = [
    "AgedConditioning",
    "DatedConditioning",
    "ForgettingConditioning",
    "SlotCovariance",
    "aged_conditioning",
]


class DatedConditioning(Conditioning):
    """L Gaussian processes given readings that are kept with their times.

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
        self.ageing = ageing
        self.history = DatedReadings(covariance.n, ageing)
        self.now = -math.inf
        super().__init__(covariance, mean, scale_known=scale_known)

    def _grow(self, n: int) -> None:
        """Make room for the readings of n places."""
        super()._grow(n)
        self.history.grow(n)

    @property
    def readings(self) -> IntArray:
        """(n,) number of readings of each place, those included that do not count any more."""
        return self.history.count

    def counting(self, times: FloatArray) -> BoolArray:
        """Return which readings of probes, by their times, count now."""
        return self.history.counting(times, self.now)

    def _detach(self) -> None:
        """Copy what a copy must not share."""
        super()._detach()
        self.history = self.history.copy()


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


class AgedConditioning(DatedConditioning):
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
    """

    def __init__(
        self,
        covariance: LocationCovariance,
        mean: PriorMean,
        *,
        scale_known: bool,
        ageing: Ageing,
    ) -> None:
        super().__init__(covariance, mean, scale_known=scale_known, ageing=ageing)
        self._fresh = True
        """Up to date with readings and time."""
        self._counting: bytes = b""
        """Which slots counted at the last update."""
        self._all = np.zeros(3)
        """Number, mean and centred sum of squares of all readings ever."""
        self._present = self._at_present(np.zeros(0, dtype=np.int64))

    def begin(self, covariance: LocationCovariance) -> None:
        """Replace the covariance by one under as many λ; the readings stay."""
        super().begin(covariance)
        self._fresh, self._counting = False, b""

    def _detach(self) -> None:
        """Copy what a copy must not share."""
        super()._detach()
        self._all = self._all.copy()

    @property
    def begun(self) -> bool:
        """A reading has come."""
        return self.history.slots > 0

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds > self.now:
            self.now, self._fresh = seconds, False

    def add(
        self,
        location: int,
        value: float,
        noise_variance: float | None,
        seconds: float = 0.0,
        *,
        expert: bool = False,
        off: Off | None = None,
    ) -> None:
        """Add one reading, as the Gaussian process sees it; O(1), amortised."""
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
        before: tuple[float, float | None, float, Off | None],
        value: float,
        noise_variance: float | None,
        seconds: float = 0.0,
        off: Off | None = None,
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


class SlotCovariance:
    """``k(x, x') exp(-|t - t'| / τ)`` between slots of a history, each a place and a time.

    Args:
        space: covariance between places under each λ.
        history: knows place and time of every slot.
        time_scale: τ [s].
    """

    def __init__(
        self, space: LocationCovariance, history: DatedReadings, time_scale: float
    ) -> None:
        self.space = space
        self.hyperparameters = space.hyperparameters
        self.history = history
        self.time_scale = time_scale

    @property
    def n(self) -> int:
        """Number of slots."""
        return self.history.slots

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the field at the places and times of slots."""
        place, time = self.history.place, self.history.time
        apart = np.abs(time[rows][:, None] - time[columns])
        return self.space.between(place[rows], place[columns]) * np.exp(-apart / self.time_scale)

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the field."""
        return self.space.variance(self.history.place[locations])

    def only(self, which: Sequence[int]) -> SlotCovariance:
        """Return the same under some of the candidates only."""
        return SlotCovariance(self.space.only(which), self.history, self.time_scale)

    def place_of(self, slots: IntArray) -> IntArray:
        """Return the place of each slot."""
        return self.history.place[slots]

    def with_places(self, rows: IntArray, places: IntArray, now: float) -> FloatArray:
        """Return the (L, r, m) covariance of slots with places as they are at a time `now`."""
        apart = np.abs(now - self.history.time[rows])
        faded = np.exp(-np.minimum(apart / self.time_scale, 700.0))
        return self.space.between(self.history.place[rows], places) * faded[:, None]


class _Faded(PredictionCache):
    """``C⁻¹ K_D*`` of the present: as time goes by, it only fades by a common factor."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.now = -math.inf

    def move(self, now: float, time_scale: float) -> None:
        """Move what is kept to a later time."""
        if now > self.now and self._rows:
            self._kept[:, : self._rows] *= math.exp(-(now - self.now) / time_scale)
        self.now = now

    def _between(self, factor: Factor, first: int) -> FloatArray:
        covariance = cast(SlotCovariance, factor.covariance)
        return covariance.with_places(factor.place[first:], self._everything, self.now)


class ForgettingConditioning(DatedConditioning):
    r"""L Gaussian processes over places and times, given readings at theirs.

    .. math:: k((x, t), (x', t')) = k(x, x') \exp(-|t - t'| / \tau)

    which is the kernel ``k (1 - ε)^{|t - t'| / 2}`` of [Bogunovic2016; Mauduit2025, Eq. 8] with
    ``τ = -2 Δ / log(1 - ε)`` for steps of Δ seconds. What decorrelates is the field about its prior
    mean; the mean's own coefficients stand. A row of the factor is a slot of the history. Nothing
    is made again when time passes: the readings' own covariance does not depend on now.
    """

    def __init__(
        self,
        covariance: LocationCovariance,
        mean: PriorMean,
        *,
        scale_known: bool,
        ageing: Ageing,
    ) -> None:
        self._latest: IntArray = np.full(covariance.n, -1, dtype=np.int64)
        """(n,) slot of each place's latest reading."""
        super().__init__(covariance, mean, scale_known=scale_known, ageing=ageing)

    def begin(self, covariance: LocationCovariance) -> None:
        """Replace the covariance by one under as many λ; the readings stay."""
        super().begin(covariance)
        self._everywhere = self._faded = _Faded(covariance.n)
        self._by_slot()

    def _grow(self, n: int) -> None:
        """Make room for the readings of n places; what is kept of them is by slot."""
        self.history.grow(n)
        more = np.full(n - self._latest.size, -1, dtype=np.int64)
        self._latest = np.concatenate([self._latest, more])

    def _by_slot(self) -> None:
        """Make a factor over slots, without rows; all slots are to be added."""
        jittered = self.factor.jittered
        self._slots = SlotCovariance(self.covariance, self.history, self.ageing.constant)
        self.factor = Factor(self._slots, self.basis[:0], self.mean.offset[:0])
        self.factor.jittered = jittered
        self._everywhere.truncate(0)
        self.places = self.history.stats
        self.order = list(range(self.history.slots))
        self._stale = dict.fromkeys(self.order)

    def _detach(self) -> None:
        """Copy what a copy must not share."""
        super()._detach()
        self._latest = self._latest.copy()
        self.places = self.history.stats
        self._slots = SlotCovariance(self.covariance, self.history, self.ageing.constant)
        self.factor.covariance = self._slots
        self._everywhere = self._faded = _Faded(self.covariance.n)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now = max(self.now, seconds)

    def add(
        self,
        location: int,
        value: float,
        noise_variance: float | None,
        seconds: float = 0.0,
        *,
        expert: bool = False,
        off: Off | None = None,
    ) -> None:
        """Add one reading, as the Gaussian process sees it; O(1), amortised."""
        if self.history.prune():
            self._by_slot()
            self._latest[:] = -1
            order = np.argsort(self.history.last, kind="stable")
            self._latest[self.history.place[order]] = order
        before = self.history.slots
        slot = self.history.add(location, value, noise_variance, seconds, expert=expert, off=off)
        if self.history.slots > before:
            self.order.append(slot)
        latest = self._latest[location]
        if latest < 0 or self.history.last[slot] >= self.history.last[latest]:
            self._latest[location] = slot
        self._stale[slot] = None
        self.advance(seconds)

    def amend(
        self,
        location: int,
        before: tuple[float, float | None, float, Off | None],
        value: float,
        noise_variance: float | None,
        seconds: float = 0.0,
        off: Off | None = None,
    ) -> None:
        """Put a reading in the place of one that was added; it has that one's slot of time."""
        slot = self.history.amend(location, before, value, noise_variance, seconds, off)
        self.advance(seconds)
        if slot is not None:
            self._stale[slot] = None
            self._amended.add(slot)

    def centre_mean(self, value: float) -> None:
        """Let a vague mean be vague about a value; only before the first reading."""
        self.mean = replace(self.mean, offset=np.full(self.covariance.n, value))

    def averages(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) average of the latest readings of each place."""
        return self._collapse(self._latest[locations])[1]

    def average_variances(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) noise variance of `averages`."""
        return np.asarray(1.0 / self._collapse(self._latest[locations])[0])

    def _collapse(self, places: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return self._collapse_slots(self.history, places)

    def solved(self, where: IntArray) -> FloatArray:
        """Return ``C⁻¹ K_D*`` (L, R, m) for some places now; call `update` first."""
        return self.factor.solve(self._slots.with_places(self.factor.place, where, self.now))

    def everywhere(self) -> FloatArray:
        """Return ``C⁻¹ K_D*`` (L, R, n) for every place now; call `update` first."""
        self._faded.move(self.now, self.ageing.constant)
        return super().everywhere()

    def update(self) -> None:
        """Bring factors, evidence and mean coefficients up to date with the readings."""
        if self._stale:
            self.factor.basis = self.basis[self.history.place]
            self.factor.offset = self.mean.offset[self.history.place]
        super().update()


def aged_conditioning(
    covariance: LocationCovariance, mean: PriorMean, ageing: Ageing, *, scale_known: bool
) -> DatedConditioning:
    """Return the Gaussian processes, before their first reading, of a field that changes."""
    kind = ForgettingConditioning if ageing.config.kind == "kernel" else AgedConditioning
    return kind(covariance, mean, scale_known=scale_known, ageing=ageing)
