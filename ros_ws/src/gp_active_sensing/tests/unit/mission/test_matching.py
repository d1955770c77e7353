from __future__ import annotations

import math

import pytest

from gp_active_sensing.mission.matching import MapMatcher
from tests.unit.mission.worlds import chain, grid, place


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
