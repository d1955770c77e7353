from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.ingestion.stays import Stays
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import JournalGap, ReadingUsed, StayRecord
from gp_active_sensing.records.run_directory import JOURNAL, RunDirectory
from gp_active_sensing.types import Reading
from tests.journals import change_events
from tests.unit.mission.missions import SECOND, Drive
from tests.unit.mission.worlds import placed

BUDGET = {"readings": 8, "metres": 2000.0, "seconds": 5000.0}


class FastDrive(Drive):
    """The same half a second from place to place, with a sensor that reads all the time."""

    here = 0
    ticks = 0

    def _obey(self) -> None:
        """Nothing: it goes where it is sent in `step`."""

    def step(self) -> None:
        super().step()
        target = self.built.mission.probe.target
        self.ticks = 0 if target in (None, self.here) else self.ticks + 1
        if target is not None and self.ticks == 5:
            self.here, self.ticks = target, 0
        x, y = self.built.mission.loop.topology.positions[self.here].tolist()
        x += 0.2 * (len(self.sent) % 5)
        self._send(Pose(self.now_ns, "map", x, y, 0.0))
        self._send(RawReading(self.now_ns, 10.0 + 0.01 * x + 1e-3 * (len(self.sent) % 7), None))


def killed(run_dir: Path, steps: int, kind: type[Drive] = Drive) -> Drive:
    drive = kind(run_dir, budget=BUDGET).start()
    drive.steps(steps)
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


@pytest.mark.slow
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
def test_any_line_may_be_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture, step: int) -> None:
    """A line of a mission is lost: it goes on, within its budget and the same elsewhere."""
    killed(tmp_path / "whole", 6)
    with RunDirectory.begin_again(tmp_path / "whole") as run:
        events = run.events()
    seen = set()
    for number in sorted({*range(0, len(events), step), len(events) - 1}):
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
        assert mission.loop.spent == spent, (number, lost)
        stages = [e["stage"] for at, e in enumerate(events) if "stage" in e and at != number]
        assert mission.decisions.stage == max(stages)
        assert mission.loop.decisions == max(stages), "they number the random draws"
        drive.obeyed = None
        drive.run()
        read = len({e["location"] for e in RunDirectory.open(path).events() if "value" in e})
        assert read <= BUDGET["readings"]
        assert mission.driven.metres <= BUDGET["metres"]
        assert (path / "journal.damaged-1.jsonl").exists()
        drive.kill()
    assert {"decision", "reading"} <= seen


def test_what_was_driven_is_known_again_with_the_next_decision(tmp_path: Path) -> None:
    drive = killed(tmp_path / "run", 6)
    drive.start()
    left = drive.built.mission.probe.remaining
    drive.kill()
    events = RunDirectory.open(tmp_path / "run").events()
    moved = next(at for at, e in enumerate(events) if e["event"] == "moved" and e["metres"] > 0.0)
    assert any(e["event"] == "decision" for e in events[moved:])
    spoil(tmp_path / "run", moved)
    drive.start()
    again = drive.built.mission.probe.remaining
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
    left = drive.built.mission.probe.remaining
    drive.kill()
    journal.write_bytes(b"".join(lines[: end + 1]))
    spoil(tmp_path / "run", *range(before, decision + 1))
    drive.start()
    again = drive.built.mission.probe.remaining
    assert again.metres is not None
    assert left.metres is not None
    assert again.metres <= left.metres + 1e-9
    assert (again.seconds or 0.0) <= (left.seconds or 0.0) + 1e-9


def test_after_a_gap_a_decision_that_was_taken_before_it_is_refused(tmp_path: Path) -> None:
    drive = killed(tmp_path / "run", 6)

    def double(events: list[dict[str, Any]]) -> None:
        last = [event for event in events if event["event"] == "decision"][-1]
        events += [to_line(JournalGap(failures=1)), last]

    change_events(tmp_path / "run" / JOURNAL, double)
    with pytest.raises(RunError):
        drive.start()


