"""Places from CSV tables, with and without a table of the ways between them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.belief.attributes import attributes_of
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.topology.base import FreeTopology, GraphTopology, Topology
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
    assert attributes_of(places).names == ("chlorophyll",)  # the keeper is no number
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
    assert attributes_of(places).names == ()


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
        ("x,y," + "c," * 2000 + "\n1,2\n", "columns"),
    ):
        assert said in refused(tmp_path, text)


def test_depths_lie_below_the_water_whichever_sign_they_have(tmp_path: Path) -> None:
    for title, depths, heights in (
        ("depth", "1.5 7 18", [-1.5, -7, -18]), ("Depth", "-1.5 -7 -18", [-1.5, -7, -18]),
        ("depth_ft", "10 20 30", [-3.048, -6.096, -9.144]), ("DEPTH (m)", "0 -2 -3", [0, -2, -3]),
        ("height", "-1 2 3", [-1, 2, 3]), ("z (cm)", "-100 0 50", [-1, 0, 0.5]),
    ):  # fmt: skip
        rows = [f"s{k},{40 * k},0,{d}" for k, d in enumerate(depths.split())]
        places = stations(tmp_path, "\n".join([f"name,x,y,{title}", *rows]))
        assert places.heights is not None
        np.testing.assert_allclose(places.heights, heights, atol=1e-9)
    assert "2 depths are above 0 and 1 below" in refused(
        tmp_path, STATIONS.replace("10,,", "-10,,")
    )


def test_a_row_at_nowhere_is_left_out_and_fill_values_are_none(tmp_path: Path) -> None:
    for title, rows in (
        ("lon,lat", ["9.4,61.2", "9.402,61.2004", "0,0"]),
        ("latitude,longitude", ["0.0,0.0", "-33.8,151.2", "-33.81,151.21"]),
        ("easting,northing", ["676480,5152173", "0,0", "676778,5152515"]),
    ):
        table = "\n".join([f"{title},salt", *(f"{row},-9999" for row in rows)])
        places = stations(tmp_path, table)
        assert places.n == 2
        assert np.ptp(places.positions, axis=0).max() < 5000.0
        assert attributes_of(places).names == ()
    assert "all places are at 0, 0" in refused(tmp_path, "lat,lon\n0,0\n0.0,0.0\n")
    near = stations(tmp_path, "x,y,a\n0,0,1e20\n50,50,3\n")
    assert near.n == 2
    assert isinstance(near, FreeTopology)
    np.testing.assert_array_equal(near.numbers["a"], [np.nan, 3.0])
    for wrong in ("-9999", "1e20", "9.96921e36"):
        assert "fill value" in refused(tmp_path, f"x,y,depth\n0,0,1\n9,9,{wrong}\n")


def test_utm_is_read_by_its_zone(tmp_path: Path) -> None:
    """Places on either side of the edge of a zone are as far apart as they are on the ground."""
    pyproj = pytest.importorskip("pyproj")
    points = [(5.99, 51.4), (6.02, 51.41), (6.05, 51.39)]
    south = [(lon, -lat) for lon, lat in points]
    for title, where, zones in (
        ("zone", points, ("31", "32", "32")), ("UTM_zone", points, ("31N", "32N", "32N")),
        ("utm zone", points, ("31U", "32U", "32U")), ("zone", south, ("31S", "32S", "32S")),
        ("zone", points, ("31 N", "UTM 32N", "Zone 32N")),
        ("zone", south, ("EPSG:32731", "EPSG:32732", "EPSG:32732")),
    ):  # fmt: skip
        rows = []
        for (lon, lat), zone in zip(where, zones, strict=True):
            code = (32700 if lat < 0 else 32600) + int(re.findall(r"\d\d(?=\D*$)", zone)[-1])
            utm = pyproj.Transformer.from_crs(4326, code, always_xy=True).transform(lon, lat)
            rows.append(f"{zone},{utm[0]:.2f},{utm[1]:.2f}")
        places = stations(tmp_path, "\n".join([f"{title},easting,northing", *rows]))
        true = pyproj.Geod(ellps="WGS84").inv(*where[0], *where[2])[2]
        assert math.dist(places.positions[0], places.positions[2]) == pytest.approx(true, rel=1e-4)
    assert "zone" in refused(tmp_path, "zone,x,y\n77,500000,5000000\n77,500100,5000000\n")


def test_utm_beside_degrees_is_checked_against_them(tmp_path: Path) -> None:
    pyproj = pytest.importorskip("pyproj")
    for lon, lat in ((11.3, 46.5), (-70.1, -33.4), (5.99, 60.1), (179.9, 12.0)):
        zone = (32700 if lat < 0 else 32600) + int((lon + 180) // 6) + 1
        change = pyproj.Transformer.from_crs(4326, zone, always_xy=True)
        rows = [(x, y, *change.transform(x, y)) for x, y in ((lon, lat), (lon + 0.01, lat + 0.01))]
        table = ["lon,lat,easting,northing", *(",".join(f"{c:.4f}" for c in row) for row in rows)]
        places = stations(tmp_path, "\n".join(table))
        assert places.datum == pytest.approx((lon + 0.005, lat + 0.005), abs=1e-4)


def test_degrees_in_columns_of_metres_are_refused_unless_the_map_says_so(tmp_path: Path) -> None:
    text = "x,y\n9.4,61.2\n9.41,61.21\n"
    for table in (text, "E,N\n0,0\n1,2\n", "x,y\n5,5\n900000,5\n", "lon,lat\n1,1\n19,1\n"):
        own = {"x": "E", "y": "N"} if table[0] == "E" else {}
        refused(tmp_path, table, columns_of=own)
    assert stations(tmp_path, text.replace("x,y", "x_m,y_m")).datum is None


GAUGES = """\
ID;E;N;Sohle;lon;lat;x
A1;500010;5983000;2.5;9.0;54.0;7
A2;500040;5983040;10;9.1;54.1;8
"""
OWN = ["name=ID", "x = E", "y=n", "depth=Sohle"]


def test_columns_may_have_names_of_their_own(tmp_path: Path) -> None:
    """What is named counts; the columns with the usual names beside them do not."""
    places = stations(tmp_path, GAUGES, columns_of=OWN)
    assert places.names == ("A1", "A2")
    np.testing.assert_array_equal(places.points, [[500010, 5983000, -2.5], [500040, 5983040, -10]])
    assert places.datum is None
    assert attributes_of(places).names == ("lon", "lat")  # a second x would be no coordinate
    upwards = ["x=E", "y=N", "height=Sohle"]
    np.testing.assert_array_equal(
        stations(tmp_path, GAUGES, columns_of=upwards).points[:, 2], [2.5, 10]
    )


def test_columns_that_are_refused(tmp_path: Path) -> None:
    for own, said in (
        (["x=E", "y=Nord", "name=Nr"], "line 1: no column 'Nord', which columns_of names as y"),
        (["x=E", "y=e"], "columns_of: 'y=e': another entry names this column"),
        (["x=E", "y=N", "z=Sohle"], "one for each of name, x, y, longitude, latitude, height"),
        (["x"], "columns_of: expected entries such as x=E"),
        (["height=E", "depth=N"], "columns_of: height and depth both say how high a place is"),
        (["name=ID", "x=E"], "expected columns x and y [m], or longitude and latitude"),
    ):
        assert said in refused(tmp_path, GAUGES, columns_of=own)


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


def test_no_way_costs_more_than_one_over_other_places(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    table = "from,to,metres\nnorth,south,120\nsouth,east,90\nnorth,east,400\n"
    assert costs(joined(tmp_path, table))["north", "east"].metres == 210.0
    assert "2 of 6 ways are longer than a way over other places" in caplog.text


def test_kilometres_are_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    joined(tmp_path, "from,to,metres\nnorth,south,0.12\nsouth,east,0.09\n")
    assert "shorter than the straight line, such as from 'north' to 'south'" in caplog.text


def test_distances_that_are_refused(tmp_path: Path) -> None:
    for table, said in (
        ("from,to,metres\nnorth,west,1\n", "line 2: no place 'west' on the map"),
        ("from,to,metres\nnorth,south,-3\n", "line 2, metres: expected a number above 0, got '-3'"),
        ("from,to,metres\nnorth,south,9\nnorth,south,8\n", "lines 2 and 3: both are from 'north'"),
        ("from,to,metres,oneway\nnorth,south,9,perhaps\n", "oneway: expected 0 or 1"),
        ("from,to,km\nnorth,south,9\n", "expected columns from, to and metres"),
        ("from,to,metres\nnorth,south,120\n", "into which it divides the 3 places (2, 1 places);"),
    ):
        write(tmp_path, table, "ways.csv")
        assert said in refused(tmp_path, distances="ways.csv")
