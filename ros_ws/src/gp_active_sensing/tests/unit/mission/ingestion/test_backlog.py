from __future__ import annotations

from typing import Any

import pytest

from gp_active_sensing.mission.inbox import Envelope, RawReading
from gp_active_sensing.mission.ingestion.backlog import (
    CATCH_UP_SECONDS,
    MOST_SECONDS,
    Backlog,
    DuplicateFilter,
)
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.records.events import ReadingGated, ReadingUsed
from gp_active_sensing.types import Reading

NOW = 6
"""The node's time when it begins to listen [ns]."""


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def pose(stamp_ns: int) -> Envelope:
    return Envelope(Pose(stamp_ns, "map", 0.0, 0.0, 0.0), 99.0)


def reading(stamp_ns: int) -> Envelope:
    return Envelope(RawReading(stamp_ns, 1.0, None), 99.0)


def test_streams_are_merged_by_their_stamps_when_all_may_have_come() -> None:
    time = Time()
    catch_up = Backlog(time, wanted=True)
    time.now += 60.0  # however long the publishers take to be found
    assert catch_up.pass_on([], NOW) == ()
    assert catch_up.pass_on([pose(1), pose(3), pose(5)], NOW) == ()
    assert catch_up.pass_on([reading(2), reading(4)], NOW) == ()
    assert catch_up.waiting == 5
    time.now += CATCH_UP_SECONDS
    found = catch_up.pass_on([pose(6)], NOW)
    assert (len(found), catch_up.going_on) == (1, True), "one for each that comes"
    found = [*found, *catch_up.pass_on([], NOW)]
    assert [message.what.stamp_ns for message in found] == [1, 2, 3, 4, 5, 6]
    assert {message.received for message in found} == {time.now}, "they wait from now on"
    assert not catch_up.going_on
    assert list(catch_up.pass_on([pose(2)], NOW)) == [pose(2)]


def test_however_slowly_they_come_they_are_waited_for() -> None:
    """On a busy machine poses came seconds after the readings of their time."""
    time = Time()
    catch_up = Backlog(time, wanted=True)
    for stamp_ns in range(1, NOW):
        assert catch_up.pass_on([reading(stamp_ns)], NOW + stamp_ns - 1) == ()
        time.now += 0.9 * CATCH_UP_SECONDS
    assert catch_up.pass_on([pose(0)], 2 * NOW) == ()
    time.now += 0.9 * CATCH_UP_SECONDS
    assert catch_up.pass_on([pose(NOW)], 2 * NOW) == (), "of now: it is not waited for more of them"
    time.now += 0.2 * CATCH_UP_SECONDS
    found = catch_up.pass_on([], 2 * NOW)
    assert [message.what.stamp_ns for message in found] == list(range(NOW + 1))


def test_stamps_that_stay_old_are_not_waited_for_for_ever() -> None:
    time = Time()
    catch_up = Backlog(time, wanted=True)
    begun = time.now
    while not (found := catch_up.pass_on([reading(1)], NOW)):
        time.now += 0.1
    assert MOST_SECONDS <= time.now - begun <= MOST_SECONDS + 0.2
    assert len(found) + catch_up.waiting >= 300


def test_it_is_handed_on_in_pieces_and_what_comes_meanwhile_is_behind_it() -> None:
    time = Time()
    catch_up = Backlog(time, wanted=True)
    catch_up.pass_on([reading(stamp_ns) for stamp_ns in range(7, 0, -1)], NOW)
    time.now += CATCH_UP_SECONDS
    found = [catch_up.pass_on([], NOW, 3)]
    sorted_at, time.now = time.now, time.now + 1.0
    late = pose(2)
    found.append(catch_up.pass_on([late], NOW, 3))
    assert catch_up.going_on
    found += [catch_up.pass_on([], NOW, 3) for _ in range(2)]
    stamps = [[message.what.stamp_ns for message in piece] for piece in found]
    assert stamps == [[1, 2, 3], [4], [5, 6, 7], [2]]
    assert {m.received for piece in found[:3] for m in piece} == {sorted_at}, "no one waits shorter"
    assert found[3] == [late]
    assert (catch_up.going_on, catch_up.waiting) == (False, 0)


def test_when_no_more_can_be_kept_it_is_used_without_waiting_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gp_active_sensing.mission.ingestion.backlog.MOST_HELD", 10)
    catch_up = Backlog(Time(), wanted=True)
    most, used = 0, []
    for stamp_ns in range(30):
        used += catch_up.pass_on([reading(stamp_ns)], 100)
        most = max(most, catch_up.waiting)
    used += catch_up.release()
    assert most == 10 - 1
    assert [message.what.stamp_ns for message in used] == list(range(30)), "nothing is lost"
    assert [record.message[:19] for record in caplog.records] == ["10 messages came be"]


def event(stamp_ns: int, value: float, **more: Any) -> ReadingUsed:
    return ReadingUsed(reading=Reading(stamp_ns, 1, value), **more)


def test_a_reading_is_known_once_by_stamp_and_value() -> None:
    known = DuplicateFilter()
    known.note(event(5, 1.5))
    assert not known.holds(5, 1.6)
    assert not known.holds(6, 1.5)
    assert known.holds(5, 1.5)
    assert not known.holds(5, 1.5)
    assert len(known) == 0


def test_what_came_during_a_window_is_known() -> None:
    """Averaged, or rejected then: whatever its value, it does not come to count now."""
    known = DuplicateFilter()
    known.note(event(20, 7.0, first_ns=10, count=3))
    assert not known.holds(9, 1.0)
    times = (10, 15, 15, 20, 21)
    assert [known.holds(t, float(t)) for t in times] == [True, True, True, True, False]


def test_a_gated_reading_is_known_and_not_twice_when_it_was_taken_back() -> None:
    known = DuplicateFilter()
    known.note(ReadingGated(reading=Reading(5, 1, 99.0), off=8.0))
    known.note(event(5, 99.0, taken_back="agreed"))
    assert [known.holds(5, 99.0), known.holds(5, 99.0)] == [True, False]


def test_the_newest_are_remembered_whatever_their_stamps() -> None:
    known = DuplicateFilter(most=2)
    for stamp_ns in (900, 1, 5):
        known.note(event(stamp_ns, 1.0))
    assert [known.holds(t, 1.0) for t in (900, 1, 5)] == [False, True, True]
    for stamp_ns in (900, 10, 50):
        known.note(event(stamp_ns, 1.0, first_ns=stamp_ns - 3, count=3))
    assert [known.holds(t, 1.0) for t in (899, 9, 49)] == [False, True, True]
    assert len(known) == 2
