"""A mission whose journal has lost lines goes on, and never spends more than its budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records import JOURNAL, RunDirectory
from tests.unit.mission.missions import Drive

BUDGET = {"readings": 8, "metres": 2000.0, "seconds": 5000.0}


def killed(run_dir: Path, steps: int, **config: Any) -> Drive:
    drive = Drive(run_dir, budget=BUDGET, **config)
    drive.start()
    for _ in range(steps):
        drive.step()
    drive.kill()
    return drive


def spoil(run_dir: Path, *numbers: int) -> list[str]:
    """Put a zero byte into lines of the journal; return the events that are lost."""
    journal = run_dir / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    lost = []
    with RunDirectory.begin_again(run_dir) as run:
        events = run.events()
    for number in numbers:
        lost.append(str(events[number]["event"]))
        lines[number] = lines[number][:7] + b"\0" + lines[number][8:]
    journal.write_bytes(b"".join(lines))
    return lost


def test_any_line_may_be_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each of the lines of a mission once: it goes on, within its budget and the same elsewhere."""
    killed(tmp_path / "whole", 6)
    with RunDirectory.begin_again(tmp_path / "whole") as run:
        events = run.events()
    seen = set()
    for number in range(len(events)):
        path = tmp_path / str(number)
        drive = killed(path, 6)
        (lost,) = spoil(path, number)
        seen.add(lost)
        caplog.clear()
        drive.start()
        assert "1 events are not in the journal (damaged)" in caplog.text
        mission = drive.built.mission
        later = events[number + 1 :]
        told = [e for at, e in enumerate(events) if e["event"] == "reading" and at != number]
        assert mission.loop.counts["accepted"] == len(told)
        read = sum(e["event"] == "reading" for e in events)
        settled = any(e["event"] == "decision" for e in later)
        spent = read if settled else len(told) + 1
        assert mission.loop.remaining.readings == BUDGET["readings"] - spent, (number, lost)
        stages = [e["stage"] for at, e in enumerate(events) if "stage" in e and at != number]
        assert mission.decisions.stage == max(stages)
        drive.obeyed = None
        drive.run()
        read = len({e["location"] for e in RunDirectory.open(path).events() if "value" in e})
        assert read <= BUDGET["readings"]
        assert mission.driven.metres <= BUDGET["metres"]
        assert (path / "journal.damaged-1.jsonl").exists()
        drive.kill()
    assert {"start", "state", "asked", "decision", "reading", "moved"} <= seen


def test_what_was_driven_is_known_again_with_the_next_decision(tmp_path: Path) -> None:
    drive = killed(tmp_path / "run", 6)
    drive.start()
    left = drive.built.mission.probe.left
    drive.kill()
    events = RunDirectory.open(tmp_path / "run").events()
    moved = next(at for at, e in enumerate(events) if e["event"] == "moved" and e["metres"] > 0.0)
    assert any(e["event"] == "decision" for e in events[moved:])
    spoil(tmp_path / "run", moved)
    drive.start()
    again = drive.built.mission.probe.left
    assert again.readings == left.readings
    assert again.metres == pytest.approx(left.metres)
    assert again.seconds == pytest.approx(left.seconds)


def test_what_may_have_been_driven_is_charged_until_then(tmp_path: Path) -> None:
    """Two ends of stages and the decision between them are lost; only the last drive is known."""
    drive = killed(tmp_path / "run", 7)
    events = RunDirectory.open(tmp_path / "run").events()
    before, end = [at for at, e in enumerate(events) if e["event"] == "moved"][-2:]
    (decision,) = [at for at in range(before, end) if events[at]["event"] == "decision"]
    journal = tmp_path / "run" / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: end + 1]))
    drive.start()
    left = drive.built.mission.probe.left
    drive.kill()
    journal.write_bytes(b"".join(lines[: end + 1]))
    spoil(tmp_path / "run", *range(before, decision + 1))
    drive.start()
    again = drive.built.mission.probe.left
    assert again.metres is not None
    assert left.metres is not None
    assert again.metres <= left.metres + 1e-9
    assert (again.seconds or 0.0) <= (left.seconds or 0.0) + 1e-9


def test_a_mission_whose_end_is_lost_is_over_all_the_same(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run", budget=BUDGET)
    drive.start()
    drive.run()
    assert drive.built.recorder.save(drive.built.mission, "finished")
    drive.kill()
    events = RunDirectory.open(tmp_path / "run").events()
    assert events[-1]["event"] == "end"
    spoil(tmp_path / "run", len(events) - 1)
    with pytest.raises(RunError, match="holds a mission that is over"):
        drive.start()
