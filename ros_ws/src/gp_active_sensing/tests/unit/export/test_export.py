"""The map of a run in the formats of other programs, read again by other readers."""

from __future__ import annotations

import copy
import csv
import dataclasses
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from shapely.geometry import Point, shape

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.cli import cli
from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.export import FORMATS, FieldMap, export_map
from gp_active_sensing.export.lattice import lattice_of
from gp_active_sensing.report.reconstruction import map_of_run
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.topology.base import FreeTopology
from gp_active_sensing.topology.grids import make_grid
from gp_active_sensing.topology.loaders.map_server import load as read_map_server
from gp_active_sensing.topology.loaders.rasters import of_ascii
from tests.unit.report.runs import bag_run, node_run
from tests.unit.util.hostile import HOSTILE

L_SHAPED = [(0.0, 0.0), (6.0, 0.0), (6.0, 2.0), (2.0, 2.0), (2.0, 4.0), (0.0, 4.0)]
DATUM = 11.5, 48.1


def field_on(topology: Topology, *readings: tuple[int, float], unit: str = "mg/L") -> FieldMap:
    belief = belief_on(BeliefConfig(mean=20.0, signal_std=(5.0,), noise_std=(0.5,)), topology)
    for place, value in readings:
        belief.observe(place, value)
    return FieldMap.of(topology, belief, unit=unit, quantity="oxygen", title="lake")


@pytest.fixture
def lake() -> FieldMap:
    """An L of cells 2 m wide, whose south-west cell has its centre at (100, 50)."""
    outline = [(x + 100.0, y + 50.0) for x, y in L_SHAPED]
    grid = make_grid(spacing=2.0, outline=outline, name="lake")
    assert grid.n == 10
    return field_on(grid, (0, 18.0), (0, 20.0), (3, 26.0))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_table_says_where_each_place_is_and_what_is_known_of_it(
    lake: FieldMap, tmp_path: Path
) -> None:
    [path] = export_map(lake, tmp_path / "lake.csv", "csv")
    rows = rows_of(path)
    assert [*rows[0]] == ["place", "x", "y", "mean", "std", "readings", "value", "weight"]
    assert [row["place"] for row in rows] == list(lake.topology.names)
    assert [float(rows[3]["x"]), float(rows[3]["y"])] == lake.topology.positions[3].tolist()
    assert [float(row["mean"]) for row in rows] == lake.mean.tolist()  # to the bit
    assert [float(row["std"]) for row in rows] == lake.std.tolist()
    assert [int(row["readings"]) for row in rows[:4]] == [2, 0, 0, 1]
    assert [row["value"] for row in rows[1:3]] == ["", ""]
    assert [float(rows[i]["value"]) for i in (0, 3)] == pytest.approx([19.0, 26.0])
    assert abs(float(rows[3]["mean"]) - 26.0) < 1.0 < float(rows[7]["std"])


