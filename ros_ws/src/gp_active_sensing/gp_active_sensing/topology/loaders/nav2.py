"""Graphs of the Nav2 route server (GeoJSON), read and written.

Nodes are Point features with a whole number as `id`; edges are directed MultiLineString (or
LineString) features with `id`, `startid` and `endid`. The server drives straight from node to node
and ignores the geometry of edges, so a road with bends is written as one edge a leg; what belongs
together is marked in the edges' metadata and read back as one segment.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from gp_active_sensing.topology.loaders.drafts import Draft, Drafts, is_number, shown
from gp_active_sensing.topology.segments import Point, RoadMap, Segment

__all__ = ["is_graph", "read", "text_of"]

_LIMIT = "abs_speed_limit"
"""Metadata that Nav2's TimeScorer takes for the speed limit of an edge [m/s]."""
_SHARE = "speed_limit"
"""Metadata that its DistanceScorer takes for a share of the full speed."""
_OURS = "gp_active_sensing"


def is_graph(features: Sequence[Any]) -> bool:
    """Return whether these are the features of a Nav2 graph."""
    return any("startid" in _properties(feature) for feature in features)


def read(path: Path, features: Sequence[Any], *, crs: str = "") -> RoadMap:
    """Make a road map of the features of a Nav2 graph.

    The coordinates are those of the frame that its nodes name: what the file declares as its `crs`
    (Nav2 writes EPSG:3857 whatever the frame) is not looked at.

    Raises:
        MapError: with every problem found, each with its feature.
    """
    reader = _GraphReader(path)
    for index, feature in enumerate(features):
        reader.node(feature, index)
    for index, feature in enumerate(features):
        reader.edge(feature, index)
    return reader.finish(crs)


def text_of(road_map: RoadMap) -> tuple[str, tuple[str, ...]]:
    """Return a road map as a Nav2 graph, and what of it such a graph cannot say."""
    nodes: dict[tuple[str, Point], int] = {}
    features: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    ends = _junctions(road_map)

    def node(junction: str, point: Point) -> int:
        key = (junction, point)
        if key not in nodes:
            nodes[key] = len(nodes)
            properties: dict[str, Any] = {"id": nodes[key], "frame": road_map.frame}
            if junction:
                properties["metadata"] = {"junction": junction}
            features.append(_feature(properties, "Point", _rounded(point)))
        return nodes[key]

    for segment in road_map.segments:
        line = (ends[segment.start], *segment.line[1:-1], ends[segment.end])
        inner = [node(f"{segment.id}/{k}", p) for k, p in enumerate(segment.line[1:-1], start=1)]
        path = [
            node(segment.start, ends[segment.start]),
            *inner,
            node(segment.end, ends[segment.end]),
        ]
        legs = list(zip(pairwise(path), pairwise(line), strict=True))
        for part, ((start, end), (a, b)) in enumerate(legs):
            properties = {
                "startid": start,
                "endid": end,
                "metadata": _metadata(segment, part, len(legs)),
            }
            edges.append(_feature(properties, "MultiLineString", [[_rounded(a), _rounded(b)]]))
    for identity, edge in enumerate(edges, start=len(nodes)):
        edge["properties"] = {"id": identity, **edge["properties"]}
    listed = sum(segment.successors is not None for segment in road_map.segments)
    notes = []
    if listed:
        notes.append(
            f"{listed} segment(s) list which may follow them; a Nav2 graph knows no such rules, so "
            "every edge that leaves a node may follow every edge that leads to it"
        )
    graph = {"type": "FeatureCollection", "name": road_map.name, "features": [*features, *edges]}
    return json.dumps(graph, ensure_ascii=False, indent=1) + "\n", tuple(notes)


def _junctions(road_map: RoadMap) -> dict[str, Point]:
    """Return where each junction lies: the middle of where its segments end."""
    ends: dict[str, list[Point]] = defaultdict(list)
    for segment in road_map.segments:
        ends[segment.start].append(segment.line[0])
        ends[segment.end].append(segment.line[-1])
    return {
        junction: (
            math.fsum(x for x, _ in points) / len(points),
            math.fsum(y for _, y in points) / len(points),
        )
        for junction, points in ends.items()
    }


def _metadata(segment: Segment, part: int, parts: int) -> dict[str, Any]:
    ours: dict[str, Any] = {"segment": segment.id, "part": part, "parts": parts}
    ours["length_m"] = round(segment.length, 3)
    for key, value in (("name", segment.name), ("class", segment.road_class)):
        if value:
            ours[key] = value
    if segment.lanes is not None:
        ours["lanes"] = segment.lanes
    metadata: dict[str, Any] = {_OURS: ours, **segment.extra}
    if segment.speed_limit is not None:
        metadata[_LIMIT] = round(segment.speed_limit, 4)
    return metadata


def _feature(properties: dict[str, Any], kind: str, coordinates: Any) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def _rounded(point: Point) -> list[float]:
    return [round(point[0], 3), round(point[1], 3)]


def _properties(feature: Any) -> Mapping[str, Any]:
    properties = feature.get("properties") if isinstance(feature, dict) else None
    return properties if isinstance(properties, dict) else {}


