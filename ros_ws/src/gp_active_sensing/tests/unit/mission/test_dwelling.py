"""A reading counts once the probe has been at its place for long enough."""

from __future__ import annotations

import pytest

from gp_active_sensing.mission.dwelling import Dwelling
from tests.unit.mission.worlds import SECOND, Rig, chain, grid, place


def test_without_a_time_everything_counts() -> None:
    assert Dwelling().has_settled(3, 5)


def test_it_counts_from_when_the_probe_was_within_the_radius() -> None:
    dwelling = Dwelling(2.0, radius=1.0)
    dwelling.drive(1, 3.0, 0)
    dwelling.drive(1, 0.5, 1 * SECOND)
    for t, settled in ((0.5, False), (1.0, False), (2.9, False), (3.0, True), (9.0, True)):
        assert dwelling.has_settled(1, round(t * SECOND)) is settled
    assert not dwelling.has_settled(2, 9 * SECOND)


def test_who_leaves_and_comes_back_waits_again() -> None:
    dwelling = Dwelling(2.0, radius=1.0)
    for t, apart in ((0, 0.0), (3, 0.0), (4, 5.0), (5, 0.0)):
        dwelling.drive(1, apart, t * SECOND)
    # One that comes late belongs to the first time.
    for t, settled in ((2.5, True), (3.5, False), (6.0, False), (7.0, True)):
        assert dwelling.has_settled(1, round(t * SECOND)) is settled
    dwelling.drive(None, 0.0, 8 * SECOND)
    assert not dwelling.has_settled(1, 9 * SECOND)


def test_after_the_clock_went_back_nothing_is_known() -> None:
    dwelling = Dwelling(1.0)
    dwelling.drive(1, 0.0, 0)
    dwelling.clear()
    assert not dwelling.has_settled(1, 5 * SECOND)


def test_readings_before_it_has_settled_are_counted_and_not_used() -> None:
    rig = Rig(grid(3), arrival_radius=2.0, settle=3.0)
    for i in range(60):
        t, x = 0.1 * i, min(0.0, -5.0 + i)  # at the point from 0.5 s on; within 2 m from 0.3 s on
        rig.pose(1.0 + t, x)
        rig.reading(1.0 + t, 7.0)
        rig.step(1.0 + t)
        assert rig.loop.belief.observed[0] == (t >= 3.3 - 1e-9)
    assert rig.intake.rejected["settling"] == 33
    assert rig.loop.counts["accepted"] == 60 - 33


def test_on_a_road_it_counts_from_its_beginning() -> None:
    rig = Rig(chain(), settle=7.0)
    road = place(rig.topology, "a1")
    for i in range(95):
        rig.pose(1.0 + 0.1 * i, 1.0 * i)
        rig.reading(1.0 + 0.1 * i, 7.0)
        rig.step(1.0 + 0.1 * i)
    assert rig.intake.rejected["settling"] == 70
    assert rig.loop.belief.readings[road] == 25


@pytest.mark.parametrize("settle", [0.0, 4.0])
def test_the_wait_for_a_reading_begins_after_it(settle: float) -> None:
    rig = Rig(grid(3), arrival_radius=2.0, settle=settle, reading_timeout=10.0)
    assert rig.probe.arrival.timeout == 10.0 + settle
