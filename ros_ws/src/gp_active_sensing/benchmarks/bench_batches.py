"""How long a batch takes: ten goals chosen together, on maps of 2000 and of 5000 places."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from common import Section

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits import Batch
from gp_active_sensing.planning.bandits.dpp_batch import relevance_region
from gp_active_sensing.planning.base import BatchRequest
from gp_active_sensing.topology.generated import FreeTopology, make_points

POLICIES = {
    "gp_bucb": {},
    "b_est": {},
    "ucb_dpp_max": {},
    "est_dpp_max": {},
    "ucb_dpp_sample": {},
    "ucb_dpp_sample, R⁺ ≤ 500": {"scale": 40.0},
    "est_dpp_sample": {},
    "lp_ucb": {},
}
PLACES = (2000, 5000)
READINGS, PROBES = 150, 10


def world(n: int) -> tuple[FreeTopology, Belief]:
    """Scattered places, a smooth field, readings of some, three length-scales to believe in."""
    topology = make_points(n, (0.0, 0.0), (100.0, 100.0))
    config = BeliefConfig(length_scales=(10.0, 14.0, 20.0), signal_std=(1.0,), noise_std=(0.3,))
    belief = build_belief(config, topology.features)
    rng = np.random.default_rng(0)
    x, y = topology.positions.T
    field = np.sin(x / 14.0) * np.cos(y / 17.0)
    for place in rng.choice(n, READINGS, replace=False).tolist():
        belief.observe(place, float(field[place] + 0.3 * rng.normal()))
    belief.marginals()  # readings are taken in as they come, not when a decision is wanted
    return topology, belief


def seconds_of(action: Callable[[], object], repeats: int = 9) -> float:
    """Median processor time, which other work on the machine disturbs less than wall time."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return float(np.median(times))


def yardstick_seconds() -> float:
    """Of one 1000 × 1000 Cholesky factorisation, measured as the batches are."""
    A = np.random.default_rng(0).standard_normal((1000, 1000))
    A = A @ A.T + 1000.0 * np.eye(1000)
    return seconds_of(lambda: np.linalg.cholesky(A))


def region_size(policy: Batch, topology: FreeTopology, belief: Belief) -> int:
    view = policy.view(belief, np.arange(topology.n), (), 1)
    width = policy.widths(view, belief)(1, view.locations, view.std)
    return int(relevance_region(view.mean, view.std, width).sum())


def run() -> Section:
    yardstick = yardstick_seconds()
    section = Section(
        "Batches",
        "python benchmarks/run.py batches",
        f"One joint decision for {PROBES} probes, {READINGS} readings, 3 length-scales, any place "
        "next; processor time of one core, median of 9. `ratio`: to one 1000 × 1000 Cholesky "
        f"factorisation ({yardstick * 1e3:.3g} ms here). `R⁺`: places of the relevance region; "
        "beyond 500 the set is drawn by the Markov chain.",
        ("places", "policy", "R⁺", "seconds", "ratio"),
    )
    for n in PLACES:
        topology, belief = world(n)
        at = list(range(PROBES))
        for label, keys in POLICIES.items():
            policy = build_policy({"name": label.split(",")[0], **keys})
            assert isinstance(policy, Batch)

            def decide(policy: Batch = policy) -> object:
                rng = np.random.default_rng(0)
                return policy.plan_batch(BatchRequest(belief, topology, at, rng=rng))  # noqa: B023 - used at once

            decide()
            seconds = seconds_of(decide)
            size = region_size(policy, topology, belief) if "dpp" in label else "-"
            section.rows.append((n, label, size, seconds, seconds / yardstick))
    return section
