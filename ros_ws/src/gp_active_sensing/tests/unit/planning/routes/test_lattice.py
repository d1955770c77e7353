"""Straight stretches and shortest ways of regular grids in closed form, against searches."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.planning.routes.lattice import MoveLattice
from gp_active_sensing.topology import GraphTopology, MapConfig, build_topology, make_grid
from tests.cases import for_each


def grid(seed: int) -> GraphTopology:
    """Return a grid with obstacles and free cells that only some moves join."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(1.0, 12.0, (3, 4))
    obstacles = [[(x, y), (x + w, y + h)] for x, y, w, h in corners.tolist()]
    step = (1.0, 2.0) if seed % 3 == 0 else 1.5
    return make_grid(17, 13, step, neighbours=4 if seed % 2 else 8, obstacles=obstacles, speed=0.7)


@for_each("seed", range(6))
def test_what_is_in_closed_form_is_the_shortest_way(seed: int) -> None:
    topology = grid(seed)
    lattice = MoveLattice.of(topology.points, topology.arrays)
    assert lattice is not None
    assert lattice.pace * 0.7 == 1.0
    everywhere = np.arange(topology.n)
    for at in range(0, topology.n, 9):
        metres = lattice.metres(np.full(topology.n, at), everywhere)
        known = np.isfinite(metres)
        ways = topology.ways_from(at, "metres")
        np.testing.assert_allclose(metres[known], ways.metres[known], atol=1e-9)
        assert metres[at] == 0.0
        assert known.sum() > 9
        for goal in range(0, topology.n, 5):
            line = lattice.straight(at, goal)
            if line is not None and goal != at:
                way = ways.route(goal)
                assert way is not None
                assert way.path == tuple(line.tolist())


def test_maps_that_are_none() -> None:
    town = build_topology(MapConfig(kind="roads", file="town.geojson"))
    layers = make_grid(4, 4, 1.0, heights=[0.0, 2.0])
    row = make_grid(5, 1, 1.0)
    for topology in (town, layers, row):
        assert isinstance(topology, GraphTopology)
        assert MoveLattice.of(topology.points, topology.arrays) is None


def test_moves_that_are_taken_away_are_gone_from_what_was_made_of_them() -> None:
    whole = make_grid(6, 5, 1.0)
    other = whole.without({(2, 3), (3, 2)})
    for topology, straight in ((whole, True), (other, False)):
        lattice = MoveLattice.of(topology.points, topology.arrays)
        assert lattice is not None
        assert (lattice.straight(0, 5) is not None) == straight
    assert whole.ways_to(5).route(0).cost.metres == 5.0
    assert other.ways_to(5).route(0).cost.metres == 7.0
    assert other.ways_from(0).metres[5] == 7.0
