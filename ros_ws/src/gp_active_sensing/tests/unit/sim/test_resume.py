"""A run killed anywhere goes on to exactly the same end."""

from __future__ import annotations

import json
import operator
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import Scenario, run_scenario
from gp_active_sensing.sim.driver import run_scenario as drive
from gp_active_sensing.util.files import InUse
from tests.journals import change_events, write_events
from tests.unit.sim.scenarios import GRID, scenario

HARD = scenario(
    GRID,
    sensor={"dropout": 0.4, "readings": 2, "retries": 1, "outlier": 0.1, "outlier_size": 9.0},
    policy={"name": "ie"},
    budget={"readings": 8},
)
PLAIN = scenario(GRID)
TIMES = ("plan_seconds", "planning", "run_dir", "versions")


def without_times(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: without_times(v) for k, v in data.items() if k not in TIMES}
    return [without_times(v) for v in data] if isinstance(data, list) else data


@pytest.fixture(scope="module", params=["hard", pytest.param("plain", marks=pytest.mark.long)])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    what = PLAIN if request.param == "plain" else HARD
    out = tmp_path_factory.mktemp(request.param) / "whole"
    return what, out, run_scenario(what, out).to_mapping()


def cut(source: Path, target: Path, journal_bytes: int) -> None:
    """Copy a run as a kill would have left it."""
    target.mkdir()
    shutil.copy(source / "config.yaml", target)
    (target / "journal.jsonl").write_bytes((source / "journal.jsonl").read_bytes()[:journal_bytes])
    # Records are flushed after the event, so they may be short by one, or cut short.
    (target / "records.jsonl").write_bytes((source / "records.jsonl").read_bytes()[:-7])


def final(out: Path) -> tuple[Any, Any]:
    run = RunDirectory.open(out)
    return without_times(run.records()), without_times(run.events())


@pytest.mark.slow
@pytest.mark.parametrize("most", [20, pytest.param(10**6, marks=pytest.mark.long)])
def test_killed_at_an_event_and_within_lines(whole: Any, most: int, tmp_path: Path) -> None:
    """Killed at drawn events in make test, at every event in make test-long."""
    what, out, summary = whole
    data = (out / "journal.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    points = np.array([0, *ends, *(end - 5 for end in ends), *(end + 9 for end in ends[:-1])])
    drawn = np.random.default_rng(7).permutation(points)[:most]
    for number, size in enumerate(drawn.tolist()):
        target = tmp_path / str(number)
        cut(out, target, size)
        again = run_scenario(what, target, resume=True).to_mapping()
        assert without_times(again) == without_times(summary), f"cut at byte {size}"
        assert final(target) == final(out), f"cut at byte {size}"


def test_the_belief_is_equal_to_the_bit(whole: Any, tmp_path: Path) -> None:
    what, out, _ = whole
    data = (out / "journal.jsonl").read_bytes()
    cut(out, tmp_path / "half", len(data) // 2)
    run_scenario(what, tmp_path / "half", resume=True)
    last = [RunDirectory.open(d).records()[-1] for d in (out, tmp_path / "half")]
    assert last[0]["weights"] == last[1]["weights"]
    assert last[0]["rmspe"] == last[1]["rmspe"]
    assert np.isfinite(last[0]["nlpd"])


def test_resuming_twice_changes_nothing(whole: Any, tmp_path: Path) -> None:
    what, out, summary = whole
    shutil.copytree(out, tmp_path / "copy")
    again = run_scenario(what, tmp_path / "copy", resume=True).to_mapping()
    assert without_times(again) == without_times(summary)
    assert (tmp_path / "copy" / "journal.jsonl").read_bytes() == (
        out / "journal.jsonl"
    ).read_bytes()


def test_killed_before_anything_was_written(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".config.yaml.part").write_text("map:")
    summary = drive(PLAIN, tmp_path / "run", resume=True)
    assert summary.status == "finished"


def test_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="does not exist"):
        drive(PLAIN, tmp_path / "run", resume=True)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"cat")
    with pytest.raises(RunError, match="is not a run directory"):
        drive(PLAIN, tmp_path / "photos", resume=True)


