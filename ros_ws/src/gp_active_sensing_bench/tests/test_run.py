"""Running, resuming, failing: what an experiment's directory holds afterwards."""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from bench_support.small import hide, lines, mapping, small, what_was_done, with_a_bad_trial
from gp_active_sensing import __version__
from gp_active_sensing.errors import ConfigError, MissingDependencyError, RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.util.process import commit
from gp_active_sensing_bench import (
    Experiment,
    Outcome,
    Progress,
    load_records,
    mean_of,
    paired_difference,
    run,
    run_experiment,
    run_trial,
    write_outputs,
)
from gp_active_sensing_bench.outputs import outcome_mapping
from gp_active_sensing_bench.run import STAGE_KEYS, do_trial


def keys(experiment: Experiment) -> set[str]:
    return {trial.key for trial in experiment.trials}


def test_a_record_says_everything(tmp_path: Path) -> None:
    experiment = small(budgets=[3], seeds=1)
    seen: list[tuple[Progress, Outcome]] = []
    loaded = run_experiment(
        experiment, tmp_path / "out", jobs=1, on_trial=lambda p, o: seen.append((p, o))
    )
    assert [(p.done, p.failed, p.total) for p, _ in seen] == [(1, 0, 2), (2, 0, 2)]
    assert loaded.notes == ()
    assert [r["policy"] for r in loaded.records] == ["random", "two"]
    for record, trial in zip(
        lines(tmp_path / "out" / "records.jsonl"), experiment.trials, strict=True
    ):
        assert record["key"] == trial.key
        assert record["config"] == trial.config
        assert (record["experiment"], record["configuration"]) == ("small", "default")
        assert (record["seed"], record["budget"]) == (0, 3)
        assert record["commit"] == commit()
        assert record["versions"]["gp_active_sensing"] == __version__
        assert {"python", "numpy", "scipy"} <= set(record["versions"])
        assert record["platform"]
        assert record["seconds"] > 0
        assert record["reason"] == "the budget of readings is spent"
        assert record["warnings"] == []
        assert [stage["observed"] for stage in record["stages"]] == [1, 2, 3]
        assert all(tuple(stage) == STAGE_KEYS for stage in record["stages"])
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
    assert "2 of 2 missions warned" in loaded.notes[0]
    assert loaded.notes[0].endswith("'random': it is wet")
    assert caplog.records == []


@pytest.mark.slow
def test_a_metric_that_has_no_meaning_in_one_configuration(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    other = {"belief.length_scales": [5.0, 50.0]}  # without the field's own
    experiment = small(configurations={"known": {}, "wrong": other}, budgets=[2], seeds=1)
    run_experiment(experiment, tmp_path, jobs=1)
    outputs = write_outputs(tmp_path)
    assert (tmp_path / "figures" / "true_weight.png").exists()
    assert "<html" in outputs.page.read_text()


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
    assert "pip install matplotlib" in caplog.text
    assert (tmp_path / "tables.md").exists()
    assert (tmp_path / "report.html").exists()
    assert not (tmp_path / "figures").exists()


def test_without_joblib_one_job_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "joblib")
    assert run.cores() == 1
    assert len(run_experiment(small(), tmp_path / "a").records) == 8
    with pytest.raises(MissingDependencyError, match="joblib"):
        run_experiment(small(), tmp_path / "b", jobs=2)


