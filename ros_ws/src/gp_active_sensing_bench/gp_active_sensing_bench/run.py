"""Run the remaining trials of an experiment on all cores, and store the results."""

from __future__ import annotations

import importlib.util
import logging
import platform
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.records.metrics import SCORES
from gp_active_sensing.sim import Scenario, scenario_from_mapping
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing.types import Clock
from gp_active_sensing.util.files import drop_damage
from gp_active_sensing.util.process import on_cores, versions
from gp_active_sensing_bench.metrics import RELATIVE
from gp_active_sensing_bench.plan import Experiment, TrialSpec
from gp_active_sensing_bench.records import (
    FAILURES,
    RECORDS,
    ExperimentDirectory,
    ExperimentRecords,
    is_empty,
)
from gp_active_sensing_bench.source_tree import commit


@dataclass(frozen=True)
class Trial:
    """Result of a simulated mission.

    Args:
        scenario: scenario with policy and seed.
        records: record of each stage, as in a run directory.
    """

    scenario: Scenario
    records: tuple[Mapping[str, Any], ...]
    reason: str = ""


def run_trial(scenario: Scenario, *, clock: Clock = time.monotonic) -> Trial:
    """Simulate a scenario in memory until its mission ends.

    The result is reproducible if decisions are limited by expansions, not by time. All policies
    have the same fields and noise for a seed. Several robots move in rounds: all robots
    decide, drive and read before a reading is used.
    """
    records: list[Mapping[str, Any]] = []
    rounds = {"mission": {"together": True}} if scenario.probes > 1 else {}
    runner = SimulationRunner(scenario, parameters=rounds, driver="sim", clock=clock)
    runner.on_stage = records.append
    try:
        while runner.mission.state != "ended":
            runner.step()
    finally:
        runner.close()
    found = _with_relative_errors(records, runner) if scenario.quantities else records
    return Trial(scenario, tuple(found), runner.mission.reason)


def _with_relative_errors(
    records: Sequence[Mapping[str, Any]], runner: SimulationRunner
) -> Iterator[Mapping[str, Any]]:
    """Yield the records with relative errors: errors in standard deviations of the true field.

    The relative error of a stage is the mean over the quantities, weighted as in the plans.
    """
    loop = runner.mission.loop
    sensors = {loop.name: runner.world.sensor, **runner.world.further}
    sizes = {name: float(s.truth.at(runner.seconds).std()) for name, s in sensors.items()}
    weights = {loop.name: loop.weight, **{name: q.weight for name, q in loop.quantities.items()}}
    for record in records:
        found = {loop.name: {"rmspe": record["rmspe"]}, **record["quantities"]}
        for name, own in found.items():
            known = own["rmspe"] is not None and sizes[name] > 0.0
            found[name] = {**own, RELATIVE: own["rmspe"] / sizes[name] if known else None}
        errors = [own[RELATIVE] for own in found.values()]
        whole = None if None in errors else np.average(errors, weights=[weights[q] for q in found])
        yield {**record, "quantities": found, RELATIVE: whole}


STAGE_KEYS = (
    *("stage", "observed", "location", "value", "weights", "lower", "upper", "expanded"),
    *("plan_seconds", "deadline_hit", "rmspe", "nlpd", *SCORES[2:], "promised_error"),
    *("promised_worst", "driven_metres", "driven_seconds"),
    # only with several quantities, an objective, several robots or an expert
    *("quantities", RELATIVE),
    *("visits", "probe", "regret", "cumulative_regret", "recommended", "recommended_regret"),
    *("regret_bound", "expert_asked", "expert_used"),
)
"""Keys of a stage's record that are stored."""


@dataclass(frozen=True)
class Outcome:
    """Result of a trial.

    Args:
        item: line for ``records.jsonl`` or ``failures.jsonl``.
        failed: True for a line of ``failures.jsonl``.
    """

    spec: TrialSpec
    item: Mapping[str, Any]
    failed: bool


def do_trial(
    spec: TrialSpec, *, source: str | None = None, clock: Clock = time.monotonic
) -> Outcome:
    """Run a trial. Return any error as a failed outcome, so that other trials continue.

    `source` is the commit for the record; None = commit of the running source tree.
    """
    started = clock()
    try:
        with _warnings() as warnings:
            trial = run_trial(scenario_from_mapping(spec.config), clock=clock)
    except Exception as error:
        return failure_of(spec, error)
    item = {
        "key": spec.key,
        **spec.labels(),
        "config": dict(spec.config),
        "commit": commit() if source is None else source,
        "versions": versions(),
        "platform": platform.platform(),
        "seconds": clock() - started,
        "reason": trial.reason,
        "warnings": list(warnings),
        "stages": [
            {key: record[key] for key in STAGE_KEYS if key in record} for record in trial.records
        ],
    }
    return Outcome(spec, item, failed=False)


