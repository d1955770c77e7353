"""Searches for hot spots on measured fields, and the bounds on their regret."""

from __future__ import annotations

import math
import sys

import numpy as np
from bandit_objectives import Task, intel, search, slowest_roads
from common import Section
from network_data import data_folder

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
    return section
