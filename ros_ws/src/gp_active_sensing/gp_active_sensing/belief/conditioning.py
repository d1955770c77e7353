"""Gaussian processes conditioned on readings: factors, evidence, and coefficients of the mean."""

from __future__ import annotations

import logging
import math
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief.collapsed import CollapsedReadings, StayUncertainty
from gp_active_sensing.belief.dated_readings import DatedReadings, SlotCovariance
from gp_active_sensing.belief.drift import Ageing
from gp_active_sensing.belief.factor import LEAST_NOISE, Factor, PredictionCache
from gp_active_sensing.belief.place_covariance import Steepness
from gp_active_sensing.belief.prior import (
    IDENTITY,
    LocationCovariance,
    Points,
    PriorMean,
    Transform,
    integrate_scale,
    noise_estimate,
    unit_scale,
)
from gp_active_sensing.belief.resolution import Resolution
from gp_active_sensing.types import BoolArray, FloatArray, IntArray, Off

logger = logging.getLogger(__name__)

_LOG_2PI = math.log(2.0 * math.pi)
_TAIL = 4
"""Number of last rows of the factor. If a place with one of these rows is read again, the row is
recomputed. Any other place gets a second row."""
_REPUBLISHED = (
    "a reading of place %d equals the previous one to the last digit: such readings count once "
    "(logged once)"
)
_REPEATED = 2.0
"""Longest time between a reading and its repetition by a driver [s]."""
_NO_UNIT = 1e100
"""Divisor that makes the readings' own variances negligible while the scale is unknown."""
_LEAST_NOISE = 1e-8
"""Smallest noise variance estimated from repeated readings, relative to the field's variance."""
_NEGLIGIBLE = 1e-13
"""Smallest precision of a second row (see `_TAIL`), relative to the precision of all readings of
the place. A smaller precision counts as a rounding error."""
_EXACT = 1e-6
"""Limit as in `_NEGLIGIBLE`, for a place with a replaced reading. If a second row would have a
smaller precision, all rows are recomputed instead."""


class _Present(NamedTuple):
    """Readings by place, or by slot under the forgetting kernel, with their current weights.

    Args:
        places: (P,) places or slots with readings that affect the belief.
        precision: (L, P) sum of the readings' precisions.
        mean: (L, P) average of the readings, weighted by precision.
        log_within: (L, P) see `CollapsedReadings`.
        squares: (L, P) see `CollapsedReadings`.
        readings: number of readings; an aged reading counts as a fraction.
    """

    places: IntArray
    precision: FloatArray
    mean: FloatArray
    log_within: FloatArray
    squares: FloatArray
    readings: float


