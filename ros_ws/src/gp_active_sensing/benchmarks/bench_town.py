"""Stage planning time of ⟨α,ε⟩-BAL on the town: N' = 5, S = 5, 7 length-scales, 240 readings."""

from __future__ import annotations

import numpy as np
from common import Section, cholesky_seconds, quantiles

from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import PlanLimit, Reading

SETTINGS = (
    ("gap", PlanLimit(expansions=200)),
    ("gap", PlanLimit(expansions=1000)),
    ("gap", PlanLimit(expansions=20_000)),
    ("gap", PlanLimit(seconds=0.25)),
    ("published", PlanLimit(expansions=1000)),
)


def mission(search: str, limit: PlanLimit, readings: int) -> dict[str, list[float]]:
    """Plan and read `readings` stages; return time, gap and expansions of each."""
    scenario = load_scenario(
        "town", overrides=[f"budget.readings={readings}", f"policy.search={search}"]
    )
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology)
    at, out = world.start, {"seconds": [], "gap": [], "expanded": [], "places": []}
    for stage in range(readings):
        plan = loop.ask(at, limit=limit)
        if plan.waypoint is None:
            break
        at = plan.waypoint
        reading = world.sensor.read(at, 0, stage)
        loop.tell([reading if reading is not None else Reading(stage, at, world.truth.at(0.0)[at])])
        out["seconds"].append(plan.seconds)
        out["gap"].append(plan.gap)
        out["expanded"].append(plan.expanded)
    return out


def run(readings: int = 240) -> Section:
    section = Section(
        "Planning a stage on the town",
        "python benchmarks/run.py town",
        f"`sim/town.yaml` as shipped (N' = 5, S = 5, 7 length-scales, α = 0.05 nat), {readings} "
        "readings, one core. `closed` is the share of stages whose gap reached α. The last column "
        "is the median time over that of a 1000 × 1000 Cholesky measured just before.",
        (
            "search",
            "limit",
            "median s",
            "p99 s",
            "max s",
            "all stages s",
            "median gap",
            "p99 gap",
            "closed",
            "median expansions",
            "median / Cholesky",
        ),
    )
    for search, limit in SETTINGS:
        yardstick = cholesky_seconds()
        out = mission(search, limit, readings)
        median, p99, largest = quantiles(out["seconds"])
        gap, gap99, _ = quantiles(out["gap"])
        closed = float(np.mean(np.array(out["gap"]) <= 0.05))
        name = f"{limit.seconds} s" if limit.seconds else f"{limit.expansions} expansions"
        section.rows.append(
            (
                search,
                name,
                median,
                p99,
                largest,
                float(np.sum(out["seconds"])),
                gap,
                gap99,
                f"{100 * closed:.0f} %",
                float(np.median(out["expanded"])),
                median / yardstick,
            )
        )
    return section
