"""Searches round by round, their tables, and errors over blocks: what the result pages rest on."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from gp_active_sensing.experiments import run_trial
from gp_active_sensing.sim import scenario_from_mapping

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"

if not BENCHMARKS.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


SCENARIO: dict[str, Any] = {
    "map": {"kind": "points", "count": 60, "low": [0, 0], "high": [1, 1]},
    "field": {"kind": "function", "function": "cosines"},
    "sensor": {"noise_std": 0.02},
    "belief": {"length_scales": [0.1, 0.3], "signal_std": [0.5], "noise_std": [0.02]},
    "seek": "maximise",
    "probes": 3,
    "budget": {"readings": 12},
}


@pytest.mark.parametrize("policy", ["ucb_dpp_max", "gp_bucb", "lp_ucb"])
def test_rounds_are_those_of_a_mission(policy: str) -> None:
    """The same places, values and recommendations, without robots, clock and gate."""
    from batch_rounds import play

    scenario = scenario_from_mapping({**SCENARIO, "policy": {"name": policy}})
    found = play(scenario.to_mapping(), tells=True)
    stages = run_trial(scenario).records
    assert len(stages) == 12
    for t in range(4):
        mission = stages[3 * t : 3 * t + 3]
        of_mission = sorted((stage["regret"], stage["value"]) for stage in mission)
        rounds = sorted(zip(found["regret"][t], found["value"][t], strict=True))
        np.testing.assert_allclose(rounds, of_mission, atol=1e-9)
        assert found["named"][t] == pytest.approx(mission[-1]["recommended_regret"])
    assert all(0.0 <= share <= 1.0 for share in found["edge"])
    assert ("region" in found) == (policy == "ucb_dpp_max")
    assert ("told" in found) == (policy == "gp_bucb")


def test_the_share_of_the_region_is_that_of_its_round() -> None:
    """As the second round of an independent computation has it, t = 2 and t + 1 = 3."""
    from batch_rounds import play

    from gp_active_sensing.planning.bandits.gp_ucb import finite_beta
    from gp_active_sensing.sim import build_loop, build_world

    config = {**SCENARIO, "policy": {"name": "ucb_dpp_max", "scale": 20.0}}
    scenario = scenario_from_mapping({**config, "budget": {"readings": 6}})
    found = play(scenario.to_mapping())
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology)
    goals: list[int] = []
    for name in "abc":
        waiting = dict.fromkeys("abc"[len(goals) + 1 :])
        goal = loop.ask(None, pending=goals, probe=name, waiting=waiting).waypoint
        assert goal is not None
        goals.append(goal)
    for place in goals:
        loop.tell([world.sensor.read(place, 0, 0)])
    mean, variance = loop.belief.predict()
    std = np.sqrt(variance)
    widths = [math.sqrt(finite_beta(t, 60, 0.1) / 20.0) for t in (2, 3)]
    region = mean + 2.0 * widths[1] * std >= (mean - widths[0] * std).max()
    assert found["region"][1] == pytest.approx(region.mean())
    assert 0.0 < found["region"][1] < 1.0


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from batch_rounds import main

    file = tmp_path / "small.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "name": "small",
                "scenario": {**SCENARIO, "budget": {"readings": 6}},
                "seeds": 2,
                "seeded": ["map.seed"],
                "policies": {"gp_bucb": {}, "ucb_dpp_max": {}},
                "checkpoints": [6],
            }
        )
    )
    kept = tmp_path / "kept"
    whole = ["batch_rounds.py", str(file), "--kept", str(kept)]
    monkeypatch.setattr(sys, "argv", [*whole, "--seeds", "1", "--policies", "gp_bucb"])
    assert main() == 0
    first = (kept / "small.jsonl").read_text()
    assert len(first.splitlines()) == 1
    monkeypatch.setattr(sys, "argv", whole)
    assert main() == 0
    lines = (kept / "small.jsonl").read_text()
    assert lines.startswith(first)
    found = [json.loads(line) for line in lines.splitlines()]
    assert [(line["seed"], line["policy"]) for line in found] == [
        *((0, "gp_bucb"), (0, "ucb_dpp_max"), (1, "gp_bucb"), (1, "ucb_dpp_max"))
    ]
    monkeypatch.setattr(sys, "argv", [*whole, "--policies", "gp_buch"])
    with pytest.raises(SystemExit, match=r"small has no policy \['gp_buch'\]; it has \['gp_bucb'"):
        main()


def line(named: list[float], regret: list[list[float]], value: list[list[float]]) -> dict[str, Any]:
    return {"named": named, "regret": regret, "value": value}


def test_the_best_reading_is_the_best_of_all_rounds_so_far() -> None:
    from batch_figures import run_of

    run = run_of(
        line(
            [5.0, 4.0, 0.0],
            [[3.0, 9.0], [1.0, 2.0], [0.0, 7.0]],
            [[1.0, 4.0], [3.0, 2.0], [5.0, 0.0]],
        )
    )
    # After the first and second round the reading of 4, whose place has a regret of 9.
    assert run.by_reading.tolist() == [9.0, 9.0, 0.0]
    assert run.by_mean.tolist() == [5.0, 4.0, 0.0]


def test_differences_are_of_the_seeds_that_both_have() -> None:
    from batch_figures import compared, run_of

    def runs(values: dict[int, float]) -> dict[int, Any]:
        return {s: run_of(line([v, v], [[v], [v]], [[1.0], [0.0]])) for s, v in values.items()}

    found = {
        ("branin", "a"): runs({0: 1.0, 1: 1.5, 2: 2.0, 7: 99.0}),
        ("branin", "b"): runs({2: 5.0, 0: 4.5, 1: 5.0}),
    }
    assert compared(found, "branin", "a", "b", "mean") == "-3.33 ± 0.17: yes, n = 3"
    assert compared(found, "branin", "b", "a", "reading") == "3.33 ± 0.17: no, above, n = 3"
    assert compared(found, "branin", "a", "c", "mean") == ""


def test_tables_without_lines_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder may have single searches only, as the page on claims has it."""
    import batch_figures

    lines = [
        {**line([v], [[v]] * 300, [[1.0]] * 300), "seed": seed, "policy": policy, "seconds": 1.0}
        for seed in range(3)
        for policy, v in (("gp_ucb_fifth", 0.5), ("ei", 0.75))
    ]
    text = "".join(json.dumps({"configuration": "default", **one}) + "\n" for one in lines)
    (tmp_path / "gp_ucb_incumbent.jsonl").write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["batch_figures.py", str(tmp_path), "--out", str(tmp_path)])
    assert batch_figures.main() == 0
    said = capsys.readouterr().out
    assert said.startswith("| policy | n |")
    assert "| ei | 3 |" in said
    assert "6 searches" in said
    assert not (tmp_path / "batch.png").exists()


