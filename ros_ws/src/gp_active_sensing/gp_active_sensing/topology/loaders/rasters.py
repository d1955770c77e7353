"""Rasters as they are stored: values in rows and columns, and where on Earth or on a map they lie.

An ESRI ASCII grid (``.asc``) needs no library; its coordinate system is that of the ``.prj`` file
beside it, where there is one. A GeoTIFF (``.tif``) needs the extra ``[maps]`` and says its own, or
has a ``.prj`` beside it, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.loaders.ascii_grid import MAX_CELLS, read_ascii_grid
from gp_active_sensing.topology.loaders.files import check_file, read_text
from gp_active_sensing.types import FloatArray

__all__ = ["GEOTIFF_ENDS", "RASTER_ENDS", "RasterFile", "read_raster"]

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
        from gp_active_sensing.topology.loaders.geotiff import read_stored

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
