"""Configuration of maps: kinds, what it builds, weights of places, and the check of a start."""

from __future__ import annotations

import copy
import dataclasses
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.config import declared, default_of, from_mapping, plain, to_mapping
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology import MapConfig, Roads, build_topology, check_start, make_grid
from gp_active_sensing.topology.loaders import kind_of_map, loaders
from gp_active_sensing.topology.map_config import (
    AreasConfig,
    FileConfig,
    LineConfig,
    OccupancyConfig,
    PointsConfig,
    RasterConfig,
    RoadsConfig,
    StationsConfig,
)
from tests.unit.topology.road_maps import segment, street, write


def test_line_and_grid_from_plain_data() -> None:
    line = build_topology(
        from_mapping(MapConfig, {"kind": "line", "count": 4, "spacing": 2, "moves": "free"})
    )
    assert (line.name, line.n, line.free, line.frame) == ("line", 4, True, "map")
    data = {"kind": "grid", "name": "pond", "frame": "odom", "columns": 3, "rows": 3}
    data |= {"neighbours": 8, "origin": [5, 5]}
    obstacles = [[[5.6, 5.6], [6.4, 6.4]], [[6.9, 6.9], [7.1, 6.9], [7, 7.1]]]
    config = from_mapping(MapConfig, {**data, "obstacles": obstacles})
    grid = build_topology(config)
    assert (grid.name, grid.n, grid.frame) == ("pond", 7, "odom")
    assert grid.positions[0].tolist() == [5.0, 5.0]
    assert from_mapping(MapConfig, to_mapping(config)) == config


def test_bad_configurations() -> None:
    for data, message in (
        ({}, "kind: is required"),
        ({"kind": "gridd"}, r"kind: expected one of line, grid, points, roads, got 'gridd'.*mean"),
        ({"kind": "line"}, "count: is required for kind 'line'"),
        ({"kind": "line", "count": -1}, "count: must be 0 or more"),
        ({"kind": "line", "count": 3, "spacing": [1, 2]}, r"spacing: a line has one, got \[1"),
        ({"kind": "roads", "file": "house.yaml"}, "kind: 'house.yaml' is a map of kind 'grid',"),
        ({"file": "house.yaml", "u_turns": "never"}, "u_turns: has no meaning for kind 'grid'"),
        ({"kind": "line", "count": 3, "rows": 2}, "rows: has no meaning for kind 'line'"),
        ({"kind": "roads", "file": "town", "moves": "free"}, "moves: has no meaning for kind"),
        ({"kind": "roads", "file": "town", "relational": ["length"]}, r"relational: was removed"),
        ({"kind": "grid", "columns": 2, "rows": 2, "neighbours": 6}, "expected 4 or 8, got 6"),
        ({"kind": "line", "count": 2, "speed": 0}, r"speed: must be more than 0 \[m/s\]"),
    ):
        with pytest.raises(ConfigError, match=message):
            from_mapping(MapConfig, data, path="map")


def test_a_start_that_does_not_exist(tmp_path: Path) -> None:
    path = write(tmp_path / "street.geojson", street())
    roads = build_topology(MapConfig(kind="roads", file=str(path)))
    with pytest.raises(ConfigError, match=r"start: no place 'bd1' on map 'small'.*mean 'bd'"):
        check_start(roads, "bd1")
    with pytest.raises(ConfigError, match=r"start: map 'small' has places 0 … 5, got 6"):
        check_start(roads, 6)


