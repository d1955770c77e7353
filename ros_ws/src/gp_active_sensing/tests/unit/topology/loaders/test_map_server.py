"""Maps of map_server: images and what their YAML file says of them, as robots leave them."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import yaml

import gp_active_sensing as gas
from gp_active_sensing.errors import MapError, MissingDependencyError
from gp_active_sensing.topology.loaders.map_server import load, read_image

HOUSE: dict[str, Any] = {
    "image": "house.pgm",
    "resolution": 0.5,
    "origin": [-1.0, 2.0, 0.0],
    "negate": 0,
    "occupied_thresh": 0.65,
    "free_thresh": 0.196,
}
SHADES = np.array(
    [
        [0, 0, 0, 0],  # the top row: a wall in the north
        [254, 254, 205, 205],
        [254, 254, 254, 0],
    ],
    dtype=np.uint8,
)
VALUES = [[0, 0, 0, 100], [0, 0, -1, -1], [100, 100, 100, 100]]
"""Of the same, from south to north."""


def write(folder: Path, shades: npt.NDArray[Any] = SHADES, **changes: Any) -> Path:
    rows, columns = shades.shape
    header = f"P5\n# CREATOR: map_saver 0.050 m/pix\n{columns} {rows}\n255\n"
    (folder / "house.pgm").write_bytes(header.encode() + shades.tobytes())
    said = {key: value for key, value in {**HOUSE, **changes}.items() if value is not None}
    (folder / "house.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    return folder / "house.yaml"


def test_trinary(tmp_path: Path) -> None:
    grid, notes = load(write(tmp_path))
    assert grid.values.tolist() == VALUES
    assert (grid.resolution, grid.origin, grid.yaw) == (0.5, (-1.0, 2.0), 0.0)
    assert notes == ()
    by_default = write(tmp_path, negate=None, occupied_thresh=None, free_thresh=None)
    assert load(by_default)[0].values.tolist() == VALUES


def test_modes_and_negate(tmp_path: Path) -> None:
    """In mode scale values between the thresholds are the share of the way to occupied."""
    thresholds = {"free_thresh": 0.1, "occupied_thresh": 0.9}
    for shades, more, values in (
        ([0, 100, 255], {"negate": 1}, [0, -1, 100]),
        ([0, 100, 255], {"negate": 0}, [100, -1, 0]),
        ([255, 204, 153, 102, 51, 0], {"mode": "scale", **thresholds}, [0, 12, 37, 62, 87, 100]),
        ([0, 40, 100, 101, 255], {"mode": "raw"}, [0, 40, 100, -1, -1]),
    ):
        path = write(tmp_path, np.array([shades], dtype=np.uint8), **more)
        assert load(path)[0].values.tolist() == [values]


def test_unknown_cells_that_count_as_free_are_said(tmp_path: Path) -> None:
    """The free_thresh that Nav2's map_saver writes makes its own grey of unknown cells free."""
    grid, notes = load(write(tmp_path, free_thresh=0.25))
    assert grid.counts()["unknown"] == 0
    assert "2 pixels have the shade 205" in notes[0]
    assert "write free_thresh: 0.196" in notes[0]


def test_yaw_and_an_origin_without_it(tmp_path: Path) -> None:
    assert load(write(tmp_path, origin=[1, 2, 0.5]))[0].yaw == 0.5
    assert load(write(tmp_path, origin=[1, 2]))[0].yaw == 0.0


def test_plain_and_16_bit_images(tmp_path: Path) -> None:
    plain = tmp_path / "plain.pgm"
    plain.write_text("P2 # a comment\n2 2\n# another\n15\n0 15\n5 10\n", encoding="ascii")
    np.testing.assert_allclose(read_image(plain)[0], [[0, 255], [85, 170]])
    wide = tmp_path / "wide.pgm"
    values = np.array([[0, 65535], [257, 514]], dtype=">u2")
    wide.write_bytes(b"P5 2 2 65535\n" + values.tobytes())
    np.testing.assert_allclose(read_image(wide)[0], [[0, 255], [1, 2]])


def test_png_in_grey_in_colour_and_with_transparent_pixels(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(SHADES).save(tmp_path / "house.png")
    grid, _ = load(write(tmp_path, image="house.png"))
    assert grid.values.tolist() == VALUES
    colour = np.repeat(SHADES[:, :, None], 4, axis=2)
    colour[:, :, 3] = 255
    colour[2, 0, 3] = 0  # not opaque: not known
    image.fromarray(colour).save(tmp_path / "house.png")
    values = [list(row) for row in VALUES]
    values[0][0] = -1
    assert load(tmp_path / "house.yaml")[0].values.tolist() == values
    image.fromarray(SHADES).convert("P").save(tmp_path / "house.png")
    assert load(tmp_path / "house.yaml")[0].values.tolist() == VALUES


def test_without_pillow_a_png_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "house.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    path = write(tmp_path, image="house.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingDependencyError, match=r"gp_active_sensing\[maps\]"):
        load(path)


