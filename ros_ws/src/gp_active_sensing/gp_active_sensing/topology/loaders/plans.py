"""Plans of QGroundControl: surveys, structures, corridors, the geofence and the home position.

Positions are latitude and longitude, in this order. A plan of an unknown layout is refused, since a
vehicle could leave an area whose geofence is not read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import brief_repr
from gp_active_sensing.topology.loaders import expected, fault, is_number, read_json
from gp_active_sensing.topology.loaders.vector import Drawing, Shape

_MOST_ITEMS = 20_000
_MOST_POINTS = 20_000
_SCANS = {"survey": "survey", "StructureScan": "structure scan", "CorridorScan": "corridor scan"}
_FENCE = {"circles": "circle", "polygons": "polygon"}
_IGNORED = ("version", "breachReturn", "params")


def read_plan(path: Path) -> Drawing:
    """Read a plan. Raises MapError for a fence or a survey of an unknown kind."""
    whole = read_json(path)
    if not isinstance(whole, dict) or whole.get("fileType") != "Plan":
        kind = whole.get("fileType") if isinstance(whole, dict) else type(whole).__name__
        raise expected(path, "", "a plan of QGroundControl (fileType Plan)", kind)
    found = Drawing()
    mission = _object(whole.get("mission"), "mission", path)
    _fence(_object(whole.get("geoFence"), "geoFence", path), found, path)
    if mission.get("complexItems"):
        raise fault(path, "mission.complexItems: a layout that is not known; save the plan again")
    items = _items(mission.get("items"), "mission.items", path)
    for number, item in enumerate(items, 1):
        _item(item, number, found, path)
    rally = _object(whole.get("rallyPoints"), "rallyPoints", path).get("points")
    if isinstance(rally, list) and rally:
        found.others["rally points"] += len(rally)
    _home(mission.get("plannedHomePosition"), found, path)
    return found


def _fence(fence: Mapping[str, Any], found: Drawing, path: Path) -> None:
    if fence.get("version") == 1 and "polygon" in fence:  # version 1 has one fence
        ring = _geometry("Polygon", fence["polygon"], "geofence", path)
        found.shapes.append(Shape("geofence", ring, "geofence", "fence"))
        fence = {key: value for key, value in fence.items() if key != "polygon"}
    unknown = [k for k, v in fence.items() if v and k not in _FENCE and k not in _IGNORED]
    if unknown:
        raise fault(
            path,
            f"geoFence: {', '.join(unknown)!r:.80} of a layout that is not known (version "
            f"{brief_repr(fence.get('version'))}; expected polygons and circles, version 2); open "
            "the plan in a newer QGroundControl and save it again, so that no fence is lost",
        )
    for key, word in _FENCE.items():
        for number, item in enumerate(_items(fence.get(key), f"geoFence.{key}", path), 1):
            where = f"geofence {word} {number}"
            inclusion = item.get("inclusion")
            if not isinstance(inclusion, bool):
                raise expected(path, f"{where}: inclusion", "true or false", inclusion)
            role = "fence" if inclusion else "obstacle"
            if key == "circles":
                circle = _object(item.get("circle"), where, path)
                radius = _metres(circle, "radius", where, path)
                middle = _geometry("Point", [circle.get("center")], where, path)
                found.shapes.append(Shape(where, middle, where, role, radius=radius))
            else:
                ring = _geometry("Polygon", item.get("polygon"), where, path)
                found.shapes.append(Shape(where, ring, where, role))


def _item(item: Mapping[str, Any], number: int, found: Drawing, path: Path) -> None:
    kind = item.get("complexItemType")
    if item.get("type") != "ComplexItem" and kind is None:
        found.others["waypoints and other items"] += 1
        return
    if kind in ("fwLandingPattern", "vtolLandingPattern"):
        found.others["landing patterns"] += 1
        return
    if kind not in _SCANS:
        raise fault(
            path,
            f"item {number}: complexItemType: expected one of {', '.join(_SCANS)}, got "
            f"{brief_repr(kind)}; remove the item from the plan where no area is lost with it",
        )
    where = f"{_SCANS[kind]} {number}"
    if kind == "CorridorScan":
        line = _geometry("LineString", item.get("polyline"), where, path)
        width = _metres(item, "CorridorWidth", where, path)
        found.shapes.append(Shape(where, line, where, "outline", width=width))
        return
    ring = _geometry("Polygon", item.get("polygon"), where, path)
    found.shapes.append(Shape(where, ring, where, "outline"))
    if kind == "StructureScan":
        found.notes.append(f"{where}: the ground of the structure was taken as an area")


def _home(value: Any, found: Drawing, path: Path) -> None:
    if value is None:
        return
    given = value[:2] if isinstance(value, list) else []
    numbers = [float(v) for v in given if is_number(v) and math.isfinite(v)]
    if len(numbers) < 2 or not any(numbers):
        found.notes.append("the position of the planned home is not known: it was left out")
    elif abs(numbers[0]) > 90.0 or abs(numbers[1]) > 180.0:
        raise expected(path, "plannedHomePosition", "latitude, longitude", value)
    else:
        found.home = numbers[1], numbers[0]


def _object(value: Any, where: str, path: Path) -> Mapping[str, Any]:
    if value is None or isinstance(value, dict):
        return value or {}
    raise expected(path, where, "an object", value)


def _items(value: Any, where: str, path: Path) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise expected(path, where, "a list of objects", value)
    if len(value) > _MOST_ITEMS:
        raise fault(path, f"{where}: has {len(value)} entries; expected at most {_MOST_ITEMS}")
    return value


def _metres(data: Mapping[str, Any], key: str, where: str, path: Path) -> float:
    value = data.get(key)
    if not is_number(value) or not 0.0 < float(value) < 1e6:  # type: ignore[arg-type]
        raise expected(path, f"{where}: {key}", "metres above 0", value)
    return float(value)  # type: ignore[arg-type]


def _geometry(kind: str, value: Any, where: str, path: Path) -> Any:
    """Return a shape in longitude and latitude from points in latitude and longitude."""
    import shapely

    least = {"Point": 1, "LineString": 2, "Polygon": 3}[kind]
    if not isinstance(value, list) or len(value) > _MOST_POINTS:
        got = len(value) if isinstance(value, list) else value
        raise expected(path, where, f"a list of {least} … {_MOST_POINTS} points", got)
    points = []
    for point in value:
        plain = isinstance(point, list) and len(point) >= 2 and all(map(is_number, point[:2]))
        if not plain or not all(math.isfinite(v) for v in point[:2]):
            raise expected(path, where, "[latitude, longitude]", point)
        points.append((float(point[1]), float(point[0])))
    if len(set(points)) < least:
        raise expected(path, where, f"{least} points or more", len(set(points)))
    return shapely.Point(points[0]) if kind == "Point" else getattr(shapely, kind)(points)
