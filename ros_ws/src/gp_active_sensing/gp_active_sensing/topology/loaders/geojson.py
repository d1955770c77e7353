"""Road maps from GeoJSON: the project's format (``maps/README.md``), and graphs of Nav2.

Nodes of a graph of Nav2's route server are Point features with an `id`. Edges are directed lines
with `id`, `startid` and `endid`. The server ignores the geometry of edges: it drives straight from
node to node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import brief_repr
from gp_active_sensing.topology.loaders import declared_crs, fail, fault, is_number, read_json
from gp_active_sensing.topology.loaders.drafts import Drafts
from gp_active_sensing.topology.loaders.table import COLUMNS, LIMITS
from gp_active_sensing.topology.segments import RoadMap

_CALLED = {
    **{key: key for key in ("lanes", "successors", "name")},
    **{"length": "length_m", "speed_limit": "speed_limit_mps", "road_class": "class"},
}
"""Property in the file for each attribute of a segment."""
_UNITS = {name: unit for key, unit in LIMITS.items() for name in COLUMNS[key]}
"""Unit of each property with a speed limit [m/s]; the first one with a value counts."""
_KEYS = ("id", "from", "to", "oneway", *_CALLED.values(), *_UNITS)
_NODES = ("startid", "endid")
_LIMIT = "abs_speed_limit"
"""Metadata key of the speed limit of an edge for Nav2's TimeScorer [m/s]."""
_SHARE = "speed_limit"
"""Metadata key of an edge's fraction of the full speed, for Nav2's DistanceScorer."""


def load(path: Path, *, crs: str = "") -> RoadMap:
    """Read a road map, or the graph of a Nav2 route server, from a GeoJSON FeatureCollection.

    `crs` overrides the coordinate system of the file. "" = the declared system; without a
    declaration, the system that fits the coordinates.
    """
    data = read_json(path)
    kind = data.get("type") if isinstance(data, dict) else type(data).__name__
    features = data.get("features") if isinstance(data, dict) else None
    if kind != "FeatureCollection" or not isinstance(features, list):
        what = "a GeoJSON FeatureCollection with a list of features"
        raise fault(path, f"expected {what}, got {kind!r}")
    if not features:
        raise fault(path, "has no features; expected at least one LineString")
    if any("startid" in _properties(feature) for feature in features):
        graph = _GraphReader(path)
        for read in (graph.node, graph.edge):
            for index, feature in enumerate(features):
                read(feature, index)
        return graph.finish(crs)
    header = _header(data, path)
    _check_named(features, path)
    drafts, junctions = Drafts(path), set[str]()
    for index, feature in enumerate(features):
        _add_feature(drafts, junctions, feature, index)
    drafts.check_junctions(junctions)
    return drafts.finish(
        crs or declared_crs(data),
        name=str(header.get("name") or ""),
        frame=str(header.get("frame", "map")),
        datum=header.get("datum"),
        allow_small=header.get("allow_small") is True,
        nothing="expected at least one LineString feature",
    )


def _part(feature: Any, key: str) -> Mapping[str, Any]:
    part = feature.get(key) if isinstance(feature, dict) else None
    return part if isinstance(part, dict) else {}


def _properties(feature: Any) -> Mapping[str, Any]:
    return _part(feature, "properties")


def _check_named(features: Sequence[Any], path: Path) -> None:
    lines = [f for f in features if _part(f, "geometry").get("type") == "LineString"]
    tags = [_properties(line) for line in lines]
    missing = [key for key in ("from", "to") if not any(key in names for names in tags)]
    if not any("id" in names for names in (*tags, *lines)):
        missing.insert(0, "id")
    if lines and missing:
        raise fault(
            path,
            f"the lines ({len(lines)}) have no {', no '.join(missing)}; each needs the "
            "properties id, its name, and from and to, the junctions that it leaves and leads to",
        )


def _header(data: Mapping[str, Any], path: Path) -> dict[str, Any]:
    header = data.get("gp_active_sensing", {})
    if not isinstance(header, dict):
        raise fault(path, f"gp_active_sensing: expected an object, got {type(header).__name__}")
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
                f"gp_active_sensing.datum: expected [longitude, latitude], got {brief_repr(datum)}"
            )
        else:
            header["datum"] = (float(datum[0]), float(datum[1]))
    fail(path, problems)
    return header


