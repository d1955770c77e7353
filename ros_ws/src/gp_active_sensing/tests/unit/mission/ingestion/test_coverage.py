from __future__ import annotations

import pytest

from gp_active_sensing.mission.ingestion import visits as visits_module
from gp_active_sensing.mission.ingestion.visits import SegmentCoverage
from gp_active_sensing.types import Reading

S = 1_000_000_000


def reading(t: float) -> Reading:
    return Reading(round(t * S), 1, 5.0)


def visits(coverage: float = 0.5) -> SegmentCoverage:
    return SegmentCoverage(coverage, lambda a, b: b == a + 1)


def drive(v: SegmentCoverage, place: int, *steps: tuple[float, float]) -> list[Reading]:
    out = []
    for t, fraction in steps:
        out += [held.reading for held in v.drive(place, fraction, round(t * S), t)]
    return out


def test_entering_from_the_segment_before_counts_from_its_start() -> None:
    v = visits()
    drive(v, 0, (0.0, 0.9))
    drive(v, 1, (1.0, 0.3))
    assert v.hold(1, reading(1.0), 1.0) == []
    assert len(drive(v, 1, (2.0, 0.5))) == 1


def test_leaving_to_the_segment_after_counts_to_its_end() -> None:
    v = visits()
    drive(v, 1, (0.0, 0.1), (1.0, 0.4))
    v.hold(1, reading(1.0), 1.0)
    assert len(drive(v, 2, (2.0, 0.1))) == 1


def test_a_moment_on_the_wrong_segment_loses_nothing_of_the_right_one() -> None:
    v = visits()
    drive(v, 1, (0.0, 0.0), (1.0, 0.3))
    drive(v, 7, (2.0, 0.5))
    v.hold(7, reading(2.0), 2.0)
    drive(v, 1, (3.0, 0.6))
    assert len(v.hold(1, reading(3.0), 3.0)) == 1
    drive(v, 2, (20.0, 0.5))
    assert [held.reading.stamp_ns for held in v.left] == [2 * S]


def test_a_reading_that_waited_came_with_the_pose_that_it_waited_for() -> None:
    v = visits()
    drive(v, 1, (0.0, 0.0))
    v.hold(1, reading(0.5), 0.5)
    [held] = v.drive(1, 0.6, 2 * S, 2.25)
    assert held.received == 2.25
    [held] = v.hold(1, reading(3.0), 3.0)
    assert held.received == 3.0


def test_two_short_visits_do_not_add_up() -> None:
    v = visits()
    drive(v, 1, (0.0, 0.0), (1.0, 0.3))
    v.hold(1, reading(1.0), 1.0)
    drive(v, 9, (2.0, 0.0))
    drive(v, 1, (100.0, 0.7), (101.0, 0.9))
    assert v.hold(1, reading(101.0), 101.0) == []
    assert len(v.left) == 1


def test_of_too_many_readings_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits_module, "MOST_HELD", 3)
    v = visits()
    drive(v, 1, (0.0, 0.0))
    for i in range(5):
        v.hold(1, reading(0.1 * i), 0.0)
    assert [held.reading.stamp_ns for held in v.left] == [0, S // 10]
    assert v.waiting == 3
