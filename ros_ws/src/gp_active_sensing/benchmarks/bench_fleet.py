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

SEEDS = 20
PROBES = (1, 2, 3)
READINGS = 60
MOST = 120
"""Readings after which a mission is given up on."""
PLANS_FOR_ALL = ("tour",)
"""Policies that plan for all the readings there are: their missions have `READINGS`, not `MOST`."""


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


def run(policies: str = "bal", starts: int = SEEDS) -> Section:
    names = policies.split(",")
    section = Section(
        "Several probes",
        f"python benchmarks/run.py fleet --policies {policies} --starts {starts}",
        header=(
            "policy",
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
    for policy in names:
        curves = {k: [drive(seed, k, policy) for seed in range(1, starts + 1)] for k in PROBES}
        levels = [curve.rmspe[READINGS - 1] for curve in curves[1]]
        for k, found in curves.items():
            section.rows.append((policy, k, *row(found, levels)))
    section.text = (
        f"`sim/town.yaml` with a random start, seeds 1 … {starts} (start and sensor noise; the "
        "first probe begins where the one does, the others elsewhere), 7 length-scales, 800 "
        "expansions a decision, a pose a second, in virtual time without nodes; the readings are "
        f"shared until {MOST} of them are spent ({READINGS} with {', '.join(PLANS_FOR_ALL)}, which "
        "plans for all of them). Mean ± s.e. over the seeds. The level of a seed is the RMSPE "
        f"that its one probe has after {READINGS} readings; “readings to it” is the first time "
        "that as little is reached (for one probe that may be before), “never” how many seeds "
        "did not reach it."
    )
    return section


def drive(seed: int, probes: int, policy: str = "bal") -> Curve:
    """Play one mission and look at the belief after each new reading."""
    most = READINGS if policy in PLANS_FOR_ALL else MOST
    start = [f"seed={seed}", "probe.start=random", f"budget.readings={most}"]
    if policy != "bal":
        start.append(f"policy={{name: {policy}}}")
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