def test_without_pyproj_a_table_does_without_degrees(
    lake: FieldMap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    lake.topology.datum = DATUM  # type: ignore[misc]
    monkeypatch.setitem(sys.modules, "pyproj", None)
    [path] = export_map(lake, tmp_path / "lake.csv", "csv")
    assert "longitude" not in rows_of(path)[0]
    assert "no longitude and latitude in the table" in caplog.text
    with pytest.raises(MissingDependencyError, match=r"\[maps\]"):
        export_map(lake, tmp_path / "lake.geojson", "geojson", overwrite=True)


def test_cells_are_squares_about_their_places(lake: FieldMap, tmp_path: Path) -> None:
    [path] = export_map(lake, tmp_path / "lake.geojson", "geojson", overwrite=True)
    data = json.loads(path.read_text(encoding="utf-8"))
    head = data["gp_active_sensing"]
    assert (head["crs"], head["units"], head["frame"]) == ("local", "metre", "map")
    assert (head["unit"], head["quantity"], head["name"]) == ("mg/L", "oxygen", "lake")
    for feature, place in zip(data["features"], lake.topology.positions, strict=True):
        cell = shape(feature["geometry"])
        assert cell.is_valid
        assert cell.area == pytest.approx(4.0)
        assert cell.exterior.is_ccw  # RFC 7946, section 3.1.6
        assert cell.centroid.distance(Point(*place)) < 1e-9


def test_a_table_is_read_back_as_the_same_places(lake: FieldMap, tmp_path: Path) -> None:
    """It has x and y and longitude and latitude: both are of the same places."""
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    lake.topology.datum = DATUM  # type: ignore[misc]
    [path] = export_map(lake, tmp_path / "lake.csv", "csv")
    again = build_topology(MapConfig(kind="points", file=str(path)))
    assert again.names == lake.topology.names
    np.testing.assert_allclose(again.positions, lake.topology.positions, atol=1e-3)
    assert again.datum == pytest.approx(DATUM, abs=1e-6)
    np.testing.assert_array_equal(again.columns(["mean"])[0][:, 0], lake.mean)


def test_geojson_is_opened_by_geopandas(lake: FieldMap, tmp_path: Path) -> None:
    for datum in (None, DATUM):
        geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
        if datum is not None:
            pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
            lake.topology.datum = datum  # type: ignore[misc]
        [path] = export_map(lake, tmp_path / "lake.geojson", "geojson", overwrite=True)
        frame = geopandas.read_file(path)
        assert set(frame.columns) >= {"place", "mean", "std", "readings", "value", "weight"}
        assert frame["place"].tolist() == list(lake.topology.names)
        np.testing.assert_allclose(frame["mean"], lake.mean, rtol=1e-8)
        np.testing.assert_allclose(frame["std"], lake.std, rtol=1e-8)
        assert frame["readings"].tolist() == lake.readings.tolist()
        assert frame["value"].isna().tolist() == (lake.readings == 0).tolist()
        assert frame.crs == "EPSG:4326"
        if datum is None:  # a reader of RFC 7946 knows degrees only; docs/viewing.md
            frame = frame.set_crs(None, allow_override=True)
        else:
            system = f"+proj=tmerc +lat_0={datum[1]} +lon_0={datum[0]} +ellps=WGS84 +units=m"
            frame = frame.to_crs(system)
        np.testing.assert_allclose(frame.area, 4.0, rtol=1e-3)
        middles = np.column_stack([frame.centroid.x, frame.centroid.y])
        np.testing.assert_allclose(middles, lake.topology.positions, atol=1e-3)


def test_roads_are_lines(tmp_path: Path) -> None:
    town = build_topology(MapConfig(kind="roads", file="town.geojson"))
    field = field_on(town, (3, 25.0), unit="km/h")
    [path] = export_map(field, tmp_path / "town.geojson", "geojson")
    features = json.loads(path.read_text(encoding="utf-8"))["features"]
    assert len(features) == town.n
    for i in (0, 3, town.n - 1):
        line = features[i]["geometry"]
        assert line["type"] == "LineString"
        np.testing.assert_allclose(line["coordinates"], town.geometry(i), atol=6e-4)
    assert features[3]["properties"]["value"] == pytest.approx(25.0)


def test_what_lies_across_the_meridian_of_180_degrees_is_cut(tmp_path: Path) -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    grid = make_grid(spacing=100.0, columns=6, rows=3, name="lagoon")
    roads = build_topology(MapConfig(kind="roads", file="town.geojson"))
    points = FreeTopology("s", "map", ["a", "b"], [(-300.0, 0.0), (300.0, 0.0)])
    for datum in ((179.9977, -17.0), (179.995, 65.0), (179.9978, 0.0), (179.9974, 30.0)):
        for plain in (grid, roads, points):
            topology = copy.copy(plain)
            object.__setattr__(topology, "datum", datum)
            [path] = export_map(
                field_on(topology, (0, 20.0)), tmp_path / "m.geojson", "geojson", overwrite=True
            )
            features = json.loads(path.read_text(encoding="utf-8"))["features"]
            found = [shape(feature["geometry"]) for feature in features]
            widest = 0.5
            for each in found:
                assert each.is_valid
                for part in getattr(each, "geoms", [each]):
                    west, _, east, _ = part.bounds
                    assert -180.0 <= west <= east <= 180.0
                    assert east - west < widest
                    if part.geom_type == "Polygon":
                        assert part.exterior.is_ccw
            if topology.n == grid.n:  # nothing is lost where cells are cut
                areas = np.array([each.area for each in found])
                np.testing.assert_allclose(areas, np.median(areas), rtol=1e-3)
            sides = {each.bounds[0] > 0.0 for each in found}
            assert sides == {True, False}


def test_no_spreadsheet_takes_a_name_for_a_formula(tmp_path: Path) -> None:
    names = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "a\rb", "a\r\n=b", "＝1+A2", "-7", "+1e3"]
    points = [(float(i), 0.0) for i in range(len(names))]
    field = field_on(FreeTopology("s", "map", names, points), (0, 20.0))
    [path] = export_map(field, tmp_path / "s.csv", "csv")
    assert b"\r" not in path.read_bytes()
    rows = rows_of(path)
    assert len(rows) == len(names)
    for row, name in zip(rows, names, strict=True):
        cell = row["place"]
        if name in ("-7", "+1e3"):  # numbers
            assert cell == name
        elif name.startswith("a"):
            assert cell == name.replace("\r\n", "\n").replace("\r", "\n")
        else:
            assert cell == f"'{name}"
        assert not cell.lstrip().startswith(("=", "@"))
    assert rows[0]["mean"] == str(field.mean[0])


