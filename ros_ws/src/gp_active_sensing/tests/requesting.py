"""Requests of policies, in one line, for tests."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.base import PlanRequest
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import Budget


def asked(
    belief: Belief,
    topology: Topology,
    at: int | None = 0,
    pending: Collection[int] = (),
    unavailable: Collection[int] = (),
    remaining: Budget = Budget(),
) -> PlanRequest:
    """Return the request of a probe at some place; its randomness has the seed 0."""
    return PlanRequest(
        belief,
        topology,
        at,
        rng=np.random.default_rng(0),
        pending=pending,
        unavailable=unavailable,
        remaining=remaining,
    )
