"""Grey images of maps: PGM without a library, PNG, JPEG and BMP with Pillow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import MapError, MissingDependencyError
from gp_active_sensing.topology.loaders.files import check_file
from gp_active_sensing.types import BoolArray, FloatArray

__all__ = ["MOST_PIXELS", "GreyImage", "read_image"]

MOST_PIXELS = 100_000_000
"""Of the largest image that is read (10,000 × 10,000; a kilometre with cells of 0.1 m)."""
_FORMATS = ("PNG", "JPEG", "BMP")
"""Formats that Pillow may open; others start programs (EPS: Ghostscript) or are no picture."""
_MOST_BYTES = 4 * MOST_PIXELS
_TOKEN = re.compile(rb"(?:\s|#[^\n]*\n)*(\d+)")


@dataclass(frozen=True, eq=False)
class GreyImage:
    """An image as a map takes it.

    Args:
        shades: (rows, columns) from 0 black to 255 white, the top row first.
        transparent: (rows, columns) pixels that are not wholly opaque.
    """

    shades: FloatArray
    transparent: BoolArray


def read_image(path: Path) -> GreyImage:
    """Read an image.

    Raises:
        MapError: a file that is none, is cut short, or is too large.
        MissingDependencyError: it is no PGM, and Pillow is missing.
    """
    check_file(path, _MOST_BYTES)
    try:
        data = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror or error}"
        raise MapError(msg) from error
    if data[:2] in (b"P5", b"P2"):
        shades = _pgm(data, path)
        return GreyImage(shades, np.zeros(shades.shape, dtype=np.bool_))
    if path.suffix.lower() == ".pgm":
        msg = (
            f"{path}: expected a PGM that begins with P5 or P2, got {data[:2]!r}; save the map "
            "again, as .pgm or .png"
        )
        raise MapError(msg)
    return _with_pillow(path)


def _pgm(data: bytes, path: Path) -> FloatArray:
    at, header = 2, []
    for what in ("width", "height", "largest value"):
        found = _TOKEN.match(data, at)
        if found is None or len(found[1]) > 9:
            msg = f"{path}: is no whole PGM: its {what} is missing"
            raise MapError(msg)
        header.append(int(found[1]))
        at = found.end()
    width, height, largest = header
    if not 0 < width * height <= MOST_PIXELS or not 0 < largest < 65536:
        msg = (
            f"{path}: a PGM of {width} × {height} pixels with values up to {largest}; expected at "
            f"least one pixel, at most {MOST_PIXELS}, and values up to 1 … 65535"
        )
        raise MapError(msg)
    if data.startswith(b"P5"):
        kind = np.dtype(np.uint8) if largest < 256 else np.dtype(">u2")
        held = (len(data) - at - 1) // kind.itemsize
        values = np.frombuffer(data, kind, min(held, width * height), at + 1) if held > 0 else None
    else:
        values = _numbers(data[at:], path)
    if values is None or len(values) < width * height:
        count = 0 if values is None else len(values)
        msg = (
            f"{path}: its header says {width} × {height} pixels, but there are {count}; the file "
            "is cut short, or of another size; copy it again"
        )
        raise MapError(msg)
    pixels = values[: width * height].reshape(height, width)
    if pixels.max() > largest:
        msg = f"{path}: a pixel is {pixels.max()}, more than the largest value, {largest}"
        raise MapError(msg)
    return pixels.astype(np.float64) * (255.0 / largest)


def _numbers(text: bytes, path: Path) -> np.ndarray:
    words = re.sub(rb"#[^\n]*", b"", text).split()
    try:
        return np.array(words, dtype=np.int64)
    except (ValueError, OverflowError):
        bad = next(word for word in words if not word.isdigit())
        msg = f"{path}: expected whole numbers after the header of a P2, got {bad[:20]!r}"
        raise MapError(msg) from None


def _with_pillow(path: Path) -> GreyImage:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        msg = (
            f"{path}: a {path.suffix or 'file'} is read with Pillow, which is not installed: "
            "pip install 'gp_active_sensing[maps]', or save the map as .pgm, which needs no library"
        )
        raise MissingDependencyError(msg) from error
    try:
        with Image.open(path, formats=_FORMATS) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                msg = f"{path}: {width} × {height} pixels are more than {MOST_PIXELS}; cut it down"
                raise MapError(msg)
            if image.mode.startswith("I") or image.mode == "F":
                shades = np.asarray(image, dtype=np.float64) / 257.0  # 16 bits
                return GreyImage(shades, np.zeros(shades.shape, dtype=np.bool_))
            pixels = np.asarray(image.convert("RGBA"), dtype=np.uint8)
    except UnidentifiedImageError as error:
        msg = f"{path}: is no image in the formats PGM, {', '.join(_FORMATS)}"
        raise MapError(msg) from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        msg = f"{path}: cannot be read as an image, perhaps cut short: {error}"
        raise MapError(msg) from error
    return GreyImage(pixels[:, :, :3].mean(axis=2), pixels[:, :, 3] < 255)
