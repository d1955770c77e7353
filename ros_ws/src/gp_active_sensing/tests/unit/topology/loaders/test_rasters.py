"""Rasters as maps: a place is where there are data, in metres, in degrees, of a national grid."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, MapError, MissingDependencyError
from gp_active_sensing.export import FieldMap, export_map
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.fields.raster import read_field_raster
from gp_active_sensing.topology import GraphTopology, MapConfig, Topology, build_topology, make_grid
from gp_active_sensing.topology.loaders import kind_of_map
from gp_active_sensing.topology.loaders.rasters import _opened, read_raster
from gp_active_sensing.types import FloatArray

BAY = """ncols 5
nrows 4
xllcorner 100
yllcorner 50
dx 10
dy 20
NODATA_value -9999
1.5 2.0 2.5 -9999 1.0
2.5 3.5 4.0 -9999 2.0
2.0 -9999 3.0 2.0 1.5
-9999 -9999 1.0 0.5 -9999
"""
"""Cells of 10 × 20 m; 14 have data. The south-west centre is (105, 60)."""


def write(folder: Path, text: str = BAY, name: str = "bay.asc") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def built(file: str, **more: Any) -> Topology:
    return build_topology(from_mapping(MapConfig, {"file": file, **more}))


def heights_of(places: Topology) -> FloatArray:
    assert places.heights is not None
    return places.heights


def geotiff(path: Path, values: np.ndarray, transform: Any, crs: Any) -> str:
    rasterio = pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
    rows, columns = values.shape
    how = {"driver": "GTiff", "count": 1, "dtype": "float64", "nodata": -9999.0}
    with rasterio.open(
        path, "w", width=columns, height=rows, crs=crs, transform=transform, **how
    ) as out:
        out.write(values, 1)
    return str(path)


def test_a_place_is_where_there_are_data(tmp_path: Path) -> None:
    file = write(tmp_path)
    assert kind_of_map(file) == "grid"
    places = built(file, spacing=[10, 20], value="silt")
    assert isinstance(places, GraphTopology)
    assert places.n == 14
    assert places.datum is None
    first = {name: i for i, name in enumerate(places.names)}
    assert "c0r0" not in first
    assert places.positions[first["c2r0"]].tolist() == [125.0, 60.0]
    assert places.positions[first["c0r3"]].tolist() == [105.0, 120.0]
    # Each place is at the centre of a cell, whose value it has.
    silt = dict(zip(places.names, places.numbers["silt"].tolist(), strict=True))
    assert (silt["c2r0"], silt["c0r1"], silt["c4r3"], silt["c1r2"]) == (1.0, 2.0, 1.0, 3.5)
    # No move crosses a cell without data.
    assert places.neighbours(first["c0r1"]).tolist() == [first["c0r2"]]
    assert sorted(places.names[i] for i in places.neighbours(first["c2r2"])) == [
        "c1r2", "c2r1", "c2r3",
    ]  # fmt: skip


def test_without_a_spacing_about_400_places_at_centres_of_cells(tmp_path: Path) -> None:
    assert built(write(tmp_path)).n == 14  # the cells themselves: there are fewer
    many = "\n".join(["ncols 90", "nrows 60", "xllcorner 3", "yllcorner 4", "cellsize 2.5"])
    places = built(write(tmp_path, many + "\n" + "7 " * 5400, "b.asc"))
    assert 200 < places.n < 800
    assert ((places.positions - (4.25, 5.25)) % 2.5 == 0.0).all()


def test_the_value_may_be_a_height(tmp_path: Path) -> None:
    for value, sign in (("depth", -1.0), ("Height", 1.0), ("elevation", 1.0)):
        file = write(tmp_path)
        places = built(file, spacing=[10, 20], value=value, climb_speed=0.1)
        assert isinstance(places, GraphTopology)
        first = {name: i for i, name in enumerate(places.names)}
        assert heights_of(places)[first["c2r2"]] == sign * 4.0
        assert places.feature_names == ("x", "y", "z")
        deep, shallow = first["c2r2"], first["c2r1"]
        low, high = (deep, shallow) if sign < 0 else (shallow, deep)
        climb = next(m for m in places.moves[low] if m.to == high)
        assert climb.metres == pytest.approx(np.hypot(20.0, 1.0))
        assert climb.seconds == pytest.approx(max(climb.metres, 1.0 / 0.1))
        free = built(file, spacing=[10, 20], value=value, moves="free")
        np.testing.assert_array_equal(heights_of(free), heights_of(places))


def test_parts(tmp_path: Path) -> None:
    split = BAY.replace("2.0 -9999 3.0 2.0 1.5", "2.0 -9999 3.0 -9999 1.5")
    file = write(tmp_path, split)
    assert built(file, spacing=[10, 20], value="silt").n == 13
    largest = built(file, spacing=[10, 20], value="silt", largest_component=True)
    assert largest.n == 10
    assert largest.columns(["silt"])[0].min() == 0.5


def utm_values(rows: int, columns: int, transform: Any) -> np.ndarray:
    """A plane of the raster's own coordinates, without data beyond an ellipse."""
    columns_at, rows_at = np.meshgrid(np.arange(columns) + 0.5, np.arange(rows) + 0.5)
    x, y = transform @ (columns_at, rows_at)
    far = np.hypot(columns_at / columns - 0.5, rows_at / rows - 0.5) > 0.45
    return np.where(far, -9999.0, 3.0 * (x - transform.c) - 2.0 * (y - transform.f))


