"""The values of a field from a raster: an ESRI ASCII grid, a GeoTIFF, or a NumPy array.

A value of a raster stands at the centre of its cell. Between the centres of four cells values are
bilinear; beyond the outermost centres the nearest values hold. `topology.loaders.rasters` describes
the ESRI ASCII grid.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import MapError, listed, suggest
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.fields.slots import Slot, TimeSeriesField
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.loaders.rasters import (
    MAX_CELLS,
    RasterCells,
    RasterFile,
    lay,
    read_ascii_grid,
    read_layers,
)
from gp_active_sensing.topology.projection import LOCAL
from gp_active_sensing.types import BoolArray, FloatArray

__all__ = ["raster_truth", "read_rasters"]

_SHOWN = 5
_ARRAYS = (".npy", ".npz")
_GEOTIFF = (".tif", ".tiff")
_BROKEN = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors of NumPy and zipfile for files that are cut, damaged, encrypted or too large."""


def raster_truth(path: Path, config: FieldConfig, topology: Topology) -> GroundTruth:
    """Return the field at a map's places, ``offset + scale * raster``.

    Args:
        path: the raster.
        config: how it lies on the map, scale and offset; whether its layers are times.
        topology: the map.

    Returns:
        A field that stands still, or one that has the layers one after the other.

    Raises:
        MapError: a raster that cannot be used; the message names the places that it does not cover.
    """
    rasters = read_rasters(path, config, topology.datum)
    values = np.array([_sampled(raster, path, config, topology) for raster in rasters])
    length = config.slot_seconds
    if length is None:
        return GroundTruth(values[0])
    slots = tuple(Slot(k * length, (k + 1) * length) for k in range(len(rasters)))
    linear, start = config.between == "linear", config.start_time or 0.0
    return TimeSeriesField(slots, values, linear=linear, start=start)


