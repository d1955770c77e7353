"""Myopic policies: maximum entropy, implicit exploration, a-priori greedy design."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.base import Choices, PolicyState, choices, no_plan
from gp_active_sensing.planning.entropy import (
    gaussian_entropy,
    mixture_entropy,
    reference_entropy,
)
from gp_active_sensing.planning.pending import marginals_given_pending
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import (
    Budget,
    CandidateValue,
    Clock,
    FloatArray,
    IntArray,
    Plan,
    PlanLimit,
)

__all__ = ["Apgd", "ImplicitExploration", "MaxEntropy"]


Score = Callable[[Belief, IntArray, Collection[int]], FloatArray]


def _best(
    score: Score,
    belief: Belief,
    topology: Topology,
    at: int | None,
    pending: Collection[int],
    unavailable: Collection[int],
    remaining: Budget,
    clock: Clock,
) -> Plan:
    """Return the plan that goes to the candidate with the largest score (ties: first)."""
    started = clock()
    options: Choices = choices(belief, topology, at, pending, unavailable, remaining)
    if options.reason:
        return no_plan(options.reason)
    values = score(belief, options.locations, pending)
    best = int(np.argmax(values))
    return options.plan_for(
        best,
        lower=float(values[best]),
        upper=float(values[best]),
        expanded=1,
        seconds=clock() - started,
        deadline_hit=False,
        candidates=tuple(
            CandidateValue(int(x), float(v), float(v))
            for x, v in zip(options.locations, values, strict=True)
        ),
    )


def _mixture(belief: Belief, locations: IntArray, pending: Collection[int]) -> FloatArray:
    mean, variance = marginals_given_pending(belief, locations, pending)
    weights = belief.weights
    noisy = variance + belief.noise_variance[:, None]
    reference = float(weights @ reference_entropy(belief.noise_variance))
    every = np.broadcast_to(weights, (len(locations), len(weights)))
    return mixture_entropy(every, mean.T, noisy.T) - reference


def _expected(
    belief: Belief, weights: FloatArray, locations: IntArray, pending: Collection[int]
) -> FloatArray:
    _, variance = marginals_given_pending(belief, locations, pending)
    noise = belief.noise_variance
    entropy = gaussian_entropy(variance + noise[:, None]) - reference_entropy(noise)[:, None]
    return np.asarray(weights @ entropy)


@dataclass(frozen=True)
class MaxEntropy:
    """Largest entropy of the predictive mixture, ``argmax_x H[Z_x | z_D]``: bal with N' = 1.

    [Hoang2014, Eq. 6 at the last stage]
    """

    def plan(
        self,
        belief: Belief,
        topology: Topology,
        at: int | None,
        *,
        pending: Collection[int] = (),
        limit: PlanLimit = PlanLimit(),
        rng: np.random.Generator,
        state: PolicyState = None,
        remaining: Budget = Budget(),
        unavailable: Collection[int] = (),
        clock: Clock = time.monotonic,
    ) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`."""
        plan = _best(_mixture, belief, topology, at, pending, unavailable, remaining, clock)
        return plan, state


@dataclass(frozen=True)
class ImplicitExploration:
    """Largest expected entropy, ``argmax_x Σ_λ b_D(λ) H[Z_x | z_D, λ]``. [Krause2007, IE].

    This is the exploring phase; the belief b_D is updated by every reading.
    """

    def plan(
        self,
        belief: Belief,
        topology: Topology,
        at: int | None,
        *,
        pending: Collection[int] = (),
        limit: PlanLimit = PlanLimit(),
        rng: np.random.Generator,
        state: PolicyState = None,
        remaining: Budget = Budget(),
        unavailable: Collection[int] = (),
        clock: Clock = time.monotonic,
    ) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`."""
        weights = belief.weights

        def score(b: Belief, where: IntArray, other: Collection[int]) -> FloatArray:
            return _expected(b, weights, where, other)

        plan = _best(score, belief, topology, at, pending, unavailable, remaining, clock)
        return plan, state


@dataclass(frozen=True)
class Apgd:
    """A-priori greedy design: as `ie`, with the belief frozen before the first reading.

    ``argmax_x Σ_λ b_0(λ) H[Z_{S∪{x}} | z_D0, λ]``; under a topology the arg-max over the
    candidates. [Shewry1987; Hoang2014, Sec. 4.1]
    """

    def plan(
        self,
        belief: Belief,
        topology: Topology,
        at: int | None,
        *,
        pending: Collection[int] = (),
        limit: PlanLimit = PlanLimit(),
        rng: np.random.Generator,
        state: PolicyState = None,
        remaining: Budget = Budget(),
        unavailable: Collection[int] = (),
        clock: Clock = time.monotonic,
    ) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`. The state is b_0."""
        frozen: list[float] = belief.weights.tolist() if state is None else list(state)
        weights = np.array(frozen)

        def score(b: Belief, where: IntArray, other: Collection[int]) -> FloatArray:
            return _expected(b, weights, where, other)

        plan = _best(score, belief, topology, at, pending, unavailable, remaining, clock)
        return plan, frozen
