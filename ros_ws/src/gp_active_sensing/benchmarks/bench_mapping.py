"""Who maps a field best for its metres: any policy, and other people's planners, on equal terms.

Same fields, starts, noise and metres for all; the default belief, so that nothing is tuned.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from adapters import environments
from common import Section
from mapping_fields import FREE, MOVES, QUICK, Arena, arenas
from mapping_runs import DENSEST, EVENLY, LEVELS, MOST_ROUTES, Task, play
from network_data import data_folder

from gp_active_sensing.errors import ActiveSensingError, ConfigError
from gp_active_sensing.planning import build_policy
from gp_active_sensing.util.yaml_files import load_yaml

BUDGETS, STARTS, DRAWS = (60, 120, 240), 10, 40
QUICK_BUDGETS, QUICK_STARTS, QUICK_DRAWS = (60,), 2, 2
EXPANSIONS = 500
"""Limit of a decision, as `run` has it where a scenario says none."""
FEW = {("bal", FREE): 1}
"""Where it is another one: there an expansion takes seconds."""
AHEAD = {MOVES: 3, FREE: 2}
"""Readings that `bal` looks ahead."""
REFERENCE = "bal"
POLICIES: dict[str, dict[str, Any]] = {
    "tour": {"name": "tour"},
    "bal map_error + tail": {"name": "bal", "objective": "map_error", "tail": "route"},
    "bal map_error": {"name": "bal", "objective": "map_error"},
    "integrated_variance": {"name": "integrated_variance"},
    "bal": {"name": "bal"},
    "mutual_information": {"name": "mutual_information"},
    "ie": {"name": "ie"},
    "max_entropy": {"name": "max_entropy"},
    "random": {"name": "random"},
    "lawnmower": {"name": "lawnmower"},
    "spread": {"name": "spread"},
    EVENLY: {"name": EVENLY},
}
"""By label: what is compared. Other people's planners come with `adapters`."""
ROWS = ("lawnmower", DENSEST, EVENLY)
"""What has no meaning on roads."""
COMMAND = "GPAS_DATA=… python benchmarks/run.py mapping"
KEPT = "mapping.jsonl"
Row = Mapping[str, Any]


@dataclass
class Report:
    """Several tables."""

    sections: list[Section] = field(default_factory=list)

    def markdown(self) -> str:
        return "\n".join(section.markdown() for section in self.sections)


def run(
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    policies: str = "",
    own: Path | None = None,
    starts: int | None = None,
    budgets: str = "",
    processes: int = 1,
    reference: str = REFERENCE,
    pictures: Path | None = None,
    kept_only: bool = False,
) -> Report:
    """All missions that are asked for, and their tables.

    Args:
        quick: a few data sets, draws and one budget.
        only: data sets by a part of their names, or of "name/mode".
        policies: labels, with commas between them; "" = all.
        own: YAML file of more policies, label: configuration.
        starts: draws of each data set.
        budgets: in moves, with commas between them.
        processes: at work.
        reference: label of the policy that the others are compared with.
        pictures: folder for a picture of each data set on a grid: the first draw, the first
            policies, map, way and error.
        kept_only: play nothing; the tables are of what ``--kept`` has.
    """
    began = time.perf_counter()
    known = POLICIES | environments() | ({} if own is None else dict(load_yaml(own)))
    labels = _words(policies) or list(known)
    if unknown := [label for label in labels if label not in known]:
        msg = f"--policies: unknown {', '.join(unknown)}; known are {', '.join(known)}"
        raise ConfigError([msg])
    usable, skipped = able({label: known[label] for label in labels})
    draws = (QUICK_STARTS, QUICK_DRAWS) if quick else (STARTS, DRAWS)
    places = chosen(arenas(*(draws if starts is None else (starts, starts))), only, quick)
    moves = [int(word) for word in _words(budgets)] or list(QUICK_BUDGETS if quick else BUDGETS)
    tasks = [
        task_of(one, k, number, label, policy)
        for number in range(max((one.draws for one in places), default=0))
        for k in moves
        for one in places
        for label, policy in usable.items()
        if number < one.draws and not (one.roads and policy["name"] in ROWS)
    ]
    rows, failed = gather(tasks, processes, play_them=not kept_only)
    minutes = (time.perf_counter() - began) / 60.0
    if pictures is not None:
        from mapping_pictures import draw

        draw(rows, pictures)
    shown = list(usable)
    if EVENLY in shown:
        shown.insert(shown.index(EVENLY), DENSEST)
    results = Results([*rows, *densest(rows)], shown, places, moves, reference)
    return report(results, skipped, failed, minutes)


