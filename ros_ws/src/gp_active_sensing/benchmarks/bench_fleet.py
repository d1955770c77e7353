"""Several probes on the town: how many readings, and how much time, until as much is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from common import STATED, Section

from gp_active_sensing.mission.names import numbered
from gp_active_sensing.records.metrics import rmspe
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.sim.runner import SimulationRunner

SEEDS = range(1, 21)
PROBES = (1, 2, 3)
READINGS = 60
MOST = 120
"""Readings after which a mission is given up on."""


class Curve(NamedTuple):
    """What was known after each reading, from the first on.

    Args:
        rmspe: (n,) over the places that had no reading then [km/h].
        seconds: (n,) since the mission began.
        metres: driven by all probes, for `READINGS` readings.
        shared: times that a probe was sent where another one was under way to.
    """

    rmspe: list[float]
    seconds: list[float]
    metres: float
    shared: int

    def reaches(self, level: float) -> int | None:
        """Return the number of readings after which a level is reached, None if it is not."""
        return next((n for n, error in enumerate(self.rmspe, 1) if error <= level), None)


def run() -> Section:
    section = Section(
        "Several probes",
        "python benchmarks/run.py fleet",
        header=(
            "probes",
            f"RMSPE after {READINGS} km/h",
            f"minutes to {READINGS}",
            f"km driven to {READINGS}",
            "readings to the RMSPE of one",
            "minutes to it",
            "never",
            "to one segment",
        ),
    )
    curves = {k: [drive(seed, k) for seed in SEEDS] for k in PROBES}
    levels = [curve.rmspe[READINGS - 1] for curve in curves[1]]
    for k, found in curves.items():
        section.rows.append((k, *row(found, levels)))
    mean = {k: np.mean([curve.rmspe for curve in found], axis=0) for k, found in curves.items()}
    level = float(mean[1][READINGS - 1])
    crossing = ", ".join(
        f"{k} after {int(np.argmax(mean[k] <= level)) + 1}" for k in PROBES if k > 1
    )
    section.text = (
        f"`sim/town.yaml` with a random start, seeds 1 … {len(SEEDS)} (start and sensor noise; "
        "the first probe begins where the one does, the others elsewhere), 7 length-scales, bal "
        "with 800 expansions a decision, a pose a second, in virtual time without nodes; the "
        f"readings are shared until {MOST} of them are spent. Mean ± s.e. over the seeds. "
        f"The level of a seed is the RMSPE that its one probe has after {READINGS} readings; "
        "“readings to it” is the first "
        "time that as little is reached (for one probe that may be before), “never” how many "
        f"seeds did not reach it with {MOST}. The mean curves cross the level of one probe after "
        f"{READINGS} readings ({level:.2f} km/h) with: {crossing} readings."
    )
    return section


def drive(seed: int, probes: int) -> Curve:
    """Play one mission and look at the belief after each new reading."""
    start = [f"seed={seed}", "probe.start=random", f"budget.readings={MOST}"]
    scenario = load_scenario("town", overrides=[*STATED["town"], *start])
    runner = SimulationRunner(scenario, numbered(str(probes)), period=1.0)
    mission = runner.mission
    belief, truth = mission.loop.belief, runner.truth.at(0.0)
    curve = Curve([], [], 0.0, 0)
    metres, shared = math.nan, 0
    before: dict[str, int] = {}
    while mission.state != "ended":
        runner.step()
        goals = {p.name: p.plan.waypoints[0] for p in mission.fleet.present if p.plan is not None}
        if goals != before:
            shared += len(goals) - len(set(goals.values()))
            before = goals
        count = int(belief.observed.sum())
        if count == len(curve.rmspe):
            continue
        mean, _ = belief.predict()
        error = rmspe(mean, truth, belief.observed)
        assert error is not None
        while len(curve.rmspe) < count:  # several within the same second
            curve.rmspe.append(error)
            curve.seconds.append(runner.seconds)
        if count >= READINGS and math.isnan(metres):
            metres = mission.driven.metres
    return curve._replace(metres=metres, shared=shared)


def row(curves: Sequence[Curve], levels: Sequence[float]) -> tuple[object, ...]:
    """Return the cells of a number of probes."""
    reached = [curve.reaches(level) for curve, level in zip(curves, levels, strict=True)]
    there = [(c, n) for c, n in zip(curves, reached, strict=True) if n is not None]
    return (
        shown([curve.rmspe[READINGS - 1] for curve in curves]),
        shown([curve.seconds[READINGS - 1] / 60.0 for curve in curves]),
        shown([curve.metres / 1000.0 for curve in curves]),
        shown([n for _, n in there]),
        shown([curve.seconds[n - 1] / 60.0 for curve, n in there]),
        len(curves) - len(there),
        sum(curve.shared for curve in curves),
    )


def shown(values: Sequence[float]) -> str:
    """Return mean ± standard error."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return f"{float(np.mean(values)):.2f} ± {error:.2f}"