def test_several_processes_give_the_same_records(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    experiment = small(seeds=3)
    one = run_experiment(experiment, tmp_path / "one", jobs=1)
    two = run_experiment(experiment, tmp_path / "two", jobs=2)
    assert what_was_done(one.records) == what_was_done(two.records)
    assert [r["key"] for r in two.records] == [t.key for t in experiment.trials]


@pytest.mark.slow
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


# -- resuming --------------------------------------------------------------------------------------


def test_only_what_is_left_is_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole = run_experiment(small(), out, jobs=1)
    path = out / "records.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(kept[:3]) + kept[3][:100])
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


def test_a_half_written_line_is_said_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_experiment(small(), tmp_path, jobs=1)
    with (tmp_path / "records.jsonl").open("ab") as stream:
        stream.write(b'{"key": "ab')
    loaded = load_records(tmp_path)
    assert len(loaded.records) == 8
    assert "half-written" in loaded.notes[0]
    again = run_experiment(small(), tmp_path, resume=True, jobs=1)
    assert "removed a half-written last line (11 bytes)" in caplog.text
    assert again.notes == ()


def test_a_longer_file_runs_what_is_new(tmp_path: Path) -> None:
    run_experiment(small(), tmp_path, jobs=1)
    longer = small(seeds=3, budgets=[2, 4, 6])
    seen: list[Any] = []
    loaded = run_experiment(
        longer, tmp_path, resume=True, jobs=1, on_trial=lambda _, o: seen.append(o.spec)
    )
    assert len(seen) == 2 * 3 * 3 - 8
    assert {s.key for s in seen} == keys(longer) - keys(small())
    assert len(loaded.records) == 18
    assert yaml.safe_load((tmp_path / "experiment.yaml").read_text())["seeds"] == 3


def test_a_shorter_file_keeps_what_it_does_not_count(tmp_path: Path) -> None:
    run_experiment(small(), tmp_path, jobs=1)
    shorter = small(policies={"only": {"name": "random"}}, baseline=None)
    loaded = run_experiment(shorter, tmp_path, resume=True, jobs=1)
    assert [r["policy"] for r in loaded.records] == ["only"] * 4, "labels are those of the file"
    assert loaded.other == 4
    assert "4 records are of trials that are not in the experiment's file" in loaded.notes[0]
    assert "4 records" in write_outputs(tmp_path, loaded).tables.read_text()
    assert len(lines(tmp_path / "records.jsonl")) == 8


def test_records_of_an_earlier_version_count(tmp_path: Path) -> None:
    run_experiment(small(), tmp_path, jobs=1)
    path = tmp_path / "records.jsonl"
    older = lines(path)
    for record in older:
        del record["config"]["sensor"]["bias"]  # a key that was added since
        record["key"] = "0123456789abcdef"[::-1] + str(record["seed"])
        record["versions"]["numpy"] = "1.26.0"
    path.write_text("".join(json.dumps(r) + "\n" for r in older[:5] + lines(path)[5:]))
    loaded = load_records(tmp_path)
    assert (len(loaded.records), loaded.other, loaded.missing) == (8, 0, 0)
    assert "2 versions of the program" in loaded.notes[0]


def test_a_directory_in_use_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_experiment(small(), out, jobs=1)
    before = (out / "records.jsonl").read_bytes()
    with pytest.raises(RunError, match=r"is not empty.*--resume"):
        run_experiment(small(), out, jobs=1)
    assert (out / "records.jsonl").read_bytes() == before
    with pytest.raises(RunError, match="does not exist"):
        run_experiment(small(), tmp_path / "other", resume=True)
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "file").touch()
    with pytest.raises(RunError, match=r"it has no experiment\.yaml"):
        run_experiment(small(), tmp_path / "strange", resume=True)


def test_a_directory_killed_before_its_first_file_can_be_resumed(tmp_path: Path) -> None:
    (tmp_path / ".experiment.yaml.part").write_text("na")
    loaded = run_experiment(small(seeds=1, budgets=[2]), tmp_path, resume=True, jobs=1)
    assert len(loaded.records) == 2


@pytest.mark.parametrize("line", [b"nonsense\n", b"[1]\n"])
def test_a_damaged_line_is_an_error_with_its_number(tmp_path: Path, line: bytes) -> None:
    run_experiment(small(seeds=1, budgets=[2]), tmp_path, jobs=1)
    path = tmp_path / "records.jsonl"
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(RunError, match="line 3: expected"):
        load_records(tmp_path)


