"""The kind of map that a file holds, by its name and by what is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology import MapConfig, Roads, build_topology
from gp_active_sensing.topology.loaders import kind_of_map, loaders

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
    with pytest.raises(ConfigError, match="distances: has no meaning for kind 'roads'"):
        build_topology(MapConfig(file="edges.csv", distances="ways.csv"), base_dir=tables)


def test_a_kind_that_the_file_is_not() -> None:
    for file, kind, kinds in (
        ("lake.kml", "roads", "'grid'"),
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
