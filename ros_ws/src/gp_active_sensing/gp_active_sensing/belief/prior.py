"""Prior of the field: transform of the readings, mean, covariance under each λ, unknown scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.special import digamma, polygamma

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.kernels.base import Kernel
from gp_active_sensing.types import FloatArray, IntArray


class Transform:
    """Between values in the sensor's unit and values the Gaussian process sees: the identity."""

    def forward(self, value: float, variance: float | None) -> tuple[float, float | None]:
        """Transform a reading and its noise variance.

        Raises:
            ReadingError: a value outside the transform's domain.
        """
        return value, variance

    def seen(self, values: FloatArray) -> FloatArray:
        """Return values as the Gaussian process sees them, -inf below the transform's domain."""
        return values

    def seen_variance(self, values: FloatArray, variance: float) -> FloatArray:
        """Return the noise variance of readings of some values, as the Gaussian process sees it."""
        return np.full(values.shape, variance)

    def inverse(self, values: FloatArray) -> FloatArray:
        """Return values in the sensor's unit."""
        return values

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance, in the sensor's unit, of Gaussians given by theirs."""
        return mean, variance

    def steepness(self, values: FloatArray) -> FloatArray:
        """Return by how much the sensor's unit changes with what the Gaussian process sees."""
        return np.ones_like(values)


@dataclass(frozen=True)
class Log(Transform):
    """The logarithm of a value and an offset.

    Args:
        offset: in the sensor's unit; values lie above its negative.
    """

    offset: float = 0.0

    def forward(self, value: float, variance: float | None) -> tuple[float, float | None]:
        """Transform a reading and its noise variance: to first order, as those of the values."""
        above = value + self.offset
        if above <= 0.0:
            msg = (
                f"expected a value above {0.0 - self.offset:g} (the belief takes its logarithm), "
                f"got {value}"
            )
            raise ReadingError("not_positive", msg)
        return math.log(above), None if variance is None else variance / above / above

    def seen(self, values: FloatArray) -> FloatArray:
        """Return values as the Gaussian process sees them."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(values + self.offset, 0.0)))

    def seen_variance(self, values: FloatArray, variance: float) -> FloatArray:
        """Return the noise variance of readings of some values, as the Gaussian process sees it."""
        return np.asarray(variance / np.square(np.maximum(values + self.offset, 1e-100)))

    def inverse(self, values: FloatArray) -> FloatArray:
        """Return values in the sensor's unit."""
        return np.asarray(np.exp(np.minimum(values, 300.0)) - self.offset)

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return those of a log-normal distribution, capped: a huge variance is not infinite."""
        expectation = np.exp(np.minimum(mean + 0.5 * variance, 300.0))
        spread = np.expm1(np.minimum(variance, 50.0)) * expectation**2
        return expectation - self.offset, spread

    def steepness(self, values: FloatArray) -> FloatArray:
        """Return by how much the sensor's unit changes with what the Gaussian process sees."""
        return np.asarray(np.exp(np.minimum(values, 300.0)))


IDENTITY = Transform()
LOG: Transform = Log()
TRANSFORMS: dict[str, Transform] = {"identity": IDENTITY, "log": LOG}


