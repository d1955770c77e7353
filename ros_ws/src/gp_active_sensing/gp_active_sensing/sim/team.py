"""Run a scenario of several probes without ROS, in virtual time.

Every probe drives and reads for itself, so decisions come when a probe arrives, as on robots; see
`SimulationRunner`. The run directory is that of any other run.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.records.summary import RunSummary
from gp_active_sensing.sim.begun import check_same, with_model_of
from gp_active_sensing.sim.rehearsal import SimulationRunner
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.world import World
from gp_active_sensing.types import Clock

__all__ = ["PATIENCE", "STEPS", "period_of", "run_team"]

logger = logging.getLogger(__name__)

PATIENCE = 1000
"""Moves in whose time no probe was sent anywhere, after which a mission is given up."""
STEPS = 20
"""Steps of the simulation from one place to the next."""
_FASTEST, _SLOWEST = 0.05, 60.0
"""Bounds of a step [s]."""


_RUN = {"resume": False}
"""Parameters of the mission that are not the scenario's."""


def period_of(world: World) -> float:
    """Return the step of a simulation, a part of the time from a place to one nearby [s]."""
    topology = world.topology
    if topology.n == 1:
        return 1.0
    some = np.unique(np.linspace(0, topology.n - 1, min(topology.n, 50)).astype(int)).tolist()
    times = []
    for place in some:
        apart = np.hypot(*(topology.positions - topology.positions[place]).T)
        nearest = int(np.argmin(np.where(np.arange(topology.n) == place, np.inf, apart)))
        near = nearest if topology.free else next(iter(topology.neighbours(place).tolist()), None)
        if near is None:
            continue
        route = topology.route(place, near, np.ones(topology.n, dtype=np.bool_))
        own = None if isinstance(world.speed, str) else world.speed
        times.append(route.cost.seconds if own is None else route.cost.metres / own)
    typical = float(np.median(times)) if times else STEPS
    return min(max(typical / STEPS, _FASTEST), _SLOWEST)


def run_team(
    scenario: Scenario,
    out_dir: Path | str,
    *,
    resume: bool = False,
    on_stage: Callable[[Mapping[str, Any]], None] | None = None,
    clock: Clock = time.monotonic,
) -> RunSummary:
    """Run a scenario of several probes until its budget is spent or nothing reachable is left.

    Args:
        scenario: what to simulate.
        out_dir: run directory; new or empty unless `resume`.
        resume: the directory may hold a run that was interrupted. It is begun again, which with a
            limit in expansions takes the same decisions again; one that ended stays as it is.
        on_stage: called with each stage's record.
        clock: monotonic seconds, for planning times and limits in seconds.

    Returns:
        The summary, also written to ``summary.json``.

    Raises:
        RunError: the directory cannot be used, or holds a run of another scenario; the mission
            does not go on any more.
        ActiveSensingError: a scenario whose map, table or start cannot be used.
    """
    out_dir = Path(out_dir)
    if resume and (ended := _left_behind(scenario, out_dir)) is not None:
        return ended
    scenario = with_model_of(scenario, out_dir if resume else None)
    team = SimulationRunner(scenario, parameters=_RUN | {"run_dir": str(out_dir)}, driver="sim")
    team.period = period_of(team.world)
    # Decisions take no simulated time, but their limits and records are in real seconds.
    team.mission.loop.clock = clock
    if on_stage is not None:
        team.on_stage = on_stage
    recorder = team.parts.recorder
    try:
        _play(team, scenario)
    except BaseException as error:
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        recorder.save(team.mission, status)
        raise
    else:
        summary = dataclasses.replace(
            recorder.summarise(team.mission, "finished"), latency={}
        )  # messages take no time here
        if recorder.run is not None:
            recorder.run.write_summary(summary.to_mapping())
        return summary
    finally:
        team.close()


def _play(team: SimulationRunner, scenario: Scenario) -> None:
    waits = scenario.sensor.seconds + scenario.expert.timeout + scenario.expert.delay
    patience = PATIENCE * STEPS * team.period + 100.0 * (waits + 60.0)
    decided, since = 0, team.seconds
    while team.mission.state != "ended":
        team.step()
        if len(team.sent) != decided:
            decided, since = len(team.sent), team.seconds
        elif team.seconds - since > patience:
            msg = (
                f"the mission does not go on: no probe was sent anywhere since {since:.0f} s, "
                f"for {patience:.0f} s of simulated time"
            )
            raise RunError(msg)


def _left_behind(scenario: Scenario, out_dir: Path) -> RunSummary | None:
    """Return the summary of a run that has ended; empty the directory of one that has not.

    Raises:
        RunError: it holds something else.
    """
    if not out_dir.is_dir() or not any(p for p in out_dir.iterdir() if p.name[0] != "."):
        return None
    with RunDirectory.begin_again(out_dir) as run:
        scenario = with_model_of(scenario, out_dir)
        check_same(run, scenario)
        summary = run.summary()
        known = {field.name for field in dataclasses.fields(RunSummary)}
        if summary.get("status") == "finished" and set(summary) == known:
            return RunSummary(**summary)
        logger.info("%s: the run of several probes is begun again", out_dir)
        run.clear()
    return None
