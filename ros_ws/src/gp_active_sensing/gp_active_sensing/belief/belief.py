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
from gp_active_sensing.belief.promise import MOST_PLACES, Floor, Promise, floor_of, promise_of
from gp_active_sensing.errors import ReadingError
from gp_active_sensing.types import (
    BoolArray,
    FloatArray,
    IntArray,
    Off,
    PlacedReading,
    Reading,
)

if TYPE_CHECKING:
    from gp_active_sensing.belief.leave_one_out import LeaveOneOut

logger = logging.getLogger(__name__)

FEWEST = 10
"""Places with a reading from which on the readings choose between transforms."""
_AGAIN = 1.25
"""They choose again when there are so many times as many places."""
_ROUNDING = 1e-9
"""Spread of readings below which they are equal, as a share of the largest."""
_CLEAR = 5.0
"""Another transform has to be more probable by so much [nat]."""
_FREEDOM = 2.0
"""Degrees of freedom above which an unknown scale has an expectation."""
_CHUNK = 1 << 16
"""Numbers of a covariance computed at a time: what the processor's cache holds of them."""
_LARGE = 2000
"""Places from which on only what is asked for is computed, and nothing of it is kept."""
_UNLIKELY = 1e-6
"""Share of the belief whose candidates are left out on such a map."""
_BLOCK = 4_000_000
"""Numbers in the arrays of places that are computed together there."""
_LARGEST = 1e100
"""Largest size of a value, and range of its noise variance: squares and sums stay finite."""


@dataclass(frozen=True)
class Posterior:
    """Joint posterior of the latent field at m locations under each of L candidates.

    Values are those the Gaussian process sees (after the belief's transform).

    Args:
        mean: (L, m).
        covariance: (L, m, m); add the noise variance on the diagonal for readings.
    """

    mean: FloatArray
    covariance: FloatArray


