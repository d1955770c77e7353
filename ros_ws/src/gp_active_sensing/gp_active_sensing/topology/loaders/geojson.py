"""Road maps from GeoJSON; the format is described in ``maps/README.md``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError, suggest
from gp_active_sensing.topology.segments import Point, RoadMap, Segment, length_of

__all__ = ["load"]

_SHOWN_PROBLEMS = 10
_SHORTEST = 1e-3
"""Segments shorter than this [m] are taken for zero-length ones."""


def load(path: Path) -> RoadMap:
    """Read a road map.

    Args:
        path: a GeoJSON FeatureCollection in local metres.

    Raises:
        MapError: with every problem found (the first ten in words), each with its feature.
    """
    data = _read(path)
    header = _header(data, path)
    reader = _Reader()
    for index, feature in enumerate(_features(data, path)):
        reader.read(feature, index)
    reader.check_junctions()
    _fail(path, reader.problems)
    if not reader.segments:
        msg = f"{path}: has no segments; expected at least one LineString feature"
        raise MapError(msg)
    _check_metres(path, reader.segments, header)
    reader.check_successors()
    _fail(path, reader.problems)
    name = header.get("name") or path.stem
    return RoadMap(str(name), str(header.get("frame", "map")), tuple(reader.segments))


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise MapError(msg) from error
    if not text.strip():
        msg = f"{path}: is empty; expected a GeoJSON FeatureCollection"
        raise MapError(msg)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5000 digits
        msg = f"{path}: is not valid JSON, perhaps truncated: {error}"
        raise MapError(msg) from error


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


def _header(data: Any, path: Path) -> dict[str, Any]:
    """Return the map's own header, checked; a missing one means the defaults."""
    if not isinstance(data, dict):
        return {}
    header = data.get("gp_active_sensing", {})
    if not isinstance(header, dict):
        msg = f"{path}: gp_active_sensing: expected an object, got {type(header).__name__}"
        raise MapError(msg)
    problems = [
        f"gp_active_sensing.{key}: expected {expected!r}, got {header[key]!r}; "
        "coordinates must be metres in a local frame"
        for key, expected in (("schema", 1), ("crs", "local"), ("units", "metre"))
        if key in header and header[key] != expected
    ]
    frame = header.get("frame", "map")
    if not isinstance(frame, str) or not frame:
        problems.append(f"gp_active_sensing.frame: expected the name of a frame, got {frame!r}")
    _fail(path, problems)
    return header


def _check_metres(path: Path, segments: list[Segment], header: Mapping[str, Any]) -> None:
    """Refuse longitude and latitude, which a planner would take for a map of one metre."""
    xs = [x for segment in segments for x, _ in segment.line]
    ys = [y for segment in segments for _, y in segment.line]
    extent = max(max(xs) - min(xs), max(ys) - min(ys))
    drawn = math.fsum(length_of(segment.line) for segment in segments)
    stated = math.fsum(segment.length for segment in segments)
    degrees = max(map(abs, xs)) <= 180 and max(map(abs, ys)) <= 90
    if not degrees or header.get("allow_small") is True:
        return
    if extent < 1.0 or stated > 50 * drawn:
        msg = (
            f"{path}: coordinates look like longitude and latitude (x {min(xs):g} … {max(xs):g}, "
            f"y {min(ys):g} … {max(ys):g}); expected metres in a local frame. Project them first; "
            'for a map that is this small in metres set "allow_small": true in its header'
        )
        raise MapError(msg)


def _fail(path: Path, problems: list[str]) -> None:
    if not problems:
        return
    if len(problems) == 1:
        msg = f"{path}: {problems[0]}"
        raise MapError(msg)
    lines = [f"  - {problem}" for problem in problems[:_SHOWN_PROBLEMS]]
    if len(problems) > _SHOWN_PROBLEMS:
        lines.append(f"  … and {len(problems) - _SHOWN_PROBLEMS} more")
    msg = f"{path}: {len(problems)} problems in the map:\n" + "\n".join(lines)
    raise MapError(msg)