class Conditioning:
    r"""L Gaussian processes conditioned on the same readings; call `update` before a query.

    Without `ageing`, each row of the factor represents all readings of a place. Times are ignored.

    Under the forgetting kernel, each row represents the readings of a place in a slot, which is a
    short interval of time. The prior covariance is ``k(x, x') exp(-|t - t'| / τ)``
    (`SlotCovariance`). This is the kernel ``k (1 - ε)^{|t - t'| / 2}`` of [Bogunovic2016;
    Mauduit2025, Eq. 8] with ``τ = -2 Δ / log(1 - ε)`` for steps of Δ seconds. The field returns to
    its prior mean with time; the mean itself does not age. Rows stay valid as time passes.

    Under any other ageing, the noise variance v of a reading grows with its age a. It becomes
    ``v + rate² a²``, or ``v / w`` with a weight ``w(a) ≤ 1`` [Mauduit2025, Eqs. 10-12; Deng2022].
    The weight w is an exponent of the likelihood,

    .. math:: N(z; f, v)^{w} \propto N(z; f, v / w),

    so a reading with w = 0 affects neither the evidence of λ nor the scale. (With the density
    ``N(z; f, v/w)`` instead, old readings would favour the λ with the least noise.) An update at a
    later time costs O(L |D|³ + L |D|² n). Ageing by a window needs no update until a reading leaves
    the window.

    Args:
        covariance: prior covariance between locations under each λ.
        mean: prior mean of the field.
        scale_known: False to integrate out a factor of each λ's covariance and noise.
        noise_known: False if a candidate's noise is a guess. Repeated readings of a place then
            correct the noise (see `noise_estimate`), and only the average of a place updates the
            field. With ageing, the noise counts as known.
        raw: True if the added values are untransformed. Only these show the sensor's resolution.
        ageing: weights and noise of readings by age; None = readings do not age.

    Attributes:
        basis: (n, q) basis of the prior mean, in units of its coefficients' standard deviation.
        order: places with a reading, in the order of their first readings; with ageing, slots.
        noise: (L,) noise variance σ_n²(λ) of readings without a variance of their own.
        noise_estimate: (L,) `noise`, corrected by repeated readings of places.
        floored_noise: (L,) `noise_estimate`, at least `factor.LEAST_NOISE` of the field's variance.
        factor: Cholesky factors of the covariance of the readings.
        log_evidence: (L,) ``log p(z_D | λ)``.
        rest: (L,) term of `log_evidence` that does not depend on the values, at a scale of 1.
        quadratic: (L,) -2 times the other term, which depends on the values, at a scale of 1.
        scales: (L,) scale of the variances; 1 if the scale is known.
        freedom: degrees of freedom ν of an unknown scale (see `integrate_scale`); inf if known.
        coefficients: (L, q) posterior mean of the prior mean's coefficients.
        coefficient_covariance: (L, q, q) posterior covariance of these coefficients.
        now: latest time [s].
    """

    def __init__(
        self,
        covariance: LocationCovariance,
        mean: PriorMean,
        *,
        scale_known: bool,
        noise_known: bool = True,
        raw: bool = True,
        ageing: Ageing | None = None,
    ) -> None:
        self.mean = mean
        self.scale_known = scale_known
        self.noise_known = noise_known or ageing is not None
        self.transform = IDENTITY
        """Transform of added readings; the Gaussian processes use transformed values."""
        self._seen: CollapsedReadings | None = None
        """Statistics of the readings after the transform; None = not computed."""
        self._first = 0.0
        self.ageing = ageing
        self.basis: FloatArray = mean.basis * mean.std
        self.order: list[int] = []
        self.now = -math.inf
        self.steepness: Steepness | None = None
        """Expected slopes of the field at the places; None = their positions are unknown."""
        self._places = CollapsedReadings(covariance.n)
        self._history = None if ageing is None else DatedReadings(covariance.n, ageing)
        self.resolution = Resolution(used=raw)
        """Resolution of the sensor, estimated from the added readings."""
        self._own = False
        """True if some readings have a variance of their own."""
        self._unit: FloatArray | None = None
        """(L,) argument `unit` of `CollapsedReadings.collapse`."""
        self.republished = 0
        """Number of readings that repeated the previous reading of their place."""
        self._newest: dict[int, tuple[float, float | None, float, int]] = {}
        """Latest reading of each place: value, variance, time [s] and how often it was repeated."""
        self._counting = b""
        """With ageing: mask of the slots that affected the last update, as bytes."""
        self._made = -math.inf
        """With ageing: time of the last update [s]."""
        self._all = np.zeros(3)
        """With ageing: number, mean and centred sum of squares of all readings since the start."""
        self.begin(covariance)
        self._present = self._at_present(np.zeros(0, dtype=np.int64)) if self._ages else None

    def _reset_summary(self) -> None:
        L, q = len(self.noise), self.basis.shape[1]
        self.log_evidence: FloatArray = np.zeros(L)
        self.rest: FloatArray = np.zeros(L)
        self.quadratic: FloatArray = np.zeros(L)
        self.scales: FloatArray = np.ones(L)
        self.freedom = math.inf if self.scale_known else 0.0
        self.coefficients: FloatArray = np.zeros((L, q))
        self.coefficient_covariance: FloatArray = np.tile(np.eye(q), (L, 1, 1))

    def move_to(self, covariance: LocationCovariance, mean: PriorMean) -> None:
        """Extend to more places; the existing places come first and keep their readings."""
        self.mean, self.basis = mean, mean.basis * mean.std
        self._places.grow(covariance.n)
        self._seen = None
        if self._history is not None:
            self._history.grow(covariance.n)
        self.begin(covariance)

    def begin(self, covariance: LocationCovariance) -> None:
        """Replace the candidates λ and their covariance; keep the readings."""
        candidates = covariance.hyperparameters
        self.noise: FloatArray = np.array([h.noise_std**2 for h in candidates])
        self._size: FloatArray = np.array([h.variance for h in candidates])
        self._set_noise(self.noise)
        self.covariance = covariance
        self._slots = self._slot_covariance()
        self.factor = Factor(self._slots or covariance, self.basis, self.mean.offset)
        self._everywhere = PredictionCache(covariance.n)
        self._stale = dict.fromkeys(self.order)
        self._amended: set[int] = set()
        """Slots whose rows include a replaced reading and have not been updated yet."""
        self._unit = None
        self._least: FloatArray = np.zeros(len(candidates))
        """(L,) variance that rounding adds to the average of a place, at a scale of 1."""
        self._reset_summary()

    def _set_noise(self, noise: FloatArray) -> None:
        self.noise_estimate: FloatArray = noise
        self.floored_noise: FloatArray = np.maximum(noise, LEAST_NOISE * self._size)

    def _slot_covariance(self) -> SlotCovariance | None:
        if self._history is None or self._ages:
            return None
        return SlotCovariance(self.covariance, self._history)

    def copy(self) -> Conditioning:
        """Return an independent copy."""
        other = copy(self)
        other._places = self._places.copy()
        other.resolution = self.resolution.copy()
        other._newest = dict(self._newest)
        other._history = None if self._history is None else self._history.copy()
        other._all = self._all.copy()
        other.order = list(self.order)
        other.factor = self.factor.copy()
        if self._slots is not None:
            other._slots = other._slot_covariance()
            other.factor.covariance = other._slots or self.covariance
        other._everywhere = PredictionCache(self.covariance.n)
        other._stale, other._amended = dict(self._stale), set(self._amended)
        other.steepness = copy(self.steepness)
        return other

    @property
    def _ages(self) -> bool:
        return self.ageing is not None and self.ageing.config.kind != "kernel"

    @property
    def places(self) -> CollapsedReadings:
        """Statistics of the readings of each place; with ageing, of each slot (place and time)."""
        if self._history is not None:
            return self._history.stats
        if self.transform is IDENTITY:
            return self._places
        if self._seen is None:
            self._seen = self._places.through(self.transform)
        return self._seen

    def see_through(self, transform: Transform) -> None:
        """Condition on the same readings after another transform."""
        self.transform, self._seen = transform, None
        if self.begun and self.basis.shape[1]:
            self.centre_mean(self._first)
        self.begin(self.covariance)

    @property
    def log_jacobian(self) -> float:
        """Term that makes the evidence of different transforms comparable [nat].

        It is the log-Jacobian of the transform at the places' averages. For each coefficient of a
        vague mean, the logarithm of the transformed averages' standard deviation is subtracted.
        """
        averages = self.raw_averages()
        slopes = 0.5 * float(np.log(self.transform.seen_variance(averages, 1.0)).sum())
        spread = float(self.transform.seen(averages).std())
        return slopes - int(self.basis.shape[1]) * math.log(spread)

    def raw_averages(self) -> FloatArray:
        """Return the (k,) averages of the untransformed readings of each observed place."""
        return self._places.averages(np.array(self.order))

    @property
    def begun(self) -> bool:
        """True after the first reading."""
        return bool(self.order)

    @property
    def readings(self) -> IntArray:
        """(n,) number of readings of each place, including readings that are too old to be used."""
        return self._places.count if self._history is None else self._history.count

    @property
    def information(self) -> FloatArray:
        """(L,) information ``½ log |I + N⁻¹ K|`` of the readings [nat]; call `update` first."""
        half_log_precision = 0.5 * np.log(self.factor.precision).sum(axis=1)
        return np.asarray(self.factor.log_diagonal + half_log_precision)

    def advance(self, seconds: float) -> None:
        """Advance the clock to `seconds`; an earlier time is ignored."""
        self.now = max(self.now, seconds)

    def counting(self, times: FloatArray) -> BoolArray:
        """Return a mask of `times`: True where a reading of that time affects the belief now."""
        if self._history is None:
            return np.ones(times.shape, dtype=np.bool_)
        return self._history.counting(times, self.now)

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
        """Add one reading with an untransformed value; amortised O(1). See `Belief.observe`."""
        slot = location
        if not expert and self._is_republished(location, value, noise_variance, seconds, off):
            return
        self._seen = None
        self.resolution.add(value)
        if self._history is None:
            if not self._places.count[location]:
                self.order.append(location)
            self._places.add(location, value, noise_variance, off)
        else:
            if self._history.prune():
                self._truncate(0)
                self.order = list(range(self._history.slots))
                self._stale = dict.fromkeys(self.order)
            slot = self._history.add(location, value, noise_variance, seconds, expert, off)
            if slot == len(self.order):
                self.order.append(slot)
            self.advance(seconds)
            self._all[0] += 1.0
            delta = value - self._all[1]
            self._all[1] += delta / self._all[0]
            self._all[2] += delta * (value - self._all[1])
        self._own = self._own or noise_variance is not None
        self._stale[slot] = None

    def _is_republished(
        self,
        location: int,
        value: float,
        noise_variance: float | None,
        seconds: float,
        off: Off | None,
    ) -> bool:
        """Store a reading as the latest of its place; return whether it repeats the previous one.

        A driver that is faster than its sensor publishes the same value again within `_REPEATED`
        seconds. Readings with equal times never count as repetitions, and neither do readings of a
        sensor with a coarse resolution.
        """
        if self._history is not None or off is not None:
            return False
        *latest, then, times = self._newest.get(location, (math.nan, None, 0.0, 0))
        again = latest == [value, noise_variance] and 0.0 < seconds - then <= _REPEATED
        again = again and self.resolution.used and not self.resolution.step
        self._newest[location] = value, noise_variance, seconds, times + 1 if again else 0
        if again and not self.republished:
            logger.info(_REPUBLISHED, location)
        self.republished += again
        return again

    def amend(
        self,
        location: int,
        before: tuple[float, float | None, float, Off | None],
        value: float,
        noise_variance: float | None,
        seconds: float = 0.0,
        off: Off | None = None,
    ) -> None:
        """Replace a reading that was added; O(1).

        Arguments are as in `Belief.amend`. Values are untransformed.
        """
        slot: int | None = location
        self._seen = None
        newest = self._newest.pop(location, (0.0, None, 0.0, 0))
        once_more = newest[3] > 0 and newest[:2] == before[:2]
        if not once_more:
            self.resolution.remove(before[0])
        self.resolution.add(value)
        if self._history is None:
            if not once_more:
                self._places.remove(location, before[0], before[1], before[3])
            self._places.add(location, value, noise_variance, off)
        else:
            slot = self._history.amend(location, before, value, noise_variance, seconds, off)
            self.advance(seconds)
        self._own = self._own or noise_variance is not None
        if slot is None:  # dropped slot: the belief uses neither of the two readings
            self._made = -math.inf
            return
        self._stale[slot] = None
        self._amended.add(slot)

    def centre_mean(self, value: float) -> None:
        """Centre a vague mean on an untransformed value."""
        self._first = value
        offset = np.full(self.covariance.n, self.transform.forward(value, None)[0])
        self.mean = replace(self.mean, offset=offset)
        self.factor.offset = offset

    def averages(self, locations: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the (L, m) average readings of observed places, and the averages' noise variances.

        Each reading is weighted by its precision at its current age. Under the forgetting kernel,
        the average includes only readings in the latest slot of a place. Variances are at a scale
        of 1; see `scales`.
        """
        if self._ages:
            self.update()
        if self._present is not None:
            at = np.searchsorted(self._present.places, locations)
            return self._present.mean[:, at], 1.0 / self._present.precision[:, at]
        self._find_unit()
        slots = locations if self._history is None else self._history.latest[locations]
        precision, mean, _, _ = self._collapse(slots)
        return mean, 1.0 / precision

    def _cross(self, rows: IntArray, places: IntArray) -> FloatArray:
        """Return the (L, r, m) prior covariance of factor rows and places at the current time."""
        if self._slots is None:
            return self.covariance.between(rows, places)
        return self._slots.with_places(rows, places, self.now)

    def solved(self, where: IntArray, which: IntArray | None = None) -> FloatArray:
        """Return ``C⁻¹ K_D*`` (L, R, m) for some places at the current time; call `update` first.

        C is the Cholesky factor of the R rows, and K_D* their covariance with the places. With the
        indices `which` (W,), the result is (W, R, m) for these candidates λ.
        """
        if which is None or self._slots is not None:
            found = self.factor.solve(self._cross(self.factor.place, where))
            return found if which is None else found[which]
        right = self.covariance.only(which.tolist()).between(self.factor.place, where)
        return self.factor.solve(right, which=which)

    def with_prior(self, where: IntArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the prior covariance (W, m, m) of some places, and the result of `solved`."""
        covariance, rows = self.covariance.only(which.tolist()), self.factor.place
        if self._slots is not None:
            return covariance.between(where, where), self.solved(where, which)
        both = covariance.between(np.concatenate([rows, where]), where)
        solved = self.factor.solve(both[:, : len(rows)], which=which)
        return both[:, len(rows) :].copy(), solved

    def with_points(self, points: Points, which: IntArray) -> FloatArray:
        """Return the (W, R, m) prior covariance of factor rows with points at the current time.

        `which` (W,) are indices of candidates λ, ascending.
        """
        rows = self.factor.place
        if self._slots is None:
            return self.covariance.only(which.tolist()).with_points(rows, points)
        return self._slots.with_points(rows, points, self.now, which.tolist())

    def moments(
        self, places: IntArray, which: IntArray, solved: FloatArray, R: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (W, m) of the field under some of the candidates λ.

        Args:
            places: (m,) places whose known mean and prior variance are used.
            which: (W,) indices of the candidates, ascending.
            solved: (W, R, m) result of `solved`.
            R: (W, m, q) ``H* - solvedᵀ U`` with the mean's basis H* at the places.
        """
        mean = self.mean.offset[places] + (self.factor.v[which, None] @ solved)[:, 0]
        mean = mean + (R @ self.coefficients[which, :, None])[:, :, 0]
        variance: FloatArray = self.covariance.only(which.tolist()).variance(places)
        variance = variance - (solved * solved).sum(axis=1)
        if R.shape[2]:
            variance += ((R @ self.coefficient_covariance[which]) * R).sum(axis=2)
        return mean, self.scales[which, None] * np.maximum(variance, 0.0)

    @property
    def block(self) -> int:
        """Number of points that are predicted together; call `update` first."""
        return self._everywhere.chunk(self.factor)

    def everywhere(self) -> FloatArray:
        """Return `solved` (L, R, n) for all places; call `update` first."""
        if self._slots is not None:
            self._everywhere.fade(self.now, self._slots.time_scale)
        return self._everywhere.of(self.factor, self._cross)

    def sums(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return `PredictionCache.sums` for all places at the current time; call `update` first."""
        self.everywhere()
        return self._everywhere.sums(self.factor, self._cross)

    def collapsed(self) -> _Present:
        """Return the readings of each place or slot, weighted by age; call `update` first."""
        if self._present is not None:
            return self._present
        slots = np.array(self.order)
        precision, mean, within, squares = self._collapse(slots)
        if not self.noise_known:
            within, squares = 0.5 * (np.log(precision) - _LOG_2PI), np.zeros_like(squares)
        counts = float(self.counts(slots).sum())
        return _Present(slots, precision, mean, within, squares, counts)

    def counts(self, slots: IntArray) -> IntArray:
        """Return for each of k slots the number of readings that enter the evidence."""
        return self.places.count[slots] if self.noise_known else np.ones_like(slots)

    def chunks(self) -> list[IntArray] | None:
        """Return blocks of places for separate queries; None if all places fit into the cache."""
        n = self.covariance.n
        if self._everywhere.keeps(self.factor):
            return None
        self._everywhere.release()
        size = self._everywhere.chunk(self.factor)
        return [np.arange(i, min(i + size, n)) for i in range(0, n, size)]

    def _truncate(self, rows: int) -> None:
        self.factor.truncate(rows)
        self._everywhere.truncate(rows)

    def update(self) -> None:
        """Update factors, evidence and mean coefficients to the current readings and time."""
        if self._ages:
            self._update_aged()
        elif self._stale:
            self._update_rows()
            self._stale.clear()
            self._amended.clear()
            self._summarise()

    def _update_aged(self) -> None:
        assert self.ageing is not None
        assert self._history is not None
        if not self._stale and self._made == self.now:
            return
        self._made = self.now
        used = self._history.used(self.now)
        counting = used.tobytes()
        windowed = self.ageing.config.kind in ("window", "restart")
        if windowed and not self._stale and counting == self._counting:
            return
        self._counting = counting
        self._stale.clear()
        self._amended.clear()
        self._present = present = self._at_present(np.flatnonzero(used))
        self._truncate(0)
        if present.places.size:
            self.factor.append(present.places, present.precision, present.mean)
        self._summarise()

    def _at_present(self, slots: IntArray) -> _Present:
        """Return the readings of `slots` (pairs of place and time) by place, weighted by age."""
        assert self.ageing is not None
        assert self._history is not None
        history, ageing = self._history, self.ageing
        slots = slots[np.argsort(history.place[slots], kind="stable")]
        precision, mean, within, squares = self._collapse(slots)
        age = np.maximum(self.now - history.time[slots], 0.0)
        share = ageing.shares(age)
        precision, within, squares = precision * share, within * share, squares * share
        if (added := ageing.added(age)) is not None:
            # The field's change d is common to a slot: ∫ N(z̄; f + d, 1/p) N(d; 0, c) dd.
            grown = 1.0 / (1.0 / precision + added)
            within = within + 0.5 * np.log(grown / precision)
            precision = grown
        places, begins = np.unique(history.place[slots], return_index=True)
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
            float((share * history.stats.count[slots]).sum()),
        )

    def _update_rows(self) -> None:
        """Recompute or append the rows of slots with changed readings."""
        if self._history is not None:
            self.factor.basis = self.basis[self._history.place]
            self.factor.offset = self.mean.offset[self._history.place]
        self._find_unit()
        factor = self.factor
        row_of: dict[int, int] = {}
        for row, place in enumerate(factor.place.tolist()):
            row_of.setdefault(place, row)
        stale = [place for place in self.order if place in self._stale]
        first = min((row_of.get(p, factor.rows) for p in stale), default=factor.rows)
        if first < factor.rows - _TAIL:
            first = self._first_amended()
        again: list[int] = []
        if first < factor.rows:
            again = list(dict.fromkeys(factor.place[first:].tolist()))
            self._truncate(first)
            # A place that loses its last row may keep an earlier row and then counts as old.
            row_of = {p: r for p, r in row_of.items() if r < first}
        # An amended reading may change again while the probe stays: put its row last, because the
        # last rows are cheap to remove.
        fresh = sorted(dict.fromkeys([*again, *stale]), key=self._amended.__contains__)
        old = [p for p in fresh if p in row_of]
        if factor.rows + len(fresh) - len(self.order) > max(8, len(self.order) // 4):
            self._truncate(0)
            fresh, old = list(self.order), []
        new = [p for p in fresh if p not in set(old)]
        if new:
            self._append(np.array(new))
        if old and not self._double(np.array(old)):
            self._truncate(0)
            self._append(np.array(sorted(self.order, key=self._amended.__contains__)))

    def _collapse(self, slots: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        beside = None
        if self.places.has_stays:
            beside = self._beside(slots if self._history is None else self._history.place[slots])
        found = self.places.collapse(slots, self.noise_estimate, self._unit, beside)
        if not self._least.any():
            return found
        least = self._hidden(self._least, self.noise_estimate, found[1])
        return 1.0 / (1.0 / found[0] + least), *found[1:]

    def _beside(self, places: IntArray) -> StayUncertainty:
        steepness = np.zeros((2, len(self.noise), len(places)))
        if self.steepness is not None and len(places):
            steepness = self.steepness.of(self.covariance, places)
        # The belief's noise is added if the noise of a reading is uncertain.
        noisy = not self.scale_known or len(set(self.noise.tolist())) > 1
        return StayUncertainty(steepness, noisy)

    def _find_unit(self) -> None:
        """Estimate the noise and, for an unknown scale, the divisor of the readings' own variances.

        A changed estimate marks all rows for recomputation.
        """
        if not self._stale:
            return
        unit: FloatArray | None = np.ones_like(self.noise)
        freedom, squares, least = 0.0, 0.0, 0.0
        if not self.noise_known:
            (freedom, squares), least = self.places.scatter(), self.resolution.variance
        if not self.scale_known and (self._own or freedom or least):
            places = np.array(self.order)
            unit = unit_scale(self.covariance, self.basis, places, self.places.averages(places))
        noise = self.noise
        squares = max(squares, freedom * least)
        if freedom and squares and unit is not None:
            noise = noise_estimate(noise, unit, freedom, squares)
            noise = np.maximum(noise, _LEAST_NOISE * self._size)
        moved = not np.array_equal(noise, self.noise_estimate)
        if moved:
            self._set_noise(noise)
        added = np.zeros_like(noise) if unit is None else least / unit
        if not np.array_equal(added, self._least):
            self._least, moved = added, True
        if not self.scale_known and self._own:
            if unit is None:
                unit = np.full(len(self.noise), _NO_UNIT)
            if self._unit is None or not np.array_equal(unit, self._unit):
                self._unit, moved = unit, True
        if moved:
            self._truncate(0)
            self._stale = dict.fromkeys(self.order)

    def _hidden(self, least: FloatArray, noise: FloatArray, mean: FloatArray) -> FloatArray:
        """Return the (L, k) variance that the rounding of readings to steps d causes.

        The variance is given after the transform. If the noise has a standard deviation of d/2 or
        more, the rounding errors average out, and the result is 0.

        Args:
            least: (L,) or (1,) d²/12, at the scale of `noise`.
            noise: (L,) noise variance of a reading, after the transform.
            mean: (L, k) expected readings, after the transform.
        """
        steep = np.square(self.transform.steepness(mean))
        small = noise[:, None] * steep < 3.0 * least[:, None]
        return np.asarray(np.where(small, least[:, None] / steep, 0.0))

    def floor(self, mean: FloatArray, which: IntArray | None = None) -> FloatArray | None:
        """Return (L, m) lower limits of the field's variance from `Resolution`; None = no limits.

        Call `update` first.

        Args:
            mean: (L, m) posterior mean at places, after the transform.
            which: (L,) indices of the candidates λ; None = all.
        """
        least = self.resolution.variance
        if not least:
            return None
        noise = self.floored_noise * self.scales
        return self._hidden(np.array([least]), noise if which is None else noise[which], mean)

    def _first_amended(self) -> int:
        """Return the first row with a replaced reading; if there is none, the number of rows.

        The reading is assumed to be in the last row of its place. If two probes read the place, the
        reading may be in an earlier row; see `_double`.
        """
        last = {place: row for row, place in enumerate(self.factor.place.tolist())}
        return min((last[p] for p in self._amended if p in last), default=self.factor.rows)

    def _append(self, places: IntArray) -> None:
        precision, mean, _, _ = self._collapse(places)
        self.factor.append(places, precision, mean)

    def _double(self, places: IntArray) -> bool:
        """Append second rows for `places`; they represent the readings that are in no present row.

        Returns:
            False if the precision of a place with a replaced reading has not increased enough for a
            second row. In this case, no row is appended.
        """
        factor = self.factor
        precision, mean, _, _ = self._collapse(places)
        total = precision * mean
        position = {int(p): i for i, p in enumerate(places)}
        had, had_total = np.zeros_like(precision), np.zeros_like(total)
        for row, place in enumerate(factor.place.tolist()):
            if place in position:
                had[:, position[place]] += factor.precision[:, row]
                had_total[:, position[place]] += factor.precision[:, row] * factor.value[:, row]
        extra = precision - had
        amended = [p in self._amended for p in places.tolist()]
        if (extra < _EXACT * precision)[:, amended].any():
            return False
        # A reading with a huge variance vanishes in the sum of precisions: `extra` is rounding.
        least = _NEGLIGIBLE * precision
        value = np.where(extra < least, mean, (total - had_total) / np.maximum(extra, least))
        factor.append(places, np.maximum(extra, least), value)
        return True

    def _summarise(self) -> None:
        factor = self.factor
        U, v = factor.U, factor.v
        q = U.shape[2]
        Ut = np.swapaxes(U, 1, 2)
        A = Ut @ U + np.eye(q)
        beta = np.linalg.solve(A, Ut @ v[:, :, None])[:, :, 0]
        residual = v - (U @ beta[:, :, None])[:, :, 0]
        quadratic = (residual**2).sum(axis=1) + (beta**2).sum(axis=1)
        log_det_A = np.linalg.slogdet(A)[1]
        # Replace the normalised density of each row by the density of its readings. Keep the term
        # that depends on the values separate, because it may be a difference of large numbers.
        place = factor.place
        all_places, _, mean, log_within, squares, readings = self.collapsed()
        number = np.zeros(len(factor.offset), dtype=np.int64)
        number[all_places] = np.arange(len(all_places))
        apart = factor.value - mean[:, number[place]] if len(place) else factor.value
        scatter = (factor.precision * apart**2).sum(axis=1)
        total = np.maximum(quadratic + squares.sum(axis=1) - scatter, 0.0)
        rest = (log_within + 0.5 * squares).sum(axis=1) - factor.log_diagonal - 0.5 * log_det_A
        rest -= 0.5 * np.log(factor.precision).sum(axis=1)
        self.rest, self.quadratic = rest, total
        self.log_evidence = rest - 0.5 * total
        if not self.scale_known:
            apart = mean[0] - factor.offset[all_places]
            size = float(np.mean(apart**2)) if apart.size else 0.0
            self.log_evidence, self.scales = integrate_scale(rest, total, readings, q, size)
            self.freedom = max(0.0, readings - q)
            if self._ages and readings - q < 1.0 and self._all[0] > 1.0:
                # Too few recent readings for a scale: use the variance of all readings so far.
                spread = self._all[2] / (self._all[0] - 1.0)
                self.scales = np.full_like(self.scales, spread if spread > 0.0 else 1.0)
        self.coefficients = np.asarray(beta, dtype=np.float64)
        self.coefficient_covariance = np.asarray(np.linalg.inv(A), dtype=np.float64)