@pytest.mark.parametrize(
    ("other", "key"),
    [
        (scenario(GRID, seed=4), "seed"),
        (scenario(GRID, budget={"readings": 9}), "budget.readings"),
        (scenario(GRID, policy={"samples": 4}), "policy.samples"),
    ],
)
def test_another_configuration_is_refused(tmp_path: Path, other: Scenario, key: str) -> None:
    drive(PLAIN, tmp_path / "run")
    with pytest.raises(RunError, match=f"different: {key}"):
        drive(other, tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (2, {"event": "reading", "location": 1, "stamp_ns": 0, "value": 1.0}, "does not follow"),
        (3, {"event": "decision"}, "expected an event .decision."),
        (3, {"event": "reading", "location": "x"}, "does not follow"),
        (2, {"event": "teleported"}, "does not follow"),
        (1, {"event": "start", "seed": 3, "versions": {}}, "does not follow"),
        (
            0,
            {"event": "start", "seed": 99, "versions": {}, "driver": "sim"},
            "'seed': 3.*'seed': 99",
        ),
        (0, {"event": "start", "seed": 3, "versions": {}}, "was written by version 0.1"),
    ],
)
def test_a_damaged_journal_is_refused(tmp_path: Path, line: int, change: Any, message: str) -> None:
    drive(PLAIN, tmp_path / "run")
    path = tmp_path / "run" / "journal.jsonl"
    change_events(path, lambda events: operator.setitem(events, line, change))
    with pytest.raises(RunError, match=message):
        drive(PLAIN, tmp_path / "run", resume=True)


def test_other_versions_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    drive(PLAIN, tmp_path / "run")
    path = tmp_path / "run" / "journal.jsonl"
    change_events(path, lambda events: events[0]["versions"].update(numpy="0.1"))
    with caplog.at_level("WARNING"):
        drive(PLAIN, tmp_path / "run", resume=True)
    assert f"numpy 0.1 -> {np.__version__}" in caplog.text


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_doubled_last_events_are_refused(tmp_path: Path, number: int) -> None:
    """In a journal whose lines have no numbers, or were given new ones."""
    drive(PLAIN, tmp_path / "run")
    path = tmp_path / "run" / "journal.jsonl"
    events = RunDirectory.open(tmp_path / "run").events()
    lines = [json.dumps(event) + "\n" for event in events]
    path.write_text("".join(lines + lines[-number:]))
    with pytest.raises(RunError, match="does not follow"):
        drive(PLAIN, tmp_path / "run", resume=True)
    write_events(path, events + events[-number:])
    with pytest.raises(RunError, match="does not follow"):
        drive(PLAIN, tmp_path / "run", resume=True)


@pytest.mark.parametrize("line", [0, 2, 5])
@pytest.mark.parametrize("damage", ["\0", "not json\n", "[1, 2]\n"])
def test_a_damaged_run_is_simulated_again_from_there(
    whole: Any, tmp_path: Path, line: int, damage: str
) -> None:
    what, out, summary = whole
    shutil.copytree(out, tmp_path / "copy")
    path = tmp_path / "copy" / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[line] = damage if damage.endswith("\n") else damage + lines[line][1:]
    path.write_text("".join(lines))
    again = run_scenario(what, tmp_path / "copy", resume=True).to_mapping()
    assert without_times(again) == without_times(summary)
    assert final(tmp_path / "copy") == final(out)
    assert (tmp_path / "copy" / "journal.damaged-1.jsonl").read_text() == "".join(lines)


def test_a_run_that_is_going_on_is_not_resumed(tmp_path: Path) -> None:
    """Nothing of it is read or changed, and it comes to its end."""
    before: list[tuple[str, bytes]] = []

    def state() -> list[tuple[str, bytes]]:
        return sorted((p.name, p.read_bytes()) for p in (tmp_path / "run").iterdir())

    def interfere(record: Any) -> None:
        before[:] = state()
        for resume in (True, False):
            with pytest.raises(InUse, match=f"in use by process {os.getpid()}"):
                drive(PLAIN, tmp_path / "run", resume=resume)
        assert state() == before

    drive(PLAIN, tmp_path / "run", on_stage=interfere)
    assert before
    events = RunDirectory.open(tmp_path / "run").events()
    assert [event["event"] for event in events].count("end") == 1
    drive(PLAIN, tmp_path / "other")
    assert final(tmp_path / "run") == final(tmp_path / "other")
