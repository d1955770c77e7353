from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import PlaceBlocked
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report import reconstruction as steps
from gp_active_sensing.report.payload import build_payload
from gp_active_sensing.report.reconstruction import Reconstruction, replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import run_scenario
from gp_active_sensing.types import Reading
from tests.unit.report.runs import bag_run, decided, node_run, plan, used
from tests.unit.report.runs import record as line_of
from tests.unit.sim.scenarios import GRID, scenario


def done(path: Path, base: dict[str, Any] = GRID, **sections: Any) -> Reconstruction:
    run_scenario(scenario(base, **sections), path)
    return replay(load_run(path))


def test_a_step_a_stage_and_the_maps_are_the_beliefs(tmp_path: Path) -> None:
    found = done(tmp_path / "run")
    data = load_run(tmp_path / "run")
    assert [step.number for step in found.steps] == list(range(7))
    assert [step.observed for step in found.steps] == list(range(7))
    belief = data.fresh_belief()
    prior, _ = belief.predict()
    assert found.mean[0] == pytest.approx(prior)
    for number, record in enumerate(data.records, start=1):
        step = found.steps[number]
        before, variance = belief.predict(np.array([record["location"]]), noisy=True)
        assert step.expected == pytest.approx((before[0], np.sqrt(variance[0])))
        belief.observe(record["location"], record["value"])
        mean, variance = belief.predict()
        assert found.mean[number] == pytest.approx(mean)
        assert found.std[number] == pytest.approx(np.sqrt(variance))
        assert list(step.masses.values()) == pytest.approx(record["weights"])
        assert step.plan is not None
        assert step.plan.waypoint == record["location"]
        assert step.scores["rmspe"] == record["rmspe"]


def test_a_place_that_could_not_be_reached_is_a_step_of_its_own(tmp_path: Path) -> None:
    run = node_run(tmp_path / "run")
    with RunDirectory.open(run) as more:
        more.append_event(decided(3, plan(2), 2))
        more.append_event(to_line(PlaceBlocked(location=2, until_ns=9, why="said so", stamp_ns=2)))
        more.append_event(decided(4, plan(3), 3))
        more.append_event(used(Reading(3, 3, 31.0)))
        more.append_record(line_of(4, plan(3), 31.0))
    data = load_run(run)
    found = replay(data)
    assert [step.number for step in found.steps] == [0, 1, 2, 3, 4]
    assert found.steps[3].record == {"blocked": "said so"}
    assert found.steps[4].value == 31.0
    told = build_payload(data, found)["steps"]
    assert "given up, it could not be reached (said so)" in told[3]["outcome"]
    assert "read 31.0" in told[4]["outcome"]


def test_a_truth_that_changes_is_taken_at_its_time(tmp_path: Path) -> None:
    field = {"kind": "gp", "length_scale": 20.0, "time_scale": 30.0, "signal_std": 5.0}
    found = done(tmp_path / "run", field=field)
    data = load_run(tmp_path / "run")
    assert data.truth is not None
    assert found.truth is not None
    assert found.truth.shape == found.mean.shape
    assert found.truth[0] == pytest.approx(data.truth.at(0.0))
    assert found.truth[-1] == pytest.approx(data.truth.at(data.records[-1]["truth_seconds"]))
    assert np.abs(found.truth[0] - found.truth[-1]).max() > 0.1


def test_a_node_s_run(tmp_path: Path) -> None:
    found = replay(load_run(node_run(tmp_path / "run")))
    assert found.by_stage
    assert found.unused == 1
    assert found.truth is None
    assert [step.value for step in found.steps] == [None, 30.0, 35.0]
    assert [step.at for step in found.steps] == [None, None, 0]
    assert found.belief.observed.nonzero()[0].tolist() == [0, 1]


def test_an_interrupted_stage_has_no_value_yet(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_scenario(scenario(GRID), out)
    lines = (out / "journal.jsonl").read_text().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if '"decision"' in line)
    (out / "journal.jsonl").write_text("".join(lines[: last + 1]))
    records = (out / "records.jsonl").read_text().splitlines(keepends=True)
    (out / "records.jsonl").write_text("".join(records[:-1]))
    found = replay(load_run(out))
    assert found.steps[-1].plan.waypoint is not None
    assert found.steps[-1].value is None
    assert found.mean[-1] == pytest.approx(found.mean[-2])


def test_a_replayed_bag_goes_by_readings(tmp_path: Path) -> None:
    found = replay(load_run(bag_run(tmp_path / "run", 30)))
    assert not found.by_stage
    assert [step.number for step in found.steps] == list(range(31))
    assert found.steps[-1].observed == 12
    assert found.steps[-1].seconds == pytest.approx(29.0)


def test_a_big_map_keeps_some_maps_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "VALUES", 12 * 3)
    found = done(tmp_path / "run")
    assert found.shown == (0, 3, 6)
    assert found.mean.shape == (3, 12)
    assert all(step.scores["rmspe"] is not None for step in found.steps)
