"""Rasters as the truth: ESRI ASCII grids and NumPy arrays, good and broken."""

from __future__ import annotations

import importlib.util
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.config import from_mapping
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


# -- sampling --------------------------------------------------------------------------------------


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


def test_a_plane_is_sampled_exactly(tmp_path: Path) -> None:
    """Bilinear interpolation keeps ``a + b x + c y + d x y``."""
    x, y = np.meshgrid(5.0 + 10.0 * np.arange(8), 5.0 + 10.0 * np.arange(6))
    file = tmp_path / "plane.npy"
    np.save(file, (2.0 + 0.3 * x - 0.7 * y + 0.01 * x * y)[::-1])
    grid = make_grid(9, 7, 7.7, origin=(5.1, 5.3))
    found = values(str(file), grid, cell=10.0, origin=(0.0, 0.0))
    x, y = grid.positions.T
    np.testing.assert_allclose(found, 2.0 + 0.3 * x - 0.7 * y + 0.01 * x * y, rtol=1e-12)


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


def test_the_user_says_that_cells_are_not_square(tmp_path: Path) -> None:
    grid = make_grid(3, 2, (10.0, 20.0), origin=(5.0, 10.0))
    given: dict[str, Any] = {"origin": [0.0, 0.0], "cell": [10.0, 20.0], "kind": "raster"}
    array = tmp_path / "a.npy"
    np.save(array, [[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]])
    files = [str(array), ascii_file(tmp_path, GRID)]
    if importlib.util.find_spec("rasterio"):
        files.append(geotiff(tmp_path / "a.tif", np.load(array)[None]))
    for file in files:
        config = from_mapping(FieldConfig, given | {"file": file})
        assert build_truth(config, grid, 0).at(0.0).tolist() == [1, 2, 3, 4, 5, 6]
    for cell in ([10.0, 0.0], [10.0, 20.0, 30.0], [10.0, -1.0], "wide"):
        with pytest.raises(ConfigError, match=r"cell"):
            from_mapping(FieldConfig, given | {"file": files[0], "cell": cell})


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


# -- broken ASCII grids ----------------------------------------------------------------------------


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


# -- arrays ----------------------------------------------------------------------------------------

ARRAY = np.array([[4, 5, 6], [1, 2, 3]])
PLACED: dict[str, Any] = {"cell": 10.0, "origin": (100.0, 50.0)}


def test_archives_with_one_and_several_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", height=ARRAY)
    np.savez_compressed(tmp_path / "two.npz", height=ARRAY, mask=ARRAY > 2)
    one, two = str(tmp_path / "one.npz"), str(tmp_path / "two.npz")
    expected = [1, 2, 3, 4, 5, 6]
    assert values(one, centres(), **PLACED).tolist() == expected
    assert values(two, centres(), value_column="height", **PLACED).tolist() == expected
    assert values(two, centres(), value_column="mask", **PLACED).tolist() == [0, 0, 1, 1, 1, 1]
    with pytest.raises(MapError, match=r"no array 'value'.* It has: height, mask; name one"):
        values(two, centres(), **PLACED)
    with pytest.raises(MapError, match=r"no array 'hieght'. Did you mean 'height'\?"):
        values(one, centres(), value_column="hieght", **PLACED)


def test_a_layer_of_three_axes(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.stack([ARRAY, 10 * ARRAY]))
    file = str(tmp_path / "a.npy")
    assert values(file, centres(), layer=1, **PLACED).tolist() == [10, 20, 30, 40, 50, 60]
    with pytest.raises(MapError, match=r"2 axes, got shape \(2, 2, 3\); pick one with field.layer"):
        values(file, centres(), **PLACED)
    with pytest.raises(MapError, match=r"field\.layer: .* has layers 0 … 1, got 2"):
        values(file, centres(), layer=2, **PLACED)


