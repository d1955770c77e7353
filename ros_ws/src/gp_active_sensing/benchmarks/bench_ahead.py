"""Planning while the probe drives: is it the same decision, and how soon is it there?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import STATED, Section

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `tests`

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.plan_ahead import ContingentPlans, foresee, take
from gp_active_sensing.records.events import DecisionAsked, DecisionTaken, Event
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.sim.runner import SimulationRunner

SAME = (
    ("town", "7 length-scales", [*STATED["town"]], (1, 2, 3)),
    ("town", "policy.horizon 3", [*STATED["town"], "policy.horizon=3"], (1, 2)),
    ("town", "nothing known, 40 readings", ["policy.horizon=5", "budget.readings=40"], (1, 2)),
    ("line", "as shipped", [], (1, 2)),
)
SPEEDS = (10, 20)


def run() -> Section:
    section = Section(
        "Planning while the probe drives",
        "python benchmarks/run.py ahead",
        "First without ROS: each foreseen decision against asking on arrival, which is then "
        "followed; lost = value of the decision asked for less that of the foreseen one, by their "
        "lower bounds [nat]. Then the nodes on `sim/town.yaml`, with and without: median / p99.",
        ("what", "decisions", "foreseen", "another place", "most lost nat", "computing a leg s"),
    )
    for name, what, overrides, seeds in SAME:
        found = [_compare(name, seed, overrides) for seed in seeds]
        total, fitted, other = (sum(part[i] for part in found) for i in range(3))
        lost = max((loss for part in found for loss in part[3]), default=0.0)
        seconds = float(np.median([s for part in found for s in part[4]]))
        section.rows.append((f"{name}, {what}", total, fitted, other, lost, seconds))
    text = [section.text, ""]
    for speed in SPEEDS:
        for ahead in ("false", "true"):
            summary = _nodes(speed, ahead)
            latency = summary["latency"]
            shown = ", ".join(
                f"{key.replace('_', ' ')} {latency[key]['median_ms']:.1f} / "
                f"{latency[key]['p99_ms']:.1f} ms ({latency[key]['count']})"
                for key in latency
                if latency[key]["count"]
            )
            text.append(
                f"- speed factor {speed}, plan_ahead {ahead}: {shown}; final RMSPE "
                f"{summary['rmspe']:.4f} km/h"
            )
    section.text = "\n".join(text)
    return section


def _compare(
    name: str, seed: int, overrides: list[str]
) -> tuple[int, int, int, list[float], list[float]]:
    """Return decisions with one before them, those foreseen, those that differ, losses, seconds."""
    scenario = load_scenario(name, overrides=[f"seed={seed}", *overrides])
    runner = SimulationRunner(scenario, driver="sim")
    loop = runner.mission.loop
    seen: ContingentPlans | None = None
    before: SensingLoop | None = None
    value: float | None = None
    total = fitted = other = 0
    lost: list[float] = []
    seconds: list[float] = []

    def hear(event: Event) -> None:
        nonlocal seen, before, value, total, fitted, other
        if isinstance(event, DecisionAsked):
            finished = runner.mission.probe.finished
            before, value = loop.snapshot(), None if finished is None else finished.value
        if not isinstance(event, DecisionTaken):
            return
        if seen is not None and before is not None and value is not None:
            total += 1
            taken = take(before, seen, value)
            fitted += taken is not None
            place = event.plan.waypoints[0]
            if taken is not None and taken.waypoint != place:
                other += 1
                worth = {c: low for c, low, _ in event.plan.candidates}
                lost.append(worth[place] - worth[taken.waypoint])
        begun = time.perf_counter()
        seen = foresee(loop.snapshot(), event.plan.waypoints[0])
        seconds.append(time.perf_counter() - begun)

    runner.parts.recorder.listener = hear
    while runner.mission.state != "ended":
        runner.step()
    runner.close()
    return total, fitted, other, lost, seconds


def _nodes(speed: int, ahead: str) -> dict[str, dict[str, dict[str, float]]]:
    from tests.ros.conftest import domain_id

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        subprocess.run(
            [
                sys.executable, "-m", "gp_active_sensing.ros.runner", "traffic_sim",
                "scenario:=town", f"speed_factor:={speed}", f"plan_ahead:={ahead}",
                f"run_dir:={out}", "exit_at_end:=true",
            ],
            check=True, capture_output=True,
            env={**os.environ, "ROS_DOMAIN_ID": str(domain_id())},
        )  # fmt: skip
        return dict(json.loads((out / "summary.json").read_text(encoding="utf-8")))