def _sampled(
    raster: RasterCells, path: Path, config: FieldConfig, topology: Topology
) -> FloatArray:
    positions = np.asarray(topology.positions, dtype=np.float64)
    outside = ~raster.inside(positions)
    if outside.any():
        (west, south), (east, north) = raster.corners.min(axis=0), raster.corners.max(axis=0)
        (x0, y0), (x1, y1) = positions.min(axis=0), positions.max(axis=0)
        msg = (
            f"{path}: covers x {west:g} … {east:g}, y {south:g} … {north:g} m, the places of map "
            f"{topology.name!r} x {x0:g} … {x1:g}, y {y0:g} … {y1:g} m; outside are "
            f"{_count(outside, topology)}; move the map, or lay the raster under it with "
            "field.origin and field.cell"
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
    return np.asarray(config.offset + config.scale * values, dtype=np.float64)


def _count(which: BoolArray, topology: Topology) -> str:
    names = [topology.names[i] for i in np.flatnonzero(which)]
    return f"{len(names)} of {topology.n} places: {listed(names, _SHOWN)}"


def read_rasters(
    path: Path, config: FieldConfig, datum: tuple[float, float] | None = None
) -> list[RasterCells]:
    """Read the one raster of a file, or all of its layers, rows from south to north.

    Args:
        path: ``.asc``, ``.tif``, ``.tiff``, ``.npy`` or ``.npz``.
        config: origin, size of a cell, name and layer of the array; what it
            leaves out an ``.asc`` or ``.tif`` file says itself.
        datum: longitude and latitude of the map's origin [degree], for a GeoTIFF that says where
            on Earth it lies; None where it is not known.

    Raises:
        MapError: a file that cannot be read, or not enough to know where it lies.
        MissingDependencyError: a GeoTIFF, without rasterio.
    """
    suffix = path.suffix.lower()
    if suffix in _ARRAYS:
        return _from_arrays(path, config)
    if suffix in _GEOTIFF:
        return _from_geotiff(path, config, datum)
    if suffix != ".asc":
        msg = (
            f"{path}: expected a raster .asc (ESRI ASCII grid), .tif, .npy or .npz, got "
            f"{suffix!r}; GDAL turns others into the first: gdal_translate -of AAIGrid IN OUT.asc"
        )
        raise MapError(msg)
    for key in ("layer", "slot_seconds"):
        if getattr(config, key) is not None:
            msg = f"field.{key}: is for .npy, .npz and .tif, an ESRI ASCII grid is one layer"
            raise MapError(msg)
    values, origin, cell = read_ascii_grid(path)
    return [_placed(values[::-1], config.origin or origin, config.cell_size or cell, path)]


def _placed(
    values: FloatArray, origin: tuple[float, float], cell: tuple[float, float], path: Path
) -> RasterCells:
    """Return a raster in metres of the map, from its south-west corner."""
    transform = (cell[0], 0.0, origin[0], 0.0, cell[1], origin[1])
    return lay(RasterFile(values, transform, LOCAL), path, None)


def _from_geotiff(
    path: Path, config: FieldConfig, datum: tuple[float, float] | None
) -> list[RasterCells]:
    """Return layers in the map's frame where both are placed; else their coordinates are metres."""
    found = read_layers(path, (config.layer or 0) if config.slot_seconds is None else None)
    if config.origin or config.cell_size:
        layers = [layer.flipped() for layer in found]
        a, _, c, _, e, f = layers[0].transform
        origin, cell = config.origin or (c, f), config.cell_size or (a, e)
        return [_placed(layer.values, origin, cell, path) for layer in layers]
    if datum is None and found[0].crs.startswith("GEOG"):
        msg = (
            f"{path}: is in degrees, and the map does not say where its origin lies; take a map in "
            "longitude and latitude, or give map.datum of a grid"
        )
        raise MapError(msg)
    crs = found[0].crs if datum is not None and found[0].crs else LOCAL
    return [lay(replace(layer.flipped(), crs=crs), path, datum) for layer in found]


def _from_arrays(path: Path, config: FieldConfig) -> list[RasterCells]:
    array = _load(path, config.value_column)
    missing = [f"field.{key}" for key in ("cell", "origin") if getattr(config, key) is None]
    if missing:
        msg = f"{path}: an array does not say where it lies; give {' and '.join(missing)} in metres"
        raise MapError(msg)
    if array.dtype.kind not in "iufb":
        msg = f"{path}: expected an array of numbers, got {array.dtype}"
        raise MapError(msg)
    layers = _layers_of(array, path, config)
    if not 0 < layers.size <= MAX_CELLS:
        msg = f"{path}: expected 1 … {MAX_CELLS} cells, got shape {array.shape}"
        raise MapError(msg)
    values = np.asarray(layers, dtype=np.float64)[:, ::-1]
    if np.isinf(values).any():
        _, row, column = np.argwhere(np.isinf(layers))[0]
        msg = f"{path}: row {row}, column {column}: expected a finite number or NaN, got infinity"
        raise MapError(msg)
    origin, cell = config.origin or (0.0, 0.0), config.cell_size or (1.0, 1.0)
    return [_placed(layer, origin, cell, path) for layer in values]


def _layers_of(array: Any, path: Path, config: FieldConfig) -> Any:
    """Return the (k, rows, columns) layers that are wanted."""
    if config.slot_seconds is not None:
        if array.ndim == 3:
            return array
        msg = f"{path}: field.slot_seconds: expects an array with 3 axes, got shape {array.shape}"
        raise MapError(msg)
    if config.layer is not None and array.ndim == 3:
        if config.layer >= len(array):
            msg = f"field.layer: {path} has layers 0 … {len(array) - 1}, got {config.layer}"
            raise MapError(msg)
        return array[config.layer][None]
    if array.ndim == 2 and config.layer is None:
        return array[None]
    wanted = "3 axes (field.layer picks one)" if config.layer is not None else "2 axes"
    hint = (
        "; pick one with field.layer, or take them as times with field.slot_seconds"
        if array.ndim == 3
        else ""
    )
    msg = f"{path}: expected an array with {wanted}, got shape {array.shape}{hint}"
    raise MapError(msg)


def _load(path: Path, name: str) -> npt.NDArray[Any]:
    """Return the array of a file, never running code that it may hold (pickles)."""
    try:
        if path.suffix.lower() == ".npy":
            # Mapped, not read: a header that promises more than there is does no harm.
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays[_member(path, list(arrays.files), name)])
    except _BROKEN as error:
        if isinstance(error, MapError):
            raise
        msg = (
            f"{path}: cannot be read as a NumPy {path.suffix} file of numbers: {error}; save the "
            "array as it is, without Python objects (numpy.save, numpy.savez)"
        )
        raise MapError(msg) from error


def _member(path: Path, names: list[str], name: str) -> str:
    if name in names:
        return name
    if len(names) == 1 and name == "value":  # nothing else was asked for
        return names[0]
    msg = (
        f"{path}: no array {name!r}.{suggest(name, names)} It has: {', '.join(names) or 'none'}; "
        "name one with field.value_column"
    )
    raise MapError(msg)


def _check_sizes(path: Path) -> None:
    """Refuse an archive that would unpack to far more than a raster needs."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.file_size > 16 * MAX_CELLS:
                msg = (
                    f"{path}: array {member.filename!r} has {member.file_size / 1e6:.0f} MB, more "
                    f"than {MAX_CELLS} cells need; cut it down to the area of the map"
                )
                raise MapError(msg)
