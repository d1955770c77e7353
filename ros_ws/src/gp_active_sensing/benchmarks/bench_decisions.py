"""How long a search for the hot spot takes to decide, against a Cholesky factorisation."""

from __future__ import annotations

import time

import numpy as np
from common import Section, cholesky_seconds

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.topology import Topology, make_grid, make_line
from gp_active_sensing.types import Reading

PLACES, READ, DECISIONS = 1000, 500, 25


def maps() -> dict[str, tuple[Topology, float]]:
    """Where any place is next, and where moves bind; with a length-scale of a tenth of the map."""
    return {
        "any place next": (make_line(PLACES, 1.0, moves="free"), 100.0),
        "moves to neighbours": (make_grid(40, 25, 1.0, neighbours=8), 4.0),
    }


def cycle(topology: Topology, scales: tuple[float, ...], policy: str) -> tuple[float, float]:
    """Median seconds of a decision, and of it with the reading that follows."""
    config = BeliefConfig(length_scales=scales, signal_std=(1.0,), noise_std=(0.3,), mean_std=0.0)
    belief = belief_on(config, topology)
    rng = np.random.default_rng(0)
    for place in rng.choice(PLACES, size=READ, replace=False):
        belief.observe(int(place), float(rng.normal()))
    loop = SensingLoop(topology, belief, build_policy({"name": policy}), seed=1)
    at = 0
    loop.ask(at)
    decisions, cycles = [], []
    for stage in range(DECISIONS):
        started = time.perf_counter()
        plan = loop.ask(at)
        decisions.append(time.perf_counter() - started)
        assert plan.waypoint is not None
        at = plan.waypoint
        loop.tell([Reading(stage, at, float(rng.normal()))])
        cycles.append(time.perf_counter() - started)
    return float(np.median(decisions)), float(np.median(cycles))


def run() -> Section:
    yard = cholesky_seconds()
    section = Section(
        f"A decision on {PLACES} places with {READ} readings",
        "python benchmarks/run.py decisions",
        f"Median of {DECISIONS} decisions, the one before taken in: what a reading changes is "
        "computed when the next decision is. As milliseconds and as a multiple of one 1000 × 1000 "
        f"Cholesky factorisation in the same run ({1e3 * yard:.1f} ms). `thompson` draws 500 "
        "places together.",
        ("map", "λ", "policy", "decision [ms]", "/ Cholesky", "with its reading [ms]"),
    )
    for name, (topology, scale) in maps().items():
        for scales in ((scale,), tuple(scale * np.geomspace(0.25, 4.0, 7))):
            for policy in ("gp_ucb", "ei", "pi", "est", "thompson"):
                if len(scales) > 1 and policy not in ("gp_ucb", "thompson"):
                    continue
                decision, whole = cycle(topology, scales, policy)
                section.rows.append(
                    (name, len(scales), policy, 1e3 * decision, decision / yard, 1e3 * whole)
                )
    return section