def test_a_geotiff_lies_where_it_says(tmp_path: Path) -> None:
    """Places lie where rasterio finds data, and have the values that it finds there."""
    new_york = ("EPSG:2263", (12.0, 12.0), (980_000.0, 200_000.0))  # in feet
    for turned in (0.0, 33.0):
        for crs, size, corner in (
            ("EPSG:32632", (5.0, 4.0), (600_000.0, 5_200_000.0)),
            ("EPSG:4326", (5e-5, 4e-5), (8.0, 47.0)),
            new_york,
        ):
            rasterio = pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
            pyproj = pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
            affine = rasterio.Affine
            where = affine.translation(*corner) @ affine.rotation(turned)
            where = where @ affine.scale(size[0], -size[1])
            values = utm_values(50, 60, where)
            file = geotiff(tmp_path / "lake.tif", values, where, crs)
            places = built(file, spacing=9, value="plane")
            assert places.datum is not None
            longitude, latitude = places.datum
            assert places.n > 100
            frame = f"+proj=tmerc +lon_0={longitude} +lat_0={latitude} +k=1 +ellps=WGS84 +units=m"
            change = pyproj.Transformer.from_crs(frame, crs, always_xy=True)
            x, y = (np.array(c) for c in change.transform(*places.positions.T.tolist()))
            with rasterio.open(file) as raster:
                found = np.array(list(raster.sample(zip(x, y, strict=True))))[:, 0]
                assert (found != -9999.0).all()
            exact = 3.0 * (x - where.c) - 2.0 * (y - where.f)
            inner = np.hypot(*(places.positions - places.positions.mean(axis=0)).T) < 50.0
            assert inner.sum() > 20
            np.testing.assert_allclose(
                places.numbers["plane"][inner], exact[inner], rtol=0, atol=1e-6 * np.ptp(values)
            )
            # At the shore the value of the cell itself counts.
            step = 3.0 * size[0] + 2.0 * size[1]
            assert np.abs(places.numbers["plane"] - exact).max() <= 1.5 * step
            # And no place is missing: the lattice within the data.
            assert places.n == pytest.approx(_area(values, where, crs) / 81.0, rel=0.05)


