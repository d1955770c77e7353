"""The command ``gp-active-sensing delay``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gp_active_sensing.cli import cli as group
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.replay.delay import delays_in
from tests.unit.mission.late import mission


def cli(*words: str | Path) -> Result:
    return CliRunner().invoke(group, ["delay", *map(str, words)])


def run_of(path: Path, late: float, delay: float | None = 0.0, window: float | None = None) -> Path:
    """Write the journal of a mission whose sensor is `late`; without a `reading` for no delay."""
    rig = mission(late, delay or 0.0, window)
    config: dict[str, Any] = {} if delay is None else {"reading": {"delay": delay}}
    with RunDirectory.create(path, config) as run:
        for event in rig.events:
            run.append_event(event)
    return path


@pytest.mark.parametrize(
    "delay", [0.5, *(pytest.param(d, marks=pytest.mark.long) for d in (None, 2.2))], ids=str
)
def test_the_delay_to_set_is_said_whatever_was_set(delay: float | None, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 1.5, delay)
    said = cli(run)
    assert said.exit_code == 0
    assert "the readings are about 1.5 s older than their stamps: set reading.delay: 1.5" in (
        said.stdout
    )
    assert len(said.stdout.splitlines()) == 1
    found = json.loads(cli(run, "--json").stdout)
    assert set(found) == {""}
    assert found[""]["seconds"] == pytest.approx(1.5, abs=0.15)
    assert found[""]["set"] == (delay or 0.0)
    assert set(found[""]) == {"seconds", "error", "evidence", "readings", "set"}


@pytest.mark.long
def test_a_delay_that_is_set_and_right_is_not_found(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 1.5, 1.5)
    assert cli(run).stdout.startswith("no delay found in ")
    assert json.loads(cli(run, "--json").stdout) == {"": None}


@pytest.mark.long
def test_a_delay_that_is_set_without_need_is_to_be_set_to_none(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 0.0, 1.0)
    assert "no older than their stamps: set reading.delay: 0" in cli(run).stdout


@pytest.mark.long
def test_poses_that_are_stamped_too_late(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", -0.8)
    assert "the poses are stamped about 0.8 s too late" in cli(run).stdout
    assert json.loads(cli(run, "--json").stdout)[""]["seconds"] == pytest.approx(-0.8, abs=0.15)


def test_too_few_readings_are_said_to_be_too_few(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", {"map": {}}) as run:
        for n in range(3):
            event = {"event": "reading", "stamp_ns": n * 10**9, "value": 1.0, "position": [n, 0.0]}
            run.append_event(event)
    few = "no delay found in 0 readings; it takes 150 on the move, with a position each\n"
    assert cli(tmp_path / "run").stdout == few


def test_averages_tell_no_delay_and_that_is_said(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 1.5, window=1.0)
    found = delays_in(run)
    assert found.averages > 100
    assert found.watches[""].estimate is None
    said = cli(run).stdout
    assert f"{found.averages} readings are averages (reading.window)" in said
    assert "leave reading.window unset, or set 0" in said
    assert json.loads(cli(run, "--json").stdout) == {"": None}


def test_readings_without_a_position_tell_no_delay_and_that_is_said(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", {"map": {}}) as run:
        run.append_event({"event": "reading", "stamp_ns": 5, "value": 1.0, "position": None})
    assert "not in simulated runs" in cli(tmp_path / "run").stdout


def test_no_run_is_an_error_in_words(tmp_path: Path) -> None:
    result = cli(tmp_path / "none")
    assert result.exit_code == 1
    assert "Traceback" not in result.output
