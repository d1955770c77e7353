"""Searches for hot spots on measured fields, their bounds, and how long a decision takes."""

from __future__ import annotations

import math
import sys
import time

import numpy as np
from bandit_objectives import Task, intel, search, slowest_roads
from common import Section, cholesky_seconds
from network_data import data_folder

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.topology import Topology, make_grid, make_line
from gp_active_sensing.types import Reading

POLICIES = {
    "gp_ucb": {"name": "gp_ucb"},
    "gp_ucb, β/5": {"name": "gp_ucb", "scale": 5.0},
    "ei": {"name": "ei"},
    "pi": {"name": "pi"},
    "mean_only": {"name": "mean_only"},
    "variance_only": {"name": "variance_only"},
    "thompson": {"name": "thompson"},
    "est": {"name": "est"},
    "random": {"name": "random"},
}
BASELINE = "gp_ucb, β/5"
PLACES, READ, DECISIONS = 1000, 500, 25
SEEDS = 3
"""Draws of the noise for each field."""


def regrets(name: str, tasks: list[Task], readings: int, seeds: int) -> list[list[object]]:
    """A row a policy: average regret, difference to the baseline, runs below the bound."""
    found: dict[str, np.ndarray] = {}
    rows: list[list[object]] = []
    for label in [BASELINE, *(p for p in POLICIES if p != BASELINE)]:
        sys.stderr.write(f"{name}: {label}\n")
        outcomes = [[search(t, POLICIES[label], readings, s) for s in range(seeds)] for t in tasks]
        # Searches of one field are alike: errors are taken over the fields.
        found[label] = np.array([[o.average[-1] for o in each] for each in outcomes]).mean(axis=1)
        early = np.array([[o.average[readings // 5 - 1] for o in each] for each in outcomes])
        flat = [o for each in outcomes for o in each]
        below = [o.average[-1] * readings <= o.bound for o in flat if o.bound is not None]
        share = f"{sum(below)} of {len(below)}" if below else ""
        bounds = [o.bound / readings for o in flat if o.bound is not None]
        bound = float(np.mean(bounds)) if bounds else ""
        gain = found[label] - found[BASELINE]
        rows.append(
            [
                name,
                label,
                shown(early.mean(axis=1)),
                shown(found[label]),
                shown(gain) if label != BASELINE else "",
                bound,
                share,
            ]
        )
    return [row for label in POLICIES for row in rows if row[1] == label]


def shown(values: np.ndarray) -> str:
    error = values.std(ddof=1) / math.sqrt(len(values))
    return f"{values.mean():.3f} ± {error:.3f}"


# -- how long a decision takes ---------------------------------------------------------------------


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


def speed() -> Section:
    yard = cholesky_seconds()
    section = Section(
        f"A decision on {PLACES} places with {READ} readings",
        "python benchmarks/run.py bandits",
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


def run(seeds: int = SEEDS) -> Section:
    section = Section(
        "Looking for the hottest sensor and the slowest road",
        "GPAS_DATA=… python benchmarks/run.py bandits",
        "Mean average regret `R_T / T` ± one standard error over the fields (searches of one field "
        f"with {seeds} draws of the noise are averaged first); noise of 5 % of the prior variance, "
        "δ = 0.1, any sensor next. The difference is paired, to `gp_ucb, β/5`. The bound is "
        "`√(C₁ T β_T γ_T) / T`, with γ_T ≤ F(greedy)/(1 - 1/e). Intel: 50 motes, every half-hour "
        "of the last third (48), covariance of the first two thirds (95 half-hours), T = 50; the "
        "prior mean is that of each mote, or one for all. San Jose: 325 sensors, 13 Mondays at "
        "17:30, the smallest speed is looked for; graph Matérn kernel and one mean, learned from "
        "the Monday before, what the kernel does not explain as a variance of each sensor's own; "
        "T = 300. `random` takes every sensor once.",
        (
            *("objective", "policy", "after T/5", "after T", "difference"),
            *("bound", "runs below it"),
        ),
    )
    folder = data_folder()
    if folder is None:
        section.text += " **Not run: GPAS_DATA names no folder.**"
    else:
        section.rows += regrets("Intel, own means [°C]", intel(folder), 50, seeds)
        one_mean = intel(folder, own_means=False)
        section.rows += regrets("Intel, one mean [°C]", one_mean, 50, seeds)
        section.rows += regrets("San Jose, slowest [mph]", slowest_roads(folder), 300, seeds)
    return _Both(section, speed())


class _Both(Section):
    """Two parts of a report."""

    def __init__(self, *parts: Section) -> None:
        super().__init__("", "")
        self.parts = parts

    def markdown(self) -> str:
        return "\n".join(part.markdown() for part in self.parts)