def test_wrong_descriptions(tmp_path: Path) -> None:
    for changes, message in (
        ({"resolution": 0}, "house.yaml: resolution: expected metres above 0"),
        ({"resolution": "fine"}, "resolution: expected a number"),
        ({"resolution": None}, "resolution: is required and missing"),
        ({"origin": [1]}, "origin: expected x, y and yaw"),
        ({"image": "home.pgm"}, r"there is no file .*home\.pgm; beside house.yaml.*house\.pgm"),
        ({"mode": "colour"}, "mode: expected one of trinary, scale, raw"),
        ({"negate": 2}, "negate: expected 0 or 1, got 2"),
        ({"free_thresh": 0.7}, "free_thresh: expected less than occupied_thresh, 0.65, got 0.7"),
    ):
        with pytest.raises(MapError, match=message):
            load(write(tmp_path, **changes))


def test_another_kind_of_yaml(tmp_path: Path) -> None:
    other = tmp_path / "mission.yaml"
    other.write_text("map: {kind: line}\n", encoding="utf-8")
    with pytest.raises(MapError, match=r"expected a map of map_server, with image.*it has map"):
        load(other)
    other.write_text("image: [", encoding="utf-8")
    with pytest.raises(MapError, match=r"mission\.yaml"):
        load(other)


def test_damaged_images(tmp_path: Path) -> None:
    for data, message in (
        (b"P5\n4 3\n255\n" + bytes(11), "says 4 × 3 pixels, but there are 11; the file is cut"),
        (b"P5\n4\n", "its height is missing"),
        (b"P2\n2 1\n255\n7 x\n", "expected whole numbers after the header of a P2"),
        (b"P2\n2 1\n9\n7 10\n", "a pixel is 10, more than the largest value, 9"),
        (b"P5\n0 3\n255\n", "a PGM of 0 × 3 pixels"),
        (b"P5\n99999 99999\n255\n", "at most 25000000"),
        (b"P5" + b" " * 1_000_000 + b"2 2\n255\n1234", "missing in the first 65536 bytes"),
        (b"P6\n1 1\n255\n\0\0\0", "expected a PGM that begins with P5 or P2, got b'P6'"),
    ):
        path = write(tmp_path)
        (tmp_path / "house.pgm").write_bytes(data)
        with pytest.raises(MapError, match=message):
            load(path)


def test_damaged_png(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    picture = tmp_path / "house.png"
    picture.write_text("no picture", encoding="ascii")
    path = write(tmp_path, image="house.png")
    with pytest.raises(MapError):
        load(path)
    rng = np.random.default_rng(0)
    image.fromarray(rng.integers(0, 255, (90, 90), dtype=np.uint8)).save(picture)
    picture.write_bytes(picture.read_bytes()[:200])
    with pytest.raises(MapError, match="cannot be read as an image, perhaps cut short"):
        load(path)


def test_only_formats_of_maps_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An EPS with the name of a PNG would start Ghostscript."""
    image = pytest.importorskip("PIL.Image")
    eps = pytest.importorskip("PIL.EpsImagePlugin")
    started: list[Any] = []
    monkeypatch.setattr(eps, "Ghostscript", lambda *args, **_: started.append(args))
    picture, path = tmp_path / "house.png", write(tmp_path, image="house.png")
    for kind in ("PNG", "BMP", "EPS", "GIF", "TIFF"):
        image.fromarray(SHADES).save(picture, format=kind)
        if kind in ("PNG", "BMP"):
            assert load(path)[0].values.tolist() == VALUES, kind
            continue
        with pytest.raises(MapError):
            load(path)
    assert not started


def test_the_shipped_house(caplog: pytest.LogCaptureFixture) -> None:
    """Every room with an open door is reached, the closed one and the walls are no places."""
    with caplog.at_level(logging.INFO):
        house = gas.build_topology(gas.MapConfig(file="house", inflation=0.2))
    assert "spacing of 0.4 m" in caplog.text
    assert (house.name, house.frame, house.datum) == ("house", "map", None)
    x, y = house.positions.T
    assert not ((x > 4.5) & (y > 4.0)).any()  # the closed room, in the map's frame
    for room in ((0.0, 0.0), (-2.0, 6.0), (3.0, 6.0), (8.0, -1.2), (8.0, 2.6)):
        assert np.hypot(x - room[0], y - room[1]).min() < 0.7
    assert house.reachable(0, np.zeros(house.n, dtype=np.bool_), house.n).all()
