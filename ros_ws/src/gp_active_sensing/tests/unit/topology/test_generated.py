"""Maps without a file: drawn points, lines and grids, with moves, costs and obstacles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.topology import GraphTopology, Topology, make_grid, make_line
from gp_active_sensing.topology.grids import make_points
from gp_active_sensing.types import Cost, Route

LOW, HIGH = (-5.0, 0.0, 2.0), (10.0, 15.0, 2.5)


def test_points_lie_in_the_box_and_are_keyed_by_the_seed() -> None:
    points = make_points(50, LOW, HIGH, seed=3)
    assert isinstance(points, Topology)
    assert points.feature_names == ("x1", "x2", "x3")
    assert points.free
    assert (points.features >= LOW).all()
    assert (points.features <= HIGH).all()
    np.testing.assert_array_equal(points.positions, points.features[:, :2])
    np.testing.assert_array_equal(points.features, make_points(50, LOW, HIGH, seed=3).features)
    other = make_points(50, LOW, HIGH, seed=4)
    assert not np.isin(points.features[:, 0], other.features[:, 0]).any()


def test_a_sobol_sequence_is_balanced() -> None:
    points = make_points(64, (0, 0), (8, 8)).features
    counts = np.histogram2d(*points.T, bins=8, range=[[0, 8], [0, 8]])[0]
    assert (counts == 1).all()


def observed(topology: Topology, *places: int) -> np.ndarray:
    mask = np.zeros(topology.n, dtype=np.bool_)
    mask[list(places)] = True
    return mask


def test_free_line_lets_any_place_be_next_at_the_straight_distance() -> None:
    line = make_line(5, 2.0, moves="free", speed=4.0, origin=(1.0, 3.0))
    assert isinstance(line, Topology)
    assert line.free
    assert line.positions.tolist() == [[1, 3], [3, 3], [5, 3], [7, 3], [9, 3]]
    assert line.features.shape == (5, 1)
    assert line.candidates(0, observed(line, 1), unavailable=[4]).tolist() == [0, 2, 3]
    assert line.route(0, 3, observed(line)) == Route((3,), Cost(6.0, 1.5))
    assert line.route(None, 3, observed(line)) == Route((3,), Cost(0.0, 0.0))
    assert line.neighbours(2).tolist() == [0, 1, 3, 4]
    assert line.reachable(0, observed(line, 1), 1, unavailable=[4]).tolist() == [1, 0, 1, 1, 0]
    assert not line.reachable(0, observed(line), 0).any()


def test_from_nowhere_every_place_is_a_candidate() -> None:
    line = make_line(4, 1.0)
    assert line.candidates(None, observed(line, 2), unavailable=(0,)).tolist() == [1, 3]
    assert line.reachable(None, observed(line, 2), 1, unavailable=(0,)).tolist() == [0, 1, 0, 1]
    assert not line.reachable(None, observed(line), 0).any()


def test_grid_names_and_moves() -> None:
    grid = make_grid(3, 2, 1.5, origin=(10.0, 20.0), speed=3.0)
    assert isinstance(grid, Topology)
    assert grid.names == ("c0r0", "c1r0", "c2r0", "c0r1", "c1r1", "c2r1")
    assert grid.positions[5].tolist() == [13.0, 21.5]
    assert grid.features is grid.positions
    assert grid.neighbours(0).tolist() == [1, 3]
    assert grid.route(0, 1, observed(grid)).cost == Cost(1.5, 0.5)
    assert grid.goals[5].tolist() == [13.0, 21.5, 0.0]
    assert grid.geometry(5).tolist() == [[13.0, 21.5]]


def test_obstacles_take_cells_and_their_corners_are_not_cut() -> None:
    grid = make_grid(3, 3, 1.0, neighbours=8, obstacles=[[(0.6, 0.6), (1.4, 1.4)]])
    assert grid.n == 8
    assert "c1r1" not in grid.names
    index = grid.names.index
    # from c0r1 the diagonals to c1r0 and c1r2 pass the obstacle's corner
    assert grid.neighbours(index("c0r1")).tolist() == [index("c0r0"), index("c0r2")]
    assert grid.neighbours(index("c0r0")).tolist() == [index("c1r0"), index("c0r1")]


def test_wrong_arguments_are_said() -> None:
    grid = make_grid(3, 3, 1.0)
    with pytest.raises(ValueError, match=r"observed must be \(9,\) bool, got \(4,\)"):
        grid.candidates(0, np.zeros(4, dtype=np.bool_))
    with pytest.raises(ValueError, match=r"observed must be \(9,\) bool, got \(9,\) int64"):
        grid.reachable(0, np.zeros(9, dtype=np.int64), 1)
    with pytest.raises(ValueError, match="places 0 … 8, the probe stands at -1"):
        grid.candidates(-1, observed(grid))


def test_places_that_do_not_fit() -> None:
    for change, message in (
        ({"names": ["a", "a"]}, "names of places must differ"),
        ({"positions": [[0, 0]]}, r"positions must be \(2, 2\), got \(1, 2\)"),
        ({"positions": [[0, 0], [math.nan, 0]]}, "positions of place 'b' are not finite"),
        ({"moves": [[]]}, "expected moves of 2 places, got 1"),
    ):
        arguments = {
            "names": ["a", "b"],
            "positions": [[0, 0], [1, 0]],
            "moves": [[], []],
            **change,
        }
        with pytest.raises(ValueError, match=message):
            GraphTopology("m", "map", **arguments)  # type: ignore[arg-type]
