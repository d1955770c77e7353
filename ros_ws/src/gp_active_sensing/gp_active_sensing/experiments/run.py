"""Run what is left of an experiment, on cores or a cluster, and keep every result as it comes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gp_active_sensing.experiments.plan import Experiment, TrialSpec
from gp_active_sensing.experiments.records import (
    FAILURES,
    RECORDS,
    ExperimentDirectory,
    Loaded,
    is_empty,
)
from gp_active_sensing.experiments.work import Outcome, do_trial, failure_of
from gp_active_sensing.util.process import commit
from gp_active_sensing.util.workers import check_version, connect, on_cores

__all__ = ["OnTrial", "Progress", "cores", "run_experiment", "run_local", "run_on_cluster"]


def cores() -> int:
    """Return the cores that this process may use."""
    if importlib.util.find_spec("joblib") is None:
        return 1
    import joblib

    return int(joblib.cpu_count())


def run_local(trials: Sequence[TrialSpec], jobs: int) -> Generator[Outcome]:
    """Yield the outcomes of trials as they come, in any order.

    Args:
        trials: what to do.
        jobs: worker processes, each with one BLAS thread; 1 = in this process, with the threads
            that it has (the command has one).

    Raises:
        MissingDependencyError: several jobs without joblib.
        RunError: a worker process was ended from outside.
    """
    work = partial(do_trial, source=commit())
    if jobs == 1 or len(trials) < 2:
        yield from map(work, trials)
        return
    advice = "Every trial that was done is kept; go on with --resume, with fewer --jobs if memory "
    yield from on_cores(work, trials, jobs, f"{advice}is short")


def run_on_cluster(trials: Sequence[TrialSpec], client: Any) -> Generator[Outcome]:
    """Yield the outcomes of trials as they come, in any order.

    Args:
        trials: what to do.
        client: from `connect`; it stays open.
    """
    from distributed import as_completed

    futures = {client.submit(do_trial, trial, pure=False): trial for trial in trials}
    try:
        finished = as_completed(
            list(futures), loop=client.loop, with_results=True, raise_errors=False
        )
        for future, result in finished:
            trial = futures.pop(future)
            if isinstance(result, Outcome):
                check_version(result.item.get("versions", {}), "the worker of a trial")
                yield result
            else:  # its worker ended, or could not read the task
                error = result[1] if isinstance(result, tuple) else result
                yield failure_of(trial, error)
    finally:
        client.cancel(list(futures))


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