def task_of(place: Arena, moves: int, number: int, label: str, policy: Mapping[str, Any]) -> Task:
    """The mission of a policy, with as much computing as it may have there."""
    if policy["name"] == "bal" and "horizon" not in policy:
        policy = {**policy, "horizon": AHEAD[place.mode]}
    limit = FEW.get((policy["name"], place.mode), EXPANSIONS)
    return Task(place.name, place.mode, moves, number, label, json.dumps(policy), limit)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def chosen(
    known: Mapping[tuple[str, str], Arena], wanted: Sequence[str], quick: bool
) -> list[Arena]:
    """Return the arenas that are asked for.

    Raises:
        ConfigError: a word that fits none.
    """
    found = [one for one in known.values() if wanted or not quick or (one.name, one.mode) in QUICK]
    if not wanted:
        return found
    fitting = {w: [o for o in found if w.lower() in f"{o.name}/{o.mode}".lower()] for w in wanted}
    if nothing := [word for word, some in fitting.items() if not some]:
        names = "; ".join(f"{name}/{mode}" for name, mode in known)
        msg = f"--only: nothing is called {', '.join(nothing)}; there are {names}"
        raise ConfigError([msg])
    some = [one for ones in fitting.values() for one in ones]
    return [one for one in found if one in some]


def able(known: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the policies that there are, and why not, for the others."""
    usable: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    for label, policy in known.items():
        try:
            if "missing" in policy:
                skipped[label] = str(policy["missing"])
                continue
            if policy["name"] != EVENLY:
                build_policy(policy)
            usable[label] = dict(policy)
        except ActiveSensingError as error:
            skipped[label] = str(error).split(" Registered:")[0].strip().replace("\n", " ")
    return usable, skipped


# -- missions ----------------------------------------------------------------------------------


def gather(
    tasks: Sequence[Task], processes: int, *, play_them: bool = True
) -> tuple[list[Row], dict[str, str]]:
    """Play what is not kept yet; return the rows of all tasks, and why some have none.

    With ``--kept FOLDER`` each row is written there as it comes, and not played again.
    """
    folder = os.environ.get("GPAS_KEPT")
    file = None if folder is None else Path(folder) / KEPT
    kept = {} if file is None else read(file)
    missing = [task for task in tasks if task.key not in kept] if play_them else []
    sys.stderr.write(f"{len(missing)} missions to be played, {len(tasks) - len(missing)} kept\n")
    failed: dict[str, str] = {}
    began = time.perf_counter()

    def take(task: Task, outcome: Any) -> None:
        """Keep what came of a task, or why nothing did."""
        where = f"{task.label}, {task.name} ({task.mode}), {task.moves} moves"
        try:
            row = outcome()
        except Exception as error:  # one mission must not end the others
            failed.setdefault(where, f"{type(error).__name__}: {error}")
            sys.stderr.write(f"{where}, draw {task.number}: {error!r}\n")
            return
        kept[task.key] = row
        if file is not None:
            append(file, row)
        spent = time.perf_counter() - began
        sys.stderr.write(f"{spent:.0f} s: {where}, draw {task.number}: {row['rmse']:.4g}\n")

    if processes <= 1:
        for task in missing:
            take(task, lambda task=task: play(task))
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            waiting = {pool.submit(play, task): task for task in missing}
            for one in as_completed(waiting):
                take(waiting[one], one.result)
    return [kept[task.key] for task in tasks if task.key in kept], failed


def densest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the evenly spaced routes that could be chosen before."""
    return [
        {**row, **row["densest"], "label": DENSEST, "densest": None}
        for row in rows
        if row["label"] == EVENLY and row.get("densest")
    ]


def append(file: Path, row: Row) -> None:
    """Write a row as a line of its own, also after one that was cut short."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as lines:
        if lines.tell():
            lines.seek(-1, os.SEEK_END)
            if lines.read(1) != b"\n":
                lines.write(b"\n")
        lines.write(json.dumps(row).encode() + b"\n")


def read(file: Path) -> dict[str, Row]:
    """Return the rows that are kept; a line that was cut short is left out."""
    found: dict[str, Row] = {}
    if not file.exists():
        return found
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "key" in row:
            found[row["key"]] = row
    return found


# -- tables ------------------------------------------------------------------------------------

Cell = tuple[str, str, int]


class Results:
    """Rows, by data set, mode, budget and policy.

    Args:
        rows: of all draws.
        labels: of the policies, in their order.
        places: the arenas, in their order.
        moves: the budgets.
        reference: label of the policy that the others are compared with.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        labels: Sequence[str],
        places: Sequence[Arena],
        moves: Sequence[int],
        reference: str,
    ) -> None:
        self._by: dict[tuple[Cell, str], dict[int, Row]] = {}
        for row in rows:
            cell = (row["name"], row["mode"], row["moves"])
            self._by.setdefault((cell, row["label"]), {})[row["number"]] = row
        self.labels = list(labels)
        self.arenas = {(one.name, one.mode): one for one in places}
        every = [(one.name, one.mode, k) for one in places for k in moves]
        self.cells = [c for c in every if any((c, label) in self._by for label in labels)]
        self.reference = reference

    def of(self, cell: Cell, label: str) -> dict[int, Row]:
        """By number of the draw."""
        return self._by.get((cell, label), {})

    def values(self, cell: Cell, label: str, key: str) -> np.ndarray:
        """(draws,) of a number of the rows; what a row lacks is left out."""
        found = [row.get(key, math.nan) for row in self.of(cell, label).values()]
        array = np.array([math.nan if v is None else v for v in found], dtype=float)
        return array[np.isfinite(array)]

    def pairs(self, cell: Cell, label: str, other: str) -> tuple[np.ndarray, np.ndarray]:
        """(d,) errors of two policies on the draws that both have."""
        mine, theirs = self.of(cell, label), self.of(cell, other)
        both = sorted(set(mine) & set(theirs))
        return tuple(np.array([rows[i]["rmse"] for i in both]) for rows in (mine, theirs))  # type: ignore[return-value]

    def difference(self, cell: Cell, label: str, other: str) -> tuple[float, float]:
        """Return the mean of the paired differences and its standard error, NaN for none."""
        a, b = self.pairs(cell, label, other)
        if not a.size:
            return math.nan, math.nan
        return float((a - b).mean()), error_of(a - b)


