"""Rasters: values in rows and columns, and their position on Earth or on a map.

GDAL (rasterio) reads GeoTIFF (``.tif``) and netCDF (``.nc``) with scale, offset, unit, no-data
value, mask and control points. This module reads ESRI ASCII grids (``.asc``) itself, since GDAL
would read wrong or missing values as 0. The header of a grid has ncols, nrows, xllcorner and
yllcorner (or xllcenter and yllcenter), cellsize (or dx and dy) and perhaps NODATA_value. Rows run
from north to south.

GDAL chooses a driver by content. With a VRT or WMS description in a file named ``.tif``, GDAL would
read other files and call servers. Each file is therefore opened with the driver of its ending. This
module also reads its ``.prj`` file and its world file, but no other files.
"""

from __future__ import annotations

import logging
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import brief_repr, listed, suggest
from gp_active_sensing.topology.geometry import HEIGHTS, below_water, inflated, metres_in
from gp_active_sensing.topology.loaders import fault, number_of, read_as, read_text
from gp_active_sensing.topology.projection import LOCAL, LONLAT, in_system, locate, own_origin
from gp_active_sensing.topology.segments import Point
from gp_active_sensing.types import BoolArray, FloatArray
from gp_active_sensing.util.lazy import library
from gp_active_sensing.util.tables import are_fills

logger = logging.getLogger(__name__)

MAX_CELLS = 25_000_000
"""Largest number of cells of a raster (5000 × 5000, 200 MB in memory)."""
_CORNERS = ("xllcorner", "xllcenter", "yllcorner", "yllcenter")
_KEYS = ("ncols", "nrows", *_CORNERS, "cellsize", "dx", "dy", "nodata_value")
_NO_DATA = -9999.0
"""No-data value of an ESRI ASCII grid without NODATA_value in its header."""
_DRIVERS = {".tif": "GTiff", ".tiff": "GTiff", ".nc": "netCDF"}
_EDGE = 1e-9
"""Largest distance [cell] by which rounding may move a point beyond the edge of a raster."""
_OFF = 0.5
"""Largest accepted distance of a control point from its position in the affine transform [cell]."""


@dataclass(frozen=True)
class RasterFile:
    """Layer of a raster file."""

    values: FloatArray  # (rows, columns), heights in metres; NaN = no data
    # (a, b, c, d, e, f): the cell in column k and row l begins at (a k + b l + c, d k + e l + f)
    transform: tuple[float, float, float, float, float, float]
    crs: str = ""  # system for PROJ, or "local" for metres of the map; "" = not declared
    notes: tuple[str, ...] = ()  # assumptions, as sentences

    def flipped(self) -> RasterFile:
        """Return the layer with the order of its rows reversed."""
        a, b, c, d, e, f = self.transform
        rows = len(self.values)
        turned = (a, -b, c + b * rows, d, -e, f + e * rows)
        return replace(self, values=self.values[::-1], transform=turned)


def read_raster(path: Path, value: str = "") -> RasterFile:
    """Read a raster; if it has several bands, read the band with the name `value`.

    With a `value` such as "depth" or "height", values become heights in metres, positive upwards.

    Raises:
        MapError: the file cannot be read, is damaged, is too large, or has no data. Or the band
            `value` is missing, or has depths of both signs.
        MissingDependencyError: a GeoTIFF or netCDF file needs rasterio, which is missing.
    """
    raster: RasterFile
    raster, unit = read_as("raster", path, value)
    if not raster.crs and (beside := path.with_suffix(".prj")).is_file():
        raster = replace(raster, crs=read_text(beside).strip())
    if np.isnan(raster.values).all():
        rows, columns = raster.values.shape
        raise fault(
            path,
            f"none of its {columns} × {rows} cells has data, so there is no place; is it "
            "the right file, and its value for no data the right one?",
        )
    a, b, _, d, e, _ = raster.transform
    if not abs(a * e - b * d) > 0.0:
        raise fault(path, f"its cells have no area (transform {raster.transform}); save it again")
    if (sign := HEIGHTS.get(value.lower())) is None:
        return raster
    if (metres := metres_in(unit)) is None:
        raise fault(
            path, f"{value} is in {unit!r:.30}; expected a unit of length, or none for metres"
        )
    values, notes = raster.values * metres, raster.notes
    if metres != 1.0:
        notes += (f"{value} in {unit} was turned into metres",)
    if sign < 0.0:
        values, head = below_water(values, str(path))
        notes += head
    return replace(raster, values=values, notes=notes)