class Belief:
    """A mixture of Gaussian processes, one for each candidate λ. [Hoang2014, Eqs. 1-4].

    ``b_D(λ) ∝ p(z_D | λ) b(λ)``. Readings of one place collapse exactly, so cost depends on the
    number |D| of observed places only: O(1) to take a reading in, O(L |D|²) to bring the factors
    up to date when something is asked. Readings may come in any order; the result does not
    depend on it beyond rounding.

    Args:
        covariance: prior covariance between locations under each λ.
        mean: prior mean of the field.
        weights: (L,) prior belief b(λ); None = uniform.
        transform: applied to readings before the Gaussian process sees them; None = the identity or
            a logarithm, as the readings say (see `adapt`), where neither scale nor noise is known
            and the field does not change.
        scale_known: False when the covariance and its noise are known up to a factor only, which
            is then integrated out for each λ (see `scale`); the mean is known or vague.
        noise_known: False when the candidates' noise is a guess, which readings of one place
            correct.
        grid: what the candidates stand for, when they may follow the readings; see `adapt`.
        drift: how readings age; without it they never do, and time has no effect.
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
        """All candidates before any followed the readings: they are the same for any transform."""
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
        """Between values in the sensor's unit and those that the Gaussian process sees."""
        return self._data.transform if self._chooses else self._fixed

    # -- what it is ----------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of locations."""
        return self.covariance.n

    @property
    def hyperparameters(self) -> tuple[HyperParameters, ...]:
        """(L,) the candidates Λ, as the readings so far scale them."""
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
        """(L,) noise variance σ_n² of a reading that has none of its own.

        As computed with: not less than a tiny share of the signal's, see `Factor`.
        """
        data = self._updated
        return data.floored_noise if self.scale_known else data.floored_noise * data.scales

    @property
    def observed(self) -> BoolArray:
        """(n,) places with a reading of a probe (read-only).

        Where the field changes: one that counts still, and is younger than `drift.forget_after`.
        """
        if self._ageing is None or not self._presence.visited.any():
            return self.visited
        lately = self._presence.seen_within(self.drift.forget_after)
        lately &= self._data.counting(self._presence.newest)
        lately.flags.writeable = False
        return lately

    @property
    def visited(self) -> BoolArray:
        """(n,) places that ever had a reading of a probe (a read-only view)."""
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
        """How often jitter had to be added to a covariance (each time also logged)."""
        return self._data.factor.jittered

    @property
    def _updated(self) -> Conditioning:
        """The readings' consequences, up to date."""
        self._data.update()
        return self._data

    def copy(self) -> Belief:
        """Return an independent copy (the covariance is shared; it never changes)."""
        other = copy.copy(self)
        other._presence = self._presence.copy()
        other._data = self._data.copy()
        return other

    def among(
        self, covariance: LocationCovariance, weights: FloatArray, grid: CandidateGrid | None
    ) -> Belief:
        """Return a belief of this configuration, without readings, over other candidates.

        Args:
            covariance: prior covariance under each of L candidates.
            weights: (L,) their prior weights.
            grid: what they stand for, if they may follow the readings.
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
        steepness = self._data.steepness
        found._data.steepness = None if steepness is None else steepness.copy()
        return found

    def place_at(self, points: FloatArray, names: Sequence[str] = ()) -> None:
        """Tell where the places are: a reading may be taken beside its point.

        Args:
            points: (n, 2), or (n, 3) with heights [m].
            names: of the features that length-scales are of, where there are several.
        """
        self._data.steepness = Steepness(points, names)

    def move_to(self, fresh: Belief, *, others: bool = False) -> None:
        """Go on over more places; those there are come first and keep their readings.

        Candidates that follow the readings stay where they are, whatever the larger map suggests.
        O(n); the factors are made again when something is asked.

        Args:
            fresh: of the same configuration over the new places, before its first reading.
            others: it may have other candidates: those with a link, or without.

        Raises:
            ValueError: it has fewer places, or other candidates.
        """
        covariance, prior, grid = fresh.covariance, fresh.prior_weights, fresh.grid
        if self.grid is not None and grid is not None:
            grid = self.grid.on(grid)
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
        steepness = fresh._data.steepness
        self._data.steepness = None if steepness is None else steepness.copy()

    def varies_by(self, location: int, square: float, up: float = 0.0) -> FloatArray:
        """(L,) variance of what the field differs by from a place's point to somewhere near it.

        Args:
            location: the place.
            square: mean square of the distance [m²]; on a map with heights, of that across.
            up: mean square of the difference in height, on such a map [m²].
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
        """Add one reading; O(1), the factors follow when something is asked.

        Args:
            location: place of the reading.
            value: in the sensor's unit.
            noise_variance: variance of this reading's noise; None = σ_n²(λ). While the scale is
                unknown it is added to σ_n²(λ).
            seconds: time of the reading on the clock of `advance`, which advances at least to it.
                A field that does not change ignores it.
            expert: the value is an expert's answer. It conditions the belief like any reading, but
                its place stays unobserved.
            off: distance from the place's point, for a reading with a variance. The variance of
                the field over that distance is added; None = at the point.

        Raises:
            ReadingError: the value is not finite, too large, or outside the transform's domain, or
                the variance is not above 0; nothing has changed then.
            IndexError: there is no such place.
        """
        value, noise_variance = self.check(location, value, noise_variance)
        if not math.isfinite(seconds):
            msg = f"expected the time of a reading in seconds, got {seconds}"
            raise ReadingError("bad_stamp", msg)
        self._observe(location, value, noise_variance, seconds, expert=expert, off=off)

    def observe_placed(self, placed: PlacedReading, *, expert: bool = False) -> None:
        """Add a reading that was checked; see `observe`."""
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
        """Put a reading of a probe in the place of one that was observed.

        Args:
            location: of both.
            before: value, noise variance, `seconds` and `off` that the one that goes was observed
                with; of one that was itself amended, the time of the first.
            value: in the sensor's unit.
            noise_variance: of the new one; None = σ_n²(λ).
            seconds: when it was taken. Where the field changes it counts as taken at the time of
                the one that goes.
            off: of an average over a stay: how far its readings were off the place's point.

        Raises:
            ReadingError, IndexError: as `observe` does; nothing has changed then.
        """
        gone = (*self.check(location, *before[:2]), *before[2:])
        value, noise_variance = self.check(location, value, noise_variance)
        self._amend(location, gone, value, noise_variance, seconds, off)

    def amend_placed(self, before: PlacedReading, placed: PlacedReading) -> None:
        """Put a reading that was checked in the place of one that was observed; see `amend`."""
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
        gone, gone_variance, gone_seconds, gone_off = before
        self._allow(value)
        if not self.scale_known and self._ageing is not None:
            gone_variance = noise_variance = None
        gone_as = (gone, gone_variance, gone_seconds, gone_off)
        self._data.amend(location, gone_as, value, noise_variance, seconds, off)
        self._presence.see(location, seconds, expert=False)

    @property
    def seconds(self) -> float:
        """Now: the latest time the belief has heard of [s]; 0 before it heard of any."""
        return self._presence.now if math.isfinite(self._presence.now) else 0.0

    @property
    def tick(self) -> float:
        """Time within which readings do not age noticeably [s]; inf where they do not age."""
        return math.inf if self._ageing is None else self._ageing.slot

    def advance(self, seconds: float) -> None:
        """Let time pass until `seconds`; O(1), nothing is made again until something is asked.

        Time never goes back: a smaller time than the latest is taken as the latest. Of no
        consequence where the field does not change.

        Raises:
            ValueError: the time is not finite.
        """
        self._presence.advance(seconds)
        self._data.advance(self._presence.now)

    def check(
        self, location: int, value: float, noise_variance: float | None = None
    ) -> tuple[float, float | None]:
        """Return a reading as the Gaussian process sees it; nothing changes.

        Raises:
            ReadingError, IndexError: as `observe` does.
        """
        if not 0 <= location < self.n:
            msg = f"place {location} is not one of the belief's (0 … {self.n - 1})"
            raise IndexError(msg)
        _check_size(value, noise_variance)
        value, noise_variance = self._fixed.forward(value, noise_variance)
        _check_size(value, noise_variance)
        return value, noise_variance

    def seen(self, value: float, variance: float | None) -> tuple[float, float | None] | None:
        """Return a value and its noise variance as the Gaussian process sees them.

        None where it sees a logarithm, which the readings have chosen and the value does not have.
        """
        try:
            return self.transform.forward(value, variance)
        except ReadingError:
            if not self._chooses:
                raise
            return None

    def place(self, reading: Reading) -> PlacedReading:
        """Check a reading of a known place; nothing changes.

        Raises:
            ReadingError, IndexError: as `observe` does.
        """
        assert reading.location is not None
        checked = self.check(reading.location, float(reading.value), reading.noise_variance)
        return PlacedReading(reading, reading.location, *checked)

    def _without_scale(self, value: float, noise_variance: float | None) -> float | None:
        """Prepare for readings of unknown scale: a vague mean is vague about the first reading.

        Return the variance that the reading has of its own: none where the field changes.
        """
        if not self._data.begun and self.mean.basis.shape[1]:
            self._data.centre_mean(value)
        if noise_variance is None or self._ageing is None:
            return noise_variance
        if not self._variance_warned:
            self._variance_warned = True
            logger.warning(
                "readings bring a noise variance of their own, which cannot be used while the "
                "scale of a field that changes is unknown; give belief.signal_std (said once)"
            )
        return None

    def _allow(self, value: float) -> None:
        """Take no logarithm any more where a value has none."""
        transform, self._lowest = self.transform, min(self._lowest, value)
        if self._chooses and isinstance(transform, Log) and value + transform.offset <= 0.0:
            self._left = f"the readings themselves: {value:g} has no logarithm of the one before"
            self._data.see_through(IDENTITY)

    def adapt(self) -> str:
        """Let the candidates follow the readings, where they may; return why, "" if they stay.

        Their length-scales and parts follow, and the transform where it is not given. Costs a
        rebuild of the factors, O(L |D|³), when it changes something, which is seldom.
        """
        if not self._data.begun:
            return ""
        return "; ".join(why for why in (self._adapt_grid(), self._choose()) if why)

    def _choose(self) -> str:
        r"""Take the identity or a logarithm, whichever the readings' evidence is for.

        Of :math:`y = \log(z + c)` the density of the readings is that of y times
        :math:`\prod_i 1 / (z_i + c)`. c is 0, where all are above 0, or so large that the least
        reading lies one or three of their standard deviations above the bound, which is below 0.
        Where some readings are not above 0 nothing says where a bound would be: the identity.
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
        what = "the readings themselves"
        if isinstance(best, Log):
            what = f"the logarithm of the readings{f' {best.offset:+.4g}' if best.offset else ''}"
        return f"{what}: {found[best] - found[now]:.1f} nat more probable"

    def _evidence_of(self, transform: Transform) -> float:
        """Return the log-evidence of all candidates together, under a transform.

        The candidates are those before the first reading: others have followed the readings as
        seen through the present transform.
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
        grid, why = self.grid.adapted(self.weights, int(np.count_nonzero(self.visited)))
        if not why:
            return ""
        covariance, prior = grid.build()
        self.grid = grid
        self.covariance = covariance
        self.prior_weights = prior / prior.sum()
        self._data.begin(covariance)
        return why

    # -- what it says --------------------------------------------------------------------------

    @property
    def log_evidence(self) -> FloatArray:
        """(L,) ``log p(z_D | λ)`` of all readings."""
        return np.array(self._updated.log_evidence)

    @property
    def information(self) -> FloatArray:
        """(L,) ``½ log |I + N⁻¹ K|``: what the readings tell about the field under λ [nat]."""
        return np.array(self._updated.information)

    @property
    def weights(self) -> FloatArray:
        """(L,) ``b_D(λ)``; sums to one. [Hoang2014, Eq. 3]."""
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.prior_weights) + self._updated.log_evidence
        weights = np.exp(log_weights - log_weights.max())
        return np.asarray(weights / weights.sum())

    def with_mean_within(self, most: float) -> Belief:
        r"""Return this belief with an unknown mean that is not quite as vague.

        Use this before summing products of covariances: while the mean is unknown its variance,
        10¹² times the field's, leaves nothing of them but rounding. Where it is more than `most`
        times that of a reading, r, averaged over the places, the coefficients get the prior
        precision :math:`I + G / (m r)` with :math:`G = H^T H / n`, so that every part of the mean
        has about that variance. Once the readings determine the mean this belief itself is
        returned. The other one shares the data of this one: do not add readings to it.

        Args:
            most: m, variance of the mean in those of a reading.
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
        found._data = data.with_coefficients(np.linalg.inv(precision))
        return found

    def joint(self, locations: IntArray, which: IntArray | None = None) -> Posterior:
        """Return the joint posterior of the latent field at `locations` under each λ.

        O(L |D|² m). [Hoang2014, Eqs. 1-2, with the mean's coefficients integrated out]

        Args:
            locations: (m,) places.
            which: numbers of the candidates, ascending; None = all.
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
        """Return the (L, m, n) posterior covariance of `locations` with every place under each λ.

        O(L |D| m n): with a few places it costs no more than the marginals everywhere.
        """
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
        """Return the (W, r, c) posterior covariance under the candidates `which` (W,), ascending.

        O(W |D| r c).
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
        """Return mean and variance (W, m) of the field under candidates `which` (W,), ascending."""
        locations = np.asarray(locations, dtype=np.int64)
        return self._updated.moments(locations, which, *self._weights_of(locations, which))

    def _weights_of(self, where: IntArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return ``W`` (W, R, m) and ``H* - Wᵀ U`` (W, m, q) under some of the candidates."""
        data = self._updated
        if self.n <= _LARGE and data.chunks() is None:
            solved = data.everywhere()[
                which[:, None, None], np.arange(data.factor.rows)[:, None], where
            ]
        else:
            solved = data.solved(where, which)
        return solved, data.basis[where] - np.swapaxes(solved, 1, 2) @ data.factor.U[which]

    def roots(self, locations: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return what the posterior covariance is made of: ``C_λ = s_λ k_λ - WᵀW + BᵀB``.

        Use this for a few entries or columns at many places, repeatedly: they cost O(L |D|) each,
        and the matrix is never formed.

        Args:
            locations: (m,) places.

        Returns:
            ``s`` (L,), the factor of `covariance`; ``W`` (L, R, m), what the readings tell; ``B``
            (L, q, m), what the unknown mean adds; and the mean (L, m).
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
        """Return mean and variance (L, m) of the latent field under each λ."""
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
        # Rounding may leave a variance a hair below zero where the noise is tiny.
        return mean, self._data.scales[:, None] * np.maximum(variance, 0.0)

    def averages(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) average reading of observed places, as the Gaussian process sees it.

        Weighted by precision; it depends on λ only where readings with and without a variance of
        their own come together. Where the field changes: with their present weights; under
        the forgetting kernel, of the latest ones.

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
        """Return the (L, m) noise variance of `averages`, as the Gaussian process sees it.

        Raises:
            ValueError: a place has no reading.
        """
        averages = self.averages(locations)  # says which place has none
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
            noisy: of a new reading instead of the noise-free field.
        """
        found = self.mixture(locations)
        return (found.noisier(self.noise_of()) if noisy else found).moments()

    def mixture(self, locations: IntArray | None = None) -> Mixture:
        """Return what is believed of the noise-free field at each of m places, None = all.

        No variance is less than what the sensor's resolution leaves, see `Resolution`. On a map of
        more than 2,000 places the least probable candidates, with 1e-6 of the belief together, have
        no weight, and what they predict is not computed.
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

        At a place it equals `predict`. Of any number of positions in bounded memory.

        Args:
            positions: (m, 2), or (m, 3) on a map with heights [m].
            within: (m,) place that each is a part of, such as a road segment; None = places are
                points.

        Raises:
            ValueError: positions of another shape or not finite, or a belief without a map
                (`place_at`).
        """
        moments = [found.moments() for _, found in self.mixtures_at(positions, within)]
        mean, variance = zip(*moments, strict=True) if moments else ((np.zeros(0),), (np.zeros(0),))
        return np.concatenate(mean), np.concatenate(variance)

    def mixtures_at(
        self, positions: FloatArray, within: IntArray | None = None
    ) -> Iterator[tuple[slice, Mixture]]:
        """Yield what is believed at blocks of positions; see `predict_at`."""
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
        """Return the probability (n,) that the noise-free field lies between two values.

        Where the scale is unknown each candidate's is a Student distribution, whose tails are
        wider than those of `mixture` while readings are few.

        The values are in the sensor's unit; infinite = no limit.
        """
        mean, variance = self.marginals()
        data, weights = self._updated, self.weights
        if (least := data.floor(mean)) is not None:
            variance = np.maximum(variance, least)
        freedom = data.freedom
        if math.isfinite(freedom):  # variances are those of the expected scale, see `scale_factors`
            variance = variance * (max(freedom - _FREEDOM, 1.0) / freedom)
        deviation = np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny))

        def below(value: float) -> FloatArray:
            with np.errstate(over="ignore"):
                z = (self.transform.seen(np.array([value])) - mean) / deviation
            return np.asarray(weights @ (stdtr(freedom, z) if math.isfinite(freedom) else ndtr(z)))

        return np.asarray(np.clip(below(high) - below(low), 0.0, 1.0))

    def noise_of(self, own: FloatArray | None = None) -> FloatArray:
        """Return the variance (L, m) of the noise of new readings, (L, 1) where it is all the same.

        Args:
            own: (m,) noise variance that each brings, as the Gaussian process sees it; None = none.
        """
        noise = self.noise_variance[:, None]
        if own is None or not (self.scale_known or self._ageing is None):
            return noise
        return np.tile(own, (len(noise), 1)) if self.scale_known else noise + own

    @property
    def settled(self) -> bool:
        """The belief's variances exist: an unknown scale needs three readings more than the mean.

        See `scale`; before that they are of the right order at best.
        """
        return self._updated.freedom > _FREEDOM

    def scale_factors(self, count: int) -> FloatArray:
        """Return `count` equally probable factors of all variances here, which `Q / c ~ χ²` gives.

        One where it is known, none where nothing is known of it.
        """
        freedom = self._updated.freedom
        if math.isinf(freedom):
            return np.ones(1)
        if freedom < 1.0:
            return np.ones(0)
        below = chdtri(freedom, (np.arange(count) + 0.5) / count)
        return np.asarray(max(freedom - _FREEDOM, 1.0) / below)

    def promise(self, weights: FloatArray, found: Mixture | None = None) -> Promise | None:
        """Return what it promises of the error of its map; None while it is not `settled`.

        The `weights` (n,) are `Topology.weights`; `found` is its mixture where that is known.
        """
        if not self.settled:
            return None
        return promise_of(self.mixture() if found is None else found, weights)

    def floor(self, weights: FloatArray) -> Floor | None:
        """Return what no readings of as many places could promise less than; see `promise`.

        None where that is not worked out: on more than `MOST_PLACES` places, where the field
        changes or is seen through a logarithm, and while there is no promise.
        """
        if self.n > MOST_PLACES or self._ageing is not None or self.transform is not IDENTITY:
            return None
        return floor_of(self._updated, self.weights, weights) if self.settled else None

    def leave_one_out(self) -> LeaveOneOut | None:
        """Return the predictions of each place with a reading from all other places' readings.

        They use the present candidates, without conditioning anything again: O(L |D|³), once. None
        before the first reading, and where readings age.
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
        """Return means (L, m), ``W = C⁻¹ K_D*`` (L, R, m) and ``H* - Wᵀ U`` (L, m, q).

        Under the candidates `which` (W,) only, where these are given; W, where it is known.
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
