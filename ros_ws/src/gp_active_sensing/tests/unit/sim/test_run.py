from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import Scenario, run_scenario, scenario_from_mapping
from tests.journals import events_of
from tests.requesting import Ticking
from tests.unit.sim.scenarios import scenario


def run(what: Scenario, out: Path, **more: Any) -> dict[str, Any]:
    return run_scenario(what, out, clock=Ticking(1e-3), **more).to_mapping()


def test_a_run_leaves_everything_in_its_directory(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "run"
    seen: list[int] = []
    summary = run(scenario(), out, on_stage=lambda record: seen.append(record["stage"]))
    assert seen == [1, 2, 3, 4, 5, 6]
    assert summary["status"] == "finished"
    assert "budget" in summary["reason"]
    assert summary["observed"] == summary["stages"] == 6
    assert "noise-free" in summary["errors_against"]
    assert json.loads((out / "summary.json").read_text()) == summary
    assert scenario_from_mapping(yaml.safe_load((out / "config.yaml").read_text())) == scenario()
    records = RunDirectory.open(out).records()
    for record in records:
        assert record["lower"] <= record["upper"]
        assert sum(record["weights"]) == pytest.approx(1.0)
    assert records[-1]["rmspe"] == summary["rmspe"]
    kinds = [event["event"] for event in events_of(out) if event["event"] != "status"]
    stages = ["asked", "decision", "reading", "moved"] * 6
    assert kinds == ["start", "state", *stages, "asked", "unused", "end"]


def test_ends_early_when_everything_is_observed(tmp_path: Path) -> None:
    summary = run(scenario(budget={"readings": 100}, policy={"name": "random"}), tmp_path / "run")
    assert summary["observed"] == 12
    assert "observed" in summary["reason"]
    assert summary["rmspe"] is None
    assert summary["nlpd"] is None
    assert summary["rmse"] < 1.0


def test_a_place_without_readings_is_tried_again_then_set_aside(tmp_path: Path) -> None:
    what = scenario(sensor={"dropout": 1.0, "retries": 2}, budget={"readings": 2})
    summary = run(what, tmp_path / "run")
    # No place ever gives a reading: each is visited three times and said.
    assert summary["observed"] == 0
    assert len(summary["set_aside"]) == 12
    assert summary["dropouts"] == 36
    kinds = [event["event"] for event in events_of(tmp_path / "run") if event["event"] != "status"]
    assert kinds[2:8] == ["asked", "decision", "miss", "miss", "miss", "moved"]
    records = RunDirectory.open(tmp_path / "run").records()
    assert all(record["value"] is None and record["set_aside"] for record in records)


def test_a_visit_whose_readings_are_all_rejected_is_a_visit_without(tmp_path: Path) -> None:
    """Values below zero under a logarithm: without giving up, the probe would ask for ever."""
    what = scenario(
        field={"mean": -100.0}, belief={"transform": "log"}, budget={"readings": 2}, seed=1
    )
    summary = run_scenario(what, tmp_path / "run", clock=lambda: 0.0).to_mapping()
    assert summary["observed"] == summary["readings"] == 0
    assert summary["rejected"] == 36
    assert len(summary["set_aside"]) == 12
    assert all(r["value"] is None for r in RunDirectory.open(tmp_path / "run").records())


def test_an_interrupted_run_says_so_in_its_summary(tmp_path: Path) -> None:
    def stop(record: Any) -> None:
        if record["stage"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(scenario(), tmp_path / "run", on_stage=stop)
    summary = RunDirectory.open(tmp_path / "run").summary()
    assert (summary["status"], summary["stages"]) == ("interrupted", 3)


def test_records_that_could_not_be_written_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        msg = "no space left"
        raise RunError(msg)

    monkeypatch.setattr(RunDirectory, "append_record", full)
    with pytest.raises(RunError, match="6 records could not be written"):
        run(scenario(), tmp_path / "run")
    events = RunDirectory.open(tmp_path / "run").events()
    assert events[-1]["event"] == "end"
