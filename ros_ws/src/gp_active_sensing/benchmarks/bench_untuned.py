"""A probe nobody has tuned: fields of several length-scales, nothing configured.

Every mission is scored with what the project believed on its readings, with the hyper-parameters
the field was drawn with, and with point estimates on the same readings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from common import Section
from untuned_missions import (
    BUDGETS,
    EXPANSIONS,
    LEVELS,
    MAPS,
    NOISE,
    POLICIES,
    SIDE,
    TRUE,
    Mission,
    missions,
)

TUNED = 3.0
"""The length-scale of the main table [m]."""
TITLES = {"adjacent": "8-neighbour moves", "free": "free choice"}
QUICK = ("bal N'=2", "ie", "max_entropy", "random")
DEEP_FIELDS = 10
FIELDS = {3.0: 40, 1.0: 10, 6.0: 10, 12.0: 10}
LOST, RUNAWAY = 0.9, (0.5, 2.0 * SIDE)
"""RMSE in field deviations of a run that learnt nothing; length-scales that have run away [m]."""


@dataclass
class Report:
    """Several tables."""

    sections: list[Section]

    def markdown(self) -> str:
        return "\n".join(section.markdown() for section in self.sections)


def gather(fields: dict[float, int] = FIELDS, first: int = 0) -> list[Mission]:
    """All missions, two fields at a time; `first` begins the numbers of the fields elsewhere."""
    from joblib import Parallel, delayed

    tasks: list[tuple[float, int, tuple[str, ...], str]] = []
    for ell, count in fields.items():
        for number in range(count):
            names = tuple(POLICIES) if number < DEEP_FIELDS and ell == TUNED else QUICK
            tasks.append((ell, first + number, names, "adjacent"))
            if ell == TUNED:
                tasks.append((ell, first + number, QUICK, "free"))
    found = Parallel(n_jobs=2)(delayed(missions)(*task) for task in tasks)
    return [mission for part in found for mission in part]


def by_field(some: list[Mission], values: Sequence[float]) -> list[float]:
    """Means over the policies of each field: what is independent."""
    fields = np.array([m.field for m in some])
    return [float(np.asarray(values)[fields == f].mean()) for f in np.unique(fields)]


def shown(values: Sequence[float] | np.ndarray) -> str:
    array = np.asarray(values)
    return f"{array.mean():.3f} ± {array.std(ddof=1) / np.sqrt(len(array)):.3f}"


def group(found: list[Mission], ell: float, moves: str) -> Iterator[tuple[str, int, list[Mission]]]:
    """Policy, budget and missions, in the order of `POLICIES`."""
    for name, budget in product(POLICIES, BUDGETS):
        wanted = (ell, moves, name, budget)
        some = [m for m in found if (m.ell, m.moves, m.policy, m.readings) == wanted]
        if not some:
            continue
        yield name, budget, some


def quality_row(name: str, budget: int, some: list[Mission]) -> list[object]:
    rmse = {kind: np.array([m.scores[kind].rmse for m in some]) for kind in MAPS}
    limit = LOST * np.array([m.deviation for m in some])
    lost = {kind: rmse[kind] >= limit for kind in MAPS}
    cells: list[object] = [name, budget, len(some), shown(rmse["belief"])]
    cells += [shown(rmse[kind]) for kind in TRUE]
    cells += [f"{100 * (rmse['belief'].mean() / rmse[kind].mean() - 1):+.1f} %" for kind in TRUE]
    cells += [int(lost["belief"].sum()), int((lost["belief"] & lost[TRUE[0]]).sum())]
    median = float(np.median([m.seconds[0] for m in some]))
    return [
        *cells,
        int(lost[TRUE[0]].sum()),
        f"{median:.4f} / {max(m.seconds[1] for m in some):.2f}",
    ]


QUALITY = (
    "policy", "readings", "fields", "RMSE untuned", "RMSE true, mean 0", "RMSE true, mean unknown",
    "untuned / mean 0", "untuned / unknown", "lost", "of these lost with truth", "lost with truth",
    "s a decision",
)  # fmt: skip


def run(fields: dict[float, int] = FIELDS, first: int = 0) -> Report:
    started = time.perf_counter()
    found = gather(fields, first)
    took = time.perf_counter() - started
    command = "python benchmarks/run.py untuned"
    sections: list[Section] = []
    deep = range(first, first + DEEP_FIELDS)
    for ell in fields:
        for moves in ("adjacent", "free"):
            parts = list(group(found, ell, moves))
            if ell == TUNED and moves == "adjacent":
                # What the longer horizons are to be compared with.
                parts += [
                    (f"{name}, first {DEEP_FIELDS}", budget, [m for m in some if m.field in deep])
                    for name, budget, some in parts
                    if name in QUICK
                ]
            rows = [quality_row(*part) for part in parts]
            if rows:
                sections.append(
                    Section(f"Untuned: ℓ = {ell:g} m, {TITLES[moves]}", command, "", QUALITY, rows)
                )
    sections[0].text = (
        f"Fields on {SIDE} × {SIDE} m, 1-m grid, σ² = 1, noise {NOISE:g}; `BeliefConfig()`, which "
        "starts with 24 candidates; starts are random, keyed by the field, as are the draws of the "
        f"field. bal ends a decision after {EXPANSIONS} expansions or at a gap of 0.1 nat. RMSE "
        "over the places not observed, against the noise-free field, mean ± s.e.; the same "
        "readings scored with the hyper-parameters that the field was drawn with, and what the "
        "mean untuned is above those. `lost`: runs with RMSE ≥ "
        f"{LOST:g} of the field's own deviation, and how many of them (and of all) are lost with "
        "the true hyper-parameters and mean 0 as well. s a decision: median / largest, two "
        f"processes at work. All of this took {took / 60.0:.1f} min."
    )
    sections.append(per_field(found, command))
    for moves in ("adjacent", "free"):
        sections.append(point_estimates(found, moves, command))
    return Report(sections)


def per_field(found: list[Mission], command: str) -> Section:
    """RMSE of every field at the larger budget."""
    most, columns = max(BUDGETS), {}
    for name, budget, some in group(found, TUNED, "adjacent"):
        if budget == most:
            columns[name] = {m.field: m for m in some}
    section = Section(
        f"Untuned: every field, ℓ = {TUNED:g} m, 8-neighbour moves, {most} readings",
        command,
        "RMSE untuned / with the true hyper-parameters and mean 0, on the same readings.",
        ("field", "its deviation", *columns),
    )
    for field, mission in columns[QUICK[0]].items():
        row: list[object] = [field, f"{mission.deviation:.2f}"]
        for column in columns.values():
            scores = column[field].scores if field in column else None
            pair = scores and (scores["belief"].rmse, scores[TRUE[0]].rmse)
            row.append(f"{pair[0]:.2f} / {pair[1]:.2f}" if pair else "–")
        section.rows.append(row)
    return section


def point_estimates(found: list[Mission], moves: str, command: str) -> Section:
    section = Section(
        f"Untuned: the belief against point estimates on the same readings, {TITLES[moves]}",
        command,
        f"Readings of {', '.join(QUICK)} together; mean ± s.e. over fields, in brackets the paired "
        "difference to the belief. `arg-max`: the candidate with the largest weight instead of the "
        "belief. `likelihood`: length-scale, signal and noise by maximum likelihood (L-BFGS from 8 "
        "starts, mean profiled, no bounds). NLPD at the noise-free field, mean and largest of a "
        "run; share of places whose value lies in the central interval of the normal with the "
        "map's mean and variance. `fitted ℓ`: smallest … largest; `ran away`: below half the "
        "spacing / above twice the extent.",
        (
            "ℓ", "readings", "runs", "map", "RMSE", "lost", "NLPD", "largest NLPD",
            *(f"in {100 * p:g} %" for p in LEVELS), "fitted ℓ m", "ran away",
        ),
    )  # fmt: skip
    for ell, budget in product(FIELDS, BUDGETS):
        where = (ell, moves, budget)
        mine = [m for m in found if (m.ell, m.moves, m.readings) == where and m.policy in QUICK]
        for kind in MAPS if mine else ():
            rmse, worth = (compared(mine, kind, key) for key in ("rmse", "nlpd"))
            lost = sum(m.scores[kind].rmse >= LOST * m.deviation for m in mine)
            covered = np.mean([m.scores[kind].covered for m in mine], axis=0)
            fitted, away = "–", "–"
            if kind == "likelihood":
                ells = np.array([m.fitted for m in mine])
                fitted = f"{ells.min():.2g} … {ells.max():.2g}"
                away = f"{(ells < RUNAWAY[0]).sum()} / {(ells > RUNAWAY[1]).sum()}"
            section.rows.append(
                (
                    *(f"{ell:g}", budget, len(mine), kind, rmse, lost, worth),
                    max(m.scores[kind].nlpd for m in mine),
                    *(f"{100 * c:.0f} %" for c in covered),
                    *(fitted, away),
                )
            )
    return section


def compared(some: list[Mission], kind: str, key: str) -> str:
    """Mean of a score, and its difference to the belief's."""
    values = [getattr(m.scores[kind], key) for m in some]
    text = shown(by_field(some, values))
    if kind == "belief":
        return text
    more = [v - getattr(m.scores["belief"], key) for v, m in zip(values, some, strict=True)]
    return f"{text} ({shown(by_field(some, more))})"