def of_gdal(path: Path, value: str) -> tuple[RasterFile, str]:
    """Read a band of a file with GDAL; return the band and its unit, "" = none."""
    with _opened(path, value) as (found, transform):
        band, notes = _band(path, found, value)
        made = _layer(path, found, transform, band, notes)
        return made, found.units[band - 1] or ""


def _layer(path: Path, found: Any, transform: Any, number: int, notes: list[str]) -> RasterFile:
    """Return band `number` (from 1), with its scale and offset applied."""
    _check_size(path, found.width, found.height)
    a, b, c, d, e, f = (float(number) for number in transform[:6])
    crs = found.crs or found.gcps[1]
    system = crs.to_wkt() if crs else ""
    layer = np.ma.filled(found.read(number, masked=True).astype(np.float64), np.nan)
    fills = are_fills(layer)
    if fills.any():
        shown = ", ".join(f"{v:g}" for v in np.unique(layer[fills])[:3])
        notes.append(f"{int(fills.sum())} cells are {shown} and count as without data")
    layer[fills | ~np.isfinite(layer)] = np.nan
    scale, offset = found.scales[number - 1], found.offsets[number - 1]
    if (scale, offset) != (1.0, 0.0):
        np.add(scale * layer, offset, out=layer)
        notes.append(f"its values are {scale:g} times what is stored, and {offset:g} more")
    return RasterFile(layer, (a, b, c, d, e, f), system, tuple(notes))


