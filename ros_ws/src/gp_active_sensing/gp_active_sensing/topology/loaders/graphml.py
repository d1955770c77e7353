"""Road maps from GraphML as osmnx saves it (``osmnx.save_graphml``), or any of the same shape.

What nodes and edges say is read by `graph`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from gp_active_sensing.topology.loaders.graph import GraphReader
from gp_active_sensing.topology.loaders.xml_stream import elements, tag_of
from gp_active_sensing.topology.segments import RoadMap

__all__ = ["load"]


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
        self._reader = GraphReader(path)
        self._names: dict[str, str] = {}
        self._crs = ""
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
        self._reader.node(element.get("id", ""), self._values(element))

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
            self._reader.edge(name, start, end, values, two_way=not self._directed)
        return self._reader.drafts.finish(crs or self._crs, nothing="expected nodes and edges")