def test_a_start_from_which_nothing_can_be_reached(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    features = [*street(), segment("far", "x", "y", [(900, 0), (950, 0)], speed_limit_mps=9.0)]
    path = write(tmp_path / "two.geojson", features)
    roads = build_topology(MapConfig(kind="roads", file=str(path)))
    with pytest.raises(MapError, match="no place can be reached from the start 'far'"):
        check_start(roads, "far")
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert check_start(roads, "ab") == 0
    assert "only 5 of 6 other places can be reached from the start 'ab'" in caplog.text
    caplog.clear()
    assert check_start(make_grid(3, 2, 1.0), "c1r0") == 1
    assert not caplog.records


def test_a_grid_takes_as_many_cells_as_its_outline_needs() -> None:
    outline = ((500.0, 200.0), (560.0, 200.0), (560.0, 241.0), (500.0, 241.0))
    found = build_topology(MapConfig(kind="grid", spacing=10.0, outline=outline))
    assert found.n == 7 * 5
    np.testing.assert_array_equal(found.positions.min(axis=0), [500.0, 200.0])
    np.testing.assert_array_equal(found.positions.max(axis=0), [560.0, 240.0])
    given = MapConfig(kind="grid", spacing=10.0, outline=outline, origin=(505.0, 205.0), rows=2)
    assert build_topology(given).n == 6 * 2


POND = {"kind": "grid", "columns": 3, "rows": 2, "spacing": 10}


def weights(**given: Any) -> list[float]:
    whole = {**POND, "weights": given}
    config = from_mapping(MapConfig, whole)
    assert from_mapping(MapConfig, to_mapping(config)) == config
    return build_topology(config).weights.tolist()


def test_without_any_all_places_count_the_same() -> None:
    grid = make_grid(3, 2, 10.0)
    assert grid.weights.tolist() == [1.0] * 6
    assert not grid.weights.flags.writeable
    assert weights() == [1.0] * 6


def test_areas_with_their_edges_the_later_one_counts() -> None:
    left = {"outline": [[0, 0], [10, 20]], "weight": 5}
    corner = {"outline": [[-1, -1], [1, -1], [0, 1]], "weight": 0.5}
    assert weights(areas=[left]) == [5, 5, 1, 5, 5, 1]
    assert weights(areas=[left], elsewhere=0) == [5, 5, 0, 5, 5, 0]
    assert weights(areas=[left, corner]) == [0.5, 5, 1, 5, 5, 1]
    assert weights(areas=[corner, left]) == [5, 5, 1, 5, 5, 1]
    # As a parameter file of ROS holds it.
    text = "[{outline: [[0, 0], [10, 20]], weight: 5}]"
    assert weights(areas=text, elsewhere=0) == [5, 5, 0, 5, 5, 0]
    assert weights(areas=[{"outline": [[0, 0], [10, 20]]}], elsewhere=0) == [1, 1, 0, 1, 1, 0]


def test_a_column_of_the_map_times_the_areas(tmp_path: Path) -> None:
    write(tmp_path / "street.geojson", street())
    config = {"kind": "roads", "file": "street.geojson"}

    def of(**given: Any) -> dict[str, float]:
        whole = from_mapping(MapConfig, {**config, "weights": given})
        roads = build_topology(whole, base_dir=tmp_path)
        return dict(zip(roads.names, roads.weights.tolist(), strict=True))

    by_length = of(column="length")
    assert (by_length["ab"], by_length["bd"], by_length["dc"]) == (100.0, 50.0, 150.0)
    both = of(column="length", areas=[{"outline": [[90, 10], [110, 40]], "weight": 3}])
    assert (both["ab"], both["bd"]) == (100.0, 150.0)


def test_weights_that_are_none() -> None:
    for wrong in ([1, 1], [1, np.nan, 1], [1, -1, 1], [0, 0, 0], [1, np.inf, 1]):
        with pytest.raises(ValueError, match="weight"):
            make_grid(3, 1, 1.0).weighted(wrong)


def test_what_is_refused() -> None:
    for given, message in (
        ({"column": "depth"}, r"weights\.column: expected some of x, y, got 'depth'"),
        ({"areas": [{"weight": 2}]}, r"weights\.areas\[0\]\.outline: is required"),
        (
            {"areas": [{"outline": [[0, 0], [5, 5]], "weight": -1}]},
            r"weights\.areas\[0\]\.weight: must be 0 or more, got -1",
        ),
        ({"areas": [{"outline": [[100, 100], [200, 200]]}]}, r"weights\.areas\[0\]\.outline:"),
        (
            {"areas": [{"outline": [[0, 0], [9, 9], [9, 0], [0, 9]]}]},
            r"weights\.areas\[0\]\.outline: is not a simple polygon",
        ),
        ({"areas": [{"outline": [[0, 0], [50, 50]], "weight": 0}]}, "all weights are 0"),
        ({"elsewhere": 0}, r"weights\.elsewhere: is the weight outside of the areas"),
        ({"areas": "everywhere"}, r"weights\.areas: expected a list, got str 'everywhere'"),
    ):
        with pytest.raises(ConfigError, match=message):
            weights(**given)


def test_columns_that_cannot_be_weights(tmp_path: Path) -> None:
    features = [
        segment("a", "p", "q", [(0, 0), (9, 0)], grade=-1.0),
        segment("b", "q", "p", [(9, 0), (0, 5)], grade=2.0, rare=1.0),
    ]
    write(tmp_path / "hill.geojson", features)

    def build(column: str) -> None:
        whole = {"kind": "roads", "file": "hill.geojson", "weights": {"column": column}}
        build_topology(from_mapping(MapConfig, whole), base_dir=tmp_path)

    with pytest.raises(ConfigError, match=r"weights\.column: must be 0 … 1e\+12, but 'grade' of"):
        build("grade")
    with pytest.raises(ConfigError, match=r"'direction' is no single number"):
        build("direction")


def test_the_system_of_coordinates_may_be_given(tmp_path: Path) -> None:
    """It counts whatever the file says, for roads, areas, rasters and points alike."""
    pytest.importorskip("pyproj")
    write(tmp_path / "r.geojson", street())
    ring = "[[600000,5200000],[600100,5200000],[600100,5200100],[600000,5200000]]"
    (tmp_path / "a.geojson").write_text('{"type":"Polygon","coordinates":[' + ring + "]}")
    (tmp_path / "p.csv").write_text("x,y\n600000,5200000\n600100,5200050\n")
    head = "ncols 2\nnrows 2\nxllcorner 600000\nyllcorner 5200000\ncellsize 9\n1 2 3 4\n"
    (tmp_path / "b.asc").write_text(head)
    for file in ("a.geojson", "p.csv", "b.asc"):
        plain = build_topology(MapConfig(file=file), base_dir=tmp_path)
        located = build_topology(MapConfig(file=file, crs="EPSG:32632"), base_dir=tmp_path)
        assert plain.datum is None
        assert located.datum == pytest.approx((10.3, 46.9), abs=0.1)
    assert build_topology(MapConfig(file="r.geojson", crs="local"), base_dir=tmp_path).datum is None
    with pytest.raises(ConfigError, match="crs"):
        MapConfig("line", count=3, crs="local")
    with pytest.raises(ConfigError, match="crs"):
        MapConfig(file="house.yaml", crs="local")


def test_each_kind_has_a_configuration_of_its_own() -> None:
    for given, kind in (
        ({"kind": "line", "count": 2}, LineConfig),
        ({"kind": "points", "count": 2, "low": (0.0,), "high": (1.0,)}, PointsConfig),
        ({"kind": "points", "file": "a.kml"}, StationsConfig),
        ({"file": "a.osm"}, RoadsConfig),
        ({"file": "town", "u_turns": "always"}, RoadsConfig),
        ({"file": "a.kml"}, FileConfig),
        ({"file": "a.kml", "inflation": 2.0}, AreasConfig),
        ({"file": "a.geojson", "spacing": 2.0}, AreasConfig),
        ({"file": "a.geojson"}, FileConfig),
        ({"file": "house"}, OccupancyConfig),
        ({"topic": "map"}, OccupancyConfig),
        ({"file": "a.tif", "value": "depth"}, RasterConfig),
    ):
        config = MapConfig(**given)  # type: ignore[arg-type]
        assert type(config) is kind
        assert from_mapping(MapConfig, to_mapping(config)) == config
        # As parameters of ROS come: each key of each kind, with its default.
        usual = {field.name: plain(default_of(field)) for field, _ in declared(MapConfig)}
        assert from_mapping(MapConfig, {**usual, **given}) == config
        assert copy.deepcopy(config) == dataclasses.replace(config) == config


STATIONS = "name,x,y\nnorth,0,0\nsouth,30,40\n"
EDGES = 'from,to,wkt\na,b,"LINESTRING (0 0, 30 40)"\n'


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "stations.csv").write_text(STATIONS)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def test_a_table_is_stations_or_roads_by_its_columns(tables: Path) -> None:
    assert kind_of_map(str(tables / "stations.csv")) == "points"
    assert kind_of_map(str(tables / "edges.csv")) == "roads"
    sites = build_topology(MapConfig(file="stations.csv"), base_dir=tables)
    assert sites.names == ("north", "south")
    assert isinstance(build_topology(MapConfig(file="edges.csv"), base_dir=tables), Roads)


