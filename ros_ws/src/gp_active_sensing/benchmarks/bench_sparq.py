"""What time costs: a SparQ-GP-UCB mission, and decisions on beliefs whose readings age."""

from __future__ import annotations

import time

import numpy as np
from changing_fields import play, synthetic
from common import Section, cholesky_seconds, median_seconds

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.belief.drift import NO_DRIFT, DriftConfig

PLACES, READINGS = 1000, 500
DRIFTS = {
    "none": NO_DRIFT,
    "injection, rate": DriftConfig(kind="injection", rate=0.002),
    "injection, doubling": DriftConfig(kind="injection", doubling=200.0),
    "weights": DriftConfig(kind="weights", time_scale=200.0),
    "window of all": DriftConfig(kind="window", window=1e6),
    "kernel": DriftConfig(kind="kernel", time_scale=200.0),
}


def told(drift: DriftConfig) -> Belief:
    """500 of 1000 places read, one a second."""
    config = BeliefConfig(
        length_scales=(20.0,), signal_std=(1.0,), noise_std=(0.1,), mean_std=3.0, drift=drift
    )
    belief = build_belief(config, np.arange(float(PLACES))[:, None])
    rng = np.random.default_rng(0)
    for second, place in enumerate(rng.permutation(PLACES)[:READINGS].tolist()):
        belief.observe(place, float(rng.normal()), seconds=float(second))
    belief.predict()
    return belief


def run() -> Section:
    """Time the next reading and the prediction of all places, a second later each."""
    yard = cholesky_seconds()
    rows: list[tuple[object, ...]] = []
    for name, drift in DRIFTS.items():
        belief = told(drift)
        free = np.flatnonzero(~belief.visited).tolist()

        def step(belief: Belief = belief, free: list[int] = free) -> None:
            now = belief.seconds + 1.0
            belief.observe(free.pop(), 0.3, seconds=now)
            belief.advance(now + 0.5)
            belief.predict()

        seconds = median_seconds(step, 15)
        rows.append((name, 1e3 * seconds, seconds / yard))
    world = synthetic()
    policy: dict[str, object] = {"name": "sparq_gp_ucb", "norm": world.norm}
    started = time.perf_counter()
    asked = play(world, policy, 0).asked
    mission = time.perf_counter() - started
    text = (
        f"A reading more and the prediction of {PLACES} places, {READINGS} of which have been read "
        f"at a time of their own, one λ; the 1000 × 1000 Cholesky took {1e3 * yard:.1f} ms. And a "
        f"mission of SparQ-GP-UCB of 500 decisions among 401 places, {asked} answers of an expert "
        f"included: {mission:.1f} s, {mission / yard:.0f} of them."
    )
    return Section(
        "Fields that change",
        "python benchmarks/run.py sparq",
        text,
        ("drift", "ms", "Choleskys"),
        rows,
    )
