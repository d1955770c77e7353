"""The areas of a file, in its own coordinates: KML, KMZ, plans of QGroundControl, GeoJSON."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.loaders.drafts import is_number, number_of, shown
from gp_active_sensing.topology.loaders.files import check_file, elements, read_text, tag_of
from gp_active_sensing.topology.projection import LONLAT
from gp_active_sensing.topology.segments import Point

__all__ = ["AREA_ENDS", "AreaFile", "Shape", "read_shapes"]


@dataclass(frozen=True)
class Shape:
    """A polygon, a circle or a corridor.

    Args:
        where: for messages.
        shell: corners; of a circle its middle, of a corridor the points of its middle line.
        name: of the file's author, "" if none.
        holes: corners of each.
        role: "outline", "fence" (nothing lies outside), "obstacle", "region" (counts by its
            weight); "" = not said.
        weight: of a region.
        radius: of a circle [m].
        width: of a corridor, half of it on either side of the line [m].
    """

    where: str
    shell: tuple[Point, ...]
    name: str = ""
    holes: tuple[tuple[Point, ...], ...] = ()
    role: str = ""
    weight: float | None = None
    radius: float = 0.0
    width: float = 0.0


@dataclass
class AreaFile:
    """What a file holds.

    Args:
        crs: of the coordinates, "" where it does not say.
        shapes: in the order of the file.
        others: how many there are of what is no polygon, by its name.
        home: where a mission begins.
        notes: what was taken for an area though it is drawn as something else, a sentence each.
    """

    crs: str = LONLAT
    shapes: list[Shape] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    home: Point | None = None
    notes: list[str] = field(default_factory=list)


def read_shapes(path: Path) -> AreaFile:
    """Read the polygons of a file in the format that the end of its name says.

    Raises:
        MapError: the file cannot be read, or is damaged.
    """
    check_file(path)
    for end, read in _READERS.items():
        if path.name.lower().endswith(end):
            return read(path)
    msg = (
        f"{path}: expected a file of areas ending in {', '.join(_READERS)}, got "
        f"{path.suffix or 'no ending'!r}"
    )
    raise MapError(msg)


_OBSTACLE = re.compile(
    r"\b(obstacles?|exclu\w*|keep.?out|no.?go|no.?fly|avoid|islands?|islets?|rocks?|holes?)\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\b(geo)?.?fence\b|\binclusion\b", re.IGNORECASE)
_OUTLINE = re.compile(r"\b(outline|boundary|perimeter|shore(line)?|survey)\b", re.IGNORECASE)
_ROLES = (("obstacle", _OBSTACLE), ("fence", _FENCE), ("outline", _OUTLINE))


def _role(said: Sequence[str], weight: float | None) -> str:
    """Return what a shape is for, by what its file calls it."""
    for text in said:
        for role, words in _ROLES:
            if words.search(text):
                return role
    return "" if weight is None else "region"


# -- KML -------------------------------------------------------------------------------------------


_MEET = 1e-6
"""Ends of a path that are no farther apart meet, about 0.1 m [degree]."""


def _kml(path: Path) -> AreaFile:
    found = AreaFile()
    closed: list[Shape] = []
    for number, mark in enumerate(elements(path, {"Placemark"}, root="kml"), 1):
        named = next((e.text or "" for e in mark if tag_of(e) == "name"), "").strip()
        where = f"placemark {number}" + (f" ({named!r})" if named else "")
        extra = dict(_data(mark))
        weight = number_of(extra.get("weight"))
        roles = [extra.get("role", ""), extra.get("type", ""), named]
        role = _role(roles, _checked_weight(weight, where, path))
        sides = {id(e) for whole in mark.iter() if tag_of(whole) == "Polygon" for e in whole.iter()}
        for element in mark.iter():
            kind = tag_of(element)
            if kind == "Polygon":
                shell, holes = _kml_rings(element, where, path)
                found.shapes.append(Shape(where, shell, named, holes, role, weight))
            elif kind in _PLAIN and id(element) not in sides:
                if corners := _closed(element, where, path):
                    closed.append(Shape(where, corners, named, role=role, weight=weight))
                else:
                    found.others[_PLAIN[kind]] += 1
    _take_closed(found, closed)
    return found


def _closed(line: ET.Element, where: str, path: Path) -> tuple[Point, ...]:
    """Return the corners that a path goes round, none where its ends do not meet."""
    if tag_of(line) not in ("LineString", "LinearRing"):
        return ()
    text = next((e.text or "" for e in line if tag_of(e) == "coordinates"), "")
    points = _kml_points(text, where, path)
    if len(points) < 2 or math.dist(points[0], points[-1]) > _MEET:
        return ()
    return points[:-1] if len(set(points[:-1])) >= 3 else ()  # to and fro is no outline


def _take_closed(found: AreaFile, closed: Sequence[Shape]) -> None:
    """Add closed paths to the areas of a file; beside polygons a path without a role is a track."""
    taken = [shape for shape in closed if shape.role] if found.shapes else closed
    found.shapes += taken
    found.notes += [f"{s.where}: a path whose ends meet was taken as an area" for s in taken]
    if len(taken) < len(closed):
        found.others["closed paths beside polygons"] = len(closed) - len(taken)


_PLAIN = {
    "LineString": "lines",
    "LinearRing": "lines",
    "MultiLineString": "lines",
    "Point": "points",
    "MultiPoint": "points",
    "Track": "tracks",
}


def _data(mark: ET.Element) -> Iterator[tuple[str, str]]:
    for element in mark.iter():
        name = str(element.get("name", "")).lower()
        if tag_of(element) == "Data":
            yield name, "".join(e.text or "" for e in element if tag_of(e) == "value").strip()
        elif tag_of(element) == "SimpleData":
            yield name, (element.text or "").strip()


def _checked_weight(weight: float | None, where: str, path: Path) -> float | None:
    if weight is not None and not 0.0 <= weight <= 1e12:
        msg = f"{path}: {where}: weight: must be 0 … 1e12, got {weight:g}"
        raise MapError(msg)
    return weight


def _kml_rings(
    polygon: ET.Element, where: str, path: Path
) -> tuple[tuple[Point, ...], tuple[tuple[Point, ...], ...]]:
    shells: list[tuple[Point, ...]] = []
    holes: list[tuple[Point, ...]] = []
    for side in polygon:
        for element in side.iter():
            if tag_of(element) == "coordinates":
                ring = _opened(_kml_points(element.text or "", where, path))
                (shells if tag_of(side) == "outerBoundaryIs" else holes).append(ring)
    if len(shells) != 1:
        msg = f"{path}: {where}: expected one outerBoundaryIs with coordinates, got {len(shells)}"
        raise MapError(msg)
    return shells[0], tuple(holes)


def _kml_points(text: str, where: str, path: Path) -> tuple[Point, ...]:
    points = []
    for word in re.sub(r"\s*,\s*", ",", text).split():
        numbers = [number_of(part) for part in word.split(",")]
        if len(numbers) < 2 or any(n is None or not math.isfinite(n) for n in numbers[:2]):
            msg = (
                f"{path}: {where}: coordinates: expected longitude,latitude in degrees, got "
                f"{shown(word)}"
            )
            raise MapError(msg)
        points.append((float(numbers[0] or 0.0), float(numbers[1] or 0.0)))
    return tuple(points)


def _opened(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return a ring without the last point, where that is the first once more."""
    ring = tuple(points)
    return ring[:-1] if len(ring) > 1 and ring[0] == ring[-1] else ring


