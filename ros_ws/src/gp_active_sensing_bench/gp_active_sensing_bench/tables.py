"""Tables of an experiment: means, and differences paired by seed, with standard errors."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gp_active_sensing.util.wording import fixed
from gp_active_sensing_bench.metrics import Metric, metric_of


class Estimate(NamedTuple):
    """Mean and standard error of the mean. A single value has the standard error NaN."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.error:.2f}"


def mean_of(values: Sequence[float]) -> Estimate:
    """Return the mean of independent values and its standard error ``sd / sqrt(n)``.

    Raises:
        ValueError: there are no values, or a value is not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if not array.size or not np.isfinite(array).all():
        msg = f"expected at least one value, all finite, got {array.tolist()}"
        raise ValueError(msg)
    error = math.nan if array.size == 1 else float(array.std(ddof=1) / math.sqrt(array.size))
    return Estimate(float(array.mean()), error)


NOTE = "mean ± standard error over n seeds"
NOTE_OF_ONE = "one seed, so that there is no standard error"

Record = Mapping[str, Any]
BySeed = dict[int, float]


@dataclass(frozen=True)
class PolicyRow:
    """Row of a table for a configuration and a policy.

    Args:
        cells: estimate for each column; None = no value.
        counts: number of trials or pairs of trials in each cell.
    """

    configuration: str
    policy: str
    cells: tuple[Estimate | None, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class MetricTable:
    """Table of a metric, with a column for each number of readings.

    Args:
        title: meaning of the cells.
        unit: unit of the cells; "" = no unit.
        columns: numbers of readings.
        rows: rows in the order of the experiment's file.
    """

    title: str
    metric: str
    unit: str
    columns: tuple[int, ...]
    rows: tuple[PolicyRow, ...]


def summary(records: Sequence[Record], metric: str, at: Sequence[int]) -> MetricTable:
    """Return a table of means over the seeds, with a row for each configuration and policy.

    Args:
        records: records of an experiment, in the order of the rows.
        metric: name of the metric.
        at: numbers of readings, one per column. A mission with a budget in readings counts only
            in the column of that budget. All other missions count in each column.

    Raises:
        UnknownNameError: no metric has this name.
    """
    found = metric_of(metric)
    values = _values(records, found, at)

    def samples(configuration: str, policy: str, n: int) -> list[float]:
        return list(values.get((configuration, policy, n), {}).values())

    return _table(records, found, at, found.label, _labels(records), samples)


def differences(
    records: Sequence[Record], metric: str, at: Sequence[int], baseline: str
) -> MetricTable:
    """Return a table of mean differences from a baseline policy on the same seeds.

    `at` has a number of readings for each column. The baseline policy has no row.

    Raises:
        UnknownNameError: no metric has this name.
    """
    found = metric_of(metric)
    values = _values(records, found, at)

    def samples(configuration: str, policy: str, n: int) -> list[float]:
        mine = values.get((configuration, policy, n), {})
        other = values.get((configuration, baseline, n), {})
        return [mine[seed] - other[seed] for seed in mine if seed in other]

    title = f"{found.label}: difference to {baseline} on the same seeds"
    others = [(label, policy) for label, policy in _labels(records) if policy != baseline]
    return _table(records, found, at, title, others, samples)


def _table(
    records: Sequence[Record],
    metric: Metric,
    at: Sequence[int],
    title: str,
    labels: Sequence[tuple[str, str]],
    samples: Callable[[str, str, int], list[float]],
) -> MetricTable:
    """Return a table; `samples` gives the values of (configuration, policy, number of readings)."""
    rows = []
    for label in labels:
        found = [samples(*label, n) for n in at]
        cells = tuple(mean_of(values) if values else None for values in found)
        rows.append(PolicyRow(*label, cells, tuple(len(values) for values in found)))
    return MetricTable(title, metric.name, _unit(records, metric), tuple(at), tuple(rows))


def to_text(table: MetricTable) -> list[str]:
    """Return a table as lines of text with aligned columns."""
    caption, head, rows = grid(table)
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in [head, *rows]]
    return [f"{caption}: {note_of(table)}", *(f"  {line.rstrip()}" for line in lines)]


def note_of(table: MetricTable, several: str = NOTE) -> str:
    """Return a note on the meaning of the cells. For several seeds, the note is `several`."""
    cells = [cell for row in table.rows for cell in row.cells if cell is not None]
    return NOTE_OF_ONE if cells and all(math.isnan(c.error) for c in cells) else several


def to_markdown(table: MetricTable) -> str:
    """Return a table in Markdown, with cells of mean ± standard error."""
    caption, head, rows = grid(table)
    plain = [[c.replace("|", "\\|").replace("\n", " ") for c in row] for row in [head, *rows]]
    lines = [f"| {' | '.join(row)} |" for row in plain]
    rule = "| --- " * len(head) + "|"
    return "\n".join([f"## {caption}", "", note_of(table), "", lines[0], rule, *lines[1:]])


def grid(table: MetricTable) -> tuple[str, list[str], list[list[str]]]:
    """Return the caption, the header and the rows of a table."""
    several = len({row.configuration for row in table.rows}) > 1
    head = (["configuration"] if several else []) + ["policy"]
    head += [f"{n} readings" for n in table.columns] + ["n"]
    digits = _digits([cell for row in table.rows for cell in row.cells if cell is not None])
    rows = []
    for row in table.rows:
        shown = ["–" if cell is None else _shown(cell, digits) for cell in row.cells]
        equal = len(set(row.counts)) == 1
        if not equal:
            shown = [f"{text} ({n})" for text, n in zip(shown, row.counts, strict=True)]
        labels = [row.configuration, row.policy] if several else [row.policy]
        rows.append([*labels, *shown, str(row.counts[0]) if equal else "in brackets"])
    unit = f" [{table.unit}]" if table.unit else ""
    return f"{table.title}{unit}", head, rows


def to_csv(tables: Sequence[MetricTable]) -> str:
    """Return all tables as CSV with a line for each cell."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    head = ("table", "metric", "unit", "configuration", "policy", "readings")
    writer.writerow((*head, "mean", "standard_error", "count"))
    for table in tables:
        for row in table.rows:
            for n, cell, count in zip(table.columns, row.cells, row.counts, strict=True):
                if cell is not None:
                    error = "" if math.isnan(cell.error) else repr(cell.error)
                    where = (table.title, table.metric, table.unit, row.configuration, row.policy)
                    writer.writerow((*where, n, repr(cell.mean), error, count))
    return stream.getvalue()


