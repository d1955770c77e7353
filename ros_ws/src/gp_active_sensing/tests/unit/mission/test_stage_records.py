"""Records of stages: whole on disk, small in memory, and none is lost to a disk that is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.mission.stages import StageRecords
from gp_active_sensing.records.run_directory import RunDirectory


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


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    made = RunDirectory.create(tmp_path / "run", {})
    yield made
    made.close()


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