def error_of(values: np.ndarray) -> float:
    """Standard error of a mean, NaN for a single value."""
    if values.size < 2:
        return math.nan
    return float(values.std(ddof=1)) / math.sqrt(values.size)


def shown(mean: float, error: float, digits: int, *, sign: bool = False) -> str:
    """Return a mean with its standard error."""
    if not math.isfinite(mean):
        return ""
    text = f"{mean:+.{digits}f}" if sign else f"{mean:.{digits}f}"
    return f"{text} ± {error:.{digits}f}" if math.isfinite(error) else text


def digits_for(value: float) -> int:
    """Decimals with which a number has three digits."""
    if not (math.isfinite(value) and value > 0.0):
        return 2
    return max(0, 2 - math.floor(math.log10(value)))


def _listed(cells: Sequence[tuple[str, str, int]], of: Sequence[tuple[str, str, int]]) -> str:
    """Return where something is missing: the data sets of each mode and length."""
    if len(cells) == len(of):
        return "everywhere"
    found = []
    for mode, k in dict.fromkeys(cell[1:] for cell in cells):
        mine = [name for name, *rest in cells if rest == [mode, k]]
        whole = sum(cell[1:] == (mode, k) for cell in of)
        names = f"all {whole} data sets" if len(mine) == whole else ", ".join(mine)
        found.append(f"{mode}, {k} moves: {names}")
    return "; ".join(found)


