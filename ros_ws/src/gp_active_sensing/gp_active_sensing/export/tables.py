"""Export of a map as CSV and as GeoJSON."""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.export.field_map import FieldMap
from gp_active_sensing.export.geojson import collection
from gp_active_sensing.export.lattice import Lattice, lattice_of
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.projection import geographic_of, local_system
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.tables import write_rows

logger = logging.getLogger(__name__)

_METRES = 3
"""Number of decimals of coordinates in metres, so that they are exact to a millimetre."""
_AXES = ("longitude", "latitude")
_DEGREES = 8
"""Number of decimals of coordinates in degrees, so that they are exact to about a millimetre."""


def as_csv(field: FieldMap) -> str:
    """Return a CSV table: position, estimate, standard deviation, readings, weight of each place.

    The columns ``longitude`` and ``latitude`` need a map with a datum, and pyproj. ``value`` is the
    average of the readings; it is empty if the place has no reading.
    """
    lonlat = None
    if field.topology.datum is not None:
        try:
            lonlat = field.geographic(field.topology.positions)
        except MissingDependencyError as error:
            logger.warning("no longitude and latitude in the table: %s", error)
    rows = list(_properties(field, lonlat))
    text = io.StringIO()
    write_rows(text, [rows[0], *(["" if v is None else v for v in r.values()] for r in rows)])
    return text.getvalue()


def check_geojson(topology: Topology) -> None:
    """Raise MissingDependencyError for a map with a datum if pyproj is missing."""
    if topology.datum is not None:
        geographic_of([(0.0, 0.0)], local_system(topology.datum), where=f"map {topology.name!r}")


def as_geojson(field: FieldMap) -> str:
    """Return a FeatureCollection [RFC 7946] of places: lines of roads, squares of cells, or points.

    Coordinates are longitude and latitude. On a map without a datum, they are metres, as the header
    declares. A road or cell across the meridian of 180 degrees is cut. If the map has heights,
    points have z.

    Raises:
        MissingDependencyError: the map has a datum, and pyproj is not installed.
    """
    shapes, kind = _shapes(field)
    if field.topology.datum is not None:
        flat = field.geographic(np.concatenate(shapes))
        ends = np.cumsum([len(shape) for shape in shapes])[:-1]
        shapes, decimals = np.split(flat, ends), _DEGREES
    else:
        decimals = _METRES
    return collection(
        header_of(field),
        (
            {
                "type": "Feature",
                "id": found["place"],
                "properties": found,
                "geometry": _geometry(shape, kind, decimals, found.get("z")),
            }
            for found, shape in zip(_properties(field), shapes, strict=True)
        ),
    )


def header_of(field: FieldMap) -> dict[str, Any]:
    """Return the GeoJSON header of a map."""
    topology = field.topology
    crs = {"crs": "local", "frame": topology.frame, "units": "metre"}
    if topology.datum is not None:
        crs = {"crs": "EPSG:4326", "frame": topology.frame, "units": "degree"}
    header: dict[str, Any] = {"schema": 1, "name": field.title or topology.name, **crs}
    if topology.datum is not None:
        header["datum"] = list(topology.datum)
    return header | {"quantity": field.quantity, "unit": field.unit}


def _properties(field: FieldMap, lonlat: FloatArray | None = None) -> Iterator[dict[str, Any]]:
    topology = field.topology
    where = topology.positions.round(_METRES).tolist()
    heights = None if topology.heights is None else topology.heights.round(_METRES).tolist()
    degrees = None if lonlat is None else lonlat.round(_DEGREES).tolist()
    values = field.values.tolist()
    for i, name in enumerate(topology.names):
        yield {
            "place": name,
            "x": where[i][0],
            "y": where[i][1],
            **({} if heights is None else {"z": heights[i]}),
            **({} if degrees is None else dict(zip(_AXES, degrees[i], strict=True))),
            "mean": float(field.mean[i]),
            "std": float(field.std[i]),
            **{name: float(values[i]) for name, values in field.probabilities.items()},
            "readings": int(field.readings[i]),
            "value": None if math.isnan(values[i]) else values[i],
            "weight": float(topology.weights[i]),
            **_further(field, i),
        }


def _further(field: FieldMap, place: int) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    for name, each in field.further.items():
        found[name], found[f"{name}_std"] = float(each.mean[place]), float(each.std[place])
        found[f"{name}_read"] = int(each.readings[place])
    return found


def _shapes(field: FieldMap) -> tuple[list[FloatArray], str]:
    """Return the (m, 2) corners of each place [m], and the kind of geometry."""
    topology = field.topology
    lines = [np.asarray(topology.geometry(i), dtype=np.float64) for i in range(topology.n)]
    if any(len(line) > 1 for line in lines):
        return [line if len(line) > 1 else np.vstack([line, line]) for line in lines], "LineString"
    try:
        lattice = lattice_of(topology)
    except RunError:
        return lines, "Point"
    return [_square(line[0], lattice) for line in lines], "Polygon"


def _square(centre: FloatArray, lattice: Lattice) -> FloatArray:
    half = 0.5 * np.asarray(lattice.cell)
    return np.asarray(centre + half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]))


def _geometry(shape: FloatArray, kind: str, decimals: int, z: float | None) -> dict[str, Any]:
    points = shape.round(decimals)
    if kind == "Point":
        return {"type": kind, "coordinates": [*points[0].tolist(), *([] if z is None else [z])]}
    across = decimals == _DEGREES and float(np.ptp(points[:, 0])) > 180.0
    parts = _cut(points, kind) if across else [points]
    nested = [[part.tolist()] if kind == "Polygon" else part.tolist() for part in parts]
    if len(nested) == 1:
        return {"type": kind, "coordinates": nested[0]}
    return {"type": f"Multi{kind}", "coordinates": nested}


def _cut(points: FloatArray, kind: str) -> list[FloatArray]:
    import shapely

    whole = shapely.Polygon(points) if kind == "Polygon" else shapely.LineString(points)
    lines = [part.exterior if kind == "Polygon" else part for part in cut_at_180(whole)]
    return [np.asarray(line.coords) for line in lines]


def cut_at_180(whole: Any) -> list[Any]:
    """Cut a line or polygon at the meridian of 180 degrees and return its parts.

    The coordinates [degree] jump by 360 at the meridian.
    """
    import shapely

    def shifted(shape: Any, where: float, by: float) -> Any:
        return shapely.transform(
            shape, lambda p: np.column_stack([p[:, 0] + by * (p[:, 0] < where), p[:, 1]])
        )

    east, found = shifted(whole, 0.0, 360.0), []
    for west, shift in ((0.0, 0.0), (180.0, -360.0)):
        piece = shapely.clip_by_rect(east, west, -90.0, west + 180.0, 90.0)
        for part in shapely.get_parts(piece):
            if part.geom_type == whole.geom_type:  # not a point or line on the meridian
                turned = part.geom_type == "Polygon"
                whole_part = shapely.geometry.polygon.orient(part) if turned else part
                found.append(shifted(whole_part, np.inf, shift))
    return found
