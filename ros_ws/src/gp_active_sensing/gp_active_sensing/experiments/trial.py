"""One run of a scenario without files: its records, nothing else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.sim import Scenario
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing.types import Clock

__all__ = ["Trial", "run_trial"]


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

    def at(self, readings: int, key: str) -> Any:
        """Return a record's value after so many newly observed places.

        Raises:
            ValueError: the run ended before.
        """
        if not 1 <= readings <= len(self.records):
            msg = f"{self.scenario.name}: {len(self.records)} stages, asked for number {readings}"
            raise ValueError(msg)
        return self.records[readings - 1][key]


def run_trial(scenario: Scenario, *, clock: Clock = time.monotonic) -> Trial:
    """Run a scenario in memory until its budget is spent.

    The same scenario and seed give the same fields and noise for every policy, so differences
    between policies may be paired. Several probes play in rounds: all decide, drive and read before
    any reading is used. That is how searches in batches are defined and compared.

    Args:
        scenario: what to simulate; with a limit in expansions the result is reproducible.
        clock: monotonic seconds, for planning times.
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
    return Trial(scenario, tuple(records), runner.mission.reason)
