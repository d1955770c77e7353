"""Policy `random`: a candidate at random, the baseline for all others."""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.planning.base import PlanRequest, PolicyState, candidates, no_plan
from gp_active_sensing.types import Plan

__all__ = ["RandomChoice"]


@dataclass(frozen=True)
class RandomChoice:
    """Any candidate with equal probability."""

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`."""
        started = request.clock()
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        index = int(request.rng.integers(options.locations.size))
        plan = options.plan_for(
            index,
            lower=0.0,
            upper=0.0,
            expanded=1,
            seconds=request.clock() - started,
            deadline_hit=False,
        )
        return plan, state
