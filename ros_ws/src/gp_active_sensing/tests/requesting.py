"""Requests of policies, in one line, for tests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

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
    *,
    rng: np.random.Generator | None = None,
    **more: Any,
) -> PlanRequest:
    """Return the request of a probe at some place; its randomness has the seed 0.

    Args:
        belief, topology, at, pending, unavailable, remaining: of the request.
        rng: None = a new generator.
        more: further fields of the request.
    """
    return PlanRequest(
        belief,
        topology,
        at,
        rng=np.random.default_rng(0) if rng is None else rng,
        pending=pending,
        unavailable=unavailable,
        remaining=remaining,
        **more,
    )
