from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gp_active_sensing import __version__
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning import policies
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import load_scenario
from tests.commanding import cli, failed
from tests.unit.sim.scenarios import mapping
from tests.waiting import LIMIT

SMALL = ["--policy", "random", "--budget", "3"]


@pytest.fixture(name="scenario_file")
def fixture_scenario_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(mapping()))
    return path


def test_two_policies_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"policy\.name: 'bal' was set, and 'tour' asked for"):
        load_scenario("town", policy="tour", overrides=["policy.name=bal"])
    same = load_scenario("town", policy="tour", overrides=["policy.name=tour"])
    assert same.policy["name"] == "tour"
    other = load_scenario("town", policy="bal", overrides=["policy={name: bal, samples: 6}"])
    assert other.policy["samples"] == 6


def test_options_and_overrides(scenario_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--seed", 9, "--expansions", 2, "--set", "sensor.noise_std=0.5"]
    options += ["--set", "limit.seconds=100", "--set", "policy.samples=4"]
    result = cli("run", scenario_file, "--budget", 2, *options, "--out", out)
    assert result.exit_code == 0, result.output
    assert sum(line.startswith("stage") for line in result.stdout.splitlines()) == 2
    assert str(out / "report.html") in result.stdout
    config = RunDirectory.open(out).config
    assert config["seed"] == 9
    assert config["sensor"]["noise_std"] == 0.5
    assert config["limit"] == {"seconds": None, "expansions": 2}
    assert config["policy"]["samples"] == 4


def test_default_directory_and_json(
    scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("run", scenario_file, *SMALL, "--json", "--no-report")
    assert json.loads(result.stdout)["observed"] == 3, "JSON is all there is on stdout"
    (made,) = (tmp_path / "runs").iterdir()
    assert made.name.startswith("small-random-seed3-20")
    assert not (made / "report.html").exists()


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


def test_bad_input_is_one_clear_message(tmp_path: Path) -> None:
    for arguments, expected in (
        (["nothing"], ["no file 'nothing'", "line.yaml", "town.yaml"]),
        (["lnie"], ["Did you mean 'line"]),
        (["line", "--policy", "bla"], ["unknown policy 'bla'", "Did you mean 'bal'"]),
        (["line", "--budget", "0"], ["budget.readings: must be 1 or more"]),
        (["line", "--set", "map"], ["expected KEY=VALUE"]),
        (["line", "--set", "mpa.count=3"], ["mpa: unknown key", "Did you mean 'map'"]),
        (["line", "--set", "plan_ahead=true"], ["Error: plan_ahead=true", "has no effect"]),
        (["line", "--set", "probe.start=nowhere"], ["probe.start: no place 'nowhere'"]),
    ):
        failed(cli("run", *arguments, "--out", tmp_path / "run"), *expected)
        assert not (tmp_path / "run").exists()


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


@pytest.mark.long
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
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert errors.startswith("Error: interrupted; ")
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert RunDirectory.open(out).summary()["status"] == "interrupted"
    again = subprocess.run([*command, "--resume", "--json"], capture_output=True, check=True)
    assert json.loads(again.stdout)["observed"] == 12


@pytest.fixture(name="rosbags")
def fixture_rosbags() -> None:
    pytest.importorskip("rosbags", reason="the extra [bag] is not installed")


@pytest.mark.slow
def test_replay_prints_a_line_a_stage_and_where_things_are(tmp_path: Path, rosbags: None) -> None:
    out = tmp_path / "run"
    result = cli("replay", "town_sample", "--policy", "max_entropy", "--out", out)
    assert result.exit_code == 0, result.output
    _, _, *lines = result.stdout.splitlines()
    assert [int(line.split()[0]) for line in lines[:12]] == list(range(1, 13))
    assert str(out / "report.html") in result.stdout
    failed(cli("replay", "town_sample", "--out", out), "is not empty")


def test_replay_refuses_with_one_clear_message(tmp_path: Path, rosbags: None) -> None:
    for arguments, expected in (
        (["nowhere"], ["nowhere: not found", "metadata.yaml"]),
        (["BAG", "--set", "reading.filed=x"], ["Did you mean 'field'"]),
        (["BAG", "--params", "nothing.yaml"], ["nothing.yaml: cannot be read"]),
        (["BAG", "--reading-topic", "/x"], ["has no topic /x (reading)", "--reading-topic"]),
        (["BAG", "--reading-field", "x"], ["reading.field: 'x' of sensor_msgs/msg/Temperature"]),
    ):
        words = ["town_sample" if word == "BAG" else word for word in arguments]
        failed(cli("replay", *words, "--out", tmp_path / "run"), *expected)


def test_policies_lists_all_with_units() -> None:
    text = cli("policies").stdout
    listed = [line.split()[0] for line in text.splitlines() if line[0] == " "]
    assert sorted(listed) == policies.names()
    assert [line.split()[0] for line in text.splitlines() if "(default)" in line] == ["tour"]
    assert "`" not in text
    text = cli("policies", "bal", "ie").stdout
    assert [line.split()[0] for line in text.splitlines() if line[0] != " "] == ["bal", "ie"]
    failed(cli("policies", "ball"), "Did you mean 'bal'")
    found = json.loads(cli("policies", "--json").stdout)
    assert [entry["name"] for entry in found] == policies.names()


def test_version_and_help() -> None:
    assert __version__ in cli("--version").stdout
    text = cli("--help").stdout
    built = ("run", "policies", "doctor", "report", "maps", "replay", "init", "export")
    assert all(command in text for command in built)
    assert json.loads(cli("doctor", "--json").stdout)["core_works"] is True


@pytest.mark.parametrize(
    ("command", "package"),
    [("learn", "gp_active_sensing_learning"), ("experiment", "gp_active_sensing_bench")],
)
def test_a_command_of_another_package_names_it(
    command: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gp_active_sensing.cli._added", dict)
    assert f"\n  {command} " not in cli("--help").stdout
    done = cli(command, "anything", "--option")
    assert done.exit_code == 1
    assert done.stderr.strip().count("\n") == 0
    assert package in done.stderr


def test_a_removed_command_names_what_replaces_it() -> None:
    failed(cli("delay", "run"), "removed", "summary.json")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_starts_at_once(option: str) -> None:
    """Little is imported, and nothing heavy; a second on the clock says more about the machine."""
    code = (
        "import atexit, sys; before = set(sys.modules)\n"
        "atexit.register(lambda: print(*sorted(set(sys.modules) - before), file=sys.stderr))\n"
        f"from gp_active_sensing.cli import main; sys.argv[1:] = [{option!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = done.stderr.split()
    assert "gp_active_sensing.cli" in loaded
    assert not {"numpy", "scipy", "yaml", "rich.console"} & set(loaded)
    assert len(loaded) < 150


def test_a_name_that_is_too_long_is_one_line(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    for words in (
        ("run", long),
        ("run", "line", "--out", long),
        ("report", long),
        ("replay", long),
        ("maps", "inspect", long),
    ):
        result = cli(*words)
        assert result.exit_code in (1, 2), words
        assert "Traceback" not in result.output
        assert "This is a defect" not in result.output, words
        *_, line = result.stderr.strip().splitlines()
        assert "too long" in line, words


def test_escape_sequences_in_names_are_printed_escaped(tmp_path: Path) -> None:
    """A name could clear the terminal, change its title, or write lines that look like ours."""
    table = tmp_path / "sites.csv"
    names = ("\x1b[2Ja", "b\x07\x9b31m", "c\u202ed", "e\x1b]0;title\x07")
    rows = "".join(f'"{name}",{10 * i},0\n' for i, name in enumerate(names))
    table.write_text(f"name,x,y\n{rows}")
    scenario = mapping()
    scenario["map"] = {"kind": "points", "file": str(table)}
    scenario["budget"] = {"readings": 4}
    path = tmp_path / "\x1b[31mred.yaml"
    path.write_text(yaml.safe_dump(scenario, allow_unicode=False))
    out = tmp_path / "run\x1b[0m"
    for words in (
        ("run", path, "--out", out, "--no-report"),
        ("maps", "inspect", table),
        ("run", tmp_path / "no\x1b[2J.yaml"),
        ("export", out, "--to", "csv", "--out", tmp_path / "m\x1b.csv"),
    ):
        result = cli(*words)
        for text in (result.stdout, result.stderr):
            assert all(char.isprintable() or char == "\n" for char in text), (words, text)
    assert "\\x1b[2Ja" in cli("run", path, "--out", tmp_path / "again", "--no-report").stdout


def test_a_folder_of_several_runs_lists_them(scenario_file: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        cli("run", scenario_file, *SMALL, "--no-report", "--out", tmp_path / "runs" / name)
    for command in ("report", "watch"):
        expected = (
            f"{tmp_path / 'runs' / name}  small with random" for name in ("first", "second")
        )
        failed(cli(command, tmp_path / "runs"), "holds 2 runs", *expected)
