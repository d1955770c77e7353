"""The map as CSV and as GeoJSON."""

from __future__ import annotations

import csv
import io
import json
import logging
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.export.field_map import FieldMap
from gp_active_sensing.export.lattice import Lattice, lattice_of
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.projection import geographic_of, local_system
from gp_active_sensing.types import FloatArray

__all__ = ["as_csv", "as_geojson", "check_geojson"]

logger = logging.getLogger(__name__)

_METRES = 3
"""Decimals of metres: a millimetre."""
_DEGREES = 8
"""Decimals of degrees: about a millimetre."""


def as_csv(field: FieldMap) -> str:
    """Return a table, one row a place: where it is, estimate, deviation, readings, weight.

    The columns ``longitude`` and ``latitude`` are there where the map has a datum and pyproj is
    installed. ``value``, the average of the readings, is empty where there is none.
    """
    columns: list[tuple[str, list[Any]]] = [("place", list(field.topology.names))]
    x, y = field.topology.positions.T
    columns += [("x", _rounded(x, _METRES)), ("y", _rounded(y, _METRES))]
    columns += [("z", _rounded(heights, _METRES)) for heights in _heights(field)]
    if field.topology.datum is not None:
        try:
            lonlat = field.geographic(field.topology.positions)
        except MissingDependencyError as error:
            logger.warning("no longitude and latitude in the table: %s", error)
        else:
            columns.append(("longitude", _rounded(lonlat[:, 0], _DEGREES)))
            columns.append(("latitude", _rounded(lonlat[:, 1], _DEGREES)))
    columns += [
        ("mean", field.mean.tolist()),
        ("std", field.std.tolist()),
        ("readings", field.readings.tolist()),
        ("value", ["" if math.isnan(value) else value for value in field.values.tolist()]),
        ("weight", field.topology.weights.tolist()),
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([title for title, _ in columns])
    writer.writerows(zip(*(cells for _, cells in columns), strict=True))
    return text.getvalue()


def check_geojson(topology: Topology) -> None:
    """Refuse a map with a datum where pyproj is not installed (MissingDependencyError)."""
    if topology.datum is not None:
        geographic_of([(0.0, 0.0)], local_system(topology.datum), where=f"map {topology.name!r}")


def as_geojson(field: FieldMap) -> str:
    """Return a FeatureCollection [RFC 7946]: a line a road, a square a cell, otherwise a point.

    Coordinates are longitude and latitude where the map has a datum; otherwise metres, which the
    header says as that of a road map does. Points of a map with heights have z, as the map
    counts it.

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
    properties = list(_properties(field))
    features = [
        json.dumps(
            {
                "type": "Feature",
                "id": found["place"],
                "properties": found,
                "geometry": {
                    "type": kind,
                    "coordinates": _coordinates(shape, kind, decimals, above),
                },
            },
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        )
        for found, shape in zip(properties, shapes, strict=True)
        for above in [[found["z"]] if "z" in found else []]
    ]
    head = json.dumps(_header(field), ensure_ascii=False)
    start = f'{{"type":"FeatureCollection","gp_active_sensing":{head},"features":[\n'
    return start + ",\n".join(features) + "\n]}\n"


def _header(field: FieldMap) -> dict[str, Any]:
    topology = field.topology
    crs = {"crs": "local", "frame": topology.frame, "units": "metre"}
    if topology.datum is not None:
        crs = {"crs": "EPSG:4326", "frame": topology.frame, "units": "degree"}
    header: dict[str, Any] = {"schema": 1, "name": field.title or topology.name, **crs}
    if topology.datum is not None:
        header["datum"] = list(topology.datum)
    return header | {"quantity": field.quantity, "unit": field.unit}


def _properties(field: FieldMap) -> Iterator[dict[str, Any]]:
    topology = field.topology
    where = topology.positions.round(_METRES).tolist()
    heights = [values.round(_METRES).tolist() for values in _heights(field)]
    values = field.values.tolist()
    for i, name in enumerate(topology.names):
        yield {
            "place": name,
            "x": where[i][0],
            "y": where[i][1],
            **({"z": heights[0][i]} if heights else {}),
            "mean": float(field.mean[i]),
            "std": float(field.std[i]),
            "readings": int(field.readings[i]),
            "value": None if math.isnan(values[i]) else values[i],
            "weight": float(topology.weights[i]),
        }


def _shapes(field: FieldMap) -> tuple[list[FloatArray], str]:
    """Return the (m, 2) corners of each place [m], and the kind of geometry that they are."""
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
    """Return the corners of a cell counterclockwise, the first once more at the end."""
    half = 0.5 * np.asarray(lattice.cell)
    return np.asarray(centre + half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]))


def _coordinates(shape: FloatArray, kind: str, decimals: int, above: Sequence[float] = ()) -> Any:
    """Return coordinates as GeoJSON has them; a point has its height after them [m]."""
    points = shape.round(decimals).tolist()
    if kind == "Point":
        return [*points[0], *above]
    return [points] if kind == "Polygon" else points


def _heights(field: FieldMap) -> list[FloatArray]:
    """Return the heights of the places, in a list; [] where the map has none."""
    found = getattr(field.topology, "heights", None)
    return [] if found is None else [np.asarray(found, dtype=np.float64)]


def _rounded(values: FloatArray, decimals: int) -> list[float]:
    return [float(value) for value in values.round(decimals).tolist()]
