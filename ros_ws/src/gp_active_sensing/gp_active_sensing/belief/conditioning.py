"""Gaussian processes conditioned on readings: factors, evidence, and the mean's coefficients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from gp_active_sensing.belief.collapsed import Beside, CollapsedReadings
from gp_active_sensing.belief.factor import LEAST_NOISE, Factor, PredictionCache
from gp_active_sensing.belief.place_covariance import Steepness
from gp_active_sensing.belief.prior import LocationCovariance, PriorMean
from gp_active_sensing.belief.scale import integrate_scale, unit_scale
from gp_active_sensing.types import BoolArray, FloatArray, IntArray, Off

__all__ = ["Conditioning"]

_TAIL = 4
"""Rows from the end within which a place's row is rebuilt instead of doubled."""
_NO_UNIT = 1e100
"""Unit of variances while nothing is known of the scale: they hardly count."""
_NEGLIGIBLE = 1e-13
"""Share of a place's precision below which new readings cannot be told from rounding."""
_EXACT = 1e-6
"""Share of a place's precision from which a second row says exactly what an amended one lacks."""


class Slots(Protocol):
    """Readings by place and time."""

    @property
    def place(self) -> IntArray:
        """(S,) place of each slot."""
        ...

    @property
    def stats(self) -> CollapsedReadings:
        """What the readings of each slot collapse to."""
        ...


