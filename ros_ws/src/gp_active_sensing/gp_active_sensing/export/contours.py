"""Contour lines of the estimate, and areas above or below a limit, as GeoJSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gp_active_sensing.errors import RunError
from gp_active_sensing.export.field_map import FieldMap
from gp_active_sensing.export.geojson import collection
from gp_active_sensing.export.lattice import Lattice, lattice_of
from gp_active_sensing.export.tables import cut_at_180, header_of
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.lazy import library

PROBABILITIES = (0.5, 0.9, 0.99)
"""Probabilities for which areas above or below a limit are drawn."""


def as_contours(field: FieldMap, levels: Sequence[float]) -> str:
    """Return contour lines of the estimate, and areas beyond each limit of the map, as GeoJSON.

    Each limit has an area for each of `PROBABILITIES`. In this area, the value is beyond the limit
    with at least this probability. Lines and areas end at the centres of the outermost cells.
    Levels are in the sensor's unit.

    Raises:
        RunError: the map is no grid, or is only one cell wide.
        MissingDependencyError: contourpy is missing, or pyproj for a map with a datum.
    """
    lattice = lattice_of(field.topology)
    if min(lattice.shape) < 2:
        msg = f"map {field.topology.name!r}: contours need two rows and two columns at least"
        raise RunError(msg)
    return collection(
        header_of(field),
        (
            {"type": "Feature", "properties": found, "geometry": _geometry(field, shape)}
            for found, shape in _shapes(field, lattice, levels)
        ),
    )


def _shapes(
    field: FieldMap, lattice: Lattice, levels: Sequence[float]
) -> Iterator[tuple[dict[str, Any], Any]]:
    import shapely

    lines = _generator(lattice, field.mean)
    for level in levels:
        for line in lines.lines(level):
            yield {"contour": level}, shapely.LineString(line)
    for name, values in field.probabilities.items():
        areas = _generator(lattice, values)
        for least in PROBABILITIES:
            for points, ends in zip(*areas.filled(least, np.inf), strict=True):
                outer, *holes = np.split(points, ends[1:-1].astype(np.int64))
                yield {"area": name, "probability": least}, shapely.Polygon(outer, holes)


def _generator(lattice: Lattice, values: FloatArray) -> Any:
    contourpy = library("contourpy", "contours are made with contourpy", extra="plot")
    (rows, columns), (dx, dy) = lattice.shape, lattice.cell
    return contourpy.contour_generator(
        lattice.centre[0] + dx * np.arange(columns),
        lattice.centre[1] + dy * np.arange(rows),
        np.ma.masked_invalid(lattice.filled(values)),
        line_type=contourpy.LineType.Separate,
        fill_type=contourpy.FillType.OuterOffset,
    )


def _geometry(field: FieldMap, shape: Any) -> dict[str, Any]:
    """Return a shape [m] as GeoJSON, in degrees if the map has a datum."""
    import shapely

    if field.topology.datum is not None:
        shape = shapely.transform(shape, field.geographic)
        if np.ptp(shapely.get_coordinates(shape)[:, 0]) > 180.0:
            parts = cut_at_180(shape)
            several = type(shape).__name__ == "Polygon"
            shape = (shapely.MultiPolygon if several else shapely.MultiLineString)(parts)
    found: dict[str, Any] = json.loads(shapely.to_geojson(shape))
    return found