@dataclass(frozen=True)
class PriorMean:
    """``m(x) = offset(x) + h(x)ᵀ β`` with ``β ~ N(0, diag(std²))`` integrated out.

    Integrating β out adds ``h(x)ᵀ diag(std²) h(x')`` to the covariance [Rasmussen2006, Sec. 2.7].
    It is kept apart from the covariance, so that a vague std does not spoil its condition number.

    Args:
        offset: (n,) known part.
        basis: (n, q) functions h; q = 0 for a known mean.
        std: (q,) prior standard deviation of each coefficient.
    """

    offset: FloatArray
    basis: FloatArray
    std: FloatArray

    @classmethod
    def known(cls, n: int, value: float) -> PriorMean:
        """Return the mean that is `value` everywhere, for certain."""
        return cls(np.full(n, float(value)), np.zeros((n, 0)), np.zeros(0))

    @classmethod
    def constant(cls, n: int, value: float, std: float) -> PriorMean:
        """Return an unknown constant, `value` ± `std`."""
        if std == 0.0:
            return cls.known(n, value)
        return cls(np.full(n, float(value)), np.ones((n, 1)), np.array([float(std)]))

    @classmethod
    def linear(cls, features: FloatArray, value: float, std: float) -> PriorMean:
        """Return an unknown constant plus unknown slopes on the standardised features.

        Constant features are left out.
        """
        spread = features.std(axis=0)
        varying = spread > 1e-12 * np.maximum(1.0, np.abs(features).max(axis=0))
        columns = (features[:, varying] - features[:, varying].mean(axis=0)) / spread[varying]
        basis = np.column_stack([np.ones(len(features)), columns])
        return cls(np.full(len(features), float(value)), basis, np.full(basis.shape[1], std))


