"""Which mission `run_dir: auto` goes on with: by what is in the directories, not by their names."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.mission.run_dirs import AUTO, Events, choose_run
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import MissionEnded, MissionStarted, MissionStopped
from gp_active_sensing.records.run_directory import RunDirectory

CONFIG = {"name": "boat"}
TODAY = datetime(2026, 11, 22, 12, 0, 0, tzinfo=timezone.utc)
AT_1970 = datetime(1970, 1, 1, 0, 0, 30, tzinfo=timezone.utc)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    return tmp_path / "gp_active_sensing"


def started(**more: Any) -> dict[str, Any]:
    return to_line(MissionStarted(details={"seed": 0, "versions": {}, **more}))


def choose(
    now: datetime = TODAY, *, resume: bool = True, name: str = "boat"
) -> tuple[Path, Events]:
    """Choose as a node does, and leave what it would have left when it was killed."""
    run, events = choose_run(AUTO, {"name": name}, now, resume=resume)
    if not events:
        more = {"order": run.order}
        run.append_event(started(**more))
    run.close()
    if now is AT_1970:
        os.utime(run.path / "journal.jsonl", (30, 30))
    return run.path, events


def close(path: Path, event: dict[str, object]) -> None:
    with RunDirectory.begin_again(path) as run:
        run.append_event(event)


def test_one_begun_at_1970_and_killed_is_gone_on_with(folder: Path) -> None:
    first, _ = choose()
    close(first, to_line(MissionEnded(reason="done")))
    second, events = choose(AT_1970)
    assert (second.name, events) == ("19700101T000030", [])
    for now in (AT_1970, TODAY):
        assert choose(now)[0] == second
    close(second, to_line(MissionEnded(reason="done")))
    third, events = choose(AT_1970)
    assert events == []
    assert len({first, second, third}) == 3
    assert choose(TODAY)[0] == third


def test_what_is_no_mission_is_left_alone(folder: Path) -> None:
    mission, _ = choose()
    for name in ("backup", "zzz", "99991231T000000"):
        (folder / name).mkdir()
    (folder / "zzz" / "photo.png").write_bytes(b"cat")
    (folder / "zzzz").write_text("a file")
    (folder / "y").mkdir()
    (folder / "y" / "config.yaml").write_text("name: boat\n")  # nothing was begun
    (folder / "x").mkdir()
    (folder / "x" / "config.yaml").write_text("name: boat\n")
    (folder / "x" / "journal.jsonl").mkdir()
    assert choose()[0] == mission
    close(mission, to_line(MissionEnded(reason="done")))
    new, events = choose(AT_1970)
    assert (new.name, events) == ("19700101T000030", [])
    assert list((folder / "backup").iterdir()) == []
    assert sorted(path.name for path in (folder / "y").iterdir()) == ["config.yaml"]
    assert [path.name for path in (folder / "zzz").iterdir()] == ["photo.png"]


def test_the_newest_of_several_that_were_cut_off(folder: Path) -> None:
    first, _ = choose()
    second, _ = choose(AT_1970, resume=False)
    third, _ = choose(resume=False)
    assert choose()[0] == third
    close(third, to_line(MissionEnded(reason="done")))
    assert choose()[0] == second
    close(second, to_line(MissionStopped(reason="Ctrl-C")))
    assert choose()[0] == first
    close(first, to_line(MissionEnded(reason="done")))
    assert choose()[1] == []


def test_one_that_another_process_goes_on_with_is_passed_over(folder: Path) -> None:
    first, _ = choose()
    second, _ = choose(resume=False)
    with RunDirectory.begin_again(second):
        assert choose()[0] == first
