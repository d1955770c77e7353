"""Rasters as they are stored: values in rows and columns, and where on Earth or on a map they lie.

An ESRI ASCII grid (``.asc``) needs no library; its coordinate system is that of the ``.prj`` file
beside it, where there is one. A GeoTIFF (``.tif``) needs the extra ``[maps]`` and says its own, or
has a ``.prj`` beside it, too.

GDAL picks a driver by content and follows files beside a raster: a VRT or a WMS description with
the name of a TIFF reads other files and calls servers. A file is therefore opened by the TIFF
driver alone, and nothing beside it is read except its world file (``.tfw``).
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import MapError, MissingDependencyError
from gp_active_sensing.topology.loaders.ascii_grid import MAX_CELLS, read_ascii_grid
from gp_active_sensing.topology.loaders.files import check_file, read_text
from gp_active_sensing.topology.projection import local_system
from gp_active_sensing.types import FloatArray

__all__ = [
    "GEOTIFF_ENDS",
    "RASTER_ENDS",
    "RasterFile",
    "read_geotiff",
    "read_raster",
    "read_stored",
]

logger = logging.getLogger(__name__)

_STRAIGHT = 1e-9
"""Largest part of a cell by which the axes of a raster may be turned (rounding)."""


def read_geotiff(
    path: Path,
    bands: tuple[int, ...] | None,
    datum: tuple[float, float] | None,
    most: int,
) -> tuple[FloatArray, tuple[float, float], tuple[float, float]]:
    """Read bands of a GeoTIFF, in the metres of a map where both say where they lie.

    A file with a coordinate system is brought into the map's frame when the map knows its origin
    (bilinear, cells of about the file's size). Otherwise its coordinates are taken as metres.

    Args:
        path: the file.
        bands: which, from 0; None = all.
        datum: longitude and latitude of the map's origin [degree]; None where it is not known.
        most: cells that are read at most.

    Returns:
        (k, rows, columns) values from south to north, NaN = no data; the south-west corner of the
        south-west cell, and width and height of a cell [m].

    Raises:
        MapError: a file that cannot be read, is in degrees on a map without an origin, is turned,
            too large, or has no such band.
        MissingDependencyError: rasterio is not installed.
    """
    rasterio = _rasterio()
    with _opened(rasterio, path) as (found, transform):
        if datum is None or found.crs is None:
            return _read(path, found, transform, bands, datum, most)
        from rasterio.enums import Resampling
        from rasterio.vrt import WarpedVRT

        wanted = rasterio.crs.CRS.from_string(local_system(datum))
        if found.crs == wanted:
            return _read(path, found, transform, bands, datum, most)
        _check_size(path, found, most)
        how = {"resampling": Resampling.bilinear, "nodata": np.nan, "dtype": "float64"}
        if transform != found.transform:
            how["src_transform"] = transform
        with WarpedVRT(found, crs=wanted, src_nodata=found.nodata, **how) as laid:
            return _read(path, laid, laid.transform, bands, datum, most)


def read_stored(
    path: Path, most: int
) -> tuple[FloatArray, tuple[float, float, float, float, float, float], str, tuple[str, ...]]:
    """Read the first band of a GeoTIFF as it is stored.

    Args:
        path: the file.
        most: cells that are read at most.

    Returns:
        (rows, columns) values, NaN = no data; the transform a … f from columns and rows to
        coordinates; their system, "" where the file says none; and notes, a sentence each.

    Raises:
        MapError: a file that cannot be read, or is too large.
        MissingDependencyError: rasterio is not installed.
    """
    notes: list[str] = []
    with _opened(_rasterio(), path) as (found, transform):
        _check_size(path, found, most)
        if found.count > 1:
            named = f" ({found.descriptions[0]!r})" if found.descriptions[0] else ""
            notes.append(f"of its {found.count} bands the first{named} counts")
        read = found.read(1, masked=True)
        values = np.ma.filled(read.astype(np.float64), np.nan)
        values[~np.isfinite(values)] = np.nan
        crs = "" if found.crs is None else found.crs.to_wkt()
        a, b, c, d, e, f = (float(number) for number in transform[:6])
    return values, (a, b, c, d, e, f), crs, tuple(notes)


@contextmanager
def _opened(rasterio: Any, path: Path) -> Iterator[tuple[Any, Any]]:
    """Open a file as a TIFF and as nothing else; yield the dataset and its transform.

    Raises:
        MapError: the file is no TIFF, is damaged, or names another file as its overviews.
    """
    try:
        with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR", GDAL_PAM_ENABLED="NO"):
            with warnings.catch_warnings():
                # Without a position, the cells are metres.
                warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
                # An absolute path is never taken as a name of GDAL's own (GTIFF_DIR:…).
                found = rasterio.open(path.absolute(), driver="GTiff")
            with found:
                if found.tags(ns="OVERVIEWS"):
                    msg = f"{path}: its metadata name another file (OVERVIEWS); it is not read"
                    raise MapError(msg)
                yield found, _transform(rasterio, path, found)
    except rasterio.errors.RasterioError as error:
        msg = f"{path}: cannot be read as a GeoTIFF: {error}"
        raise MapError(msg) from error


def _transform(rasterio: Any, path: Path, found: Any) -> Any:
    """Return the transform of a file, or that of its world file where it has none of its own."""
    if not found.transform.is_identity:
        return found.transform
    for end in (".tfw", path.suffix + "w", ".wld"):
        beside = path.with_suffix(end)
        if beside.is_file():
            try:
                a, d, b, e, x, y = map(float, read_text(beside).split())
            except ValueError as error:
                msg = f"{beside}: expected the six numbers of a world file"
                raise MapError(msg) from error
            # A world file has the centre of the first cell.
            return rasterio.Affine(a, b, x - 0.5 * (a + b), d, e, y - 0.5 * (d + e))
    return found.transform


def _read(
    path: Path, found: Any, transform: Any, bands: tuple[int, ...] | None, datum: Any, most: int
) -> tuple[FloatArray, tuple[float, float], tuple[float, float]]:
    if found.crs is not None and found.crs.is_geographic and datum is None:
        msg = (
            f"{path}: is in degrees ({found.crs.to_string()}), and the map does not say where its "
            "origin lies; take a map in longitude and latitude, give map.datum of a grid, or turn "
            "the raster into metres: gdalwarp -t_srs EPSG:… IN OUT.tif"
        )
        raise MapError(msg)
    wanted = tuple(range(found.count)) if bands is None else bands
    for band in wanted:
        if band >= found.count:
            msg = f"field.layer: {path} has layers 0 … {found.count - 1}, got {band}"
            raise MapError(msg)
    _check_size(path, found, most // max(1, len(wanted)))
    if transform.is_identity:
        logger.warning("%s: does not say where it lies; its cells count as metres from 0, 0", path)
    across, down = transform, transform.e
    if max(abs(across.b), abs(across.d)) > _STRAIGHT * abs(across.a) or across.a <= 0.0:
        msg = f"{path}: its rows do not run east; lay it straight: gdalwarp IN OUT.tif"
        raise MapError(msg)
    read = found.read([band + 1 for band in wanted], masked=True)
    values = np.ma.filled(read.astype(np.float64), np.nan)
    values[~np.isfinite(values)] = np.nan
    west, edge = float(across.c), float(across.f)
    south = edge
    if down < 0.0:  # as nearly all are: rows from north to south
        values, south = values[:, ::-1], edge + down * found.height
    return values, (west, south), (float(across.a), abs(float(down)))


def _check_size(path: Path, found: Any, most: int) -> None:
    if found.width * found.height > most:
        msg = (
            f"{path}: {found.width} × {found.height} cells are more than {most}; cut it down to "
            "the area of the map, or make its cells larger (gdal_translate -projwin, -tr)"
        )
        raise MapError(msg)


def _rasterio() -> Any:
    try:
        import rasterio
    except ImportError as error:
        msg = (
            "GeoTIFF is read with rasterio, which is not installed: "
            "pip install 'gp_active_sensing[maps]'; or turn the file into an ESRI ASCII grid, "
            "which needs nothing: gdal_translate -of AAIGrid IN OUT.asc"
        )
        raise MissingDependencyError(msg) from error
    return rasterio


GEOTIFF_ENDS = (".tif", ".tiff")
RASTER_ENDS = (".asc", *GEOTIFF_ENDS)
"""How the names of files of rasters end."""


@dataclass(frozen=True)
class RasterFile:
    """The first layer of a file.

    Args:
        values: (rows, columns) as they are stored; NaN = no data.
        transform: a, b, c, d, e, f: the outer corner of the cell in column k and row l has the
            coordinates x = a k + b l + c and y = d k + e l + f.
        crs: system of the coordinates as PROJ reads it, or "local" for metres of the map; "" where
            neither the file nor one beside it says any.
        notes: what was taken for granted, a sentence each.
    """

    values: FloatArray
    transform: tuple[float, float, float, float, float, float]
    crs: str = ""
    notes: tuple[str, ...] = ()


def read_raster(path: Path) -> RasterFile:
    """Read a raster.

    Raises:
        MapError: a file that cannot be read, that is damaged, too large, or without any data.
        MissingDependencyError: a GeoTIFF, without rasterio.
    """
    check_file(path)
    if path.name.lower().endswith(GEOTIFF_ENDS):
        found = RasterFile(*read_stored(path, MAX_CELLS))
        found = found if found.crs else replace(found, crs=_projection(path))
    else:
        values, (west, south), (dx, dy) = read_ascii_grid(path)
        where = (dx, 0.0, west, 0.0, -dy, south + dy * len(values))
        found = RasterFile(values, where, _projection(path))
    if np.isnan(found.values).all():
        rows, columns = found.values.shape
        msg = (
            f"{path}: none of its {columns} × {rows} cells has data, so there is no place; is it "
            "the right file, and its value for no data the right one?"
        )
        raise MapError(msg)
    a, b, _, d, e, _ = found.transform
    if not abs(a * e - b * d) > 0.0:
        msg = f"{path}: its cells have no area (transform {found.transform}); save it again"
        raise MapError(msg)
    return found


def _projection(path: Path) -> str:
    """Return the coordinate system that the file beside a raster says, "" where there is none."""
    beside = path.with_suffix(".prj")
    return read_text(beside).strip() if beside.is_file() else ""
