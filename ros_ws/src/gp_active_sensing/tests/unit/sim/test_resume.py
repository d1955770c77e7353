from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import Scenario, run_scenario, scenario_from_mapping
from gp_active_sensing.sim.driver import run_scenario as drive
from gp_active_sensing.util.files import InUse
from tests.journals import write_events
from tests.unit.sim.scenarios import GRID, mapping, scenario

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


@pytest.fixture(scope="module", params=["plain", "hard"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    what = PLAIN if request.param == "plain" else HARD
    out = tmp_path_factory.mktemp(request.param) / "whole"
    return what, out, run_scenario(what, out).to_mapping()


def cut(source: Path, target: Path, journal_bytes: int) -> None:
    target.mkdir()
    shutil.copy(source / "config.yaml", target)
    (target / "journal.jsonl").write_bytes((source / "journal.jsonl").read_bytes()[:journal_bytes])
    # Records are flushed after the event, so they may be short by one, or cut short.
    (target / "records.jsonl").write_bytes((source / "records.jsonl").read_bytes()[:-7])


def final(out: Path) -> tuple[Any, Any]:
    run = RunDirectory.open(out)
    return without_times(run.records()), without_times(run.events())


def killed_and_resumed(
    what: Scenario, whole: Path, summary: dict[str, Any], kills: int | None
) -> None:
    """Kill a run after an event or within a line and see that it comes to its end again.

    Of all points so many `kills` are drawn; None = all.
    """
    data = (whole / "journal.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    points = [0, *ends, *(end - 5 for end in ends), *(end + 9 for end in ends[:-1])]
    if kills is not None:
        points = np.random.default_rng(len(points)).permutation(points)[:kills].tolist()
    for size in points:
        target = whole.parent / f"{whole.name} {kills} {size}"
        cut(whole, target, size)
        again = run_scenario(what, target, resume=True).to_mapping()
        assert without_times(again) == without_times(summary), f"cut at byte {size}"
        assert final(target) == final(whole), f"cut at byte {size}"


@pytest.mark.parametrize("kills", [10, pytest.param(None, marks=pytest.mark.long)])
def test_killed_anywhere_it_comes_to_the_same_end(whole: Any, kills: int | None) -> None:
    killed_and_resumed(*whole, kills)


def test_killed_before_anything_was_written(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".config.yaml.part").write_text("map:")
    summary = drive(PLAIN, tmp_path / "run", resume=True)
    assert summary.status == "finished"


def test_another_configuration_is_refused(whole: Any) -> None:
    what, out, _ = whole
    for sections, key in (
        ({"seed": 4}, "seed"),
        ({"budget": {"readings": 9}}, "budget.readings"),
        ({"sensor": {"bias": 4.0}}, "sensor.bias"),
    ):
        other = scenario_from_mapping(mapping(what.to_mapping(), **sections))
        with pytest.raises(RunError, match=f"different: {key}"):
            drive(other, out, resume=True)


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    drive(PLAIN, tmp_path / "run")
    path = tmp_path / "run" / "journal.jsonl"
    events = RunDirectory.open(tmp_path / "run").events()
    for line, change, message in (
        (2, {"event": "reading", "location": 1, "stamp_ns": 0, "value": 1.0}, "does not follow"),
        (3, {"event": "decision"}, "expected an event .decision."),
        (2, {"event": "teleported"}, "does not follow"),
        (0, {"event": "start", "seed": 99, "versions": {}, "driver": "sim"}, "'seed': 99"),
        (0, {"event": "start", "seed": 3, "versions": {}}, "a mission of the nodes"),
    ):
        write_events(path, [*events[:line], change, *events[line + 1 :]])
        with pytest.raises(RunError, match=message):
            drive(PLAIN, tmp_path / "run", resume=True)
    for number in (1, 4):  # the last ones doubled, with new numbers
        write_events(path, events + events[-number:])
        with pytest.raises(RunError, match="does not follow"):
            drive(PLAIN, tmp_path / "run", resume=True)


def test_a_damaged_run_is_simulated_again_from_there(whole: Any, tmp_path: Path) -> None:
    what, out, summary = whole
    for line, damage in ((0, "not json\n"), (2, "\0"), (5, "[1, 2]\n")):
        copy = tmp_path / str(line)
        shutil.copytree(out, copy)
        path = copy / "journal.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        lines[line] = damage if damage.endswith("\n") else damage + lines[line][1:]
        path.write_text("".join(lines))
        again = run_scenario(what, copy, resume=True).to_mapping()
        assert without_times(again) == without_times(summary), line
        assert final(copy) == final(out), line
        assert (copy / "journal.damaged-1.jsonl").read_text() == "".join(lines), line


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
