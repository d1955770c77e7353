from __future__ import annotations

import builtins
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from gp_active_sensing import __version__
from gp_active_sensing.cli import _cli
from gp_active_sensing.planning import policies
from gp_active_sensing.records import RunDirectory
from tests.unit.sim.scenarios import mapping

SMALL = ["--policy", "random", "--budget", "3"]


def cli(*arguments: str | Path) -> Result:
    return CliRunner().invoke(_cli, [str(a) for a in arguments], prog_name="gp-active-sensing")


@pytest.fixture(name="scenario_file")
def fixture_scenario_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(mapping()))
    return path


def failed(result: Result, *expected: str) -> None:
    """One clear message on stderr, no traceback, exit code 1."""
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.output
    for text in expected:
        assert text in result.stderr


# -- run -------------------------------------------------------------------------------------------


def test_run_prints_a_line_a_stage_and_where_things_are(
    scenario_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    result = cli("run", scenario_file, "--budget", 4, "--out", out)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if line.startswith("stage")]
    assert len(lines) == 4
    for part in ("read", " K", "length-scale", "%)", "gap", "planned in", "RMSPE"):
        assert all(part in line for line in lines)
    assert "small with bal, seed 3: finished" in result.stdout
    assert str(out / "report.html") in result.stdout
    assert sorted(p.name for p in out.iterdir()) == [
        "config.yaml",
        "journal.jsonl",
        "records.jsonl",
        "report.html",
        "summary.json",
    ]


def test_a_terminal_gets_a_progress_bar() -> None:
    from rich.console import Console

    from gp_active_sensing.console import show_stages

    record = {
        "stage": 1,
        "name": "a",
        "value": None,
        "weights": [0.25, 0.5, 0.25],
        "lower": 1.0,
        "upper": 1.5,
        "plan_seconds": 0.1,
        "observed": 1,
    }
    shown = {}
    for terminal in (True, False):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=200)
        with show_stages(console, [(1.0,), (2.0,), (1.0,)], total=4) as show:
            show(record)
        shown[terminal] = stream.getvalue()
    assert "1/4" in shown[True]
    assert "━" in shown[True]
    assert shown[False] == (
        "stage   1/4  a           no reading, set aside  length-scale 1 (50 %)  gap 0.500  "
        "planned in 0.100 s\n"
    )


def test_json_is_all_there_is_on_stdout(scenario_file: Path, tmp_path: Path) -> None:
    result = cli("run", scenario_file, *SMALL, "--json", "--out", tmp_path / "run", "--no-report")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert summary["policy"] == "random"
    assert summary["observed"] == 3
    assert not (tmp_path / "run" / "report.html").exists()


def test_options_and_overrides(scenario_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--seed", 9, "--expansions", 2, "--set", "sensor.noise_std=0.5"]
    options += ["--set", "limit.seconds=100", "--set", "policy.samples=4"]
    assert cli("run", scenario_file, "--budget", 2, *options, "--out", out).exit_code == 0
    config = RunDirectory.open(out).config
    assert config["seed"] == 9
    assert config["sensor"]["noise_std"] == 0.5
    assert config["limit"] == {"seconds": None, "expansions": 2}
    assert config["policy"]["samples"] == 4


def test_a_run_s_own_configuration_can_be_run_again(scenario_file: Path, tmp_path: Path) -> None:
    for source, out in ((scenario_file, "a"), (tmp_path / "a" / "config.yaml", "b")):
        assert cli("run", source, "--out", tmp_path / out, "--no-report").exit_code == 0
    rmspe = [RunDirectory.open(tmp_path / d).summary()["rmspe"] for d in "ab"]
    assert rmspe[0] == rmspe[1]


def test_default_directory(
    scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("run", scenario_file, *SMALL, "--no-report").exit_code == 0
    (made,) = (tmp_path / "runs").iterdir()
    assert made.name.startswith("small-random-seed3-20")


def test_resume(scenario_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["run", scenario_file, *SMALL, "--out", out, "--json", "--no-report"]
    whole = json.loads(cli(*command).stdout)
    journal = out / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-300])
    again = cli(*command, "--resume")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["rmspe"] == whole["rmspe"]
    failed(cli(*command), "is not empty", "--resume")
    failed(cli(*command, "--resume", "--seed", 4), "different: seed")
    failed(cli(*command[:-3], tmp_path / "other", "--resume"), "does not exist")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nothing"], ["no file 'nothing'", "line.yaml", "town.yaml"]),
        (["lnie"], ["Did you mean 'line"]),
        (["line", "--policy", "bla"], ["unknown policy 'bla'", "Did you mean 'bal'"]),
        (["line", "--budget", "0"], ["budget.readings: must be 1 or more"]),
        (["line", "--budget", "-2"], ["budget.readings: must be 1 or more"]),
        (["line", "--expansions", "-1"], ["limit.expansions: must be 0 or more"]),
        (["line", "--seed", "-1"], ["seed: must be 0 or more"]),
        (["line", "--set", "map"], ["expected KEY=VALUE"]),
        (["line", "--set", "mpa.count=3"], ["mpa: unknown key", "Did you mean 'map'"]),
        (["line", "--set", "sensor.noise_std=.nan"], ["sensor.noise_std: expected a finite"]),
        (["line", "--set", "probe.start=nowhere"], ["probe.start: no place 'nowhere'"]),
        (["line", "--set", "field.kernel=sex"], ["field.kernel: unknown kernel"]),
    ],
)
def test_bad_input_is_one_clear_message(
    arguments: list[str], expected: list[str], tmp_path: Path
) -> None:
    failed(cli("run", *arguments, "--out", tmp_path / "run"), *expected)
    assert not (tmp_path / "run").exists()


