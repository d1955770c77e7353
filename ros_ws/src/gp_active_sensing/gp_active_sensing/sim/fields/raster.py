"""Values of a field from a raster: an ESRI ASCII grid or a GeoTIFF.

A value belongs to the centre of its cell. Values between four centres are interpolated bilinearly.
Outside the outermost centres the nearest value applies.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import MapError, listed
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.loaders.rasters import RasterCells, of_ascii, read_layer, to_map
from gp_active_sensing.topology.projection import LOCAL
from gp_active_sensing.types import BoolArray

_SHOWN = 5


def raster_truth(path: Path, config: FieldConfig, topology: Topology) -> GroundTruth:
    """Return the field ``offset + scale * raster`` at a map's places.

    Raises:
        MapError: a raster that cannot be used; the message names places outside the raster.
    """
    raster = read_field_raster(path, config, topology.datum)
    positions = np.asarray(topology.positions, dtype=np.float64)
    outside = ~raster.inside(positions)
    if outside.any():
        (west, south), (east, north) = raster.corners.min(axis=0), raster.corners.max(axis=0)
        (x0, y0), (x1, y1) = positions.min(axis=0), positions.max(axis=0)
        msg = (
            f"{path}: covers x {west:g} … {east:g}, y {south:g} … {north:g} m, the places of map "
            f"{topology.name!r} x {x0:g} … {x1:g}, y {y0:g} … {y1:g} m; outside are "
            f"{_count(outside, topology)}; move the map (map.origin), or give the raster the map's "
            "coordinates (gdal_translate -a_ullr)"
        )
        raise MapError(msg)
    values = raster.values_at(positions, whole=True)
    empty = np.isnan(values)
    if empty.any():
        msg = (
            f"{path}: no data at {_count(empty, topology)}; fill the gaps, or leave these places "
            "out of the map (map.outline, map.obstacles)"
        )
        raise MapError(msg)
    return GroundTruth(np.asarray(config.offset + config.scale * values, dtype=np.float64))


def _count(which: BoolArray, topology: Topology) -> str:
    names = [topology.names[i] for i in np.flatnonzero(which)]
    return f"{len(names)} of {topology.n} places: {listed(names, _SHOWN)}"


def read_field_raster(
    path: Path, config: FieldConfig, datum: tuple[float, float] | None = None
) -> RasterCells:
    """Read a raster (``.asc``, ``.tif`` or ``.tiff``); return its rows from south to north.

    `datum` is the longitude and latitude of the map's origin [degree]. If `datum` is None or the
    raster has no coordinate system, the raster's coordinates are metres of the map.

    Raises:
        MapError: a file that cannot be read, or whose position is not known.
        MissingDependencyError: rasterio is missing for a GeoTIFF.
    """
    suffix = path.suffix.lower()
    if suffix in (".tif", ".tiff"):
        found = read_layer(path, config.layer or 0)
    elif suffix == ".asc":
        if config.layer is not None:
            msg = f"{path}: field.layer: an ESRI ASCII grid is one layer"
            raise MapError(msg)
        found = of_ascii(path)[0]
    else:
        msg = (
            f"{path}: expected a raster .asc (ESRI ASCII grid) or .tif, got {suffix!r}; GDAL turns "
            "others into one (gdal_translate -of AAIGrid IN OUT.asc), numpy.savetxt an array"
        )
        raise MapError(msg)
    if datum is None and found.crs.startswith("GEOG"):
        msg = (
            f"{path}: is in degrees, and the map does not say where its origin lies; take a map in "
            "longitude and latitude, or give map.datum of a grid"
        )
        raise MapError(msg)
    crs = found.crs if datum is not None and found.crs else LOCAL
    return to_map(replace(found.flipped(), crs=crs), path, datum)
