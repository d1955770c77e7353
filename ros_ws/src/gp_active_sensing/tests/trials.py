"""A scenario that is run in memory, several probes in rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.sim import Scenario
from gp_active_sensing.sim.runner import SimulationRunner


@dataclass(frozen=True)
class Trial:
    """Records of the stages, and why the mission ended."""

    records: tuple[Mapping[str, Any], ...]
    reason: str


def run_trial(scenario: Scenario) -> Trial:
    """Run a scenario until its budget is spent; probes decide, drive and read in rounds."""
    records: list[Mapping[str, Any]] = []
    rounds = {"mission": {"together": True}} if scenario.probes > 1 else {}
    runner = SimulationRunner(scenario, parameters=rounds, driver="sim")
    runner.on_stage = records.append
    try:
        while runner.mission.state != "ended":
            runner.step()
    finally:
        runner.close()
    return Trial(tuple(records), runner.mission.reason)
