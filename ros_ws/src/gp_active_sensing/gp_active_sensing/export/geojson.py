"""GeoJSON with a header of this package.

Road maps are written in the format that ``maps/README.md`` describes. Other features become a
collection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gp_active_sensing.topology.projection import LOCAL
from gp_active_sensing.topology.segments import RoadMap, Segment


def text_of(road_map: RoadMap) -> str:
    """Return a road map as GeoJSON: one line per feature, coordinates rounded to millimetres."""
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
    return collection(header, map(_of_segment, road_map.segments))


def collection(header: Mapping[str, Any], features: Iterable[Mapping[str, Any]]) -> str:
    """Return a FeatureCollection with a header of this package, one line per feature."""
    lines = [
        json.dumps(each, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        for each in features
    ]
    head = json.dumps(header, ensure_ascii=False)
    start = f'{{"type":"FeatureCollection","gp_active_sensing":{head},"features":[\n'
    return start + ",\n".join(lines) + "\n]}\n"


def _of_segment(segment: Segment) -> dict[str, Any]:
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
    known = {key: value for key, value in properties.items() if value is not None}
    line = [[round(x, 3), round(y, 3)] for x, y in segment.line]
    geometry = {"type": "LineString", "coordinates": line}
    return {"type": "Feature", "properties": known, "geometry": geometry}
