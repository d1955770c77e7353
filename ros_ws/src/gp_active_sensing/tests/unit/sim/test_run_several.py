from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.metrics import SCORES
from gp_active_sensing.report import write_report
from gp_active_sensing.sim import Scenario, build_world, run_scenario, scenario_from_mapping
from gp_active_sensing.sim.runner import SimulationRunner
from tests.journals import events_of, records_of
from tests.unit.experts.asking import registered
from tests.unit.mission.missions import Killed
from tests.unit.sim.scenarios import GRID, LINE, mapping, scenario
from tests.unit.topology.road_maps import street, write


def fleet(**sections: Any) -> Scenario:
    given = {"probes": 3, "policy": {"name": "max_entropy"}, "budget": {"readings": 8}}
    return scenario(mapping(GRID), **{**given, **sections})


def test_a_run_leaves_what_any_run_leaves(tmp_path: Path) -> None:
    shown: list[Any] = []
    summary = run_scenario(fleet(), tmp_path / "run", on_stage=shown.append)
    assert (summary.status, summary.driver, summary.observed) == ("finished", "sim", 8)
    records = records_of(tmp_path / "run")
    assert shown == records
    assert {record["probe"] for record in records} == {"probe_1", "probe_2", "probe_3"}
    assert summary.stages == len(records)
    assert summary.latency == {}
    assert summary.rmspe is not None
    assert summary.explained is not None
    for key in SCORES[2:]:  # the coverages, by the way of the node's recorder
        assert all(0.0 <= record[key] <= 1.0 for record in records)
        assert 0.0 <= getattr(summary, key) <= 1.0
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["stages"] > 0
    assert write_report(tmp_path / "run").is_file()


def test_long_roads_driven_slowly_make_no_probe_silent(tmp_path: Path) -> None:
    slow = scenario_from_mapping(
        {
            **LINE,
            "map": {"kind": "roads", "file": str(write(tmp_path / "street.geojson", street()))},
            "probes": 3,
            "budget": {"readings": 6},
        }
        | {"policy": {"name": "max_entropy"}, "probe": {"start": "ab", "speed": 0.5}}
    )
    summary = run_scenario(slow, tmp_path / "run")
    assert (summary.observed, summary.dropped, summary.rejected) == (6, {}, 0)
    assert not [e for e in events_of(tmp_path / "run", "roster") if e["why"]]
    assert summary.metres == pytest.approx(0.5 * summary.seconds, rel=0.4)


def test_what_an_expert_said_is_in_the_record_of_the_decision_it_was_for(tmp_path: Path) -> None:
    expert = {"kind": "model", "noise_std": 0.1, "faults": 0.3, "timeout": 4.0, "delay": 1.0}
    with registered():
        told = fleet(probes=2, policy={"name": "asking"}, expert=expert)
        run_scenario(told, tmp_path / "run")
    used, of_stage = 0, {}
    for event in events_of(tmp_path / "run"):
        used += event["event"] == "answer"
        if event["event"] == "decision":
            of_stage[event["stage"]], used = used, 0
    records = records_of(tmp_path / "run")
    assert len(set(of_stage.values())) > 1
    assert {r["stage"]: r["expert_used"] for r in records} == of_stage


def test_a_run_that_was_cut_off_is_begun_anew(tmp_path: Path) -> None:
    def stop(record: Any) -> None:
        if record["stage"] == 4:
            raise Killed

    cut = tmp_path / "cut"
    with pytest.raises(Killed):
        run_scenario(fleet(), cut, on_stage=stop, clock=lambda: 0.0)
    assert json.loads((cut / "summary.json").read_text("utf-8"))["status"] == "failed"
    with pytest.raises(RunError, match="not empty"):
        run_scenario(fleet(), cut)
    with pytest.raises(RunError, match="of another configuration; different: seed"):
        run_scenario(fleet(seed=9), cut, resume=True)
    run_scenario(fleet(), tmp_path / "whole", clock=lambda: 0.0)
    summary = run_scenario(fleet(), cut, resume=True, clock=lambda: 0.0)
    assert records_of(cut) == records_of(tmp_path / "whole")
    # One that has ended stays as it is.
    before = (cut / "journal.jsonl").read_bytes()
    assert run_scenario(fleet(), cut, resume=True).stages == summary.stages
    assert (cut / "journal.jsonl").read_bytes() == before


def test_a_mission_that_does_not_go_on_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_happens(played: SimulationRunner) -> None:
        played.now_ns += 10**12

    monkeypatch.setattr(SimulationRunner, "step", nothing_happens)
    with pytest.raises(RunError, match="the mission does not go on: no probe was sent anywhere"):
        run_scenario(fleet(), tmp_path / "run")


def test_regret_adds_up_in_the_order_in_which_stages_end(tmp_path: Path) -> None:
    built = fleet(policy={"name": "gp_ucb", "scale": 5.0}, budget={"readings": 12})
    summary = run_scenario(built, tmp_path / "run")
    records = records_of(tmp_path / "run")
    total = 0.0
    for record in records:
        total += record["regret"] or 0.0
        assert record["cumulative_regret"] == pytest.approx(total)
    assert summary.regret["cumulative"] == pytest.approx(total)
    field = build_world(built).truth.at(0.0)
    read = [record for record in records if record["value"] is not None]
    assert [r["regret"] for r in read] == pytest.approx(
        [float(field.max() - field[r["location"]]) for r in read]
    )
    assert all(r["regret"] is None for r in records if r["value"] is None)


def test_the_time_for_a_reading_is_the_same_whatever_others_do() -> None:
    sensor = {"dropout": 0.6}
    runner = SimulationRunner(fleet(sensor=sensor, probe={"start": 0, "speed": 0.9}))
    events: list[Any] = []
    runner.parts.recorder.listener = lambda event: events.append(to_line(event))
    assert runner.run(1e4)
    then: dict[tuple[str, int], int] = {}
    waits = []
    for event in events:
        if event["event"] == "miss":
            where = event["probe"], event["location"]
            if where in then:
                waits.append(1e-9 * (event["stamp_ns"] - then[where]))
            then[where] = event["stamp_ns"]
    assert len(waits) > 3
    assert waits == pytest.approx([10.0] * len(waits), abs=1e-6)
