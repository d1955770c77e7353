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
    far = segment("far", "x", "y", [(900, 0), (950, 0)], speed_limit_mps=9.0, lanes=1)
    return write(tmp_path / "split.geojson", [*street(), far])


def test_import_writes_a_map(tmp_path: Path) -> None:
    done = call("import", write_net(tmp_path, net()), tmp_path / "out.geojson")
    assert done.exit_code == 0, done.output
    assert "edges closed to passenger cars (1)" in done.output
    assert "warning: 3 of 3" not in done.output
    first = load_roads(tmp_path / "small.net.xml")
    assert load_roads(tmp_path / "out.geojson").segments == tuple(first.segments)


def test_import_drops_nothing_unless_asked(tmp_path: Path, split: Path) -> None:
    done = call("import", split, tmp_path / "all.geojson")
    assert done.exit_code == 0
    assert "warning: outside the largest part with a way from each to each: 1 of 7" in done.output
    assert len(load_roads(tmp_path / "all.geojson").segments) == 7
    done = call("import", split, tmp_path / "one.geojson", "--largest-component")
    assert done.exit_code == 0
    assert "6 of 7 segments; 1 (0.1 km) were dropped" in done.output
    assert len(load_roads(tmp_path / "one.geojson").segments) == 6


def test_import_says_what_is_wrong(tmp_path: Path, split: Path) -> None:
    assert call("import", split, split).exit_code == 1
    assert call("import", split, tmp_path / "out.png").exit_code == 2


def test_inspect_a_shipped_map() -> None:
    done = call("inspect", "town")
    assert done.exit_code == 0
    for words in ("705, 121.4 km", "20 … 70 km/h", "x, y, direction, length, lanes, speed_limit"):
        assert words in done.output


def test_validate(tmp_path: Path, split: Path) -> None:
    done = call("validate", split)
    assert done.exit_code == 0
    assert f"{split}: valid, 7 segments" in done.output
    bad = write(tmp_path / "bad.geojson", [*street(), *street()])
    done = call("validate", bad)
    assert done.exit_code == 1
    assert "id 'ab' is taken by feature 0" in done.output


def test_show(tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("show", split)
    assert (done.exit_code, done.output.strip()) == (0, "split.svg")
    assert "<svg" in (tmp_path / "split.svg").read_text("utf-8")
    assert call("show", split, "--out", "map.gif").exit_code == 2


def test_show_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("show", "house", "--set", "spacing=0.6", "--set", "inflation=0.25")
    assert (done.exit_code, done.output.strip()) == (0, "house.svg")
    drawn = (tmp_path / "house.svg").read_text("utf-8")
    assert "house: 142 places 0.6 m apart" in drawn
    (tmp_path / "stations.csv").write_text(STATIONS)
    (tmp_path / "ways.csv").write_text("from,to,metres\nnorth,south,70\nsouth,bay,60\n")
    done = call("show", "stations.csv", "--set", "distances=ways.csv")
    assert (done.exit_code, done.output.strip()) == (0, "stations.svg"), done.output
    assert ">north<" in (tmp_path / "stations.svg").read_text("utf-8")


def test_a_grid_from_map_server() -> None:
    done = call("inspect", "house", "--set", "spacing=0.6", "--set", "map.inflation=0.25")
    assert done.exit_code == 0, done.output
    assert "142, 0.6 m apart" in done.output
    assert json.loads(call("inspect", "house", "--json").stdout)["parts"] == 1
    assert call("validate", "house.yaml").exit_code == 0
    done = call("inspect", "house", "--set", "spacing=0.8", "--set", "inflation=0.35")
    assert "note: left out: 44 places" in done.output
    assert "warning: " not in done.output


def test_what_a_grid_is_not(tmp_path: Path) -> None:
    assert call("import", "house", tmp_path / "out.geojson").exit_code == 1
    assert call("inspect", "house", "--crs", "local").exit_code == 1
    assert call("inspect", "town", "--set", "spacing=2").exit_code == 2


STATIONS = "station,x,y,depth,grain\nnorth,0,0,2,0.4\nsouth,30,40,11,0.1\nbay,10,5,4,\n"


def test_a_table_of_stations(tmp_path: Path) -> None:
    file = tmp_path / "stations.csv"
    file.write_text(STATIONS)
    done = call("inspect", file)
    assert done.exit_code == 0, done.output
    for words in ("map.kind: points", "30.0 m × 40.0 m × 9.0 m", "z -11 … -2 m", "grain"):
        assert words in done.output
    data = json.loads(call("inspect", file, "--json").stdout)
    assert (data["places"], data["low"], data["high"]) == (3, [0, 0, -11], [30, 40, -2])
    assert "stations.csv: valid, 3 places" in call("validate", file).output
    assert call("import", file, tmp_path / "out.geojson").exit_code == 1
    file.write_text(STATIONS.replace("bay", "north"))
    assert call("validate", file).exit_code == 1