class Conditioning:
    """L Gaussian processes given the same readings; `update` follows them when something is asked.

    Everything below but `places` and `order` is up to date only after `update`.

    Args:
        covariance: prior covariance between locations under each λ.
        mean: prior mean of the field.
        scale_known: False to integrate out a factor of each λ's covariance and noise.

    Attributes:
        basis: (n, q) basis of the prior mean, in units of its coefficients' standard deviation.
        places: the readings of each place.
        order: places with a reading, in the order they came.
        noise: (L,) noise variance of a reading that has none of its own.
        floored_noise: (L,) the same as computed with, see `Factor`.
        factor: of the covariance of the readings.
        log_evidence: (L,) ``log p(z_D | λ)``.
        rest: (L,) of it what does not depend on the values at all, at a factor of 1.
        quadratic: (L,) -2 times what does, at a factor of 1.
        scales: (L,) factor of the variances; 1 where the scale is known.
        freedom: degrees of freedom of that factor, ν of `integrate_scale`; inf where it is known.
        coefficients: (L, q) posterior mean of the prior mean's coefficients.
        coefficient_covariance: (L, q, q).
    """

    def __init__(
        self, covariance: LocationCovariance, mean: PriorMean, *, scale_known: bool
    ) -> None:
        self.mean = mean
        self.scale_known = scale_known
        self.basis: FloatArray = mean.basis * mean.std
        self.places = CollapsedReadings(covariance.n)
        self.order: list[int] = []
        self._stale: dict[int, None] = {}
        self.steepness: Steepness | None = None
        """How much the field varies about a place; None = that is not known."""
        self._own = False
        """Some readings have brought a variance of their own."""
        self._unit: FloatArray | None = None
        """(L,) see `CollapsedReadings.collapse`; None with a known scale, or no reading."""
        self._amended: set[int] = set()
        """Of the stale ones, those whose rows hold a reading that is not there any more."""
        self.begin(covariance)
        self._say_nothing()

    def _say_nothing(self) -> None:
        """Begin with what is so without a reading."""
        L, q = len(self.noise), self.basis.shape[1]
        self.log_evidence: FloatArray = np.zeros(L)
        self.rest: FloatArray = np.zeros(L)
        self.quadratic: FloatArray = np.zeros(L)
        self.scales: FloatArray = np.ones(L)
        self.freedom = math.inf if self.scale_known else 0.0
        self.coefficients: FloatArray = np.zeros((L, q))
        self.coefficient_covariance: FloatArray = np.tile(np.eye(q), (L, 1, 1))

    def move_to(self, covariance: LocationCovariance, mean: PriorMean) -> None:
        """Go on over more places; those there are come first and keep their readings.

        Args:
            covariance: under as many λ, over all of them.
            mean: prior mean of the field at all of them.
        """
        self.mean, self.basis = mean, mean.basis * mean.std
        self._grow(covariance.n)
        self.begin(covariance)
        self._say_nothing()

    def _grow(self, n: int) -> None:
        """Make room for the readings of n places."""
        self.places.grow(n)

    def begin(self, covariance: LocationCovariance) -> None:
        """Replace the covariance by one under as many λ; the readings stay."""
        candidates = covariance.hyperparameters
        self.noise: FloatArray = np.array([h.noise_std**2 for h in candidates])
        least = LEAST_NOISE * np.array([h.variance for h in candidates])
        self.floored_noise: FloatArray = np.maximum(self.noise, least)
        self.covariance = covariance
        self.factor = Factor(covariance, self.basis, self.mean.offset)
        self._everywhere = PredictionCache(covariance.n)
        self._stale = dict.fromkeys(self.order)
        self._amended = set()
        self._unit = None

    def copy(self) -> Conditioning:
        """Return an independent copy."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._detach()
        return other

    def told_mean(self, coefficient_covariance: FloatArray) -> Conditioning:
        """Return this one with another covariance of the mean's coefficients, to be read only.

        Args:
            coefficient_covariance: (L, q, q).
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.coefficient_covariance = coefficient_covariance
        return other

    def _detach(self) -> None:
        """Copy what a copy must not share."""
        self.places = self.places.copy()
        self.order = list(self.order)
        self.factor = self.factor.copy()
        self._everywhere = PredictionCache(self.covariance.n)
        self._stale, self._amended = dict(self._stale), set(self._amended)
        self.steepness = None if self.steepness is None else self.steepness.copy()

    @property
    def begun(self) -> bool:
        """A reading has come."""
        return bool(self.order)

    @property
    def readings(self) -> IntArray:
        """(n,) number of readings of each place."""
        return self.places.count

    @property
    def information(self) -> FloatArray:
        """(L,) ``½ log |I + N⁻¹ K|`` of the readings [nat]; call `update` first."""
        half_log_noise = -0.5 * np.log(self.factor.precision).sum(axis=1)
        return np.asarray(self.factor.log_diagonal - half_log_noise)

    def advance(self, seconds: float) -> None:
        """Let time pass; no effect here."""

    def counting(self, times: FloatArray) -> BoolArray:
        """Return which readings of probes, by their times, count now: here all of them."""
        return np.ones(times.shape, dtype=np.bool_)

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
        """Add one reading, as the Gaussian process sees it; O(1). Times have no effect here."""
        if not self.places.count[location]:
            self.order.append(location)
        self.places.add(location, value, noise_variance, off)
        self._own = self._own or noise_variance is not None
        self._stale[location] = None

    def amend(
        self,
        location: int,
        before: tuple[float, float | None, float, Off | None],
        value: float,
        noise_variance: float | None,
        seconds: float = 0.0,
        off: Off | None = None,
    ) -> None:
        """Put a reading in the place of one that was added; O(1).

        Args:
            location: of both.
            before: value, noise variance, time [s] and `off` of the one that goes.
            value: as the Gaussian process sees it.
            noise_variance: of the new one; None = σ_n²(λ).
            seconds: its time, which has no effect here.
            off: see `CollapsedReadings.add`.
        """
        self.places.remove(location, before[0], before[1], before[3])
        self.places.add(location, value, noise_variance, off)
        self._own = self._own or noise_variance is not None
        self._stale[location] = None
        self._amended.add(location)

    def centre_mean(self, value: float) -> None:
        """Let a vague mean be vague about a value; only before the first reading."""
        offset = np.full(self.places.count.size, value)
        self.mean = replace(self.mean, offset=offset)
        self.factor.offset = offset

    def averages(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) average reading of places that have one."""
        self._find_unit()
        return self._collapse(locations)[1]

    def average_variances(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) noise variance of `averages`, in those of the covariance."""
        self._find_unit()
        return np.asarray(1.0 / self._collapse(locations)[0])

    def solved(self, where: IntArray) -> FloatArray:
        """Return ``C⁻¹ K_D*`` (L, R, m) for some places; call `update` first."""
        return self.factor.solve(self.covariance.between(self.factor.place, where))

    def everywhere(self) -> FloatArray:
        """Return ``C⁻¹ K_D*`` (L, R, n) for every place; call `update` first."""
        return self._everywhere.of(self.factor)

    def collapsed(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Return places with a reading, mean, `log_within`, squares (L, D): `CollapsedReadings`.

        Call `update` first.
        """
        places, _, mean, log_within, squares, _ = self._collapsed()
        return places, mean, log_within, squares

    def chunks(self) -> list[IntArray] | None:
        """Return all places in parts of which the memory is small; None where all together are."""
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
        """Bring factors, evidence and mean coefficients up to date with the readings."""
        if not self._stale:
            return
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
            # A place cut off may keep an earlier row; then it counts as an old place below.
            row_of = {p: r for p, r in row_of.items() if r < first}
        # What was amended will be again while the probe stays: it goes last, to be cut off cheaply.
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
        self._stale.clear()
        self._amended.clear()
        self._summarise()

    def _collapse(self, places: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        beside = self._beside(places) if self.places.has_stays else None
        return self.places.collapse(places, self.noise, self._unit, beside)

    def _collapse_slots(
        self, history: Slots, slots: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the same for readings that are kept by place and time."""
        beside = self._beside(history.place[slots]) if history.stats.has_stays else None
        return history.stats.collapse(slots, self.noise, None, beside)

    def _beside(self, places: IntArray) -> Beside:
        """Return what averages over a stay at some places do not say of themselves."""
        steepness = np.zeros((2, len(self.noise), len(places)))
        if self.steepness is not None and len(places):
            steepness = self.steepness.of(self.covariance, places)
        # Where the noise of a reading is not known for certain the belief's comes on top.
        noisy = not self.scale_known or len(set(self.noise.tolist())) > 1
        return Beside(steepness, noisy)

    def _find_unit(self) -> None:
        """Set the readings' own variances against the scale of the field, where that is unknown.

        What they come to may change by steps as the readings go on: then all rows are made again.
        """
        if self.scale_known or not self._own or not self._stale:
            return
        places = np.array(self.order)
        unit = unit_scale(self.covariance, self.basis, places, self.places.averages(places))
        if unit is None:
            unit = np.full(len(self.noise), _NO_UNIT)
        if self._unit is None or not np.array_equal(unit, self._unit):
            self._unit = unit
            self._truncate(0)
            self._stale = dict.fromkeys(self.order)

    def _first_amended(self) -> int:
        """Return the first row that holds a reading that is gone; the number of rows if none does.

        Such a reading is in the last row of its place, as a rule: those before it are of earlier
        readings. Where two probes are at one place it may be in another; see `_double`.
        """
        last = {place: row for row, place in enumerate(self.factor.place.tolist())}
        return min((last[p] for p in self._amended if p in last), default=self.factor.rows)

    def _append(self, places: IntArray) -> None:
        """Append the first rows of places."""
        precision, mean, _, _ = self._collapse(places)
        self.factor.append(places, precision, mean)

    def _double(self, places: IntArray) -> bool:
        """Append second rows for the readings that came since the rows of `places` were made.

        Returns:
            False when no row can say it: one of `places` has rows of a reading that was amended to
            say less than they do. Nothing has changed then.
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
        # A reading of enormous variance vanishes in the sum: the difference is zero or rounding.
        least = _NEGLIGIBLE * precision
        value = np.where(extra < least, mean, (total - had_total) / np.maximum(extra, least))
        factor.append(places, np.maximum(extra, least), value)
        return True

    def _summarise(self) -> None:
        """Log-evidence and posterior mean coefficients from the factor's rows."""
        factor = self.factor
        U, v = factor.U, factor.v
        q = U.shape[2]
        Ut = np.swapaxes(U, 1, 2)
        A = Ut @ U + np.eye(q)
        beta = np.linalg.solve(A, Ut @ v[:, :, None])[:, :, 0]
        residual = v - (U @ beta[:, :, None])[:, :, 0]
        quadratic = (residual**2).sum(axis=1) + (beta**2).sum(axis=1)
        log_det_A = np.linalg.slogdet(A)[1]
        # Rows are normalised densities of collapsed readings; undo that, put the readings' in. What
        # the values are in is kept apart from the rest: it may be a difference of large numbers.
        place = factor.place
        all_places, _, mean, log_within, squares, readings = self._collapsed()
        centre = np.zeros((len(v), len(factor.offset)))
        centre[:, all_places] = mean
        scatter = (factor.precision * (factor.value - centre[:, place]) ** 2).sum(axis=1)
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
        self.coefficients = np.asarray(beta, dtype=np.float64)
        self.coefficient_covariance = np.asarray(np.linalg.inv(A), dtype=np.float64)

    def _collapsed(
        self,
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray, float]:
        """Return all places with a reading, their `CollapsedReadings`, and how many."""
        places = np.array(self.order)
        precision, mean, log_within, squares = self._collapse(places)
        return places, precision, mean, log_within, squares, int(self.places.count.sum())