def of_ascii(path: Path, value: str = "") -> tuple[RasterFile, str]:
    """Read an ESRI ASCII grid; the unit is "". Raises MapError with the line of a problem."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            numbered = ((k, words) for k, line in enumerate(stream, 1) if (words := line.split()))
            head, first = _header(path, numbered)
            rows, columns = (int(_number(path, head, key, "whole")) for key in ("nrows", "ncols"))
            _check_size(path, columns, rows)
            values = np.empty(rows * columns)
            done = 0
            for number, words in chain([first], numbered):
                where = f"{path}, line {number}"
                row = _numbers(words, where)
                if done + row.size > values.size:
                    what = f"{values.size} values of {columns} × {rows} cells"
                    raise fault(where, f"more than the {what}")
                values[done : done + row.size] = row
                done += row.size
    except (OSError, UnicodeDecodeError) as error:
        raise fault(path, f"cannot be read as an ESRI ASCII grid: {error}") from error
    if done < values.size:
        raise fault(path, f"ends after {done} of {values.size} values ({columns} × {rows} cells)")
    sides = ("dx", "dy") if "cellsize" not in head and "dx" in head else ("cellsize", "cellsize")
    dx, dy = (_number(path, head, key, "above") for key in sides)
    west, south = _edge(path, head, "x", dx), _edge(path, head, "y", dy)
    values[(values == head.get("nodata_value", _NO_DATA)) | are_fills(values)] = np.nan
    transform = (dx, 0.0, west, 0.0, -dy, south + dy * rows)
    return RasterFile(values.reshape(rows, columns), transform), ""


def _edge(path: Path, head: Mapping[str, float], axis: str, size: float) -> float:
    corner, centre = f"{axis}llcorner", f"{axis}llcenter"
    if corner in head and centre in head:
        raise fault(path, f"has both {corner} and {centre}; keep the one that is meant")
    if centre in head:
        return _number(path, head, centre) - 0.5 * size
    return _number(path, head, corner)


def _header(
    path: Path, lines: Iterator[tuple[int, list[str]]]
) -> tuple[dict[str, float], tuple[int, list[str]]]:
    head: dict[str, float] = {}
    for line, words in lines:
        key, where = words[0].lower(), f"{path}, line {line}"
        if key not in _KEYS:
            if number_of(key) is not None:
                return head, (line, words)
            raise fault(
                where,
                "expected a key of an ESRI ASCII grid or a number, got "
                f"{brief_repr(words[0])}.{suggest(key, _KEYS)} The header has ncols, nrows, "
                "xllcorner, yllcorner, cellsize and perhaps NODATA_value",
            )
        value = number_of(words[1]) if len(words) == 2 else None
        if value is None or key in head:
            what = f"expected one number after {words[0]}, got {words[1:]}"
            raise fault(where, f"{what if value is None else f'{words[0]} is there twice'}")
        head[key] = value
    return head, (0, [])


def _number(path: Path, head: Mapping[str, float], key: str, kind: str = "finite") -> float:
    if key not in head:
        has = ", ".join(head) or "none"
        raise fault(path, f"the header of an ESRI ASCII grid needs {key}; it has: {has}")
    value = head[key]
    least = -math.inf if kind == "finite" else 0.0
    if not least < value < math.inf or (kind == "whole" and value % 1.0):
        kinds = {"finite": "a finite number", "above": "a number above 0"}
        what = kinds.get(kind, "a whole number of 1 or more")
        raise fault(path, f"{key}: expected {what}, got {value:g}")
    return value


def _numbers(words: Sequence[str], where: str) -> FloatArray:
    try:
        row = np.array(words, dtype=np.float64)
    except ValueError:
        bad = next(word for word in words if number_of(word) is None)
        hint = "; decimals take a point" if "," in bad else ""
        raise fault(where, f"expected a number, got {brief_repr(bad)}{hint}") from None
    if np.isinf(row).any():
        raise fault(where, "expected finite numbers, got infinity")
    return row


def read_layer(path: Path, layer: int) -> RasterFile:
    """Read a layer (from 0) of a GeoTIFF.

    Raises:
        MapError: the file cannot be read, has too many cells, or has no such layer.
        MissingDependencyError: rasterio is not installed.
    """
    with _opened(path) as (found, transform):
        if layer >= found.count:
            raise fault("field.layer", f"{path} has layers 0 … {found.count - 1}, got {layer}")
        if transform.is_identity:
            logger.warning("%s has no position; its cells count as metres from 0, 0", path)
        return _layer(path, found, transform, layer + 1, [])


def _plain(text: str | None) -> str:
    """Return the name of a band without its unit, in lower case."""
    return re.sub(r"[\[(].*", "", text or "").strip().lower()


def _band(path: Path, found: Any, value: str) -> tuple[int, list[str]]:
    """Return the number (from 1) of the band with the name `value`, and notes."""
    named = [_plain(text) for text in found.descriptions]
    wanted = _plain(value)
    if wanted and wanted in named:
        number = named.index(wanted) + 1
        return number, [f"band {number} ({found.descriptions[number - 1]}) is its {value}"]
    names = listed([text for text in found.descriptions if text])
    if found.count > 1 and wanted in HEIGHTS and any(named) and named[0] != "mean":  # of `export`
        raise fault(
            path, f"value: none of its {found.count} bands is called {value!r}, but {names}"
        )
    notes = [f"of its {found.count} bands the first counts"] if found.count > 1 else []
    if any(named):
        notes.append(f"it calls its bands {names}")
    return 1, notes


@contextmanager
def _opened(path: Path, value: str = "") -> Iterator[tuple[Any, Any]]:
    """Open a raster with the driver for its file type; yield the dataset and its transform.

    Raises:
        MapError: the file is of another kind, is damaged, or refers to a file with overviews.
        MissingDependencyError: rasterio is not installed.
    """
    rasterio = library(
        "rasterio",
        f"{path}: a {path.suffix} file is read with rasterio",
        besides="; or turn the file into an ESRI ASCII grid, which needs nothing: gdal_translate "
        "-of AAIGrid IN OUT.asc",
    )
    driver = _DRIVERS.get(path.suffix.lower(), "GTiff")
    try:
        with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR", GDAL_PAM_ENABLED="NO"):
            with warnings.catch_warnings():
                # The cells of a file without a position are metres.
                warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
                # GDAL never reads an absolute path as a dataset name (GTIFF_DIR:…).
                found = rasterio.open(path.absolute(), driver=driver)
                if driver == "netCDF" and found.subdatasets:
                    names = {n.rpartition(":")[2].lower(): n for n in found.subdatasets}
                    if value.lower() not in names:
                        known = listed(sorted(names))
                        raise fault(path, f"has several variables; name one with value: {known}")
                    found = rasterio.open(names[value.lower()], driver=driver)
            with found:
                if found.tags(ns="OVERVIEWS"):
                    raise fault(path, "its metadata name another file (OVERVIEWS); it is not read")
                yield found, _transform(rasterio, path, found)
    except rasterio.errors.RasterioError as error:
        raise fault(
            path, f"cannot be read by the driver {driver}, which its name says: {error}"
        ) from error


def _transform(rasterio: Any, path: Path, found: Any) -> Any:
    if not found.transform.is_identity:
        return found.transform
    points, _ = found.gcps
    if len(points) >= 3:
        made = rasterio.transform.from_gcps(points)
        back = ~made
        off = max(np.hypot(*np.subtract(back @ (p.x, p.y), (p.col, p.row))) for p in points)
        if off > _OFF:
            raise fault(
                path, f"its {len(points)} control points bend it; lay it flat: gdalwarp IN OUT"
            )
        return made
    for end in (".tfw", path.suffix + "w", ".wld"):
        beside = path.with_suffix(end)
        if beside.is_file():
            try:
                a, d, b, e, x, y = map(float, read_text(beside).split())
            except ValueError as error:
                raise fault(beside, "expected the six numbers of a world file") from error
            # A world file gives the centre of the first cell.
            return rasterio.Affine(a, b, x - 0.5 * (a + b), d, e, y - 0.5 * (d + e))
    return found.transform


def _check_size(path: Path, columns: int, rows: int) -> None:
    if columns * rows > MAX_CELLS:
        raise fault(
            path,
            f"{columns} × {rows} cells are more than {MAX_CELLS}; cut it down to "
            "the area of the map, or make its cells larger (gdal_translate -projwin, -tr)",
        )


# -- in the frame of a map -------------------------------------------------------------------------

_ALONG = 16
"""Number of points that describe each edge of a raster, as edges are curved in the map's frame."""