def test_rasters_are_read_by_a_gis_library(lake: FieldMap, tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
    warp = pytest.importorskip("rasterio.warp")
    lake.topology.datum = DATUM  # type: ignore[misc]
    [tiff] = export_map(lake, tmp_path / "lake.tif", "geotiff")
    where = lake.topology.positions.tolist()
    with rasterio.open(tiff) as raster:
        assert raster.descriptions == ("mean", "std", "readings")
        assert raster.units == ("mg/L", "mg/L", None)
        assert raster.bounds == (99.0, 49.0, 107.0, 55.0)
        found = np.array(list(raster.sample(where))).T
        np.testing.assert_allclose(found[0], lake.mean, rtol=1e-6)
        np.testing.assert_allclose(found[1], lake.std, rtol=1e-6)
        assert found[2].tolist() == lake.readings.tolist()
        assert np.isnan(raster.read(1)).sum() == raster.width * raster.height - lake.topology.n
        [longitude], [latitude] = warp.transform(
            raster.crs, "EPSG:4326", [where[5][0]], [where[5][1]]
        )
        assert [longitude, latitude] == pytest.approx(
            lake.geographic(lake.topology.positions)[5].tolist(), abs=1e-9
        )


KEYS = "image mode resolution origin negate occupied_thresh free_thresh"


def scale_of(text: str) -> tuple[float, float]:
    found = re.search(r"value = (\S+) \+ level \* ([^,]+),", text)
    assert found is not None
    return float(found[1]), float(found[2])


def test_no_quantity_unit_or_frame_writes_a_key(lake: FieldMap, tmp_path: Path) -> None:
    topology = copy.copy(lake.topology)
    for hostile in HOSTILE:
        object.__setattr__(topology, "frame", hostile)
        field = dataclasses.replace(lake, topology=topology, quantity=hostile, unit=hostile)
        for path in export_map(field, tmp_path / "lake", "pgm", overwrite=True):
            if path.suffix == ".yaml":
                assert list(yaml.safe_load(path.read_bytes())) == KEYS.split(), ascii(hostile)


def test_a_map_of_map_server_has_the_keys_of_nav2_and_is_read_back(
    lake: FieldMap, tmp_path: Path
) -> None:
    """The keys that nav2_map_server documents, and the grid that our reader of its maps gives."""
    files = [p for p in export_map(lake, tmp_path / "lake", "pgm") if p.suffix == ".yaml"]
    assert [path.name for path in files] == ["lake_mean.yaml", "lake_std.yaml"]
    for path, values in zip(files, (lake.mean, lake.std), strict=True):
        said = yaml.safe_load(path.read_text(encoding="ascii"))
        assert [*said] == KEYS.split()
        assert said["image"] == f"{path.stem}.pgm"
        grid, notes = read_map_server(path)
        assert not notes
        assert (grid.resolution, grid.origin, grid.yaw) == (2.0, (99.0, 49.0), 0.0)
        low, step = scale_of(path.read_text(encoding="utf-8"))
        found = [
            grid.values[int((y - 49) / 2), int((x - 99) / 2)] for x, y in lake.topology.positions
        ]
        np.testing.assert_allclose(low + step * np.array(found), values, atol=0.51 * step)
        assert (grid.values == -1).sum() == grid.values.size - lake.topology.n


def test_cells_that_are_no_squares(tmp_path: Path) -> None:
    points = [(3.0 * c, 2.0 * r) for r in range(3) for c in range(4)]
    topology = FreeTopology("field", "map", [str(i) for i in range(12)], points)
    field = field_on(topology, (5, 22.0))
    assert lattice_of(topology).cell == (3.0, 2.0)
    mean, _ = export_map(field, tmp_path / "f", "asc")
    grid, _ = of_ascii(mean)
    assert grid.transform == (3.0, 0.0, -1.5, 0.0, -2.0, 5.0)
    assert grid.values[::-1][1, 1] == pytest.approx(float(field.mean[5]), rel=1e-8)
    with pytest.raises(RunError, match=r"cells of 3 × 2 m; an occupancy grid has squares only"):
        export_map(field, tmp_path / "g", "pgm")


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "valley"
    scenario = load_scenario(
        "terrain", overrides=["budget.readings=6", "limit.expansions=20", "limit.seconds=null"]
    )
    run_scenario(scenario, path)
    return path


def both(begin: str, *ends: str) -> list[str]:
    return [f"{begin}_{part}{end}" for part in ("mean", "std") for end in ends]


FILES = {
    "csv": ["valley.csv"],
    "geojson": ["valley.geojson"],
    "asc": both("valley", ".asc"),
    "pgm": both("valley", ".yaml", ".pgm"),
    "geotiff": ["valley.tif"],
}


@pytest.mark.slow
def test_the_command_writes_each_format(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in FORMATS:
        if kind == "geotiff":
            pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
        monkeypatch.chdir(tmp_path)
        done = CliRunner().invoke(cli, ["export", str(run_dir), "--to", kind])
        assert done.exit_code == 0, done.output
        assert sorted(done.output.split()) == sorted(FILES[kind])
        assert all((tmp_path / name).stat().st_size > 100 for name in done.output.split())
        again = CliRunner().invoke(cli, ["export", str(run_dir), "--to", kind])
        assert again.exit_code == 1
        third = CliRunner().invoke(cli, ["export", str(run_dir), "--to", kind, "--overwrite"])
        assert third.exit_code == 0


@pytest.mark.slow
def test_the_map_after_a_stage(run_dir: Path) -> None:
    counts = [int((map_of_run(run_dir, n).readings > 0).sum()) for n in range(1, 7)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    np.testing.assert_array_equal(map_of_run(run_dir).mean, map_of_run(run_dir, 6).mean)
    for stage in (0, 7):
        with pytest.raises(RunError, match=rf"has stages 1 … 6, got {stage}"):
            map_of_run(run_dir, stage)


def test_a_mission_and_a_replay_have_a_map_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    field = map_of_run(node_run(tmp_path / "node", reading={"unit": "ppm"}))
    assert "1 of 3 readings could not be used" in caplog.text  # one is not finite
    assert field.readings.tolist()[:2] == [1, 1]
    assert field.unit == "ppm"
    assert field.values[0] == pytest.approx(30.0)
    replayed = bag_run(tmp_path / "bag")
    assert map_of_run(replayed).readings.sum() == 30
    with pytest.raises(RunError, match="no stages"):
        map_of_run(replayed, 1)


def refused(*words: object) -> str:
    done = CliRunner().invoke(cli, ["export", *map(str, words)])
    assert done.exit_code == 1, done.output
    return done.output


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    assert "has no config.yaml" in refused(tmp_path / "photos", "--to", "csv")
    node = node_run(tmp_path / "node")
    assert "plan, waypoints. Did you mean 'geojson'?" in refused(node, "--to", "geojsn")
    assert "removed: export pgm" in refused(node, "--to", "ros")
    assert "too long" in refused(node, "--to", "csv", "--out", tmp_path / ("x" * 300))
    # Before the run is read.
    assert "no folder" in refused(tmp_path, "--to", "csv", "--out", tmp_path / "no/where.csv")
