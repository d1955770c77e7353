"""Write tables, figures and the report page of an experiment from its records."""

from __future__ import annotations

import html
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.report.frame import PAGE, build_page, tile
from gp_active_sensing.util.files import json_ready, write_whole
from gp_active_sensing_bench.figures import write_figures
from gp_active_sensing_bench.metrics import metric_of, metrics_of
from gp_active_sensing_bench.records import CONFIG, ExperimentDirectory, ExperimentRecords
from gp_active_sensing_bench.tables import (
    MetricTable,
    differences,
    grid,
    note_of,
    summary,
    to_csv,
    to_markdown,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExperimentOutputs:
    """Paths of the written files.

    Args:
        tables: path of ``tables.md``.
        page: path of ``report.html``.
        figures: paths of the pictures; () = matplotlib is not installed.
    """

    tables: Path
    page: Path
    figures: tuple[Path, ...]


def is_experiment(directory: Path | str) -> bool:
    """Return whether a directory belongs to an experiment."""
    return (Path(directory) / CONFIG).is_file()


def report_page(directory: Path) -> Path | None:
    """Write all files of an experiment. Return the path of the page; None = no experiment."""
    return write_outputs(directory).page if is_experiment(directory) else None


def tables_of(loaded: ExperimentRecords) -> list[MetricTable]:
    """Return two tables for each metric: values, and paired differences from the baseline."""
    tables = []
    for metric in metrics_of(loaded.config.metrics, loaded.records):
        tables.append(summary(loaded.records, metric, loaded.experiment.at))
        if loaded.config.baseline is not None:
            tables.append(
                differences(loaded.records, metric, loaded.experiment.at, loaded.config.baseline)
            )
    return tables


def outcome_mapping(loaded: ExperimentRecords, outputs: ExperimentOutputs) -> dict[str, Any]:
    """Return the results as plain data. A cell is [mean, standard error, count]."""
    return {
        "name": loaded.config.name,
        "trials": len(loaded.experiment.trials),
        "recorded": len(loaded.records),
        "failed": len(loaded.failures),
        "notes": list(loaded.notes),
        "directory": str(outputs.tables.parent),
        "tables": [
            {
                "title": table.title,
                "metric": table.metric,
                "unit": table.unit,
                "readings": list(table.columns),
                "rows": [
                    {
                        "configuration": row.configuration,
                        "policy": row.policy,
                        "cells": [
                            None if cell is None else [cell.mean, _finite(cell.error), count]
                            for cell, count in zip(row.cells, row.counts, strict=True)
                        ],
                    }
                    for row in table.rows
                ],
            }
            for table in tables_of(loaded)
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def write_outputs(
    directory: Path | str, loaded: ExperimentRecords | None = None
) -> ExperimentOutputs:
    """Write ``tables.md``, ``tables.csv``, ``figures/`` and ``report.html`` of an experiment.

    The experiment may be incomplete: the files report missing trials. `loaded` is the content of
    the directory; None = read the directory.

    Raises:
        RunError: the directory belongs to no experiment, or cannot be written.
    """
    made = ExperimentDirectory.open(directory)
    loaded = made.load() if loaded is None else loaded
    tables = tables_of(loaded)
    config = loaded.config
    head = [f"# {config.name}", config.description.strip(), *loaded.notes]
    text = "\n\n".join([*filter(None, head), *(to_markdown(table) for table in tables)])
    page = made.write_text("tables.md", text + "\n")
    made.write_text("tables.csv", to_csv(tables))
    try:
        figures = write_figures(made.path / "figures", loaded)
    except MissingDependencyError as error:
        logger.warning("no figures: %s", error)
        figures = ()
    return ExperimentOutputs(page, write_whole(made.path / PAGE, _page(loaded)), figures)


COLUMNS = 12
"""Largest number of columns in a table of the page."""
_SCRIPTS = ("base.js", "chart.js", "comparison.js")
_FROM_ZERO = frozenset(
    {"plan_seconds", "total_plan_seconds", "expanded", "gap", "driven_metres"}
    | {"average_regret", "cumulative_regret", "simple_regret", "recommended_regret", "regret_bound"}
)


def _page(loaded: ExperimentRecords) -> str:
    """Return ``report.html``, whose content depends only on ``experiment.yaml`` and the records."""
    config, records = loaded.config, loaded.records
    at = loaded.experiment.at
    tables = {
        metric: summary(records, metric, at) for metric in metrics_of(config.metrics, records)
    }
    written = yaml.safe_dump(json_ready(to_mapping(config)), sort_keys=False, allow_unicode=True)
    return build_page(
        "comparison.html",
        _SCRIPTS,
        {"policies": list(config.policies), "charts": list(_charts(loaded, tables))},
        title=html.escape(f"{config.name} · experiment"),
        heading=html.escape(config.name),
        description=html.escape(config.description),
        status=html.escape(_status(loaded)),
        notes="".join(f'<p class="note">{html.escape(note)}</p>' for note in loaded.notes),
        tiles="".join(_tiles(loaded)),
        tables="".join(_tables(loaded, tables)),
        made=_made(loaded),
        expected=f"<h2>Known from elsewhere</h2><p>{html.escape(config.expected)}</p>"
        if config.expected
        else "",
        config=html.escape(written),
        package="gp_active_sensing_bench",
    )


def _status(loaded: ExperimentRecords) -> str:
    done, planned = len(loaded.records), len(loaded.experiment.trials)
    seconds = sum(float(record.get("seconds") or 0.0) for record in loaded.records)
    how_long = f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 3600:.1f} h"
    return f"{done} of {planned} trials, {how_long} of computing in all."


def _tiles(loaded: ExperimentRecords) -> Iterator[str]:
    config = loaded.config
    seeds = config.seed_list()
    shown = f"{seeds[0]} … {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
    scenario = config.scenario
    name = scenario.get("name", "") if isinstance(scenario, Mapping) else scenario
    kind = "missions of" if config.budgets else "read off after"
    numbers = ", ".join(str(n) for n in loaded.experiment.at[:8])
    numbers += " …" if len(loaded.experiment.at) > 8 else ""
    for figure, text in (
        (str(name), "scenario"),
        (str(len(config.policies)), "policies: " + ", ".join(config.policies)),
        (str(len(config.configurations)), "configurations: " + ", ".join(config.configurations)),
        (str(len(seeds)), f"seeds: {shown}"),
        (numbers, f"readings ({kind} so many)"),
    ):
        yield tile(figure, text)


def _charts(
    loaded: ExperimentRecords, tables: Mapping[str, MetricTable]
) -> Iterator[dict[str, Any]]:
    """Yield the data of a chart for each metric and configuration that has a value."""
    several = len(loaded.config.configurations) > 1
    labels = list(loaded.config.policies)
    for metric, table in tables.items():
        unit = f" [{table.unit}]" if table.unit else ""
        for configuration in loaded.config.configurations:
            rows = [row for row in table.rows if row.configuration == configuration]
            if not any(cell for row in rows for cell in row.cells):
                continue
            where = f", {configuration}" if several else ""
            yield {
                "title": f"{table.title}{unit}{where}",
                "unit": table.unit,
                "x": table.columns,
                "fromZero": metric in _FROM_ZERO,
                "series": [
                    {
                        "name": row.policy,
                        "colour": labels.index(row.policy),
                        "mean": [_number(cell.mean) if cell else None for cell in row.cells],
                        "error": [_number(cell.error) if cell else None for cell in row.cells],
                    }
                    for row in rows
                ],
            }


def _tables(loaded: ExperimentRecords, tables: Mapping[str, MetricTable]) -> Iterator[str]:
    baseline = loaded.config.baseline
    for metric, table in tables.items():
        yield f"<h2>{html.escape(metric_of(metric).label)}</h2>"
        yield _table(table, note_of(table, "mean over the seeds ± standard error"))
        if baseline is not None:
            against = differences(loaded.records, metric, table.columns, baseline)
            if against.rows:
                note = "mean ± standard error; bold where it is more than two standard errors"
                yield _table(against, note_of(against, note), mark=True)


def _table(table: MetricTable, note: str, *, mark: bool = False) -> str:
    """Return a table as HTML. With `mark`, values above two standard errors are bold."""
    caption, head, rows = grid(_thinned(table))
    labels = len(head) - len(_spread(len(table.columns))) - 1

    def line(tag: str, texts: Sequence[str]) -> str:
        kinds = [' class="text"' if k < labels else "" for k in range(len(texts))]
        cells = (f"<{tag}{k}>{text}</{tag}>" for k, text in zip(kinds, texts, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    body = ""
    for row, texts in zip(_thinned(table).rows, rows, strict=True):
        shown = [html.escape(text) for text in texts]
        for k, cell in enumerate(row.cells, labels):
            if mark and cell is not None and abs(cell.mean) > 2.0 * cell.error:
                shown[k] = f"<b>{shown[k]}</b>"
        body += line("td", shown)
    return (
        f'<figure class="table"><h3>{html.escape(caption)}</h3><p class="more">{note}</p>'
        f'<div class="scroll"><table>{line("th", head)}{body}</table></div></figure>'
    )


def _thinned(table: MetricTable) -> MetricTable:
    kept = _spread(len(table.columns))

    def of(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[k] for k in kept)

    rows = tuple(replace(r, cells=of(r.cells), counts=of(r.counts)) for r in table.rows)
    return replace(table, columns=of(table.columns), rows=rows)


def _spread(count: int) -> list[int]:
    """Return about `COLUMNS` evenly spread indices of 0 … count - 1, including the last index."""
    if count <= COLUMNS:
        return list(range(count))
    return sorted({round(i * (count - 1) / (COLUMNS - 1)) for i in range(COLUMNS)})


def _made(loaded: ExperimentRecords) -> str:
    """Return a table of the commits, versions and computers that made the records."""
    made: dict[tuple[str, str, str], int] = {}
    for record in loaded.records:
        versions = record.get("versions") or {}
        shown = ", ".join(f"{name} {version}" for name, version in versions.items())
        where = str(record.get("platform") or "")
        key = (str(record.get("commit") or "not known"), shown, where)
        made[key] = made.get(key, 0) + 1
    head = "".join(f'<th class="text">{h}</th>' for h in ("commit", "versions", "machine"))
    rows = ""
    for key, count in made.items():
        texts = "".join(f'<td class="text">{html.escape(text)}</td>' for text in key)
        rows += f"<tr>{texts}<td>{count}</td></tr>"
    return f'<div class="scroll"><table><tr>{head}<th>trials</th></tr>{rows}</table></div>'


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
