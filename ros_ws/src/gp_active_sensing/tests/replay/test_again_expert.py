from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.experts.simulated import SimulatedExpert
from gp_active_sensing.mission.inbox import raw_answer
from gp_active_sensing.mission.requests import ExpertRequest
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.types import FloatArray, IntArray
from tests.replay.missions import Recorder
from tests.replay.test_again import check_equal, compared

pytestmark = pytest.mark.usefixtures("asking")


def slope(places: IntArray, seconds: float) -> FloatArray:
    return np.asarray(10.0 + 0.1 * places + 0.01 * seconds)


class Asked(Recorder):
    """A mission whose expert is slow, sometimes silent and sometimes wrong."""

    def __post_init__(self) -> None:
        self.config = {
            "policy": {"name": "asking"},
            "expert": {"timeout": 0.8},
            "budget": {"readings": 14},
            **self.config,
        }
        super().__post_init__()
        self._wanted: list[tuple[float, ExpertRequest]] = []
        faults = 0.1
        self.expert = SimulatedExpert(slope, 20, noise_std=0.2, delay=0.5, faults=faults)

    def _do(self, steps: list[Any]) -> None:
        for step in steps:
            if step.query:
                self.expert.ask(step.query, self._time + self._some(0.6))
            if isinstance(step.job, ExpertRequest):
                self._wanted.append((self._time + self._some(0.3), step.job))
        super()._do([step for step in steps if not isinstance(step.job, ExpertRequest)])

    def _deliver(self) -> None:
        for at, job in list(self._wanted):
            if at <= self._time:
                self._wanted.remove((at, job))
                self.mission.queried(job, job.ask())
        topology = self.mission.loop.topology
        for reading in self.expert.answers(self._time):
            self.mission.inbox.put(raw_answer(reading, topology), self._time)
        super()._deliver()


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.long) for s in (1, 2))])
@pytest.mark.parametrize("probes", [(), ("boat", "car")], ids=["one", "two"])
def test_the_decisions_come_out_again(tmp_path: Path, seed: int, probes: tuple[str, ...]) -> None:
    played = Asked(seed, probes=probes).run()
    comparison = compared(played.bag(tmp_path / "bag"), tmp_path / "run")
    check_equal(comparison, least=14)
    before = played.mission.consulting
    assert before is not None
    counts = before.books.to_mapping()
    assert counts["late"] > 0
    assert counts["answered"] > 10
    assert RunDirectory.open(tmp_path / "run").summary()["expert"] == counts
