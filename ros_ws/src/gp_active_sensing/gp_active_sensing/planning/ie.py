"""Implicit exploration: greedy under the present belief until a design frozen now is as good."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.advantage import advantage_over_apgd
from gp_active_sensing.planning.base import PlanRequest, PolicyState, candidates, no_plan
from gp_active_sensing.planning.entropy import discrete_entropy
from gp_active_sensing.planning.greedy import Greedy, expected_entropy, freeze, thaw
from gp_active_sensing.types import FloatArray, IntArray, Plan

__all__ = ["ImplicitExploration"]

logger = logging.getLogger(__name__)

_PAUSE = 8
"""A bound that was too large is computed again when this fraction of the rest has been read."""


class _TimeIsUpError(Exception):
    """The decision's time is over before the bound is known."""


@dataclass(frozen=True)
class ImplicitExploration(Greedy):
    r"""Largest expected entropy, ``argmax_x Σ_λ b_D(λ) H[Z_x | z_D, λ]``, then `apgd`.

    [Krause2007, IE]. The belief b_D is updated by every reading while that may pay. Once
    no policy can gain more than `switch` over `apgd` with the readings that are left (see
    `advantage_over_apgd`), the belief is frozen and `apgd` takes the rest.

    The bound holds for any policy and any number of readings; without a budget of readings there
    is no rest to bound and no switch. It is never below ``H(b)``, so it is computed once
    ``H(b) ≤ switch``, and again whenever an eighth of the rest has been read: switching late is
    always sound. Where moves bind it compares with sets of places that no probe can visit in a
    row, so it stays large until a few readings are left. There is no switch while more than
    about 500 places are within reach (for 7 candidates; the time for their covariances).
    """

    switch: float | None = param(
        0.5,
        help="finish with apgd when no policy can gain more than this over it with the readings "
        "that are left; null = never",
        unit="nat",
        low=0.0,
    )
    look_ahead: int = param(
        40,
        help="readings for which the bound of the switch follows apgd; what apgd gains later "
        "counts as nothing",
        unit="readings",
        low=1,
    )

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`.

        The state is None, ``{"again": readings left when the bound is next computed}``, or the
        frozen belief.
        """
        belief, topology, at = request.belief, request.topology, request.at
        pending, limit, remaining = request.pending, request.limit, request.remaining
        unavailable, clock = request.unavailable, request.clock
        started = clock()
        deadline = None if limit.seconds is None else started + limit.seconds

        def check() -> None:
            if deadline is not None and clock() >= deadline:
                raise _TimeIsUpError

        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        left = remaining.readings
        if self._may_switch(belief, left, state) and left is not None:
            try:
                gain = advantage_over_apgd(
                    belief, topology, at, options, pending, unavailable, remaining,
                    look_ahead=self.look_ahead, check=check,
                )  # fmt: skip
            except _TimeIsUpError:
                gain = np.inf
            if gain <= (self.switch or 0.0):
                state = freeze(belief, belief.weights)
                logger.info(
                    "ie finishes with apgd: with the %d readings left no policy can gain more "
                    "than %.3g nat over it",
                    left,
                    gain,
                )
            else:
                state = {"again": left - max(1, left // _PAUSE)}
        plan, state = super().plan(request, state)
        return dataclasses.replace(plan, seconds=clock() - started), state

    def _may_switch(self, belief: Belief, left: int | None, state: PolicyState) -> bool:
        if self.switch is None or left is None:
            return False
        if state is not None and ("weights" in state or left > state["again"]):
            return False
        return float(discrete_entropy(belief.weights)) <= self.switch

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the expected entropy under the present belief, or the frozen one."""
        frozen = state is not None and "weights" in state
        weights = thaw(state, belief) if frozen else belief.weights
        return expected_entropy(belief, weights, locations, pending)
