from __future__ import annotations

import math

import pytest

from gp_active_sensing.mission.matching import MapMatcher
from gp_active_sensing.mission.poses import Pose, PoseTrack, heading_between
from tests.unit.mission.worlds import chain, place

S = 1_000_000_000


def pose(t: float, x: float = 0.0, heading: float = 0.0) -> Pose:
    return Pose(round(t * S), "map", x, 0.0, heading)


def track(*times: float, max_age: float = 1.0, history: float = 60.0) -> PoseTrack:
    made = PoseTrack(max_age, history)
    for t in times:
        made.add(pose(t, x=10.0 * t))
    return made


def test_between_two_poses_it_interpolates() -> None:
    found = track(1.0, 2.0).at(round(1.25 * S))
    assert found.x == pytest.approx(12.5)
    assert found.stamp_ns == round(1.25 * S)


def test_a_late_pose_is_put_in_order() -> None:
    made = track(1.0, 3.0, max_age=5.0)
    assert made.add(pose(2.0, x=-7.0)) == "late"
    found = made.at(2 * S)
    assert found.x == -7.0
    assert made.newest.x == 30.0


def test_three_old_stamps_in_a_row_begin_the_track_again() -> None:
    made = track(1000.0, history=10.0)
    assert [made.add(pose(t)) for t in (1.0, 1.1)] == [None, None]
    assert len(made) == 1
    assert made.add(pose(1.2)) == "restarted"
    assert (len(made), made.newest) == (1, pose(1.2))
    assert made.add(pose(1.3)) == "newest"


def test_old_stamps_that_do_not_follow_on_each_other_are_strays() -> None:
    made = track(1000.0, history=10.0)
    for t in (1.0, 1.1):
        assert made.add(pose(t)) is None
    assert made.add(pose(1001.0)) == "newest"  # the clock was right after all
    assert made.add(pose(1.2)) is None
    assert made.newest == pose(1001.0)


def test_direction_of_movement() -> None:
    assert heading_between(pose(0.0, x=0.0), pose(1.0, x=-3.0)) == pytest.approx(math.pi)
    assert math.isnan(heading_between(pose(0.0, x=0.0), pose(1.0, x=0.1)))
    assert math.isnan(heading_between(None, pose(1.0)))
    assert heading_between(pose(0.0), pose(1.0, x=0.5)) == 0.0, "half a metre is enough"


def test_heading_tells_the_two_directions_of_a_road_apart() -> None:
    roads = chain()
    matcher = MapMatcher(roads)
    there = matcher.match(130.0, 1.0, 0.1)
    back = matcher.match(130.0, 1.0, math.pi - 0.1)
    assert back is not None
    assert roads.names[there.place] == "a2"
    assert there.fraction == pytest.approx(0.3)
    assert roads.names[back.place] == "b2"
    assert back.fraction == pytest.approx(0.7)


def test_at_a_crossing_the_expected_road_is_taken() -> None:
    roads = chain()
    matcher = MapMatcher(roads)
    for name in ("a1", "a2"):
        found = matcher.match(100.0, 0.0, 0.0, {place(roads, name)})
        assert roads.names[found.place] == name
