"""Maps of places on occupancy grids: what is free, what is joined, what stays when they grow."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gp_active_sensing.commands.map_survey import survey_places
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.topology.base import GraphTopology
from gp_active_sensing.topology.geometry import OccupancyGrid
from gp_active_sensing.topology.grids import make_occupancy_map, neighbouring
from gp_active_sensing.topology.live import LivePlaces


def grid_of(picture: str, resolution: float = 1.0, **at: object) -> OccupancyGrid:
    """Return the grid of a picture: "." free, "#" occupied, "?" unknown; north is at the top."""
    lines = picture.split()
    values = {".": 0, "#": 100, "?": -1}
    rows = [[values[c] for c in line] for line in reversed(lines)]
    return OccupancyGrid(np.array(rows, dtype=np.int8), resolution, **at)  # type: ignore[arg-type]


def joined(places: object) -> set[tuple[str, str]]:
    assert isinstance(places, GraphTopology)
    return {
        (places.names[i], places.names[move.to])
        for i, out in enumerate(places.moves)
        for move in out
    }


HOUSE = """
    #########
    #...#...#
    #...#...#
    #.......#
    #...#...#
    #########
"""


def test_places_lie_on_free_cells_and_are_joined_where_the_line_is_free() -> None:
    places = make_occupancy_map(grid_of(HOUSE), 1.0, anchor=(0.5, 0.5))
    assert places.n == 3 * 4 + 3 * 4 + 1
    assert "c4r2" in places.names
    assert ("c3r2", "c4r2") in joined(places)
    assert ("c3r3", "c5r3") not in joined(places)
    at = places.names.index("c4r2")
    np.testing.assert_allclose(places.positions[at], (4.5, 2.5))
    assert places.neighbours(at).tolist() == sorted(
        places.names.index(name) for name in ("c3r2", "c5r2")
    )
    assert places.frame == "map"


def test_diagonals_cut_no_corner() -> None:
    corner = grid_of("""
        ..
        .#
    """)
    places = make_occupancy_map(corner, 1.0, anchor=(0.5, 0.5), neighbours=8)
    assert ("c0r0", "c1r1") not in joined(places)  # it would touch the corner of the wall
    assert places.n == 3
    kitty = grid_of("""
        .#
        #.
    """)
    assert make_occupancy_map(kitty, 1.0, anchor=(0.5, 0.5), neighbours=8).n == 1


def test_inflation_blocks_what_is_nearer_than_the_radius() -> None:
    values = np.zeros((21, 21), dtype=np.int8)
    values[10, 10] = 100
    grid = OccupancyGrid(values, 0.1)
    blocked = grid.blocked(inflation=0.3)
    row, column = np.indices(blocked.shape)
    apart = 0.1 * np.hypot(row - 10, column - 10) - 0.05
    np.testing.assert_array_equal(blocked, apart < 0.3 - 1e-6)
    assert not grid.blocked(inflation=0.0)[10, 9]


def test_unknown_cells_are_blocked_or_free_and_not_inflated() -> None:
    grid = grid_of("....??")
    assert make_occupancy_map(grid, 1.0, anchor=(0.5, 0.5)).n == 4
    assert make_occupancy_map(grid, 1.0, anchor=(0.5, 0.5), inflation=0.9).n == 4
    assert make_occupancy_map(grid, 1.0, anchor=(0.5, 0.5), unknown="free").n == 6
    assert grid.counts() == {"free": 4, "occupied": 0, "unknown": 2}


def test_the_threshold_says_what_is_occupied_and_the_largest_part_is_kept() -> None:
    grid = OccupancyGrid(np.array([[0, 40, 64, 65, 100]], dtype=np.int8), 1.0)
    assert make_occupancy_map(grid, 1.0, anchor=(0.5, 0.5)).n == 3
    largest = make_occupancy_map(grid_of("...#.."), 1.0, anchor=(0.5, 0.5))
    assert largest.names == ("c0r0", "c1r0", "c2r0")


def test_the_lattice_is_fixed_in_the_frame() -> None:
    """Names and positions do not depend on which piece of the ground the grid covers."""
    whole = OccupancyGrid(np.zeros((30, 40), dtype=np.int8), 0.5, origin=(-7.3, -4.1))
    piece = OccupancyGrid(np.zeros((10, 12), dtype=np.int8), 0.5, origin=(-2.3, 1.4))
    places = make_occupancy_map(whole, 2.0)
    part = make_occupancy_map(piece, 2.0)
    assert 0 < part.n < places.n
    assert any(name.startswith("c-") for name in places.names)
    at = {name: places.positions[i].tolist() for i, name in enumerate(places.names)}
    for name, position in zip(part.names, part.positions.tolist(), strict=True):
        assert at[name] == position
        c, r = (int(number) for number in name[1:].split("r"))
        assert position == [2.0 * c, 2.0 * r]


def test_a_place_that_is_blocked_later_stays_without_moves() -> None:
    first = make_occupancy_map(grid_of("..."), 1.0, anchor=(0.5, 0.5))
    later = make_occupancy_map(grid_of(".#...."), 1.0, anchor=(0.5, 0.5), keep=first.names)
    assert later.names[:3] == first.names
    assert later.neighbours(1).tolist() == []
    # Of the two parts, with one earlier place each, the first counts.
    assert later.n == 3
    all_gone = make_occupancy_map(grid_of("###"), 1.0, anchor=(0.5, 0.5), keep=first.names)
    assert all_gone.names == first.names


def test_lines_are_as_free_as_a_fine_walk_along_them_says() -> None:
    for yaw in (0.0, 0.4, -2.0):
        rng = np.random.default_rng(5)
        values = np.where(rng.random((40, 50)) < 0.06, 100, 0).astype(np.int8)
        grid = OccupancyGrid(values, 0.25, origin=(-3.0, 1.0), yaw=yaw)
        places = make_occupancy_map(grid, (0.9173, 0.7137), neighbours=8, anchor=(0.0317, 0.0123))
        assert isinstance(places, GraphTopology)
        cell = {name: i for i, name in enumerate(places.names)}
        joined_pairs = joined(places)
        compared = 0
        for name, i in cell.items():
            c, r = (int(number) for number in name[1:].split("r"))
            for dc, dr in ((1, 0), (0, 1), (1, 1), (1, -1)):
                other = f"c{c + dc}r{r + dr}"
                if other not in cell:
                    continue
                share = np.linspace(0.0, 1.0, 4001)[:, None]
                a, b = places.positions[i], places.positions[cell[other]]
                at = grid.cells_of(a + share * (b - a))
                column, row = np.floor(at).astype(int).T
                free = bool((values[row, column] == 0).all())
                assert ((name, other) in joined_pairs) == free
                compared += 1
        assert compared > 300


CASES: list[tuple[npt.NDArray[np.generic], dict[str, float], str]] = [
    (np.zeros(4, dtype=np.int8), {}, "expected rows and columns of cells, got shape"),
    (np.full((2, 2), 101), {}, "whole numbers from -1 to 100, got 101"),
    (np.zeros((2, 2), dtype=np.int8), {"resolution": 0.0}, "resolution must be above 0.*got 0"),
    (np.zeros((2, 2), dtype=np.int8), {"yaw": math.inf}, "finite origin"),
]


def test_no_occupancy_grid() -> None:
    for values, more, message in CASES:
        with pytest.raises(MapError, match=message):
            OccupancyGrid(values, **{"resolution": 1.0, **more})


def test_no_cell_is_free() -> None:
    with pytest.raises(MapError, match=r"4 unknown; drive a little.*set unknown: free"):
        make_occupancy_map(grid_of("????"), 1.0)
    with pytest.raises(MapError, match="inflation 5 m blocks all that is free"):
        make_occupancy_map(grid_of("#..."), 1.0, inflation=5.0)


def test_what_is_refused() -> None:
    large = OccupancyGrid(np.zeros((100, 100), dtype=np.int8), 1.0)
    for grid, spacing, more in (
        (grid_of("...", origin=(2.0, 2.0)), (10.0, 20.0), {}),  # no place on free ground
        (large, 0.01, {}),  # too many cells
        (grid_of("..."), 0.0, {}),
        (grid_of("..."), 1.0, {"keep": ["c0r0", "dock"]}),
        (grid_of("..."), 1.0, {"keep": ["c0r0", "c0r0"]}),
    ):
        with pytest.raises((ConfigError, MapError)):
            make_occupancy_map(grid, spacing, **more)  # type: ignore[arg-type]


def room(rows: int, columns: int, resolution: float) -> OccupancyGrid:
    values = np.zeros((rows, columns), dtype=np.int8)
    values[[0, -1], :] = values[:, [0, -1]] = 100
    return OccupancyGrid(values, resolution)


def test_a_spacing_that_nobody_states_gives_about_400_places() -> None:
    for rows, columns, resolution, inflation in (
        (200, 260, 0.05, 0.25),
        (100, 120, 0.6, 0.0),
        (60, 60, 0.6, 1.0),
        (900, 700, 0.05, 0.4),
    ):
        config = MapConfig("grid", topic="map", inflation=inflation)
        found = LivePlaces.of(config, room(rows, columns, resolution), "map")
        assert 250 <= found.topology.n <= 600, found.config.spacing


def test_walls_count_when_a_spacing_is_chosen() -> None:
    values = np.zeros((200, 200), dtype=np.int8)
    values[:, ::5] = 100  # corridors of 0.2 m, which a lattice of 0.5 m mostly misses
    found = LivePlaces.of(MapConfig("grid", topic="map"), OccupancyGrid(values, 0.05), "map")
    assert found.topology.n > 1


def test_neighbours_are_found_however_far_apart_places_lie() -> None:
    """A table of the cells between them would have 10^12 entries."""
    for far in (0, 10, 80_000, 1_000_000):
        block = [(c, r) for r in range(3) for c in range(4)]
        cells = np.array([*block, *((c + far + 4, -r - far) for c, r in block)], dtype=np.int64)
        standing = np.ones(len(cells), dtype=np.bool_)
        standing[5] = False
        for neighbours, reach in ((4, 1.0), (8, 1.5)):
            found = neighbouring(cells, neighbours, standing=standing)
            apart = np.hypot(*(cells[:, None] - cells[None]).T.astype(float))
            near = (apart > 0.0) & (apart <= reach) & standing & standing[:, None]
            expected = {(int(i), int(j)) for i, j in np.argwhere(np.triu(near))}
            pairs = {(min(pair), max(pair)) for pair in found.tolist()}
            assert pairs == expected
            assert len(found) == len(pairs)


def test_another_map_is_refused_and_the_first_one_stays() -> None:
    values = np.zeros((40, 40), dtype=np.int8)
    config = MapConfig("grid", topic="map", spacing=2.0)
    places = LivePlaces.of(config, OccupancyGrid(values, 0.5), "map")
    for shift in ((15e3, 0.0), (-40e3, 40e3), (0.0, 1e6)):
        with pytest.raises(MapError):
            places.on(OccupancyGrid(values, 0.5, shift))
    grown = places.on(OccupancyGrid(values, 0.5, (10.0, 0.0)))
    assert grown is not None
    assert grown.topology.names[: places.topology.n] == places.topology.names
    with pytest.raises(MapError, match="more than 25000000"):
        OccupancyGrid(np.zeros((1, 1), dtype=np.int8).repeat(5001, 0).repeat(5001, 1), 0.1)


def test_ground_that_falls_away_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two rooms and a door that the lattice misses: what is lost, where, and what would keep it."""
    for more, lost in (
        ({"spacing": 0.8, "inflation": 0.25}, True),
        ({"spacing": 0.6, "inflation": 0.25}, False),
        ({"spacing": 1.2}, True),
        ({}, False),
    ):
        caplog.clear()
        config = from_mapping(MapConfig, {"file": "house", **more})
        built = build_topology(config)
        assert bool(len(built.lost)) == lost
        said = [note for note in built.notes if "m² around" in note]
        assert bool(said) == bool(caplog.messages) == lost
        if lost:
            keeps = float(re.findall(r"map\.spacing: ([0-9.]+) keeps them", said[0])[0])
            again = build_topology(dataclasses.replace(config, spacing=keeps))
            assert len(again.lost) < 0.1 * len(built.lost)
            assert survey_places(built, "grid").figures["lost"] == len(built.lost)
    shut = np.full((60, 60), 0, dtype=np.int8)
    shut[:, 30] = shut[20:40, 50] = 100  # a wall, so that the right-hand side is another part
    shut[:, 31:34] = 100
    image = b"P5\n60 60\n255\n" + np.where(shut == 100, 0, 254).astype(np.uint8).tobytes()
    (tmp_path / "a.pgm").write_bytes(image)
    (tmp_path / "a.yaml").write_text("image: a.pgm\nresolution: 0.1\norigin: [0, 0, 0]\n")
    notes = build_topology(MapConfig(file=str(tmp_path / "a.yaml"), spacing=0.5)).notes
    assert any("no smaller spacing keeps them" in note for note in notes)
