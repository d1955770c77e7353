"""Road maps from GeoJSON and to GeoJSON; the format is described in ``maps/README.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.loaders import nav2
from gp_active_sensing.topology.loaders.drafts import Draft, Drafts, fail, is_number, shown
from gp_active_sensing.topology.loaders.vector import declared_crs, read_json
from gp_active_sensing.topology.projection import LOCAL
from gp_active_sensing.topology.segments import Point, RoadMap, Segment

__all__ = ["load", "text_of"]

_KEYS = ("id", "from", "to", "length_m", "lanes", "speed_limit_mps", "oneway", "successors")
_TEXTS = ("name", "class")


def load(path: Path, *, crs: str = "") -> RoadMap:
    """Read a road map, or the graph of a Nav2 route server.

    Args:
        path: a GeoJSON FeatureCollection.
        crs: of the coordinates, whatever the file says; "" = what it says, and where it says
            nothing what they look like.

    Raises:
        MapError: with every problem found (the first ten in words), each with its feature.
        MissingDependencyError: coordinates are not metres, and pyproj is missing.
    """
    data = read_json(path)
    features = _features(data, path)
    if nav2.is_graph(features):
        return nav2.read(path, features, crs=crs)
    header = _header(data, path)
    _check_named(features, path)
    reader = _GeoJsonReader(path)
    for index, feature in enumerate(features):
        reader.read(feature, index)
    reader.drafts.check_junctions(reader.junctions)
    return reader.drafts.finish(
        crs or declared_crs(data),
        name=str(header.get("name") or ""),
        frame=str(header.get("frame", "map")),
        datum=header.get("datum"),
        allow_small=header.get("allow_small") is True,
        nothing="expected at least one LineString feature",
    )


def text_of(road_map: RoadMap) -> str:
    """Return a road map as GeoJSON, a feature a line, coordinates to the millimetre."""
    header: dict[str, Any] = {
        "schema": 1,
        "name": road_map.name,
        "crs": LOCAL,
        "frame": road_map.frame,
        "units": "metre",
    }
    if road_map.datum is not None:
        header["datum"] = list(road_map.datum)
    corners = [c for segment in road_map.segments for point in segment.line for c in point]
    if max(corners) - min(corners) < 1.0:
        header["allow_small"] = True
    head = json.dumps(header, ensure_ascii=False)
    lines = [
        json.dumps(_feature(segment), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        for segment in road_map.segments
    ]
    start = f'{{"type":"FeatureCollection","gp_active_sensing":{head},"features":[\n'
    return start + ",\n".join(lines) + "\n]}\n"


def _feature(segment: Segment) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "id": segment.id,
        "from": segment.start,
        "to": segment.end,
        "length_m": round(segment.length, 3),
        "lanes": segment.lanes,
        "speed_limit_mps": None if segment.speed_limit is None else round(segment.speed_limit, 4),
        "name": segment.name or None,
        "class": segment.road_class or None,
        "successors": None if segment.successors is None else list(segment.successors),
        **segment.extra,
    }
    return {
        "type": "Feature",
        "properties": {key: value for key, value in properties.items() if value is not None},
        "geometry": {
            "type": "LineString",
            "coordinates": [[round(x, 3), round(y, 3)] for x, y in segment.line],
        },
    }


def _features(data: Any, path: Path) -> list[Any]:
    kind = data.get("type") if isinstance(data, dict) else type(data).__name__
    features = data.get("features") if isinstance(data, dict) else None
    if kind != "FeatureCollection" or not isinstance(features, list):
        msg = f"{path}: expected a GeoJSON FeatureCollection with a list of features, got {kind!r}"
        raise MapError(msg)
    if not features:
        msg = f"{path}: has no features; expected at least one LineString"
        raise MapError(msg)
    return features


def _check_named(features: Sequence[Any], path: Path) -> None:
    """Refuse plain lines, of which none says what a segment needs, in one sentence."""
    lines = [
        feature
        for feature in features
        if isinstance(feature, dict)
        and isinstance(feature.get("geometry"), dict)
        and feature["geometry"].get("type") == "LineString"
    ]
    said = [properties for line in lines if isinstance(properties := line.get("properties"), dict)]
    missing = [key for key in ("from", "to") if not any(key in names for names in said)]
    if not any("id" in names for names in (*said, *lines)):
        missing.insert(0, "id")
    if lines and missing:
        msg = (
            f"{path}: the lines ({len(lines)}) have no {', no '.join(missing)}; each needs the "
            "properties id, its name, and from and to, the junctions that it leaves and leads to"
        )
        raise MapError(msg)


def _header(data: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the map's own header, checked; a missing one means the defaults."""
    header = data.get("gp_active_sensing", {})
    if not isinstance(header, dict):
        msg = f"{path}: gp_active_sensing: expected an object, got {type(header).__name__}"
        raise MapError(msg)
    header = dict(header)
    problems = [
        f"gp_active_sensing.{key}: expected {expected!r}, got {header[key]!r}"
        for key, expected in (("schema", 1), ("units", "metre"))
        if key in header and header[key] != expected
    ]
    for key, what in (("frame", "the name of a frame"), ("crs", "the name of a system")):
        value = header.get(key, "?")
        if not isinstance(value, str) or not value:
            problems.append(f"gp_active_sensing.{key}: expected {what}, got {value!r}")
    datum = header.get("datum")
    if datum is not None:
        plain = isinstance(datum, list) and len(datum) == 2 and all(map(is_number, datum))
        if not plain or not (abs(datum[0]) <= 180.0 and abs(datum[1]) <= 90.0):
            problems.append(
                f"gp_active_sensing.datum: expected [longitude, latitude], got {shown(datum)}"
            )
        else:
            header["datum"] = (float(datum[0]), float(datum[1]))
    fail(path, problems)
    return header


