"""A stranger on the pose topic: stamps from the future, and poses where the probe is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import for_each
from tests.unit.mission.worlds import Rig, grid

DAY = 86_400.0


def driven(stranger: float | None, **taking: Any) -> Rig:
    """Return a mission of 4 readings that obeys its waypoints, and hears a stranger in between.

    Args:
        stranger: how far ahead the stranger's poses are stamped [s]; None = there is none.
        taking: see `Rig`.
    """
    rig = Rig(grid(6), budget=4, taking={"max_ahead": 10.0, **taking})
    rig.mission.start()
    rig.pose(1.0, 0.0)
    t = 1.0
    while rig.mission.state == "running" and t < 100.0:
        rig.step(t)
        if stranger is not None:
            rig.pose(t + stranger, 50.0)
        t += 1.0
        x, y = rig.topology.positions[rig.sent[-1]] if rig.sent else (0.0, 0.0)
        rig.pose(t, float(x), float(y))
        rig.reading(t, 5.0 + 0.1 * float(x))
    return rig


@for_each("ahead", [12.0, 61.0, DAY, 1e9])
def test_a_stranger_from_the_future_changes_no_waypoint(ahead: float) -> None:
    alone, beside = driven(None), driven(ahead)
    assert alone.mission.state == beside.mission.state == "ended"
    assert beside.sent == alone.sent
    assert beside.observed == alone.observed
    assert beside.ingestion.metres == alone.ingestion.metres
    assert set(beside.ingestion.rejected) == {"pose_ahead"}
    assert beside.ingestion.checks.jumps == 0


def test_a_pose_before_there_was_a_clock_does_not_stay_the_newest() -> None:
    rig = Rig(grid(6), taking={"max_ahead": 10.0})
    rig.pose(DAY, 50.0)
    rig.step(0.0)
    newest = rig.ingestion.track.newest
    assert newest.x == 50.0
    rig.read(1.0, 10.0, value=5.0)
    newest = rig.ingestion.track.newest
    assert newest.x == 10.0
    assert rig.observed == ["c1r0"]
    assert "pose_too_old" not in rig.ingestion.rejected


def test_two_sources_that_take_turns_are_counted_as_jumps(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(grid(60))
    for i in range(10):
        rig.pose(1.0 + 0.1 * i, 500.0 * (i % 2))
    rig.step(2.0)
    assert rig.ingestion.checks.jumps == 9
    assert "two publishers" in caplog.text
    assert rig.ingestion.poses == 10, "nobody can say which one is right"


@for_each(("way", "seconds"), [(9.0, 0.001), (140.0, 1.0), (3000.0, 30.0)])
def test_a_short_way_or_a_fast_vehicle_is_no_jump(way: float, seconds: float) -> None:
    rig = Rig(grid(400))
    rig.pose(1.0, 0.0)
    rig.pose(1.0 + seconds, way)
    rig.step(100.0)
    assert rig.ingestion.checks.jumps == 0
