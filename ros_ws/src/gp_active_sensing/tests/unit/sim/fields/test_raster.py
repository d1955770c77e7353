from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.sim import FieldConfig, build_truth
from gp_active_sensing.topology import Topology, make_grid

HEADER = "ncols 3\nnrows 2\nxllcorner 100.0\nyllcorner 50.0\ncellsize 10\nNODATA_value -9999\n"
GRID = HEADER + "4 5 6\n1 2 3\n"
"""Two rows, the northern one first; its south-west centre is (105, 55)."""


def ascii_file(folder: Path, text: str) -> str:
    path = folder / "grid.asc"
    path.write_text(text)
    return str(path)


def values(file: str, topology: Topology, **more: Any) -> np.ndarray:
    return build_truth(FieldConfig(kind="raster", file=file, **more), topology, 0).at(0.0)


def centres(columns: int = 3, rows: int = 2, **more: Any) -> Topology:
    return make_grid(columns, rows, 10.0, origin=more.pop("origin", (105.0, 55.0)), **more)


def test_values_stand_at_the_centres_and_rows_run_south(tmp_path: Path) -> None:
    file = ascii_file(tmp_path, GRID)
    assert values(file, centres()).tolist() == [1, 2, 3, 4, 5, 6]
    assert values(file, centres(), scale=2.0, offset=-1.0).tolist() == [1, 3, 5, 7, 9, 11]


def test_between_centres_it_is_bilinear_and_level_at_the_edge(tmp_path: Path) -> None:
    file = ascii_file(tmp_path, GRID)
    between = make_grid(2, 1, 10.0, origin=(110.0, 57.5))
    # A quarter of the way from the southern row to the northern one, half way between columns.
    np.testing.assert_allclose(values(file, between), [2.25, 3.25])
    corners = make_grid(2, 2, 1.0, origin=(100.0, 50.0))
    assert values(file, corners).tolist() == [1, 1, 1, 1]
    far = make_grid(1, 1, 1.0, origin=(130.0, 70.0))  # the north-east corner itself
    assert values(file, far).tolist() == [6]


def test_the_same_grid_in_other_words(tmp_path: Path) -> None:
    for text in (
        GRID,
        GRID.upper().replace("E+", "e+"),
        "\ufeff" + GRID.replace("\n", "\r\n"),
        GRID.replace("xllcorner 100.0", "xllcenter 105").replace("yllcorner 50", "yllcenter 55"),
        GRID.replace("cellsize 10", "dx 10\ndy 10"),
        GRID.replace("NODATA_value -9999\n", ""),
        GRID.replace("4 5 6\n1 2 3\n", "4 5\n6 1\n\n2\t3"),  # rows over several lines
        GRID.replace("4 5 6", " 4.0 5e0   6"),
    ):
        assert values(ascii_file(tmp_path, text), centres()).tolist() == [1, 2, 3, 4, 5, 6]


def test_places_without_data_are_named(tmp_path: Path) -> None:
    for hole in ("-9999", "-9999.0", "nan"):
        file = ascii_file(tmp_path, GRID.replace("1 2 3", f"1 {hole} 3"))
        with pytest.raises(MapError, match=r"grid\.asc: no data at 1 of 6 places: c1r0; fill"):
            values(file, centres())
        # Cells beside a hole are whole; between them and the hole nothing is known.
        ring = centres(obstacles=[[(114, 54), (116, 56)]])
        assert values(file, ring).tolist() == [1, 3, 4, 5, 6]
        with pytest.raises(MapError, match="no data at 1 of 1 places"):
            values(file, make_grid(1, 1, 1.0, origin=(109.0, 55.0)))


def test_places_outside_are_named_with_both_extents(tmp_path: Path) -> None:
    wide = centres(origin=(105.0, 35.0))
    expected = (
        r"grid\.asc: covers x 100 … 130, y 50 … 70 m, the places of map 'grid' x 105 … 125, "
        r"y 35 … 45 m; outside are 6 of 6 places: c0r0, c1r0, c2r0, c0r1, c1r1, …; move"
    )
    with pytest.raises(MapError, match=expected):
        values(ascii_file(tmp_path, GRID), wide)


