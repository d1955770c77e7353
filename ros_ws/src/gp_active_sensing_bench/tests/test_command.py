"""The command ``experiment``, and ``report`` of an experiment's directory."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from bench_support import small as small_experiments
from tests.commanding import cli, failed


@pytest.fixture(name="experiment_file")
def fixture_experiment_file(tmp_path: Path) -> Path:
    return small_experiments.write(tmp_path / "trial.yaml")


@pytest.mark.slow
def test_experiment_prints_a_line_a_trial_and_its_tables_can_be_made_again(
    experiment_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = cli("experiment", experiment_file, "--out", out, "--jobs", 1)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len([line for line in lines if line.startswith(tuple(f"{n}/8" for n in range(9)))]) == 8
    assert [p.name for p in out.iterdir() if p.name.startswith(".")] == [".lock"]
    made = ("report.html", "tables.md", "tables.csv")
    for name in made:
        (out / name).unlink()
    again = cli("report", out)
    assert again.stdout.strip() == str(out / "report.html")
    assert all((out / name).exists() for name in made)
    result = cli("experiment", experiment_file, "--out", out, "--resume", "--json")
    data = json.loads(result.stdout)
    assert (data["trials"], data["recorded"], data["failed"]) == (8, 8, 0)
    assert [t["metric"] for t in data["tables"][::2]] == ["rmspe", "true_weight", "plan_seconds"]
    mean, error, count = data["tables"][0]["rows"][0]["cells"][0]
    assert mean > 0
    assert error > 0
    assert count == 2


def test_experiment_resumes_and_compares_with_another_policy(
    experiment_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ["experiment", experiment_file, "--out", out, "--jobs", 1]
    first = cli(*command, "--seeds", 1)
    assert first.exit_code == 0
    assert "difference to" not in first.stdout
    failed(cli(*command), "--resume")
    result = cli(*command, "--resume")
    assert result.exit_code == 0
    assert "4 of 8 trials are done already" in result.stdout
    records = (out / "records.jsonl").read_text()
    assert records.count("\n") == 8
    assert "difference to random on the same seeds" in (out / "tables.md").read_text()
    result = cli(*command, "--resume", "--baseline", "two")
    lines = result.stdout.splitlines()
    (head,) = [i for i, line in enumerate(lines) if "difference to two on the same seeds" in line]
    assert lines[head + 2].split()[0] == "random"
    assert (out / "records.jsonl").read_text() == records, "nothing is run again"
    shorter = cli(*command, "--resume", "--seeds", 1)
    assert "note: 4 records" in shorter.stdout


@pytest.mark.slow
def test_experiment_with_failures_exits_with_1_and_lists_them(
    experiment_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gp_active_sensing_bench import run as module

    run_trial = module.run_trial

    def some(scenario: Any, **rest: Any) -> Any:
        if scenario.seed == 1 and scenario.policy["name"] == "random":
            msg = "no luck"
            raise RuntimeError(msg)
        return run_trial(scenario, **rest)

    out = tmp_path / "out"
    command = ["experiment", experiment_file, "--out", out, "--jobs", 1]
    with monkeypatch.context() as patch:
        patch.setattr(module, "run_trial", some)
        result = cli(*command)
    failed(result, "2 trials failed", "--resume", "seed 1, 4 readings: RuntimeError: no luck")
    assert "failed: random, seed 1, 2 readings: RuntimeError: no luck" in result.stdout
    assert len((out / "failures.jsonl").read_text().splitlines()) == 2
    assert cli(*command, "--resume").exit_code == 0
    assert not (out / "failures.jsonl").exists()


def test_experiment_on_a_terminal_shows_a_bar(tmp_path: Path) -> None:
    from rich.console import Console

    from gp_active_sensing_bench import run_experiment
    from gp_active_sensing_bench.command import show_trials

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120)
    with show_trials(console) as show:
        experiment, out = small_experiments.small(), tmp_path / "out"
        run_experiment(experiment, out, jobs=1, on_start=show.start, on_trial=show.trial)
    assert "8/8" in stream.getvalue()
    assert "━" in stream.getvalue()
    assert "seed 0" not in stream.getvalue()


REFUSED: tuple[tuple[list[str], int, str], ...] = (
    (["bal_1"], 1, "'bal_1d'"),
    (["FILE", "--resume"], 2, "--out"),
    (["FILE", "--jobs", "0"], 2, "--jobs"),
    (["FILE", "--seeds", "0"], 2, "--seeds"),
    (["FILE", "--baseline", "tow"], 1, "'two'"),
    ([], 2, "FILE"),
    (["WRONG"], 1, "polices: "),
)


def test_experiment_refuses(
    experiment_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = small_experiments.write(tmp_path / "wrong.yaml", polices={}, metrics=["rmpse"])
    files = {"FILE": str(experiment_file), "WRONG": str(wrong)}
    for arguments, code, expected in REFUSED:
        words = [files.get(word, word) for word in arguments]
        result = cli("experiment", *words)
        assert result.exit_code == code, (arguments, result.output)
        assert expected in result.stderr, arguments
        assert "Traceback" not in result.output
    assert not (tmp_path / "runs").exists()
    assert cli("experiment", experiment_file, "--jobs", 1, "--seeds", 1).exit_code == 0
    (made,) = (tmp_path / "runs").iterdir()
    assert made.name.startswith("small-20")
