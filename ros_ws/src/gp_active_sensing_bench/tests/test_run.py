"""Running, resuming, failing: what an experiment's directory holds afterwards."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench_support.small import hide, lines, small, what_was_done, with_a_bad_trial
from gp_active_sensing.errors import ConfigError, MissingDependencyError, RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import build_world, load_scenario, run_scenario, scenario_from_mapping
from gp_active_sensing_bench import (
    Outcome,
    Progress,
    load_records,
    run,
    run_experiment,
    run_trial,
    write_outputs,
)
from gp_active_sensing_bench.outputs import outcome_mapping
from gp_active_sensing_bench.run import STAGE_KEYS, do_trial
from gp_active_sensing_bench.source_tree import commit
from tests.unit.sim.scenarios import mapping as scenario_mapping


def test_a_record_says_everything(tmp_path: Path) -> None:
    experiment = small(budgets=[3], seeds=1)
    seen: list[tuple[Progress, Outcome]] = []
    loaded = run_experiment(
        experiment, tmp_path / "out", jobs=1, on_trial=lambda p, o: seen.append((p, o))
    )
    assert [(p.done, p.failed, p.total) for p, _ in seen] == [(1, 0, 2), (2, 0, 2)]
    assert loaded.notes == ()
    assert [r["policy"] for r in loaded.records] == ["random", "two"]
    written = lines(tmp_path / "out" / "records.jsonl")
    for record, trial in zip(written, experiment.trials, strict=True):
        assert {key: record[key] for key in trial.labels()} == trial.labels()
        assert (record["key"], record["config"]) == (trial.key, trial.config)
        assert record["commit"] == commit()
        assert {"gp_active_sensing", "python", "numpy", "scipy"} <= set(record["versions"])
        assert record["seconds"] > 0
        assert (record["reason"], record["warnings"]) == ("the budget of readings is spent", [])
        assert [stage["observed"] for stage in record["stages"]] == [1, 2, 3]
        assert all(set(stage) < set(STAGE_KEYS) for stage in record["stages"])
    assert not (tmp_path / "out" / "failures.jsonl").exists()


def test_what_a_mission_warns_of_is_in_its_record_and_not_on_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def warning(scenario: Any, **rest: Any) -> Any:
        for word in ("wet", "cold", "wet"):
            logging.getLogger("gp_active_sensing.somewhere").warning("it is %s", word)
        return run_trial(scenario, **rest)

    monkeypatch.setattr("gp_active_sensing_bench.run.run_trial", warning)
    loaded = run_experiment(small(seeds=1, budgets=[2]), tmp_path, jobs=1)
    assert [r["warnings"] for r in loaded.records] == [["it is wet", "it is cold"]] * 2
    assert "it is wet" in loaded.notes[0]
    assert caplog.records == []


@pytest.mark.slow
def test_what_people_read(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run_experiment(small(), tmp_path, jobs=1)
    outputs = write_outputs(tmp_path)
    assert outputs.tables.read_text().startswith("# small\n")
    assert outputs.tables.read_text().count("difference to random on the same seeds") == 3
    assert (tmp_path / "tables.csv").read_text().count("\n") == 1 + 3 * (4 + 2)
    names = {"rmspe", "true_weight", "plan_seconds", "designs"}
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {
        f"{name}.{kind}" for name in names for kind in ("png", "svg")
    }
    assert "<html" in outputs.page.read_text()
    first = {p: p.read_bytes() for p in [outputs.tables, *outputs.figures]}
    write_outputs(tmp_path)
    assert {p: p.read_bytes() for p in first} == first, "functions of the records only"


def test_without_matplotlib_everything_else_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = run_experiment(small(), tmp_path, jobs=1)
    hide(monkeypatch, "matplotlib")
    assert write_outputs(tmp_path, loaded).figures == ()
    assert len(caplog.records) == 1
    assert (tmp_path / "tables.md").exists()
    assert (tmp_path / "report.html").exists()
    assert not (tmp_path / "figures").exists()


def test_without_joblib_one_job_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "joblib")
    assert run.cores() == 1
    assert len(run_experiment(small(), tmp_path / "a").records) == 8
    with pytest.raises(MissingDependencyError):
        run_experiment(small(), tmp_path / "b", jobs=2)


@pytest.mark.long
def test_workers_have_one_blas_thread_whatever_their_parent_has() -> None:
    """A script that uses the package as a library has set nothing."""
    pytest.importorskip("joblib")
    code = """
