"""Experiment 1 of the paper: what the initial bounds of an early stopped search make it explore."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bench_experiment1 import FIELDS, PUBLISHED, READINGS, Variant, outcome
from common import Kept, Section

from gp_active_sensing.experiments import mean_of, paired_difference
from gp_active_sensing.experiments.figures import COLOURS, STYLE

CHOICES = 20
"""Random choices of places a field that `random` is the mean of."""
LONG = 15
"""Readings planned for where bounds and paths are compared, as `bal_1d_bounds` does."""
PATHS = (50, 100, 200, 400, 800)
"""Simulated paths a decision; one is three expansions at N' = 3."""
BOUNDS: dict[str, dict[str, Any]] = {
    "tight": {},
    "loosened by 1 H(b)": {"loosening": 1.0},
    "loosened by 2 H(b)": {"loosening": 2.0},
    "loosened by 4 H(b)": {"loosening": 4.0},
    "constant": {"bounds": "constant"},
}


Values = tuple[list[float], list[float]]
"""Beliefs (fields,) and errors (fields,) of one line."""
Curves = dict[tuple[str, bool], list[tuple[int, list[float], list[float]]]]
"""Of each line, renamed or not: paths, beliefs, errors."""


def run(starts: int = FIELDS, pictures: Path | None = None, kept_only: bool = False) -> Section:
    """Compare initial bounds and numbers of paths; `--kept DIR` keeps what is finished.

    Args:
        starts: fields to play of every line.
        pictures: folder for the picture.
        kept_only: play nothing; every line has the fields that are kept, and lines of fewer than
            `FIELDS` are left out, and the text says so.
    """
    section = Section(
        f"Experiment 1: initial bounds and simulated paths, the belief after {READINGS} readings",
        "python benchmarks/run.py bounds" + (" --kept DIR --kept-only" if kept_only else ""),
        f"The published draws (S = 10, N' = 3, α = 1 nat) on fields 0, 1, … as many as the column "
        f"before the belief says, {LONG} "
        f"readings planned for and {READINGS} made. Belief: on ℓ = 1, which is true. Equal values "
        "are settled by the lowest number of a place. *In order*: numbers follow the line, so that "
        "a choice without a reason reads neighbours, which tells ℓ = 1 from the others by luck. "
        "*Renamed*: places have random numbers, the same for every line. Mean ± s.e. over fields; "
        "the difference to `random` is paired, "
        f"with the mean of {CHOICES} random choices on each field.",
        ("initial bounds", "paths", "fields", "belief, in order", "RMSPE", "against random",
         "fields", "belief, renamed", "RMSPE", "against random"),
    )  # fmt: skip
    kept = Kept("bounds", 4)
    reference: list[float] = []
    curves: Curves = {}
    left_out = 0
    for label in BOUNDS:
        for paths in PATHS:
            row: list[object] = [label, paths]
            for renamed in (False, True):
                fields = complete(kept, label, paths, renamed) if kept_only else starts
                if fields < (FIELDS if kept_only else 1):
                    left_out += 1
                    row += [0, "–", "–", "–"]
                    continue
                reference += random_errors(kept, len(reference), fields)
                found = outcomes(kept, label, paths, renamed, fields)
                curves.setdefault((label, renamed), []).append((paths, *found))
                difference = paired_difference(found[1], reference[:fields])
                row += [fields, mean_of(found[0]), mean_of(found[1]), difference]
            if any(row[2::4]):
                section.rows.append(row)
    if left_out:
        every = 2 * len(BOUNDS) * len(PATHS)
        section.text += f" {left_out} of {every} lines (in order and renamed) were not played."
    if changes := list(later(curves)):
        section.text += (
            f" Belief with {PATHS[-1]} paths less that with 200, renamed, paired: "
            f"{', '.join(changes)}."
        )
    if pictures is not None:
        draw(curves, reference, pictures / "bal_1d_bounds.png")
    return section


