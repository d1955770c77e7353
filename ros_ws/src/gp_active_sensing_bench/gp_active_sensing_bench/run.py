"""Run the remaining trials of an experiment on all cores, and store each result."""

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
    Loaded,
    is_empty,
)
from gp_active_sensing_bench.source_tree import commit


@dataclass(frozen=True)
class Trial:
    """A finished run.

    Args:
        scenario: what was simulated, with policy and seed.
        records: one mapping a stage, as in a run directory's ``records.jsonl``.
        reason: why the mission ended.
    """

    scenario: Scenario
    records: tuple[Mapping[str, Any], ...]
    reason: str = ""


def run_trial(scenario: Scenario, *, clock: Clock = time.monotonic) -> Trial:
    """Run a scenario in memory until its budget is spent; reproducible with a limit in expansions.

    The same scenario and seed give the same fields and noise for every policy, so differences
    between policies may be paired. Several probes play in rounds: all decide, drive and read before
    any reading is used. That is how searches in batches are defined and compared.
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
    """Yield the records with the errors of the maps in standard deviations of the true fields.

    That of a stage is the mean of the quantities, by their weights in the plans.
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
    # only where there are several quantities, an objective, several probes or an expert
    *("quantities", RELATIVE),
    *("visits", "probe", "regret", "cumulative_regret", "recommended", "recommended_regret"),
    *("regret_bound", "expert_asked", "expert_used"),
)
"""Keys of a stage's record that are kept. Candidates and paths, most of a record, are not."""


@dataclass(frozen=True)
class Outcome:
    """Result of a trial.

    Args:
        spec: the trial.
        item: a line for ``records.jsonl`` or ``failures.jsonl``.
        failed: it is the latter.
    """

    spec: TrialSpec
    item: Mapping[str, Any]
    failed: bool


def do_trial(
    spec: TrialSpec, *, source: str | None = None, clock: Clock = time.monotonic
) -> Outcome:
    """Run a trial; an error becomes a failure, so that the other trials go on.

    Args:
        spec: what to simulate; the stages depend on nothing else (but their planning times).
        source: commit for the record; None = that of the tree this process runs from.
        clock: monotonic seconds, for planning times.
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
    """Keeps each message once, in the order they came."""

    def __init__(self, found: dict[str, None]) -> None:
        super().__init__(logging.WARNING)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found[record.getMessage()] = None


@contextmanager
def _warnings() -> Iterator[dict[str, None]]:
    """Collect what a mission warns of; a hundred missions would fill the screen with the same."""
    found: dict[str, None] = {}
    package = logging.getLogger("gp_active_sensing")
    before = package.handlers, package.propagate
    package.handlers, package.propagate = [_Collector(found)], False
    try:
        yield found
    finally:
        package.handlers, package.propagate = before


def failure_of(spec: TrialSpec, error: BaseException) -> Outcome:
    """Return the outcome of a trial that raised an error, or whose process ended."""
    item: dict[str, Any] = {
        "key": spec.key,
        **spec.labels(),
        "error": f"{type(error).__name__}: {error}",
    }
    if not isinstance(error, ActiveSensingError):  # a defect: where it happened is worth keeping
        item["traceback"] = "".join(traceback.format_exception(error))
    return Outcome(spec, {**item, "config": dict(spec.config)}, failed=True)


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
    on_start: Callable[[Loaded], None] | None = None,
    on_trial: OnTrial | None = None,
) -> Loaded:
    """Run the trials of an experiment that have no record yet.

    Args:
        experiment: what to run.
        out_dir: directory; new or empty unless `resume`.
        resume: skip the trials that have a record there, and try again those that failed. The file
            may have been changed since: what is no longer in it is kept and not counted.
        jobs: worker processes; None = one a core. With 1, trials run in this process.
        on_start: called once, with what earlier runs have left.
        on_trial: called with each outcome as it comes.

    Returns:
        What the directory holds in the end, failures included; `write_outputs` writes tables,
        figures and a page from it.

    Raises:
        RunError: the directory cannot be used, or the workers cannot.
        MissingDependencyError: several jobs without joblib.
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
) -> tuple[ExperimentDirectory, Loaded]:
    """Return the directory, repaired and with the configuration of now, and what it holds."""
    if not resume or (out_dir.is_dir() and is_empty(out_dir)):
        directory = ExperimentDirectory.create(out_dir, experiment)
        return directory, directory.load()
    directory = ExperimentDirectory.open(out_dir)
    directory.lock()
    drop_damage(directory.path / RECORDS)  # their trials are done again
    directory.forget_failures()
    directory.write_config(experiment)
    return directory, directory.load()
