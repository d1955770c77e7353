"""Searches for hot spots on measured fields, and the bounds on their regret."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bandit_objectives import Task, intel, intel_ten_days, search, slowest_roads
from common import Section
from network_data import data_folder

POLICIES = {
    "gp_ucb": {"name": "gp_ucb"},
    "gp_ucb, β/5": {"name": "gp_ucb", "scale": 5.0},
    "ei": {"name": "ei"},
    "ei, best reading": {"name": "ei", "incumbent": "reading"},
    "pi": {"name": "pi"},
    "pi, best reading": {"name": "pi", "incumbent": "reading"},
    "mean_only": {"name": "mean_only"},
    "variance_only": {"name": "variance_only"},
    "thompson": {"name": "thompson"},
    "est": {"name": "est"},
    "random": {"name": "random"},
}
BASELINE = "gp_ucb, β/5"
SEEDS = 1
"""Draws of the noise for each field: fields are many, draws of one of them are alike."""

Set = tuple[str, Callable[[Path], list[Task]], int, int]
"""Name, its tasks, readings T of a search, and length of a block [tasks]."""
SETS: tuple[Set, ...] = (
    ("Intel, own means [°C]", intel, 50, 8),
    ("Intel, one mean [°C]", lambda folder: intel(folder, own_means=False), 50, 8),
    ("Intel ten days, own means [°C]", intel_ten_days, 50, 6),
    ("San Jose, slowest [mph]", slowest_roads, 300, 1),
)


class Kept:
    """Searches that are done: with ``GPAS_KEPT`` in the file ``bandits.jsonl`` of that folder."""

    def __init__(self) -> None:
        folder = os.environ.get("GPAS_KEPT")
        self.path = None if folder is None else Path(folder) / "bandits.jsonl"
        self.done: dict[str, dict[str, Any]] = {}
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_file():
                lines = self.path.read_text(encoding="utf-8").splitlines()
                self.done = {line["key"]: line for line in map(json.loads, lines)}

    def search(self, name: str, label: str, task: Task, readings: int, seed: int) -> dict[str, Any]:
        """Return early and final average regret and the bound of a search, done now or before."""
        key = "|".join([name, label, task.name, str(readings), str(seed)])
        if key not in self.done:
            found = search(task, POLICIES[label], readings, seed)
            early = float(found.average[readings // 5 - 1])
            final = float(found.average[-1])
            self.done[key] = {"key": key, "early": early, "final": final, "bound": found.bound}
            if self.path is not None:
                with self.path.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(self.done[key]) + "\n")
        return self.done[key]


def block_error(values: np.ndarray, length: int) -> float:
    """Standard error of the mean of values in a row that resemble their neighbours.

    The means of consecutive blocks are taken as independent, their standard deviation over the root
    of their number is the error. The last block may be shorter; it is left out where it is less
    than half of one.

    Args:
        values: (n,) in the order of time.
        length: of a block.
    """
    cuts = np.split(values, np.arange(length, len(values), length))
    means = np.array([cut.mean() for cut in cuts if 2 * len(cut) >= length])
    if len(means) < 2:
        msg = f"expected values for two blocks of {length} or more, got {len(values)}"
        raise ValueError(msg)
    return float(means.std(ddof=1) / math.sqrt(len(means)))


def effective_number(values: np.ndarray, length: int) -> float:
    """Return of how many independent values the mean would have the error that blocks show.

    ``s² / e²`` with the standard deviation s of the values and the error e over blocks, at most
    their number.
    """
    error = block_error(values, length)
    if error == 0.0:
        return float(len(values))
    return min(float(values.var(ddof=1)) / error**2, float(len(values)))


def shown(values: np.ndarray, length: int) -> str:
    return f"{values.mean():.3f} ± {block_error(values, length):.3f}"


def regrets(
    name: str, tasks: Sequence[Task], readings: int, length: int, seeds: int, kept: Kept
) -> list[list[object]]:
    """A row a policy: average regret, difference to the baseline, runs below the bound."""
    final: dict[str, np.ndarray] = {}
    rows: list[list[object]] = []
    for label in [BASELINE, *(p for p in POLICIES if p != BASELINE)]:
        sys.stderr.write(f"{name}: {label}\n")
        found = [[kept.search(name, label, t, readings, s) for s in range(seeds)] for t in tasks]
        # Searches of one field are alike: errors are taken over the fields, and these in blocks.
        final[label] = np.array([[o["final"] for o in each] for each in found]).mean(axis=1)
        early = np.array([[o["early"] for o in each] for each in found]).mean(axis=1)
        bounded = [o for each in found for o in each if o["bound"] is not None]
        below = sum(o["final"] * readings <= o["bound"] for o in bounded)
        gain = final[label] - final[BASELINE]
        base = label == BASELINE
        rows.append(
            [
                name,
                label,
                shown(early, length),
                shown(final[label], length),
                "" if base else shown(gain, length),
                "" if base else f"{effective_number(gain, length):.0f} of {len(gain)}",
                float(np.mean([o["bound"] for o in bounded])) / readings if bounded else "",
                f"{below} of {len(bounded)}" if bounded else "",
            ]
        )
    return [row for label in POLICIES for row in rows if row[1] == label]


def run(seeds: int = SEEDS) -> Section:
    section = Section(
        "Looking for the hottest sensor and the slowest road",
        "GPAS_DATA=… python benchmarks/run.py bandits --kept FOLDER",
        "Mean average regret `R_T / T` ± one standard error (draws of the noise for each field: "
        f"{seeds}); noise of 5 % of the prior variance, "
        "δ = 0.1, any sensor next. The difference is paired, to `gp_ucb, β/5`. Fields that follow "
        "each other in time are alike: errors are those of the means of consecutive blocks, and "
        "`effective` says of how many independent fields the difference would have that error. "
        "`ei` and `pi` want to improve on the largest posterior mean, with `best reading` on the "
        "best average reading of a sensor. The bound is "
        "`√(C₁ T β_T γ_T) / T`, with γ_T ≤ F(greedy)/(1 - 1/e). Intel: 50 motes, every half-hour "
        "of the last third (48, all of one day, 6 blocks of 8), covariance of the first two thirds "
        "(95 half-hours), T = 50; the prior mean is that of each mote, or one for all. Intel ten "
        "days: the 40 motes without a fault in 288 bins of 50 minutes, every other one of the last "
        "96 (80 hours, 8 blocks of 6), covariance and means of the first 192. "
        "San Jose: 325 sensors, 13 Mondays at 17:30 (a block each), the smallest speed "
        "is looked for; graph Matérn kernel and one mean, learned from the Monday before, what the "
        "kernel does not explain as a variance of each sensor's own; T = 300. `random` takes every "
        "sensor once.",
        (
            *("objective", "policy", "after T/5", "after T", "difference", "effective"),
            *("bound", "runs below it"),
        ),
    )
    folder = data_folder()
    if folder is None:
        section.text += " **Not run: GPAS_DATA names no folder.**"
        return section
    kept = Kept()
    for name, tasks, readings, length in SETS:
        section.rows += regrets(name, tasks(folder), readings, length, seeds, kept)
    return section