class _Reader:
    """Collects segments and what is wrong with them, feature by feature."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.problems: list[str] = []
        self._where: dict[str, str] = {}
        self._junctions: set[str] = set()

    def read(self, feature: Any, index: int) -> None:
        """Read one feature: a segment, or a junction."""
        where = f"feature {index}"
        if not isinstance(feature, dict) or feature.get("type") != "Feature":
            self.problems.append(f"{where}: expected a GeoJSON Feature, got {_shown(feature)}")
            return
        properties = feature.get("properties")
        if not isinstance(properties, dict):
            self.problems.append(f"{where}: expected properties, got {_shown(properties)}")
            return
        identity = properties.get("id", feature.get("id"))
        where = f"feature {index} (id {identity!r})"
        geometry = feature.get("geometry")
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        if kind == "Point":
            self._junctions.add(str(identity))
        elif kind == "LineString" and isinstance(geometry, dict):
            self._segment(identity, properties, geometry.get("coordinates"), where)
        else:
            self.problems.append(f"{where}: expected a LineString or a Point, got {_shown(kind)}")

    def _segment(
        self, identity: Any, properties: dict[str, Any], coordinates: Any, where: str
    ) -> None:
        before = len(self.problems)
        name = self._text(identity, "id", where)
        start, end = (self._text(properties.get(key), key, where) for key in ("from", "to"))
        line = self._line(coordinates, where)
        numbers = {
            key: self._number(properties.get(key), key, where)
            for key in ("length_m", "lanes", "speed_limit_mps")
        }
        successors = self._successors(properties.get("successors"), where)
        oneway = properties.get("oneway", True)
        if not isinstance(oneway, bool):
            self.problems.append(f"{where}: oneway: expected true or false, got {_shown(oneway)}")
        length = numbers["length_m"]
        if length is None:
            length = length_of(line)
        if len(self.problems) == before and min(length, length_of(line)) < _SHORTEST:
            self.problems.append(f"{where}: has zero length; join its junctions instead")
        if len(self.problems) > before:
            return
        segment = Segment(
            name,
            start,
            end,
            line,
            length,
            numbers["lanes"],
            numbers["speed_limit_mps"],
            successors,
            str(properties.get("name") or ""),
            str(properties.get("class") or ""),
        )
        self._add(segment, where)
        if not oneway:
            self._add(segment.reversed(), f"{where}, the reverse of it")

    def _add(self, segment: Segment, where: str) -> None:
        other = self._where.setdefault(segment.id, where)
        if other != where:
            self.problems.append(f"{where}: id {segment.id!r} is taken by {other}")
            return
        self.segments.append(segment)

    def _text(self, value: Any, key: str, where: str) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value:
            self.problems.append(f"{where}: {key}: expected text, got {_shown(value)}")
            return ""
        return value

    def _number(self, value: Any, key: str, where: str) -> float | None:
        if value is None:
            return None
        number = float(value) if _is_number(value) else math.nan
        if not (math.isfinite(number) and number > 0):
            self.problems.append(f"{where}: {key}: expected a number above 0, got {_shown(value)}")
            return None
        return number

    def _line(self, coordinates: Any, where: str) -> tuple[Point, ...]:
        if not isinstance(coordinates, list) or len(coordinates) < 2:
            count = len(coordinates) if isinstance(coordinates, list) else _shown(coordinates)
            self.problems.append(f"{where}: a LineString needs 2 or more points, got {count}")
            return ()
        points: list[Point] = []
        for k, entry in enumerate(coordinates):
            plain = isinstance(entry, list) and len(entry) >= 2
            if not plain or not all(_is_number(c) and math.isfinite(c) for c in entry[:2]):
                self.problems.append(
                    f"{where}: point {k}: expected two finite numbers, got {_shown(entry)}"
                )
                return ()
            points.append((float(entry[0]), float(entry[1])))
        return tuple(points)

    def _successors(self, value: Any, where: str) -> tuple[str, ...] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            self.problems.append(f"{where}: successors: expected a list, got {_shown(value)}")
            return None
        return tuple(self._text(entry, "successors", where) for entry in value)

    def check_junctions(self) -> None:
        """Segments must join junctions that exist, when the map lists junctions."""
        if not self._junctions:
            return
        for segment in self.segments:
            for key, junction in (("from", segment.start), ("to", segment.end)):
                if junction not in self._junctions:
                    hint = suggest(junction, self._junctions)
                    self.problems.append(
                        f"{self._where[segment.id]}: {key}: no junction {junction!r}.{hint}"
                    )

    def check_successors(self) -> None:
        """Successors must exist and start where the segment ends."""
        starts = {segment.id: segment.start for segment in self.segments}
        for segment in self.segments:
            where = self._where[segment.id]
            for successor in segment.successors or ():
                if successor not in starts:
                    hint = suggest(successor, starts)
                    self.problems.append(
                        f"{where}: successors: no segment {successor!r} on the map.{hint}"
                    )
                elif starts[successor] != segment.end:
                    self.problems.append(
                        f"{where}: successors: {successor!r} starts at junction "
                        f"{starts[successor]!r}, but this segment ends at {segment.end!r}"
                    )


def _is_number(value: Any) -> bool:
    if isinstance(value, int) and abs(value) > 1 << 1000:
        return False  # beyond the range of float
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
