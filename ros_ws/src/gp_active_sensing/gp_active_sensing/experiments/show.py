"""Progress and results of an experiment on the console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gp_active_sensing.experiments.outputs import ExperimentOutputs, tables_of
from gp_active_sensing.experiments.records import FAILURES, Loaded
from gp_active_sensing.experiments.run import Outcome, Progress
from gp_active_sensing.experiments.tables import to_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

__all__ = ["TrialDisplay", "end_lines", "failure_lines", "show_trials"]

SHOWN = 10
"""Failures that are listed at the end; the file has them all."""


class TrialDisplay:
    """Shows what comes: a line a trial, or on a terminal a bar and the failures.

    Args:
        console: where to.
        bar: on a terminal, None elsewhere.
    """

    def __init__(self, console: Console, bar: Bar | None) -> None:
        self._console = console
        self._bar = bar
        self._task = None if bar is None else bar.add_task("trials", total=None)

    def start(self, before: Loaded) -> None:
        """Say what earlier runs have left."""
        done, total = len(before.records), len(before.experiment.trials)
        self._update(Progress(done, 0, total))
        if done or before.other:
            self._say(f"{done} of {total} trials are done already")
        if before.other:
            self._say(
                f"note: {before.other} records are of trials that are not in the file (any more); "
                "they are kept and not counted"
            )

    def trial(self, progress: Progress, outcome: Outcome) -> None:
        """Show a trial that has ended."""
        self._update(progress)
        if outcome.failed:
            self._say(f"failed: {outcome.spec}: {_first_line(outcome.item)}")
        elif self._bar is None:
            self._say(trial_line(progress, outcome))

    def _update(self, progress: Progress) -> None:
        if self._bar is not None and self._task is not None:
            failed = f", {progress.failed} failed" if progress.failed else ""
            self._bar.update(
                self._task,
                total=progress.total,
                completed=progress.done + progress.failed,
                description=f"trials{failed}",
            )

    def _say(self, line: str) -> None:
        (self._console if self._bar is None else self._bar.console).out(line, highlight=False)


def trial_line(progress: Progress, outcome: Outcome) -> str:
    """Return one line for a trial that went well."""
    number = progress.done + progress.failed
    width = len(str(progress.total))
    stages: Sequence[Mapping[str, Any]] = outcome.item["stages"]
    end = [] if not stages else [stages[-1].get("rmspe")]
    rmspe = "".join(f"RMSPE {value:.3g}, " for value in end if value is not None)
    seconds = outcome.item["seconds"]
    return f"{number:>{width}}/{progress.total}  {outcome.spec}: {rmspe}{seconds:.2f} s"


@contextmanager
def show_trials(console: Console) -> Iterator[TrialDisplay]:
    """Yield what shows an experiment as it goes.

    Args:
        console: where to; a terminal gets a progress bar, anything else a line a trial.
    """
    if not console.is_terminal:
        yield TrialDisplay(console, None)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        yield TrialDisplay(console, bar)


def end_lines(loaded: Loaded, outputs: ExperimentOutputs) -> list[str]:
    """Return the first table and where everything is."""
    tables = tables_of(loaded)[:1]
    lines = [*to_text(tables[0]), ""] if tables else []
    lines += loaded.notes
    found = [("records", outputs.tables.parent), ("tables", outputs.tables)]
    found += [("figures", figure.parent) for figure in outputs.figures[:1]]
    found.append(("report", outputs.page))
    return lines + [f"  {what:<9} {path}" for what, path in found]


def failure_lines(loaded: Loaded, directory: str) -> list[str]:
    """Return what failed, one line a trial, and what to do."""
    count = len(loaded.failures)
    what = "1 trial" if count == 1 else f"{count} trials"
    lines = [f"{what} failed; the same command with --out {directory} --resume tries again:"]
    for item in loaded.failures[:SHOWN]:
        budget = "" if item["budget"] is None else f", {item['budget']} readings"
        where = f"{item['configuration']}, {item['policy']}, seed {item['seed']}{budget}"
        lines.append(f"  {where}: {_first_line(item)}")
    if count > SHOWN:
        lines.append(f"  … and {count - SHOWN} more, in {FAILURES}")
    return lines


def _first_line(item: Mapping[str, Any]) -> str:
    return str(item["error"]).split("\n")[0]
