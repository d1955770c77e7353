"""Small maps and beliefs for tests of policies for several probes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits.base import view_of
from gp_active_sensing.planning.bandits.batch import Batch, Start
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.base import FreeTopology
from gp_active_sensing.types import FloatArray
from tests.requesting import believing

NAMES = (
    "b_est",
    "est_dpp_max",
    "est_dpp_sample",
    "gp_bucb",
    "lp_ucb",
    "ucb_dpp_max",
    "ucb_dpp_sample",
    "ucb_pe",
)


def batch(name: str, **keys: Any) -> Batch:
    policy = build_policy({"name": name, **keys})
    assert isinstance(policy, Batch)
    return policy


def scattered(n: int = 40, seed: int = 0) -> FreeTopology:
    at = np.random.default_rng([seed, n]).uniform(0.0, 10.0, size=(n, 2))
    return FreeTopology("scattered", "map", [str(i) for i in range(n)], at)


def field(topology: Topology) -> FloatArray:
    x, y = topology.positions[:, 0], topology.positions[:, 1]
    return np.sin(0.7 * x) + np.cos(0.5 * y)


def believe(topology: Topology, readings: int = 8, *, seed: int = 0, **options: Any) -> Belief:
    known: dict[str, Any] = {"length_scales": (2.0,), "signal_std": (1.0,), "noise_std": (0.2,)}
    belief = believing(topology, **(known | options))
    rng = np.random.default_rng([seed, 1])
    for place in rng.permutation(topology.n)[:readings].tolist():
        belief.observe(place, float(field(topology)[place] + 0.2 * rng.normal()))
    return belief


def start_of(
    policy: Batch,
    belief: Belief,
    topology: Topology,
    *,
    members: tuple[int, ...] = (),
    stage: int = 1,
) -> Start:
    """What is known when a batch begins, with every place a candidate."""
    view = view_of(belief, np.arange(topology.n), stage=stage, sign=policy.sign)
    return Start(view, belief, topology, members, None, policy.widths(view, belief))
