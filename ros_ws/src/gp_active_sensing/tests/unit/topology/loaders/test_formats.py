"""Every format of areas and points: read, roles, systems, holes, parts, the 180th meridian, bounds.

What is not there of the table stands in the tests of a format: test_rasters.py has units, no-data
and bands, test_stations.py columns, test_areas.py plans and damaged files.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import shapely

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.topology.loaders import ends_of, kind_of_map, loaders, vector
from gp_active_sensing.topology.loaders.areas import read_areas
from tests.cases import for_each
from tests.pages import REPOSITORY

gpd = pytest.importorskip("geopandas")
FORMATS = ("kml", "kmz", "geojson", "shp", "gpkg")
DEGREE = 111_195.0
"""On the sphere [m]."""


def written(
    folder: Path, end: str, shapes: list[Any], crs: str = "EPSG:4326", **columns: Any
) -> Path:
    """Write shapes in longitude and latitude as a file in a system."""
    path = folder / f"a.{end}"
    frame = gpd.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326").to_crs(crs)
    if end == "kmz":
        frame.to_file(folder / "doc.kml", driver="LIBKML")
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(folder / "doc.kml", "doc.kml")
    else:
        frame.to_file(path, **({"driver": "LIBKML"} if end == "kml" else {}))
    return path


def square(west: float, south: float, size: float, *holes: Any) -> Any:
    box = shapely.box(west, south, west + size, south + size)
    return shapely.Polygon(box.exterior, [hole.exterior for hole in holes])


@for_each("end", FORMATS)
def test_areas_of_every_format(tmp_path: Path, end: str) -> None:
    hole = square(8.002, 0.002, 0.002)
    lake, far = square(8.0, 0.0, 0.01, hole), square(8.02, 0.0, 0.01)
    rock = square(8.006, 0.006, 0.002)
    parts = shapely.MultiPolygon([lake, far])
    said = {"Name": ["Rock Lake", "x"], "ROLE": ["outline", "Obstacle"]}
    systems = ("EPSG:4326",) if end in ("kml", "kmz") else ("EPSG:4326", "EPSG:32632", "EPSG:3857")
    for crs in systems:
        areas = read_areas(written(tmp_path, end, [parts, rock], crs, **said))
        assert areas.outline.area == pytest.approx(1.96e-4 * DEGREE**2, rel=0.01)  # parts and hole
        assert [round(o.area / DEGREE**2, 7) for o in areas.obstacles] == [4e-6]
        assert areas.datum == pytest.approx((8.015, 0.005), abs=1e-4)
        assert {note.partition(":")[0] for note in areas.notes} >= {"taken as outline"}


@for_each("end", FORMATS)
def test_areas_across_the_180th_meridian(tmp_path: Path, end: str) -> None:
    corners = [(179.99, -1.0), (-179.99, -1.0), (-179.99, -0.98), (179.99, -0.98)]
    areas = read_areas(written(tmp_path, end, [shapely.Polygon(corners)], Name=["bay"]))
    assert areas.outline.area == pytest.approx(4e-4 * DEGREE**2, rel=0.01)
    assert abs((areas.datum or (0, 0))[0]) == pytest.approx(180.0)


@for_each("end", FORMATS)
def test_a_file_of_too_many_features(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = [square(8.0 + 0.01 * k, 0.0, 0.005) for k in range(6)]
    path = written(tmp_path, end, shapes, Name=[f"p{k}" for k in range(6)])
    assert read_areas(path).outline.geom_type == "MultiPolygon"
    monkeypatch.setattr(vector, "MOST_FEATURES", 5)
    with pytest.raises(MapError, match="more than 5 features"):
        read_areas(path)


@for_each("end", FORMATS)
def test_points_of_every_format(tmp_path: Path, end: str) -> None:
    points = [shapely.Point(8.0 + 0.01 * k, 0.0) for k in range(3)]
    path = written(tmp_path, end, points, Name=["a", "b", "c"], depth=[1.0, 2.0, -9999.0])
    with pytest.raises(MapError, match="fill value"):
        build_topology(MapConfig(kind="points", file=str(path)))
    path = written(tmp_path, end, points, Name=["a", "b", "c"], depth=[-1.0, -2.0, -4.0])
    found = build_topology(MapConfig(kind="points", file=str(path)))
    assert found.names == ("a", "b", "c")
    assert found.heights is not None
    assert found.heights.tolist() == [-1.0, -2.0, -4.0]
    assert found.datum == pytest.approx((8.01, 0.0), abs=1e-5)
    if end in ("shp", "gpkg"):  # in metres of a system
        path = written(tmp_path, end, points, "EPSG:32632", Name=["a", "b", "c"])
    assert build_topology(MapConfig(kind="points", file=str(path))).datum == found.datum


def test_what_says_no_system_is_told_by_its_extent(tmp_path: Path) -> None:
    ring = [[0, 0], [40, 0], [40, 30], [0, 30], [0, 0]]
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    assert read_areas(path).datum is None
    assert read_areas(path, crs="EPSG:32632").datum is not None
    shore = written(tmp_path, "shp", [square(8.0, 0.0, 0.01)], Name=["x"])
    shore.with_suffix(".prj").unlink()
    assert read_areas(shore).datum == pytest.approx((8.005, 0.005), abs=1e-4)
    assert set(ends_of("areas")) == {f".{end}" for end in (*FORMATS, "json", "plan")}


def test_a_file_of_pins_alone_is_points(tmp_path: Path) -> None:
    """How the pins are drawn is no number of a place; pins that GDAL would pass over are said."""
    pin = "<Placemark><name>{}</name><Style><LineStyle/></Style><Point><coordinates>{},54"
    pin += "</coordinates></Point></Placemark>"
    pins = pin.format("a", 10) + pin.format("b", 10.001)
    path = tmp_path / "pins.kml"
    path.write_text(f"<kml><Document>{pins}</Document></kml>")
    assert kind_of_map(str(path)) == "points"
    places = build_topology(MapConfig(file=str(path)))
    assert (places.names, places.free, dict(places.numbers)) == (("a", "b"), True, {})
    for word in ("<!-- <Polygon> -->", "<description><![CDATA[<LineString>]]></description>"):
        path.write_text(f"<kml><Document>{word}{pins}</Document></kml>")
        assert kind_of_map(str(path)) == "points"
    path.write_text(f"<kml>{pins}</kml>")
    with pytest.raises(MapError, match="only 1 of its 2 Points"):
        build_topology(MapConfig(file=str(path), kind="points"))


def test_the_table_of_formats_names_tests_that_exist() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")
    named = dict(re.findall(r"([A-Z]): `(test_\w+)`", page))
    folder = Path(__file__).parent
    texts = {
        letter: next(folder.parent.rglob(f"{name}.py")).read_text("utf-8")
        for letter, name in named.items()
    }
    cells = re.findall(r"\| ([A-Z]):(\w+)(?= \|)", page)
    assert len(cells) > 80
    missing = [f"{a}:{b}" for a, b in cells if f"def test_{b}" not in texts[a]]
    assert not missing
    table = page[page.index("| format | read |") :].partition("\n\n")[0]
    assert {end.rpartition(" ")[2] for end in loaders} - {".json", ".pbf", ".tiff", ".yml"} <= {
        *re.findall(r"`(\.[\w.]+)`", table),
        ".net.xml.gz",
    }
