from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.mission.journal import Journal
from gp_active_sensing.mission.stages import StageRecords
from gp_active_sensing.records.run_directory import JOURNAL, RunDirectory
from gp_active_sensing.util.files import read_lines
from tests.waiting import wait_until


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with RunDirectory.create(tmp_path / "run", {"name": "x"}) as made:
        yield made


def test_an_event_is_with_the_system_when_append_returns(run: RunDirectory) -> None:
    journal = Journal(run, period=60.0)
    for number in range(5):
        journal.append({"event": "reading", "value": number})
        # Read through another descriptor, as the next process will.
        assert len(read_lines(run.path / JOURNAL)[0]) == number + 1
    assert journal.synced == 0
    journal.close()
    assert journal.synced == 1


def test_many_events_share_one_look_at_the_disk(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    appended = threading.Event()

    def fsync(number: int) -> None:
        if threading.current_thread() is threading.main_thread():
            return  # beginning a file asks for its name to be on disk
        if os.fstat(number).st_ino != (run.path / JOURNAL).stat().st_ino:
            return  # a journal of an earlier test
        assert appended.wait(60.0)  # a disk that takes as long as all the events do
        synced.append(os.fstat(number).st_size)

    monkeypatch.setattr(os, "fsync", fsync)
    journal = Journal(run, period=0.005)
    for _ in range(300):
        journal.append({"event": "reading"})
    size = (run.path / JOURNAL).stat().st_size
    appended.set()
    wait_until(lambda: size in synced, "everything on disk")
    time.sleep(0.1)  # nothing new: the disk is left alone, however long this takes
    # One look, and one for what came while it was under way.
    assert len(synced) <= 2
    journal.close()


def test_a_disk_that_cannot_be_asked_is_said_once_and_the_thread_lives(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = True
    real = os.fsync
    asked: list[bool] = []

    def fsync(number: int) -> None:
        asked.append(broken)
        if broken:
            raise OSError(5, "Input/output error")
        real(number)

    journal = Journal(run, period=0.005)
    journal.append({"event": "start"})
    monkeypatch.setattr(os, "fsync", fsync)
    with caplog.at_level(logging.ERROR):

        def looked_again() -> bool:
            journal.append({"event": "reading"})
            return len(asked) > 2

        wait_until(looked_again, "several looks at the disk")
    assert len([r for r in caplog.records if "later events may be lost" in r.message]) == 1
    broken = False
    journal.append({"event": "reading"})
    wait_until(lambda: not asked[-1], "a look that works")
    journal.close()


class Guard:
    """Calls what it is given while there is room."""

    def __init__(self) -> None:
        self.room = True

    def __call__(self, write: Callable[[], None]) -> bool:
        if self.room:
            write()
        return self.room


def record(stage: int) -> dict[str, Any]:
    return {"stage": stage, "plan_seconds": 0.5, "candidates": [[stage, 1.0]] * 100}


def test_a_record_is_whole_on_disk_and_its_figures_are_remembered(run: RunDirectory) -> None:
    records = StageRecords(run, Guard())
    for stage in (1, 2):
        records.add(record(stage))
    assert run.records() == [record(1), record(2)]
    assert records.newest == record(2)
    assert records.figures == [{"stage": stage, "plan_seconds": 0.5} for stage in (1, 2)]
    again = StageRecords(run, Guard())
    assert again.figures == records.figures
    assert again.newest == {}


def test_records_for_which_there_was_no_room_are_written_when_there_is(run: RunDirectory) -> None:
    guard = Guard()
    records = StageRecords(run, guard)
    records.add(record(1))
    guard.room = False
    for stage in (2, 3):
        records.add(record(stage))
    assert records.unwritten == 2
    assert run.records() == [record(1)]
    guard.room = True
    records.add(record(4))
    assert records.unwritten == 0
    assert run.records() == [record(stage) for stage in (1, 2, 3, 4)]