def test_a_policy_with_other_bounds_is_held_against_its_own() -> None:
    from batch_figures import own_changes, run_of

    def runs(values: dict[int, float]) -> dict[int, Any]:
        return {s: run_of(line([v, v], [[v], [v]], [[1.0], [0.0]])) for s, v in values.items()}

    usual = {("branin", "gp_bucb"): runs({0: 1.0, 1: 1.5, 2: 2.0, 7: 99.0})}
    other = {("branin", "gp_bucb_80"): runs({2: 5.0, 0: 4.5, 1: 5.0, 3: 5.5})}
    found = own_changes(other, 80, "_80", usual)
    start = "| Branin–Hoo | gp_bucb | 80 |"
    assert found == [
        f"{start} mean | 4 | 5 ± 0.2 | 3.33 ± 0.17, n = 3 |",
        f"{start} reading | 4 | 5 ± 0.2 | 3.33 ± 0.17, n = 3 |",
    ]
    assert [text.split(" | ")[-1] for text in own_changes(usual, 5, "", usual)] == [" |", " |"]


def test_errors_of_blocks_are_those_of_what_is_independent() -> None:
    from bench_bandits import block_error, effective_number

    rng = np.random.default_rng(0)
    values = rng.normal(size=400)
    iid = values.std(ddof=1) / math.sqrt(400)
    assert block_error(values, 1) == pytest.approx(iid)
    assert effective_number(values, 1) == pytest.approx(400)
    # Each value eight times in a row: as many independent ones as there are blocks.
    repeated = np.repeat(values, 8)
    assert block_error(repeated, 8) == pytest.approx(iid)
    assert effective_number(repeated, 8) == pytest.approx(400, rel=0.01)
    assert block_error(repeated, 1) < 0.5 * iid
    # A remainder of half a block counts as one, less than that is left out.
    assert block_error(np.array([0.0, 0.0, 4.0, 4.0, 8.0]), 2) == pytest.approx(4.0 / math.sqrt(3))
    assert block_error(np.array([0.0] * 4 + [4.0] * 4 + [9.0]), 4) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="two blocks of 3 or more, got 4"):
        block_error(np.arange(4.0), 3)


def test_searches_that_are_kept_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bench_bandits
    from bandit_objectives import Task

    monkeypatch.setenv("GPAS_KEPT", str(tmp_path))
    field = np.sin(np.arange(6.0))
    task = Task("hour", field, np.zeros(6), np.eye(6), "maximise")
    first = bench_bandits.Kept().search("set", "ei, best reading", task, 5, 0)
    monkeypatch.setattr(bench_bandits, "search", None)
    assert bench_bandits.Kept().search("set", "ei, best reading", task, 5, 0) == first
    with pytest.raises(TypeError):
        bench_bandits.Kept().search("set", "ei", task, 5, 0)


def test_each_task_has_noise_of_its_own() -> None:
    """Errors over tasks are none where all of them have the same luck."""
    from dataclasses import replace

    from bandit_objectives import Task, search

    field = np.zeros(8)
    task = Task("a", field, np.zeros(8), np.eye(8), "maximise", 0)
    plain = {"name": "mean_only"}

    def places(number: int) -> list[float]:
        named = replace(task, number=number, field=np.arange(8.0) / 100.0)
        return search(named, plain, 6, 0).average.tolist()

    assert places(0) == places(0)
    assert len({tuple(places(number)) for number in range(6)}) > 1
