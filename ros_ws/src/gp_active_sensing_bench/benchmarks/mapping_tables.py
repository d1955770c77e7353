"""Tables of the mapping benchmark. Each policy is compared with a reference on equal fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from common import Report, Row, Section, error_of, shown
from mapping_fields import FREE, MOVES, Arena
from mapping_runs import AHEAD, DENSEST, EVENLY, EXPANSIONS, FEW, LEVELS, MOST_ROUTES, ROWS
from network_data import data_folder

COMMAND = "GPAS_DATA=… python benchmarks/run.py mapping"
REFERENCE = "bal"
Cell = tuple[str, str, int]


def densest(rows: Sequence[Row]) -> list[Row]:
    """Return the results of the policy `DENSEST`, which are stored inside those of `EVENLY`."""
    return [
        {**row, **row["densest"], "label": DENSEST, "densest": None}
        for row in rows
        if row["label"] == EVENLY and row.get("densest")
    ]


class Results:
    """Results of missions by data set, mode, budget and policy.

    Args:
        rows: results of all missions.
        labels: labels of the policies, in order.
        places: the arenas, in order.
        moves: budgets in moves.
        reference: label of the policy with which each policy is compared.
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
        """Return the results of a policy by the number of the mission."""
        return self._by.get((cell, label), {})

    def values(self, cell: Cell, label: str, key: str) -> np.ndarray:
        """Return the known values of `key` in the results of a policy."""
        found = [row.get(key, math.nan) for row in self.of(cell, label).values()]
        array = np.array([math.nan if v is None else v for v in found], dtype=float)
        return array[np.isfinite(array)]

    def pairs(self, cell: Cell, label: str, other: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the errors (d,) of two policies in the d missions that both have."""
        mine, theirs = self.of(cell, label), self.of(cell, other)
        both = sorted(set(mine) & set(theirs))
        return tuple(np.array([rows[i]["rmse"] for i in both]) for rows in (mine, theirs))  # type: ignore[return-value]

    def difference(self, cell: Cell, label: str, other: str) -> tuple[float, float]:
        """Return the mean of the paired differences and its standard error; NaN = no pairs."""
        a, b = self.pairs(cell, label, other)
        if not a.size:
            return math.nan, math.nan
        return float((a - b).mean()), error_of(a - b)


def digits_for(value: float) -> int:
    """Return the number of decimals that shows three significant digits."""
    if not (math.isfinite(value) and value > 0.0):
        return 2
    return max(0, 2 - math.floor(math.log10(value)))


def _listed(cells: Sequence[tuple[str, str, int]], of: Sequence[tuple[str, str, int]]) -> str:
    if len(cells) == len(of):
        return "everywhere"
    found = []
    for mode, k in dict.fromkeys(cell[1:] for cell in cells):
        mine = [name for name, *rest in cells if rest == [mode, k]]
        whole = sum(cell[1:] == (mode, k) for cell in of)
        names = f"all {whole} data sets" if len(mine) == whole else ", ".join(mine)
        found.append(f"{mode}, {k} moves: {names}")
    return "; ".join(found)


def _fewer(results: Results, label: str) -> list[tuple[list[Cell], str]]:
    """Return the cells in which a policy has fewer missions than the reference policy.

    Each entry has the cells, and a text with both numbers of missions.
    """
    found: dict[str, list[Cell]] = {}
    for cell in results.cells:
        mine = results.of(cell, label).keys()
        theirs = results.of(cell, results.reference).keys()
        if mine and (both := len(mine & theirs)) < len(theirs):
            found.setdefault(f"{both} of {len(theirs)} draws", []).append(cell)
    return [(cells, how_many) for how_many, cells in found.items()]


def report(
    results: Results, skipped: Mapping[str, str], failed: Mapping[str, str], minutes: float
) -> Report:
    sections = [overview(results, minutes)]
    groups = list(dict.fromkeys((mode, k) for _, mode, k in results.cells))
    for mode, k in groups:
        mine = [cell for cell in results.cells if cell[1:] == (mode, k)]
        sections.append(summary(results, mine, f"{mode}, {k} moves"))
    sections.append(data_section(results))
    sections += [cell_section(results, cell) for cell in results.cells]
    missing = [[label, "everywhere", why] for label, why in skipped.items()]
    missing += [[*where.partition(", ")[::2], why] for where, why in failed.items()]
    for label in results.labels:
        empty = [c for c in results.cells if not results.of(c, label)]
        silent = [c for c in empty if f"{label}, {c[0]} ({c[1]}), {c[2]} moves" not in failed]
        on_roads = [c for c in silent if results.arenas[c[0], c[1]].roads and label in ROWS]
        rest = [c for c in silent if c not in on_roads]
        reasons = [(on_roads, "there are no rows on roads"), (rest, "not played")]
        for cells, why in reasons + _fewer(results, label):
            if cells:
                missing.append([label, _listed(cells, results.cells), why])
    if missing:
        sections.append(
            Section("Mapping: what is missing", COMMAND, "", ("policy", "where", "why"), missing)
        )
    return Report(sections)


def overview(results: Results, minutes: float) -> Section:
    """Return a table of errors relative to the reference, by data set, mode and budget."""
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
    """Return a table with a line for each policy: means over `cells_of` with equal weights."""
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


def cell_section(results: Results, cell: Cell) -> Section:
    """Return a table of all scores for one data set, mode and budget."""
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
    """Return five texts on time, memory and failures; "" for a route without decisions."""
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