def _values(
    records: Sequence[Record], metric: Metric, at: Sequence[int]
) -> dict[tuple[str, str, int], BySeed]:
    """Return the known values by (configuration, policy, number of readings) and by seed."""
    found: dict[tuple[str, str, int], BySeed] = {}
    for record in records:
        budget = record["budget"]
        for n in at:
            if budget is not None and budget != n:
                continue
            value = metric.of(record, n)
            if value is not None:
                cell = (record["configuration"], record["policy"], n)
                found.setdefault(cell, {})[int(record["seed"])] = value
    return found


def _labels(records: Sequence[Record]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((r["configuration"], r["policy"]) for r in records))


def _unit(records: Sequence[Record], metric: Metric) -> str:
    """Return the unit of a metric; "" = the configurations have different units."""
    units = {metric.unit_of(record) for record in records}
    return units.pop() if len(units) == 1 else ""


def _digits(cells: Sequence[Estimate]) -> int:
    """Return the number of decimals that shows two digits of a typical standard error."""
    errors = [c.error for c in cells if math.isfinite(c.error) and c.error > 0.0]
    sizes = sorted(errors or [abs(c.mean) for c in cells if c.mean])
    if not sizes:
        return 2
    return min(max(1 - math.floor(math.log10(sizes[len(sizes) // 2])), 0), 5)


def _shown(cell: Estimate, digits: int) -> str:
    mean = fixed(cell.mean, digits)
    return mean if math.isnan(cell.error) else f"{mean} ± {cell.error:.{digits}f}"
