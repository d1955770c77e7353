"""Belief over a field and over the hyper-parameters of its Gaussian process."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtri, logsumexp, ndtr, stdtr

from gp_active_sensing.belief.conditioning import Conditioning
from gp_active_sensing.belief.dated_readings import VisitTimes
from gp_active_sensing.belief.drift import NO_DRIFT, Ageing, DriftConfig
from gp_active_sensing.belief.grid import CandidateGrid
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.place_covariance import Steepness
from gp_active_sensing.belief.prior import (
    IDENTITY,
    LOG,
    HyperParameters,
    LocationCovariance,
    Log,
    PriorMean,
    Transform,
)
from gp_active_sensing.belief.promise import (
    MOST_PLACES,
    Promise,
    PromiseBound,
    floor_of,
    promise_of,
)
from gp_active_sensing.errors import ReadingError
from gp_active_sensing.types import BoolArray, FloatArray, IntArray, Off, PlacedReading, Reading

if TYPE_CHECKING:
    from gp_active_sensing.belief.leave_one_out import LeaveOneOut

logger = logging.getLogger(__name__)

FEWEST = 10
"""Smallest number of observed places at which the readings select a transform."""
_AGAIN = 1.25
"""A transform is selected again when the number of observed places has grown by this factor."""
_ROUNDING = 1e-9
"""Readings with at most this relative standard deviation count as equal."""
_CLEAR = 5.0
"""Smallest gain in log-evidence for which the belief changes its transform [nat]."""
_FREEDOM = 2.0
"""Degrees of freedom above which the expectation of an unknown scale exists."""
_CHUNK = 1 << 16
"""Largest number of covariance entries per step, chosen to fit into the processor's cache."""
_LARGE = 2000
"""Largest number of places of a map for which ``C⁻¹ K_D*`` of all places is cached."""
_UNLIKELY = 1e-6
"""Largest total weight of the λ that are left out on maps of more than `_LARGE` places."""
_BLOCK = 4_000_000
"""Largest number of array entries for a block of places on maps of more than `_LARGE` places."""
_LARGEST = 1e100
"""Largest absolute value of a reading and largest noise variance; their squares stay finite."""


@dataclass(frozen=True)
class Posterior:
    """Joint posterior mean (L, m) and covariance (L, m, m) of the latent field at m locations.

    The field is noise-free and in transformed units; L is the number of candidates λ.
    """

    mean: FloatArray
    covariance: FloatArray


