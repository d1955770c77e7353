"""The commands `gp-active-sensing maps …`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gp_active_sensing import cli
from gp_active_sensing.topology import load_roads
from tests.unit.topology.loaders.nets import net, write_net
from tests.unit.topology.road_maps import segment, street, write


def call(*words: object) -> Result:
    return CliRunner().invoke(cli.cli, ["maps", *map(str, words)])


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """A map of two parts."""
    far = segment("far", "x", "y", [(900, 0), (950, 0)], speed_limit_mps=9.0, lanes=1)
    return write(tmp_path / "split.geojson", [*street(), far])


def test_import_writes_a_map(tmp_path: Path) -> None:
    done = call("import", write_net(tmp_path, net()), tmp_path / "out.geojson")
    assert done.exit_code == 0, done.output
    assert "out.geojson: 3 segments between 3 junctions, 0.3 km" in done.output
    assert "note: left out: edges closed to passenger cars (1)" in done.output
    assert "warning: 3 of 3" not in done.output
    first = load_roads(tmp_path / "small.net.xml")
    assert load_roads(tmp_path / "out.geojson").segments == tuple(first.segments)


def test_import_drops_nothing_unless_asked(tmp_path: Path, split: Path) -> None:
    done = call("import", split, tmp_path / "all.geojson")
    assert done.exit_code == 0
    assert "warning: 1 of 7 segments lie outside the largest part" in done.output
    assert len(load_roads(tmp_path / "all.geojson").segments) == 7
    done = call("import", split, tmp_path / "one.geojson", "--largest-component")
    assert done.exit_code == 0
    assert "6 of 7 segments; 1 (0.1 km) were dropped" in done.output
    assert "warning" not in done.output
    assert len(load_roads(tmp_path / "one.geojson").segments) == 6


def test_import_into_a_graph_for_nav2(tmp_path: Path, split: Path) -> None:
    done = call("import", split, tmp_path / "graph.geojson", "--to", "nav2")
    assert done.exit_code == 0
    assert "startid" in (tmp_path / "graph.geojson").read_text("utf-8")
    assert len(load_roads(tmp_path / "graph.geojson").segments) == 7


def test_import_says_what_is_wrong(tmp_path: Path, split: Path) -> None:
    done = call("import", split, split)
    assert done.exit_code == 1
    assert "is the map that is read; write to another file" in done.output
    done = call("import", split, tmp_path / "out.png")
    assert done.exit_code == 2
    assert "expected a name that ends in .geojson, got 'out.png'" in done.output
    done = call("import", split, tmp_path / "no" / "folder.geojson")
    assert done.exit_code == 1
    assert "cannot write" in done.output


def test_a_coordinate_system_can_be_given(tmp_path: Path) -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    feature = segment("ab", "a", "b", [(391499.3, 5817852.8), (391607.9, 5817850.4)])
    path = write(tmp_path / "utm.geojson", [feature], header=None)
    done = call("import", path, tmp_path / "out.geojson", "--crs", "EPSG:32633")
    assert done.exit_code == 0
    assert load_roads(tmp_path / "out.geojson").datum == pytest.approx((13.4025, 52.5), abs=1e-3)
    done = call("inspect", tmp_path / "out.geojson")
    assert "(pose.datum: [52.4" in done.output or "(pose.datum: [52.5" in done.output
    done = call("validate", path, "--crs", "EPSG:1")
    assert done.exit_code == 1
    assert "unknown coordinate system 'EPSG:1'" in done.output


def test_inspect_a_shipped_map() -> None:
    done = call("inspect", "town")
    assert done.exit_code == 0
    for line in (
        "segments       705, 121.4 km",
        "one-way        17 (2 %)",
        "junctions      250, 41 dead ends",
        "parts          one, with a way from each segment to each",
        "limits         20 … 70 km/h",
        "features       x, y, direction, length, lanes, speed_limit",
    ):
        assert line in done.output


def test_inspect_as_json(split: Path) -> None:
    data = json.loads(call("inspect", split, "--json").output)
    assert (data["file"], data["segments"], data["outside"]) == (str(split), 7, 1)
    assert "lie outside the largest part" in data["warnings"][0]


def test_inspect_says_what_is_odd(tmp_path: Path) -> None:
    features = [
        segment("round", "a", "a", [(0, 0), (9, 9), (9, 0), (0, 0)], successors=["ab"]),
        segment("ab", "a", "b", [(0, 0), (9000, 0)], surface="tar"),
    ]
    done = call("inspect", write(tmp_path / "odd.geojson", features))
    assert "1 loops back to where they begin; 1 list what may follow them" in done.output
    assert "parts          all joined; the largest with a way from each segment to each has" in (
        done.output
    )
    assert "limits         none known" in done.output
    assert "extent         9.00 km × 9.0 m" in done.output
    assert "note: left out: 'surface', which is no number (1)" in done.output


def test_validate(tmp_path: Path, split: Path) -> None:
    done = call("validate", split)
    assert done.exit_code == 0
    assert f"{split}: valid, 7 segments" in done.output
    assert "warning: 1 of 7 segments lie outside" in done.output
    bad = write(tmp_path / "bad.geojson", [*street(), *street()])
    done = call("validate", bad)
    assert done.exit_code == 1
    assert "4 problems in the map" not in done.output  # twins are taken as well
    assert "id 'ab' is taken by feature 0" in done.output
    assert "Traceback" not in done.output
    done = call("validate", tmp_path / "missing.geojson")
    assert done.exit_code == 1
    assert "no file" in done.output


def test_show(tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("show", split)
    assert (done.exit_code, done.output.strip()) == (0, "split.svg")
    assert "<svg" in (tmp_path / "split.svg").read_text("utf-8")
    done = call("show", split, "--out", "map.gif")
    assert done.exit_code == 2
    assert "expected a name that ends in .svg or .png, got 'map.gif'" in done.output


def test_show_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("show", "house", "--set", "spacing=0.6", "--set", "inflation=0.25")
    assert (done.exit_code, done.output.strip()) == (0, "house.svg")
    drawn = (tmp_path / "house.svg").read_text("utf-8")
    assert "house: 142 places, 0.6 m apart" in drawn
    assert ">occupied<" in drawn
    assert ">unknown<" in drawn
    (tmp_path / "stations.csv").write_text(STATIONS)
    (tmp_path / "ways.csv").write_text("from,to,metres\nnorth,south,70\nsouth,bay,60\n")
    done = call("show", "stations.csv", "--set", "distances=ways.csv")
    assert (done.exit_code, done.output.strip()) == (0, "stations.svg"), done.output
    drawn = (tmp_path / "stations.svg").read_text("utf-8")
    for words in ("stations: 3 places", ">north<", ">move<"):
        assert words in drawn
    done = call("inspect", "stations.csv", "--set", "distances=ways.csv")
    assert "ways           4, of a table" in done.output
    assert "straight, from each place to each" in call("inspect", "stations.csv").output


def test_show_a_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    monkeypatch.chdir(tmp_path)
    done = call("show", "lake.kml")
    assert (done.exit_code, done.output.strip()) == (0, "lake.svg"), done.output
    assert "lake: 417 places, 15 m apart" in (tmp_path / "lake.svg").read_text("utf-8")


def test_a_lake_is_no_table() -> None:
    for command in (
        "inspect",
        "show",
        "validate",
    ):
        done = call(command, "lake.kml", "--set", "kind=points")
        assert done.exit_code == 1
        assert "is a map of kind 'grid', not 'points'; leave kind out" in done.output
        assert "<?xml" not in done.output


def test_a_file_that_is_no_map_names_all_formats(tmp_path: Path) -> None:
    (tmp_path / "map.txt").write_text("")
    for command in ("inspect", "show", "validate"):
        done = call(command, tmp_path / "map.txt")
        assert done.exit_code == 1
        for end in (".kml", ".yaml", ".osm.pbf", "points: .csv"):
            assert end in done.output


def test_a_grid_from_map_server() -> None:
    done = call("inspect", "house", "--set", "spacing=0.6", "--set", "map.inflation=0.25")
    assert done.exit_code == 0, done.output
    assert "places         142, 0.6 m apart" in done.output
    assert "one, with a way from each place to each" in done.output
    assert "260 × 200 cells of 0.05 m: 33564 free, 5376 occupied, 13060 unknown" in done.output
    data = json.loads(call("inspect", "house", "--json").stdout)
    assert data["places"] > 200
    assert data["parts"] == 1
    done = call("validate", "house.yaml")
    assert done.exit_code == 0
    assert "house.yaml: valid, " in done.output


def test_what_a_grid_is_not(tmp_path: Path) -> None:
    done = call("import", "house", tmp_path / "out.geojson")
    assert done.exit_code == 1
    assert "is a grid, which has no roads; `maps inspect`" in done.output
    done = call("inspect", "house", "--crs", "local")
    assert done.exit_code == 2
    assert "--crs is for road maps" in done.output
    done = call("inspect", "town", "--set", "spacing=2")
    assert done.exit_code == 2
    assert "--set is for grids" in done.output
    done = call("inspect", "house", "--set", "spaceing=2")
    assert done.exit_code == 1
    assert "spaceing: unknown key. Did you mean 'spacing'?" in done.output


STATIONS = "station,x,y,depth,grain\nnorth,0,0,2,0.4\nsouth,30,40,11,0.1\nbay,10,5,4,\n"


def test_a_table_whose_columns_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "gauges.csv").write_text("ID,E,N\nA,0,0\nB,30,40\n", encoding="utf-8")
    file = str(tmp_path / "gauges.csv")
    named = "--set", "columns_of.x=E", "--set", "columns_of.y=N", "--set", "columns_of.name=ID"
    done = call("inspect", file, *named)
    assert "places         2, map.kind: points" in done.output
    assert "extent         30.0 m × 40.0 m" in done.output
    assert "valid, 2 places" in call("validate", file, *named).output
    drawn = call("show", file, "--out", str(tmp_path / "g.svg"), *named)
    assert drawn.exit_code == 0, drawn.output
    assert ">B<" in (tmp_path / "g.svg").read_text("utf-8")
    assert "map.columns_of says which they are" in call("validate", file).output


def test_a_table_of_stations(tmp_path: Path) -> None:
    file = tmp_path / "stations.csv"
    file.write_text(STATIONS)
    done = call("inspect", file)
    assert done.exit_code == 0, done.output
    assert "places         3, map.kind: points" in done.output
    assert "extent         30.0 m × 40.0 m × 9.0 m" in done.output
    assert "heights        z -11 … -2 m" in done.output
    assert "numbers        grain" in done.output
    data = json.loads(call("inspect", file, "--json").stdout)
    assert (data["places"], data["low"], data["high"]) == (3, [0, 0, -11], [30, 40, -2])
    assert "stations.csv: valid, 3 places" in call("validate", file).output
    done = call("import", file, tmp_path / "out.geojson")
    assert done.exit_code == 1
    assert "is a table of places (map.kind: points), which has no roads" in done.output
    done = call("inspect", file, "--crs", "local")
    assert done.exit_code == 2
    assert "is a table of places" in done.output
    file.write_text(STATIONS.replace("bay", "north"))
    done = call("validate", file)
    assert done.exit_code == 1
    assert "lines 2 and 4: both places are called 'north'" in done.output