def later(curves: Curves, before: int = 200) -> Iterator[str]:
    """Yield for each kind of bounds what the belief is with most paths, less that with fewer."""
    for label in BOUNDS:
        beliefs = {paths: found for paths, found, _ in curves.get((label, True), [])}
        first, last = beliefs.get(before, []), beliefs.get(PATHS[-1], [])
        both = min(len(first), len(last))
        if both > 1 and before != PATHS[-1]:
            yield f"{paired_difference(last[:both], first[:both])} ({label})"


def random_errors(kept: Kept, first: int, end: int) -> list[float]:
    """(end − first,) the mean RMSPE of `random` on each field, over `CHOICES` choices of places."""
    return [
        kept.get(("random", CHOICES, True, seed), lambda s=seed: random_outcome(s))[1]
        for seed in range(first, end)
    ]


def random_outcome(seed: int) -> tuple[float, float]:
    """Mean belief and mean RMSPE of random choices on one field."""
    variants = [Variant("", {"name": "random"}, 1, True, LONG, d) for d in range(CHOICES)]
    belief, error = np.mean([outcome(variant, seed) for variant in variants], axis=0)
    return float(belief), float(error)


def outcomes(kept: Kept, label: str, paths: int, renamed: bool, fields: int) -> Values:
    """Beliefs and errors (fields,) of one line, played where they are not kept."""
    policy = {**PUBLISHED, **BOUNDS[label]}
    rows = []
    for seed in range(fields):
        variant = Variant(label, policy, 3 * paths, renamed, LONG)
        rows.append(
            kept.get((label, 3 * paths, renamed, seed), lambda v=variant, s=seed: outcome(v, s))
        )
    return [share for share, _ in rows], [error for _, error in rows]


def complete(kept: Kept, label: str, paths: int, renamed: bool) -> int:
    """How many fields of a line are kept, from the first on."""
    seeds = itertools.count()
    return next(seed for seed in seeds if (label, 3 * paths, renamed, seed) not in kept)


def draw(
    curves: Curves,
    reference: list[float],
    target: Path,
) -> None:
    """Draw belief and RMSPE against paths: full lines renamed, dashed in order."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.9))
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, 2)
        colours = dict(zip(BOUNDS, COLOURS, strict=False))
        for (label, renamed), lines in curves.items():
            paths = [line[0] for line in lines]
            for panel, which in zip(panels, (1, 2), strict=True):
                values = [mean_of(line[which]) for line in lines]
                mean = np.array([value.mean for value in values])
                error = np.array([value.error for value in values])
                style = "-" if renamed else "--"
                panel.plot(
                    paths, mean, style, color=colours[label], marker="o", markersize=3,
                    label=label if renamed else None,
                )  # fmt: skip
                if renamed:
                    panel.fill_between(
                        paths, mean - error, mean + error, color=colours[label], alpha=0.15, lw=0
                    )
        panels[0].axhline(0.88, color="#888888", linewidth=0.8, linestyle=":")
        panels[0].text(PATHS[-1], 0.89, "the paper", ha="right", va="bottom", color="#666666")
        panels[1].axhline(float(np.mean(reference)), color="#888888", lw=0.8, ls=":")
        panels[1].text(PATHS[0], float(np.mean(reference)), "random", va="bottom", color="#666666")
        for panel in panels:
            panel.set(xscale="log", xlabel="Simulated paths a decision")
            panel.set_xticks(PATHS, [str(p) for p in PATHS])
            panel.minorticks_off()
        panels[0].set(ylabel="Belief on ℓ = 1", ylim=(0, 1.02))
        panels[1].set(ylabel="RMSPE")
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=len(BOUNDS),
            fontsize=8,
        )
        figure.suptitle(
            f"After {READINGS} readings, by initial bounds: places renamed at random (—), in order "
            "(- -)",
            fontsize=9,
        )
        figure.savefig(target, dpi=150, metadata={"Software": None})
