from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import PlaceBlocked, ReturnBegun
from gp_active_sensing.records.metrics import rmspe
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report import reconstruction as steps
from gp_active_sensing.report.payload import build_payload
from gp_active_sensing.report.reconstruction import Reconstruction, replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import run_scenario
from gp_active_sensing.types import Cost, Reading
from tests.journals import change_events
from tests.unit.report.runs import bag_run, decided, node_run, plan, used
from tests.unit.report.runs import record as line_of
from tests.unit.sim.scenarios import GRID, LINE, scenario


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
        assert step.place == record["location"]
        assert step.rmspe == record["rmspe"]


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


def test_after_a_way_home_the_stages_keep_their_numbers(tmp_path: Path) -> None:
    run = node_run(tmp_path / "run")
    home = ReturnBegun(reason="spent", path=(0,), cost=Cost(0.0, 0.0), stamp_ns=3)
    with RunDirectory.open(run) as more:
        more.append_event(to_line(home))
        more.append_event(decided(3, plan(2), 4))
        more.append_record(line_of(3, plan(2), 31.0))
    found = replay(load_run(run))
    assert [step.record.get("stage") for step in found.steps] == [None, 1, None, None, 3]


def test_the_errors_before_the_first_decision_are_computed(tmp_path: Path) -> None:
    found = done(tmp_path / "run")
    assert found.truth is not None
    assert found.truth.shape == (1, 12)
    nothing = np.zeros(12, dtype=bool)
    assert found.steps[0].rmspe == pytest.approx(rmspe(found.mean[0], found.truth[0], nothing))
    assert found.steps[0].nlpd is not None


def test_errors_are_computed_where_records_are_missing(tmp_path: Path) -> None:
    found = done(tmp_path / "run")
    (tmp_path / "run" / "records.jsonl").unlink()
    again = replay(load_run(tmp_path / "run"))
    for step, other in zip(found.steps, again.steps, strict=True):
        assert other.rmspe == pytest.approx(step.rmspe)
        assert other.nlpd == pytest.approx(step.nlpd)
        assert other.value == pytest.approx(step.value)


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
    assert found.steps[-1].place is not None
    assert found.steps[-1].value is None
    assert found.mean[-1] == pytest.approx(found.mean[-2])


def test_a_replayed_bag_goes_by_readings(tmp_path: Path) -> None:
    found = replay(load_run(bag_run(tmp_path / "run", 30)))
    assert not found.by_stage
    assert [step.number for step in found.steps] == list(range(31))
    assert found.steps[-1].observed == 12
    assert found.steps[-1].seconds == pytest.approx(29.0)


def test_many_readings_are_gathered(tmp_path: Path) -> None:
    found = replay(load_run(bag_run(tmp_path / "run", 1003)))
    assert steps.GROUPS < len(found.steps) <= 2 * steps.GROUPS + 1
    assert found.steps[-1].number == 1003
    assert sum(count for step in found.steps for _, _, count in step.readings) == 1003
    sizes = np.diff([step.number for step in found.steps])
    assert set(sizes[:-1].tolist()) == {4}


def test_a_big_map_keeps_some_maps_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "VALUES", 12 * 3)
    found = done(tmp_path / "run")
    assert found.shown == (0, 3, 6)
    assert found.mean.shape == (3, 12)
    assert all(step.rmspe is not None for step in found.steps)


def test_no_reading_at_all(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path / "run", {"map": LINE["map"], "belief": LINE["belief"]}).close()
    found = replay(load_run(tmp_path / "run"))
    assert len(found.steps) == 1
    assert found.shown == (0,)


def test_a_damaged_event_is_named(tmp_path: Path) -> None:
    out = node_run(tmp_path / "run")
    damaged = {"event": "reading", "value": 3}
    change_events(out / "journal.jsonl", lambda events: events.append(damaged))
    with pytest.raises(RunError, match="expected an event 'reading'"):
        replay(load_run(out))


def test_candidates_that_follow_the_readings(tmp_path: Path) -> None:
    """A belief nobody tuned: length-scales come and go, and the page shows groups of them."""
    what = scenario(GRID, belief={"length_scales": None, "signal_std": None, "noise_std": None})
    run_scenario(what, tmp_path / "run")
    found = replay(load_run(tmp_path / "run"))
    for step in found.steps:
        of_none = step.kernels["none"]  # where nothing is to be learned there is no length-scale
        assert sum(step.masses.values()) == pytest.approx(1.0 - of_none)
    assert sum(found.prior.values()) == pytest.approx(0.75)
    payload = build_payload(load_run(tmp_path / "run"), found)
    assert len(payload["scales"]["labels"]) <= 12
    for step in payload["steps"]:
        assert sum(step["weights"]) + step["kernels"][-1] == pytest.approx(1.0, abs=0.01)