@dataclass(frozen=True)
class HyperParameters:
    """One candidate λ: what the covariance function leaves open.

    Args:
        length_scales: one for all features or one per feature, in feature units.
        signal_std: standard deviation of the field about its mean, in the reading's unit; of its
            smooth part, where each place has a part of its own.
        noise_std: standard deviation of the noise of a reading, in the reading's unit.
        kernel: its name where candidates may have different ones, else "". Of a belief over kernels
            the length-scale is then a typical one, and the signal a root mean square over the
            places; with `kernels.NONE` the length-scale has no effect, and the signal is
            all there is of the field.
        place_std: standard deviation of what belongs to each place alone, in the reading's unit;
            0 = nothing does.
        attribute_std: standard deviation of what the attributes of the places explain together, as
            part of the mean, in the reading's unit; 0 = nothing.
        long_std: standard deviation of a part of the field that varies over half of the map, in the
            reading's unit; 0 = there is none. See `place_covariance.LongCovariance`.
        long_scales: length-scales of that part: one for all features or one per feature.
    """

    length_scales: tuple[float, ...]
    signal_std: float
    noise_std: float
    kernel: str = ""
    place_std: float = 0.0
    attribute_std: float = 0.0
    long_std: float = 0.0
    long_scales: tuple[float, ...] = (1.0,)

    @property
    def variance(self) -> float:
        """Return the prior variance of the field at a place, the sum over all its parts."""
        return self.signal_std**2 + self.place_std**2 + self.long_std**2

    @property
    def nugget(self) -> float:
        """Share of a reading's variance that other places do not predict: own part and noise."""
        apart = self.noise_std**2 + self.place_std**2
        return apart / (apart + self.signal_std**2)

    def __post_init__(self) -> None:
        for name in ("signal_std", "noise_std"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                msg = f"{name} must be a finite number above 0, got {value!r}"
                raise ValueError(msg)
        for name in ("place_std", "attribute_std", "long_std"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                msg = f"{name} must be a finite number, not below 0, got {value!r}"
                raise ValueError(msg)
        if not self.length_scales or not all(np.isfinite(v) and v > 0 for v in self.length_scales):
            msg = f"length_scales must be finite numbers above 0, got {self.length_scales!r}"
            raise ValueError(msg)


@dataclass(frozen=True)
class Points:
    """Positions of m points that need not be places; see `points.PointLocator`.

    Args:
        positions: (m, 2 or 3) [m].
        nearest: (m,) the place that each is in, or nearest to.
        features: (m, p) coordinates that features are; None = features are no coordinates.
        of_nearest: (m, p) the same of the nearest places.
        around: (m, k) places whose own part reaches the point.
        shares: (m, k) how much of it does, 0 … 1.
    """

    positions: FloatArray
    nearest: IntArray
    features: FloatArray | None
    of_nearest: FloatArray | None
    around: IntArray
    shares: FloatArray

    def features_on(self, features: FloatArray) -> FloatArray:
        """Return (m, p) features of the points, given those of the places (n, p).

        Features that are no coordinates, such as an embedding, are those of the nearest place.
        """
        found = np.asarray(features[self.nearest])
        if self.features is None or self.of_nearest is None:
            return found
        return self.features if np.array_equal(found, self.of_nearest) else found

    def shares_of(self, rows: IntArray) -> FloatArray:
        """Return the (r, m) shares of the own parts of some places in those of the points."""
        found = np.zeros((len(rows), len(self.nearest)))
        for place, share in zip(self.around.T, self.shares.T, strict=True):
            found += share * (np.asarray(rows)[:, None] == place)
        return found


class LocationCovariance(Protocol):
    """Prior covariance of the latent field between locations, by index, under L candidates.

    The belief knows places only by index, so that a covariance over a graph fits as well as one
    over features.
    """

    n: int
    """Number of locations."""
    hyperparameters: tuple[HyperParameters, ...]
    """(L,) the candidates Λ."""

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        ...

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) covariance of the latent field at places and at points.

        A covariance that is not one of positions takes the values of the nearest place. The prior
        variance at a point is that of its nearest place.
        """
        return self.between(rows, points.nearest)

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        ...

    def only(self, which: Sequence[int]) -> LocationCovariance:
        """Return the same under some of the candidates only, by their numbers, ascending."""
        ...


def length_scales_of(candidates: Sequence[HyperParameters]) -> FloatArray:
    """Return (L, p) length-scales; one that is for all features stands in every column."""
    width = max(len(h.length_scales) for h in candidates)
    return np.array([h.length_scales * (width // len(h.length_scales)) for h in candidates])


CovarianceFamily: TypeAlias = Callable[[Sequence[HyperParameters]], LocationCovariance]
"""Makes the covariance of candidates Λ; what else it depends on is bound to it."""


class FeatureCovariance(LocationCovariance):
    """``σ_s² k(x, x'; ℓ)`` over the features of the locations. [Hoang2014, Sec. 2].

    Args:
        kernel: correlation function.
        features: (n, p) features of the locations.
        hyperparameters: the candidates; all with one length-scale or all with p.

    Raises:
        ValueError: features that are not finite, or length-scales that do not fit them.
    """

    def __init__(
        self,
        kernel: Kernel,
        features: FloatArray,
        hyperparameters: Sequence[HyperParameters],
    ) -> None:
        features = np.array(features, dtype=np.float64)
        if features.ndim != 2:
            msg = f"features must be (n, p), one row a location; got shape {features.shape}"
            raise ValueError(msg)
        if not np.isfinite(features).all():
            bad = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
            msg = f"features must be finite; location {bad} has {features[bad].tolist()}"
            raise ValueError(msg)
        if not hyperparameters:
            msg = "expected at least one hyper-parameter vector, got none"
            raise ValueError(msg)
        widths = {len(h.length_scales) for h in hyperparameters}
        if len(widths) != 1 or widths.pop() not in (1, features.shape[1]):
            msg = (
                f"expected 1 length-scale or {features.shape[1]} (one per feature) in every "
                f"candidate, got {sorted({len(h.length_scales) for h in hyperparameters})}"
            )
            raise ValueError(msg)
        self.kernel = kernel
        self.features = features
        self.n = int(features.shape[0])
        self.hyperparameters = tuple(hyperparameters)
        # Candidates that differ in signal or noise only have their correlations in common.
        self._length_scales, which = np.unique(
            np.array([h.length_scales for h in hyperparameters]), axis=0, return_inverse=True
        )
        self._which = which.reshape(-1)
        self._signal = np.array([h.signal_std**2 for h in hyperparameters])

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        return self._with(rows, self.features[columns])

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) covariance of the latent field at places and at points."""
        return self._with(rows, points.features_on(self.features))

    def _with(self, rows: IntArray, there: FloatArray) -> FloatArray:
        k = self.kernel.correlations(self.features[rows], there, self._length_scales)
        return np.asarray(self._signal[:, None, None] * k[self._which])

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.repeat(self._signal[:, None], len(locations), axis=1)

    def only(self, which: Sequence[int]) -> FeatureCovariance:
        """Return the same under some of the candidates only."""
        other = copy(self)
        used, other._which = np.unique(self._which[list(which)], return_inverse=True)
        other._length_scales, other._signal = self._length_scales[used], self._signal[list(which)]
        other.hyperparameters = tuple(self.hyperparameters[i] for i in which)
        return other


class JoinedCovariance(LocationCovariance):
    """The candidates of some covariances over the same places.

    Args:
        parts: one a kernel, in the order of their candidates.

    Raises:
        ValueError: none, or covariances of different numbers of places.
    """

    def __init__(self, parts: Sequence[LocationCovariance]) -> None:
        if len({part.n for part in parts}) != 1:
            msg = f"expected covariances of as many places, got {[part.n for part in parts]}"
            raise ValueError(msg)
        self.parts = tuple(parts)
        self.n = self.parts[0].n
        self.hyperparameters = tuple(h for part in parts for h in part.hyperparameters)

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        found = np.empty((len(self.hyperparameters), len(rows), len(columns)))
        start = 0
        for part in self.parts:
            end = start + len(part.hyperparameters)
            found[start:end] = part.between(rows, columns)
            start = end
        return found

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) covariance of the latent field at places and at points."""
        return np.concatenate([part.with_points(rows, points) for part in self.parts])

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.concatenate([part.variance(locations) for part in self.parts])

    def only(self, which: Sequence[int]) -> LocationCovariance:
        """Return the same under some of the candidates only."""
        found: list[LocationCovariance] = []
        start = 0
        for part in self.parts:
            end = start + len(part.hyperparameters)
            if mine := [i - start for i in which if start <= i < end]:
                found.append(part.only(mine))
            start = end
        return joined(found)


def joined(parts: Sequence[LocationCovariance]) -> LocationCovariance:
    """Return the candidates of all parts; a single part as it is."""
    return parts[0] if len(parts) == 1 else JoinedCovariance(parts)


_FEWEST = 5
"""Places below which what they vary by says next to nothing."""
_MOST = 128
"""Places that are looked at, evenly spread over those there are."""
_STEPS = 2.0
"""Steps of c to a factor of two."""


def unit_scale(
    covariance: LocationCovariance, basis: FloatArray, places: IntArray, averages: FloatArray
) -> FloatArray | None:
    r"""Return an estimate of c (L,) of each candidate; None where too little is known.

    Where the scale is unknown, each candidate's covariance is known up to a factor c, which is
    integrated out. A variance that a reading brings has to be compared with c before that. What
    the readings vary by from place to place says about how large c is,

    .. math:: E[s^2] = c_\lambda (\bar k_{ii} - \bar k_{ij})

    with the sample variance s² of the places' averages and the candidate's mean covariance of a
    place with itself and with another. That is taken, in steps of √2, as c: a number that depends
    on the readings only, and not on when something was asked.

    Args:
        covariance: prior covariance under each λ at c = 1.
        basis: (n, q) basis of the prior mean, which is not part of what varies.
        places: (k,) with readings.
        averages: (k,) of their readings.
    """
    order = np.argsort(places)
    if order.size > _MOST:
        order = order[np.linspace(0, order.size - 1, _MOST).round().astype(np.int64)]
    places, averages = places[order], averages[order]
    count, known = len(places), basis.shape[1]
    if count < _FEWEST + known:
        return None
    columns = np.column_stack([np.ones(count), basis[places]])
    rest = averages - averages.mean()
    rest -= columns @ np.linalg.lstsq(columns, rest, rcond=None)[0]
    variance = float(rest @ rest) / max(count - max(known, 1), 1)
    if not (math.isfinite(variance) and variance > 0.0):
        return None
    between = covariance.between(places, places)
    own = np.trace(between, axis1=1, axis2=2)
    apart = own / count - (between.sum(axis=(1, 2)) - own) / (count * (count - 1))
    # Of a field that hardly varies over the map the readings cannot tell how far it does elsewhere.
    apart = np.maximum(apart, 0.01 * own / count)
    return np.asarray(2.0 ** (np.round(_STEPS * np.log2(variance / apart)) / _STEPS))


_SPREAD = math.log(10.0)
"""Standard deviation of the logarithm of the noise variance about that of a candidate."""


def noise_estimate(
    noise: FloatArray, unit: FloatArray, freedom: float, squares: float
) -> FloatArray:
    r"""Return the (L,) noise variance of each candidate, given how readings of one place differ.

    A candidate's noise variance :math:`r_\lambda` is a guess with a normal prior on its logarithm.
    Readings of one place differ by the noise alone. With n degrees of freedom, the logarithm of
    their variance estimates that of the noise. Its error has the mean
    :math:`\psi(n/2) - \log(n/2)` and the variance :math:`\psi'(n/2)`. The result weights guess and
    estimate by their precisions. n and the variance are rounded to steps, so that a reading seldom
    changes the result.

    Args:
        noise: (L,) of the candidates at c = 1.
        unit: (L,) estimate of c, see `unit_scale`.
        freedom: n, readings less places.
        squares: sum of their squares about the places' means.
    """
    step = math.log(2.0) / _STEPS
    found = math.log(max(squares, 1e-200) / 2.0) - float(digamma(freedom / 2.0))
    found = step * round(found / step)
    spread = float(polygamma(1, 2.0 ** (round(_STEPS * math.log2(freedom)) / _STEPS) / 2.0))
    share = _SPREAD**2 / (_SPREAD**2 + spread)
    return np.asarray(np.exp(share * (found - np.log(unit)) + (1.0 - share) * np.log(noise)))


_FLOOR = 1e-24
"""Least mean square of the residuals, relative to that of the readings."""


class Scaled(NamedTuple):
    """Evidence and scale of each candidate, with the scale integrated out.

    Args:
        log_evidence: (L,) up to a constant.
        factor: (L,) on all variances of a candidate: their expectation.
    """

    log_evidence: FloatArray
    factor: FloatArray


def integrate_scale(
    rest: FloatArray, quadratic: FloatArray, readings: float, known: int, size: float
) -> Scaled:
    r"""Integrate a common factor c on signal, noise and mean variance out, with ``p(c) ∝ 1/c``.

    With Q = zᵀ K⁻¹ z at c = 1 and ν = readings less the coefficients of a vague mean,

    .. math:: p(z | \lambda) \propto |K|^{-1/2} Q^{-\nu/2}, \quad E[c | z, \lambda] = Q / (\nu - 2)

    [Rasmussen2006, Sec. 2.7; Ohagan1994]. Where ν is 3 or less the expectation does not exist or is
    Q; Q is used. With ν < 1 nothing is known of the scale: c = 1, whatever the unit.

    Args:
        rest: (L,) log-evidence at c = 1 without its part -Q/2.
        quadratic: (L,) Q.
        readings: number n of readings, those that have aged as a part of one.
        known: coefficients of the mean that use up readings.
        size: mean square of the readings about the first one. It sets a floor for Q where the
            residuals are zero up to rounding.
    """
    freedom = readings - known
    if freedom < 1:
        return Scaled(np.zeros_like(rest), np.ones_like(quadratic))
    Q = np.maximum(quadratic, _FLOOR * max(size, 1e-200) * readings)
    return Scaled(rest - 0.5 * freedom * np.log(Q), Q / max(freedom - 2, 1))
