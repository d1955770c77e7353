"""A run directory that somebody removes, renames or replaces under way is written again."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.journal import Journal
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.util.files import InUse
from tests.unit.mission.missions import Drive
from tests.waiting import wait_until


def remove(run: Path) -> None:
    shutil.rmtree(run)


def rename(run: Path) -> None:
    run.rename(run.with_name("elsewhere"))


def rename_journal(run: Path) -> None:
    (run / "journal.jsonl").rename(run / "journal.old")


def replace_journal(run: Path) -> None:
    """As an editor does that saves a file."""
    (run / "new").write_text("nonsense\n")
    (run / "new").rename(run / "journal.jsonl")


def replace_by_a_file(run: Path) -> None:
    """Nothing can be written until it is gone."""
    shutil.rmtree(run)
    run.write_text("a file")


DEEDS = [remove, rename, rename_journal, replace_journal]


@pytest.mark.parametrize("deed", DEEDS)
def test_everything_is_written_again(
    tmp_path: Path, deed: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    drive = Drive(tmp_path / "run")
    drive.start()
    for _ in range(5):
        drive.step()
    recorder = drive.built.recorder
    assert recorder.run is not None
    assert recorder.problem == ""
    deed(tmp_path / "run")
    for _ in range(3):
        drive.step()
    journal: Any = recorder._journal
    journal.sync()
    assert "written again" in recorder.problem
    assert "had been removed, renamed or replaced" in caplog.text
    drive.run()
    assert recorder.conclude(drive.built.mission) == ""
    with pytest.raises(RunError, match="in use"):
        RunDirectory.begin_again(tmp_path / "run")
    drive.kill()
    whole = Drive(tmp_path / "whole")
    whole.start()
    whole.run()
    whole.kill()
    events = [RunDirectory.open(tmp_path / name).events() for name in ("run", "whole")]
    kinds = [[event["event"] for event in each if event["event"] != "status"] for each in events]
    assert kinds[0] == kinds[1]
    again = RunDirectory.open(tmp_path / "run")
    assert again.damage == []
    assert again.summary()["status"] == "finished"
    assert len(again.records()) == len(RunDirectory.open(tmp_path / "whole").records())
    if deed is replace_journal:
        kept = tmp_path / "run" / "journal.replaced-1.jsonl"
        assert kept.read_text() == "nonsense\n"


def test_what_cannot_be_written_again_is_said_until_it_can(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run")
    drive.start()
    drive.step()
    recorder = drive.built.recorder
    replace_by_a_file(tmp_path / "run")
    drive.step()
    journal: Any = recorder._journal
    with pytest.raises(RunError, match="cannot write again what was removed"):
        journal.sync()
    assert "cannot be written again" in recorder.problem
    assert "cannot write again" in recorder.conclude(drive.built.mission)
    (tmp_path / "run").unlink()
    assert recorder.conclude(drive.built.mission) == ""
    assert RunDirectory.open(tmp_path / "run").events()[0]["event"] == "start"
    drive.kill()


def test_a_directory_that_somebody_else_took_is_left_to_them(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {"name": "one"})
    run.append_event({"event": "start"})
    rename(tmp_path / "run")
    other = RunDirectory.create(tmp_path / "run", {"name": "other"})
    with pytest.raises(RunError, match="is in use by process"):
        run.sync()
    assert "cannot be written again" in run.trouble
    assert RunDirectory.open(tmp_path / "run").config == {"name": "other"}
    other.close()
    run.close()


def test_it_is_noticed_while_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gp_active_sensing.mission.journal.LOOK_SECONDS", 0.01)
    with RunDirectory.create(tmp_path / "run", {"name": "x"}) as run, caplog.at_level("ERROR"):
        journal = Journal(run, period=0.001)
        journal.append({"event": "start"})
        wait_until(lambda: journal.synced == 1, "the first look at the disk")
        rename(tmp_path / "run")  # at one instant
        wait_until(lambda: "written again" in run.trouble, "the files to be written again")
        assert run.events() == [{"event": "start"}]
        journal.close()
    assert [r.levelno for r in caplog.records] == [logging.ERROR]


def test_a_writer_whose_lock_was_removed_gives_way_to_the_next(tmp_path: Path) -> None:
    one = RunDirectory.create(tmp_path / "run", {"name": "one"})
    one.append_event({"event": "start"})
    (tmp_path / "run" / ".lock").unlink()
    other = RunDirectory.begin_again(tmp_path / "run")
    other.repair()
    with pytest.raises(InUse, match="is in use by process"):
        one.append_event({"event": "reading"})
    other.append_event({"event": "resumed"})
    other.close()
    for _ in range(2):
        with pytest.raises(InUse, match=r"another process wrote here after \.lock was removed"):
            one.append_event({"event": "reading"})
    one.close()
    kept = RunDirectory.open(tmp_path / "run")
    assert kept.events() == [{"event": "start"}, {"event": "resumed"}]
    assert kept.damage == []
