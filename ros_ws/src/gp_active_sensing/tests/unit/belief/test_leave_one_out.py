"""Explained variance of readings during a mission: times of computation, and messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.belief.leave_one_out import PlacePredictability
from gp_active_sensing.mission.recording import Recorder
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import run_scenario
from gp_active_sensing.util.wording import PredictabilityMonitor, describe_predictability
from tests.unit.sim.scenarios import GRID, scenario


@pytest.fixture
def belief() -> Belief:
    square = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), -1).reshape(-1, 2)
    return build_belief(BeliefConfig(), square, ("x", "y"))


def test_it_is_computed_again_when_the_places_have_grown(belief: Belief) -> None:
    kept, computed = PlacePredictability(), []
    for place in range(49):
        belief.observe(place, float(np.sin(place % 7) + place // 7))
        before, kept = kept, kept.after(int(belief.observed.sum()), belief.leave_one_out)
        if kept is not before:
            computed.append(kept.places)
            found = belief.leave_one_out()
            assert found is not None
            assert kept.share == found.explained
    assert computed == [5, 10, 15, 20, 25, 30, 35, 40, 45]


def test_it_is_said_once_when_it_turns() -> None:
    turns = PredictabilityMonitor()

    def hear(share: float | None, places: int) -> str:
        return turns.message({"explained": share, "explained_places": places})

    assert turns.message({"stage": 1}) == ""
    assert hear(None, 12) == ""
    assert hear(-0.3, 5) == ""
    assert hear(0.4, 10) == ""
    assert hear(-0.01, 15) == f"15 places read: {describe_predictability(-0.01)}"
    assert hear(-0.2, 20) == ""
    assert hear(0.05, 25) == ""
    assert hear(0.12, 30) == f"30 places read: {describe_predictability(0.12)} now"
    assert hear(0.02, 35) == ""
    assert hear(0.0, 40) == f"40 places read: {describe_predictability(0.0)}"


def test_every_stage_has_it_and_the_last_one_is_that_of_the_summary(tmp_path: Path) -> None:
    config = scenario(GRID, budget={"readings": 10})
    found = run_scenario(config, tmp_path / "run")
    with RunDirectory.open(tmp_path / "run") as run:
        records = run.records()
        again = Recorder(run, config.to_mapping())
        assert again.explained_so_far == found.explained, "a process that goes on knows it"
        again.close()
    assert [r["explained_places"] for r in records] == [0] * 4 + [5] * 5 + [10]
    assert [r["explained"] for r in records[:4]] == [None] * 4
    assert records[-1]["explained"] == found.explained