def report(
    results: Results, skipped: Mapping[str, str], failed: Mapping[str, str], minutes: float
) -> Report:
    """All tables."""
    sections = [overview(results, minutes)]
    groups = list(dict.fromkeys((mode, k) for _, mode, k in results.cells))
    for mode, k in groups:
        mine = [cell for cell in results.cells if cell[1:] == (mode, k)]
        sections.append(summary(results, mine, f"{mode}, {k} moves"))
    if rows := [row for mode, k in groups for row in hindsight(results, mode, k)]:
        sections.append(hindsight_section(rows))
    sections.append(data_section(results))
    sections += [cell_section(results, cell) for cell in results.cells]
    missing = [[label, "everywhere", why] for label, why in skipped.items()]
    missing += [[*where.partition(", ")[::2], why] for where, why in failed.items()]
    for label in results.labels:
        empty = [c for c in results.cells if not results.of(c, label)]
        silent = [c for c in empty if f"{label}, {c[0]} ({c[1]}), {c[2]} moves" not in failed]
        on_roads = [c for c in silent if results.arenas[c[0], c[1]].roads and label in ROWS]
        rest = [c for c in silent if c not in on_roads]
        for cells, why in ((on_roads, "there are no rows on roads"), (rest, "not played")):
            if cells:
                missing.append([label, _listed(cells, results.cells), why])
    if missing:
        sections.append(
            Section("Mapping: what is missing", COMMAND, "", ("policy", "where", "why"), missing)
        )
    return Report(sections)


def overview(results: Results, minutes: float) -> Section:
    """A line for each data set, mode and budget: errors over the reference's."""
    reference = results.reference
    text = (
        "How well is a field mapped for the metres that are driven? All policies get the same "
        "fields, starts, noise of each place and metres, and the default belief "
        "(`BeliefConfig()`): nothing is tuned. A budget of k moves is k times the metres of a "
        "usual move (to the next cell, along a mean piece of road); *free* is the same length "
        "where any place may be next. Where moves bind, every place that is crossed is read; where "
        "any place may be next, only the places that are chosen. The start is read before the "
        f"first decision. Decisions have {EXPANSIONS} expansions; where any place may be next "
        f"`bal` has {FEW['bal', FREE]} and looks {AHEAD[FREE]} readings ahead instead of "
        f"{AHEAD[MOVES]}. The table has the root mean "
        "square error of the map over all places with a value, against the noise-free field: "
        f"the paired difference to `{reference}`, in % of that, ± one standard error over the "
        "draws. A draw has its own noise and start, and its own field where the data set has "
        f"several. `{EVENLY}` is the best, for each draw, of the back-and-forth routes that fit "
        f"(all spacings, insets, directions and corners; of many the {MOST_ROUTES} that leave "
        "places the least mean distance), found *afterwards*: a bound, no rival. "
        f"`{DENSEST}` is the one of them that leaves places the least mean distance, which is "
        "known beforehand: what lies between the two is hindsight. Seconds are of the processor, "
        "but for external programs. "
    )
    if data_folder() is None:
        text += "**GPAS_DATA names no folder: the shipped fields and draws only.** "
    text += f"{minutes:.0f} min for what was not kept."
    rows: list[Sequence[object]] = []
    for cell in results.cells:
        base = results.values(cell, reference, "rmse")
        level = float(base.mean()) if base.size else math.nan
        row: list[object] = [*cell, len(base)]
        row.append(shown(level, error_of(base), digits_for(level)))
        for label in results.labels:
            if label != reference:
                mean, error = results.difference(cell, label, reference)
                percent = 100.0 / level if level else math.nan
                row.append(shown(percent * mean, percent * error, 1, sign=True))
        rows.append(row)
    others = [label for label in results.labels if label != reference]
    header = ("data set", "mode", "moves", "draws", f"RMSE, {reference}", *others)
    return Section(f"Mapping: errors against `{reference}`", COMMAND, text, header, rows)


