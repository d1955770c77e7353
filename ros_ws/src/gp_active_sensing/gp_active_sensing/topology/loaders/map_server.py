"""Maps of Nav2's map_server: a YAML file names an image and the meaning of its shades.

A shade v of 0 … 255 is an occupancy of 1 - v / 255, or of v / 255 with `negate`. The modes are:

- trinary: a cell is occupied from `occupied_thresh`, free up to `free_thresh`, else unknown;
- scale: like trinary, but the occupancy rises linearly from 0 to 100 % between the thresholds;
- raw: shades 0 … 100 are values in percent, all other shades are unknown.

A pixel that is not opaque is unknown.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.geometry import MOST_GROUND, OccupancyGrid
from gp_active_sensing.topology.loaders import check_file, fail, fault
from gp_active_sensing.types import BoolArray, FloatArray
from gp_active_sensing.util.lazy import library
from gp_active_sensing.util.yaml_files import load_yaml

_FORMATS = ("PNG", "JPEG", "BMP")
"""Image formats that Pillow may open; for other formats, Pillow may start programs."""
_MOST_HEADER = 1 << 16
"""Largest size of the header of a PGM [bytes]."""
_TOKEN = re.compile(rb"(?:\s|#[^\n]*\n)*(\d+)")


def read_image(path: Path) -> tuple[FloatArray, BoolArray]:
    """Return the shades of an image, 0 (black) … 255 (white), and flags of transparent pixels.

    The top row comes first.

    Raises:
        MapError: the file is no image, is cut short, or is too large.
        MissingDependencyError: an image other than PGM needs Pillow, which is missing.
    """
    check_file(path, 4 * MOST_GROUND)
    data = path.read_bytes()
    if data[:2] in (b"P5", b"P2"):
        shades = _pgm(data, path)
        return shades, np.zeros(shades.shape, dtype=np.bool_)
    if path.suffix.lower() == ".pgm":
        raise fault(
            path,
            f"expected a PGM that begins with P5 or P2, got {data[:2]!r}; save the map "
            "again, as .pgm or .png",
        )
    return _with_pillow(path)


def _pgm(data: bytes, path: Path) -> FloatArray:
    at, header, head = 2, [], data[:_MOST_HEADER]
    for what in ("width", "height", "largest value"):
        found = _TOKEN.match(head, at)
        if found is None or len(found[1]) > 9:
            where = f" in the first {_MOST_HEADER} bytes" if len(data) > _MOST_HEADER else ""
            raise fault(path, f"is no whole PGM: its {what} is missing{where}")
        header.append(int(found[1]))
        at = found.end()
    width, height, largest = header
    if not 0 < width * height <= MOST_GROUND or not 0 < largest < 65536:
        raise fault(
            path,
            f"a PGM of {width} × {height} pixels with values up to {largest}; expected at "
            f"least one pixel, at most {MOST_GROUND}, and values up to 1 … 65535",
        )
    if data.startswith(b"P5"):
        kind = np.dtype(np.uint8 if largest < 256 else ">u2")
        count = max(0, min((len(data) - at - 1) // kind.itemsize, width * height))
        values = np.frombuffer(data, kind, count, at + 1) if count else np.empty(0)
    else:
        words = re.sub(rb"#[^\n]*", b"", data[at:]).split()
        try:
            values = np.array(words, dtype=np.int64)
        except (ValueError, OverflowError):
            bad = next(word for word in words if not word.isdigit())
            raise fault(
                path, f"expected whole numbers after the header of a P2, got {bad[:20]!r}"
            ) from None
    if len(values) < width * height:
        raise fault(
            path,
            f"its header says {width} × {height} pixels, but there are {len(values)}; the file "
            "is cut short, or of another size; copy it again",
        )
    pixels = values[: width * height].reshape(height, width)
    if pixels.max() > largest:
        raise fault(path, f"a pixel is {pixels.max()}, more than the largest value, {largest}")
    return pixels.astype(np.float64) * (255.0 / largest)


def _with_pillow(path: Path) -> tuple[FloatArray, BoolArray]:
    library(
        "PIL",
        f"{path}: a {path.suffix or 'file'} is read with Pillow",
        besides=", or save the map as .pgm, which needs no library",
    )
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=_FORMATS) as image:
            width, height = image.size
            if width * height > MOST_GROUND:
                raise fault(
                    path, f"{width} × {height} pixels are more than {MOST_GROUND}; cut it down"
                )
            if image.mode.startswith("I") or image.mode == "F":
                shades = np.asarray(image, dtype=np.float64) / 257.0  # 16 bits
                return shades, np.zeros(shades.shape, dtype=np.bool_)
            pixels = np.asarray(image.convert("RGBA"), dtype=np.uint8)
    except UnidentifiedImageError as error:
        raise fault(path, f"is no image in the formats PGM, {', '.join(_FORMATS)}") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, MapError):
            raise
        raise fault(path, f"cannot be read as an image, perhaps cut short: {error}") from error
    return pixels[:, :, :3].mean(axis=2), pixels[:, :, 3] < 255


_MODES = ("trinary", "scale", "raw")
_UNKNOWN_SHADE = 205.0
"""Shade of unknown cells in images of map_saver."""


@dataclass(frozen=True)
class _MapDescription:
    image: str  # path of the image, relative to the YAML file
    resolution: float  # width of a pixel [m]
    origin: tuple[float, ...]  # x, y and yaw of the lower left corner [m, m, rad]
    negate: int | bool = 0  # 1: white is occupied
    occupied_thresh: float = 0.65  # smallest occupancy of an occupied cell
    free_thresh: float = 0.196  # largest occupancy of a free cell
    mode: str = "trinary"  # meaning of shades

    def __post_init__(self) -> None:
        ordered = self.mode == "raw" or self.free_thresh < self.occupied_thresh
        checks = (
            ("resolution", 0.0 < self.resolution < math.inf, "metres above 0"),
            ("origin", len(self.origin) in (2, 3), "x, y and yaw"),
            ("negate", self.negate in (0, 1), "0 or 1"),
            ("occupied_thresh", 0.0 <= self.occupied_thresh <= 1.0, "0 … 1"),
            ("free_thresh", 0.0 <= self.free_thresh <= 1.0, "0 … 1"),
            ("free_thresh", ordered, f"less than occupied_thresh, {self.occupied_thresh:g}"),
            ("mode", self.mode in _MODES, f"one of {', '.join(_MODES)}"),
        )
        problems = [
            f"{key}: expected {what}, got {getattr(self, key)!r:.60}"
            for key, fine, what in checks
            if not fine
        ]
        if problems:
            raise ConfigError(problems)


def load(path: Path) -> tuple[OccupancyGrid, tuple[str, ...]]:
    """Read a map of map_server; return the occupancy grid in the map's frame, and notes."""
    check_file(path)
    meta = _described(path)
    picture = Path(meta.image).expanduser()
    if not picture.is_absolute():
        picture = path.parent / picture
    if not picture.is_file():
        near = sorted(p.name for p in path.parent.glob("*") if p.suffix in (".pgm", ".png"))
        hint = f"; beside {path.name} there are {', '.join(near[:5])}" if near else ""
        raise fault(
            path, f"image: there is no file {picture}{hint}; copy it there, or correct image"
        )
    x, y, yaw = (*meta.origin, 0.0)[:3]
    values, notes = _values(*read_image(picture), meta)
    try:
        return OccupancyGrid(values[::-1], meta.resolution, (x, y), yaw), notes
    except MapError as error:
        raise fault(path, f"{error}") from error


