"""Maps with heights: layers of a grid, 3-D legs, climbing, finding a place by its height."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, ReadingError
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.routes.distances import Distances
from gp_active_sensing.topology import MapConfig, build_topology, place_index
from gp_active_sensing.topology.generated import FreeTopology, make_grid
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.lookup import place_of
from gp_active_sensing.topology.turning import check_radius
from gp_active_sensing.types import Budget, Cost, Reading

DEPTHS = (0.0, -2.0, -5.0, -10.0)


def column(moves: str = "adjacent", **speeds: float) -> FreeTopology | GraphTopology:
    return make_grid(
        3, 2, 4.0, heights=DEPTHS, moves=moves, speed=Speeds(**({"along": 1.0} | speeds))
    )


def test_a_grid_with_layers() -> None:
    grid = column()
    assert grid.n == 3 * 2 * 4
    assert grid.names[0] == "c0r0z0"
    assert grid.names[-1] == "c2r1z3"
    assert grid.positions.shape == (24, 2)
    assert grid.heights is not None
    assert sorted(set(grid.heights.tolist())) == sorted(DEPTHS)
    assert grid.points.shape == (24, 3)
    assert grid.feature_names == ("x", "y", "z")
    np.testing.assert_array_equal(grid.features, grid.points)


def test_moves_lead_to_the_next_layer_and_in_their_own() -> None:
    grid = column()
    inner = place_index(grid, "c1r0z1", "place")
    names = {grid.names[place] for place in grid.neighbours(inner).tolist()}
    assert names == {"c0r0z1", "c2r0z1", "c1r1z1", "c1r0z0", "c1r0z2"}
    nothing = np.zeros(grid.n, dtype=np.bool_)
    up = grid.route(inner, place_index(grid, "c1r0z0", "place"), nothing)
    assert up.cost == Cost(2.0, 2.0)


def test_climbing_and_sinking_take_their_own_time() -> None:
    speeds = Speeds(along=2.0, climb=0.5, descent=1.0)
    level, up, down = np.array([6.0, 8.0, 0.0]), np.array([3.0, 0.0, 4.0]), np.array([0, 0, -4.0])
    zero = np.zeros(3)
    assert speeds.leg(zero, level) == (10.0, 5.0)
    assert speeds.leg(zero, up) == (5.0, 8.0)  # 4 m of climb at 0.5 m/s
    assert speeds.leg(zero, down) == (4.0, 4.0)
    assert Speeds(2.0).leg(zero, up) == (5.0, 2.5)
    assert speeds.least == 0.5


def test_legs_ways_and_distances_agree() -> None:
    for moves in ("adjacent", "free"):
        grid = column(moves, climb=0.25, descent=0.5)
        top, bottom = (place_index(grid, name, "place") for name in ("c0r0z0", "c2r1z3"))
        nothing = np.ones(grid.n, dtype=np.bool_)
        for a, b in ((top, bottom), (bottom, top)):
            cost = grid.route(a, b, nothing).cost
            ways = grid.ways_from(a)
            assert (ways.metres[b], ways.seconds[b]) == pytest.approx(tuple(cost))
            assert grid.ways_to(b).costs[a] == pytest.approx(cost)
            for by in ("metres", "seconds"):
                distances = Distances(grid, by)
                least = distances.row(a)[b]
                assert distances.between([a, b])[0, 1] == pytest.approx(least)
                assert distances.way(a, b).cost[0 if by == "metres" else 1] == pytest.approx(least)
        there, back = grid.ways_from(top).seconds[bottom], grid.ways_from(bottom).seconds[top]
        assert back > there  # up is slower than down
        if moves == "free":
            straight = math.dist(grid.points[top], grid.points[bottom])
            assert grid.ways_from(top).metres[bottom] == pytest.approx(straight)


def test_a_budget_of_seconds_knows_the_slowest_climb() -> None:
    grid = column("free", climb=0.1)
    far = math.dist(grid.points.min(axis=0), grid.points.max(axis=0))
    assert not BudgetConstraint(grid, Budget(seconds=far * 2.0)).leaves_room(1)
    assert BudgetConstraint(grid, Budget(seconds=far * 10.0 + 1.0)).leaves_room(1)


def test_a_place_is_found_by_its_height() -> None:
    grid = column()
    assert grid.snap(0.3, 0.2, 1.0, -4.6) == place_index(grid, "c0r0z2", "place")
    assert grid.snap(0.3, 0.2, 1.0, -7.5) is None  # between two layers
    assert grid.snap(0.3, 0.2, 1.0, math.nan) is None
    reading = Reading(0, None, 1.0, position=(0.1, 0.0, -9.8))
    assert place_of(reading, grid, 1.0) == place_index(grid, "c0r0z3", "place")
    with pytest.raises(ReadingError, match="its position needs x, y and z") as caught:
        place_of(Reading(0, None, 1.0, position=(0.1, 0.0)), grid, 1.0)
    assert caught.value.reason == "bad_position"
    flat = make_grid(3, 2, 4.0)
    with pytest.raises(ReadingError, match=r"finite position \(x, y\)"):
        place_of(Reading(0, None, 1.0, position=(0.1, 0.0, -9.8)), flat, 1.0)


def test_what_is_no_grid_with_layers() -> None:
    for more, said in (
        ({"heights": [0.0, -2.0, -1.0]}, r"heights: expected heights that ascend or descend"),
        ({"heights": [0.0, 0.0]}, r"heights: expected heights that ascend or descend"),
        ({"climb_speed": 1.0}, r"climb_speed: is for a grid with heights"),
        ({"heights": list(range(500_000))}, r"heights: 3 × 2 cells in 500000 layers are more than"),
    ):
        plain = {"kind": "grid", "columns": 3, "rows": 2}
        with pytest.raises(ConfigError, match=said):
            build_topology(from_mapping(MapConfig, plain | more))


def test_curves_lie_in_the_plane() -> None:
    with pytest.raises(ConfigError, match=r"turn_radius: .* have heights; expected 0, got 2 m"):
        check_radius(column(), 2.0)
