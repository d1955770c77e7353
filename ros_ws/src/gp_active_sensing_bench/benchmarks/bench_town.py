"""Measure the planning time of ⟨α,ε⟩-BAL in the scenario ``town``.

The policy looks N' = 5 readings ahead, with S = 5 possible values of each reading.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from common import CORE, Section, cholesky_seconds, quantiles

from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import PlanLimit, Reading

HERE = Path(__file__).resolve().parent
SEVEN = (
    (
        "belief={kernel: matern32, mean_std: 100.0, signal_std: [11.0], noise_std: [6.0], "
        "length_scales: [80, 130, 200, 320, 500, 800, 1300]}"
    ),
    "policy.horizon=5",
)
"""Overrides that select a belief with seven length-scales."""
DEFAULT = ("belief={}", "policy.horizon=5")
"""Overrides that select the default belief."""
CLOCK = time.process_time
"""Clock of processor time [s], on which other processes have little effect."""
SETTINGS = (
    ("gap", PlanLimit(expansions=200), SEVEN),
    ("gap", PlanLimit(expansions=1000), SEVEN),
    ("gap", PlanLimit(expansions=20_000), SEVEN),
    ("gap", PlanLimit(seconds=0.25), SEVEN),
    ("published", PlanLimit(expansions=1000), SEVEN),
    ("gap", PlanLimit(expansions=1000), DEFAULT),
    ("gap", PlanLimit(expansions=20_000), DEFAULT),
)


def mission(
    search: str, limit: PlanLimit, readings: int, belief: tuple[str, ...] = ()
) -> dict[str, list[float]]:
    """Simulate `readings` stages. Return planning time [s], gap and expansions of each stage."""
    scenario = load_scenario(
        "town",
        overrides=[*belief, f"budget.readings={readings}", f"policy.search={search}"],
    )
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology, clock=CLOCK)
    at, out = world.start, {"seconds": [], "yardstick": [], "gap": [], "expanded": []}
    for stage in range(readings):
        out["yardstick"].append(cholesky_seconds(repeats=1, clock=CLOCK))
        plan = loop.ask(at, limit=limit)
        if plan.waypoint is None:
            break
        at = plan.waypoint
        reading = world.sensor.read(at, 0, stage)
        loop.tell([reading if reading is not None else Reading(stage, at, world.truth.at(0.0)[at])])
        out["seconds"].append(plan.seconds)
        out["gap"].append(plan.gap)
        out["expanded"].append(plan.expanded)
    out["candidates"] = [len(loop.belief.weights)]
    return out


def elsewhere(package: str, index: int, readings: int) -> dict[str, list[float]]:
    """Measure another checkout, whose package folder is `package`, in another process."""
    command = [sys.executable, str(HERE / "bench_town.py"), str(index), str(readings)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, str(HERE)])}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def run(readings: int = 240) -> Section:
    """Return the table. GPAS_BEFORE may name the package folder of another checkout for comparison.

    GPAS_READINGS sets the number of stages. GPAS_SETTINGS selects rows of the table, such as "0,1".
    """
    readings = int(os.environ.get("GPAS_READINGS", readings))
    before = os.environ.get("GPAS_BEFORE")
    section = Section(
        "Planning a stage on the town",
        "python benchmarks/run.py town",
        f"`sim/town.yaml` (N' = 5, S = 5, α = 0.05 nat), {readings} readings, one core, with the 7 "
        "length-scales that it once had and with the belief as it comes (`belief: {}`). `closed`: "
        "the share of stages whose gap reached α. Times are of the processor, so that other work "
        "on the machine lengthens them little; the last column is the median over that of a "
        "1000 × 1000 Cholesky, one before each stage."
        + (" `before`: an earlier commit, in turn with this one." if before else ""),
        (
            "code",
            "candidates",
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
    own = str(CORE)
    chosen = os.environ.get("GPAS_SETTINGS", ",".join(map(str, range(len(SETTINGS)))))
    for index in map(int, chosen.split(",")):
        search, limit, _ = SETTINGS[index]
        # Use a process for each measurement, so that loaded modules do not affect the next one.
        for code, package in (("before", before), ("now", own)):
            if package is None:
                continue
            out = elsewhere(package, index, readings)
            median, p99, largest = quantiles(out["seconds"])
            gap, gap99, _ = quantiles(out["gap"])
            closed = float(np.mean(np.array(out["gap"]) <= 0.05))
            name = f"{limit.seconds} s" if limit.seconds else f"{limit.expansions} expansions"
            section.rows.append(
                (
                    code,
                    int(out["candidates"][0]),
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
                    median / float(np.median(out["yardstick"])),
                )
            )
    return section


if __name__ == "__main__":
    search, limit, belief = SETTINGS[int(sys.argv[1])]
    print(json.dumps(mission(search, limit, int(sys.argv[2]), belief)))
