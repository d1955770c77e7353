"""Sufficient statistics of the readings of each place."""

from __future__ import annotations

import math
from copy import copy
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief.prior import Transform
from gp_active_sensing.types import FloatArray, IntArray, Off

_LOG_2PI = math.log(2.0 * math.pi)
_ROUNDING = 1e-14
"""A place counts as empty if the removal of a reading leaves at most this fraction of the place's
weight. The weight is the number or the precision of the place's readings."""
_NO_STAYS = np.empty((0, 4))


class StayUncertainty(NamedTuple):
    """Additional uncertainty of a reading that is an average over a stay of the robot.

    Args:
        steepness: (2, L, k) squared horizontal and vertical slope at places [variance/m²].
        noisy: True to add the belief's noise, for a sensor with an unknown noise.
    """

    steepness: FloatArray
    noisy: bool


class CollapsedReadings:
    """Sufficient statistics of the readings of each of n places.

    Readings without a variance of their own have the belief's noise σ_n²(λ). They are stored as
    count, mean and centred sum of squares. Readings with their own variance are stored as
    precision, weighted mean, weighted centred sum of squares and sum of log-variances. Centred sums
    (Welford's update) stay exact for large values with small differences, for example air pressure.

    For readings z_i ~ N(f, σ_i²) of one place, with P = Σ 1/σ_i² and z̄ = Σ (z_i/σ_i²) / P,
    ``Π_i N(z_i; f, σ_i²) = exp(log_within) · exp(-P (z̄ - f)²/2)``.
    """

    def __init__(self, n: int) -> None:
        self.count = np.zeros(n, dtype=np.int64)
        self._plain = np.zeros((3, n))  # count, mean, centred sum of squares
        self._known = np.zeros((4, n))  # precision, mean, weighted sum of squares, Σ log σ_i²
        self._stays: dict[int, FloatArray] = {}
        """Averages over stays, by place. The columns are value, variance, and horizontal and
        vertical distance from the place's point [m]. The arrays are never modified."""

    def copy(self) -> CollapsedReadings:
        """Return an independent copy."""
        other = copy(self)
        other.count = self.count.copy()
        other._plain = self._plain.copy()
        other._known = self._known.copy()
        other._stays = dict(self._stays)
        return other

    def add(self, place: int, value: float, variance: float | None, off: Off | None = None) -> None:
        """Add one reading; O(1).

        Args:
            place: place of the reading.
            value: reading after the belief's transform.
            variance: noise variance of the reading; None = the belief's noise.
            off: distance from the place's point [m], for a reading that is an average over a stay.
                It has no effect without a `variance`.
        """
        self.count[place] += 1
        if off is not None and variance is not None:
            stays = self._stays.get(place, _NO_STAYS)
            self._stays[place] = np.vstack([stays, (value, variance, *_axes(off))])
            return
        stats, weight = (self._plain, 1.0) if variance is None else (self._known, 1.0 / variance)
        total = stats[0, place] + weight
        delta = value - stats[1, place]
        mean = stats[1, place] + delta * (weight / total)
        stats[2, place] += weight * delta * (value - mean)
        stats[1, place] = mean
        stats[0, place] = total
        if variance is not None:
            self._known[3, place] += math.log(variance)

    def remove(
        self, place: int, value: float, variance: float | None, off: Off | None = None
    ) -> None:
        """Remove one added reading in O(1); exact if the place has no other reading."""
        self.count[place] -= 1
        if off is not None and variance is not None:
            stays = self._stays.pop(place)
            same = (stays == (value, variance, *_axes(off))).all(axis=1)
            if len(stays) > 1:
                self._stays[place] = np.delete(stays, int(np.argmax(same)), axis=0)
            return
        stats, weight = (self._plain, 1.0) if variance is None else (self._known, 1.0 / variance)
        total = stats[0, place] - weight
        if variance is not None:
            self._known[3, place] -= math.log(variance)
        if total <= _ROUNDING * stats[0, place]:
            stats[:3, place] = 0.0
            return
        delta = value - stats[1, place]
        mean = stats[1, place] - delta * (weight / total)
        stats[2, place] = max(0.0, stats[2, place] - weight * delta * (value - mean))
        stats[1, place] = mean
        stats[0, place] = total

    def grow(self, n: int) -> None:
        """Extend the arrays to n places; the existing places come first."""
        more = n - self.count.size
        self.count = np.concatenate([self.count, np.zeros(more, dtype=np.int64)])
        self._plain = np.concatenate([self._plain, np.zeros((3, more))], axis=1)
        self._known = np.concatenate([self._known, np.zeros((4, more))], axis=1)

    def merged(self, order: IntArray, begins: IntArray) -> CollapsedReadings:
        """Return statistics in which each group of places is merged into one place.

        Args:
            order: (k,) places, group by group.
            begins: (g,) index in `order` of the first place of each group, ascending from 0.
        """
        other = CollapsedReadings(len(begins))
        if not len(begins):
            return other
        sizes = np.diff(np.append(begins, len(order)))
        other.count = np.add.reduceat(self.count[order], begins)
        for mine, theirs in ((self._plain, other._plain), (self._known, other._known)):
            weight, mean = mine[0, order], mine[1, order]
            total = np.add.reduceat(weight, begins)
            joint = np.add.reduceat(weight * mean, begins) / np.where(total > 0.0, total, 1.0)
            joint = np.where(sizes == 1, mean[begins], joint)  # unchanged to the bit
            apart = weight * (mean - np.repeat(joint, sizes)) ** 2
            theirs[0], theirs[1] = total, joint
            theirs[2] = np.add.reduceat(mine[2, order] + apart, begins)
        other._known[3] = np.add.reduceat(self._known[3, order], begins)
        group = np.searchsorted(begins, np.arange(len(order)), side="right") - 1
        for place, theirs_group in zip(order.tolist(), group.tolist(), strict=True):
            if (stays := self._stays.get(place)) is not None:
                before = other._stays.get(theirs_group, _NO_STAYS)
                other._stays[theirs_group] = np.vstack([before, stays])
        return other

    def through(self, transform: Transform) -> CollapsedReadings:
        """Return the statistics after a transform, to first order about the averages."""
        other = self.copy()
        for stats, one in ((other._plain, 0.0), (other._known, 1.0)):
            some = np.flatnonzero(stats[0])
            variance = transform.seen_variance(stats[1, some], 1.0)
            stats[0, some] /= variance**one
            stats[2, some] *= variance ** (1.0 - one)
            stats[1, some] = transform.seen(stats[1, some])
            if one:
                sizes = np.array([len(self._stays.get(p, _NO_STAYS)) for p in some.tolist()])
                known = self.count[some] - self._plain[0, some] - sizes
                stats[3, some] += known * np.log(variance)
        for place, stays in self._stays.items():
            seen = stays.copy()
            seen[:, 1] *= transform.seen_variance(stays[:, 0], 1.0)
            seen[:, 0] = transform.seen(stays[:, 0])
            other._stays[place] = seen
        return other

    def scatter(self) -> tuple[float, float]:
        """Return the scatter within places, from readings without a variance of their own.

        Returns:
            Degrees of freedom (readings minus places), and sum of squares about the places' means.
        """
        count, _, squares = self._plain
        return float(np.maximum(count - 1.0, 0.0).sum()), float(squares.sum())

    @property
    def has_stays(self) -> bool:
        """True if some readings are averages over a stay of the robot."""
        return bool(self._stays)

    def collapse(
        self,
        places: IntArray,
        noise_variance: FloatArray,
        unit: FloatArray | None = None,
        stays: StayUncertainty | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return precision, mean, `log_within` and squares of observed places under each λ.

        The squares ``Σ (z_i - z̄)²/σ_i²`` are the term of `log_within` that depends on the values.

        Args:
            places: (k,) observed places.
            noise_variance: (L,) σ_n²(λ) of readings without a variance of their own.
            unit: (L,) estimated scale of the covariance; None = known scale. The readings' own
                variances are divided by this scale, and the belief's noise is added once to the
                average of the readings with their own variance.
            stays: additional uncertainty of averages over a stay; None = no such uncertainty.

        Returns:
            Four (L, k) arrays.
        """
        if self._stays:
            return self._collapse_with_stays(places, noise_variance, unit, stays)
        if unit is not None:
            return self._collapse_on_top(places, noise_variance, unit[:, None])
        n0, m0, s0 = self._plain[:, places]
        p1, m1, s1, logs = self._known[:, places]
        inverse = 1.0 / noise_variance[:, None]
        p0 = n0 * inverse
        precision = p0 + p1
        mean = (p0 * m0 + p1 * m1) / precision
        # An empty group has weight zero: its mean has no effect.
        between = p0 * p1 / precision * (m0 - m1) ** 2
        squares = s0 * inverse + s1 + between
        readings = self.count[places]
        log_variances = n0 * np.log(noise_variance)[:, None] + logs
        log_within = -0.5 * (squares + log_variances + readings * _LOG_2PI)
        return precision, mean, log_within, squares

    def _collapse_on_top(
        self, places: IntArray, noise_variance: FloatArray, unit: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the results of `collapse` without stays, for an unknown scale."""
        n0, m0, s0 = self._plain[:, places]
        p1, m1, s1, logs = self._known[:, places]
        noise = noise_variance[:, None]
        some = p1 > 0.0
        alone = np.where(some, unit * p1, 1.0)  # precision without the belief's noise
        # ∫ N(z̄; f + u, 1/p) N(u; 0, σ_n²) du: the average with the common noise u.
        total = np.where(some, alone / (1.0 + alone * noise), 0.0)
        p0 = n0 / noise
        precision = p0 + total
        mean = (p0 * m0 + total * m1) / precision
        squares = s0 / noise + unit * s1 + p0 * total / precision * (m0 - m1) ** 2
        readings = self.count[places]
        logs = n0 * np.log(noise) + logs - (readings - n0) * np.log(unit)
        grown = np.where(some, np.log1p(alone * noise), 0.0)
        log_within = -0.5 * (squares + logs + grown + readings * _LOG_2PI)
        return precision, mean, log_within, squares

    def _collapse_with_stays(
        self,
        places: IntArray,
        noise_variance: FloatArray,
        unit: FloatArray | None,
        beside: StayUncertainty | None,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        L, k = len(noise_variance), len(places)
        precision, mean, log_within, squares = np.zeros((4, L, k))
        stays = [self._stays.get(place, _NO_STAYS) for place in places.tolist()]
        sizes = np.array([len(stay) for stay in stays], dtype=np.int64)
        others = self.count[places] > sizes
        if others.any():
            rest = copy(self)
            rest._stays, rest.count = {}, self.count.copy()
            rest.count[places] -= sizes
            found = rest.collapse(places[others], noise_variance, unit)
            for whole, part in zip((precision, mean, log_within, squares), found, strict=True):
                whole[:, others] = part
        some = np.flatnonzero(sizes)
        if not some.size:
            return precision, mean, log_within, squares
        value, own, *off = np.concatenate(stays).T
        variance = np.tile(own, (L, 1)) if unit is None else own / unit[:, None]
        if beside is not None:
            for slopes, metres in zip(beside.steepness, off, strict=True):
                variance = variance + np.repeat(slopes, sizes, axis=1) * metres**2
            if beside.noisy:
                variance = variance + noise_variance[:, None]
        begins = np.cumsum(sizes[some]) - sizes[some]

        def summed(each: FloatArray) -> FloatArray:
            return np.add.reduceat(each, begins, axis=1)

        # Centre on the first value, then on the mean: exact for large values.
        own_precision = 1.0 / variance
        p, first = summed(own_precision), value[begins]
        centre = first + summed(own_precision * (value - np.repeat(first, sizes[some]))) / p
        within = summed(own_precision * (value - np.repeat(centre, sizes[some], axis=1)) ** 2)
        total, delta = precision[:, some] + p, centre - mean[:, some]
        within += precision[:, some] * p / total * delta**2
        mean[:, some] += delta * (p / total)
        precision[:, some] = total
        squares[:, some] += within
        log_within[:, some] -= 0.5 * (within + summed(np.log(variance)) + sizes[some] * _LOG_2PI)
        return precision, mean, log_within, squares

    def averages(self, places: IntArray) -> FloatArray:
        """Return for each of k observed places the unweighted average of its readings."""
        stays = [self._stays.get(place, _NO_STAYS) for place in places.tolist()]
        n2 = np.array([len(stay) for stay in stays])
        total = np.array([stay[:, 0].sum() for stay in stays])
        n0, n = self._plain[0, places], self.count[places]
        total = total + n0 * self._plain[1, places] + (n - n2 - n0) * self._known[1, places]
        return np.asarray(total / n)


def _axes(off: Off) -> tuple[float, float]:
    return off if isinstance(off, tuple) else (off, 0.0)
