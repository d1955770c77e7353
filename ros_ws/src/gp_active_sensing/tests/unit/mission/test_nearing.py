"""The first readings of a point wait until the probe is near it, comes no nearer, or has left."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.mission.nearing import Nearing
from gp_active_sensing.mission.visits import Held
from gp_active_sensing.types import Reading
from tests.unit.mission.worlds import SECOND, Rig, grid


def held(t: float) -> Held:
    return Held(Reading(round(t * SECOND), 0, 1.0), received=t)


def test_a_reading_at_the_point_does_not_wait() -> None:
    one = held(1.0)
    assert Nearing(10.0).hold(0, 0.9, one) == [one]


def test_on_the_way_to_the_point_they_wait_until_it_is_reached() -> None:
    nearing = Nearing(10.0)
    waiting = []
    for i, distance in enumerate((4.0, 3.0, 2.0)):
        waiting.append(held(0.5 * i))
        assert nearing.hold(0, distance, waiting[-1]) == []
    assert len(nearing) == 3
    assert nearing.drive(0, 0.5, 2 * SECOND, 2.0) == waiting
    assert len(nearing) == 0
    assert [one.received for one in waiting] == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("place", "distance", "t"), [(1, 5.0, 0.2), (None, 0.0, 0.2), (0, 4.5, 0.2), (0, 4.0, 1.0)]
)
def test_they_count_when_it_leaves_turns_away_or_stands(
    place: int | None, distance: float, t: float
) -> None:
    nearing = Nearing(10.0)
    assert nearing.hold(0, 4.0, held(0.0)) == []
    assert nearing.drive(0, 4.0, round(0.1 * SECOND), 0.1) == []
    assert len(nearing.drive(place, distance, round(t * SECOND), t)) == 1


def test_a_reading_that_comes_after_the_probe_has_gone_on_does_not_wait() -> None:
    nearing = Nearing(10.0)
    nearing.drive(1, 2.0, 2 * SECOND, 2.0)
    assert len(nearing.hold(0, 4.0, held(1.5))) == 1


def test_a_slow_approach_is_waited_for() -> None:
    """At a tenth of a metre a second it still comes nearer."""
    nearing = Nearing(1.0)
    for i in range(39):
        assert nearing.hold(0, 0.5 - 0.01 * i, held(0.1 * i)) == []
    assert len(nearing.hold(0, 0.1, held(4.0))) == 40


def test_the_stage_does_not_end_at_the_border_of_a_cell() -> None:
    rig = Rig(grid(4), taking={"window": None})
    for i in range(60):
        t, x = 1.0 + 0.1 * i, 5.1 + 0.1 * i  # in cell 1, whose point is at 10 m
        rig.pose(t, x)
        rig.reading(t)
        rig.step(t)
        if x < 8.9:
            assert not rig.loop.belief.observed[1]
    np.testing.assert_array_equal(rig.loop.belief.observed, [False, True, False, False])


def test_what_waits_at_the_end_of_the_mission_is_used() -> None:
    rig = Rig(grid(4), taking={"window": None})
    rig.pose(1.0, 14.0)
    rig.reading(1.0)
    rig.step(1.0)
    assert not rig.loop.belief.observed.any()
    rig.mission.stop("asked")
    assert rig.loop.belief.observed[1]


def test_what_waits_when_the_clock_goes_back_is_counted() -> None:
    rig = Rig(grid(4), taking={"window": None})
    rig.pose(5.0, 14.0)
    rig.reading(5.0)
    rig.step(5.0)
    rig.step(1.0)
    assert rig.intake.rejected["clock_backwards"] == 1
