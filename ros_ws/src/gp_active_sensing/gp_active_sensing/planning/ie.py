"""Implicit exploration: greedy choices under the present belief, later under a frozen one."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.base import Candidates, PolicyState, candidates, no_plan
from gp_active_sensing.planning.beliefs import joint_given_pending
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.entropy import discrete_entropy, information, sum_of_largest
from gp_active_sensing.planning.greedy import Greedy, expected_entropy, freeze, thaw
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.types import FloatArray, IntArray, Plan
from gp_active_sensing.util.ties import NAT, first_best

logger = logging.getLogger(__name__)

_PAUSE = 8
"""Divisor k: the bound is computed again after 1/k of the remaining readings."""
_LARGEST = 2_000_000
"""Number of covariance entries up to which `advantage_over_apgd` computes the bound."""


class _TimeIsUpError(Exception):
    """Signal that the decision's time is over before the bound is known."""


@dataclass(frozen=True)
class ImplicitExploration(Greedy):
    r"""Policy that chooses the largest expected entropy, and later continues as `apgd`.

    The policy chooses ``argmax_x Σ_λ b_D(λ) H[Z_x | z_D, λ]``. At first, every reading updates the
    weights b_D of the hyperparameter candidates λ. The function `advantage_over_apgd` bounds the
    gain of any policy over `apgd`. Once this bound is at most `switch`, the weights are frozen.
    [Krause2007, IE]

    The bound is first computed when the entropy of the weights is at most `switch`. It is computed
    again each time an eighth of the remaining readings has been used. Without a limit on readings,
    the policy never switches. On a map with moves, the bound is loose until few readings remain.
    The policy does not switch while many places are reachable (about 500 for 7 candidates), because
    the bound takes too long.
    """

    unit = "nat"
    switch: float | None = param(
        0.5,
        help="if the remaining readings cannot gain more than this over apgd, the policy continues "
        "as apgd. null = never",
        unit="nat",
        low=0.0,
    )
    look_ahead: ClassVar[int] = 40
    """Number of readings for which `apgd` is simulated to compute the bound."""

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`.

        The state is None, the frozen weights, or ``{"again": k}``. In the last case, the bound is
        computed again when k readings remain.
        """
        belief, limit, clock = request.belief, request.limit, request.clock
        started = clock()
        deadline = None if limit.seconds is None else started + limit.seconds

        def check() -> None:
            if deadline is not None and clock() >= deadline:
                raise _TimeIsUpError

        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        left = request.remaining.readings
        if left is not None and self._may_switch(belief, left, state):
            try:
                gain = advantage_over_apgd(
                    request, options, look_ahead=self.look_ahead, check=check
                )
            except _TimeIsUpError:
                gain = np.inf
            if gain <= (self.switch or 0.0):
                state = freeze(belief, belief.weights)
                logger.info(
                    "ie continues as apgd: with the %d remaining readings no policy can gain more "
                    "than %.3g nat over apgd",
                    left,
                    gain,
                )
            else:
                state = {"again": left - max(1, left // _PAUSE)}
        plan, state = super().plan(request, state)
        return dataclasses.replace(plan, seconds=clock() - started), state

    def _may_switch(self, belief: Belief, left: int, state: PolicyState) -> bool:
        if self.switch is None:
            return False
        if state is not None and ("weights" in state or left > state["again"]):
            return False
        return float(discrete_entropy(belief.weights)) <= self.switch

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the expected entropies for the present or the frozen weights [nat]."""
        frozen = state is not None and "weights" in state
        weights = thaw(state, belief) if frozen else belief.weights
        return expected_entropy(belief, weights, locations, pending)


def advantage_over_apgd(
    request: PlanRequest,
    options: Candidates,
    *,
    look_ahead: int,
    check: Callable[[], None] = lambda: None,
) -> float:
    r"""Return a bound on the gain of any policy over `apgd` with the k remaining readings [nat].

    .. math:: H(b) + \sum_\lambda b(\lambda) \Big( \max_{|A| \le k} F_\lambda(A)
        - F_\lambda(G) \Big)

    F_λ(A) is ``H[Z_A | z_D, λ]`` minus the entropy of the noise. G is the set of the next
    `look_ahead` places that `apgd` visits. The bound holds for two reasons: any policy π satisfies
    ``H[Z_π] ≤ H(b) + Σ b H[Z_π | λ]``, and a fixed set is optimal for a known λ. F_λ is monotone
    and submodular. Every set W of reachable places therefore gives an upper bound on the maximum.
    This bound ignores the moves of the map:

    .. math:: \max_{|A| \le k} F_\lambda(A) \le F_\lambda(W)
        + \sum_{k \text{ largest}} \big( F_\lambda(W \cup \{x\}) - F_\lambda(W) \big)

    The result uses the smallest of these bounds over the prefixes W of the greedy sequence for λ
    [Minoux1978].

    Args:
        request: belief, map and remaining budget. The budget has k readings.
        options: candidate places of the next decision.
        look_ahead: number of readings for which `apgd` is simulated.
        check: function that raises when the time is over.

    Returns:
        The bound; infinity if the computation would take too long.
    """
    belief, k = request.belief, request.remaining.readings
    if k is None:
        return float("inf")
    within = request.topology.reachable(request.at, options.observed, k, request.unavailable)
    places = np.flatnonzero(within)
    weights, noise = belief.weights, belief.noise_variance
    if len(weights) * len(places) ** 2 > _LARGEST:
        return float("inf")
    check()
    C = joint_given_pending(belief, places, request.pending).covariance
    steps = min(look_ahead, k, len(places))
    most = _most(C, noise, k, steps, check)
    apgd = _walk(request, options, places, C, steps, check)
    # The difference is not negative, except for rounding errors.
    return float(discrete_entropy(weights) + weights @ np.maximum(most - apgd, 0.0))


def _most(
    C: FloatArray, noise: FloatArray, k: int, steps: int, check: Callable[[], None]
) -> FloatArray:
    """Return upper bounds (L,) on the information of k readings; C (L, m, m) is the covariance."""
    L, m = C.shape[:2]
    own = np.arange(L)
    variance = np.maximum(np.diagonal(C, axis1=1, axis2=2), 0.0)
    downdates = np.zeros((steps, L, m))
    taken = np.zeros((L, m), dtype=bool)
    total = np.zeros(L)
    gain = information(variance, noise)
    best = sum_of_largest(gain, k)
    for j in range(steps):
        check()
        pick = first_best(gain, floor=NAT)
        total += gain[own, pick]
        d = C[own, pick] - np.einsum("jl,jlm->lm", downdates[:j, own, pick], downdates[:j])
        d /= np.sqrt(variance[own, pick] + noise)[:, None]
        downdates[j] = d
        variance = np.maximum(variance - d * d, 0.0)
        taken[own, pick] = True
        gain = np.where(taken, 0.0, information(variance, noise))
        best = np.minimum(best, total + sum_of_largest(gain, k))
    return best


def _walk(
    request: PlanRequest,
    options: Candidates,
    places: IntArray,
    C: FloatArray,
    steps: int,
    check: Callable[[], None],
) -> FloatArray:
    """Return the information (L,) of the next `steps` readings that `apgd` would choose."""
    weights, noise = request.belief.weights, request.belief.noise_variance
    topology, unavailable = request.topology, request.unavailable
    L, m = C.shape[:2]
    variance = np.maximum(np.diagonal(C, axis1=1, axis2=2), 0.0)
    downdates = np.zeros((steps, L, m))
    total = np.zeros(L)
    here, seen, budget = request.at, options.observed.copy(), request.remaining
    for j in range(steps):
        check()
        constraint, drives = BudgetConstraint(topology, budget), []
        if constraint.restricts:
            drives = constraint.drives(here, seen, unavailable)
            candidates = np.array([drive.place for drive in drives], dtype=np.int64)
        else:
            candidates = topology.candidates(here, seen, unavailable)
        if not len(candidates):
            break
        where = np.searchsorted(places, candidates)
        gain = information(variance[:, where], noise)
        best = int(first_best(weights @ gain, floor=NAT))
        pick, here = int(where[best]), int(candidates[best])
        budget = drives[best].remaining(budget) if drives else budget
        total += gain[:, best]
        d = C[:, pick] - np.einsum("jl,jlm->lm", downdates[:j, :, pick], downdates[:j])
        d /= np.sqrt(variance[:, pick] + noise)[:, None]
        downdates[j] = d
        variance = np.maximum(variance - d * d, 0.0)
        seen[here] = True
    return total