class _Collector(logging.Handler):
    """Log handler that stores each distinct message once, in order."""

    def __init__(self, found: dict[str, None]) -> None:
        super().__init__(logging.WARNING)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found[record.getMessage()] = None


@contextmanager
def _warnings() -> Iterator[dict[str, None]]:
    """Collect the logged warnings within the context. Do not print the warnings."""
    found: dict[str, None] = {}
    package = logging.getLogger("gp_active_sensing")
    before = package.handlers, package.propagate
    package.handlers, package.propagate = [_Collector(found)], False
    try:
        yield found
    finally:
        package.handlers, package.propagate = before


def failure_of(spec: TrialSpec, error: BaseException) -> Outcome:
    """Return the outcome of a trial that failed with `error`."""
    item: dict[str, Any] = {
        "key": spec.key,
        **spec.labels(),
        "error": f"{type(error).__name__}: {error}",
    }
    if not isinstance(error, ActiveSensingError):  # unexpected: add the traceback
        item["traceback"] = "".join(traceback.format_exception(error))
    return Outcome(spec, {**item, "config": dict(spec.config)}, failed=True)


def cores() -> int:
    """Return the number of cores that this process may use."""
    if importlib.util.find_spec("joblib") is None:
        return 1
    import joblib

    return int(joblib.cpu_count())


def run_local(trials: Sequence[TrialSpec], jobs: int) -> Generator[Outcome]:
    """Yield the outcomes of trials in any order.

    A single job runs in this process. Several jobs are processes with one BLAS thread each.

    Raises:
        MissingDependencyError: `jobs` is above 1, and joblib is not installed.
        RunError: a worker process was killed.
    """
    work = partial(do_trial, source=commit())
    if jobs == 1 or len(trials) < 2:
        yield from map(work, trials)
        return
    advice = "Every trial that was done is kept; go on with --resume, with fewer --jobs if memory "
    yield from on_cores(work, trials, jobs, f"{advice}is short")


OnTrial = Callable[["Progress", Outcome], None]


@dataclass(frozen=True)
class Progress:
    """Progress of an experiment.

    Args:
        done: number of trials with a record, including records of earlier runs.
        failed: number of failed trials in this run.
        total: number of trials of the experiment.
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
    on_start: Callable[[ExperimentRecords], None] | None = None,
    on_trial: OnTrial | None = None,
) -> ExperimentRecords:
    """Run the trials of an experiment that have no record.

    Args:
        experiment: the experiment.
        out_dir: directory of the experiment; new or empty unless `resume` is True.
        resume: True to continue in a directory: trials with a record are skipped, and failed trials
            are repeated. Records of trials that the experiment no longer has are ignored.
        jobs: number of worker processes; None = one for each core, 1 = run in this process.
        on_start: callback that receives the content of the directory before the first trial.
        on_trial: callback that receives the outcome of each trial.

    Returns:
        The final content of the directory, including failures.

    Raises:
        RunError: the directory or the worker processes cannot be used.
        MissingDependencyError: `jobs` is above 1, and joblib is not installed.
    """
    directory: ExperimentDirectory | None = None
    try:
        directory, before = _directory(experiment, Path(out_dir), resume)
        if on_start is not None:
            on_start(before)
        done = {record["key"] for record in before.records}
        left = [trial for trial in experiment.trials if trial.key not in done]
        count, failed = len(before.records), 0
        with closing(run_local(left, cores() if jobs is None else jobs)) as outcomes:
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


def _directory(
    experiment: Experiment, out_dir: Path, resume: bool
) -> tuple[ExperimentDirectory, ExperimentRecords]:
    """Make or resume the directory of `experiment`. Return the directory and its content."""
    if not resume or (out_dir.is_dir() and is_empty(out_dir)):
        directory = ExperimentDirectory.create(out_dir, experiment)
        return directory, directory.load()
    directory = ExperimentDirectory.open(out_dir)
    directory.lock()
    drop_damage(directory.path / RECORDS)  # the trials of damaged lines run again
    directory.forget_failures()
    directory.write_config(experiment)
    return directory, directory.load()