# -- QGroundControl --------------------------------------------------------------------------------


def _plan(path: Path) -> AreaFile:
    """Read a plan: surveys, structures and corridors to scan, the geofence, the planned home.

    Its positions are latitude and longitude, in this order.
    """
    whole = _json(path)
    if not isinstance(whole, dict) or whole.get("fileType") != "Plan":
        kind = whole.get("fileType") if isinstance(whole, dict) else type(whole).__name__
        msg = f"{path}: expected a plan of QGroundControl (fileType Plan), got {shown(kind)}"
        raise MapError(msg)
    found = AreaFile()
    fence, mission = _object(whole, "geoFence"), _object(whole, "mission")
    for number, item in enumerate(_list(fence, "polygons"), 1):
        where = f"geofence polygon {number}"
        ring = _opened(_plan_points(item.get("polygon"), "corners", where, path))
        found.shapes.append(Shape(where, ring, where, role=_fence_role(item)))
    for number, item in enumerate(_list(fence, "circles"), 1):
        where = f"geofence circle {number}"
        circle = _object(item, "circle")
        radius = _metres(circle, "radius", where, path)
        middle = _plan_point(circle.get("center"), where, path)
        role = _fence_role(item)
        found.shapes.append(Shape(where, (middle,), where, role=role, radius=radius))
    for number, item in enumerate(_list(mission, "items"), 1):
        _plan_item(item, number, found, path)
    rally = len(_list(_object(whole, "rallyPoints"), "points", of=list))
    if rally:
        found.others["rally points"] += rally
    home = mission.get("plannedHomePosition")
    if home is not None:
        found.home = _plan_point(home, "plannedHomePosition", path)
    return found


def _plan_item(item: Mapping[str, Any], number: int, found: AreaFile, path: Path) -> None:
    kind = str(item.get("complexItemType") or "")
    if kind in _SCANS:
        where = f"{_SCANS[kind]} {number}"
        ring = _opened(_plan_points(item.get("polygon"), "corners", where, path))
        found.shapes.append(Shape(where, ring, where, role="outline"))
        if kind == "StructureScan":
            found.notes.append(f"{where}: the ground of the structure was taken as an area")
    elif kind == "CorridorScan":
        where = f"corridor scan {number}"
        line = _plan_points(item.get("polyline"), "points", where, path)
        width = _metres(item, "CorridorWidth", where, path)
        found.shapes.append(Shape(where, line, where, role="outline", width=width))
    else:
        found.others["waypoints and other items"] += 1