def _area(values: np.ndarray, where: Any, crs: str) -> float:
    """Square metres of the cells with data, on the ellipsoid."""
    import pyproj

    middle = where @ (30.0, 25.0)
    corners = [middle, where @ (31.0, 25.0), where @ (31.0, 26.0), where @ (30.0, 26.0)]
    change = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    lonlat = [change.transform(*corner) for corner in corners]
    cell, _ = pyproj.Geod(ellps="WGS84").polygon_area_perimeter(*zip(*lonlat, strict=True))
    return float(abs(cell) * (values != -9999.0).sum())


def test_an_ascii_grid_with_its_projection_beside_it(tmp_path: Path) -> None:
    pyproj = pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    text = BAY.replace("llcorner 100", "llcorner 600000").replace("llcorner 50", "llcorner 5200000")
    file = write(tmp_path, text)
    assert built(file, spacing=10).datum is None
    (tmp_path / "bay.prj").write_text(pyproj.CRS("EPSG:32632").to_wkt("WKT1_ESRI"))
    places = built(file, spacing=10)
    assert places.datum == pytest.approx((10.31455, 46.94568), abs=1e-3)
    given = built(file, spacing=10, datum=[46.9, 10.3])
    assert given.datum == (10.3, 46.9)
    assert given.positions[0] == pytest.approx((1110.0, 5100.0), abs=100.0)
    (tmp_path / "bay.prj").write_text("somewhere")
    with pytest.raises(MapError, match=r"bay\.asc: unknown coordinate system 'somewhere'"):
        built(file, spacing=10)


def test_a_map_that_was_exported_is_the_same_map_again(tmp_path: Path) -> None:
    """By GeoTIFF with its datum, by ESRI ASCII grid in metres: the places lie where they did."""
    pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
    shore = [(3.0, 4.0), (90.0, 4.0), (90.0, 40.0), (40.0, 80.0)]
    lake = make_grid(spacing=(7.0, 9.0), outline=shore).located((8.25, 47.5))
    belief = belief_on(BeliefConfig(mean=20.0), lake)
    belief.observe(3, 21.0)
    field = FieldMap.of(lake, belief, unit="mg/L", quantity="oxygen", title="lake")
    [tiff] = export_map(field, tmp_path / "lake.tif", "geotiff")
    mean, _ = export_map(field, tmp_path / "lake.asc", "asc")
    for file, datum in ((tiff, (8.25, 47.5)), (mean, None)):
        again = built(str(file), spacing=[7, 9], value="oxygen")
        assert again.datum == datum
        assert again.n == lake.n
        order = np.lexsort(again.positions.T), np.lexsort(lake.positions.T)
        there, here = again.positions[order[0]], lake.positions[order[1]]
        np.testing.assert_allclose(there, here, rtol=0.0, atol=2e-3)
        kept = again.numbers["oxygen"][order[0]]
        np.testing.assert_allclose(kept, field.mean[order[1]], rtol=1e-4)


def plain(west: float, south: float, cell: float, columns: int = 40, rows: int = 30) -> str:
    head = [f"ncols {columns}", f"nrows {rows}", f"xllcorner {west}", f"yllcorner {south}"]
    return "\n".join([*head, f"cellsize {cell}", *[" ".join(["7"] * columns)] * rows]) + "\n"


def test_a_raster_that_does_not_say_what_it_is_in(tmp_path: Path) -> None:
    """Degrees where they can be and lie within 5 of each other, else metres; a note says so."""
    for where, degrees in (
        ((8.2, 47.1, 0.0005), True),  # a lake
        ((8.0, 47.0, 1.0 / 120.0, 120, 120), True),  # a tile of a whole degree
        ((358.5, 47.0, 1.0 / 120.0, 120, 120), True),  # longitudes of 0 … 360
        ((8.0, 47.0, 1.0, 10, 8), False),  # a yard
        ((0.0, 0.0, 1.0, 60, 40), False),  # an arena that begins at its origin
        ((-12.5, -8.0, 0.25, 100, 64), False),  # or has it in the middle
        ((2600000.0, 1200000.0, 5.0), False),  # a national grid
    ):
        file = write(tmp_path, plain(*where))
        assert (built(file).datum is not None) == degrees
        width, height = np.ptp(built(file, crs="local").positions, axis=0)
        columns, rows = where[3:] or (40, 30)
        assert width == pytest.approx(where[2] * columns, rel=0.2)
        assert height == pytest.approx(where[2] * rows, rel=0.2)
        (tmp_path / "bay.prj").write_text("local\n")
        assert built(file).datum is None
        (tmp_path / "bay.prj").unlink()