def test_a_mission_whose_end_is_lost_is_over_all_the_same(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run", budget=BUDGET).start()
    drive.run()
    assert drive.built.recorder.save(drive.built.mission, "finished")
    drive.kill()
    events = RunDirectory.open(tmp_path / "run").events()
    assert events[-1]["event"] == "end"
    spoil(tmp_path / "run", len(events) - 1)
    with pytest.raises(RunError, match="holds a mission that is over"):
        drive.start()


@pytest.mark.slow
@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_any_line_of_a_stay_may_be_lost(tmp_path: Path, step: int) -> None:
    """The belief lacks no more than the reading that is lost, and goes on."""
    whole = killed(tmp_path / "whole", 34, FastDrive)
    with RunDirectory.begin_again(tmp_path / "whole") as run:
        events = run.events()
    readings = [at for at, e in enumerate(events) if e["event"] == "reading"]
    stays = [events[at].get("stay", {"count": 1})["count"] for at in readings]
    assert max(stays) >= 3
    assert stays.count(1) >= 3
    whole.start()
    belief = whole.built.mission.loop.belief
    mean, variance = belief.predict()
    counts = belief.readings
    whole.kill()
    for at in readings[::step]:
        path = tmp_path / str(at)
        drive = killed(path, 34, FastDrive)
        assert spoil(path, at) == ["reading"]
        drive.start()
        mission = drive.built.mission
        assert mission.loop.counts["accepted"] == len(readings) - 1
        last = at == readings[-1] or stays[readings.index(at) + 1] == 1
        place = events[at]["location"]
        # Unless nothing that is known goes on with its stay, the map is what it was.
        lost = int(last and events[at].get("stay") is None)
        assert mission.loop.belief.readings[place] == counts[place] - lost
        if not last:
            for one, other in zip(mission.loop.belief.predict(), (mean, variance), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6)
        drive.run()
        places = {e["location"] for e in RunDirectory.open(path).events() if "value" in e}
        assert len(places) <= BUDGET["readings"]
        drive.kill()


def test_a_stay_whose_beginning_is_lost_leaves_an_older_stay_of_its_place_alone() -> None:
    ours = Stays(lambda reading: 0.04, lambda place: (0.0, 0.0))
    old = ours.add(placed(Reading(SECOND, 0, 4.0)))
    average = Reading(100 * SECOND, 0, 6.0, 0.02, off=0.0)
    stay = StayRecord(2, 6.0, 0.02, 0.0)
    event = ReadingUsed(reading=Reading(100 * SECOND, 0, 7.0), stay=stay)
    told = ours.restore_reading(event, gap=True)
    assert (told.reading, told.before, told.count) == (average, None, 2)
    further = ours.add(placed(Reading(101 * SECOND, 0, 6.0)))
    assert further.before.reading == average
    assert further.count == 3
    assert further.reading.value == pytest.approx(6.0)
    assert old.before is None


def test_a_stay_of_which_readings_in_between_are_lost_goes_on() -> None:
    ours = Stays(lambda reading: 0.04, lambda place: (0.0, 0.0))
    first = ours.add(placed(Reading(SECOND, 0, 4.0))).reading
    average = Reading(60 * SECOND, 0, 6.0, 0.02, off=0.0)
    stay = StayRecord(600, 6.0, 0.02, 0.0)
    told = ours.restore_reading(
        ReadingUsed(reading=Reading(60 * SECOND, 0, 7.0), stay=stay), gap=True
    )
    assert (told.reading, told.count) == (average, 600)
    few = ReadingUsed(reading=Reading(70 * SECOND, 0, 7.0), stay=StayRecord(601, 6.0, 0.02, 0.0))
    assert ours.restore_reading(few, gap=True).before is None, "one reading more, ten seconds later"
    assert told.before is not None
    assert told.before.reading == first