def summary(results: Results, cells_of: Sequence[Cell], title: str) -> Section:
    """A line for each policy, over some cells; each counts once."""
    rows: list[Sequence[object]] = []
    marks = [results.reference]
    if EVENLY in results.labels and EVENLY not in marks:
        marks.append(EVENLY)
    for label in results.labels:
        if not any(results.of(cell, label) for cell in cells_of):
            continue
        row: list[object] = [label]
        for other in marks:
            ratios, worse, cells = [], 0, 0
            for cell in cells_of:
                a, b = results.pairs(cell, label, other)
                if a.size and b.mean() > 0.0:
                    cells += 1
                    ratios.append(a.mean() / b.mean() - 1.0)
                    worse += bool((a - b).mean() > (error_of(a - b) if a.size > 1 else 0.0))
            own = label == other
            value = 100.0 * float(np.mean(ratios)) if ratios else math.nan
            error = error_of(100.0 * np.array(ratios))
            row += ["" if own else shown(value, error, 1, sign=True)]
            row += ["" if own else f"{worse} of {cells}"]
        worst = []
        for cell in cells_of:
            a, b = results.pairs(cell, label, results.reference)
            if a.size and b.max() > 0.0:
                worst.append(a.max() / b.max() - 1.0)
        value = 100.0 * float(np.mean(worst)) if worst else math.nan
        row.append(shown(value, math.nan, 1, sign=True))
        covered = [results.values(c, label, "covered_90") for c in cells_of]
        inside = [float(v.mean()) for v in covered if v.size]
        row.append(shown(float(np.mean(inside)) if inside else math.nan, math.nan, 2))
        seconds = [results.values(c, label, "median_seconds") for c in cells_of]
        spent = [float(np.median(v)) for v in seconds if v.size]
        row.append(f"{np.median(spent):.3g}" if spent else "")
        rows.append(row)
    text = (
        "Means over the lines above, each counted once: RMSE in % of the other one's, ± one "
        "standard error over the lines; how often it is worse than that by more than one standard "
        "error of the paired difference; the error "
        "of the worst draw in % of the reference's worst; share of true values in the 90 % "
        "interval at places that were not read; median seconds of a decision."
    )
    header = ["policy"]
    for other in marks:
        header += [f"RMSE over {other} %", f"worse than {other}"]
    header += ["worst draw %", "in 90 %", "s a decision"]
    return Section(f"Mapping: all data sets, {title}", COMMAND, text, header, rows)


def hindsight(results: Results, mode: str, k: int) -> list[Sequence[object]]:
    """A line for each policy, over the data sets of a mode and budget that have rows: how it stands
    among all evenly spaced routes, where the best one known afterwards is only the least of them.
    """
    rows: list[Sequence[object]] = []
    for label in results.labels:
        beaten: list[float] = []
        over: list[tuple[float, ...]] = []
        for cell in results.cells:
            even = {i: row["errors"] for i, row in results.of(cell, EVENLY).items()}
            mine = {i: row["rmse"] for i, row in results.of(cell, label).items() if i in even}
            if cell[1:] != (mode, k) or label == EVENLY or not mine:
                continue
            beaten.append(float(np.mean([np.mean(mine[i] < np.array(even[i])) for i in mine])))
            level = np.mean([[np.mean(even[i]), even[i][0], min(even[i])] for i in mine], axis=0)
            over.append(tuple(100.0 * (np.mean(list(mine.values())) / level - 1.0)))
        if beaten:
            means = [
                shown(float(np.mean(one)), error_of(np.array(one)), 1, sign=True)
                for one in zip(*over, strict=True)
            ]
            if label == DENSEST:
                means[1] = ""
            rows.append((mode, k, label, len(beaten), f"{100.0 * np.mean(beaten):.0f}", *means))
    return rows


def hindsight_section(rows: list[Sequence[object]]) -> Section:
    """What it is worth to know afterwards which evenly spaced route was the best one."""
    text = (
        f"The best of up to {MOST_ROUTES} routes, found afterwards, is better than each of them "
        "could be expected to be, whatever the routes are. So each policy is also held against "
        "all of them, over the data sets that have rows: the share of the evenly spaced routes "
        "that it beats on the same draw, and its RMSE in % of their mean one, of the densest (the "
        "one that can be chosen beforehand) and of the best, ± one standard error over the data "
        "sets."
    )
    header = (
        *("mode", "moves", "policy", "data sets", "beats %"),
        *("over their mean %", "over the densest %", "over the best %"),
    )
    return Section("Mapping: what hindsight is worth", COMMAND, text, header, rows)