def test_degrees_that_are_declared_as_metres_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    file = write(tmp_path, plain(8.2, 47.1, 0.0005))
    (tmp_path / "bay.prj").write_text("EPSG:32632")
    with pytest.raises(MapError, match=r"EPSG:32632, whose unit is metres, but look like"):
        built(file)


def packed(path: Path, stored: np.ndarray, *, crs: Any = "EPSG:32632", **more: Any) -> str:
    """Write bands as they are stored; `more` has names, scales, offsets, units, nodata."""
    rasterio = pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
    layers = stored if stored.ndim == 3 else stored[None]
    count, rows, columns = layers.shape
    how: dict[str, Any] = {"driver": "GTiff", "count": count, "dtype": layers.dtype, "crs": crs}
    how["transform"] = rasterio.Affine(10, 0, 500_000, 0, -10, 5_000_000)
    how["nodata"] = more.pop("nodata", None)
    with rasterio.open(path, "w", width=columns, height=rows, **how) as out:
        out.write(layers)
        for key, values in more.items():
            setattr(out, key, values)
    return str(path)


def test_scale_offset_and_unit_of_a_band_count(tmp_path: Path) -> None:
    stored = np.arange(200, 212, dtype=np.int16).reshape(3, 4)
    for more, low, high in (
        ({"scales": (0.01,)}, -2.11, -2.0), ({"scales": (-0.5,), "offsets": (10.0,)}, -95.5, -90.0),
        ({"units": ("cm",)}, -2.11, -2.0), ({"units": ("ft",)}, -211 * 0.3048, -200 * 0.3048),
        ({}, -211.0, -200.0),
    ):  # fmt: skip
        file = packed(tmp_path / "a.tif", stored, **more)
        found = heights_of(built(file, spacing=10, value="depth"))
        assert (found.min(), found.max()) == (
            pytest.approx(low, rel=1e-3),
            pytest.approx(high, rel=1e-3),
        )
    assert built(packed(tmp_path / "a.tif", stored, units=("kg",)), value="salt").n == 12
    with pytest.raises(MapError):
        built(packed(tmp_path / "a.tif", stored, units=("kg",)), value="depth")


def test_a_band_is_found_by_its_name(tmp_path: Path) -> None:
    layers = np.stack([np.full((3, 4), 40.0), np.full((3, 4), 3.0), np.full((3, 4), 0.1)])
    names = ("Density", "Depth (m)", "Uncertainty")
    file = packed(tmp_path / "a.tif", layers, descriptions=names)
    for value, height in (("depth", -3.0), ("DEPTH", -3.0)):
        np.testing.assert_allclose(heights_of(built(file, value=value)), height, rtol=1e-3)
    made = built(file, value="uncertainty")
    assert isinstance(made, GraphTopology)
    assert made.numbers["uncertainty"].max() == pytest.approx(0.1)
    with pytest.raises(MapError, match="Density, Depth"):
        built(file, value="height")
    plain = packed(tmp_path / "b.tif", layers)
    np.testing.assert_allclose(heights_of(built(plain, value="height")), 40.0, rtol=1e-3)


