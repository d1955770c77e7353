"""Road networks: moves, costs, features, snapping, components."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.topology import Roads, Topology, load_roads
from gp_active_sensing.types import Cost, Route
from tests.unit.topology.road_maps import segment, street, write


@pytest.fixture
def roads(tmp_path: Path) -> Roads:
    return Roads(load_roads(write(tmp_path / "street.geojson", street())))


def names(roads: Roads, places: np.ndarray) -> set[str]:
    return {roads.names[i] for i in places}


def test_a_place_is_a_segment(roads: Roads) -> None:
    assert isinstance(roads, Topology)
    assert roads.names == ("ab", "-ab", "bc", "-bc", "bd", "dc")
    assert (roads.name, roads.frame, roads.free) == ("small", "map", False)
    dc = roads.names.index("dc")
    assert roads.positions[dc].tolist() == [175.0, 50.0]  # middle by length, of 100 + 50 m
    assert roads.goals[dc].tolist() == [200.0, 0.0, -math.pi / 2]
    assert roads.geometry(dc).tolist() == [[100, 50], [200, 50], [200, 0]]
    assert roads.geometry(1).tolist() == [[100, 0], [0, 0]]
    assert roads.goals[1].tolist() == [0.0, 0.0, math.pi]
    for array in (roads.positions, roads.features, roads.goals, roads.geometry(0)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_u_turns_only_at_dead_ends(roads: Roads) -> None:
    at = roads.names.index
    assert names(roads, roads.neighbours(at("ab"))) == {"bc", "bd"}
    assert names(roads, roads.neighbours(at("-ab"))) == {"ab"}  # dead end at a
    assert names(roads, roads.neighbours(at("dc"))) == {"-bc"}
    assert names(roads, roads.neighbours(at("bc"))) == {"-bc"}  # dead end at c
    assert names(roads, roads.neighbours(at("-bc"))) == {"-ab", "bd"}


def test_u_turns_always_and_never(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    road_map = load_roads(write(tmp_path / "street.geojson", street()))
    always = Roads(road_map, u_turns="always")
    assert names(always, always.neighbours(0)) == {"-ab", "bc", "bd"}
    with caplog.at_level(logging.WARNING):
        never = Roads(road_map, u_turns="never")
    assert never.neighbours(1).size == 0
    assert never.components.traps == (1, 2)
    assert "2 segments lead nowhere" in caplog.text


def test_a_way_round_a_block_is_no_u_turn(tmp_path: Path) -> None:
    features = [
        segment("up", "a", "b", [(0, 0), (0, 100)]),
        segment("round", "b", "a", [(0, 100), (100, 100), (100, 0), (0, 0)]),
        segment("on", "b", "c", [(0, 100), (0, 200)], oneway=False),
    ]
    roads = Roads(load_roads(write(tmp_path / "block.geojson", features)))
    assert names(roads, roads.neighbours(0)) == {"round", "on"}


def test_parallel_edges_and_loops(tmp_path: Path) -> None:
    features = [
        segment("left", "a", "b", [(0, 0), (50, 10), (100, 0)]),
        segment("right", "a", "b", [(0, 0), (50, -10), (100, 0)]),
        segment("loop", "b", "b", [(100, 0), (150, 50), (150, -50), (100, 0)]),
        segment("back", "b", "a", [(100, 0), (50, 80), (0, 0)]),
    ]
    roads = Roads(load_roads(write(tmp_path / "parallel.geojson", features)))
    assert names(roads, roads.neighbours(3)) == {"left", "right"}
    assert "loop" in names(roads, roads.neighbours(2))
    seen = np.array([True, True, False, True])
    assert roads.route(2, 2, seen).path == (2,)
    assert roads.reachable(2, seen, 1).tolist() == [False, False, True, False]


def test_a_move_costs_driving_the_next_segment(roads: Roads) -> None:
    at = roads.names.index
    nothing = np.zeros(roads.n, dtype=np.bool_)
    assert roads.route(at("ab"), at("bc"), nothing) == Route((at("bc"),), Cost(100.0, 5.0))
    assert roads.route(None, at("dc"), nothing) == Route((at("dc"),), Cost(150.0, 30.0))
    assert roads.candidates(None, nothing).tolist() == list(range(6))


def test_the_quicker_way_is_taken(roads: Roads) -> None:
    at = roads.names.index
    seen = np.ones(roads.n, dtype=np.bool_)
    seen[at("-ab")] = False
    route = roads.route(at("ab"), at("-ab"), seen)
    # over bc: 100 m at 20 m/s and back; over bd and dc it would be 10 + 30 s
    assert route.path == (at("bc"), at("-bc"), at("-ab"))
    assert route.cost.metres == pytest.approx(300.0)
    assert route.cost.seconds == pytest.approx(5.0 + 5.0 + 10.0)
    assert roads.candidates(at("ab"), seen).tolist() == [at("-ab")]


def test_all_features(tmp_path: Path) -> None:
    road_map = load_roads(write(tmp_path / "street.geojson", street()))
    roads = Roads(road_map, features=("speed_limit", "direction", "x", "y", "length", "lanes"))
    names = "speed_limit direction_cos direction_sin x y length lanes"
    assert list(roads.feature_names) == names.split()
    assert roads.features[1] == pytest.approx([10.0, -1.0, 0.0, 50.0, 0.0, 100.0, 2.0])
    assert roads.features[4] == pytest.approx([5.0, 0.0, 1.0, 100.0, 25.0, 50.0, 1.0])


def test_missing_limits_take_the_speed_and_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    features = [segment("ab", "a", "b", [(0, 0), (100, 0)], oneway=False)]
    road_map = load_roads(write(tmp_path / "one.geojson", features))
    with caplog.at_level(logging.WARNING):
        roads = Roads(road_map, speed=4.0)
    assert roads.route(0, 1, np.zeros(2, dtype=np.bool_)).cost == Cost(100.0, 25.0)
    assert "2 of 2 segments have no speed limit; taking 4 m/s" in caplog.text


def test_snap(roads: Roads) -> None:
    at = roads.names.index
    assert roads.snap(50, 3, 5.0) == at("ab")  # the twin is as near; the first is taken
    assert roads.snap(50, 30, 5.0) is None
    assert roads.snap(104, 30, 5.0) == at("bd")
    assert roads.snap(-1e6, 0, math.inf) == at("ab")
    assert roads.snap(50, 0, 0.0) == at("ab")
    assert roads.snap(math.nan, 0, 5.0) is None
    assert roads.snap(50, 0, -1.0) is None


def test_snap_takes_the_smaller_index_whatever_the_rounding(tmp_path: Path) -> None:
    features = [segment("ab", "a", "b", [(0.1, 0.7), (77.7, 33.3)], oneway=False)]
    roads = Roads(load_roads(write(tmp_path / "one.geojson", features)))
    rng = np.random.default_rng([1])
    for x, y in rng.uniform(0, 70, (200, 2)):
        assert roads.snap(x, y, math.inf) == 0