def cell_section(results: Results, cell: Cell) -> Section:
    """All figures of one data set, mode and budget."""
    name, mode, k = cell
    arena = results.arenas[name, mode]
    base = results.values(cell, results.reference, "rmse")
    if not base.size:
        base = np.concatenate([results.values(cell, label, "rmse") for label in results.labels])
    digits = digits_for(float(base.mean()))
    rows: list[Sequence[object]] = []
    for label in results.labels:
        if not results.of(cell, label):
            continue
        get = {key: results.values(cell, label, key) for key in _KEYS}
        mean = {key: float(v.mean()) if v.size else math.nan for key, v in get.items()}
        own = label == results.reference
        difference = results.difference(cell, label, results.reference)
        rows.append(
            [
                label,
                len(get["rmse"]),
                shown(mean["rmse"], error_of(get["rmse"]), digits),
                "" if own else shown(*difference, digits, sign=True),
                f"{get['rmse'].max():.{digits}f}",
                f"{mean['rmse_left']:.{digits}f}",
                f"{mean['nlpd']:.2f}",
                " / ".join(f"{mean[f'covered_{round(100 * q)}']:.2f}" for q in LEVELS),
                f"{mean['metres']:.0f}",
                f"{mean['readings']:.0f}",
                *computing(get),
            ]
        )
    how = "any place may be next" if mode == FREE else "moves bind"
    steps = [row["step"] for label in results.labels for row in results.of(cell, label).values()]
    text = (
        f"{arena.what}; {how}; {k} moves of {steps[0]:.4g} m. RMSE over all places with a value "
        f"[{arena.unit}] ± one standard error, its paired difference to `{results.reference}`, "
        "the worst draw; then over the places that were not read: RMSE, NLPD of the true value "
        "[nat], shares inside the 50, 90 and 95 % intervals; then metres, places read, seconds of "
        "a decision (median, largest, all of a mission), largest memory [MB], and decisions that "
        "an external program failed to take."
    )
    header = (
        *("policy", "draws", "RMSE", "difference", "worst", "RMSE, not read", "NLPD", "inside"),
        *("metres", "read", "s", "largest", "all", "MB", "failed"),
    )
    return Section(f"Mapping: {name}, {mode}, {k} moves", COMMAND, text, header, rows)


def computing(get: Mapping[str, np.ndarray]) -> list[str]:
    """Seconds, memory and failures of a policy; nothing of the bound, which takes no decisions."""
    if not get["median_seconds"].size:
        return [""] * 5
    return [
        f"{np.median(get['median_seconds']):.3g}",
        f"{get['largest_seconds'].max():.3g}",
        f"{get['plan_seconds'].mean():.3g}",
        f"{get['peak_mb'].mean():.0f}",
        f"{get['failed'].sum():.0f}",
    ]


_KEYS = (
    *("rmse", "rmse_left", "nlpd", "covered_50", "covered_90", "covered_95", "metres", "readings"),
    *("median_seconds", "largest_seconds", "plan_seconds", "peak_mb", "failed"),
)


def data_section(results: Results) -> Section:
    """What the data sets are."""
    rows: list[Sequence[object]] = []
    for (name, mode), arena in results.arenas.items():
        first = arena.field(0)
        values = first.values[first.known]
        rows.append(
            (name, mode, arena.what, arena.draws, first.topology.n, len(values), arena.unit,
             f"{values.std():.3g}", f"{first.noise:.3g}")
        )  # fmt: skip
    return Section(
        "Mapping: the data sets",
        COMMAND,
        "Spread and noise are those of the first field.",
        (
            "data set",
            "mode",
            "fields",
            "draws",
            "places",
            "valued",
            "unit",
            "spread",
            "noise",
        ),
        rows,
    )
