"""Readings from before a restart."""

from __future__ import annotations

from typing import Any

from gp_active_sensing.mission.ingestion.duplicates import DuplicateFilter
from gp_active_sensing.records.events import ReadingGated, ReadingUsed
from gp_active_sensing.types import Reading


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


def test_a_window_with_readings_that_were_taken_back_is_known() -> None:
    known = DuplicateFilter()
    known.note(ReadingGated(reading=Reading(15, 1, 99.0), off=8.0))
    known.note(event(20, 40.0, first_ns=10, count=3, taken_back="agreed"))
    assert all(known.holds(t, 7.0) for t in (10, 15, 20))


def test_a_gated_reading_is_known_and_not_twice_when_it_was_taken_back() -> None:
    known = DuplicateFilter()
    known.note(ReadingGated(reading=Reading(5, 1, 99.0), off=8.0))
    known.note(event(5, 99.0, taken_back="agreed"))
    assert [known.holds(5, 99.0), known.holds(5, 99.0)] == [True, False]


def test_windows_are_known_in_any_order_and_one_in_another() -> None:
    known = DuplicateFilter()
    for first, last in ((50, 60), (10, 40), (20, 25)):
        known.note(event(last, 7.0, first_ns=first, count=3))
    times = (9, 10, 22, 30, 41, 50, 61)
    assert [known.holds(t, 1.0) for t in times] == [False, True, True, True, False, True, False]
    known.note(event(45, 7.0, first_ns=41, count=3))
    assert known.holds(41, 1.0), "one that was noted after a question"


def test_the_newest_are_remembered_whatever_their_stamps() -> None:
    known = DuplicateFilter(most=2)
    for stamp_ns in (900, 1, 5):
        known.note(event(stamp_ns, 1.0))
    assert [known.holds(t, 1.0) for t in (900, 1, 5)] == [False, True, True]
    for stamp_ns in (900, 10, 50):
        known.note(event(stamp_ns, 1.0, first_ns=stamp_ns - 3, count=3))
    assert [known.holds(t, 1.0) for t in (899, 9, 49)] == [False, True, True]
    assert len(known) == 2