class Belief:
    """Mixture of Gaussian processes, one for each candidate λ. [Hoang2014, Eqs. 1-4].

    A candidate λ is a kernel with its length-scales, variances and noise. Its weight is
    ``b_D(λ) ∝ p(z_D | λ) b(λ)``. All readings of one place are combined exactly. Their order
    affects only rounding. The first query after new readings costs O(L |D|²) for |D| observed
    places.

    Args:
        covariance: prior covariance between locations under each λ.
        mean: prior mean of the field; a mean with unknown coefficients is called vague.
        weights: (L,) prior belief b(λ); None = uniform.
        transform: transform of readings before conditioning. None = the transform that the readings
            select (see `adapt`) if the scale is unknown, the mean is vague and the field is
            constant; the identity in all other cases.
        scale_known: False if covariance and noise are known up to a common factor only. The factor
            is integrated out for each λ (`prior.integrate_scale`). The mean must be known or vague.
        noise_known: False if the candidates' noise is a guess. Repeated readings of a place then
            correct the noise.
        grid: description of candidates that adapt to the readings; None = fixed candidates.
        drift: change of the field with time; by default the field is constant.
    """

    def __init__(
        self,
        covariance: LocationCovariance,
        mean: PriorMean,
        weights: Sequence[float] | FloatArray | None = None,
        transform: Transform | None = IDENTITY,
        *,
        scale_known: bool = True,
        noise_known: bool = True,
        grid: CandidateGrid | None = None,
        drift: DriftConfig = NO_DRIFT,
    ) -> None:
        L = len(covariance.hyperparameters)
        prior = np.full(L, 1.0) if weights is None else np.array(weights, dtype=np.float64)
        if prior.shape != (L,) or not np.isfinite(prior).all() or (prior < 0).any():
            msg = f"expected {L} prior weights, finite and not negative, got {prior.tolist()}"
            raise ValueError(msg)
        if prior.sum() <= 0:
            msg = "expected at least one prior weight above 0, got none"
            raise ValueError(msg)
        self.covariance = covariance
        vague = mean.basis.shape[1] > 0
        self._chooses = transform is None and vague and not scale_known and not drift.changing
        self._lowest = math.inf
        self._left = ""
        self._fixed = IDENTITY if transform is None else transform
        self._due = FEWEST
        self.prior_weights: FloatArray = prior / prior.sum()
        self.scale_known = scale_known
        self.grid = grid
        self._every = (covariance, self.prior_weights)
        """Initial covariance and prior weights, before any adaptation to the readings."""
        self.drift = drift
        self._variance_warned = False
        self._ageing: Ageing | None = None
        self._presence = VisitTimes(covariance.n, matters=drift.changing)
        if drift.changing:
            self._ageing = Ageing(drift, min(h.noise_std for h in covariance.hyperparameters))
        self._data = Conditioning(
            covariance,
            mean,
            scale_known=scale_known,
            noise_known=noise_known,
            raw=self._fixed is IDENTITY,
            ageing=self._ageing,
        )

    @property
    def transform(self) -> Transform:
        """Transform from the sensor's unit to the values of the Gaussian process."""
        return self._data.transform if self._chooses else self._fixed

    # -- properties ----------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of locations."""
        return self.covariance.n

    @property
    def hyperparameters(self) -> tuple[HyperParameters, ...]:
        """(L,) candidates Λ; unknown standard deviations are estimated from the readings."""
        candidates, data = self.covariance.hyperparameters, self._updated
        if self.scale_known and data.noise_known:
            return candidates
        factors = np.sqrt(data.scales).tolist()
        noises = np.sqrt(data.noise_estimate).tolist()
        return tuple(
            replace(
                h,
                signal_std=h.signal_std * f,
                noise_std=noise * f,
                place_std=h.place_std * f,
                attribute_std=h.attribute_std * f,
                long_std=h.long_std * f,
            )
            for h, f, noise in zip(candidates, factors, noises, strict=True)
        )

    @property
    def noise_variance(self) -> FloatArray:
        """(L,) noise variance σ_n² of readings that have no variance of their own.

        Its lower bound is `factor.LEAST_NOISE` times the field's variance.
        """
        data = self._updated
        return data.floored_noise if self.scale_known else data.floored_noise * data.scales

    @property
    def observed(self) -> BoolArray:
        """(n,) read-only mask of places that a probe has read.

        With drift, the latest reading of a place must still affect the belief and be younger than
        `drift.forget_after`.
        """
        if self._ageing is None or not self._presence.visited.any():
            return self.visited
        lately = self._presence.seen_within(self.drift.forget_after)
        lately &= self._data.counting(self._presence.newest)
        lately.flags.writeable = False
        return lately

    @property
    def visited(self) -> BoolArray:
        """(n,) read-only mask of places that a probe has ever read."""
        view = self._presence.visited.view()
        view.flags.writeable = False
        return np.asarray(view)

    @property
    def readings(self) -> IntArray:
        """(n,) number of readings of each place."""
        return np.array(self._data.readings)

    @property
    def mean(self) -> PriorMean:
        """Prior mean of the field."""
        return self._data.mean

    @property
    def jittered(self) -> int:
        """Number of times that a covariance matrix needed jitter or a noise floor."""
        return self._data.factor.jittered

    @property
    def _updated(self) -> Conditioning:
        self._data.update()
        return self._data

    def copy(self) -> Belief:
        """Return an independent copy. The immutable covariance is shared."""
        other = copy.copy(self)
        other._presence = self._presence.copy()
        other._data = self._data.copy()
        return other

    def level(self) -> Belief:
        """Return a belief with the same readings, in which no candidate has an amplitude slope.

        Return this belief itself if no candidate has `amplitude_slopes`. O(L |D|³).
        """
        if self.grid is None or (grid := self.grid.level()) is None:
            return self
        other = self.copy()
        other._use(grid)
        return other

    def among(
        self, covariance: LocationCovariance, weights: FloatArray, grid: CandidateGrid | None
    ) -> Belief:
        """Return a belief with the same settings and other candidates λ, but without readings.

        `weights` (L,) are the prior weights of the candidates in `covariance`. `grid` describes
        candidates that adapt to the readings; None = fixed candidates.
        """
        found = Belief(
            covariance,
            self.mean,
            weights,
            None if self._chooses else self._fixed,
            scale_known=self.scale_known,
            noise_known=self._data.noise_known,
            grid=grid,
            drift=self.drift,
        )
        found._data.steepness = copy.copy(self._data.steepness)
        return found

    def place_at(self, points: FloatArray, names: Sequence[str] = ()) -> None:
        """Set the places' positions, for `predict_at` and for readings with `off`.

        Args:
            points: (n, 2) positions, or (n, 3) with heights [m].
            names: names of the features, in the order of their length-scales.
        """
        self._data.steepness = Steepness(points, names)

    def move_to(self, fresh: Belief, *, others: bool = False) -> None:
        """Extend the belief to the places of `fresh`; the first of them are the existing places.

        Readings and adapted candidates λ are kept; `amplitude_slopes` are removed. The next query
        recomputes the Cholesky factors.

        Args:
            fresh: belief with the same settings over all places, before its first reading.
            others: True if `fresh` may have other candidates, because a link was added or removed.

        Raises:
            ValueError: `fresh` has fewer places, or other candidates although `others` is False.
        """
        covariance, prior, grid = fresh.covariance, fresh.prior_weights, fresh.grid
        if self.grid is not None and grid is not None:
            level = self.grid.level()  # the new part of the map has no readings
            grid, others = (level or self.grid).on(grid), others or level is not None
            covariance, masses = grid.build()
            prior = masses / masses.sum()
        count, more = len(self.covariance.hyperparameters), len(covariance.hyperparameters)
        if (count != more and not others) or fresh.n < self.n:
            msg = (
                f"expected {count} candidates over at least {self.n} places, got {more} over "
                f"{fresh.n}"
            )
            raise ValueError(msg)
        self._every = fresh._every
        mean = fresh.mean
        if not self.scale_known and self._data.begun and mean.basis.shape[1]:
            mean = replace(mean, offset=np.full(fresh.n, self.mean.offset[0]))  # see `observe`
        self.covariance, self.prior_weights, self.grid = covariance, prior, grid
        self._presence.grow(fresh.n)
        self._data.move_to(covariance, mean)
        self._data.steepness = copy.copy(fresh._data.steepness)

    def varies_by(self, location: int, square: float, up: float = 0.0) -> FloatArray:
        """Return the (L,) variance of the field's difference between a place and a nearby position.

        Args:
            location: the place.
            square: mean square of the horizontal distance [m²].
            up: mean square of the difference in height, on a map with heights [m²].
        """
        data = self._data
        if data.steepness is None:
            return np.zeros(len(data.noise))
        across, above = data.steepness.of(data.covariance, np.array([location]))[:, :, 0]
        return np.asarray(across * square + above * up)

    # -- readings ------------------------------------------------------------------------------

    def observe(
        self,
        location: int,
        value: float,
        noise_variance: float | None = None,
        *,
        seconds: float = 0.0,
        expert: bool = False,
        off: Off | None = None,
    ) -> None:
        """Add one reading in O(1); the next query updates the Cholesky factors.

        Args:
            location: place of the reading.
            value: reading in the sensor's unit.
            noise_variance: noise variance of this reading; None = σ_n²(λ). If the scale is unknown,
                σ_n²(λ) is added to a given variance.
            seconds: time of the reading [s], which advances the clock; no effect without drift.
            expert: True for an expert's answer, which leaves its place unobserved.
            off: distance of the reading from the place's point [m]; None = no distance. A given
                `noise_variance` grows by the variance of the field's change over this distance.

        Raises:
            ReadingError: the value is not finite, too large or outside the transform's domain, or
                the variance is not above 0. The belief does not change.
            IndexError: `location` is not a place.
        """
        value, noise_variance = self.check(location, value, noise_variance)
        if not math.isfinite(seconds):
            msg = f"expected the time of a reading in seconds, got {seconds}"
            raise ReadingError("bad_stamp", msg)
        self._observe(location, value, noise_variance, seconds, expert=expert, off=off)

    def observe_placed(self, placed: PlacedReading, *, expert: bool = False) -> None:
        """Add a reading that the method `place` has checked; see `observe`."""
        reading = placed.reading
        seconds = 1e-9 * reading.stamp_ns
        self._observe(
            placed.place, placed.value, placed.noise_variance, seconds, expert=expert,
            off=reading.off,
        )  # fmt: skip

    def _observe(
        self,
        location: int,
        value: float,
        noise_variance: float | None,
        seconds: float,
        *,
        expert: bool,
        off: Off | None,
    ) -> None:
        if not self.scale_known:
            noise_variance = self._without_scale(value, noise_variance)
        self._allow(value)
        self._data.add(location, value, noise_variance, seconds, expert=expert, off=off)
        self._presence.see(location, seconds, expert=expert)

    def amend(
        self,
        location: int,
        before: tuple[float, float | None, float, Off | None],
        value: float,
        noise_variance: float | None = None,
        *,
        seconds: float = 0.0,
        off: Off | None = None,
    ) -> None:
        """Replace an observed reading of a probe.

        Args:
            location: place of both readings.
            before: value, noise variance, `seconds` and `off` of the replaced reading. If the
                reading was amended before, `seconds` is the time of the original reading.
            value: new reading in the sensor's unit.
            noise_variance: noise variance of the new reading; None = σ_n²(λ).
            seconds: time of the new reading [s]. With drift, the replaced reading's time is used.
            off: distance of the new reading from the place's point, as in `observe`.

        Raises:
            ReadingError, IndexError: as in `observe`; the belief does not change.
        """
        gone = (*self.check(location, *before[:2]), *before[2:])
        value, noise_variance = self.check(location, value, noise_variance)
        self._amend(location, gone, value, noise_variance, seconds, off)

    def amend_placed(self, before: PlacedReading, placed: PlacedReading) -> None:
        """Replace an observed reading by one that the method `place` has checked; see `amend`."""
        gone, reading = before.reading, placed.reading
        was = before.value, before.noise_variance, 1e-9 * gone.stamp_ns, gone.off
        seconds = 1e-9 * reading.stamp_ns
        self._amend(placed.place, was, placed.value, placed.noise_variance, seconds, reading.off)

    def _amend(
        self,
        location: int,
        before: tuple[float, float | None, float, Off | None],
        value: float,
        noise_variance: float | None,
        seconds: float,
        off: Off | None,
    ) -> None:
        self._allow(value)
        if not self.scale_known and self._ageing is not None:
            before, noise_variance = (before[0], None, *before[2:]), None
        self._data.amend(location, before, value, noise_variance, seconds, off)
        self._presence.see(location, seconds, expert=False)

    @property
    def seconds(self) -> float:
        """Latest time of a reading or of `advance` [s]; 0 before the first reading."""
        return self._presence.now if math.isfinite(self._presence.now) else 0.0

    @property
    def tick(self) -> float:
        """Duration in which readings do not age noticeably [s]; inf without drift."""
        return math.inf if self._ageing is None else self._ageing.slot

    def advance(self, seconds: float) -> None:
        """Advance the clock to `seconds` in O(1); the next query updates the Cholesky factors.

        A time before the latest time is ignored. Without drift, time has no effect.

        Raises:
            ValueError: `seconds` is not finite.
        """
        self._presence.advance(seconds)
        self._data.advance(self._presence.now)

    def check(
        self, location: int, value: float, noise_variance: float | None = None
    ) -> tuple[float, float | None]:
        """Check a reading and return its transformed value and noise variance.

        Raises:
            ReadingError, IndexError: as in `observe`.
        """
        if not 0 <= location < self.n:
            msg = f"place {location} is not one of the belief's (0 … {self.n - 1})"
            raise IndexError(msg)
        _check_size(value, noise_variance)
        value, noise_variance = self._fixed.forward(value, noise_variance)
        _check_size(value, noise_variance)
        return value, noise_variance

    def seen(self, value: float, variance: float | None) -> tuple[float, float | None] | None:
        """Return a value and its noise variance after the belief's transform.

        Return None if the readings have selected a logarithm and `value` is outside of its domain.
        """
        try:
            return self.transform.forward(value, variance)
        except ReadingError:
            if not self._chooses:
                raise
            return None

    def place(self, reading: Reading) -> PlacedReading:
        """Check a reading of a known place and return the reading together with its checked values.

        Raises:
            ReadingError, IndexError: as in `observe`.
        """
        assert reading.location is not None
        checked = self.check(reading.location, float(reading.value), reading.noise_variance)
        return PlacedReading(reading, reading.location, *checked)

    def _without_scale(self, value: float, noise_variance: float | None) -> float | None:
        """Centre a vague mean on the first reading; return the noise variance to use."""
        if not self._data.begun and self.mean.basis.shape[1]:
            self._data.centre_mean(value)
        if noise_variance is None or self._ageing is None:
            return noise_variance
        if not self._variance_warned:
            self._variance_warned = True
            logger.warning(
                "the noise variances of readings are not used, since the scale of this changing "
                "field is unknown; set belief.signal_std (reported once)"
            )
        return None

    def _allow(self, value: float) -> None:
        """Select the identity if `value` is outside of the domain of the current logarithm."""
        transform, self._lowest = self.transform, min(self._lowest, value)
        if self._chooses and isinstance(transform, Log) and value + transform.offset <= 0.0:
            self._left = f"the readings themselves: {value:g} has no logarithm of the one before"
            self._data.see_through(IDENTITY)

    def adapt(self) -> str:
        """Adapt the candidates λ to the readings; return the reason for a change, "" = no change.

        Length-scales and variance components adapt, and so does a transform that was not given. A
        change recomputes the Cholesky factors in O(L |D|³).
        """
        if not self._data.begun:
            return ""
        return "; ".join(why for why in (self._adapt_grid(), self._choose()) if why)

    def _choose(self) -> str:
        r"""Select the identity or a logarithm by the evidence of the readings.

        For :math:`y = \log(z + c)` the density of the readings is the density of y times
        :math:`\prod_i 1 / (z_i + c)`. The options are the identity and the current transform. If
        all readings are above 0, the logarithm with offset c = 0 is another option. Two more
        logarithms have -c one or three standard deviations below the smallest reading. They are
        options if c > 0.
        """
        left, self._left = self._left, ""
        places = int(np.count_nonzero(self.visited))
        if left or not self._chooses or places < self._due:
            return left
        self._due = math.ceil(_AGAIN * places)
        averages = self._data.raw_averages()
        least, spread = min(self._lowest, float(averages.min())), float(averages.std())
        if not spread > _ROUNDING * float(np.abs(averages).max()):
            return ""
        offsets = [k * spread - least for k in (1.0, 3.0)] if least > 0.0 else []
        options: list[Transform] = [IDENTITY, *([LOG] if least > 0.0 else [])]
        options += [Log(offset) for offset in offsets if offset > 0.0]
        now = self.transform
        if isinstance(now, Log) and now not in options:
            options.append(now)
        found = {option: self._evidence_of(option) for option in options}
        best = max(options, key=lambda option: found[option])
        if best == now or found[best] - found[now] < _CLEAR:
            return ""
        self._data.see_through(best)
        if best is not IDENTITY and self.grid is not None and (grid := self.grid.level()):
            self._use(grid)
        what = "the readings themselves"
        if isinstance(best, Log):
            what = f"the logarithm of the readings{f' {best.offset:+.4g}' if best.offset else ''}"
        return f"{what}: {found[best] - found[now]:.1f} nat more probable"

    def _evidence_of(self, transform: Transform) -> float:
        """Return the log-evidence of the mixture of all initial candidates, under a transform.

        Adapted candidates are not used, because they would favour the current transform.
        """
        covariance, prior = self._every
        data = self._data.copy()
        data.begin(covariance)
        data.see_through(transform)
        data.update()
        with np.errstate(divide="ignore"):
            logs = np.log(prior) + data.log_evidence
        return float(logsumexp(logs)) + data.log_jacobian

    def _adapt_grid(self) -> str:
        if self.grid is None:
            return ""
        # After a logarithm, a large amplitude at one end of the map would make its mean explode.
        tilt = self.transform is IDENTITY
        grid, why = self.grid.adapted(self.weights, self.visited, tilt=tilt)
        if why:
            self._use(grid)
        return why

    def _use(self, grid: CandidateGrid) -> None:
        covariance, prior = grid.build()
        self.grid = grid
        self.covariance = covariance
        self.prior_weights = prior / prior.sum()
        self._data.begin(covariance)

    # -- posterior -----------------------------------------------------------------------------

    @property
    def log_evidence(self) -> FloatArray:
        """(L,) log-evidence ``log p(z_D | λ)`` of all readings under each candidate λ."""
        return np.array(self._updated.log_evidence)

    @property
    def information(self) -> FloatArray:
        """(L,) information ``½ log |I + N⁻¹ K|`` of the readings about the field [nat]."""
        return np.array(self._updated.information)

    @property
    def weights(self) -> FloatArray:
        """(L,) posterior weights ``b_D(λ)`` of the candidates, with sum 1. [Hoang2014, Eq. 3]."""
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.prior_weights) + self._updated.log_evidence
        weights = np.exp(log_weights - log_weights.max())
        return np.asarray(weights / weights.sum())

    def with_mean_within(self, most: float) -> Belief:
        r"""Return a copy of this belief with a limited variance of an unknown mean.

        Sums of products of covariances require this limit. The variance of a vague mean is 10¹²
        times the field's variance, so rounding would dominate the sums. Let m be `most`, and r the
        variance of a reading. The limit of the mean's variance is m r. If the mean's variance,
        averaged over the places, exceeds m r, the coefficients of the basis H get the prior
        precision :math:`I + G / (m r)` with :math:`G = H^T H / n`. Otherwise this belief itself is
        returned. The copy shares the data of this belief: do not add readings to the copy.
        """
        data = self._updated
        if not data.basis.shape[1]:
            return self
        metric = data.basis.T @ data.basis / self.n
        unknown = np.trace(data.coefficient_covariance @ metric, axis1=1, axis2=2)
        least = 1.0 / (most * np.array([h.variance + h.noise_std**2 for h in self.hyperparameters]))
        if (unknown * least <= 1.0).all():
            return self
        U = data.factor.U
        precision = np.eye(len(metric)) + np.swapaxes(U, 1, 2) @ U
        precision = precision + least[:, None, None] * metric
        found = copy.copy(self)
        found._data = copy.copy(data)
        found._data.coefficient_covariance = np.linalg.inv(precision)
        return found

    def joint(self, locations: IntArray, which: IntArray | None = None) -> Posterior:
        """Return the joint posterior of the latent field at `locations` under each candidate λ.

        O(L |D|² m). [Hoang2014, Eqs. 1-2, with the mean's coefficients integrated out]

        Args:
            locations: (m,) places.
            which: indices of the candidates, ascending; None = all.
        """
        locations = np.asarray(locations, dtype=np.int64)
        if which is None:
            which = np.arange(len(self.hyperparameters))
        data = self._updated
        covariance, W = data.with_prior(locations, which)
        mean, _, R = self._project(locations, which, W)
        slopes = R @ data.coefficient_covariance[which]
        half = 0.5 * data.scales[which, None, None]
        step = max(1, _CHUNK // max(len(locations), 1) ** 2)
        for start in range(0, len(which), step):
            part = slice(start, start + step)
            found = covariance[part]
            found -= np.swapaxes(W[part], 1, 2) @ W[part]
            for column in range(R.shape[2]):
                found += slopes[part, :, None, column] * R[part, None, :, column]
            found += np.swapaxes(found, 1, 2)
            found *= half[part]
        return Posterior(mean, covariance)

    def cross(self, locations: IntArray) -> FloatArray:
        """Return the (L, m, n) posterior covariance of `locations` and all places, O(L |D| m n)."""
        locations = np.asarray(locations, dtype=np.int64)
        everywhere = np.arange(self.n)
        _, W, R = self._project(everywhere, everywhere=True)
        covariance = self.covariance.between(locations, everywhere)
        covariance -= np.swapaxes(W[:, :, locations], 1, 2) @ W
        if R.shape[2]:
            slopes = R[:, locations] @ self._data.coefficient_covariance
            covariance += slopes @ np.swapaxes(R, 1, 2)
        return np.asarray(self._data.scales[:, None, None] * covariance)

    def between(self, rows: IntArray, columns: IntArray, which: IntArray) -> FloatArray:
        """Return the (W, r, c) posterior covariance between places `rows` (r,) and `columns` (c,).

        `which` (W,) are the indices of the candidates λ, ascending. O(W |D| r c).
        """
        rows, columns = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        right, B = self._weights_of(columns, which)
        same = rows is columns or np.array_equal(rows, columns)
        left, A = (right, B) if same else self._weights_of(rows, which)
        A = A @ self._data.coefficient_covariance[which]
        found = self.covariance.only(which.tolist()).between(rows, columns)
        found -= np.swapaxes(left, 1, 2) @ right
        if B.shape[2]:
            found += A @ np.swapaxes(B, 1, 2)
        found *= self._data.scales[which, None, None]
        return found

    def marginals_under(
        self, locations: IntArray, which: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (W, m) of the latent field under each of the candidates `which`.

        `which` (W,) are the indices of the candidates λ, ascending.
        """
        locations = np.asarray(locations, dtype=np.int64)
        return self._updated.moments(locations, which, *self._weights_of(locations, which))

    def _weights_of(self, where: IntArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the arguments `solved` and `R` of `Conditioning.moments`."""
        data = self._updated
        if self.n <= _LARGE and data.chunks() is None:
            solved = data.everywhere()[
                which[:, None, None], np.arange(data.factor.rows)[:, None], where
            ]
        else:
            solved = data.solved(where, which)
        return solved, data.basis[where] - np.swapaxes(solved, 1, 2) @ data.factor.U[which]

    def roots(self, locations: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the terms of the posterior covariance ``C_λ = s_λ k_λ - WᵀW + BᵀB``.

        Use this to compute single entries of C_λ in O(L |D|), without the whole matrix.

        Args:
            locations: (m,) places.

        Returns:
            ``s`` (L,), scale of the prior covariance; ``W`` (L, R, m), reduction by R
            pseudo-readings (see `Factor`); ``B`` (L, q, m), addition by the q coefficients of an
            unknown mean; and the mean (L, m).
        """
        locations = np.asarray(locations, dtype=np.int64)
        if self.n <= _LARGE and self._updated.chunks() is None:
            mean, W, R = self._project(np.arange(self.n), everywhere=True)
            mean, W, R = mean[:, locations], W[:, :, locations], R[:, locations]
        else:
            mean, W, R = self._project(locations)
        scale = self._data.scales
        values, vectors = np.linalg.eigh(self._data.coefficient_covariance)
        slopes = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        size = np.sqrt(scale)[:, None, None]
        return scale, size * W, size * np.swapaxes(R @ slopes, 1, 2), mean

    def marginals(self, locations: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (L, m) of the latent field under each candidate λ."""
        if locations is not None:
            return self._marginals(np.asarray(locations, dtype=np.int64))
        if (chunks := self._updated.chunks()) is None:
            return self._marginals(np.arange(self.n), everywhere=True)
        parts = [self._marginals(chunk) for chunk in chunks]
        means, variances = zip(*parts, strict=True)
        return np.concatenate(means, axis=1), np.concatenate(variances, axis=1)

    def _marginals(
        self, where: IntArray, *, everywhere: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        if everywhere:
            data = self._updated
            squares, mean, slopes = data.sums()
            R = data.basis - slopes
            mean = mean + data.mean.offset + (R @ data.coefficients[:, :, None])[:, :, 0]
        else:
            mean, W, R = self._project(where)
            squares = np.einsum("lrm,lrm->lm", W, W)
        variance: FloatArray = self.covariance.variance(where) - squares
        if R.shape[2]:
            variance += ((R @ self._data.coefficient_covariance) * R).sum(axis=2)
        # Rounding may make a variance slightly negative where the noise is tiny.
        return mean, self._data.scales[:, None] * np.maximum(variance, 0.0)

    def averages(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) average reading of observed places, after the belief's transform.

        Readings are weighted by precision. The average depends on λ only if some readings of a
        place have their own variance and others do not. With drift, each reading has its current
        weight. With the forgetting kernel (drift of kind `kernel`), the average includes only
        readings of the latest time slot.

        Raises:
            ValueError: a place has no reading.
        """
        locations = np.asarray(locations, dtype=np.int64)
        known = self.observed[locations]
        if not known.all():
            bad = int(locations[~known][0])
            msg = f"expected observed places, got {bad}, which has no reading"
            raise ValueError(msg)
        return self._data.averages(locations)[0]

    def average_noise(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) noise variance of the `averages`, after the belief's transform.

        Raises:
            ValueError: a place has no reading.
        """
        averages = self.averages(locations)  # raises for a place without a reading
        if not averages.size:
            return averages
        variances = self._data.averages(np.asarray(locations, dtype=np.int64))[1]
        return np.asarray(self._updated.scales[:, None] * variances)

    def predict(
        self, locations: IntArray | None = None, *, noisy: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (m,) of the mixture, in the sensor's unit. [Hoang2014, Eq. 4].

        Args:
            locations: (m,) places; None = all.
            noisy: True to predict a new reading instead of the noise-free field.
        """
        found = self.mixture(locations)
        return (found.noisier(self.noise_of()) if noisy else found).moments()

    def mixture(self, locations: IntArray | None = None) -> Mixture:
        """Return the posterior of the noise-free field at each of m places; None = all places.

        The sensor's resolution sets a lower limit on the variances (see `Resolution`). On a map of
        more than 2,000 places, the least probable candidates λ get weight 0 and no predictions.
        Their total weight is at most 1e-6.
        """
        weights = self.weights
        if self.n <= _LARGE:
            mean, variance = self.marginals(locations)
        else:
            where = np.arange(self.n) if locations is None else np.asarray(locations)
            order = np.argsort(-weights, kind="stable")
            likely = int(np.searchsorted(np.cumsum(weights[order]), 1.0 - _UNLIKELY)) + 1
            weights[order[likely:]] = 0.0
            weights /= weights.sum()
            which = np.flatnonzero(weights)
            mean, variance = np.zeros((2, len(weights), len(where)))
            size = max(1, _BLOCK // (len(which) * max(1, self._updated.factor.rows)))
            for part in (slice(i, i + size) for i in range(0, len(where), size)):
                found = self.marginals_under(where[part], which)
                mean[which, part], variance[which, part] = found
        if (least := self._updated.floor(mean)) is not None:
            variance = np.maximum(variance, least)
        return Mixture(weights, mean, variance, self.transform)

    def predict_at(
        self, positions: FloatArray, within: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (m,) of the noise-free field at positions, in the sensor's unit.

        At the point of a place, the result equals `predict`. Memory use is bounded.

        Args:
            positions: (m, 2), or (m, 3) on a map with heights [m].
            within: (m,) place of each position, such as a road segment; None = places are points.

        Raises:
            ValueError: wrong shape, a position that is not finite, or no earlier call of
                `place_at`.
        """
        moments = [found.moments() for _, found in self.mixtures_at(positions, within)]
        mean, variance = zip(*moments, strict=True) if moments else ((np.zeros(0),), (np.zeros(0),))
        return np.concatenate(mean), np.concatenate(variance)

    def mixtures_at(
        self, positions: FloatArray, within: IntArray | None = None
    ) -> Iterator[tuple[slice, Mixture]]:
        """Yield blocks of positions with the posterior of the field there; see `predict_at`."""
        from gp_active_sensing.belief.points import PointLocator, mixture_at

        data = self._updated
        if data.steepness is None:
            msg = "expected a belief whose places have positions; call place_at first"
            raise ValueError(msg)
        locator = PointLocator(data.steepness.points, data.steepness.names)
        weights, positions = self.weights, np.asarray(positions, dtype=np.float64)
        for start in range(0, len(positions), data.block):
            block = slice(start, min(start + data.block, len(positions)))
            points = locator.locate(positions[block], None if within is None else within[block])
            yield block, mixture_at(data, weights, self.transform, points)

    def probability_between(self, low: float, high: float) -> FloatArray:
        """Return the (n,) probability that the noise-free field lies between two values.

        The values are in the sensor's unit and may be infinite. With an unknown scale, the field
        has a Student distribution instead of a normal distribution under each candidate λ.
        """
        mean, variance = self.marginals()
        data, weights = self._updated, self.weights
        if (least := data.floor(mean)) is not None:
            variance = np.maximum(variance, least)
        freedom = data.freedom
        if math.isfinite(freedom):  # variances use the expected scale, see `scale_factors`
            variance = variance * (max(freedom - _FREEDOM, 1.0) / freedom)
        deviation = np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny))

        def below(value: float) -> FloatArray:
            with np.errstate(over="ignore"):
                z = (self.transform.seen(np.array([value])) - mean) / deviation
            return np.asarray(weights @ (stdtr(freedom, z) if math.isfinite(freedom) else ndtr(z)))

        return np.asarray(np.clip(below(high) - below(low), 0.0, 1.0))

    def noise_of(self, own: FloatArray | None = None) -> FloatArray:
        """Return the (L, m) noise variance of new readings; (L, 1) if equal for all readings.

        Args:
            own: (m,) noise variance of each reading, after the transform; None = σ_n²(λ).
        """
        noise = self.noise_variance[:, None]
        if own is None or not (self.scale_known or self._ageing is None):
            return noise
        return np.tile(own, (len(noise), 1)) if self.scale_known else noise + own

    @property
    def settled(self) -> bool:
        """True if the variances of the belief are defined.

        With an unknown scale, the readings must outnumber the mean's coefficients by at least
        three. With fewer readings, the variances are right only to an order of magnitude.
        """
        return self._updated.freedom > _FREEDOM

    def scale_factors(self, count: int) -> FloatArray:
        """Return `count` equally probable values of the factor c of all variances.

        The values are relative to the expectation of c and follow from ``Q / c ~ χ²_ν`` (see
        `integrate_scale`). The result is [1] with a known scale, and empty for ν < 1.
        """
        freedom = self._updated.freedom
        if math.isinf(freedom):
            return np.ones(1)
        if freedom < 1.0:
            return np.ones(0)
        below = chdtri(freedom, (np.arange(count) + 0.5) / count)
        return np.asarray(max(freedom - _FREEDOM, 1.0) / below)

    def promise(self, weights: FloatArray, found: Mixture | None = None) -> Promise | None:
        """Return the expected error of the map; None while the belief is not `settled`.

        `weights` (n,) are `Topology.weights`. `found` is the mixture at all places; None = compute
        it.
        """
        if not self.settled:
            return None
        return promise_of(self.mixture() if found is None else found, weights)

    def floor(self, weights: FloatArray) -> PromiseBound | None:
        """Return a lower bound of the promised error that holds wherever the readings are taken.

        The bound assumes as many observed places as now, and readings of the same precisions. The
        result is None for a map of more than `MOST_PLACES` places, with drift, with a logarithm as
        transform, or while the belief is not `settled`.
        """
        if self.n > MOST_PLACES or self._ageing is not None or self.transform is not IDENTITY:
            return None
        return floor_of(self._updated, self.weights, weights) if self.settled else None

    def leave_one_out(self) -> LeaveOneOut | None:
        """Return predictions of each observed place from the readings of all other places.

        All predictions use the current candidates λ. O(L |D|³). The result is None without readings
        or with drift.
        """
        if self._ageing is not None or not self._data.begun:
            return None
        from gp_active_sensing.belief.leave_one_out import leave_one_out

        return leave_one_out(self._updated, self.prior_weights)

    def _project(
        self,
        where: IntArray,
        which: IntArray | None = None,
        W: FloatArray | None = None,
        *,
        everywhere: bool = False,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return means (L, m), and the arguments `solved` and `R` of `Conditioning.moments`.

        `which` restricts the candidates λ. Pass `solved` as `W` if it has already been computed.
        """
        data = self._updated
        some = slice(None) if which is None else which
        if W is None:
            W = data.everywhere() if everywhere else data.solved(where, which)
        Wt = np.swapaxes(W, 1, 2)
        R = data.basis[where] - Wt @ data.factor.U[some]
        mean = data.mean.offset[where] + (Wt @ data.factor.v[some, :, None])[:, :, 0]
        mean = mean + (R @ data.coefficients[some, :, None])[:, :, 0]
        return mean, W, R


def _check_size(value: float, noise_variance: float | None) -> None:
    if not abs(value) <= _LARGEST:
        msg = f"expected a value within ±{_LARGEST:g}, got {value}"
        raise ReadingError("out_of_range", msg)
    if noise_variance is not None and not 1.0 / _LARGEST <= noise_variance <= _LARGEST:
        msg = (
            f"expected a noise variance of {1.0 / _LARGEST:g} … {_LARGEST:g}, got {noise_variance}"
        )
        raise ReadingError("bad_variance", msg)
