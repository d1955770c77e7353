"""Compare predictions of beliefs with those of other predictors, at places without a reading."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np
from belief_data import KEY, data_sets
from belief_trials import (
    BAL,
    CONSTANT,
    EXPANSIONS,
    HINDSIGHT,
    SCIKIT,
    SITES,
    SPARE,
    Trial,
    has_scikit_learn,
    trials,
)
from common import Report, Section
from network_data import data_folder

from gp_active_sensing.belief import BeliefConfig

COUNTS, DRAWS = (10, 20, 40, 60, 120), 13
QUICK_COUNTS, QUICK_DRAWS = (10, 20, 60), 3
ROUTE_COUNTS, ROUTE_DRAWS = (20, 60), 10
PROCESSES = 2
DEFAULT, OLD = "default", "old default"
CONFIGS = {DEFAULT: BeliefConfig(), OLD: BeliefConfig(kernel="se", place_std=(0.0,))}
COMMAND = "GPAS_DATA=… python benchmarks/run.py beliefs"
WHERE = {
    "places": "random places",
    "random": "routes of `random`",
    "bal": "routes of `bal`",
}


class Results:
    """Trials by data set, site, number of readings and predictor."""

    def __init__(self, found: Sequence[Trial]) -> None:
        self._by: dict[tuple[str, str, int, str], list[Trial]] = {}
        for trial in sorted(found, key=lambda t: t.number):
            key = (trial.name, trial.site, trial.k, trial.predictor)
            self._by.setdefault(key, []).append(trial)
        self.names = list(dict.fromkeys(t.name for t in found))
        self.sites = [s for s in SITES if any(t.site == s for t in found)]
        self.counts = sorted({t.k for t in found})
        self.predictors = list(dict.fromkeys(t.predictor for t in found))

    def of(self, name: str, site: str, k: int, predictor: str) -> list[Trial]:
        """Return the trials of a predictor in the order of the fields' numbers."""
        return self._by.get((name, site, k, predictor), [])

    def cells(self) -> list[tuple[str, str, int]]:
        """Return each (data set, site, number of readings) that has trials."""
        found = [(n, s, k) for s in self.sites for k in self.counts for n in self.names]
        return [cell for cell in found if self.of(*cell, self.predictors[0])]

    def rmse(self, name: str, site: str, k: int, predictor: str) -> np.ndarray:
        return np.array([t.score.rmse for t in self.of(name, site, k, predictor)])

    def ratios(self, name: str, site: str, k: int, predictor: str) -> np.ndarray:
        """Return the RMSE of each trial, divided by the RMSE of the constant prediction."""
        base = np.maximum(self.rmse(name, site, k, CONSTANT), 1e-300)
        return np.asarray(self.rmse(name, site, k, predictor) / base)

    def nlpd(self, name: str, site: str, k: int, predictor: str) -> float:
        return float(np.mean([t.score.nlpd for t in self.of(name, site, k, predictor)]))

    def covered(self, name: str, site: str, k: int, predictor: str) -> float:
        """Return the fraction of true values inside their intervals, over all trials."""
        some = [t.score for t in self.of(name, site, k, predictor)]
        return float(np.average([s.covered for s in some], weights=[s.places for s in some]))