def test_a_damaged_configuration_is_an_error(tmp_path: Path) -> None:
    run_experiment(small(seeds=1, budgets=[2]), tmp_path, jobs=1)
    (tmp_path / "experiment.yaml").write_text("seeds: x\n")
    with pytest.raises(ConfigError, match="scenario: is required"):
        load_records(tmp_path)


# -- failing ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_trial_that_fails_does_not_stop_the_others(tmp_path: Path, jobs: int) -> None:
    if jobs > 1:
        pytest.importorskip("joblib")
    experiment = small()
    loaded = run_experiment(with_a_bad_trial(experiment), tmp_path, jobs=jobs)
    assert (len(loaded.records), loaded.missing) == (7, 1)
    (failure,) = lines(tmp_path / "failures.jsonl")
    assert loaded.failures == (failure,)
    assert failure["key"] == experiment.trials[3].key
    assert (failure["policy"], failure["seed"], failure["budget"]) == ("random", 1, 4)
    assert failure["error"].startswith("ConfigError: field.length_scale: expected 1")
    assert "traceback" not in failure
    assert "1 of 8 trials have no record, 1 of them failed." in loaded.notes
    assert outcome_mapping(loaded, write_outputs(tmp_path, loaded))["failed"] == 1
    again = run_experiment(experiment, tmp_path, resume=True, jobs=jobs)
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


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot make the experiment's directory"):
        run_experiment(small(), tmp_path / "file" / "out", jobs=1)
    assert logging.getLogger("gp_active_sensing").handlers == []
    assert mapping()["seeds"] == 2


SHORT = ["budget.readings=4", "map.count=20", "policy.horizon=2", "limit.expansions=3"]


def without_times(records):
    return [{k: v for k, v in r.items() if k != "plan_seconds"} for r in records]


def test_a_trial_has_the_records_of_a_run(tmp_path) -> None:
    scenario = load_scenario("line", overrides=SHORT)
    trial = run_trial(scenario)
    run_scenario(scenario, tmp_path / "run")
    on_disk = RunDirectory.open(tmp_path / "run").records()
    assert len(trial.records) == 4
    for mine, disk in zip(without_times(trial.records), without_times(on_disk), strict=True):
        assert mine["location"] == disk["location"]
        assert mine["rmspe"] == pytest.approx(disk["rmspe"], abs=0)
        np.testing.assert_array_equal(mine["weights"], disk["weights"])
    assert trial.at(4, "stage") == on_disk[3]["stage"]
    with pytest.raises(ValueError, match="4 stages, asked for number 5"):
        trial.at(5, "rmspe")


def test_policies_see_the_same_field_and_noise() -> None:
    trials = [
        run_trial(load_scenario("line", overrides=[*SHORT, f"policy={{name: {name}}}"]))
        for name in ("random", "ie")
    ]
    places = [{r["location"]: r["value"] for r in t.records} for t in trials]
    shared = set(places[0]) & set(places[1])
    for place in shared:
        assert places[0][place] == places[1][place]


def test_mean_and_standard_error() -> None:
    estimate = mean_of([1.0, 2.0, 3.0, 4.0])
    assert estimate.mean == 2.5
    assert estimate.error == pytest.approx(math.sqrt(5 / 3) / 2)
    assert str(mean_of([1.0, 1.0])) == "1.00 ± 0.00"
    assert math.isnan(mean_of([1.0]).error)
    with pytest.raises(ValueError, match="at least one value"):
        mean_of([])
    with pytest.raises(ValueError, match="all finite"):
        mean_of([1.0, math.nan])


def test_pairing_removes_what_seeds_have_in_common() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 10, size=30)
    first = (hard + 1.0 + rng.normal(0, 0.1, size=30)).tolist()
    assert paired_difference(first, hard.tolist()).error < 0.05
    with pytest.raises(ValueError, match="argument 2"):
        paired_difference([1.0], [1.0, 2.0])