class _GraphReader:
    """Collects nodes first, then the edges between them."""

    def __init__(self, path: Path) -> None:
        self.drafts = Drafts(path, join_zero_length=True)
        self._taken: dict[str, int] = defaultdict(int)
        self._nodes: dict[str, Point] = {}
        self._names: dict[str, str] = {}
        self._frames: dict[str, int] = defaultdict(int)
        self._parts: dict[str, list[tuple[int, int, Draft]]] = defaultdict(list)

    def node(self, feature: Any, index: int) -> None:
        properties = _properties(feature)
        geometry = feature.get("geometry") if isinstance(feature, dict) else None
        if not isinstance(geometry, dict) or geometry.get("type") != "Point":
            return
        where = f"feature {index} (node {properties.get('id')!r})"
        identity = self.drafts.text(properties.get("id"), "id", where)
        at = geometry.get("coordinates")
        pair: list[Any] = at[:2] if isinstance(at, list) else []
        if len(pair) < 2 or not all(is_number(c) and math.isfinite(c) for c in pair):
            self.drafts.problems.append(f"{where}: expected two finite numbers, got {shown(at)}")
            return
        if identity in self._nodes:
            self.drafts.problems.append(f"{where}: id {identity!r} is taken by another node")
        self._nodes[identity] = (float(pair[0]), float(pair[1]))
        metadata = properties.get("metadata")
        junction = metadata.get("junction") if isinstance(metadata, dict) else None
        self._names[identity] = junction if isinstance(junction, str) else identity
        self._frames[str(properties.get("frame") or "map")] += 1
        if properties.get("operations"):
            self.drafts.ignore("'operations' of a node")

    def edge(self, feature: Any, index: int) -> None:
        properties = _properties(feature)
        geometry = feature.get("geometry") if isinstance(feature, dict) else None
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        if kind == "Point":
            return
        where = f"feature {index} (edge {properties.get('id')!r})"
        drafts = self.drafts
        if kind not in ("MultiLineString", "LineString"):
            drafts.problems.append(
                f"{where}: expected a Point, a MultiLineString or a LineString, got {shown(kind)}"
            )
            return
        before = len(drafts.problems)
        identity = drafts.text(properties.get("id"), "id", where)
        self._taken[identity] += 1
        if self._taken[identity] > 1:  # the server tells edges apart by their nodes
            identity = f"{identity}/{self._taken[identity]}"
            drafts.count("edges whose id another one has got a number besides")
        ends = []
        for key in ("startid", "endid"):
            node = drafts.text(properties.get(key), key, where)
            if node and node not in self._nodes:
                drafts.problems.append(f"{where}: {key}: no node {node!r}")
            ends.append(node)
        metadata = properties.get("metadata", {})
        if not isinstance(metadata, dict):
            drafts.problems.append(f"{where}: metadata: expected an object, got {shown(metadata)}")
            metadata = {}
        known = {key: value for key, value in metadata.items() if key not in (_LIMIT, _OURS)}
        if _SHARE in known:
            known["speed_share"] = known.pop(_SHARE)
        extra = drafts.extra(known, where)
        cost = properties.get("cost", 0.0)
        if is_number(cost) and cost:
            extra["cost"] = float(cost)
        limit = drafts.number(metadata.get(_LIMIT), _LIMIT, where)
        if properties.get("operations"):
            drafts.ignore("'operations' of an edge")
        if len(drafts.problems) > before:
            return
        draft = Draft(
            where,
            identity,
            self._names[ends[0]],
            self._names[ends[1]],
            (self._nodes[ends[0]], self._nodes[ends[1]]),
            speed_limit=limit,
            extra=extra,
        )
        ours = metadata.get(_OURS)
        if isinstance(ours, dict):
            self._ours(draft, ours)
        else:
            drafts.add(draft)

    def _ours(self, draft: Draft, ours: Mapping[str, Any]) -> None:
        """Add an edge that is a leg of a segment, as `text_of` marks it."""
        drafts = self.drafts
        identity = drafts.text(ours.get("segment"), "segment", draft.where)
        part, parts = ours.get("part"), ours.get("parts")
        if not (isinstance(part, int) and isinstance(parts, int) and 0 <= part < parts):
            drafts.problems.append(f"{draft.where}: expected part and parts, got {shown(ours)}")
            return
        draft.length = drafts.number(ours.get("length_m"), "length_m", draft.where)
        draft.lanes = drafts.number(ours.get("lanes"), "lanes", draft.where)
        draft.name, draft.road_class = str(ours.get("name", "")), str(ours.get("class", ""))
        self._parts[identity].append((part, parts, draft))

    def finish(self, crs: str) -> RoadMap:
        drafts = self.drafts
        for identity, legs in self._parts.items():
            legs.sort(key=lambda leg: leg[0])
            parts = [part for part, _, _ in legs]
            if len(legs) == legs[0][1] and parts == list(range(len(legs))):
                first, last = legs[0][2], legs[-1][2]
                line = (first.line[0], *(draft.line[1] for _, _, draft in legs))
                drafts.add(replace(first, id=identity, end=last.end, line=line))
                continue
            drafts.notes.append(
                f"segment {identity!r} is not whole any more; its edges are segments of their own"
            )
            for _, _, draft in legs:
                drafts.add(replace(draft, length=None))
        frames = sorted(self._frames, key=lambda name: -self._frames[name])
        if len(frames) > 1:
            drafts.problems.append(
                f"nodes are in {len(frames)} frames ({', '.join(frames)}); bring them into one"
            )
        return drafts.finish(
            crs or "local",
            frame=frames[0] if frames else "map",
            allow_small=True,
            nothing="expected at least one edge with startid and endid",
        )
