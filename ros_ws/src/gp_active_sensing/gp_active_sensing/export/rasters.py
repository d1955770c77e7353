"""Export of the map of a grid as rasters: ESRI ASCII grids for each layer, and one GeoTIFF."""

from __future__ import annotations

from typing import Any

import numpy as np

from gp_active_sensing.export.field_map import FieldMap
from gp_active_sensing.export.lattice import Lattice, layers_of
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.projection import local_system
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.lazy import library

_NO_DATA = -9999.0


def as_ascii_grids(field: FieldMap) -> dict[str, str]:
    """Return an ESRI ASCII grid for each of `FieldMap.quantities` in each layer, by name.

    Grids of all layers have the same rows and columns. Cells that are not square are described by
    ``dx`` and ``dy``, which GDAL reads. Coordinates are metres of the map.

    Raises:
        RunError: the map is no grid.
    """
    return {
        layer.named(name): _ascii_grid(layer.lattice, values[layer.places])
        for layer in layers_of(field.topology)
        for name, values in field.quantities
    }


def _ascii_grid(lattice: Lattice, values: FloatArray) -> str:
    nothing = _NO_DATA
    while (values == nothing).any():
        nothing *= 10.0
    (rows, columns), (dx, dy) = lattice.shape, lattice.cell
    square = abs(dx - dy) <= 1e-9 * dx
    size = f"cellsize {dx:.12g}" if square else f"dx {dx:.12g}\ndy {dy:.12g}"
    head = (
        f"ncols {columns}\nnrows {rows}\nxllcorner {lattice.corner[0]:.12g}\n"
        f"yllcorner {lattice.corner[1]:.12g}\n{size}\nNODATA_value {nothing:g}\n"
    )
    raster = lattice.filled(values, nothing)[::-1]  # rows from north to south
    return head + "".join(" ".join(f"{v:.9g}" for v in row) + "\n" for row in raster.tolist())


def as_geotiff(field: FieldMap) -> bytes:
    """Return a GeoTIFF: a float32 band for each of `FieldMap.quantities`, and one for readings.

    Each layer has its own bands, tagged with the height of the layer. The highest layer comes
    first. The coordinate system is a transverse Mercator of WGS 84 about the map's datum. The
    GeoTIFF of a map without a datum has no coordinate system.

    Raises:
        RunError: the map is no grid.
        MissingDependencyError: rasterio is not installed.
    """
    layers = layers_of(field.topology)
    lattice = layers[0].lattice
    rasterio = _rasterio()
    from rasterio.io import MemoryFile

    (rows, columns), (dx, dy) = lattice.shape, lattice.cell
    datum = field.topology.datum
    bands = [
        (layer, name, values)
        for layer in layers
        for name, values in (*field.quantities, ("readings", field.readings))
    ]
    units = dict.fromkeys(("mean", "std"), field.unit)
    for quantity, each in field.further.items():
        units |= dict.fromkeys((f"{quantity}_mean", f"{quantity}_std"), each.unit)
        both = (*each.quantities, ("readings", each.readings))
        bands += [(la, f"{quantity}_{name}", values) for la in layers for name, values in both]
    profile: dict[str, Any] = {
        "driver": "GTiff",
        "width": columns,
        "height": rows,
        "count": len(bands),
        "dtype": "float32",
        "nodata": float("nan"),
        "compress": "deflate",
        "transform": rasterio.Affine(dx, 0.0, lattice.corner[0], 0.0, -dy, lattice.top),
        "crs": None if datum is None else rasterio.crs.CRS.from_string(local_system(datum)),
    }
    with MemoryFile() as memory:
        with memory.open(**profile) as raster:
            for number, (layer, name, values) in enumerate(bands, 1):
                cells = layer.lattice.filled(values[layer.places])[::-1]
                raster.write(cells.astype(np.float32), number)
                raster.set_band_description(number, layer.named(name))
                if layer.height is not None:
                    raster.update_tags(number, z=f"{layer.height:g}")
                if unit := units.get(name):
                    raster.set_band_unit(number, unit)
            raster.update_tags(title=field.title, quantity=field.quantity, unit=field.unit)
        return bytes(memory.read())


def check_geotiff(topology: Topology) -> None:
    """Raise RunError for a map that is no grid, or MissingDependencyError without rasterio."""
    layers_of(topology)
    _rasterio()


def _rasterio() -> Any:
    more = "; asc needs nothing and is read by GIS programs as well"
    return library("rasterio", "GeoTIFF is written with rasterio", besides=more)
