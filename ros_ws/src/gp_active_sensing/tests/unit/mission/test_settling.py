"""A reading counts once the probe has been at its place for long enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gp_active_sensing.mission import changes
from gp_active_sensing.mission.ingestion.visits import SettlingTimer
from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig, grid


def test_who_leaves_and_comes_back_waits_again() -> None:
    dwelling = SettlingTimer(2.0, radius=1.0)
    for t, apart in ((0, 0.0), (3, 0.0), (4, 5.0), (5, 0.0)):
        dwelling.drive(1, apart, t * SECOND)
    # One that comes late belongs to the first time.
    for t, settled in ((2.5, True), (3.5, False), (6.0, False), (7.0, True)):
        assert dwelling.has_settled(1, round(t * SECOND)) is settled
    dwelling.drive(None, 0.0, 8 * SECOND)
    assert not dwelling.has_settled(1, 9 * SECOND)


def test_readings_before_it_has_settled_are_counted_and_not_used() -> None:
    rig = Rig(grid(3), arrival_radius=2.0, settle=3.0)
    for i in range(60):
        t, x = 0.1 * i, min(0.0, -5.0 + i)  # at the point from 0.5 s on; within 2 m from 0.3 s on
        rig.read(1.0 + t, x, value=7.0)
        assert rig.loop.belief.observed[0] == (t >= 3.3 - 1e-9)
    assert rig.ingestion.rejected["settling"] == 33
    assert rig.loop.counts["accepted"] == 60 - 33


@for_each("settle", [0.0, 4.0])
def test_the_wait_for_a_reading_begins_after_it(settle: float) -> None:
    rig = Rig(
        grid(3), taking={"delay": 2.5}, arrival_radius=2.0, settle=settle, reading_timeout=10.0
    )
    assert rig.probe.arrival.timeout == 10.0 + settle + 2.5
    rig.probe.set_delay(1.5)
    assert rig.probe.arrival.timeout == 10.0 + settle + 1.5
    changes.set_config(rig.mission, replace(rig.config, reading_timeout=5.0))
    assert rig.probe.arrival.timeout == 5.0 + settle + 1.5


@for_each("window", [None, 0.0])
def test_readings_that_are_late_and_have_to_settle_are_waited_for(window: float | None) -> None:
    """Each place gives one: 3 s to settle and 4 s until the sensor says it, 2 s to wait."""
    rig = Rig(
        grid(3),
        taking={"window": window, "delay": 4.0},
        budget=3,
        arrival_radius=2.0,
        reading_timeout=2.0,
        settle=3.0,
    )
    rig.mission.start()
    been: list[tuple[float, float]] = []
    x = 0.0
    for i in range(600):
        t = 1.0 + 0.1 * i
        goal = 10.0 * rig.sent[-1] if rig.sent else 0.0
        x += max(-0.4, min(0.4, goal - x))
        been.append((t, x))
        rig.seconds = t
        rig.pose(t, x)
        if i >= 40:
            rig.reading(t, been[i - 40][1])
        rig.step(t)
    assert rig.mission.state == "ended", rig.mission.reason
    assert rig.sent == sorted(set(rig.sent)), "no place is waited for twice"
    assert rig.loop.belief.observed.all()
    assert not rig.loop.set_aside
    assert not [event for event in rig.events if event["event"] == "miss"]
    for event in rig.events:
        if event["event"] == "reading":
            stood = [s for s, at in been if abs(at - 10.0 * event["location"]) <= 2.0 + 1e-9]
            assert event["stamp_ns"] / SECOND - stood[0] >= 3.0 - 1e-6
            assert event["value"] == pytest.approx(10.0 * event["location"], abs=2.0)
