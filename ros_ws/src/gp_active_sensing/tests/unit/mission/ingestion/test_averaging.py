"""Averages of the readings of a place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gp_active_sensing.mission.ingestion.visits import AveragingWindow, PendingReading
from gp_active_sensing.types import Reading
from tests.cases import for_each
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


def test_the_average_is_as_late_as_its_latest_and_was_taken_back_if_any_was() -> None:
    window = AveragingWindow(1.0)
    window.add(replace(held(1.5, 1.0), taken_back="agreed"))
    window.add(replace(held(1.0, 2.0), received=0.5))
    [average] = window.close()
    assert (average.reading.stamp_ns, average.received) == (round(1.5 * SECOND), 1.5)
    assert average.taken_back == "agreed"
    window.add(held(1.0, 2.0))
    window.add(replace(held(1.5, 1.0), taken_back="agreed"))
    [average] = window.close()
    assert (average.reading.stamp_ns, average.received) == (round(1.5 * SECOND), 1.5)
    assert average.taken_back == "agreed"


def test_a_late_reading_stands_alone_and_ends_nothing() -> None:
    window = AveragingWindow(1.0)
    window.add(held(5.0, 1.0))
    late = held(1.0, 9.0)
    assert window.add(late) == [late]
    assert len(window) == 1


@for_each(
    ("now", "here", "ends"), [(1.9, 1, False), (1.9, None, False), (2.0, 1, True), (1.1, 2, True)]
)
def test_time_and_the_place_of_the_probe_end_a_window(
    now: float, here: int | None, ends: bool
) -> None:
    window = AveragingWindow(1.0)
    window.add(held(1.0, 1.0))
    assert bool(window.pass_time(round(now * SECOND), here)) is ends


@for_each(
    ("variances", "expected"),
    [
        ((0.1, 0.3), 0.2),
        ((0.1, 0.3, 0.8), 0.4),
        ((None, None), None),
        ((0.1, None), None),
        ((None, 0.1, 0.1), None),
    ],
)
def test_the_noise_is_that_of_one_reading(
    variances: tuple[float | None, ...], expected: float | None
) -> None:
    window = AveragingWindow(1.0)
    for variance in variances:
        window.add(held(1.0, 1.0, variance=variance))
    [average] = window.close()
    assert average.reading.noise_variance == (None if expected is None else pytest.approx(expected))