def test_broken_grids_say_where(tmp_path: Path) -> None:
    for old, new, message in (
        ("4 5 6\n", "", r"ends after 3 of 6 values \(3 × 2 cells\)"),
        ("1 2 3\n", "1 2 3 4\n", "line 8: more than the 6 values of 3 × 2 cells"),
        ("1 2 3", "1 2,5 3", "line 8: expected a number, got '2,5'; decimals take a point"),
        ("1 2 3", "1 inf 3", "line 8: expected finite numbers"),
        ("ncols 3\n", "", "the header of an ESRI ASCII grid needs ncols; it has: nrows, "),
        ("nrows 2", "nrows nan", "nrows: expected a whole number of 1 or more, got nan"),
        ("ncols 3", "ncols 100000000", "cells are more than 25000000; cut it down"),
        ("ncols 3", "cols 3", r"line 1: expected a key .* got 'cols'. Did you mean 'ncols'\?"),
        ("cellsize 10", "cellsize 0", "cellsize: expected a number above 0, got 0"),
        ("xllcorner 100.0", "xllcorner inf", "xllcorner: expected a finite number"),
        ("nrows 2", "nrows 2\nNROWS 2", "line 3: NROWS is there twice"),
        (GRID, "<html><body>Not found</body></html>", "line 1: expected a key"),
    ):
        assert old in GRID
        with pytest.raises(MapError, match=message) as caught:
            values(ascii_file(tmp_path, GRID.replace(old, new)), centres())
        assert "grid.asc" in str(caught.value)


def test_formats_that_are_not_read_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "dem.img").write_bytes(b"II*\0")
    with pytest.raises(MapError, match=r"got '\.img'; .*gdal_translate -of AAIGrid"):
        values(str(tmp_path / "dem.img"), centres())


def test_keys_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"field\.file: .*no file 'nothing\.asc'"):
        values("nothing.asc", centres())
    file = ascii_file(tmp_path, GRID)
    with pytest.raises(MapError, match=r"field\.layer: an ESRI ASCII grid is one layer"):
        values(file, centres(), layer=0)


def geotiff(path: Path, layers: np.ndarray, **more: Any) -> str:
    """Write layers (k, rows, columns), north first, with cells of 10 m from (100, 50)."""
    rasterio = pytest.importorskip("rasterio")
    count, rows, columns = layers.shape
    how = {
        "transform": rasterio.Affine(10.0, 0.0, 100.0, 0.0, -10.0, 50.0 + 10.0 * rows),
        "dtype": layers.dtype,
        **more,
    }
    with rasterio.open(
        path, "w", driver="GTiff", width=columns, height=rows, count=count, **how
    ) as out:
        out.write(layers)
    return str(path)


NORTH_FIRST = np.array(
    [[[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]], [[40.0, 50.0, 60.0], [10.0, 20.0, 30.0]]]
)


def test_a_geotiff_in_metres(tmp_path: Path) -> None:
    file = geotiff(tmp_path / "a.tif", NORTH_FIRST)
    assert values(file, centres()).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert values(file, centres(), layer=1).tolist() == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    with pytest.raises(MapError, match=r"field\.layer: .*has layers 0 … 1, got 2"):
        values(file, centres(), layer=2)


def test_a_geotiff_that_says_where_on_earth_it_lies(tmp_path: Path) -> None:
    """A plane in degrees, under a map that knows its origin."""
    rasterio = pytest.importorskip("rasterio")
    x, y = np.meshgrid(8.0 + 1e-4 * (np.arange(60) - 29.5), 47.0 - 1e-4 * (np.arange(60) - 29.5))
    plane = (1e4 * (x - 8.0) + 2e4 * (y - 47.0))[None]
    where = rasterio.Affine(1e-4, 0.0, 8.0 - 3e-3, 0.0, -1e-4, 47.0 + 3e-3)
    file = geotiff(tmp_path / "earth.tif", plane, transform=where, crs="EPSG:4326")
    here = make_grid(5, 5, 20.0, origin=(-40.0, -40.0)).located((8.0, 47.0))
    found = values(file, here)
    east, north = here.positions[:, 0] / 76_030.0, here.positions[:, 1] / 111_180.0  # degrees
    assert found == pytest.approx(1e4 * east + 2e4 * north, abs=0.05)
    with pytest.raises(MapError, match="is in degrees, and the map does not say"):
        values(file, make_grid(5, 5, 20.0))
