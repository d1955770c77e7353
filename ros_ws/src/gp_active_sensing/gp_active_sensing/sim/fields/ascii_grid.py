"""Reader of ESRI ASCII grids, the format that GIS programs exchange small rasters in.

    ncols 3
    nrows 2
    xllcorner 0.0
    yllcorner 0.0
    cellsize 10.0
    NODATA_value -9999
    1 2 3
    4 5 -9999

Rows run from north to south. ``xllcenter`` and ``yllcenter`` may stand for the corners (the centre
of the south-west cell), and ``dx`` and ``dy`` for ``cellsize``. A row may go over several lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import MapError, suggest
from gp_active_sensing.types import FloatArray

__all__ = ["MAX_CELLS", "AsciiGrid", "read_ascii_grid"]

MAX_CELLS = 25_000_000
"""Largest raster that is read (5000 × 5000, 200 MB in memory)."""

_KEYS = (
    "ncols",
    "nrows",
    "xllcorner",
    "xllcenter",
    "yllcorner",
    "yllcenter",
    "cellsize",
    "dx",
    "dy",
    "nodata_value",
)


@dataclass(frozen=True)
class AsciiGrid:
    """What a file holds.

    Args:
        values: (rows, columns) from north to south; NaN = no data.
        origin: south-west corner of the south-west cell, in the file's unit.
        cell: width and height of a cell, in the file's unit.
    """

    values: FloatArray
    origin: tuple[float, float]
    cell: tuple[float, float]


def read_ascii_grid(path: Path) -> AsciiGrid:
    """Read an ESRI ASCII grid.

    Raises:
        MapError: a file that is none; the message says the line.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            lines = _words(stream)
            header, first = _header(path, lines)
            shape = _shape(path, header)
            values = _values(path, shape, first, lines)
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read as an ESRI ASCII grid: {error}"
        raise MapError(msg) from error
    cell = _cell(path, header)
    origin = (_edge(path, header, "x", cell[0]), _edge(path, header, "y", cell[1]))
    nodata = header.get("nodata_value")
    if nodata is not None:
        values[values == nodata] = np.nan
    return AsciiGrid(values, origin, cell)


_Line = tuple[int, list[str]]


def _words(stream: Iterable[str]) -> Iterator[_Line]:
    for number, line in enumerate(stream, start=1):
        words = line.split()
        if words:
            yield number, words


def _header(path: Path, lines: Iterator[_Line]) -> tuple[dict[str, float], _Line | None]:
    """Return the keys, and the first line after them."""
    header: dict[str, float] = {}
    for number, words in lines:
        key = words[0].lower()
        if key not in _KEYS:
            if _is_number(key):
                return header, (number, words)
            msg = (
                f"{path}, line {number}: expected a key of an ESRI ASCII grid or a number, got "
                f"{_short(words[0])}.{suggest(key, _KEYS)} The header has ncols, nrows, xllcorner, "
                "yllcorner, cellsize and perhaps NODATA_value"
            )
            raise MapError(msg)
        if len(words) != 2 or not _is_number(words[1]):
            msg = f"{path}, line {number}: expected one number after {words[0]}, got {words[1:]}"
            raise MapError(msg)
        if key in header:
            msg = f"{path}, line {number}: {words[0]} is there twice"
            raise MapError(msg)
        header[key] = float(words[1])
    return header, None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _need(path: Path, header: Mapping[str, float], key: str) -> float:
    if key not in header:
        found = ", ".join(header) or "none"
        msg = f"{path}: the header of an ESRI ASCII grid needs {key}; it has: {found}"
        raise MapError(msg)
    return header[key]


def _shape(path: Path, header: Mapping[str, float]) -> tuple[int, int]:
    counts = []
    for key in ("nrows", "ncols"):
        count = _need(path, header, key)
        if not (math.isfinite(count) and count == int(count) and count >= 1):
            msg = f"{path}: {key}: expected a whole number of 1 or more, got {count:g}"
            raise MapError(msg)
        counts.append(int(count))
    rows, columns = counts
    if rows * columns > MAX_CELLS:
        msg = (
            f"{path}: {columns} × {rows} cells are more than {MAX_CELLS}; cut it down to the area "
            "of the map, or make its cells larger (gdal_translate -projwin, -tr)"
        )
        raise MapError(msg)
    return rows, columns


def _cell(path: Path, header: Mapping[str, float]) -> tuple[float, float]:
    keys = ("dx", "dy") if "cellsize" not in header and "dx" in header else ("cellsize",)
    sizes = []
    for key in keys:
        size = _need(path, header, key)
        if not (math.isfinite(size) and size > 0.0):
            msg = f"{path}: {key}: expected a number above 0, got {size:g}"
            raise MapError(msg)
        sizes.append(size)
    return sizes[0], sizes[-1]


def _edge(path: Path, header: Mapping[str, float], axis: str, size: float) -> float:
    corner, centre = f"{axis}llcorner", f"{axis}llcenter"
    if corner in header and centre in header:
        msg = f"{path}: has both {corner} and {centre}; keep the one that is meant"
        raise MapError(msg)
    if centre in header:
        value = header[centre] - 0.5 * size
    else:
        value = _need(path, header, corner)
    if not math.isfinite(value):
        msg = f"{path}: {corner}: expected a finite number, got {value:g}"
        raise MapError(msg)
    return value


def _values(
    path: Path, shape: tuple[int, int], first: _Line | None, lines: Iterator[_Line]
) -> FloatArray:
    total = shape[0] * shape[1]
    values = np.empty(total)
    done = 0
    for number, words in _chain(first, lines):
        if done + len(words) > total:
            msg = f"{path}, line {number}: more than the {total} values of {_size(shape)} cells"
            raise MapError(msg)
        try:
            row = np.array(words, dtype=np.float64)
        except ValueError:
            bad = next(word for word in words if not _is_number(word))
            hint = "; decimals take a point" if "," in bad else ""
            msg = f"{path}, line {number}: expected a number, got {_short(bad)}{hint}"
            raise MapError(msg) from None
        if np.isinf(row).any():
            msg = f"{path}, line {number}: expected finite numbers, got infinity"
            raise MapError(msg)
        values[done : done + row.size] = row
        done += row.size
    if done < total:
        msg = f"{path}: ends after {done} of {total} values ({_size(shape)} cells)"
        raise MapError(msg)
    return values.reshape(shape)


def _chain(first: _Line | None, lines: Iterator[_Line]) -> Iterator[_Line]:
    if first is not None:
        yield first
    yield from lines


def _size(shape: tuple[int, int]) -> str:
    return f"{shape[1]} × {shape[0]}"


def _short(word: str) -> str:
    return repr(word if len(word) <= 40 else word[:37] + "...")
