from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission.poses import Pose
from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig, chain, grid


def test_a_pose_that_lies_in_a_queue_is_waited_for() -> None:
    """What came together is used two seconds later, since the processor was busy."""
    rig = Rig(grid())
    rig.pose(0.5, 0.0)
    rig.reading(1.0)
    rig.seconds = 2.0
    rig.step(1.0)
    rig.seconds = 2.09
    rig.step(1.0)
    rig.reading(1.5)  # says nothing about the poses: it came by another queue
    rig.step(1.0)
    assert (rig.accepted, rig.ingestion.waiting) == (0, 2)
    rig.mission.inbox.put(Pose(SECOND, "map", 20.0, 0.0, 0.0), 0.01)
    rig.step(1.0)
    assert rig.observed == [rig.topology.names[2]]


def test_a_reading_that_no_pose_can_match_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(grid())
    rig.reading(1.0)
    rig.pose(5.0, 0.0)
    rig.step(5.0)
    assert rig.accepted == 0
    assert rig.ingestion.rejected == {"no_pose": 1}
    assert "no pose within pose.max_age of its time; compare the stamps" in caplog.text
    assert "come late" in caplog.text, "stamps are not the only reason"


@for_each(
    ("value", "variance", "reason"),
    [
        (math.nan, None, "not_finite"),
        (-math.inf, None, "not_finite"),
        (1.0, -1.0, "bad_variance"),
        (1.0, math.nan, "bad_variance"),
    ],
)
def test_bad_numbers_are_counted_with_or_without_a_pose(
    value: float, variance: float | None, reason: str
) -> None:
    rig = Rig(grid())
    rig.reading(0.5, value, variance)
    rig.read(1.0, 0.0, value=value, variance=variance)
    assert rig.accepted == 0
    assert rig.ingestion.rejected == {reason: 2}
    rig.reading(1.0, 2.0)
    rig.step(1.1)
    assert rig.accepted == 1


@for_each(
    ("x", "frame", "reason"),
    [
        (0.0, "odom", "wrong_frame"),
        (math.nan, "map", "pose_not_finite"),
        (-1e300, "map", "pose_not_finite"),
        (1e6, "map", "pose_off_map"),
    ],
)
def test_bad_poses_are_counted_and_place_no_reading(x: float, frame: str, reason: str) -> None:
    rig = Rig(grid())
    rig.pose(1.0, x, frame=frame)
    rig.step(1.0)
    assert rig.ingestion.rejected == {reason: 1}
    assert rig.ingestion.here is None


def test_a_road_is_observed_when_half_of_it_was_driven_with_a_reading() -> None:
    rig = Rig(chain())
    for t, x in ((0, 0.0), (1, 20.0), (2, 40.0)):
        rig.pose(t, x)
    rig.reading(2.0, 30.0)
    rig.step(2.0)
    assert rig.observed == []
    assert rig.ingestion.visits.waiting == 1
    rig.pose(3.0, 60.0)
    rig.step(3.0)
    assert rig.observed == ["a1"]


def test_one_message_that_cannot_be_used_does_not_take_the_others_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(grid())
    match = rig.ingestion.matcher.match

    def picky(x: float, *args: Any) -> Any:
        if x == 20.0:
            msg = "no such thing"
            raise RuntimeError(msg)
        return match(x, *args)

    monkeypatch.setattr(rig.ingestion.matcher, "match", picky)
    rig.pose(1.0, 0.0)
    rig.reading(1.0)
    rig.pose(2.0, 20.0)
    rig.read(3.0, 10.0)
    assert rig.observed == ["c0r0", "c1r0"]
    assert rig.ingestion.rejected == {"error": 1}


def test_a_wrong_stamp_from_the_future_does_not_end_all_poses() -> None:
    rig = Rig(grid())
    rig.pose(1.0, 0.0)
    rig.pose(1e6, 10.0)
    for t in (2.0, 3.0, 4.0):
        rig.pose(t, 20.0)
    rig.reading(4.0, 7.0)
    rig.step(4.0)
    assert rig.ingestion.rejected == {"pose_too_old": 2}
    assert rig.observed == ["c2r0"]
    assert rig.ingestion.track.newest.stamp_ns == 4 * SECOND
    metres = rig.ingestion.metres
    rig.pose(5.0, 30.0)
    rig.step(5.0)
    assert rig.ingestion.metres == metres + 10.0


def test_every_reading_is_in_one_place_and_only_one() -> None:
    """Used, counted by reason, or waiting: the sum is what was sent."""
    rng = np.random.default_rng(5)
    rig = Rig(grid(4), inbox=10_000, taking={"window": 0.5, "gate": 3.0, "gate_places": 2})
    sent = 1500
    for i in range(sent):
        t = 0.02 * i
        rig.pose(t, float(rng.uniform(-20.0, 60.0)))
        value = float(rng.choice([0.0, 0.1, 50.0, math.nan, 1e200]))
        rig.reading(t + float(rng.normal(0.0, 0.3)), value, float(rng.choice([0.01, -1.0])))
        rig.seconds = t
        if i % 7 == 0:
            rig.step(t)
    rig.step(0.02 * sent)
    ingestion = rig.ingestion
    poses = ("pose_off_map", "pose_too_old")
    refused = sum(n for word, n in ingestion.rejected.items() if word not in poses)
    waits = ingestion.waiting + ingestion.visits.waiting + len(ingestion.pipeline.window)
    assert ingestion.pipeline.used > 100
    assert ingestion.rejected["gated"] > 0
    assert any(event.get("taken_back") for event in rig.events)
    assert ingestion.pipeline.used + refused + waits == sent


DAY = 86_400.0


def driven(stranger: float | None, **taking: Any) -> Rig:
    """Return a mission of 4 readings; poses of a stranger are stamped so far ahead [s]."""
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


def test_two_sources_that_take_turns_are_counted_as_jumps(caplog: pytest.LogCaptureFixture) -> None:
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