def test_an_array_must_be_placed(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ARRAY)
    with pytest.raises(MapError, match=r"give field\.cell and field\.origin in metres"):
        values(str(tmp_path / "a.npy"), centres())
    with pytest.raises(MapError, match=r"give field\.origin in metres"):
        values(str(tmp_path / "a.npy"), centres(), cell=1.0)


class Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("exploded",)


def test_pickles_are_refused_unopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    objects = np.array([[Bomb()]], dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "b.npz", objects)
    (tmp_path / "c.npy").write_bytes(pickle.dumps(Bomb()))
    for name in ("a.npy", "b.npz", "c.npy"):
        with pytest.raises(MapError, match=rf"{name}: cannot be read as .* without Python objects"):
            values(str(tmp_path / name), centres(), value_column="arr_0", **PLACED)
    assert not (tmp_path / "exploded").exists()


def test_arrays_that_are_no_rasters(tmp_path: Path) -> None:
    for array, message in (
        (np.zeros(5), r"expected an array with 2 axes, got shape \(5,\)$"),
        (np.zeros((0, 4)), r"expected 1 … 25000000 cells, got shape \(0, 4\)"),
        (np.zeros((2, 3), dtype=complex), "expected an array of numbers, got complex128"),
        (np.array([[1.0, np.inf, 0.0], [0.0, 0.0, 0.0]]), "row 0, column 1: expected a finite"),
    ):
        np.save(tmp_path / "a.npy", array)
        with pytest.raises(MapError, match=message):
            values(str(tmp_path / "a.npy"), centres(), **PLACED)


def test_files_cut_short_or_of_another_kind(tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", np.zeros((50, 50)))
    np.savez_compressed(tmp_path / "whole.npz", np.random.default_rng(0).random((50, 50)))
    for suffix in (".npy", ".npz"):
        whole = (tmp_path / f"whole{suffix}").read_bytes()
        for size in (0, 3, 60, len(whole) // 2):
            (tmp_path / f"cut{suffix}").write_bytes(whole[:size])
            with pytest.raises(MapError, match=f"cut{suffix}: cannot be read as a NumPy"):
                values(str(tmp_path / f"cut{suffix}"), centres(), **PLACED)
    damaged = bytearray((tmp_path / "whole.npz").read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    (tmp_path / "bad.npz").write_bytes(damaged)
    with pytest.raises(MapError, match=r"bad\.npz: cannot be read"):
        values(str(tmp_path / "bad.npz"), centres(), **PLACED)


def test_sizes_beyond_reason_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    header = np.lib.format.magic(1, 0)
    shape = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000)}"
    text = shape.ljust(117) + "\n"
    lie = header + len(text).to_bytes(2, "little") + text.encode() + b"\0" * 80
    (tmp_path / "lie.npy").write_bytes(lie)
    with pytest.raises(MapError, match=r"lie\.npy: cannot be read"):
        values(str(tmp_path / "lie.npy"), centres(), **PLACED)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("a.npy", "w", force_zip64=True) as member:
            for _ in range(410):
                member.write(b"\0" * 1_000_000)
    with pytest.raises(MapError, match=r"array 'a\.npy' has 410 MB, more than 25000000 cells need"):
        values(str(tmp_path / "bomb.npz"), centres(), **PLACED)


# -- configuration ---------------------------------------------------------------------------------


def test_formats_that_are_not_read_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "dem.img").write_bytes(b"II*\0")
    with pytest.raises(MapError, match=r"got '\.img'; .*gdal_translate -of AAIGrid"):
        values(str(tmp_path / "dem.img"), centres())


def test_keys_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"field\.file: .*no file 'nothing\.asc'"):
        values("nothing.asc", centres())
    file = ascii_file(tmp_path, GRID)
    for wrong in ({"slot_seconds": 1.0}, {"layer": 0}):
        with pytest.raises(MapError, match=r"field\..*: is for \.npy, \.npz and \.tif"):
            values(file, centres(), **wrong)


# -- data ------------------------------------------------------------------------------------------


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
