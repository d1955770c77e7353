"""Requests of policies and their beliefs, in one line, for tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import Budget


def believing(topology: Topology, weights: Sequence[float] | None = None, **config: Any) -> Belief:
    """Return a belief without readings; weights None = equal candidates."""
    built = build_belief(BeliefConfig(**config), topology.features, topology.feature_names)
    if weights is None:
        return built
    return Belief(
        built.covariance,
        built.mean,
        weights,
        built.transform,
        scale_known=built.scale_known,
        grid=built.grid,
        drift=built.drift,
    )


class Ticking:
    """A clock that goes on by a step at every look."""

    def __init__(self, step: float = 1.0) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


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
    """Return the request of a probe at some place; its randomness has the seed 0 unless given."""
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
