"""How planning time and memory grow: with the horizon, branches, candidates λ, readings, places."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
from common import STATED, Section, cholesky_seconds

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import PlanLimit

ALPHA = 0.05
CURVES: dict[str, tuple[tuple[str, list[str]], ...]] = {
    "horizon N'": tuple((str(h), [f"policy.horizon={h}"]) for h in (2, 3, 4, 5, 6, 8)),
    "branches S": tuple((str(s), [f"policy.samples={s}"]) for s in (3, 5, 10)),
    "length-scales |Λ|": tuple(
        (str(n), [f"belief.length_scales={np.geomspace(80, 1300, n).round(1).tolist()}"])
        for n in (2, 4, 7, 14)
    ),
    "places observed |D|": tuple((str(d), [f"observed={d}"]) for d in (0, 60, 240, 480)),
}


def ready(overrides: list[str], observed: int) -> tuple[SensingLoop, int | None]:
    """The town after so many readings along random drives."""
    scenario = load_scenario("town", overrides=[*STATED["town"], *overrides])
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology)
    walk = SensingLoop(loop.topology, loop.belief, build_policy({"name": "random"}), seed=3)
    at = world.start
    for stamp in range(observed):
        plan = walk.ask(at)
        if plan.waypoint is None:
            break
        at = plan.waypoint
        reading = world.sensor.read(at, 0, stamp)
        if reading is not None:
            walk.tell([reading])
    loop.belief = walk.belief
    return loop, at


def measure(overrides: list[str], limit: PlanLimit) -> tuple[float, float, float, float, float]:
    """Median seconds, largest, median gap, median expansions, peak MB of planning alone."""
    observed = 60
    for override in overrides:
        if override.startswith("observed="):
            observed = int(override.partition("=")[2])
    settings = [o for o in overrides if not o.startswith("observed=")]
    settings += ["budget.readings=700", f"policy.alpha={ALPHA}"]
    seconds, gaps, expanded = [], [], []
    loop, at = ready(settings, observed)
    places = np.random.default_rng(5).permutation(loop.topology.n)[:8]
    for place in [at, *places.tolist()]:
        started = time.perf_counter()
        plan = loop.snapshot().ask(place, limit=limit)
        seconds.append(time.perf_counter() - started)
        gaps.append(plan.gap)
        expanded.append(plan.expanded)
    tracemalloc.start()
    loop.snapshot().ask(at, limit=limit)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return (
        float(np.median(seconds)),
        max(seconds),
        float(np.median(gaps)),
        float(np.median(expanded)),
        peak,
    )


def run() -> Section:
    section = Section(
        "How planning grows",
        "python benchmarks/run.py curves",
        "The town (705 segments), N' = 5, S = 5, 7 length-scales, 60 readings along random drives "
        "unless the row says otherwise; 9 decisions from different places, until the gap is "
        f"{ALPHA} nat, 20 000 expansions or 2 s (the last row of N': 1 s). Peak: what planning "
        "allocated, as Python counts it. The last column: median over a 1000 × 1000 Cholesky.",
        ("what", "value", "median s", "max s", "median gap", "expansions", "peak MB", "/ Cholesky"),
    )
    yardstick = cholesky_seconds()
    for what, rows in CURVES.items():
        for value, overrides in rows:
            seconds = 1.0 if (what, value) == ("horizon N'", "8") else 2.0
            found = measure(overrides, PlanLimit(expansions=20_000, seconds=seconds))
            section.rows.append((what, value, *found, found[0] / yardstick))
    return section
