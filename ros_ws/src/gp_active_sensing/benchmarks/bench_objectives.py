"""Processor time of a decision of ⟨α,ε⟩-BAL by what it is after: entropy, the map, with a tail."""

from __future__ import annotations

import time

import numpy as np
from common import STATED, Section, quantiles

from gp_active_sensing.planning.bal import Bal
from gp_active_sensing.planning.base import PlanRequest
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import PlanLimit, Reading

BELIEFS = {"as it comes": ("belief={}",), "seven length-scales": STATED["town"]}
POLICIES = {
    "entropy": Bal(horizon=4, alpha=0.05),
    "map_error": Bal(horizon=4, alpha=0.05, objective="map_error"),
    "map_error, tail: route": Bal(horizon=4, alpha=0.05, objective="map_error", tail="route"),
}
LIMIT = PlanLimit(expansions=5000)


def mission(belief: tuple[str, ...], readings: int) -> dict[str, list[tuple[float, int, bool]]]:
    """Ask every policy at each stage of one mission, which the second one drives."""
    scenario = load_scenario("town", overrides=[*belief, f"budget.readings={readings}"])
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology)
    at, state = world.start, {name: None for name in POLICIES}
    out: dict[str, list[tuple[float, int, bool]]] = {name: [] for name in POLICIES}
    for stage in range(readings):
        goal = None
        loop.belief.predict()  # what every stage computes anyway is no part of a decision
        for name, policy in POLICIES.items():
            begun = time.process_time()
            plan, state[name] = policy.plan(
                PlanRequest(
                    loop.belief,
                    world.topology,
                    at,
                    limit=LIMIT,
                    rng=np.random.default_rng(stage),
                    remaining=loop.remaining,
                ),
                state[name],
            )
            out[name].append((time.process_time() - begun, plan.expanded, plan.deadline_hit))
            if name == "map_error":
                goal = plan.waypoint
        if goal is None:
            break
        at = goal
        reading = world.sensor.read(at, 0, stage)
        loop.tell([reading if reading is not None else Reading(stage, at, world.truth.at(0.0)[at])])
    return out


def run(readings: int = 60, *, smoke: bool = False) -> Section:
    """Return the section."""
    readings = 4 if smoke else readings
    section = Section(
        "What a decision costs by its objective",
        "python benchmarks/run.py objectives",
        f"`sim/town.yaml`, N' = 4, S = 5, α = 0.05, {readings} stages of one mission at which "
        "every policy is asked, at most 5000 expansions; processor time of one core. `closed`: the "
        "share of stages whose gap reached α.",
        ("belief", "policy", "median s", "p99 s", "max s", "/ entropy", "expansions", "closed"),
    )
    for called, belief in BELIEFS.items():
        out = mission(belief, readings)
        first = float(np.median([seconds for seconds, _, _ in out["entropy"]]))
        for name, stages in out.items():
            seconds, expanded, hit = (np.array(column) for column in zip(*stages, strict=True))
            median, p99, largest = quantiles(seconds.tolist())
            section.rows.append(
                (
                    called,
                    name,
                    median,
                    p99,
                    largest,
                    median / first,
                    float(np.median(expanded)),
                    f"{100 * (1.0 - hit.mean()):.0f} %",
                )
            )
    return section
