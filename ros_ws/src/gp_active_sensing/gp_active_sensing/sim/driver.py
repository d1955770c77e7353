"""Run a scenario without ROS, or resume a run, and write its records."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gp_active_sensing.belief.run_copy import as_begun, keep_model, with_mark
from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import RunError
from gp_active_sensing.records.earlier import EarlierRun
from gp_active_sensing.records.run_directory import CONFIG, RunDirectory
from gp_active_sensing.records.run_map import as_begun_with
from gp_active_sensing.records.summary import RunSummary
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing.sim.scenario import Scenario, scenario_from_mapping
from gp_active_sensing.types import Clock, Plan
from gp_active_sensing.util.files import differences


def check_same(run: RunDirectory, scenario: Scenario) -> None:
    """Raise RunError if a directory contains a run of another scenario."""
    stored = scenario_from_mapping(run.config, source=str(run.path / CONFIG))
    different = sorted(differences(to_mapping(stored), to_mapping(scenario)))
    if different:
        msg = (
            f"{run.path} holds a run of another configuration; different: {', '.join(different)}. "
            "Resume it with the same options, or name another directory with --out"
        )
        raise RunError(msg)


def with_model_of(scenario: Scenario, run_dir: Path | None) -> Scenario:
    """Return the scenario with the checksum of its kernel model, if its belief has a model.

    A resumed run uses the copy of the model in its directory `run_dir`.

    Raises:
        ConfigError: the model does not exist, or has another checksum than the scenario states.
        RunError: the run directory cannot be read.
    """
    belief = scenario.belief
    if belief.model is None:
        return scenario
    if run_dir is not None and (run_dir / CONFIG).is_file():
        stored = RunDirectory.open(run_dir).config.get("belief")
        belief = as_begun(belief, stored if isinstance(stored, Mapping) else {}, run_dir)
    return dataclasses.replace(scenario, belief=with_mark(belief, run_dir))


logger = logging.getLogger(__name__)

PATIENCE = 10_000.0
"""Longest simulated time without a moving probe or a new waypoint [s]."""


def run_name(scenario: Scenario, now: datetime) -> str:
    """Return the default name of a run directory."""
    policy = scenario.policy["name"]
    stamp = now.astimezone(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return f"{scenario.name}-{policy}-seed{scenario.seed}-{stamp}"


def run_scenario(
    scenario: Scenario,
    out_dir: Path | str,
    *,
    resume: bool = False,
    on_stage: Callable[[Mapping[str, Any]], None] | None = None,
    on_home: Callable[[Plan, str], None] | None = None,
    clock: Clock = time.monotonic,
) -> RunSummary:
    """Run a scenario until its budget is spent or no place can be reached.

    Args:
        scenario: the scenario.
        out_dir: run directory; without `resume` a new or empty folder.
        resume: continue the run in `out_dir` with the decisions of its journal. If
            `limit.expansions` is set, the result equals that of an uninterrupted run to the bit.
        on_stage: callback for the record of each stage.
        on_home: callback that receives the plan of a drive to the end place, and the probe's name.
        clock: monotonic clock for planning times [s].

    Returns:
        The summary, which is also written to ``summary.json``.

    Raises:
        RunError: the directory cannot be used or has a run of another scenario, or a file could not
            be written.
        ActiveSensingError: a scenario whose map, table or start cannot be used.
    """
    out_dir = Path(out_dir)
    with ExitStack() as stack:
        earlier = _earlier(scenario, out_dir) if resume else None
        if earlier is not None:
            stack.enter_context(earlier.run)
            logger.info("%s: continuing after %d events", out_dir, earlier.count)
            begun = as_begun_with(scenario.map, earlier.run.start)
            scenario = dataclasses.replace(scenario, map=begun)
        scenario = with_model_of(scenario, out_dir if resume else None)

        def open_run() -> EarlierRun:
            if earlier is not None:
                return earlier
            run = stack.enter_context(RunDirectory.create(out_dir, scenario.to_mapping()))
            keep_model(scenario.belief, out_dir)
            return EarlierRun(run, ())

        made = [folder for folder in out_dir.parents if not folder.exists()]
        try:
            runner = SimulationRunner(scenario, driver="sim", clock=clock, open_run=open_run)
        except BaseException:
            for folder in made:  # the run directory itself is removed already
                with suppress(OSError):
                    folder.rmdir()
            raise
        stack.callback(runner.close)
        runner.on_stage, runner.on_home = on_stage, on_home
        try:
            _play(runner, scenario)
            if earlier is not None:
                earlier.check_end()
        except BaseException as error:
            _write_partial_summary(runner, error)
            raise
        summary = _summary(runner, "finished")
        recorder = runner.parts.recorder
        if problem := recorder.conclude(runner.mission, summary=summary.to_mapping()):
            msg = f"{out_dir}: the mission is over, but {problem}"
            raise RunError(msg)
    return summary


def _play(runner: SimulationRunner, scenario: Scenario) -> None:
    waits = scenario.sensor.seconds + scenario.expert.timeout + scenario.expert.delay
    patience = PATIENCE + 100.0 * waits
    decided, since = 0, runner.seconds
    while runner.mission.state != "ended":
        runner.step()
        driving = bool(runner.changing) or any(
            player.seconds_to_event is not None for player in runner.players.values()
        )
        if driving or len(runner.sent) != decided:
            decided, since = len(runner.sent), runner.seconds
        elif runner.seconds - since > patience:
            msg = (
                f"the mission does not go on: no probe was sent anywhere since {since:.0f} s, "
                f"for {patience:.0f} s of simulated time"
            )
            raise RunError(msg)


def _earlier(scenario: Scenario, out_dir: Path) -> EarlierRun | None:
    if out_dir.is_dir() and not any(p for p in out_dir.iterdir() if not p.name.startswith(".")):
        return None
    with ExitStack() as stack:
        run = stack.enter_context(RunDirectory.begin_again(out_dir))
        check_same(run, with_model_of(scenario, out_dir))
        run.open_files()
        run.repair(until_damage=True)  # the lost steps are simulated again
        earlier = EarlierRun(run, run.events())
        run.forget_records()
        stack.pop_all()
        return earlier


def _write_partial_summary(runner: SimulationRunner, error: BaseException) -> None:
    status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
    reason = str(error) or type(error).__name__
    run = runner.parts.recorder.run
    assert run is not None  # created before the simulation starts
    try:
        summary = dataclasses.replace(_summary(runner, status), reason=reason)
        run.write_summary(summary.to_mapping())
    except Exception:
        # Report the first error; this error often has the same cause, such as a full disk.
        logger.exception("%s: no summary could be written", run.path)


def _summary(runner: SimulationRunner, status: str) -> RunSummary:
    summary = runner.parts.recorder.summarise(runner.mission, status)
    expert = summary.expert and {**summary.expert, "waited_seconds": runner.waited}
    return dataclasses.replace(summary, latency={}, dropouts=runner.dropouts, expert=expert)
