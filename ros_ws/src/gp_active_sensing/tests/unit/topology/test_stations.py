"""Places from CSV tables, with and without a table of the ways between them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import gp_active_sensing as gas
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.types import Cost

STATIONS = """\
Station,x,y,depth,chlorophyll,keeper
north,0,100,2.5,1.5,Ada
south,0,0,10,,Ben
east,80,0,4,3.5,Cem
"""


def write(folder: Path, text: str, name: str = "stations.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def stations(folder: Path, text: str = STATIONS, **more: object) -> Topology:
    write(folder, text)
    config = {"kind": "points", "file": "stations.csv", **more}
    return build_topology(from_mapping(MapConfig, config), base_dir=folder)


def refused(folder: Path, text: str = STATIONS, **more: object) -> str:
    with pytest.raises((MapError, ConfigError)) as caught:
        stations(folder, text, **more)
    return str(caught.value)


def test_names_positions_heights_and_numbers(tmp_path: Path) -> None:
    places = stations(tmp_path)
    assert places.name == "stations"
    assert places.names == ("north", "south", "east")
    assert places.free
    np.testing.assert_array_equal(places.positions, [[0, 100], [0, 0], [80, 0]])
    assert places.heights is not None
    np.testing.assert_array_equal(places.heights, [-2.5, -10, -4])
    assert places.feature_names == ("x", "y", "z")
    assert places.attributes.names == ("chlorophyll",)  # the keeper is no number
    metres = places.ways_from(0).metres
    assert metres[1] == pytest.approx(math.hypot(100.0, 7.5))


def test_longitudes_are_projected_and_the_datum_kept(tmp_path: Path) -> None:
    text = "name,Longitude,Latitude\na,10.0,54.0\nb,10.02,54.0\nc,10.0,54.01\n"
    places = stations(tmp_path, text)
    assert places.datum == pytest.approx((10.01, 54.005))
    assert places.feature_names == ("x", "y")
    across = math.dist(places.positions[0], places.positions[1])
    assert across == pytest.approx(0.02 * 111_320.0 * math.cos(math.radians(54.0)), rel=5e-3)


def test_numbers_as_features_and_weights(tmp_path: Path) -> None:
    text = STATIONS.replace("10,,Ben", "10,2.0,Ben")
    places = stations(
        tmp_path, text, features=["x", "y", "chlorophyll"], weights={"column": "chlorophyll"}
    )
    assert places.feature_names == ("x", "y", "chlorophyll")
    np.testing.assert_array_equal(places.features[:, 2], [1.5, 2.0, 3.5])
    np.testing.assert_array_equal(places.weights, [1.5, 2.0, 3.5])
    assert places.attributes.names == ()


def test_a_gap_counts_only_where_the_number_is_used(tmp_path: Path) -> None:
    assert stations(tmp_path).n == 3
    for used in ({"features": ["x", "chlorophyll"]}, {"weights": {"column": "chlorophyll"}}):
        said = refused(tmp_path, **used)
        assert "'chlorophyll' was asked for, but place 'south' has none (1 of 3 places" in said
    assert "expected some of x, y, z, chlorophyll, got 'salt'" in refused(
        tmp_path, features=["salt"]
    )


def test_tables_that_are_refused(tmp_path: Path) -> None:
    for text, said in (
        ("name,x,y\na,0,0\nb,1,1\na,2,2\n", "lines 2 and 4: both places are called 'a'"),
        ("name,x,y\na,0,\n", "line 2, column 'y': expected a finite number, it is missing"),
        ("name,x,y\n,0,1\n", "line 2, column 'name': the name is missing"),
        ("x,y,lon,lat\n0,0,1,1\n5,5,2,2\n", "x and y and longitude and latitude, and they are"),
        ("x,y,depth,z\n0,0,1,-1\n", "'depth' and 'z' both say how high"),
        ("name,x,y\n", "expected a row for each place below the header, found none"),
        ("lon,lat\n54,100\n", "latitude and longitude may have changed places"),
    ):
        assert said in refused(tmp_path, text)


GAUGES = """\
ID;E;N;Sohle;lon;lat;x
A1;500010;5983000;2.5;9.0;54.0;7
A2;500040;5983040;10;9.1;54.1;8
"""
OWN = {"name": "ID", "x": "E", "y": "n", "depth": "Sohle"}


def test_columns_may_have_names_of_their_own(tmp_path: Path) -> None:
    """What is named counts; the columns with the usual names beside them do not."""
    places = stations(tmp_path, GAUGES, columns_of=OWN)
    assert places.names == ("A1", "A2")
    np.testing.assert_array_equal(places.points, [[500010, 5983000, -2.5], [500040, 5983040, -10]])
    assert places.datum is None
    assert places.attributes.names == ("lon", "lat")  # a second x would be no coordinate
    by_python = gas.load_stations(tmp_path / "stations.csv", columns_of={**OWN, "y": "N"})
    np.testing.assert_array_equal(by_python.points, places.points)
    upwards = {"x": "E", "y": "N", "height": "Sohle"}
    np.testing.assert_array_equal(
        stations(tmp_path, GAUGES, columns_of=upwards).points[:, 2], [2.5, 10]
    )


def test_columns_that_are_refused(tmp_path: Path) -> None:
    for own, said in (
        ({"x": "E", "y": "Nord", "name": "Nr"}, "line 1: no column 'Nord', which columns_of.y"),
        ({"x": "E", "y": "e"}, "columns_of.x, y: all name the column 'E'"),
        ({"x": "E", "y": "N", "z": "Sohle"}, "columns_of.z: unknown key. Known: depth, height"),
        ({"height": "E", "depth": "N"}, "columns_of.height, depth: both say how high a place is"),
        ({"name": "ID", "x": "E"}, "expected columns x and y [m], or longitude and latitude"),
    ):
        assert said in refused(tmp_path, GAUGES, columns_of=own)


def test_keys_that_have_no_meaning(tmp_path: Path) -> None:
    assert "count: has no meaning for kind 'points' with a file" in refused(tmp_path, count=3)


def joined(folder: Path, table: str, **more: object) -> GraphTopology:
    write(folder, table, "ways.csv")
    places = stations(folder, distances="ways.csv", **more)
    assert isinstance(places, GraphTopology)
    return places


def costs(places: GraphTopology) -> dict[tuple[str, str], Cost]:
    names = places.names
    return {
        (names[a], names[m.to]): Cost(m.metres, m.seconds)
        for a, out in enumerate(places.moves)
        for m in out
    }


def test_a_list_of_ways_holds_for_both_directions(tmp_path: Path) -> None:
    table = "from,to,metres,seconds\nnorth,south,120,\nsouth,east,90,60\neast,south,95,50\n"
    places = joined(tmp_path, table, speed=2.0)
    assert costs(places) == {
        ("north", "south"): Cost(120.0, 60.0),
        ("south", "north"): Cost(120.0, 60.0),
        ("south", "east"): Cost(90.0, 60.0),
        ("east", "south"): Cost(95.0, 50.0),
    }
    assert places.links is not None
    assert not places.free


def test_a_matrix(tmp_path: Path) -> None:
    full = ",north,south,east\nnorth,0,120,150\nsouth,130,0,\neast,150,95,0\n"
    found = costs(joined(tmp_path, full))
    assert found["north", "south"].metres == 120.0
    assert found["south", "north"].metres == 130.0
    assert ("south", "east") not in found
    half = "name,north,south,east\nnorth,,120,150\nsouth,,,90\neast,,,\n"
    found = costs(joined(tmp_path, half))
    assert found["east", "south"] == found["south", "east"] == Cost(90.0, 90.0)


def test_no_way_costs_more_than_one_over_other_places(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    table = "from,to,metres\nnorth,south,120\nsouth,east,90\nnorth,east,400\n"
    assert costs(joined(tmp_path, table))["north", "east"].metres == 210.0
    assert "2 of 6 ways are longer than by way of other places" in caplog.text


def test_kilometres_are_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    joined(tmp_path, "from,to,metres\nnorth,south,0.12\nsouth,east,0.09\n")
    assert "shorter than the straight line, such as from 'north' to 'south'" in caplog.text


def test_distances_that_are_refused(tmp_path: Path) -> None:
    for table, said in (
        ("from,to,metres\nnorth,west,1\n", "line 2: no place 'west' on the map"),
        ("from,to,metres\nnorth,south,-3\n", "line 2, metres: expected a number above 0, got '-3'"),
        ("from,to,metres\nnorth,south,9\nnorth,south,8\n", "lines 2 and 3: both are from 'north'"),
        ("from,to,metres,oneway\nnorth,south,9,perhaps\n", "oneway: expected 0 or 1"),
        ("from,to,km\nnorth,south,9\n", "expected a column metres beside from and to"),
        ("from,to,metres\nnorth,south,120\n", "into which it divides the 3 places (2, 1 places);"),
    ):
        write(tmp_path, table, "ways.csv")
        assert said in refused(tmp_path, distances="ways.csv")
