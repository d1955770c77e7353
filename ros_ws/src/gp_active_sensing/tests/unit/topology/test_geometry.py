"""Shapes in the plane, and places with heights."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, ReadingError
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.routes.distances import Distances
from gp_active_sensing.planning.turning import check_radius
from gp_active_sensing.topology import (
    FreeTopology,
    GraphTopology,
    MapConfig,
    build_topology,
    make_grid,
    place_index,
)
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.topology.lookup import place_of
from gp_active_sensing.types import Budget, Cost, Reading

Corners = list[tuple[float, float]]

TRIANGLE: Corners = [(0.0, 0.0), (4.0, 0.0), (0.0, 4.0)]
U: Corners = [(0, 0), (4, 0), (4, 4), (3, 4), (3, 1), (1, 1), (1, 4), (0, 4)]
"""A basin with two arms; between them is land."""


def cells(grid: object) -> set[tuple[int, int]]:
    assert isinstance(grid, GraphTopology | FreeTopology)
    return {(round(x), round(y)) for x, y in grid.positions}


def test_cells_outside_are_no_places_and_those_on_the_edge_are() -> None:
    grid = make_grid(5, 5, 1.0, outline=TRIANGLE)
    assert cells(grid) == {(c, r) for c in range(5) for r in range(5) if c + r <= 4}
    assert grid.names[:6] == ("c0r0", "c1r0", "c2r0", "c3r0", "c4r0", "c0r1")
    clockwise = make_grid(5, 5, 1.0, outline=TRIANGLE[::-1])
    closed = make_grid(5, 5, 1.0, outline=[*TRIANGLE, TRIANGLE[0]])
    assert clockwise.names == closed.names == grid.names


def test_rounding_does_not_decide_about_the_edge() -> None:
    """A slanting outline through cell centres, its corners computed with rounding errors."""
    for angle in (0.1, 0.5, 1.0, 2.0):
        spacing = 0.1 * angle + 1.0 / 3.0
        corners = [(0.0, 0.0), (30 * spacing, 0.0), (0.0, 30 * spacing)]
        grid = make_grid(31, 31, spacing, neighbours=8, outline=corners)
        assert grid.n == 31 * 32 // 2
        # Along the slanting edge itself a boat can go only where both cells beside it are places.
        assert len(grid.neighbours(grid.names.index("c15r15"))) == 3


def test_no_move_leaves_the_outline() -> None:
    basin = make_grid(5, 5, 1.0, neighbours=8, outline=U)
    assert cells(basin) == {
        (c, r) for c in range(5) for r in range(5) if c in (0, 1, 3, 4) or r < 2
    }
    wide = [(x * 2.0, y) for x, y in U]  # the land is four wide, and the arms two
    basin = make_grid(5, 5, 2.0, neighbours=8, outline=[(x, y * 2.0) for x, y in wide])
    index = basin.names.index
    across = (index("c1r3"), index("c3r3"))
    assert across[1] not in basin.neighbours(across[0])
    thin: Corners = [(0, 0), (4, 0), (4, 4), (2.6, 4), (2.5, 0.5), (2.4, 4), (0, 4)]
    cut = make_grid(5, 5, 1.0, neighbours=8, outline=thin)
    assert cut.n == 25, "the cut of land holds no cell centre"
    index = cut.names.index
    for row in range(1, 5):
        assert index(f"c3r{row}") not in cut.neighbours(index(f"c2r{row}"))
    assert index("c3r0") in cut.neighbours(index("c2r0"))


def test_outlines_that_are_none() -> None:
    for outline, obstacles, message in (
        ([(0.0, 0.0)], [], r"^outline: expected 2 corners.*, got 1"),
        ([(0, 0), (1, 1), (2, 2)], [], r"^outline: is not a simple polygon"),
        ([(0, 0), (3, 3), (3, 0), (0, 3)], [], r"not a simple polygon: its edges cross or touch"),
        ([(9, 9), (12, 12)], [], r"^outline: holds none of the 3 × 3 cell centres \(x 0 … 2, y 0"),
        ([(0, 0), (1, 1)], [[(-1, -1), (1.5, 1.5)]], r"^obstacles: cover all cells of the outline"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_grid(3, 3, 1.0, outline=outline, obstacles=obstacles)


def test_holes_are_outside_and_their_edges_inside() -> None:
    ring = shapely.Polygon(
        [(0, 0), (6, 0), (6, 6), (0, 6)], holes=[[(2, 2), (4, 2), (4, 4), (2, 4)]]
    )
    grid = make_grid(7, 7, 1.0, outline=ring)
    assert cells(grid) == {(c, r) for c in range(7) for r in range(7)} - {(3, 3)}
    west = grid.names.index("c2r3")
    assert {grid.names[k] for k in grid.neighbours(west)} == {"c1r3", "c2r2", "c2r4"}


def test_shapes_that_are_no_outlines() -> None:
    for shape, message in (
        (shapely.Polygon([(0, 0), (4, 4), (4, 0), (0, 4)]), r"touch each other at \(2, 2\)"),
        (shapely.LineString([(0, 0), (4, 4)]), "expected a Polygon or a MultiPolygon, got LINE"),
        (shapely.MultiPolygon([shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3)]), "not a simple"),
    ):
        with pytest.raises(ConfigError, match=f"^outline: .*{message}"):
            make_grid(5, 5, 1.0, outline=shape)
        with pytest.raises(ConfigError, match=rf"^obstacles\[0\]: .*{message}"):
            make_grid(5, 5, 1.0, obstacles=[shape])


DEPTHS = (0.0, -2.0, -5.0, -10.0)


def column(moves: str = "adjacent", **speeds: float) -> FreeTopology | GraphTopology:
    return make_grid(
        3, 2, 4.0, heights=DEPTHS, moves=moves, speed=Speeds(**({"along": 1.0} | speeds))
    )


def test_moves_lead_to_the_next_layer_and_in_their_own() -> None:
    grid = column()
    inner = place_index(grid, "c1r0z1", "place")
    names = {grid.names[place] for place in grid.neighbours(inner).tolist()}
    assert names == {"c0r0z1", "c2r0z1", "c1r1z1", "c1r0z0", "c1r0z2"}
    nothing = np.zeros(grid.n, dtype=np.bool_)
    up = grid.route(inner, place_index(grid, "c1r0z0", "place"), nothing)
    assert up.cost == Cost(2.0, 2.0)


def test_climbing_takes_its_own_time() -> None:
    speeds = Speeds(along=2.0, climb=0.5)
    level, up, down = np.array([6.0, 8.0, 0.0]), np.array([3.0, 0.0, 4.0]), np.array([0, 0, -4.0])
    zero = np.zeros(3)
    assert speeds.leg(zero, level) == (10.0, 5.0)
    assert speeds.leg(zero, up) == (5.0, 8.0)  # 4 m of climb at 0.5 m/s
    assert speeds.leg(zero, down) == (4.0, 8.0)
    assert Speeds(2.0).leg(zero, up) == (5.0, 2.5)
    assert speeds.least == 0.5


def test_legs_ways_and_distances_agree() -> None:
    for moves in ("adjacent", "free"):
        grid = column(moves, climb=0.25)
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