def test_output_not_writable(scenario_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = cli("run", scenario_file, "--out", tmp_path / "file" / "run")
    failed(result, "cannot make the run directory")
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["run", "line", "--budget", "x"], ["run", "line", "--resume"], ["fly"], ["--what"]],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert cli(*arguments).exit_code == 2


def test_a_defect_is_one_line_too(
    scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        msg = "index 7"
        raise IndexError(msg)

    monkeypatch.setattr("gp_active_sensing.sim.run_scenario", broken)
    failed(cli("run", scenario_file, "--out", tmp_path / "r"), "unexpected IndexError: index 7")
    result = cli("--debug", "run", scenario_file, "--out", tmp_path / "r")
    assert isinstance(result.exception, IndexError)


def test_without_matplotlib_a_run_succeeds_and_says_how_to_get_the_report(
    scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def no_matplotlib(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    out = tmp_path / "run"
    result = cli("run", scenario_file, *SMALL, "--out", out)
    assert result.exit_code == 0
    assert "pip install 'gp_active_sensing[report]'" in result.stderr
    assert (out / "summary.json").exists()
    assert not (out / "report.html").exists()
    failed(cli("report", out), "matplotlib is missing")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupted_by_a_signal_leaves_a_run_that_goes_on(
    scenario_file: Path, tmp_path: Path
) -> None:
    slow = mapping(policy={"name": "random"}, sensor={"readings": 4000}, budget={"readings": 12})
    scenario_file.write_text(yaml.safe_dump(slow))
    out = tmp_path / "run"
    command = [sys.executable, "-m", "gp_active_sensing.cli", "run", str(scenario_file)]
    command += ["--out", str(out), "--no-report"]
    # Where this process ignores the signal (a shell's background job), its children would, too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("stage")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.startswith("Error: interrupted; ")
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert RunDirectory.open(out).summary()["status"] == "interrupted"
    again = subprocess.run([*command, "--resume", "--json"], capture_output=True, check=True)
    assert json.loads(again.stdout)["observed"] == 12


# -- the others ------------------------------------------------------------------------------------


def test_policies_lists_all_with_units() -> None:
    text = cli("policies").stdout
    assert all(f"\n{name}  " in f"\n{text}" for name in policies.names())
    assert "nat" in text
    found = json.loads(cli("policies", "--json").stdout)
    assert [entry["name"] for entry in found] == policies.names()


def test_doctor_as_text_and_json() -> None:
    result = cli("doctor")
    assert result.exit_code == 0
    assert "numpy" in result.stdout
    assert "ROS 2" in result.stdout
    data = json.loads(cli("doctor", "--json").stdout)
    assert data["core_works"] is True


def test_report_of_something_else(tmp_path: Path) -> None:
    failed(cli("report", tmp_path), "is not a run directory")
    failed(cli("report", tmp_path / "no"), "does not exist")


def test_version_and_help() -> None:
    assert __version__ in cli("--version").stdout
    text = cli("--help").stdout
    assert all(command in text for command in ("run", "policies", "doctor", "report"))
    assert not any(later in text for later in ("experiment", "learn"))


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_starts_at_once(option: str) -> None:
    """Nothing heavy is imported, and the best of three starts takes at most half a second."""
    command = [sys.executable, "-m", "gp_active_sensing.cli", option]
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.5
    code = (
        "import sys, gp_active_sensing.cli;"
        "print([m for m in ('numpy', 'scipy', 'yaml', 'rich.console') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert loaded.stdout.strip() == b"[]"
