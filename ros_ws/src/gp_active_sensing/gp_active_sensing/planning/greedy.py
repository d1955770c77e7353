"""Policies that look one reading ahead, such as max_entropy, mutual_information and random."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.grid import SLOPE
from gp_active_sensing.belief.prior import length_scales_of
from gp_active_sensing.planning.base import PolicyState, candidates, no_plan
from gp_active_sensing.planning.beliefs import marginals_given_pending, unread
from gp_active_sensing.planning.entropy import (
    information,
    mixture_entropy,
    noise_entropy,
    reported_offset,
)
from gp_active_sensing.planning.explain import called
from gp_active_sensing.planning.map_error import map_error_gains, map_error_of
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.types import FloatArray, IntArray, Plan
from gp_active_sensing.util.ties import NAT, first_best

_NEGLIGIBLE = 1e-9
"""Weight below which a hyperparameter candidate λ is ignored in averages."""
_FLOOR = 1e-9
"""Lower limit of the noise variance in a matrix inverse, as a fraction of the prior variance."""
_BATCH = 8.0
"""Ratio of the time per operation of many small matrix inverses to that of one large inverse."""
_NUMBERS = 2_000_000
"""Largest number of entries of a temporary array."""
_MANY = 10_000
"""Largest number of places whose correlations are computed for every hyperparameter candidate."""


def freeze(belief: Belief, weights: FloatArray) -> dict[str, Any]:
    """Return a policy state that contains `weights` (L,).

    If the hyperparameter candidates may change, the state also contains the candidates.
    """
    frozen: dict[str, Any] = {"weights": weights.tolist()}
    if belief.grid is not None:
        frozen["candidates"] = _candidates(belief).tolist()
        if (slopes := _slopes(belief)).any():
            frozen["slopes"] = slopes.tolist()
        if any(kernels := _kernels(belief)):
            frozen["kernels"] = kernels
    return frozen


def thaw(frozen: dict[str, Any], belief: Belief) -> FloatArray:
    """Return the weights (L,) from `freeze`, assigned to the present candidates of a belief.

    If the candidates have changed, each weight moves to the nearest present candidate of the same
    kernel. Candidates are compared by the logarithms of length-scales, signal and noise, and by the
    slopes of the amplitude.
    """
    weights = np.array(frozen["weights"])
    if "candidates" not in frozen:
        return weights
    kept = np.array(frozen.get("slopes", np.zeros((len(weights), 0))))
    slopes = _slopes(belief, kept.shape[1])
    if not kept.size:
        kept = np.zeros((len(weights), slopes.shape[1]))
    then = np.hstack([np.log(frozen["candidates"]), kept])
    now = np.hstack([np.log(_candidates(belief)), slopes])
    if np.array_equal(then, now):
        return weights
    apart = np.square(then[:, None] - now[None]).sum(axis=2)
    if "kernels" in frozen:
        apart[np.array(frozen["kernels"])[:, None] != np.array(_kernels(belief))] = np.inf
    moved = np.bincount(apart.argmin(axis=1), weights=weights, minlength=len(now))
    return np.asarray(moved, dtype=np.float64)


def _candidates(belief: Belief) -> FloatArray:
    """Return the candidates' parameters (L, …), not multiplied by the field's estimated scale."""
    candidates = belief.covariance.hyperparameters
    rest = np.array([[h.signal_std, h.noise_std] for h in candidates])
    columns = [length_scales_of(candidates), rest]
    attributes = any(h.attribute_std for h in candidates)
    if attributes or any(h.place_std for h in candidates):
        columns.append(np.array([[h.variance] for h in candidates]))
    if attributes:
        columns.append(np.array([[h.variance + h.attribute_std**2] for h in candidates]))
    return np.hstack(columns)


def _slopes(belief: Belief, width: int = 0) -> FloatArray:
    """Return the (L, p) slopes of the amplitude, in units of `SLOPE`; p is at least `width`."""
    candidates = belief.covariance.hyperparameters
    width = max(width, *(len(h.amplitude_slopes) for h in candidates))
    return np.array([h.amplitude_slopes or (0.0,) * width for h in candidates]) / SLOPE


def _kernels(belief: Belief) -> list[str]:
    return [h.kernel for h in belief.covariance.hyperparameters]


class Greedy(ABC):
    """Base class of policies that choose the candidate place with the largest score.

    A new policy overrides `scores`. A policy with a state also overrides `frozen`.
    """

    several: ClassVar[bool] = False
    """True if the score is a weighted sum over all quantities."""

    @abstractmethod
    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the scores (m,) of `locations`. Differences up to `util.ties.NAT` are ties."""

    def frozen(self, belief: Belief, state: PolicyState) -> PolicyState:
        """Return the state that `scores` gets and that is stored; by default, `state` itself."""
        return state

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`."""
        belief = request.belief
        started = request.clock()
        state = self.frozen(belief, state)
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        values = self.scores(belief, options.locations, request.pending, state)
        if self.several and request.others:
            values = request.weight * values
            for q in request.others:
                one = self.scores(q.belief, options.locations, request.pending, state)
                values += q.weight * (one - reported_offset(q.belief.noise_variance, 1))
        best = int(first_best(values, floor=NAT))
        return options.valued_plan(best, values, seconds=request.clock() - started), state


def expected_entropy(
    belief: Belief, weights: FloatArray, locations: IntArray, pending: Collection[int]
) -> FloatArray:
    """Return the entropy ``Σ_λ b(λ) H[Z_x | λ]`` at each place x (m,), for weights b (L,) [nat]."""
    _, variance = marginals_given_pending(belief, locations, pending)
    noise = belief.noise_variance
    return np.asarray(weights @ information(variance, noise) + reported_offset(noise, 1))


@dataclass(frozen=True)
class MaxEntropy(Greedy):
    """Policy that chooses the place with the most uncertain reading, ``argmax_x H[Z_x | z_D]``.

    For several quantities, the score is a weighted sum over the quantities. For one quantity,
    policy bal with horizon 1 makes the same choice. [Hoang2014, Eq. 6 at the last stage]
    """

    unit = "nat"
    several: ClassVar[bool] = True

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the entropies ``H[Z_x | z_D]`` [nat]."""
        mean, variance = marginals_given_pending(belief, locations, pending)
        weights, noise = belief.weights, belief.noise_variance
        entropy = mixture_entropy(weights, mean.T, variance.T + noise)
        return entropy - float(weights @ noise_entropy(noise)) + reported_offset(noise, 1)


@dataclass(frozen=True)
class Apgd(Greedy):
    """Policy that plans with the belief of the first decision only (a-priori greedy design).

    The policy chooses ``argmax_x Σ_λ b_0(λ) H[Z_{S∪{x}} | z_D0, λ]``. z_D0 are the readings before
    the first decision, and S are the places visited since then. The state of the policy stores
    b_0(λ), the weights at the first decision. [Shewry1987; Hoang2014, Sec. 4.1]
    """

    unit = "nat"

    def frozen(self, belief: Belief, state: PolicyState) -> PolicyState:
        """Return the state with the weights at the first decision."""
        return freeze(belief, belief.weights) if state is None else state

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the expected entropies under the weights at the first decision [nat]."""
        return expected_entropy(belief, thaw(state, belief), locations, pending)


@dataclass(frozen=True)
class MutualInformation(Greedy):
    r"""Policy that chooses the reading with the most information about the unobserved places.

    .. math:: \arg\max_x \sum_\lambda b(\lambda) \big( H[Z_x | z_D, \lambda]
        - H[Z_x | Z_{X \setminus (D \cup x)}, \lambda] \big)

    The first term alone (`ie`) prefers the edge of the map. The second term is the
    uncertainty after readings at all other unobserved places. The score ignores information about
    the hyperparameters λ, and may be negative. On a large map, the second term uses only the
    `neighbourhood` places that are most correlated with x. The score is then a lower bound.
    [Krause2008]
    """

    unit = "nat"
    neighbourhood: ClassVar[int | None] = 64
    """Number of unobserved places in the second term of the score; None = all places."""
    REMOVED: ClassVar[Mapping[str, str]] = {
        "neighbourhood": "is removed; the 64 most correlated places count, on a small map all"
    }
    WERE: ClassVar[Mapping[str, Any]] = {"neighbourhood": 64}

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the score of each place (m,) [nat]."""
        prior = _ReadingVariances(belief)
        left = ~belief.observed
        left[list(pending)] = False
        others, k = np.flatnonzero(left), self.neighbourhood
        if k is not None and len(others) > _MANY:  # the most probable λ selects places
            likeliest = belief.covariance.only([int(first_best(belief.weights))])
            apart = -np.abs(likeliest.between(locations, others)[0]).max(axis=0)
            others = np.union1d(others[np.argpartition(apart, _MANY)[:_MANY]], locations)
        n = len(others)
        if k is None or n - 1 <= k or n**3 <= _BATCH * len(locations) * k**3:
            given_rest = prior.given_all(others)[:, np.searchsorted(others, locations)]
        else:
            given_rest = prior.given_nearest(locations, others, k)
        _, variance = marginals_given_pending(belief, locations, pending)
        predictive = variance[prior.live] + prior.noise
        return np.asarray(prior.weights @ (0.5 * np.log(predictive / given_rest)))


class _ReadingVariances:
    """Variances of a reading under the prior, given readings at other places."""

    def __init__(self, belief: Belief) -> None:
        weights = belief.weights
        self.live = np.flatnonzero(weights > _NEGLIGIBLE)
        self.weights = weights[self.live] / weights[self.live].sum()
        self._covariance = belief.covariance
        self._basis = belief.mean.basis * belief.mean.std
        # If the scale of the field is unknown, the factor is an estimate of the scale.
        signal = np.array([h.signal_std for h in belief.hyperparameters])
        unscaled = np.array([h.signal_std for h in belief.covariance.hyperparameters])
        self._factor = np.square(signal / unscaled)[self.live, None, None]
        variance = self._latent_variance(np.arange(0, belief.n, 1 + belief.n // _MANY))
        floor = _FLOOR * variance.max(axis=1)
        self.noise = np.maximum(belief.noise_variance[self.live], floor)[:, None]

    def _latent_variance(self, where: IntArray) -> FloatArray:
        variance = self._covariance.variance(where)[self.live] + (self._basis[where] ** 2).sum(1)
        return np.asarray(self._factor[:, :, 0] * variance)

    def _between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L', r, c) prior covariance, including the uncertainty of the mean."""
        latent = self._covariance.between(rows, columns)[self.live]
        return np.asarray(self._factor * (latent + self._basis[rows] @ self._basis[columns].T))

    def given_all(self, others: IntArray) -> FloatArray:
        """Return the (L', n) variances ``1 / (Σ⁻¹)_xx`` of a reading given all other places."""
        n = len(others)
        variance = np.empty((len(self.live), n))
        for row, covariance in enumerate(self._between(others, others)):
            noise = float(self.noise[row, 0])
            covariance[np.arange(n), np.arange(n)] += noise
            inverse = np.linalg.inv(covariance)
            variance[row] = 1.0 / np.maximum(np.diagonal(inverse), 1e-300)
        return self._bracketed(variance, others)

    def given_nearest(self, locations: IntArray, others: IntArray, k: int) -> FloatArray:
        """Return the (L', A) variances of a reading given the k most correlated `others`."""
        variance = np.empty((len(self.live), len(locations)))
        step = max(1, _NUMBERS // (len(self.live) * max(k * k, len(others))))
        for start in range(0, len(locations), step):
            part = locations[start : start + step]
            latent = self._covariance.between(part, others)[self.live]
            # The prior variance of a place may be zero.
            scale = np.maximum(self._covariance.variance(others)[self.live], 1e-300)
            score = np.tensordot(self.weights, np.abs(latent) / np.sqrt(scale)[:, None], 1)
            score[others[None, :] == part[:, None]] = -1.0
            # After rounding, a small slope makes the first of several tied places the best.
            score = np.round(score / max(float(score.max()), 1e-300), 9)
            score -= 0.5e-9 / len(others) * np.arange(len(others))
            near = others[np.argpartition(-score, k - 1, axis=1)[:, :k]]
            for row, (x, places) in enumerate(zip(part, near, strict=True)):
                block = self._between(places, places)
                block[:, np.arange(k), np.arange(k)] += self.noise
                cross = self._between(np.array([x]), places)
                solved = np.linalg.solve(block, np.swapaxes(cross, 1, 2))
                explained = (cross @ solved)[:, 0, 0]
                prior = self._latent_variance(np.array([x]))[:, 0] + self.noise[:, 0]
                variance[:, start + row] = prior - explained
        return self._bracketed(variance, locations)

    def _bracketed(self, variance: FloatArray, where: IntArray) -> FloatArray:
        """Clip variances between the noise variance and the prior variance of a reading."""
        return np.clip(variance, self.noise, self._latent_variance(where) + self.noise)


@dataclass(frozen=True)
class IntegratedVariance:
    r"""Policy that chooses the reading which most reduces the mean variance of the map.

    .. math:: \arg\max_x \sum_\lambda b(\lambda)
        \frac{\sum_p w_p \operatorname{Cov}_\lambda(f_p, f_x | z_D)^2}
             {\operatorname{Var}_\lambda(Z_x | z_D)}

    The weights w_p of the places come from the map (`map.weights`) and are equal by default. The
    unit of the score is the square of the unit of the readings. The score ignores information about
    the hyperparameters λ. For several quantities, the score is the reduction of the weighted mean
    of their relative variances. [Cohn1996; Sacks1989]
    """

    several: ClassVar[bool] = True
    REMOVED: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("horizon", "beam"),
        "is removed; take policy tour for a whole route, or bal for some readings ahead",
    )
    candidates: ClassVar[int] = 8
    """Largest number of hyperparameter candidates that are used; see `representatives`."""

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`."""
        belief, topology, pending = request.belief, request.topology, request.pending
        started = request.clock()
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        common: dict[str, Any] = {
            "candidates": self.candidates,
            "others": request.others,
            "weight": request.weight,
        }
        if any(unread(each, pending).size for each in request.beliefs):
            field = map_error_of(belief, topology, options.locations, pending=pending, **common)
            weights, gains = field.weights, field.gains()
        else:
            weights, gains = map_error_gains(belief, topology, options.locations, **common)
        values = weights @ gains
        seconds = request.clock() - started
        return options.valued_plan(int(first_best(values)), values, seconds=seconds), state


@dataclass(frozen=True)
class RandomChoice:
    """Random choice among the candidate places with equal probabilities."""

    @staticmethod
    def explain(plan: Plan, names: Sequence[str]) -> str:
        """Return a sentence about the choice; see `ExplainingPolicy`."""
        return f"Chosen at random: {called(names[plan.waypoints[0]])}."

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`."""
        started = request.clock()
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        index = int(request.rng.integers(options.locations.size))
        return options.plan_for(index, seconds=request.clock() - started), state