class _GeoJsonReader:
    """Collects segments and what is wrong with them, feature by feature."""

    def __init__(self, path: Path) -> None:
        self.drafts = Drafts(path)
        self.junctions: set[str] = set()

    def read(self, feature: Any, index: int) -> None:
        """Add a feature: a LineString is a segment, a Point a junction."""
        where = f"feature {index}"
        problems = self.drafts.problems
        if not isinstance(feature, dict) or feature.get("type") != "Feature":
            problems.append(f"{where}: expected a GeoJSON Feature, got {shown(feature)}")
            return
        properties = feature.get("properties")
        if not isinstance(properties, dict):
            problems.append(f"{where}: expected properties, got {shown(properties)}")
            return
        identity = properties.get("id", feature.get("id"))
        where = f"feature {index} (id {identity!r})"
        geometry = feature.get("geometry")
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        if kind == "Point":
            self.junctions.add(str(identity))
        elif kind == "LineString" and isinstance(geometry, dict):
            self._segment(identity, properties, geometry.get("coordinates"), where)
        else:
            problems.append(f"{where}: expected a LineString or a Point, got {shown(kind)}")

    def _segment(
        self, identity: Any, properties: dict[str, Any], coordinates: Any, where: str
    ) -> None:
        drafts = self.drafts
        before = len(drafts.problems)
        name = drafts.text(identity, "id", where)
        start, end = (drafts.text(properties.get(key), key, where) for key in ("from", "to"))
        line: tuple[Point, ...] = drafts.line(coordinates, where)
        length, lanes, limit = (
            drafts.number(properties.get(key), key, where)
            for key in ("length_m", "lanes", "speed_limit_mps")
        )
        successors = self._successors(properties.get("successors"), where)
        oneway = properties.get("oneway", True)
        if not isinstance(oneway, bool):
            drafts.problems.append(f"{where}: oneway: expected true or false, got {shown(oneway)}")
        others = {k: v for k, v in properties.items() if k not in _KEYS and k not in _TEXTS}
        extra = drafts.extra(others, where)
        if len(drafts.problems) > before:
            return
        title, road_class = (str(properties.get(key) or "") for key in _TEXTS)
        drafts.add(
            Draft(
                where,
                name,
                start,
                end,
                line,
                length=length,
                lanes=lanes,
                speed_limit=limit,
                successors=successors,
                name=title,
                road_class=road_class,
                extra=extra,
                two_way=oneway is False,
            )
        )

    def _successors(self, value: Any, where: str) -> tuple[str, ...] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            self.drafts.problems.append(f"{where}: successors: expected a list, got {shown(value)}")
            return None
        return tuple(self.drafts.text(entry, "successors", where) for entry in value)
