"""Prior of the field: transform of the readings, mean, covariance of each λ, and scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from scipy.special import digamma, polygamma

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.kernels.base import Kernel
from gp_active_sensing.types import FloatArray, IntArray


class Transform:
    """Identity transform from the sensor's unit to the values of the Gaussian process."""

    def forward(self, value: float, variance: float | None) -> tuple[float, float | None]:
        """Transform a reading and its noise variance.

        Raises:
            ReadingError: the value is outside of the transform's domain.
        """
        return value, variance

    def seen(self, values: FloatArray) -> FloatArray:
        """Return transformed values; -inf below the transform's domain."""
        return values

    def seen_variance(self, values: FloatArray, variance: float) -> FloatArray:
        """Return the transformed noise variance of readings `values` with the noise `variance`."""
        return np.full(values.shape, variance)

    def inverse(self, values: FloatArray) -> FloatArray:
        """Return values in the sensor's unit."""
        return values

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance in the sensor's unit from transformed mean and variance."""
        return mean, variance

    def steepness(self, values: FloatArray) -> FloatArray:
        """Return the derivative of the inverse transform at transformed values."""
        return np.ones_like(values)


@dataclass(frozen=True)
class Log(Transform):
    """Logarithm of the sum of a value and `offset` [sensor's unit]; the sum must be above 0."""

    offset: float = 0.0

    def forward(self, value: float, variance: float | None) -> tuple[float, float | None]:
        """Transform a reading, and its noise variance to first order."""
        above = value + self.offset
        if above <= 0.0:
            msg = (
                f"expected a value above {0.0 - self.offset:g} (the belief takes its logarithm), "
                f"got {value}"
            )
            raise ReadingError("not_positive", msg)
        return math.log(above), None if variance is None else variance / above / above

    def seen(self, values: FloatArray) -> FloatArray:
        """Return transformed values; -inf below the transform's domain."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(values + self.offset, 0.0)))

    def seen_variance(self, values: FloatArray, variance: float) -> FloatArray:
        """Return the transformed noise variance of readings `values` with the noise `variance`."""
        return np.asarray(variance / np.square(np.maximum(values + self.offset, 1e-100)))

    def inverse(self, values: FloatArray) -> FloatArray:
        """Return values in the sensor's unit."""
        return np.asarray(np.exp(np.minimum(values, 300.0)) - self.offset)

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of a log-normal distribution, limited to finite values."""
        expectation = np.exp(np.minimum(mean + 0.5 * variance, 300.0))
        spread = np.expm1(np.minimum(variance, 50.0)) * expectation**2
        return expectation - self.offset, spread

    def steepness(self, values: FloatArray) -> FloatArray:
        """Return the derivative of the inverse transform at transformed values."""
        return np.asarray(np.exp(np.minimum(values, 300.0)))


IDENTITY = Transform()
LOG: Transform = Log()
TRANSFORMS: dict[str, Transform] = {"identity": IDENTITY, "log": LOG}


@dataclass(frozen=True)
class PriorMean:
    """Prior mean ``m(x) = offset(x) + h(x)ᵀ β`` with unknown coefficients ``β ~ N(0, diag(std²))``.

    Integrating β out adds ``h(x)ᵀ diag(std²) h(x')`` to the covariance [Rasmussen2006, Sec. 2.7].
    This term is stored separately, which keeps the covariance well conditioned for a large `std`.

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
        """Return a known mean that is `value` everywhere."""
        return cls(np.full(n, float(value)), np.zeros((n, 0)), np.zeros(0))

    @classmethod
    def constant(cls, n: int, value: float, std: float) -> PriorMean:
        """Return an unknown constant mean with expectation `value` and standard deviation `std`."""
        if std == 0.0:
            return cls.known(n, value)
        return cls(np.full(n, float(value)), np.ones((n, 1)), np.array([float(std)]))

    @classmethod
    def linear(cls, features: FloatArray, value: float, std: float) -> PriorMean:
        """Return a mean with unknown coefficients: a constant, and slopes on `features` (n, p).

        Features are standardised; constant features are left out. `std` is the prior standard
        deviation of each coefficient.
        """
        spread = features.std(axis=0)
        varying = spread > 1e-12 * np.maximum(1.0, np.abs(features).max(axis=0))
        columns = (features[:, varying] - features[:, varying].mean(axis=0)) / spread[varying]
        basis = np.column_stack([np.ones(len(features)), columns])
        return cls(np.full(len(features), float(value)), basis, np.full(basis.shape[1], std))


@dataclass(frozen=True)
class HyperParameters:
    """One candidate λ: hyper-parameters of the field's covariance and of the noise.

    All standard deviations are in the readings' unit.

    Args:
        length_scales: one for all features or one per feature, in feature units.
        signal_std: standard deviation of the smooth component of the field about its mean.
        noise_std: standard deviation of the noise of a reading.
        kernel: name of the kernel; "" if all candidates have the same kernel. In a belief over
            kernels, the length-scale is a typical value, and `signal_std` is a root mean square
            over the places. With `kernels.NONE`, the length-scale has no effect.
        place_std: standard deviation of the independent component of each place; 0 = none.
        attribute_std: standard deviation of the component that attributes explain; 0 = none.
        long_std: standard deviation of the long-range component; 0 = none. See
            `place_covariance.LongCovariance`.
        long_scales: length-scales of that component: one for all features or one per feature.
        amplitude_slopes: (p,) slopes of the smooth component's log-amplitude, per standard
            deviation of each feature; () = constant amplitude. With slopes, `signal_std` is a root
            mean square over the places.
    """

    length_scales: tuple[float, ...]
    signal_std: float
    noise_std: float
    kernel: str = ""
    place_std: float = 0.0
    attribute_std: float = 0.0
    long_std: float = 0.0
    long_scales: tuple[float, ...] = (1.0,)
    amplitude_slopes: tuple[float, ...] = ()

    @property
    def variance(self) -> float:
        """Prior variance of the field about its mean at a place, with all components."""
        return self.signal_std**2 + self.place_std**2 + self.long_std**2

    @property
    def nugget(self) -> float:
        """Fraction of a reading's variance that noise and independent component contribute."""
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
        nearest: (m,) place that contains each point, or the nearest place.
        features: (m, p) features of the points; None = features are not coordinates.
        of_nearest: (m, p) features of the nearest places; None = features are not coordinates.
        around: (m, k) places whose independent components affect each point.
        shares: (m, k) weights of these components at each point, 0 … 1.
    """

    positions: FloatArray
    nearest: IntArray
    features: FloatArray | None
    of_nearest: FloatArray | None
    around: IntArray
    shares: FloatArray

    def features_on(self, features: FloatArray) -> FloatArray:
        """Return (m, p) features of the points, given features (n, p) of the places.

        Features other than coordinates, such as an embedding, have the value of the nearest place.
        """
        found = np.asarray(features[self.nearest])
        if self.features is None or self.of_nearest is None:
            return found
        return self.features if np.array_equal(found, self.of_nearest) else found

    def shares_of(self, rows: IntArray) -> FloatArray:
        """Return the (r, m) weight of the independent component of places `rows` at each point."""
        found = np.zeros((len(rows), len(self.nearest)))
        for place, share in zip(self.around.T, self.shares.T, strict=True):
            found += share * (np.asarray(rows)[:, None] == place)
        return found


class LocationCovariance(Protocol):
    """Prior covariance of the latent field between locations, under L candidates λ.

    Locations are given by index. The covariance may be over features or over a graph.
    """

    n: int
    """Number of locations."""
    hyperparameters: tuple[HyperParameters, ...]
    """(L,) candidates Λ."""

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ."""

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) prior covariance of places `rows` and m points for candidates λ.

        By default, a point has the covariance of its nearest place. The prior variance at a point
        is always the prior variance at its nearest place.
        """
        return self.between(rows, points.nearest)

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance at `locations` under each candidate λ."""

    def only(self, which: Sequence[int]) -> LocationCovariance:
        """Return this covariance restricted to candidates λ with the ascending indices `which`."""