import os
from gp_active_sensing_bench import run

def look(trial, **rest):
    from gp_active_sensing.util.process import THREAD_VARIABLES
    import numpy as np

    square = np.ones((500, 500))
    square @ square
    tasks = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
    return [os.environ[name] for name in THREAD_VARIABLES], tasks

run.do_trial = look
print(list(run.run_local([1, 2, 3], 2)))
"""
    variables = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str([(["1", "1", "1"], 1)] * 3)


def test_only_what_is_left_is_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole = run_experiment(small(), out, jobs=1)
    path = out / "records.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(kept[:3]) + kept[3][:100])
    assert load_records(out).cut_short
    started: list[int] = []
    seen: list[str] = []
    loaded = run_experiment(
        small(),
        out,
        resume=True,
        jobs=1,
        on_start=lambda before: started.append(len(before.records)),
        on_trial=lambda _, outcome: seen.append(outcome.spec.key),
    )
    assert started == [3]
    assert seen == [t.key for t in small().trials[3:]]
    assert what_was_done(loaded.records) == what_was_done(whole.records)
    assert len(lines(path)) == 8


def test_the_file_of_now_decides_which_records_count(tmp_path: Path) -> None:
    run_experiment(small(), tmp_path, jobs=1)
    longer = small(seeds=3, budgets=[2, 4, 6])
    seen: list[str] = []
    loaded = run_experiment(
        longer, tmp_path, resume=True, jobs=1, on_trial=lambda _, o: seen.append(o.spec.key)
    )
    assert set(seen) == {t.key for t in longer.trials} - {t.key for t in small().trials}
    assert (len(seen), len(loaded.records)) == (10, 18)
    assert yaml.safe_load((tmp_path / "experiment.yaml").read_text())["seeds"] == 3
    shorter = small(policies={"only": {"name": "random"}}, baseline=None)
    loaded = run_experiment(shorter, tmp_path, resume=True, jobs=1)
    assert [r["policy"] for r in loaded.records] == ["only"] * 4, "labels are those of the file"
    assert loaded.other == 14
    assert "14 records" in write_outputs(tmp_path, loaded).tables.read_text()
    assert len(lines(tmp_path / "records.jsonl")) == 18


def test_a_directory_in_use_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_experiment(small(), out, jobs=1)
    before = (out / "records.jsonl").read_bytes()
    with pytest.raises(RunError, match="--resume"):
        run_experiment(small(), out, jobs=1)
    assert (out / "records.jsonl").read_bytes() == before
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "file").touch()
    for other in ("none", "strange", "strange/file"):
        with pytest.raises(RunError):
            run_experiment(small(), tmp_path / other, resume=True)
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".experiment.yaml.part").write_text("na")
    begun = run_experiment(small(seeds=1, budgets=[2]), tmp_path / "killed", resume=True, jobs=1)
    assert len(begun.records) == 2


def test_damage_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    run_experiment(small(seeds=1, budgets=[2]), tmp_path, jobs=1)
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    for line in (b"nonsense\n", b"[1]\n"):
        path.write_bytes(whole + line)
        with pytest.raises(RunError, match="line 3"):
            load_records(tmp_path)
    (tmp_path / "experiment.yaml").write_text("seeds: x\n")
    with pytest.raises(ConfigError):
        load_records(tmp_path)


def test_a_trial_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    experiment = small()
    loaded = run_experiment(with_a_bad_trial(experiment), tmp_path, jobs=1)
    assert (len(loaded.records), loaded.missing) == (7, 1)
    (failure,) = lines(tmp_path / "failures.jsonl")
    assert loaded.failures == (failure,)
    assert failure["key"] == experiment.trials[3].key
    assert (failure["policy"], failure["seed"], failure["budget"]) == ("random", 1, 4)
    assert failure["error"].startswith("ConfigError: field.length_scale: expected 1")
    assert "traceback" not in failure
    assert len(loaded.notes) == 1
    assert outcome_mapping(loaded, write_outputs(tmp_path, loaded))["failed"] == 1
    again = run_experiment(experiment, tmp_path, resume=True, jobs=1)
    assert (len(again.records), again.failures, again.notes) == (8, (), ())
    assert not (tmp_path / "failures.jsonl").exists()


def test_a_defect_keeps_where_it_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        msg = "index 7"
        raise IndexError(msg)

    monkeypatch.setattr("gp_active_sensing_bench.run.run_trial", broken)
    outcome = do_trial(small().trials[0])
    assert outcome.failed
    assert outcome.item["error"] == "IndexError: index 7"
    assert "in broken" in outcome.item["traceback"]


@pytest.mark.filterwarnings("ignore::UserWarning")  # joblib's resource tracker, on what was killed
def test_a_worker_that_is_killed_leaves_a_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("joblib")
    experiment = small()
    monkeypatch.setattr(run, "do_trial", _end_the_process)
    with pytest.raises(RunError, match=r"(?s)a worker process ended.*--resume"):
        run_experiment(experiment, tmp_path, jobs=2)
    monkeypatch.undo()
    assert len(run_experiment(experiment, tmp_path, resume=True, jobs=2).records) == 8


def _end_the_process(trial: Any, **rest: Any) -> Outcome:
    if trial.seed == 1:
        os._exit(9)
    return do_trial(trial, **rest)


def test_a_trial_has_the_records_of_a_run(tmp_path: Path) -> None:
    short = ["budget.readings=4", "map.count=20", "policy.horizon=2", "limit.expansions=3"]
    scenario = load_scenario("line", overrides=short)
    trial = run_trial(scenario)
    run_scenario(scenario, tmp_path / "run")
    on_disk = RunDirectory.open(tmp_path / "run").records()
    assert len(trial.records) == 4
    for mine, disk in zip(trial.records, on_disk, strict=True):
        assert (mine["stage"], mine["location"]) == (disk["stage"], disk["location"])
        assert mine["rmspe"] == pytest.approx(disk["rmspe"], abs=0)
        assert list(mine["weights"]) == list(disk["weights"])


@pytest.mark.slow
def test_errors_of_every_quantity_are_in_tables_and_pictures(tmp_path: Path) -> None:
    field = {"length_scale": 20.0, "signal_std": 5.0, "unit": "m"}
    further = {"depth": {"field": field, "weight": 3.0}}
    changes = {
        "scenario": {**scenario_mapping(), "quantities": further},  # its own policy cannot
        "metrics": ["rmspe", "plan_seconds"],
    }
    with pytest.raises(ConfigError):
        small(**changes)
    experiment = small(**changes, policies={"random": {}, "tour": {}})
    loaded = run_experiment(experiment, tmp_path, jobs=1)
    outputs = write_outputs(tmp_path, loaded)
    metrics = ["relative_error", "relative_error.value", "relative_error.depth"]
    metrics += ["rmspe", "rmspe.depth", "plan_seconds"]
    tables = outcome_mapping(loaded, outputs)["tables"]
    assert [table["metric"] for table in tables] == [m for m in metrics for _ in range(2)]
    assert [t["unit"] for t in tables[6:10:2]] == ["K", "m"]
    for record in loaded.records:
        last = record["stages"][-1]
        errors = [last["quantities"][name]["relative_error"] for name in ("value", "depth")]
        assert last["relative_error"] == pytest.approx(0.25 * errors[0] + 0.75 * errors[1])
        world = build_world(scenario_from_mapping(record["config"]))
        expected = last["rmspe"] / world.truth.at(0.0).std()
        assert errors[0] == pytest.approx(expected)
        assert errors[1] == pytest.approx(
            last["quantities"]["depth"]["rmspe"] / world.further["depth"].truth.at(0.0).std()
        )
    assert {"relative_error.depth.png", "rmspe.depth.svg"} <= {p.name for p in outputs.figures}
