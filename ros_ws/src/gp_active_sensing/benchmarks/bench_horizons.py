"""Experiment 1 of the paper: initial bounds of an early stopped search, by horizon and budget."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from bench_bounds import BOUNDS, CHOICES
from bench_experiment1 import PUBLISHED, Variant, outcomes_at
from common import Kept, Section

from gp_active_sensing.experiments import mean_of, paired_difference

FIELDS = 100
HORIZONS = (2, 3)
BUDGETS = (5, 10, 15)
"""Readings planned for; each is a mission of its own, read off after all smaller ones, too."""
PATHS = 100
"""Simulated paths a decision; one is N' expansions."""
OTHERS: dict[str, dict[str, Any]] = {
    "random": {"name": "random"},
    "ie": {"name": "ie"},
    "ite": {"name": "ite"},
    "apgd": {"name": "apgd"},
}
AGAINST = ("random", "ie", "ite")
"""The differences to these are shown."""
Values = list[tuple[float, float]]
"""Belief and error of each field, from field 0 on."""


@dataclass(frozen=True)
class Line:
    """A policy with what it plans for.

    Args:
        label: of the initial bounds, or of another policy.
        horizon: N'; 0 of another policy.
        budget: readings planned for.
    """

    label: str
    horizon: int
    budget: int

    @property
    def marks(self) -> tuple[int, ...]:
        """Readings after which it is read off."""
        return tuple(budget for budget in BUDGETS if budget <= self.budget)

    def key(self, made: int, seed: int) -> tuple[object, ...]:
        """What an outcome is kept by."""
        return (self.label, self.horizon, self.budget, PATHS * (self.horizon > 0), made, seed)

    def play(self, seed: int) -> dict[int, tuple[float, float]]:
        """Belief and error after each of `marks` on one field; of `random` the mean of many."""
        if self.horizon:
            policy = {**PUBLISHED, **BOUNDS[self.label], "horizon": self.horizon}
            expansions, draws = PATHS * self.horizon, range(1)
        else:
            policy, expansions = OTHERS[self.label], 1
            draws = range(CHOICES if self.label == "random" else 1)
        variants = [Variant(self.label, policy, expansions, True, self.budget, d) for d in draws]
        played = [outcomes_at(variant, seed, self.marks) for variant in variants]
        means = {made: np.mean([one[made] for one in played], axis=0) for made in self.marks}
        return {made: (float(belief), float(error)) for made, (belief, error) in means.items()}


def lines() -> Iterator[Line]:
    """All lines; what `random` does is the same whatever it plans for."""
    for label in OTHERS:
        for budget in BUDGETS[-1:] if label == "random" else BUDGETS:
            yield Line(label, 0, budget)
    for horizon in HORIZONS:
        for label in BOUNDS:
            yield from (Line(label, horizon, budget) for budget in BUDGETS)


def run(starts: int = FIELDS, kept_only: bool = False) -> Section:
    """Compare initial bounds by horizon and budget; `--kept DIR` keeps what is finished.

    Args:
        starts: fields to play of every line, field by field.
        kept_only: play nothing; every line has the fields that are kept.
    """
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    section = Section(
        f"Experiment 1: initial bounds by horizon and budget, {PATHS} paths a decision",
        "python benchmarks/run.py horizons"
        + (" --kept DIR --kept-only" if kept_only else f" --starts {starts}"),
        "The published draws (S = 10, α = 1 nat) on fields 0, 1, … as many as the column says. "
        "*Planned*: readings that the mission has, each number a mission of its own. *Read*: "
        "after so many it is read off. Places have random numbers, the same for every line, so "
        "that equal values fall anywhere. Belief: on ℓ = 1, which is true. Mean ± s.e. over "
        "fields; differences are of RMSPE, paired on the fields that both have: to `random`, the "
        f"mean of {CHOICES} random choices on each field, and to `ie` and `ite` with as many "
        "readings planned and read.",
        ("policy", "N'", "planned", "read", "fields", "belief", "RMSPE",
         *(f"against {name}" for name in AGAINST)),
    )  # fmt: skip
    kept = Kept("horizons", 6)
    if not kept_only:
        for seed in range(starts):
            for line in lines():
                play(kept, line, seed)
    for line in lines():
        for made in line.marks:
            values = kept_values(kept, line, made)
            if len(values) > 1:
                found = (against(kept, values, name, line.budget, made) for name in AGAINST)
                label = line.label if not line.horizon else f"bal, draws, {line.label}"
                planned = "any" if line.label == "random" else line.budget
                section.rows.append(
                    (
                        *(label, line.horizon or "", planned, made, len(values)),
                        *(mean_of([v[i] for v in values]) for i in (0, 1)),
                        *found,
                    )
                )
    return section


def play(kept: Kept, line: Line, seed: int) -> None:
    """Play a line on a field, where one of its marks is not kept."""
    played = cache(lambda: line.play(seed))
    for made in line.marks:
        kept.get(line.key(made, seed), lambda made=made: played()[made])


def kept_values(kept: Kept, line: Line, made: int) -> Values:
    """Return what is kept of a line, from field 0 on."""
    seeds = itertools.takewhile(lambda seed: line.key(made, seed) in kept, itertools.count())
    return [kept[line.key(made, seed)] for seed in seeds]


def against(kept: Kept, values: Values, name: str, budget: int, made: int) -> object:
    """Difference of RMSPE to another policy on the fields that both have."""
    other = kept_values(kept, Line(name, 0, BUDGETS[-1] if name == "random" else budget), made)
    pairs = [(mine[1], its[1]) for mine, its in zip(values, other, strict=False)]
    if len(pairs) < 2:
        return "–"
    return paired_difference(*(list(column) for column in zip(*pairs, strict=True)))
