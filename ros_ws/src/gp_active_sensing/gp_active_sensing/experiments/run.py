"""Run what is left of an experiment, and keep every result as it comes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.experiments.cluster import run_on_cluster
from gp_active_sensing.experiments.local import cores, run_local
from gp_active_sensing.experiments.plan import Experiment, TrialSpec
from gp_active_sensing.experiments.records import (
    FAILURES,
    RECORDS,
    ExperimentDirectory,
    Loaded,
    is_empty,
)
from gp_active_sensing.experiments.work import Outcome
from gp_active_sensing.util.cluster import connect

__all__ = ["OnTrial", "Progress", "run_experiment"]

OnTrial = Callable[["Progress", Outcome], None]


@dataclass(frozen=True)
class Progress:
    """How far an experiment is.

    Args:
        done: trials with a record, those of earlier runs included.
        failed: trials that failed in this run.
        total: trials of the file.
    """

    done: int
    failed: int
    total: int


def run_experiment(
    experiment: Experiment,
    out_dir: Path | str,
    *,
    resume: bool = False,
    jobs: int | None = None,
    cluster: str | None = None,
    on_start: Callable[[Loaded], None] | None = None,
    on_trial: OnTrial | None = None,
) -> Loaded:
    """Run the trials of an experiment that have no record yet.

    Example:
        >>> from gp_active_sensing.experiments import load_experiment, summary, write_outputs
        >>> loaded = run_experiment(load_experiment("bal_1d", seeds=2), "out")  # doctest: +SKIP
        >>> summary(loaded.records, "rmspe", (5, 10)).rows[0].cells  # doctest: +SKIP
        >>> write_outputs("out")  # doctest: +SKIP

    Args:
        experiment: what to run.
        out_dir: directory; new or empty unless `resume`.
        resume: skip the trials that have a record there, and try again those that failed. The file
            may have been changed since: what is no longer in it is kept and not counted.
        jobs: worker processes; None = one a core. With 1, trials run in this process.
        cluster: address of a dask scheduler to use instead.
        on_start: called once, with what earlier runs have left.
        on_trial: called with each outcome as it comes.

    Returns:
        What the directory holds in the end, failures included; `write_outputs` writes tables,
        figures and a page from it.

    Raises:
        RunError: the directory cannot be used, or the workers cannot.
        MissingDependencyError: several jobs without joblib, a cluster without dask.distributed.
    """
    client = None if cluster is None else connect(cluster)
    directory: ExperimentDirectory | None = None
    try:
        directory, before = _directory(experiment, Path(out_dir), resume)
        if on_start is not None:
            on_start(before)
        done = {record["key"] for record in before.records}
        left = [trial for trial in experiment.trials if trial.key not in done]
        count, failed = len(before.records), 0
        with closing(_outcomes(left, jobs, client)) as outcomes:
            for outcome in outcomes:
                directory.append(FAILURES if outcome.failed else RECORDS, outcome.item)
                count += not outcome.failed
                failed += outcome.failed
                if on_trial is not None:
                    on_trial(Progress(count, failed, len(experiment.trials)), outcome)
        return directory.load()
    finally:
        if directory is not None:
            directory.close()
        if client is not None:
            client.close()


def _directory(
    experiment: Experiment, out_dir: Path, resume: bool
) -> tuple[ExperimentDirectory, Loaded]:
    """Return the directory, repaired and with the configuration of now, and what it holds."""
    if not resume or (out_dir.is_dir() and is_empty(out_dir)):
        directory = ExperimentDirectory.create(out_dir, experiment)
        return directory, directory.load()
    directory = ExperimentDirectory.open(out_dir)
    directory.lock()
    directory.drop_damage()
    directory.forget_failures()
    directory.write_config(experiment)
    return directory, directory.load()


def _outcomes(left: list[TrialSpec], jobs: int | None, client: Any) -> Generator[Outcome]:
    if client is not None:
        return run_on_cluster(left, client)
    return run_local(left, cores() if jobs is None else jobs)
