"""Tracks of poses, and which place of a map a pose belongs to."""

from __future__ import annotations

import math

import pytest

from gp_active_sensing.mission.matching import MapMatcher
from gp_active_sensing.mission.poses import Pose, PoseTrack, heading_between
from gp_active_sensing.topology.generated import make_grid
from tests.cases import for_each
from tests.unit.mission.worlds import chain, grid, place

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


def test_heading_turns_the_short_way() -> None:
    made = PoseTrack(2.0, 60.0)
    made.add(pose(0.0, heading=math.pi - 0.1))
    made.add(pose(1.0, heading=-math.pi + 0.1))
    found = made.at(S // 2)
    assert math.cos(found.heading) == pytest.approx(-1.0)


def test_the_pose_after_a_reading_counts_as_well_as_the_one_before() -> None:
    """A receiver that sends once a second does so a little late at times."""
    made = track(1.0, 2.02, max_age=1.0)
    found = made.at(round(2.01 * S))
    assert found.x == pytest.approx(20.1)
    assert track(1.0, 9.0, max_age=1.0).at(5 * S) is None, "too far from both"


def test_a_late_pose_is_put_in_order() -> None:
    made = track(1.0, 3.0, max_age=5.0)
    assert made.add(pose(2.0, x=-7.0)) == "late"
    found = made.at(2 * S)
    assert found.x == -7.0
    assert made.newest.x == 30.0


def test_old_poses_are_forgotten() -> None:
    made = PoseTrack(1.0, 10.0)
    for i in range(5000):
        made.add(pose(0.1 * i))
    assert len(made) < 500
    assert made.at(round(499.9 * S)) is not None
    assert made.at(round(480.0 * S)) is None


def test_three_old_stamps_in_a_row_begin_the_track_again() -> None:
    made = track(1000.0, history=10.0)
    assert [made.add(pose(t)) for t in (1.0, 1.1)] == [None, None]
    assert len(made) == 1
    assert made.add(pose(1.2)) == "restarted"
    assert (len(made), made.newest) == (1, pose(1.2))
    assert made.add(pose(1.3)) == "newest"


def test_old_stamps_that_do_not_follow_on_each_other_are_strays() -> None:
    made = track(1000.0, history=10.0)
    assert [made.add(pose(t)) for t in (3.0, 2.0, 1.0, 0.5, 0.4)] == [None] * 5
    made = track(1000.0, history=10.0)
    for t in (1.0, 1.1):
        assert made.add(pose(t)) is None
    assert made.add(pose(1001.0)) == "newest"  # the clock was right after all
    assert made.add(pose(1.2)) is None
    assert made.newest == pose(1001.0)


@for_each("newest", [995.0, 1000.0, 1005.0])
def test_old_poses_do_not_begin_a_track_again_whose_newest_is_of_now(newest: float) -> None:
    made = track(newest, history=10.0)
    assert [made.add(pose(t), 1000 * S) for t in (1.0, 1.1, 1.2, 1.3)] == [None] * 4
    assert made.newest == pose(newest, x=10.0 * newest)
    assert made.add(pose(1006.0), 1006 * S) == "newest"


def test_a_pose_ahead_of_the_clock_is_given_up_and_one_of_a_clock_that_is_not_known_too() -> None:
    for now_ns in (2 * S, None):
        made = track(1000.0, history=10.0)
        assert [made.add(pose(t), now_ns) for t in (1.0, 1.1)] == [None, None]
        assert made.add(pose(1.2), now_ns) == "restarted"


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


def test_an_expected_road_does_not_win_from_far_away() -> None:
    roads = chain()
    found = MapMatcher(roads).match(120.0, 0.0, 0.0, {place(roads, "a1")})
    assert roads.names[found.place] == "a2"


def test_points_of_a_grid() -> None:
    topology = grid(3, 3, spacing=10.0)
    matcher = MapMatcher(topology)
    assert matcher.snap_distance == pytest.approx(10.0)
    assert not matcher.has_lines
    for i, (x, y) in enumerate(topology.positions):
        found = matcher.match(x + 3.0, y - 2.0, 1.0)
        assert (found.place, found.fraction) == (i, 1.0)
    assert matcher.match(-11.0, 0.0) is None


def test_a_metre_upwards_counts_as_many_steps_as_across() -> None:
    layers = make_grid(3, 2, 4.0, heights=(0.0, 2.0))  # 2 m upwards are a step, like 4 m across
    matcher = MapMatcher(layers)
    x, y, z = layers.points[0].tolist()
    assert matcher.stretch == pytest.approx(2.0)
    assert matcher.apart(0, x, y, z + 1.0) == pytest.approx(2.0)
    assert matcher.apart(0, x + 3.0, y, z + 2.0) == pytest.approx(5.0)
