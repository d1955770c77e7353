"""Turn SUMO's network and edge speeds into a road map and a table; needs no SUMO.

Used by make_town.py. Reads ``town.net.xml`` and ``town.edgedata.xml``.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path
from typing import Any

__all__ = ["convert", "parse_xml"]

logger = logging.getLogger(__name__)


def convert(work: Path, out: Path) -> None:
    """Write the road map, the speeds and the packed files for live traffic."""
    net = parse_xml(work / "town.net.xml")
    slots = parse_xml(work / "town.edgedata.xml")
    segments = _segments(net)
    _add_successors(net, segments)
    speeds = _speeds(slots, segments)
    out.mkdir(parents=True, exist_ok=True)
    (out / "town.geojson").write_text(_geojson(segments), encoding="utf-8")
    (out / "town_speeds.csv").write_text(speeds, encoding="utf-8")
    for name in ("town.net.xml", "town.trips.xml"):
        _pack(work / name, out / f"{name}.gz")
    logger.info("wrote %d segments to %s", len(segments), out)


def _pack(source: Path, target: Path) -> None:
    """Compress a file without comments (they have a date) and without times: always the same."""
    text = re.sub(r"<!--.*?-->\s*", "", source.read_text(encoding="utf-8"), flags=re.DOTALL)
    target.write_bytes(gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0))


def parse_xml(path: Path) -> ET.Element:
    """Parse XML that has no document type, so that nothing in it can expand or load anything."""
    text = path.read_bytes().decode("utf-8")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        message = f"{path}: has a document type declaration; SUMO writes none"
        raise ValueError(message)
    try:
        return ET.fromstring(text)
    except ET.ParseError as error:
        message = f"{path}: is not valid XML: {error}"
        raise ValueError(message) from error


def _segments(net: ET.Element) -> dict[str, dict[str, Any]]:
    """Return the drivable edges by id, each with the middle line of its lanes."""
    segments: dict[str, dict[str, Any]] = {}
    for edge in net.iter("edge"):
        if edge.get("function", "normal") != "normal":
            continue
        lanes = edge.findall("lane")
        shapes = [_shape(lane) for lane in (lanes[0], lanes[-1])]
        if len(shapes[0]) != len(shapes[1]):
            shapes[1] = shapes[0]
        line = [
            [round((a + b) / 2, 1) for a, b in zip(p, q, strict=True)]
            for p, q in zip(*shapes, strict=True)
        ]
        segments[str(edge.get("id"))] = {
            "id": edge.get("id"),
            "from": edge.get("from"),
            "to": edge.get("to"),
            "length_m": round(float(lanes[0].get("length", "nan")), 1),
            "lanes": len(lanes),
            "speed_limit_mps": float(lanes[0].get("speed", "nan")),
            "class": edge.get("type", ""),
            "line": line,
        }
    return segments


def _shape(lane: ET.Element) -> list[tuple[float, ...]]:
    return [tuple(map(float, p.split(",")[:2])) for p in lane.get("shape", "").split()]


def _add_successors(net: ET.Element, segments: dict[str, dict[str, Any]]) -> None:
    """List the successors of a segment where the map's own rule would not give SUMO's."""
    allowed: dict[str, set[str]] = defaultdict(set)
    for connection in net.iter("connection"):
        first, second = str(connection.get("from")), str(connection.get("to"))
        if first in segments and second in segments:
            allowed[first].add(second)
    leaving: dict[str, set[str]] = defaultdict(set)
    for identity, segment in segments.items():
        leaving[segment["from"]].add(identity)
    for identity, segment in segments.items():
        onward = {b for b in leaving[segment["to"]] if segments[b]["to"] != segment["from"]}
        if allowed[identity] != (onward or leaving[segment["to"]]):
            segment["successors"] = sorted(allowed[identity])


def _geojson(segments: dict[str, dict[str, Any]]) -> str:
    header = {"schema": 1, "name": "town", "crs": "local", "frame": "map", "units": "metre"}
    lines = []
    for segment in segments.values():
        properties = {key: value for key, value in segment.items() if key != "line"}
        geometry = {"type": "LineString", "coordinates": segment["line"]}
        feature = {"type": "Feature", "properties": properties, "geometry": geometry}
        lines.append(json.dumps(feature, separators=(",", ":")))
    head = f'{{"type":"FeatureCollection","gp_active_sensing":{json.dumps(header)},"features":[\n'
    return head + ",\n".join(lines) + "\n]}\n"


def _speeds(slots: ET.Element, segments: dict[str, dict[str, Any]]) -> str:
    """Return the table of mean speeds [m/s]; empty where no car drove."""
    titles: list[str] = []
    cells: dict[str, list[str]] = {identity: [] for identity in segments}
    metres: dict[str, float] = defaultdict(float)
    seconds: dict[str, float] = defaultdict(float)
    for interval in slots.iter("interval"):
        bounds = [int(float(interval.get(key, "nan"))) for key in ("begin", "end")]
        titles.append("v_{}_{}_mps".format(*bounds))
        seen = {str(edge.get("id")): edge for edge in interval.iter("edge")}
        for identity, row in cells.items():
            edge = seen.get(identity)
            speed = edge.get("speed") if edge is not None else None
            row.append("" if speed is None else f"{float(speed):.2f}")
            if edge is not None and speed is not None:
                sampled = float(edge.get("sampledSeconds", "0"))
                metres[identity] += float(speed) * sampled
                seconds[identity] += sampled
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["id", *titles, "v_all_mps"])
    for identity, row in cells.items():
        known = seconds[identity] > 0
        mean = f"{metres[identity] / seconds[identity]:.2f}" if known else ""
        writer.writerow([identity, *row, mean])
    return table.getvalue()