_SCANS = {"survey": "survey", "StructureScan": "structure scan"}


def _metres(data: Mapping[str, Any], key: str, where: str, path: Path) -> float:
    value = data.get(key)
    if not is_number(value) or not 0.0 < float(value) < 1e6:  # type: ignore[arg-type]
        msg = f"{path}: {where}: {key}: expected metres above 0, got {shown(value)}"
        raise MapError(msg)
    return float(value)  # type: ignore[arg-type]


def _fence_role(item: Mapping[str, Any]) -> str:
    return "obstacle" if item.get("inclusion") is False else "fence"


def _object(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _list(data: Mapping[str, Any], key: str, of: type = dict) -> list[Any]:
    value = data.get(key)
    return [item for item in value if isinstance(item, of)] if isinstance(value, list) else []


def _plan_points(value: Any, what: str, where: str, path: Path) -> tuple[Point, ...]:
    if not isinstance(value, list):
        msg = f"{path}: {where}: expected a list of {what}, got {shown(value)}"
        raise MapError(msg)
    return tuple(_plan_point(point, where, path) for point in value)


def _plan_point(value: Any, where: str, path: Path) -> Point:
    """Return longitude and latitude."""
    latitude, longitude = _pair(value, where, path, "[latitude, longitude]")
    return longitude, latitude


def _pair(value: Any, where: str, path: Path, what: str) -> Point:
    plain = isinstance(value, list) and len(value) >= 2 and all(map(is_number, value[:2]))
    if not plain or not all(math.isfinite(v) for v in value[:2]):
        msg = f"{path}: {where}: expected {what}, got {shown(value)}"
        raise MapError(msg)
    return float(value[0]), float(value[1])


# -- GeoJSON ---------------------------------------------------------------------------------------


def _geojson(path: Path) -> AreaFile:
    whole = _json(path)
    if not isinstance(whole, dict):
        msg = f"{path}: expected a GeoJSON object, got {type(whole).__name__}"
        raise MapError(msg)
    properties = _object(_object(whole, "crs"), "properties")
    crs = _object(whole, "gp_active_sensing").get("crs") or properties.get("name") or ""
    found = AreaFile(crs=str(crs))
    features = whole.get("features") if whole.get("type") == "FeatureCollection" else [whole]
    if not isinstance(features, list):
        msg = f"{path}: expected a list of features, got {shown(features)}"
        raise MapError(msg)
    for number, feature in enumerate(features):
        if not isinstance(feature, dict):
            msg = f"{path}: feature {number}: expected an object, got {shown(feature)}"
            raise MapError(msg)
        _feature(feature, number, found, path)
    return found


def _feature(feature: Mapping[str, Any], number: int, found: AreaFile, path: Path) -> None:
    said = _object(feature, "properties")
    name = str(said.get("name") or said.get("id") or feature.get("id") or "")
    where = f"feature {number}" + (f" ({name!r})" if name else "")
    weight = said.get("weight")
    weight = float(weight) if is_number(weight) else None  # type: ignore[arg-type]
    words = [str(said.get(key) or "") for key in ("role", "type", "kind", "class")]
    role = _role([*words, name], _checked_weight(weight, where, path))
    geometry = feature if feature.get("type") != "Feature" else feature.get("geometry")
    for rings in _polygons(geometry, where, found, path):
        if not rings:
            msg = f"{path}: {where}: a polygon without corners"
            raise MapError(msg)
        shell, *holes = rings
        found.shapes.append(Shape(where, shell, name, tuple(holes), role, weight))


def _polygons(
    geometry: Any, where: str, found: AreaFile, path: Path
) -> Iterator[list[tuple[Point, ...]]]:
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind == "GeometryCollection":
        for part in _list(geometry, "geometries"):
            yield from _polygons(part, where, found, path)
    elif kind in ("Polygon", "MultiPolygon"):
        coordinates = geometry.get("coordinates")
        for rings in [coordinates] if kind == "Polygon" else coordinates or ():
            if not isinstance(rings, list) or not all(isinstance(ring, list) for ring in rings):
                msg = f"{path}: {where}: expected the rings of a {kind}, got {shown(rings)}"
                raise MapError(msg)
            yield [
                _opened([_pair(c, where, path, "the two coordinates of a corner") for c in ring])
                for ring in rings
            ]
    elif kind in _PLAIN:
        found.others[_PLAIN[kind]] += 1
    elif geometry is not None:
        msg = f"{path}: {where}: expected a Polygon or a MultiPolygon, got {shown(kind)}"
        raise MapError(msg)


def _json(path: Path) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{path}: is not valid JSON, perhaps truncated: {error}"
        raise MapError(msg) from error


_READERS: dict[str, Callable[[Path], AreaFile]] = {
    ".kml": _kml,
    ".kmz": _kml,
    ".plan": _plan,
    ".geojson": _geojson,
    ".json": _geojson,
}
AREA_ENDS = tuple(_READERS)
"""How the names of files of areas end."""