def length_scales_of(candidates: Sequence[HyperParameters]) -> FloatArray:
    """Return the (L, p) length-scales; a single length-scale is repeated in every column."""
    width = max(len(h.length_scales) for h in candidates)
    return np.array([h.length_scales * (width // len(h.length_scales)) for h in candidates])


CovarianceFamily: TypeAlias = Callable[[Sequence[HyperParameters]], LocationCovariance]
"""Function that builds the covariance of candidates Λ."""


_Signal = TypeVar("_Signal", bound="SignalCovariance")


class SignalCovariance(LocationCovariance):
    """Base class of covariances ``σ_s² K`` over n locations; σ_s is a candidate's `signal_std`.

    Raises:
        ValueError: there is no candidate.
    """

    def __init__(self, n: int, hyperparameters: Sequence[HyperParameters]) -> None:
        if not hyperparameters:
            msg = "expected at least one hyper-parameter vector, got none"
            raise ValueError(msg)
        self.n = n
        self.hyperparameters = tuple(hyperparameters)
        self._signal = np.array([h.signal_std**2 for h in hyperparameters])

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance; it is σ_s² unless a subclass overrides this method."""
        return np.repeat(self._signal[:, None], len(locations), axis=1)

    def only(self: _Signal, which: Sequence[int]) -> _Signal:
        """Return this covariance restricted to the hyper-parameter candidates `which`."""
        other = copy(self)
        other._signal = self._signal[list(which)]
        other.hyperparameters = tuple(self.hyperparameters[i] for i in which)
        return other


class FeatureCovariance(SignalCovariance):
    """Covariance ``σ_s² a(x) a(x') k(x, x'; ℓ)`` over the features of the locations.

    [Hoang2014, Sec. 2]. The amplitude a(x) is 1 for candidates without slopes. Otherwise
    ``log a(x) = c + Σ_k γ_k u_k(x)`` with slopes γ and standardised features u. The constant c
    gives a(x) a mean square of 1 over the locations.

    Args:
        kernel: correlation function.
        features: (n, p) features of the locations.
        hyperparameters: the candidates, all with one length-scale or all with p length-scales.

    Raises:
        ValueError: features are not finite, or length-scales do not fit the features.
    """

    def __init__(
        self, kernel: Kernel, features: FloatArray, hyperparameters: Sequence[HyperParameters]
    ) -> None:
        features = np.array(features, dtype=np.float64)
        if features.ndim != 2:
            msg = f"features must be (n, p), one row a location; got shape {features.shape}"
            raise ValueError(msg)
        if not np.isfinite(features).all():
            bad = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
            msg = f"features must be finite; location {bad} has {features[bad].tolist()}"
            raise ValueError(msg)
        super().__init__(len(features), hyperparameters)
        widths = {len(h.length_scales) for h in hyperparameters}
        if len(widths) != 1 or widths.pop() not in (1, features.shape[1]):
            msg = (
                f"expected 1 length-scale or {features.shape[1]} (one per feature) in every "
                f"candidate, got {sorted({len(h.length_scales) for h in hyperparameters})}"
            )
            raise ValueError(msg)
        self.kernel = kernel
        self.features = features
        # Candidates with equal length-scales share their correlations.
        self._length_scales, which = np.unique(
            np.array([h.length_scales for h in hyperparameters]), axis=0, return_inverse=True
        )
        self._which = which.reshape(-1)
        slopes = [h.amplitude_slopes for h in hyperparameters]
        self._amplitude = _Amplitude(features, slopes) if any(slopes) else None

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ."""
        return self._with(rows, self.features[columns], columns)

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) prior covariance of places `rows` and m points for candidates λ."""
        return self._with(rows, points.features_on(self.features), points.nearest)

    def _with(self, rows: IntArray, there: FloatArray, places: IntArray) -> FloatArray:
        k = self.kernel.correlations(self.features[rows], there, self._length_scales)
        found = np.asarray(self._signal[:, None, None] * k[self._which])
        if self._amplitude is not None:
            found *= self._amplitude.of(rows)[:, :, None]
            found *= self._amplitude.of(places)[:, None, :]
        return found

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance at `locations` under each candidate λ."""
        if self._amplitude is None:
            return super().variance(locations)
        return np.asarray(self._signal[:, None] * self._amplitude.of(locations) ** 2)

    def only(self, which: Sequence[int]) -> FeatureCovariance:
        """Return this covariance restricted to the hyper-parameter candidates `which`."""
        other = super().only(which)
        used, other._which = np.unique(self._which[list(which)], return_inverse=True)
        other._length_scales = self._length_scales[used]
        if self._amplitude is not None:
            other._amplitude = self._amplitude.only(which)
        return other


class _Amplitude:
    """Relative standard deviation of a field at n places; its root mean square is 1.

    `features` are (n, p); `slopes` are the `amplitude_slopes` of each of L candidates.
    """

    def __init__(self, features: FloatArray, slopes: Sequence[tuple[float, ...]]) -> None:
        spread = features.std(axis=0)
        self._scaled = (features - features.mean(axis=0)) / np.where(spread > 0.0, spread, np.inf)
        every = np.array([each or (0.0,) * features.shape[1] for each in slopes])
        self._slopes, which = np.unique(every, axis=0, return_inverse=True)
        self._which = which.reshape(-1)
        squares = [np.exp(2.0 * (self._scaled @ slope)).mean() for slope in self._slopes]
        self._sizes = np.sqrt(squares)

    def of(self, places: IntArray) -> FloatArray:
        """Return the (L, m) relative standard deviations at places (m,)."""
        found = np.exp(self._slopes @ self._scaled[places].T) / self._sizes[:, None]
        return np.asarray(found[self._which])

    def only(self, which: Sequence[int]) -> _Amplitude | None:
        """Return the amplitudes of candidates `which`; None if all are constant over the map."""
        other = copy(self)
        other._which = self._which[list(which)]
        return other if self._slopes[other._which].any() else None


class JoinedCovariance(LocationCovariance):
    """Covariance with the candidates of all `parts`. All parts have the same places.

    Raises:
        ValueError: there is no covariance, or the numbers of places differ.
    """

    def __init__(self, parts: Sequence[LocationCovariance]) -> None:
        if len({part.n for part in parts}) != 1:
            msg = f"expected covariances of as many places, got {[part.n for part in parts]}"
            raise ValueError(msg)
        self.parts = tuple(parts)
        self.n = self.parts[0].n
        self.hyperparameters = tuple(h for part in parts for h in part.hyperparameters)

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ."""
        found = np.empty((len(self.hyperparameters), len(rows), len(columns)))
        start = 0
        for part in self.parts:
            end = start + len(part.hyperparameters)
            found[start:end] = part.between(rows, columns)
            start = end
        return found

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) prior covariance of places `rows` and m points for candidates λ."""
        return np.concatenate([part.with_points(rows, points) for part in self.parts])

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance at `locations` under each candidate λ."""
        return np.concatenate([part.variance(locations) for part in self.parts])

    def only(self, which: Sequence[int]) -> LocationCovariance:
        """Return this covariance restricted to the hyper-parameter candidates `which`."""
        found: list[LocationCovariance] = []
        start = 0
        for part in self.parts:
            end = start + len(part.hyperparameters)
            if mine := [i - start for i in which if start <= i < end]:
                found.append(part.only(mine))
            start = end
        return joined(found)


def joined(parts: Sequence[LocationCovariance]) -> LocationCovariance:
    """Return one covariance with the candidates of all parts; a single part is not copied."""
    return parts[0] if len(parts) == 1 else JoinedCovariance(parts)


_FEWEST = 5
"""Smallest number of observed places for an estimate of the scale c under a known mean. Each
coefficient of an unknown mean requires one more place."""
_MOST = 128
"""Largest number of places used to estimate c. They are spread evenly over the map."""
_STEPS = 2.0
"""Estimates are rounded to this number of steps per factor of two."""


def unit_scale(
    covariance: LocationCovariance, basis: FloatArray, places: IntArray, averages: FloatArray
) -> FloatArray | None:
    r"""Return an estimate (L,) of the scale c of each candidate λ; None with too few readings.

    With an unknown scale, each candidate's covariance is known up to a factor c, which is
    integrated out later. Readings with a variance of their own need an estimate of c earlier.
    The estimate follows from the sample variance s² of the places' averages,

    .. math:: E[s^2] = c_\lambda (\bar k_{ii} - \bar k_{ij}),

    in which the candidate's covariance is averaged over all places i and over all pairs i ≠ j. The
    estimate is rounded to steps of √2. It depends on the readings, not on the times of queries.

    Args:
        covariance: prior covariance under each λ at c = 1.
        basis: (n, q) basis of the prior mean, which is removed from the averages.
        places: (k,) observed places.
        averages: (k,) averages of the readings of these places.
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
    # A field that hardly varies over these places would otherwise get an unbounded scale.
    apart = np.maximum(apart, 0.01 * own / count)
    return np.asarray(2.0 ** (np.round(_STEPS * np.log2(variance / apart)) / _STEPS))


_SPREAD = math.log(10.0)
"""Prior standard deviation of the log noise variance about a candidate's value."""


def noise_estimate(
    noise: FloatArray, unit: FloatArray, freedom: float, squares: float
) -> FloatArray:
    r"""Return the (L,) noise variance of each candidate, corrected by repeated readings of places.

    The noise variance :math:`r_\lambda` of a candidate λ is a guess with a normal prior on its
    logarithm. Readings of one place differ by the noise alone. With n degrees of freedom, the
    logarithm of their variance estimates the logarithm of the noise variance. The error of this
    estimate has the mean :math:`\psi(n/2) - \log(n/2)` and the variance :math:`\psi'(n/2)`. The
    result averages the logarithms of guess and estimate, weighted by their precisions. n and the
    variance are rounded, so the result changes rarely.

    Args:
        noise: (L,) noise variance of the candidates at a scale c of 1.
        unit: (L,) estimate of the scale c (see `unit_scale`).
        freedom: n, number of readings minus number of places.
        squares: sum of squares of readings about the means of their places.
    """
    step = math.log(2.0) / _STEPS
    found = math.log(max(squares, 1e-200) / 2.0) - float(digamma(freedom / 2.0))
    found = step * round(found / step)
    spread = float(polygamma(1, 2.0 ** (round(_STEPS * math.log2(freedom)) / _STEPS) / 2.0))
    share = _SPREAD**2 / (_SPREAD**2 + spread)
    return np.asarray(np.exp(share * (found - np.log(unit)) + (1.0 - share) * np.log(noise)))


_FLOOR = 1e-24
"""Lower limit of the residuals' mean square, relative to the readings' mean square."""


class ScaledEvidence(NamedTuple):
    """Evidence and scale of each candidate λ, with the scale integrated out.

    Args:
        log_evidence: (L,) log-evidence up to a constant.
        factor: (L,) expected factor of all variances of a candidate.
    """

    log_evidence: FloatArray
    factor: FloatArray


def integrate_scale(
    rest: FloatArray, quadratic: FloatArray, readings: float, known: int, size: float
) -> ScaledEvidence:
    r"""Integrate out a common factor c of signal, noise and mean variance, with ``p(c) ∝ 1/c``.

    Let Q = zᵀ K⁻¹ z at c = 1, and ν = `readings` - `known`.

    .. math:: p(z | \lambda) \propto |K|^{-1/2} Q^{-\nu/2}, \quad E[c | z, \lambda] = Q / (\nu - 2)

    [Rasmussen2006, Sec. 2.7; Ohagan1994]. For ν ≤ 3, the returned factor is Q. For ν < 1, the scale
    is undetermined, and the returned factor is 1.

    Args:
        rest: (L,) log-evidence at c = 1 without the term -Q/2.
        quadratic: (L,) Q.
        readings: number of readings; an aged reading counts as a fraction.
        known: number of coefficients of a vague mean.
        size: mean square of the readings about the first reading; it limits Q from below.
    """
    freedom = readings - known
    if freedom < 1:
        return ScaledEvidence(np.zeros_like(rest), np.ones_like(quadratic))
    Q = np.maximum(quadratic, _FLOOR * max(size, 1e-200) * readings)
    return ScaledEvidence(rest - 0.5 * freedom * np.log(Q), Q / max(freedom - 2, 1))
