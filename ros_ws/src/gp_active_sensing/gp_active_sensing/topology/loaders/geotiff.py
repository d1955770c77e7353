"""Rasters from GeoTIFF files, as stored or laid into the metres of a map; needs ``[maps]``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import MapError, MissingDependencyError
from gp_active_sensing.topology.projection import local_system
from gp_active_sensing.types import FloatArray

__all__ = ["read_geotiff", "read_stored"]

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
    try:
        with rasterio.open(path) as found:
            if datum is None or found.crs is None:
                return _read(path, found, bands, datum, most)
            from rasterio.enums import Resampling
            from rasterio.vrt import WarpedVRT

            wanted = rasterio.crs.CRS.from_string(local_system(datum))
            if found.crs == wanted:
                return _read(path, found, bands, datum, most)
            _check_size(path, found, most)
            how = {"resampling": Resampling.bilinear, "nodata": np.nan, "dtype": "float64"}
            with WarpedVRT(found, crs=wanted, src_nodata=found.nodata, **how) as laid:
                return _read(path, laid, bands, datum, most)
    except rasterio.errors.RasterioError as error:
        msg = f"{path}: cannot be read as a GeoTIFF: {error}"
        raise MapError(msg) from error


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
    rasterio = _rasterio()
    notes: list[str] = []
    try:
        with warnings.catch_warnings():
            # A file that does not say where it lies: said below, and its cells are metres.
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            found = rasterio.open(path)
        with found:
            _check_size(path, found, most)
            if found.count > 1:
                named = f" ({found.descriptions[0]!r})" if found.descriptions[0] else ""
                notes.append(f"of its {found.count} bands the first{named} counts")
            read = found.read(1, masked=True)
            values = np.ma.filled(read.astype(np.float64), np.nan)
            values[~np.isfinite(values)] = np.nan
            crs = "" if found.crs is None else found.crs.to_wkt()
            a, b, c, d, e, f = (float(number) for number in found.transform[:6])
    except rasterio.errors.RasterioError as error:
        msg = f"{path}: cannot be read as a GeoTIFF: {error}"
        raise MapError(msg) from error
    return values, (a, b, c, d, e, f), crs, tuple(notes)


def _read(
    path: Path, found: Any, bands: tuple[int, ...] | None, datum: Any, most: int
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
    across, down = found.transform, found.transform.e
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
