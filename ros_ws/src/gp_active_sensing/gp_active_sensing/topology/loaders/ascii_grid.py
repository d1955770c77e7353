"""ESRI ASCII grids, which need no library.

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
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import MapError, brief_repr, suggest
from gp_active_sensing.topology.loaders.drafts import number_of
from gp_active_sensing.types import FloatArray

__all__ = ["MAX_CELLS", "read_ascii_grid"]

MAX_CELLS = 25_000_000
"""Largest raster that is read (5000 × 5000, 200 MB in memory)."""

_NO_DATA = -9999.0
"""By the format, where the header does not say."""
_CORNERS = ("xllcorner", "xllcenter", "yllcorner", "yllcenter")
_KEYS = ("ncols", "nrows", *_CORNERS, "cellsize", "dx", "dy", "nodata_value")


def read_ascii_grid(path: Path) -> tuple[FloatArray, tuple[float, float], tuple[float, float]]:
    """Read an ESRI ASCII grid.

    Returns:
        (rows, columns) values from north to south, NaN = no data; and in the file's unit the
        south-west corner of the south-west cell, and width and height of a cell.

    Raises:
        MapError: a file that is none; the message says the line.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            lines = ((k, words) for k, line in enumerate(stream, 1) if (words := line.split()))
            header, first = _header(path, lines)
            shape = _shape(path, header)
            values = _values(path, shape, chain(first, lines))
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read as an ESRI ASCII grid: {error}"
        raise MapError(msg) from error
    keys = ("dx", "dy") if "cellsize" not in header and "dx" in header else ("cellsize", "cellsize")
    width, height = (_number(path, header, key, "a number above 0", 0.0) for key in keys)
    origin = _edge(path, header, "x", width), _edge(path, header, "y", height)
    values[values == header.get("nodata_value", _NO_DATA)] = np.nan
    return values, origin, (width, height)


_Lines = Iterator[tuple[int, list[str]]]


def _header(path: Path, lines: _Lines) -> tuple[dict[str, float], list[tuple[int, list[str]]]]:
    """Return the keys, and the first line after them, if there is one."""
    header: dict[str, float] = {}
    for number, words in lines:
        key, where = words[0].lower(), f"{path}, line {number}"
        if key not in _KEYS:
            if number_of(key) is not None:
                return header, [(number, words)]
            msg = (
                f"{where}: expected a key of an ESRI ASCII grid or a number, got "
                f"{brief_repr(words[0])}.{suggest(key, _KEYS)} The header has ncols, nrows, "
                "xllcorner, yllcorner, cellsize and perhaps NODATA_value"
            )
            raise MapError(msg)
        if len(words) != 2 or number_of(words[1]) is None:
            msg = f"{where}: expected one number after {words[0]}, got {words[1:]}"
            raise MapError(msg)
        if key in header:
            msg = f"{where}: {words[0]} is there twice"
            raise MapError(msg)
        header[key] = float(words[1])
    return header, []


def _number(
    path: Path,
    header: Mapping[str, float],
    key: str,
    what: str,
    above: float = -math.inf,
    *,
    whole: bool = False,
) -> float:
    """Return the finite number of a key. Raises MapError where there is none."""
    if key not in header:
        found = ", ".join(header) or "none"
        msg = f"{path}: the header of an ESRI ASCII grid needs {key}; it has: {found}"
        raise MapError(msg)
    if not above < header[key] < math.inf or (whole and header[key] % 1.0):
        msg = f"{path}: {key}: expected {what}, got {header[key]:g}"
        raise MapError(msg)
    return header[key]


def _shape(path: Path, header: Mapping[str, float]) -> tuple[int, int]:
    """Return the numbers of rows and columns."""
    what = "a whole number of 1 or more"
    found = (_number(path, header, key, what, 0.0, whole=True) for key in ("nrows", "ncols"))
    rows, columns = map(int, found)
    if rows * columns > MAX_CELLS:
        msg = (
            f"{path}: {columns} × {rows} cells are more than {MAX_CELLS}; cut it down to the area "
            "of the map, or make its cells larger (gdal_translate -projwin, -tr)"
        )
        raise MapError(msg)
    return rows, columns


def _edge(path: Path, header: Mapping[str, float], axis: str, size: float) -> float:
    """Return the western or southern edge."""
    corner, centre = f"{axis}llcorner", f"{axis}llcenter"
    if corner in header and centre in header:
        msg = f"{path}: has both {corner} and {centre}; keep the one that is meant"
        raise MapError(msg)
    if centre in header:
        return _number(path, header, centre, "a finite number") - 0.5 * size
    return _number(path, header, corner, "a finite number")


def _values(path: Path, shape: tuple[int, int], lines: _Lines) -> FloatArray:
    """Return the values (rows, columns)."""
    values = np.empty(shape[0] * shape[1])
    size, done = f"{shape[1]} × {shape[0]} cells", 0
    for number, words in lines:
        where = f"{path}, line {number}"
        if done + len(words) > values.size:
            msg = f"{where}: more than the {values.size} values of {size}"
            raise MapError(msg)
        try:
            row = np.array(words, dtype=np.float64)
        except ValueError:
            bad = next(word for word in words if number_of(word) is None)
            hint = "; decimals take a point" if "," in bad else ""
            msg = f"{where}: expected a number, got {brief_repr(bad)}{hint}"
            raise MapError(msg) from None
        if np.isinf(row).any():
            msg = f"{where}: expected finite numbers, got infinity"
            raise MapError(msg)
        values[done : done + row.size] = row
        done += row.size
    if done < values.size:
        msg = f"{path}: ends after {done} of {values.size} values ({size})"
        raise MapError(msg)
    return values.reshape(shape)