@dataclass(frozen=True, eq=False)
class RasterCells:
    """Raster in the frame of a map."""

    where: str  # the file, for messages
    raster: RasterFile  # in its own coordinates
    crs: str  # coordinate system of the raster, `LOCAL` for metres of the map
    datum: Point | None  # longitude and latitude of the map's origin; None = `LOCAL`
    corners: FloatArray  # (m, 2) points on the edge of the data in the map's frame [m]
    first: Point  # centre of the first cell of the last row in the map's frame [m]
    notes: tuple[str, ...]  # assumptions, as sentences

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        rows, columns = self.raster.values.shape
        return rows, columns

    @cached_property
    def empty(self) -> BoolArray:
        """Flags (rows, columns): True for a cell without data."""
        return np.isnan(self.raster.values)

    def blocked(self, inflation: float = 0.0) -> BoolArray:
        """Return flags: True for a cell within `inflation` [m] of missing data or of the edge."""
        if not inflation:
            return self.empty
        edged = np.pad(self.empty, 1, constant_values=True)
        return inflated(edged, self.cell, inflation)[1:-1, 1:-1]

    def cells_of(self, points: FloatArray) -> FloatArray:
        """Convert positions (m, 2) in the map's frame [m] to fractional columns and rows (m, 2)."""
        if self.datum is not None:
            points = in_system(points, self.datum, self.crs, where=self.where)
        a, b, c, d, e, f = self.raster.transform
        if self.crs.startswith((LONLAT, "GEOG")) and c + a * self.shape[1] > 180.0:  # 0 … 360
            east = np.where(points[:, 0] < 0.0, points[:, 0] + 360.0, points[:, 0])
            points = np.column_stack([east, points[:, 1]])
        x, y = points[:, 0] - c, points[:, 1] - f
        area = a * e - b * d
        return np.column_stack([e * x - b * y, a * y - d * x]) / area

    @cached_property
    def cell(self) -> tuple[float, float]:
        """Width and height [m] of a cell in the middle of the data, in the map's frame."""
        middle = 0.5 * (self.corners.min(axis=0) + self.corners.max(axis=0))
        step = 1e-3 * max(float(np.ptp(self.corners, axis=0).max()), 1e-3)
        at = self.cells_of(middle + step * np.array([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]))
        # Columns of `sides`: the vectors of a column and of a row [m].
        sides = np.linalg.inv((at[1:] - at[0]).T / step)
        width, height = np.hypot(sides[0], sides[1]).tolist()
        return round(width, 6), round(height, 6)

    def inside(self, points: FloatArray) -> BoolArray:
        """Return flags (m,): True if a point of `points` (m, 2) [m] is inside the raster."""
        rows, columns = self.shape
        cells = self.cells_of(points)
        within = (cells >= -_EDGE) & (cells <= np.array((columns, rows)) + _EDGE)
        return np.asarray(within.all(axis=1))

    def values_at(self, points: FloatArray, *, whole: bool = False) -> FloatArray:
        """Return values (m,) at points (m, 2), bilinear between cell centres.

        Beyond the outermost centres, values are constant. If one of the four cells around a point
        has no data, the result is the value of the cell that contains it; with `whole`, NaN.
        """
        size = np.array(self.shape[::-1])
        cells = self.cells_of(points)
        at = np.clip(cells - 0.5, 0.0, size - 1.0)
        low = np.minimum(np.floor(at).astype(np.int64), np.maximum(size - 2, 0))
        high = np.minimum(low + 1, size - 1)
        tx, ty = (at - low).T
        total = np.zeros(len(points))
        for column, row, weight in (
            (low[:, 0], low[:, 1], (1.0 - ty) * (1.0 - tx)),
            (high[:, 0], low[:, 1], (1.0 - ty) * tx),
            (low[:, 0], high[:, 1], ty * (1.0 - tx)),
            (high[:, 0], high[:, 1], ty * tx),
        ):
            # A weight that is 0 apart from rounding must not let NaN into the value.
            part = weight > (0.0 if whole else 1e-6)
            total += np.where(part, weight * self.raster.values[row, column], 0.0)
        if whole:
            return total
        # Rounding may put a point at an edge beyond the data.
        own = np.clip(np.floor(cells).astype(np.int64), 0, size - 1)
        nearest = self.raster.values[own[:, 1], own[:, 0]]
        return np.asarray(np.where(np.isnan(total), nearest, total))


