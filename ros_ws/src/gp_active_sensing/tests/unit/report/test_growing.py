"""A run followed event by event, with looks in between, is the run told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.records import events as of
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.report.reconstruction import GrowingReconstruction, replay
from gp_active_sensing.report.source import RunData, load_run
from gp_active_sensing.report.steps import BeliefUpdater, Reconstruction
from gp_active_sensing.report.track import GrowingTracks
from gp_active_sensing.sim import run_scenario
from gp_active_sensing.topology.grids import make_grid
from gp_active_sensing.types import Reading
from tests.unit.report.runs import plan
from tests.unit.sim.scenarios import GRID, LINE, scenario


def followed(data: RunData, *, look: int = 1, records_last: bool = False) -> Reconstruction:
    """Take in the events one by one, look after every few, and get the records in between."""
    growing = GrowingReconstruction(data)
    waiting = list(data.records)
    for number, event in enumerate(parse_events(data.events)):
        growing.add([event])
        if not records_last and waiting and number % 3 == 0:
            growing.records([waiting.pop(0)])
        if number % look == 0:
            growing.now()
    growing.records(waiting)
    return growing.now()


def assert_same(found: Reconstruction, wanted: Reconstruction) -> None:
    assert found.by_stage == wanted.by_stage
    assert found.shown == wanted.shown
    assert found.unused == wanted.unused
    assert found.mean == pytest.approx(wanted.mean)
    assert found.std == pytest.approx(wanted.std)
    assert (found.truth is None) == (wanted.truth is None)
    assert len(found.steps) == len(wanted.steps)
    for ours, theirs in zip(found.steps, wanted.steps, strict=True):
        for name in ("number", "plan", "at", "record", "readings", "observed"):
            assert getattr(ours, name) == getattr(theirs, name), name
        for name in ("seconds", "metres", "expected", "promised"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name)), name
        for name in ("masses", "kernels", "scores"):
            assert dict(getattr(ours, name)) == pytest.approx(dict(getattr(theirs, name))), name


@pytest.mark.parametrize("base", [GRID, LINE])
def test_a_simulated_run(base: dict[str, Any], tmp_path: Path) -> None:
    run_scenario(scenario(base), tmp_path / "run")
    data = load_run(tmp_path / "run")
    for look in (1, 4, 10**6):
        assert_same(followed(data, look=look), replay(data))


def test_several_probes_whose_records_come_late(tmp_path: Path) -> None:
    run_scenario(scenario(GRID, probes=2, budget={"readings": 8}), tmp_path / "run")
    data = load_run(tmp_path / "run")
    found = followed(data, records_last=True)
    assert_same(found, replay(data))
    assert np.isfinite(found.mean).all()


def test_the_way_driven_is_thinned(tmp_path: Path) -> None:
    growing = GrowingTracks(30.0, most=15)
    for number in range(40):
        if number % 10 == 5:
            decision = of.DecisionTaken(stage=3 + number, plan=plan(2), stamp_ns=number)
            growing.add(decision)
        where = of.ProbePosition(1.0, (10 + number, 0.5 * number, 3.0))
        growing.add(of.StatusNoted(probes={"": of.ProbeStatus(where, {})}, stamp_ns=10 + number))
    (track,) = growing.tracks(range(5), by_stage=True)
    assert 7 <= len(track.points) <= 15
    assert track.upto[-1] == len(track.points)
    assert track.upto == sorted(track.upto)


def test_an_answer_about_the_linked_quantity_leaves_its_place_unobserved() -> None:
    grid = make_grid(4, 3, 10.0)
    source = BeliefUpdater(belief_on(BeliefConfig(), grid), grid)
    updater = BeliefUpdater(belief_on(BeliefConfig(), grid), grid, "salt", source)
    assert updater.add(of.ExpertAnswered(reading=Reading(0, 5, 30.0))) is None
    assert not source.belief.observed.any()
    assert source.belief.predict()[1].argmin() == 5
