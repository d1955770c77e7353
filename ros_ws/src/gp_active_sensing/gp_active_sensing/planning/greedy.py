"""Myopic policies: what they share, maximum entropy, a-priori greedy design."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.base import PlanRequest, PolicyState, candidates, no_plan
from gp_active_sensing.planning.entropy import (
    gaussian_entropy,
    mixture_entropy,
    noise_entropy,
    reported_offset,
)
from gp_active_sensing.planning.frozen import freeze, thaw
from gp_active_sensing.planning.pending import marginals_given_pending
from gp_active_sensing.types import (
    CandidateValue,
    FloatArray,
    IntArray,
    Plan,
)
from gp_active_sensing.util.ties import NAT, first_best

__all__ = ["Apgd", "Greedy", "MaxEntropy", "expected_entropy"]


class Greedy(ABC):
    """A policy that goes to the candidate with the largest score now (see `first_best`).

    A new one overrides `scores`, and `frozen` when it keeps something from the first stage.
    """

    @abstractmethod
    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the (m,) value of reading each of `locations` next [nat]."""

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