def test_depths_of_one_sign_and_fill_values(tmp_path: Path) -> None:
    ramp = np.arange(1.0, 13.0).reshape(3, 4)
    for values, low in ((ramp, -12.0), (-ramp, -12.0)):
        found = heights_of(built(packed(tmp_path / "a.tif", values), value="depth"))
        assert found.min() == pytest.approx(low, rel=1e-3)
    with pytest.raises(MapError, match="above 0"):
        built(packed(tmp_path / "a.tif", ramp - 5.5), value="depth")
    for fill, nodata in ((-9999.0, None), (1e20, None), (-3.4028235e38, None), (7.0, 7.0)):
        values = np.where(ramp < 4, fill, ramp)
        file = packed(tmp_path / "a.tif", values, nodata=nodata)
        assert built(file, spacing=10, value="height").n == (9 if nodata is None else 8)
    for head in ("", "NODATA_value -9999\n", "nodata_value -32768\n"):
        fill = head.split()[1] if head else "-9999"
        text = BAY.replace("NODATA_value -9999\n", head).replace("-9999 ", f"{fill} ")
        assert (
            built(write(tmp_path, text.replace("-9999\n", f"{fill}\n")), spacing=[10, 20]).n == 14
        )


def test_control_points_place_a_raster(tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
    point = rasterio.control.GroundControlPoint
    corners = [
        (0, 0, 8.0, 47.0),
        (0, 4, 8.0004, 47.0),
        (3, 0, 8.0, 46.9997),
        (3, 4, 8.0004, 46.9997),
    ]
    path = tmp_path / "a.tif"
    with rasterio.open(
        path, "w", driver="GTiff", width=4, height=3, count=1, dtype="float64",
        gcps=[point(*c) for c in corners], crs="EPSG:4326",
    ) as out:  # fmt: skip
        out.write(np.ones((3, 4)), 1)
    places = built(str(path))
    assert places.datum == pytest.approx((8.0002, 46.99985), abs=1e-5)


def test_keys_that_do_not_fit(tmp_path: Path) -> None:
    for more, message in (
        ({"columns": 5}, "columns: has no meaning for kind 'grid' from a raster"),
        ({"heights": [0, -2]}, "heights: has no meaning"),
        ({"unknown": "free"}, "unknown: has no meaning"),
        ({"climb_speed": 0.5}, "climb_speed: is for a grid with heights; give heights"),
        ({"value": "x"}, "value: expected the name of a height or of a number of its own, got 'x'"),
    ):
        with pytest.raises(ConfigError, match=message):
            built(write(tmp_path), **more)


def test_a_geotiff_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rasterio = pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
    broken = write(tmp_path, "II*\0 and nothing else", "b.tif")
    with pytest.raises(MapError, match=r"b\.tif: cannot be read by the driver GTiff"):
        built(broken)
    good = geotiff(tmp_path / "g.tif", np.ones((3, 4)), rasterio.Affine(5, 0, 0, 0, -5, 15), None)
    assert built(good).n == 12
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(MissingDependencyError, match=r"gp_active_sensing\[maps\].*AAIGrid"):
        built(good)


VRT = """<VRTDataset rasterXSize="4" rasterYSize="3"><VRTRasterBand dataType="Float64" band="1">
<SimpleSource><SourceFilename>{file}</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>"""
WMS = """<GDAL_WMS><Service name="TMS"><ServerUrl>http://127.0.0.1:9/${{z}}</ServerUrl></Service>
<DataWindow><SizeX>4</SizeX><SizeY>3</SizeY></DataWindow><BandsCount>1</BandsCount></GDAL_WMS>"""
ASCII = "ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2\n"


def test_only_the_tiff_driver_opens_a_tif(tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
    where = rasterio.Affine(5, 0, 0, 0, -5, 15)
    file = geotiff(tmp_path / "secret.tif", np.arange(12.0).reshape(3, 4), where, None)
    field = from_mapping(FieldConfig, {"kind": "raster", "file": "other.tif"})
    other = tmp_path / "other.tif"
    for text in (VRT, WMS, ASCII):
        other.write_text(text.format(file=file))
        with pytest.raises(MapError):
            read_raster(other)
        with pytest.raises(MapError):
            read_field_raster(other, field)


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")  # the test writes such a file
def test_no_file_beside_a_geotiff_is_opened_but_its_world_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rasterio = pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
    values = np.arange(12.0).reshape(3, 4)
    where = rasterio.Affine(5, 0, 100, 0, -5, 15)
    secret = geotiff(tmp_path / "secret.tif", values + 50.0, where, None)
    plain = Path(geotiff(tmp_path / "plain.tif", values, None, None))
    for end in (".ovr", ".msk"):
        Path(f"{plain}{end}").write_text(VRT.format(file=secret))
    Path(f"{plain}.aux.xml").write_text(
        "<PAMDataset><GeoTransform>7,1,0,0,0,1</GeoTransform></PAMDataset>"
    )
    with _opened(plain) as (found, transform):
        assert transform.is_identity
        assert found.overviews(1) == []
        assert [Path(name).name for name in found.files] == ["plain.tif"]
    field = from_mapping(FieldConfig, {"kind": "raster", "file": "plain.tif"})
    read_field_raster(plain, field)
    assert caplog.messages  # nothing says where it lies
    plain.with_suffix(".tfw").write_text("5\n0\n0\n-5\n102.5\n12.5\n")
    assert read_raster(plain).transform == where[:6]
    raster = read_field_raster(plain, field)
    assert raster.raster.transform == (5.0, 0.0, 100.0, 0.0, 5.0, 0.0)
    plain.with_suffix(".tfw").write_text("5 0 0 -5 102.5")
    with pytest.raises(MapError):
        read_raster(plain)
    with rasterio.open(secret, "r+", driver="GTiff") as out:
        out.update_tags(ns="OVERVIEWS", OVERVIEW_FILE=str(plain))
    with pytest.raises(MapError):
        read_raster(Path(secret))


def test_places_keep_away_from_cells_without_data(tmp_path: Path) -> None:
    """The edge of the data counts as a shore."""
    values = np.ones((20, 20))
    values[8:12, 8:12] = -9999
    path = tmp_path / "pond.asc"
    head = "ncols 20\nnrows 20\nxllcorner 0\nyllcorner 0\ncellsize 1\n"
    path.write_text(head + "\n".join(" ".join(map(str, row)) for row in values.tolist()))
    keys = {"file": str(path), "crs": "local", "spacing": 1.0}
    places = build_topology(from_mapping(MapConfig, {**keys, "inflation": 2.0}))
    x, y = places.positions.T
    edge = np.minimum(np.minimum(x, 20.0 - x), np.minimum(y, 20.0 - y))
    hole = np.hypot(*(np.maximum(np.abs(axis - 10.0) - 2.0, 0.0) for axis in (x, y)))
    assert edge.min() == 2.5
    assert 2.0 <= hole.min() < 2.5
    assert any("inflation 2 m takes" in note for note in places.notes)


def test_rasters_and_points_across_the_180th_meridian(tmp_path: Path) -> None:
    pytest.importorskip("pyproj")
    row = " ".join(map(str, range(1, 11)))
    head = "ncols 10\nnrows 10\nxllcorner 179.95\nyllcorner -17\ncellsize 0.01\n"
    (tmp_path / "bay.asc").write_text(head + f"{row}\n" * 10)
    points = "name,lon,lat\na,179.95,-17\nb,-179.95,-17\nc,180.0,-16.9\n"
    (tmp_path / "bay.csv").write_text(points)
    for file, keys in (("bay.asc", {"crs": "EPSG:4326", "value": "silt"}), ("bay.csv", {})):
        places = build_topology(from_mapping(MapConfig, {"file": file, **keys}), base_dir=tmp_path)
        assert abs((places.datum or (0, 0))[0]) == pytest.approx(180.0)
        assert 9_000.0 < np.ptp(places.positions[:, 0]) < 11_000.0
        if file == "bay.asc":
            assert np.ptp(places.numbers["silt"]) == pytest.approx(9.0)
