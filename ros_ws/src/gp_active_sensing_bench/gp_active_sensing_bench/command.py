"""Command ``experiment``: run many simulations and write tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from gp_active_sensing_bench import ExperimentRecords, Outcome, Progress
    from gp_active_sensing_bench.outputs import ExperimentOutputs


@click.command()
@click.argument("file")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the records of the experiment.",
)
@click.option("--resume", is_flag=True, help="Continue the experiment in the folder --out.")
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes. Default: all cores."
)
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="Only the seeds 0 … N-1.")
@click.option(
    "--baseline",
    metavar="LABEL",
    help="Compare all policies with this one, seed by seed. Default: the baseline in FILE.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the outcome, as JSON.")
def experiment(
    file: str,
    out: Path | None,
    resume: bool,
    jobs: int | None,
    seeds: int | None,
    baseline: str | None,
    as_json: bool,
) -> None:
    """Run many simulations, then write tables and figures.

    FILE is the name of a shipped experiment, or a YAML file.
    """
    import warnings
    from datetime import datetime, timezone

    from rich.console import Console

    from gp_active_sensing.util.files import unused
    from gp_active_sensing_bench import load_experiment, run_experiment, write_outputs
    from gp_active_sensing_bench.outputs import outcome_mapping

    if resume and out is None:
        msg = "--resume needs --out DIR, the directory of the experiment to go on with"
        raise click.UsageError(msg)
    # joblib replaces a worker that uses much memory, and warns needlessly.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
    warnings.filterwarnings("ignore", message=".*tasks which were still being processed")
    # Python's resource tracker inherits this setting. Otherwise it warns after Ctrl-C.
    if (quiet := "ignore:resource_tracker:UserWarning") not in sys.warnoptions:
        sys.warnoptions.append(quiet)
    loaded = load_experiment(file, seeds=seeds, baseline=baseline)
    now = datetime.now(timezone.utc)
    directory = out or unused(Path("runs") / f"{loaded.config.name}-{now:%Y%m%dT%H%M%SZ}")
    console = Console(quiet=as_json, soft_wrap=True)
    try:
        with show_trials(console) as show:
            found = run_experiment(
                loaded,
                directory,
                resume=resume,
                jobs=jobs,
                on_start=show.start,
                on_trial=show.trial,
            )
        outputs = write_outputs(directory, found)
    except KeyboardInterrupt:
        begun = (directory / "experiment.yaml").is_file()
        hint = f"; the same command with --out {directory} --resume goes on" if begun else ""
        msg = f"interrupted{hint}"
        raise click.ClickException(msg) from None
    if as_json:
        click.echo(json.dumps(outcome_mapping(found, outputs), indent=2, allow_nan=False))
    else:
        for line in end_lines(found, outputs, differences=baseline is not None):
            click.echo(line)
    if found.failures:
        raise click.ClickException("\n".join(failure_lines(found, str(directory))))


SHOWN = 10
"""Largest number of failures that are listed on the console."""


class TrialDisplay:
    """Console display of an experiment, with a progress bar or a line for each trial."""

    def __init__(self, console: Console, bar: Bar | None) -> None:
        self._console = console
        self._bar = bar
        self._task = None if bar is None else bar.add_task("trials", total=None)

    def start(self, before: ExperimentRecords) -> None:
        """Show the number of trials that earlier runs have completed."""
        done, total = len(before.records), len(before.experiment.trials)
        self._update(done, 0, total)
        if done or before.other:
            self._say(f"{done} of {total} trials are done already")
        if before.other:
            self._say(
                f"note: {before.other} records are of trials that are not in the file (any more); "
                "they are kept and not counted"
            )

    def trial(self, progress: Progress, outcome: Outcome) -> None:
        """Show a completed trial."""
        self._update(progress.done, progress.failed, progress.total)
        if outcome.failed:
            self._say(f"failed: {outcome.spec}: {_first_line(outcome.item)}")
        elif self._bar is None:
            self._say(trial_line(progress, outcome))

    def _update(self, done: int, failed: int, total: int) -> None:
        if self._bar is not None and self._task is not None:
            text = "trials" + (f", {failed} failed" if failed else "")
            self._bar.update(self._task, total=total, completed=done + failed, description=text)

    def _say(self, line: str) -> None:
        (self._console if self._bar is None else self._bar.console).out(line, highlight=False)


def trial_line(progress: Progress, outcome: Outcome) -> str:
    """Return the console line of a successful trial."""
    number = progress.done + progress.failed
    width = len(str(progress.total))
    stages: Sequence[Mapping[str, Any]] = outcome.item["stages"]
    end = [] if not stages else [stages[-1].get("rmspe")]
    rmspe = "".join(f"RMSPE {value:.3g}, " for value in end if value is not None)
    seconds = outcome.item["seconds"]
    return f"{number:>{width}}/{progress.total}  {outcome.spec}: {rmspe}{seconds:.2f} s"


@contextmanager
def show_trials(console: Console) -> Iterator[TrialDisplay]:
    """Provide the display for a terminal or another output."""
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


def end_lines(
    loaded: ExperimentRecords, outputs: ExperimentOutputs, *, differences: bool = False
) -> list[str]:
    """Return lines with the table of the first metric, notes, and the paths of the files.

    With `differences`, the table of differences from the baseline follows.
    """
    from gp_active_sensing_bench import tables_of
    from gp_active_sensing_bench.tables import to_text

    tables = tables_of(loaded)[: 2 if differences else 1]
    lines = [line for table in tables for line in (*to_text(table), "")]
    lines += loaded.notes
    found = [("records", outputs.tables.parent), ("tables", outputs.tables)]
    found += [("figures", figure.parent) for figure in outputs.figures[:1]]
    found.append(("report", outputs.page))
    return lines + [f"  {what:<9} {path}" for what, path in found]


def failure_lines(loaded: ExperimentRecords, directory: str) -> list[str]:
    """Return lines that list the failed trials, and the command that repeats these trials."""
    from gp_active_sensing_bench.records import FAILURES

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
