from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.experts.base import AnswersConfig
from gp_active_sensing.experts.query_log import QueryLog
from gp_active_sensing.topology import FreeTopology, make_grid
from gp_active_sensing.types import Reading
from tests.cases import for_each

GRID = make_grid(5, 4, 10.0)


def books(snap: float = 4.0, **config: object) -> QueryLog:
    return QueryLog(GRID, AnswersConfig(**config), snap)  # type: ignore[arg-type]


def answer(
    place: int | None = 3, seconds: float = 0.0, value: float = 1.0, **more: object
) -> Reading:
    plain = Reading(round(1e9 * seconds), place, value, 0.1, "expert")
    return replace(plain, **more)  # type: ignore[arg-type]


def use(one: QueryLog, reading: Reading, now: float = 0.0) -> bool:
    return one.note(one.check(reading, now))


def test_a_clock_that_goes_back_neither_ends_the_wait_nor_makes_it_long() -> None:
    one = books(timeout=5.0)
    one.begin([3], 1000.0)
    assert one.waits(10.0)
    assert one.waits(14.0)
    assert not one.waits(15.0)


@for_each(
    ("reading", "reason"),
    [
        (answer(5), "not_asked"),
        (answer(3, value=math.nan), "not_finite"),
        (answer(3, noise_variance=0.0), "bad_variance"),
        (answer(99), "unknown_location"),
        (answer(None), "bad_position"),
        (answer(None, position=(1e9, 0.0)), "off_map"),
        (answer(None, position=(10.0, 0.0)), "not_asked"),
        (answer(3, -3601.0), "too_old"),
        (answer(3, 10.5), "stamp_ahead"),
    ],
)
def test_what_cannot_be_used_is_rejected_with_its_reason(reading: Reading, reason: str) -> None:
    one = books()
    one.begin([3, 4], 0.0)
    with pytest.raises(ReadingError) as caught:
        one.check(reading, 0.0)
    assert caught.value.reason == reason
    assert one.missing == (3, 4)


def test_the_same_answer_sent_twice_counts_once() -> None:
    one = books()
    one.begin([3], 0.0)
    use(one, answer(3, 0.5), 1.0)
    with pytest.raises(ReadingError, match="come before") as caught:
        one.check(answer(3, 0.5), 1.0)
    assert caught.value.reason == "answered_already"
    one.check(answer(3, 0.5, value=2.0), 1.0)  # another value of the same time


def test_of_two_places_at_one_position_the_one_that_waits() -> None:
    road = FreeTopology("road", "map", ["there", "back", "on"], [[0, 0], [0, 0], [9, 0]])
    one = QueryLog(road, AnswersConfig(), 1.0)
    one.begin([1, 0], 0.0)
    at_both = answer(None, position=(0.1, 0.0))
    first = one.check(at_both, 0.0)
    assert first.location == 1  # in the order of the question
    one.note(first)
    assert one.check(replace(at_both, value=2.0), 0.0).location == 0
    one.begin([1], 1.0)
    assert one.check(answer(None, 1.0, position=(0.0, 0.0)), 1.0).location == 1


def test_a_float32_position_of_a_map_far_from_its_origin() -> None:
    far = make_grid(3, 3, 10.0, origin=(499_999.7, 5_432_101.3))
    one = QueryLog(far, AnswersConfig(), 10.0)
    one.begin(range(9), 0.0)
    for place in range(9):
        x, y = np.float32(far.positions[place])
        assert one.check(answer(None, position=(float(x), float(y))), 0.0).location == place