def load_raster_cells(
    path: Path, datum: Point | None = None, value: str = "", crs: str = ""
) -> RasterCells:
    """Read a raster (see `read_raster`) and project it to local metres.

    `datum` is longitude and latitude of the origin of the map's frame [degree]. None = the origin
    of the raster's own local frame, or the middle of the data. `crs` overrides the coordinate
    system; "" = the declared system.

    Raises:
        MapError: the file cannot be used, or its coordinate system is unknown.
        MissingDependencyError: rasterio or pyproj is needed but missing.
    """
    raster = read_raster(path, value)
    made = to_map(replace(raster, crs=crs) if crs else raster, path, datum, chosen=bool(crs))
    if raster.crs or crs:
        return made
    beside = path.with_suffix(".prj").name
    note = f"read as metres: neither the file nor {beside} beside it has a coordinate system"
    return replace(made, notes=(*made.notes, note))


def to_map(
    raster: RasterFile, path: Path, datum: Point | None, *, chosen: bool = False
) -> RasterCells:
    """Project a raster to local metres; `chosen` = the user named the coordinate system.

    Raises:
        MapError: the coordinate system is unknown, or coordinates are outside of its area.
        MissingDependencyError: pyproj is needed but missing.
    """
    known = ~np.isnan(raster.values)
    rows, columns = np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0))
    whole = (0, 0, *raster.values.shape[::-1])
    box = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1) if len(rows) else whole
    left, top, right, bottom = map(int, box)
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    points = [
        (x0 + (x1 - x0) * k / _ALONG, y0 + (y1 - y0) * k / _ALONG)
        for (x0, y0), (x1, y1) in pairwise(corners)
        for k in range(_ALONG)
    ]
    points.append((0.5, len(raster.values) - 0.5))  # the first cell of the last row
    a, b, c, d, e, f = raster.transform
    if datum is None and raster.crs not in ("", LOCAL, LONLAT):
        datum = own_origin(raster.crs, where=str(path))
    made = locate(
        np.array([(a * k + b * r + c, d * k + e * r + f) for k, r in points]),
        raster.crs,
        where=str(path),
        datum=datum,
        degrees=False if raster.crs == LOCAL else None,
        chosen=chosen,
    )
    notes = (*raster.notes, *made.notes)
    x, y = made.points[-1].tolist()
    return RasterCells(str(path), raster, made.crs, made.datum, made.points[:-1], (x, y), notes)


def usual_step(cells: RasterCells, usual: float) -> float | tuple[float, float]:
    """Return a spacing near `usual` that is at least as large as the raster's cells [m].

    If the raster is in local metres, the spacing is a multiple of the cell size.
    """
    width, height = cells.cell
    if cells.crs != LOCAL:
        return max(usual, float(f"{math.sqrt(width * height):.2g}"))
    found = tuple(side * max(1, round(usual / side)) for side in (width, height))
    return found[0] if found[0] == found[1] else (found[0], found[1])