def _described(path: Path) -> _MapDescription:
    try:
        whole = load_yaml(path)
    except ConfigError as error:
        raise MapError(str(error)) from error
    needed = ("image", "resolution", "origin")
    if not any(key in whole for key in needed):
        raise fault(
            path,
            f"expected a map of map_server, with {', '.join(needed)}; it has "
            f"{', '.join(map(str, whole)) or 'nothing'}",
        )
    known = _MapDescription.__dataclass_fields__
    given: dict[str, Any] = {key: value for key, value in whole.items() if key in known}
    try:
        return from_mapping(_MapDescription, given)
    except ConfigError as error:
        fail(path, error.problems)
        raise


def _values(
    shades: FloatArray, transparent: BoolArray, meta: _MapDescription
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the occupancy values -1 … 100, (rows, columns) with the top row first, and notes."""
    if meta.mode == "raw":
        raw = np.rint(shades)
        return np.where(raw <= 100.0, raw, -1.0).astype(np.int8), ()
    unknown = np.rint(shades) == _UNKNOWN_SHADE
    # Compute in place: the largest image takes 200 MB.
    occupancy = np.divide(shades, 255.0, out=shades)
    if not meta.negate:
        np.subtract(1.0, occupancy, out=occupancy)
    values = np.full(occupancy.shape, -1, dtype=np.int8)
    if meta.mode == "scale":
        between = (occupancy - meta.free_thresh) / (meta.occupied_thresh - meta.free_thresh)
        values[:] = np.clip(100.0 * between, 0.0, 100.0).astype(np.int8)
    values[occupancy >= meta.occupied_thresh] = 100
    free = occupancy <= meta.free_thresh
    values[free] = 0
    values[transparent] = -1
    odd = int(np.count_nonzero(free & unknown))
    if odd and not meta.negate and not (values == -1).any():
        note = (
            f"{odd} pixels have the shade 205, which map_saver gives to unknown cells, and count "
            f"as free by free_thresh: {meta.free_thresh:g}; write free_thresh: 0.196 where they "
            "are unknown"
        )
        return values, (note,)
    return values, ()
