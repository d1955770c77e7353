"""Run a scenario to its end without ROS, and keep its records."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gp_active_sensing.belief import keep_model
from gp_active_sensing.records.events import start_event
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.records.summary import RunSummary, summarise
from gp_active_sensing.sim.begun import check_same, with_model_of
from gp_active_sensing.sim.mission import EventMission
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.world import build_loop, build_world
from gp_active_sensing.types import Clock
from gp_active_sensing.util.versions import versions

__all__ = ["OnStage", "run_name", "run_scenario"]

logger = logging.getLogger(__name__)

_DIGITS = 3
"""Of the live truth that is kept for reports."""

OnStage = Callable[[Mapping[str, Any]], None]
"""Called with the record of each stage as it is completed."""


def run_name(scenario: Scenario, now: datetime) -> str:
    """Return the default name of a run directory.

    Args:
        scenario: what is run.
        now: time of the start, with a time zone.
    """
    policy = scenario.policy["name"]
    stamp = now.astimezone(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return f"{scenario.name}-{policy}-seed{scenario.seed}-{stamp}"


def run_scenario(
    scenario: Scenario,
    out_dir: Path | str,
    *,
    resume: bool = False,
    on_stage: OnStage | None = None,
    clock: Clock = time.monotonic,
) -> RunSummary:
    """Run a scenario until its budget is spent or nothing reachable is left.

    Ask, drive along the path, read, tell, record. Places crossed on the way are read as well when
    the sensor says so. A visit without a reading is repeated, then the place is set aside. Several
    probes do so beside each other, as they do with nodes; see `run_team`.

    Args:
        scenario: what to simulate.
        out_dir: run directory; new or empty unless `resume`.
        resume: go on with the run that `out_dir` holds. With a limit in expansions the result is
            equal to the bit to that of a run that was never interrupted.
        on_stage: called with each new stage's record.
        clock: monotonic seconds, for planning times.

    Returns:
        The summary, also written to ``summary.json``.

    Raises:
        RunError: the directory cannot be used, or holds a run of another scenario.
        ActiveSensingError: a scenario whose map, table or start cannot be used.
    """
    if scenario.probes > 1:
        from gp_active_sensing.sim.team import run_team

        return run_team(scenario, out_dir, resume=resume, on_stage=on_stage, clock=clock)
    out_dir = Path(out_dir)
    with ExitStack() as stack:
        run = _begun(out_dir) if resume else None
        if run is not None:  # nobody else writes there from here on, and what is read holds
            stack.enter_context(run)
        scenario = with_model_of(scenario, out_dir if resume else None)
        world = build_world(scenario)
        loop = build_loop(
            scenario,
            world.topology,
            budget=world.budget,
            clock=clock,
            run_dir=out_dir if resume else None,
        )
        mission = stack.enter_context(closing(EventMission(scenario, world, loop)))
        again = run is not None
        if run is not None:
            check_same(run, scenario)
        else:
            run = stack.enter_context(RunDirectory.create(out_dir, scenario.to_mapping()))
            keep_model(scenario.belief, out_dir)
        run.hold()
        records = _replay(run, mission) if again else []
        if not mission.ended:
            if not again:
                run.append_event(start_event(seed=scenario.seed, versions=versions()))
            try:
                _go_on(run, mission, records, on_stage)
            except BaseException as error:
                status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
                _last_words(run, mission, records, status, error)
                raise
        summary = _summary(run, mission, records, "finished")
        run.write_summary(summary.to_mapping())
    return summary


def _go_on(
    run: RunDirectory,
    mission: EventMission,
    records: list[dict[str, Any]],
    on_stage: OnStage | None,
) -> None:
    while not mission.ended:
        run.append_event(mission.step())
        record = mission.finish_stage()
        if record is not None:
            _keep(run, mission, record)
            records.append(record)
            if on_stage is not None:
                on_stage(record)


def _replay(run: RunDirectory, mission: EventMission) -> list[dict[str, Any]]:
    """Bring a fresh mission to where the journal ends, and write the records again."""
    run.repair(until_damage=True)  # what was simulated after it is simulated again
    events = run.events()
    run.forget_records()
    records: list[dict[str, Any]] = []
    if not events:
        run.append_event(start_event(seed=mission.scenario.seed, versions=versions()))
    for event in events:
        mission.replay(event)
        record = mission.finish_stage()
        if record is not None:
            _keep(run, mission, record)
            records.append(record)
    logger.info("resumed %s after %d stages", run.path, len(records))
    return records


def _keep(run: RunDirectory, mission: EventMission, record: Mapping[str, Any]) -> None:
    """Write the record of a stage; with live traffic also the truth, which no file knows."""
    if mission.world.traffic is not None:
        seconds = float(record["truth_seconds"])
        values = mission.world.truth.at(seconds).round(_DIGITS).tolist()
        run.append_truth({"seconds": seconds, "values": values})
    run.append_record(record)


def _begun(out_dir: Path) -> RunDirectory | None:
    """Return the run that a directory holds, locked; None when nothing was written there yet."""
    if out_dir.is_dir() and not any(p for p in out_dir.iterdir() if not p.name.startswith(".")):
        return None
    return RunDirectory.begin_again(out_dir)


def _last_words(
    run: RunDirectory,
    mission: EventMission,
    records: list[dict[str, Any]],
    status: str,
    error: BaseException,
) -> None:
    """Leave a summary that says how far the run came; the error itself goes on."""
    reason = str(error) or type(error).__name__
    try:
        run.write_summary(_summary(run, mission, records, status, reason).to_mapping())
    except Exception:
        # The first error is the one to report; this one often has the same cause (a full disk).
        logger.exception("%s: no summary could be written", run.path)


def _summary(
    run: RunDirectory,
    mission: EventMission,
    records: list[dict[str, Any]],
    status: str,
    reason: str = "",
) -> RunSummary:
    return summarise(
        mission.scenario.to_mapping(),
        mission.loop,
        records,
        status=status,
        reason=reason or mission.reason,
        driven=mission.driven,
        run_dir=run.path,
        scorer=mission.scorer,
        at_seconds=mission.driven.seconds,
        unit=mission.scenario.field.unit,
        dropouts=mission.dropouts,
        expert=None if mission.consulting is None else mission.consulting.to_mapping(),
    )
