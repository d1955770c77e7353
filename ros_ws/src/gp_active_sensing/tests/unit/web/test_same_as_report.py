"""Both pages are made of the same parts: the live page of a mission says what its report says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from gp_active_sensing.records.event_lines import parse_events, to_line
from gp_active_sensing.records.events import MissionEnded
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report import payload
from gp_active_sensing.report.facts import RunTotals
from gp_active_sensing.report.page import config_text, facts_table, slots, stages_table
from gp_active_sensing.report.payload import build_payload, kept_of
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import run_scenario
from gp_active_sensing.types import Reading
from gp_active_sensing.web import view as view_module
from gp_active_sensing.web.follow import RunFollower
from gp_active_sensing.web.view import LiveView
from tests.unit.report.runs import decided, node_run, plan, record, unpack, used
from tests.unit.report.test_mission_without_truth import mission
from tests.unit.sim.scenarios import GRID, scenario


def simulated(path: Path) -> Path:
    run_scenario(scenario(GRID), path)
    return path


def without_truth(path: Path) -> Path:
    simulated(path)
    file = path / "config.yaml"
    config = yaml.safe_load(file.read_text())
    del config["field"], config["sensor"]
    file.write_text(yaml.safe_dump(config))
    return path


def robot(path: Path) -> Path:
    mission(path)
    with RunDirectory.open(path) as run:
        run.append_event(to_line(MissionEnded(reason="enough", stamp_ns=1)))
        run.write_summary({"status": "finished", "reason": "enough", "explained": None})
    return path


def followed(run: Path) -> tuple[RunFollower, LiveView]:
    follower = RunFollower(run)
    while follower.advance(60.0):
        pass
    return follower, LiveView(follower)


def test_a_finished_mission(tmp_path: Path) -> None:
    for make in (simulated, without_truth, robot):
        run = make(tmp_path / make.__name__)
        _, view = followed(run)
        parts = {name: json.loads(text) for name, text in view.parts().items()}
        data = load_run(run)
        done = replay(data)
        wanted = json.loads(json.dumps(build_payload(data, done)))
        assert (wanted["quality"] is None) == (make is simulated)
        assert parts["quality"] == wanted["quality"]
        for name, value in parts["head"].items():
            assert value == wanted[name], name
        assert parts["tracks"] == wanted["tracks"]
        assert parts["places"] == wanted["places"]
        for number, step in enumerate(wanted["steps"]):
            found = parts[f"step.{number}"]
            found.pop("readings")
            assert found == step, number
        for name in ("range", "doubt", "steps", "all"):
            assert parts["maps"][name] == pytest.approx(wanted["maps"][name]), name
        low, high = wanted["maps"]["range"]
        for name in ("mean", "std"):
            theirs = unpack(wanted["maps"][name])  # what is off the scale is moved to its end
            for row, number in enumerate(wanted["maps"]["steps"]):
                ours = np.clip(unpack(parts[f"map.{number}"][name])[0], theirs.min(), theirs.max())
                np.testing.assert_allclose(ours, theirs[row], atol=1e-3 * (high - low))
        tally = RunTotals.of(parse_events(data.events))
        for name, text in slots(data, done, wanted, tally).items():
            assert parts[f"page.{name}"] == text, name
        assert parts["page.config"] == config_text(data)
        assert view.table("facts") == facts_table(data, tally)
        assert view.table("stages") == stages_table(data)


def test_an_update_describes_and_sends_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With any number of stages: two steps, one map, and what is said of all."""
    run = node_run(tmp_path / "run")
    follower, view = followed(run)
    described = []
    real = payload.describe_step
    monkeypatch.setattr(
        view_module, "describe_step", lambda *a: described.append(a[1].number) or real(*a)
    )
    before = view.parts()
    for stage in range(3, 30):
        with RunDirectory.open(run) as more:
            more.append_event(decided(stage, plan(stage % 8), stage))
            more.append_event(used(Reading(stage, stage % 8, 30.0 + stage % 5)))
            more.append_record(record(stage, plan(stage % 8), 30.0 + stage % 5))
        described.clear()
        assert follower.advance(60.0)
        now = view.parts()
        changed = {name for name in now if now[name] != before.get(name)}
        assert stage in described
        assert set(described) <= {stage - 1, stage}
        assert {n for n in changed if n.startswith("step.")} <= {f"step.{i}" for i in described}
        assert {n for n in changed if n.startswith("map.")} <= {f"map.{i}" for i in described}
        assert not changed & {"places", "page.config", "page.heading"}
        before = now


def test_fewer_candidates_are_kept_now_and_then_and_not_at_each_stage() -> None:
    kept = [kept_of(steps) for steps in range(1, 4001)]
    assert kept == sorted(kept, reverse=True)
    assert len(set(kept)) <= 7
    assert all(n * k <= payload.ALL_CANDIDATES or k == 4 for n, k in enumerate(kept, 1))
    assert kept[0] == payload.CANDIDATES