def _add_feature(drafts: Drafts, junctions: set[str], feature: Any, index: int) -> None:
    where, problems = f"feature {index}", drafts.problems
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        got = feature.get("type") if isinstance(feature, dict) else feature
        problems.append(f"{where}: expected an object of type 'Feature', got {brief_repr(got)}")
        return
    properties = feature.get("properties")
    if not isinstance(properties, dict):
        problems.append(f"{where}: expected properties, got {brief_repr(properties)}")
        return
    identity = properties.get("id", feature.get("id"))
    where, geometry = f"{where} (id {identity!r})", _part(feature, "geometry")
    kind = geometry.get("type")
    if kind == "Point":
        junctions.add(str(identity))
    elif kind != "LineString":
        problems.append(f"{where}: expected a LineString or a Point, got {brief_repr(kind)}")
    elif not isinstance(oneway := properties.get("oneway", True), bool):
        problems.append(f"{where}: oneway: expected true or false, got {brief_repr(oneway)}")
    else:
        keys, tags = dict(_CALLED), properties
        if limits := [name for name in _UNITS if properties.get(name) is not None]:
            keys["speed_limit"] = name = limits[0]
            if is_number(limit := properties[name]):
                tags = {**properties, name: limit * _UNITS[name]}
        drafts.edge(
            where,
            (identity, properties.get("from"), properties.get("to")),
            drafts.line(geometry.get("coordinates"), where),
            {ours: tags.get(theirs) for ours, theirs in keys.items()},
            keys=keys,
            extra={k: v for k, v in properties.items() if k not in _KEYS},
            two_way=not oneway,
        )


class _GraphReader:
    """Reader of a Nav2 graph: first its nodes, then its edges.

    Coordinates are in the frame of the nodes. The declared `crs` is ignored, since Nav2 writes
    EPSG:3857 for any frame.
    """

    def __init__(self, path: Path) -> None:
        self.drafts = Drafts(path, join_zero_length=True)
        self._taken: dict[str, int] = defaultdict(int)
        self._frames: dict[str, int] = defaultdict(int)

    def node(self, feature: Any, index: int) -> None:
        properties, geometry = _properties(feature), _part(feature, "geometry")
        if geometry.get("type") != "Point":
            return
        where = f"feature {index} (node {properties.get('id')!r})"
        identity = self.drafts.text(properties.get("id"), "id", where)
        at = geometry.get("coordinates")
        if not self.drafts.node(where, identity, at[:2] if isinstance(at, list) else [at]):
            return
        self._frames[str(properties.get("frame") or "map")] += 1
        if properties.get("operations"):
            self.drafts.ignore("'operations' of a node")

    def edge(self, feature: Any, index: int) -> None:
        properties, kind = _properties(feature), _part(feature, "geometry").get("type")
        if kind == "Point":
            return
        where = f"feature {index} (edge {properties.get('id')!r})"
        drafts = self.drafts
        if kind not in ("MultiLineString", "LineString"):
            drafts.problems.append(
                f"{where}: expected a Point, a MultiLineString or a LineString, got "
                f"{brief_repr(kind)}"
            )
            return
        before = len(drafts.problems)
        identity = drafts.text(properties.get("id"), "id", where)
        self._taken[identity] += 1
        if self._taken[identity] > 1:  # The server identifies edges by their nodes.
            identity = f"{identity}/{self._taken[identity]}"
            drafts.count("edges whose id another one has got a number besides")
        start, end = (drafts.text(properties.get(key), key, where) for key in _NODES)
        line = drafts.between(where, start, end, _NODES)
        metadata = properties.get("metadata", {})
        if not isinstance(metadata, dict):
            got = brief_repr(metadata)
            drafts.problems.append(f"{where}: metadata: expected an object, got {got}")
        if properties.get("operations"):
            drafts.ignore("'operations' of an edge")
        if len(drafts.problems) > before:
            return
        extra = {key: value for key, value in metadata.items() if key != _LIMIT}
        if _SHARE in extra:
            extra["speed_share"] = extra.pop(_SHARE)
        if is_number(cost := properties.get("cost", 0.0)) and cost:
            extra["cost"] = float(cost)
        drafts.edge(
            where,
            (identity, start, end),
            line,
            {"speed_limit": metadata.get(_LIMIT)},
            keys={"speed_limit": _LIMIT},
            extra=extra,
        )

    def finish(self, crs: str) -> RoadMap:
        drafts = self.drafts
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
