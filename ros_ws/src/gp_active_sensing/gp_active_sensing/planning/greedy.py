"""Myopic policies: their base class, maximum entropy, and a-priori greedy design."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import length_scales_of
from gp_active_sensing.planning.base import PlanRequest, PolicyState, candidates, no_plan
from gp_active_sensing.planning.entropy import (
    gaussian_entropy,
    mixture_entropy,
    noise_entropy,
    reported_offset,
)
from gp_active_sensing.planning.pending import marginals_given_pending
from gp_active_sensing.types import CandidateValue, FloatArray, IntArray, Plan
from gp_active_sensing.util.ties import NAT, first_best

__all__ = ["Apgd", "Greedy", "MaxEntropy", "expected_entropy", "freeze", "thaw"]


def freeze(belief: Belief, weights: FloatArray) -> dict[str, Any]:
    """Return ``{"weights": …}`` to keep, with the candidates they belong to where these may change.

    Args:
        belief: whose candidates the weights are of.
        weights: (L,).
    """
    frozen: dict[str, Any] = {"weights": weights.tolist()}
    if belief.grid is not None:
        frozen["candidates"] = _candidates(belief).tolist()
        if any(kernels := _kernels(belief)):
            frozen["kernels"] = kernels
    return frozen


def thaw(frozen: dict[str, Any], belief: Belief) -> FloatArray:
    """Return the kept weights (L,) over the candidates of today.

    Where the candidates have followed the readings since, the mass of each goes to the nearest of
    those of its kernel that there are now, by the logarithms of length-scales, signal and noise.
    """
    weights = np.array(frozen["weights"])
    if "candidates" not in frozen:
        return weights
    then, now = np.log(frozen["candidates"]), np.log(_candidates(belief))
    if then.shape == now.shape and np.array_equal(then, now):
        return weights
    apart = np.square(then[:, None] - now[None]).sum(axis=2)
    if "kernels" in frozen:
        apart[np.array(frozen["kernels"])[:, None] != np.array(_kernels(belief))] = np.inf
    nearest = apart.argmin(axis=1)
    moved = np.bincount(nearest, weights=weights, minlength=len(now))
    return np.asarray(moved, dtype=np.float64)


def _candidates(belief: Belief) -> FloatArray:
    """(L, p + 3) length-scales, signal, noise and variance, before any common scale.

    Without the last one where places have nothing of their own: it is then the signal's. With
    another where attributes count: that of the field and what they explain.
    """
    candidates = belief.covariance.hyperparameters
    scales = length_scales_of(candidates)
    rest = [[h.signal_std, h.noise_std] for h in candidates]
    columns = [scales, np.array(rest)]
    attributes = any(h.attribute_std for h in candidates)
    if attributes or any(h.place_std for h in candidates):
        columns.append(np.array([[h.variance] for h in candidates]))
    if attributes:
        columns.append(np.array([[h.variance + h.attribute_std**2] for h in candidates]))
    return np.hstack(columns)


def _kernels(belief: Belief) -> list[str]:
    return [h.kernel for h in belief.covariance.hyperparameters]


class Greedy(ABC):
    """A policy that goes to the candidate with the largest score now (see `first_best`).

    A new one overrides `scores`, and `frozen` when it keeps something from the first stage.
    """

    @abstractmethod
    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the (m,) value of reading each of `locations` next.

        In any unit, the larger the better. Values within `util.ties.NAT` count as equal.
        """

    def frozen(self, belief: Belief, state: PolicyState) -> PolicyState:
        """Return the state to score with and to hand on; by default whatever it was."""
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
        best = int(first_best(values, floor=NAT))
        plan = options.plan_for(
            best,
            lower=float(values[best]),
            upper=float(values[best]),
            expanded=1,
            seconds=request.clock() - started,
            deadline_hit=False,
            candidates=tuple(
                CandidateValue(int(x), float(v), float(v))
                for x, v in zip(options.locations, values, strict=True)
            ),
        )
        return plan, state


def expected_entropy(
    belief: Belief, weights: FloatArray, locations: IntArray, pending: Collection[int]
) -> FloatArray:
    """Return ``Σ_λ b(λ) H[Z_x | λ]`` of `locations` (m,) for some belief b (L,) [nat]."""
    _, variance = marginals_given_pending(belief, locations, pending)
    noise = belief.noise_variance
    information = gaussian_entropy(variance + noise[:, None]) - noise_entropy(noise)[:, None]
    return np.asarray(weights @ information + reported_offset(noise, 1))


@dataclass(frozen=True)
class MaxEntropy(Greedy):
    """Largest entropy of the predictive mixture, ``argmax_x H[Z_x | z_D]``: bal with N' = 1.

    [Hoang2014, Eq. 6 at the last stage]
    """

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return ``H[Z_x | z_D]``."""
        mean, variance = marginals_given_pending(belief, locations, pending)
        weights, noise = belief.weights, belief.noise_variance
        entropy = mixture_entropy(weights, mean.T, variance.T + noise)
        return entropy - float(weights @ noise_entropy(noise)) + reported_offset(noise, 1)


@dataclass(frozen=True)
class Apgd(Greedy):
    """A-priori greedy design: as `ie`, with the belief frozen before the first reading.

    ``argmax_x Σ_λ b_0(λ) H[Z_{S∪{x}} | z_D0, λ]``; under a topology the arg-max over the
    candidates. The state is b_0. [Shewry1987; Hoang2014, Sec. 4.1]
    """

    def frozen(self, belief: Belief, state: PolicyState) -> PolicyState:
        """Return b_0, JSON-serialisable."""
        return freeze(belief, belief.weights) if state is None else state

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the expected entropy under the frozen belief."""
        return expected_entropy(belief, thaw(state, belief), locations, pending)
