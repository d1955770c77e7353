"""A candidate at random: the policy that every other one has to beat."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.base import PolicyState, choices, no_plan
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Budget, Clock, Plan, PlanLimit

__all__ = ["RandomChoice"]


@dataclass(frozen=True)
class RandomChoice:
    """Any candidate with equal probability."""

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
        started = clock()
        options = choices(belief, topology, at, pending, unavailable, remaining)
        if options.reason:
            return no_plan(options.reason), state
        index = int(rng.integers(options.locations.size))
        plan = options.plan_for(
            index,
            lower=0.0,
            upper=0.0,
            expanded=1,
            seconds=clock() - started,
            deadline_hit=False,
        )
        return plan, state