def gather(
    configs: Mapping[str, BeliefConfig],
    counts: Sequence[int],
    draws: int,
    *,
    site: str = SITES[0],
) -> list[Trial]:
    """Return all trials for one selection of places.

    Each task builds its map again. Therefore a task has many trials.
    """
    from joblib import Parallel, delayed

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the worker processes
    pieces = np.array_split(np.arange(draws), max(1, draws // 5))
    tasks = [
        (name, piece.tolist(), tuple(counts), dict(configs), site)
        for name in data_sets()
        for piece in pieces
    ]
    parts = Parallel(n_jobs=PROCESSES)(delayed(_quiet_trials)(*task) for task in tasks)
    return [trial for part in parts for trial in part]


def _quiet_trials(
    name: str,
    numbers: Sequence[int],
    counts: Sequence[int],
    configs: Mapping[str, BeliefConfig],
    site: str,
) -> list[Trial]:
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    started = time.perf_counter()
    found = trials(name, numbers, counts, configs, site)
    took = time.perf_counter() - started
    sys.stderr.write(f"{name}, {WHERE[site]}, draws {list(numbers)}: {took:.0f} s\n")
    return found


def run(*, quick: bool = False, routes: bool = False) -> Report:
    """Return the report.

    Args:
        quick: True for fewer fields and readings.
        routes: True to also use readings along routes.
    """
    started = time.perf_counter()
    found: list[Trial] = []
    if routes:
        few = QUICK_DRAWS if quick else ROUTE_DRAWS
        for site in SITES[1:]:
            found += gather(CONFIGS, ROUTE_COUNTS, few, site=site)
    else:
        counts, draws = (QUICK_COUNTS, QUICK_DRAWS) if quick else (COUNTS, DRAWS)
        found = gather(CONFIGS, counts, draws)
    minutes = (time.perf_counter() - started) / 60.0
    command = COMMAND + " --quick" * quick + " --routes" * routes
    return report(Results(found), command, minutes)


# -- tables ------------------------------------------------------------------------------------


def report(results: Results, command: str, minutes: float) -> Report:
    sections = [
        summary(results, command, minutes),
        data_section(results, command),
    ]
    for site in results.sites:
        for k in results.counts:
            if any(results.of(name, site, k, CONSTANT) for name in results.names):
                sections += [errors(results, site, k, command), honesty(results, site, k, command)]
    return Report(sections)


EXPLAINED = {
    DEFAULT: "`BeliefConfig()`: nothing configured, and its candidates follow the readings "
    "(`adapt`) after each of them, as in a mission",
    OLD: '`BeliefConfig(kernel="se", place_std=(0.0,))`, a smooth field alone',
    CONSTANT: "the mean of the readings everywhere, their standard deviation as its own",
    SCIKIT: "scikit-learn's `GaussianProcessRegressor` (constant × Matérn 3/2 with a length-scale "
    "for each axis + white noise, `normalize_y`, 4 restarts), fitted on positions to the same "
    "readings; its white part counts as noise, so that its interval of the true value leaves it "
    "out",
    HINDSIGHT: "one Gaussian process with the kernel, length-scale, variance and share of each "
    "place's own that are most likely given all true values of the field and the noise (a grid "
    "search for each field); nobody can know these beforehand",
}


def explained(results: Results) -> str:
    words = [f"**{p}**: {EXPLAINED.get(p, 'a belief under this name')}" for p in results.predictors]
    text = "; ".join(words) + "."
    if SCIKIT not in results.predictors and not has_scikit_learn():
        text += " **scikit-learn is not installed: its columns are left out.**"
    return text


def summary(
    results: Results,
    command: str,
    minutes: float,
) -> Section:
    """Return a table with a line for each selection of places and each number of readings."""
    text = (
        "How well is a place predicted that nobody has read? Each draw takes a field, reads k "
        "places with noise, and predicts the true (noise-free) value of every other place that has "
        "one; all predictors get the same places and the same noise. " + explained(results) + " "
        "*Error* is the root mean square error in those of the constant: below 1 it is of use. "
        f"*In 90 %* is the share of true values inside the central 90 % interval of what was "
        "predicted: .90 is honest, less is boastful. *Worst* is the largest error of a single "
        "draw. Means over data sets, each counted once; a data set takes part where the "
        f"readings leave {SPARE} places. *Seconds*: median from the first reading to the "
        f"prediction after k. "
    )
    if SITES[2] in results.sites:
        text += (
            f"Routes of `bal` are planned with the default belief, {BAL['horizon']} readings "
            f"ahead, {EXPANSIONS} expansions a decision. "
        )
    if data_folder() is None:
        text += "**GPAS_DATA names no folder: the shipped scenarios only.** "
    text += f"Seeds begin with {KEY:#x} and name the data set and draw. {minutes:.0f} min."
    some = results.predictors
    most = [p for p in some if p not in (CONSTANT, HINDSIGHT)]
    header = [
        *("where", "k", "data sets"),
        *(f"error, {p}" for p in some if p != CONSTANT),
        *(f"in 90 %, {p}" for p in some),
        *(f"worst, {p}" for p in most),
        *(f"seconds, {p}" for p in most),
    ]
    rows: list[Sequence[object]] = []
    for site in results.sites:
        for k in results.counts:
            cells = [cell for cell in results.cells() if cell[1:] == (site, k)]
            if not cells:
                continue
            worst = [max(float(results.ratios(*c, p).max()) for c in cells) for p in most]
            mean = [
                float(np.mean([results.ratios(*c, p).mean() for c in cells]))
                for p in some
                if p != CONSTANT
            ]
            inside = [float(np.mean([results.covered(*c, p) for c in cells])) for p in some]
            spent = [
                float(np.median([t.seconds for c in cells for t in results.of(*c, p)]))
                for p in most
            ]
            shown = [f"{v:.2f}" for v in (*mean, *inside, *worst, *spent)]
            rows.append([WHERE[site], k, len(cells), *shown])
    return Section("Beliefs as predictors", command, text, header, rows)


def data_section(results: Results, command: str) -> Section:
    known, rows = data_sets(), []
    for name in results.names:
        one = known[name]
        first = one.field(0)
        draws = {t.number for cell in results.cells() if cell[0] == name
                 for t in results.of(*cell, CONSTANT)}  # fmt: skip
        values = first.values[first.known]
        rows.append(
            (name, one.what, len(draws), first.topology.n, len(values), one.unit,
             f"{values.std():.3g}", f"{first.noise:.3g}")
        )  # fmt: skip
    return Section(
        "Beliefs: the data sets",
        command,
        "Values, spread and noise are those of the first field. A set of one field is drawn with "
        "other places and noise each time. `town_live` needs a running SUMO and is not here.",
        ("data set", "fields", "draws", "places", "with a value", "unit", "spread", "noise"),
        rows,
    )


def errors(results: Results, site: str, k: int, command: str) -> Section:
    some = [p for p in results.predictors if p != CONSTANT]
    rows: list[Sequence[object]] = []
    for name in results.names:
        base = results.rmse(name, site, k, CONSTANT)
        if not len(base):
            continue
        ratios = [results.ratios(name, site, k, p) for p in some]
        rows.append(
            [
                *(name, len(base), f"{base.mean():.3g} {data_sets()[name].unit}"),
                *(f"{r.mean():.2f}" for r in ratios),
                *(f"{r.max():.2f}" for r in ratios),
            ]
        )
    return Section(
        f"Beliefs: error after {k} readings, {WHERE[site]}",
        command,
        "Errors in those of the constant: mean over the draws, then the worst draw.",
        ("data set", "draws", "RMSE of the constant", *some, *(f"worst, {p}" for p in some)),
        rows,
    )


def honesty(results: Results, site: str, k: int, command: str) -> Section:
    """Return a table of coverage and NLPD on each data set after k readings."""
    some = results.predictors
    rows: list[Sequence[object]] = [
        [
            name,
            *(f"{results.covered(name, site, k, p):.2f}" for p in some),
            *(f"{results.nlpd(name, site, k, p):.2f}" for p in some),
        ]
        for name in results.names
        if results.of(name, site, k, CONSTANT)
    ]
    return Section(
        f"Beliefs: uncertainty after {k} readings, {WHERE[site]}",
        command,
        "Share of true values inside the central 90 % interval, then the mean negative log density "
        "of the true value (NLPD, less is better).",
        ("data set", *(f"in 90 %, {p}" for p in some), *(f"NLPD, {p}" for p in some)),
        rows,
    )
