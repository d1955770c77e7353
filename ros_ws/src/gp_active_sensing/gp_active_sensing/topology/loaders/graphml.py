"""Road maps from GraphML as osmnx saves it (``osmnx.save_graphml``), or any of the same shape.

Nodes have `x` and `y` (longitude and latitude, or projected: the graph's `crs` says), edges perhaps
`length` [m], `geometry` (WKT), `maxspeed`, `speed_kph`, `lanes`, `highway`, `name`.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from gp_active_sensing.topology.loaders.common import KMH, Draft, Drafts
from gp_active_sensing.topology.loaders.osm_tags import speed_of
from gp_active_sensing.topology.loaders.values import shown
from gp_active_sensing.topology.loaders.xml_stream import elements, tag_of
from gp_active_sensing.topology.segments import Point, RoadMap

__all__ = ["load"]

_USED = {"length", "geometry", "maxspeed", "speed_kph", "lanes", "highway", "name"}
_KNOWN = {"osmid", "oneway", "reversed", "ref", "service", "from", "to", "u", "v", "key"}
"""Attributes of osmnx that are in the segments already, or say nothing about them."""
_ONE = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^\s,\[\]'\"]+)")


def load(path: Path, *, crs: str = "") -> RoadMap:
    """Read a graph.

    Args:
        path: of the file.
        crs: of the coordinates, whatever the file says; "" = what it says.

    Raises:
        MapError: with every problem found (the first ten in words), each with its edge.
        MissingDependencyError: coordinates are not metres, and pyproj is missing.
    """
    graph = _Graph(path)
    for element in elements(
        path, ("key", "data", "node", "edge"), root="graphml", opened=("graph",)
    ):
        getattr(graph, f"_{tag_of(element)}")(element)
    return graph.finish(crs)


class _Graph:
    """Collects nodes and edges; the file may hold them in any order."""

    def __init__(self, path: Path) -> None:
        self.drafts = Drafts(path, join_zero_length=True)
        self.path = path
        self._names: dict[str, str] = {}
        self._crs = ""
        self._nodes: dict[str, Point] = {}
        self._edges: list[tuple[str, str, str, dict[str, str]]] = []
        self._directed = True

    def _graph(self, element: ET.Element) -> None:
        self._directed = element.get("edgedefault", "directed") != "undirected"

    def _key(self, element: ET.Element) -> None:
        self._names[element.get("id", "")] = element.get("attr.name", "")

    def _data(self, element: ET.Element) -> None:
        if self._name(element) == "crs":
            self._crs = (element.text or "").strip()

    def _name(self, data: ET.Element) -> str:
        key = data.get("key", "")
        return self._names.get(key, key)

    def _values(self, element: ET.Element) -> dict[str, str]:
        return {
            self._name(data): (data.text or "").strip()
            for data in element
            if tag_of(data) == "data"
        }

    def _node(self, element: ET.Element) -> None:
        identity = element.get("id", "")
        where = f"node {identity!r}"
        values = self._values(element)
        keys = ("x", "y") if "x" in values else ("lon", "lat")
        x, y = (_number(values.get(key, "")) for key in keys)
        if x is None or y is None or not (math.isfinite(x) and math.isfinite(y)):
            self.drafts.problems.append(
                f"{where}: expected finite numbers x and y, got {shown(values.get(keys[0]))} and "
                f"{shown(values.get(keys[1]))}"
            )
        elif identity in self._nodes:
            self.drafts.problems.append(f"{where}: is there already")
        else:
            self._nodes[identity] = (x, y)

    def _edge(self, element: ET.Element) -> None:
        start, end = element.get("source", ""), element.get("target", "")
        key = element.get("id", "")
        self._edges.append((start, end, key, self._values(element)))

    def finish(self, crs: str) -> RoadMap:
        counts: dict[tuple[str, str], int] = {}
        for start, end, key, values in self._edges:
            number = counts.get((start, end), 0)
            counts[start, end] = number + 1
            # osmnx's ids are the keys of parallel edges; elsewhere they are names, or missing.
            name = key if key and not key.isdigit() else f"{start}_{end}_{key or number}"
            self._draft(name, start, end, values)
        return self.drafts.finish(crs or self._crs, nothing="expected nodes and edges")

    def _draft(self, name: str, start: str, end: str, values: dict[str, str]) -> None:
        drafts = self.drafts
        where = f"edge {name!r}"
        before = len(drafts.problems)
        for junction in (start, end):
            if junction not in self._nodes:
                drafts.problems.append(f"{where}: no node {junction!r}")
        line = self._line(values.get("geometry", ""), start, end, where)
        length = self._length(values.get("length", ""), where)
        limit = self._limit(values)
        lanes = min(filter(None, map(_number, _each(values.get("lanes", "")))), default=None)
        if lanes is not None and values.get("oneway") == "False":
            lanes = max(1.0, lanes / 2.0)  # OpenStreetMap counts both directions
        others = {
            key: _number(text) if _number(text) is not None else text
            for key, text in values.items()
            if key not in _USED and key not in _KNOWN and text
        }
        extra = drafts.extra(others, where)
        if len(drafts.problems) > before:
            return
        drafts.add(
            Draft(
                where,
                name,
                start,
                end,
                line,
                length=length,
                lanes=drafts.number(lanes, "lanes", where),
                speed_limit=limit,
                name=", ".join(_each(values.get("name", ""))),
                road_class=next(iter(_each(values.get("highway", ""))), ""),
                extra=extra,
                two_way=not self._directed,
            )
        )

    def _length(self, text: str, where: str) -> float | None:
        if not text:
            return None
        value = _number(text)
        if value == 0.0:  # such edges are joined, see Drafts
            return 0.0
        return self.drafts.number(text if value is None else value, "length", where)

    def _limit(self, values: dict[str, str]) -> float | None:
        """Return the lowest limit of an edge that several ways were merged into [m/s]."""
        found = [speed_of(text) for text in _each(values.get("maxspeed", ""))]
        known = [speed for speed in found if speed is not None]
        if len(found) > 1:
            self.drafts.count("the lowest of several limits was taken")
        if known:
            return min(known)
        guess = _number(values.get("speed_kph", ""))
        return guess * KMH if guess else None

    def _line(self, text: str, start: str, end: str, where: str) -> tuple[Point, ...]:
        if not text:
            ends = [self._nodes.get(junction) for junction in (start, end)]
            return tuple(point for point in ends if point is not None)
        return self.drafts.wkt(text, "geometry", where)


def _each(text: str) -> list[str]:
    """Return the entries of a list as Python writes it, or the text itself."""
    if not text.startswith("["):
        return [text] if text else []
    return [next(filter(None, found.groups()), "") for found in _ONE.finditer(text)]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
