from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.mission.ingestion import visits as visits_module
from gp_active_sensing.mission.ingestion.visits import (
    AveragingWindow,
    PendingReading,
    SegmentCoverage,
)
from gp_active_sensing.types import Reading
from tests.unit.mission.worlds import SECOND


def held(t: float, value: float, place: int = 1, variance: float | None = None) -> PendingReading:
    return PendingReading(Reading(round(t * SECOND), place, value, variance), received=t)


def test_the_average_has_the_stamp_of_the_last_and_says_when_it_began() -> None:
    window = AveragingWindow(1.0)
    values = np.random.default_rng(1).normal(20.0, 3.0, 40)
    for i, value in enumerate(values):
        assert window.add(held(1.0 + 0.02 * i, float(value))) == []
    assert len(window) == 40
    [average] = window.close()
    assert average.reading.value == pytest.approx(values.mean(), rel=1e-12)
    assert (average.count, average.first_ns) == (40, SECOND)
    assert average.reading.stamp_ns == round(1.78 * SECOND)
    assert average.received == pytest.approx(1.78)
    assert (len(window), window.close()) == (0, [])


S = 1_000_000_000


def reading(t: float) -> PendingReading:
    return held(t, 5.0)


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
    assert v.add(1, reading(1.0)) == []
    assert len(drive(v, 1, (2.0, 0.5))) == 1


def test_leaving_to_the_segment_after_counts_to_its_end() -> None:
    v = visits()
    drive(v, 1, (0.0, 0.1), (1.0, 0.4))
    v.add(1, reading(1.0))
    assert len(drive(v, 2, (2.0, 0.1))) == 1


def test_a_moment_on_the_wrong_segment_loses_nothing_of_the_right_one() -> None:
    v = visits()
    drive(v, 1, (0.0, 0.0), (1.0, 0.3))
    drive(v, 7, (2.0, 0.5))
    v.add(7, reading(2.0))
    drive(v, 1, (3.0, 0.6))
    assert len(v.add(1, reading(3.0))) == 1
    drive(v, 2, (20.0, 0.5))
    assert [held.reading.stamp_ns for held in v.left] == [2 * S]


def test_of_too_many_readings_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits_module, "MOST_PENDING", 3)
    v = visits()
    drive(v, 1, (0.0, 0.0))
    for i in range(5):
        v.add(1, reading(0.1 * i))
    assert [held.reading.stamp_ns for held in v.left] == [0, S // 10]
    assert v.waiting == 3
