"""Write the tables, figures and page of an experiment, from its records only."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.experiments.figures import write_figures
from gp_active_sensing.experiments.records import CONFIG, ExperimentDirectory, Loaded
from gp_active_sensing.experiments.tables import (
    MetricTable,
    differences,
    summary,
    to_csv,
    to_markdown,
)

__all__ = ["ExperimentOutputs", "is_experiment", "outcome_mapping", "tables_of", "write_outputs"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExperimentOutputs:
    """What was written.

    Args:
        tables: ``tables.md``.
        page: ``report.html``.
        figures: pictures; () when matplotlib is not installed.
    """

    tables: Path
    page: Path
    figures: tuple[Path, ...]


def is_experiment(directory: Path | str) -> bool:
    """Return whether a directory is an experiment's."""
    return (Path(directory) / CONFIG).is_file()


def tables_of(loaded: Loaded) -> list[MetricTable]:
    """Return a table for each metric, followed by its paired differences to the baseline."""
    tables = []
    for metric in loaded.config.metrics:
        tables.append(summary(loaded.records, metric, loaded.experiment.at))
        if loaded.config.baseline is not None:
            tables.append(
                differences(loaded.records, metric, loaded.experiment.at, loaded.config.baseline)
            )
    return tables


def outcome_mapping(loaded: Loaded, outputs: ExperimentOutputs) -> dict[str, Any]:
    """Return how an experiment ended as plain data; cells are [mean, standard error, count]."""
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


def write_outputs(directory: Path | str, loaded: Loaded | None = None) -> ExperimentOutputs:
    """Write ``tables.md``, ``tables.csv``, ``figures/`` and ``report.html`` of an experiment.

    Args:
        directory: of the experiment, which may go on or have been interrupted.
        loaded: what it holds; None = read it.

    Raises:
        RunError: not an experiment's directory, or it cannot be written.
    """
    from gp_active_sensing.experiments.page import write_comparison

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
    return ExperimentOutputs(page, write_comparison(made.path), figures)