def test_a_table_with_ends_is_roads_under_any_name(tmp_path: Path) -> None:
    for ends in ("source,target", "u,v", "From,To"):
        (tmp_path / "edges.csv").write_text(f"{ends},x,y\na,b,0,0\na,b,30,40\n")
        assert kind_of_map(str(tmp_path / "edges.csv")) == "roads"


def test_keys_of_stations_need_no_kind(tables: Path) -> None:
    (tables / "ways.csv").write_text("from,to,metres\nnorth,south,70\n")
    config = MapConfig(file="stations.csv", distances="ways.csv", climb_speed=0.2)
    ways = build_topology(config, base_dir=tables).ways_from(0)
    assert ways.metres[1] == 70.0
    with pytest.raises(MapError, match="expected columns x and y"):  # the key says what it is
        build_topology(MapConfig(file="edges.csv", distances="ways.csv"), base_dir=tables)


def test_a_kind_that_the_file_is_not() -> None:
    for file, kind, kinds in (
        ("lake.kml", "roads", "'grid' or 'points'"),
        ("house.yaml", "points", "'grid'"),
        ("stations.csv", "grid", "'roads' or 'points'"),
    ):
        said = f"kind: '{file}' is a map of kind {kinds}, not '{kind}'; leave kind out"
        with pytest.raises(ConfigError, match=said):
            MapConfig(kind=kind, file=file)


def test_a_file_that_is_no_map_names_every_format(tmp_path: Path) -> None:
    (tmp_path / "map.docx").write_text("")
    with pytest.raises(MapError) as error:
        build_topology(MapConfig(file="map.docx"), base_dir=tmp_path)
    for name in loaders:
        assert name.rpartition(" ")[2] in str(error.value)
    assert "got one that ends in '.docx'" in str(error.value)
