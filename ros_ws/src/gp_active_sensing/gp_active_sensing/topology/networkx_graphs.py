"""Maps from graphs of networkx: nodes as places, or edges as roads, as osmnx has them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.errors import MapError, listed
from gp_active_sensing.topology.features import AXIS
from gp_active_sensing.topology.generated import FreeTopology
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.links import Links, embed
from gp_active_sensing.topology.loaders.drafts import fail, number_of, shown
from gp_active_sensing.topology.loaders.graph import check_graph, crs_of, road_map_of
from gp_active_sensing.topology.loaders.tables import Sites
from gp_active_sensing.topology.projection import LOCAL, LONLAT, locate
from gp_active_sensing.topology.roads import Roads
from gp_active_sensing.topology.stations import DirectWay, Ways, moves_along, topology_of
from gp_active_sensing.topology.units import HEIGHTS, below_water
from gp_active_sensing.types import FloatArray

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["from_networkx"]

_POSITIONS = (("x", "y"), ("lon", "lat"), ("longitude", "latitude"))


def from_networkx(
    graph: nx.Graph[Any],
    *,
    roads: bool | None = None,
    crs: str = "",
    name: str = "",
    speed: float | Speeds = 1.0,
    **settings: Any,
) -> GraphTopology | FreeTopology:
    """Return the map of a graph of networkx.

    With `roads` every edge is a road that is driven along to be read, as osmnx has them: nodes have
    x and y, edges `length` [m], perhaps `geometry`, `maxspeed`, `oneway`, the graph its `crs`.

    Otherwise every node is a place, and its edges are the moves from it: `length` [m], or the
    straight line, and perhaps `seconds`. A node has `x` and `y`, `lon` and `lat`, or `pos`, perhaps
    `z`, `height`, `elevation` or `depth` [m]; its other numbers are attributes of the place.
    Where no node has a position every edge needs a length: positions and features are then the
    coordinates of an embedding of the graph, in which distances are about those along the edges.

    Args:
        graph: Graph, DiGraph, MultiGraph or MultiDiGraph; edges without direction lead both ways.
        roads: every edge is a road; None = where the graph has a `crs`, as those of osmnx do.
        crs: of the coordinates; "" = the graph's `crs`; without one lon and lat are degrees, x and
            y metres.
        name: of the map; "" = the graph's own.
        speed: of the probe [m/s], or its speeds along an edge and up and down.
        settings: features, reach [m] and frame, as in `load_stations`; of roads those of `Roads`.

    Raises:
        MapError: no edges, no positions and no lengths, positions or lengths that are none, or
            nodes that no edges join; the message names the node or edge.
        ConfigError: no such feature.
        MissingDependencyError: coordinates are not metres, and pyproj is missing.
    """
    check_graph(graph)
    speeds = speed if isinstance(speed, Speeds) else Speeds(speed)
    if roads if roads is not None else "crs" in graph.graph:
        return Roads(road_map_of(graph, name=name, crs=crs), speed=speeds.along, **settings)
    title = name or str(graph.graph.get("name") or "graph")
    places = _Nodes(graph, title, crs)
    ways = places.ways()
    sites = places.sites(ways)
    moves = moves_along(ways, sites.points, speeds, names=sites.names, where=title)
    if not places.placed:
        settings.setdefault("features", [key for key in sites.numbers if key.startswith(AXIS)])
    return topology_of(sites, moves, speed=speeds, **settings)


class _Nodes:
    """The nodes of a graph of networkx as places; crs "" = what the graph says."""

    def __init__(self, graph: nx.Graph[Any], title: str, crs: str) -> None:
        if not graph.number_of_edges():
            msg = f"{title}: has {len(graph)} nodes and no edges; expected at least one edge"
            raise MapError(msg)
        self._graph, self._title = graph, title
        self._crs = crs or crs_of(graph)
        self._nodes = list(graph)
        self.names = tuple(map(str, self._nodes))
        if len(set(self.names)) < len(self.names):
            twice = sorted({n for n in self.names if self.names.count(n) > 1})
            msg = f"{title}: nodes are told apart by their names as text; {listed(twice)} is twice"
            raise MapError(msg)
        self._problems: list[str] = []
        self._data = [dict(graph.nodes[node]) for node in self._nodes]
        self._keys: tuple[str, ...] = next(
            (k for k in _POSITIONS if any(set(k) & d.keys() for d in self._data)), ()
        )
        self.placed = bool(self._keys) or any("pos" in d for d in self._data)
        """Nodes say where they are."""
        self._datum: tuple[float, float] | None = None
        self._points = self._located() if self.placed else np.zeros((len(self.names), 0))

    def _located(self) -> FloatArray:
        """Return the (n, 2 or 3) points of nodes that say where they are [m]."""
        named = list(zip(self.names, self._data, strict=True))
        found = [self._position(name, data) for name, data in named]
        height = next((key for key in HEIGHTS if any(key in data for data in self._data)), None)
        if height is not None:
            up = np.array([self._number(name, data.get(height), height) for name, data in named])
            if HEIGHTS[height] < 0.0:
                up, _ = below_water(up, self._title)
            for point, z in zip(found, up.tolist(), strict=True):
                if len(point) == 2:
                    point.append(z)
        widths = {len(point) for point in found}
        if len(widths) > 1:
            self._problems.append("some nodes have three coordinates in pos, and others two")
        self._refuse()
        points = np.array(found)
        crs = self._crs or (LOCAL if self._keys in ((), ("x", "y")) else LONLAT)
        if crs != LOCAL:
            made = locate(points[:, :2], crs, where=self._title, degrees=False)
            points[:, :2], self._datum = made.points, made.datum
        return points

    def _position(self, name: str, data: dict[str, Any]) -> list[float]:
        """Return x and y of a node, and z where its `pos` has it."""
        if self._keys and any(key in data for key in self._keys):
            return [self._number(name, data.get(key), key) for key in self._keys]
        pos = data.get("pos")
        if pos is None or not 2 <= len(pos) <= 3:
            what = "x and y" if not self._keys else " and ".join(self._keys)
            self._problems.append(f"node {name!r}: expected {what}, or pos, got {shown(pos)}")
            return [math.nan, math.nan]
        return [self._number(name, value, "pos") for value in pos]

    def _number(self, name: str, value: Any, key: str) -> float:
        number = number_of(value)
        if number is None or not math.isfinite(number):
            self._problems.append(
                f"node {name!r}: {key}: expected a finite number, got {shown(value)}"
            )
            return math.nan
        return number

    def ways(self) -> Ways:
        """Return the direct ways along the edges; of parallel ones the shortest."""
        place = {node: k for k, node in enumerate(self._nodes)}
        found: Ways = {}
        for start, end, data in self._graph.edges(data=True):
            a, b = place[start], place[end]
            if a == b:
                continue
            where = f"edge {self.names[a]!r} to {self.names[b]!r}"
            metres = self._length(data.get("length"), where, a, b)
            seconds = data.get("seconds")
            if seconds is not None:
                seconds = self._positive(seconds, f"{where}: seconds")
            for pair in [(a, b)] if self._graph.is_directed() else [(a, b), (b, a)]:
                if pair not in found or metres < found[pair].metres:
                    found[pair] = DirectWay(metres, seconds)
        self._refuse()
        return found

    def _length(self, value: Any, where: str, a: int, b: int) -> float:
        if value is not None:
            return self._positive(value, f"{where}: length")
        if not self.placed:
            self._problems.append(
                f"{where}: has no length, and nodes have no positions; give every node x and y, or "
                "every edge its length in metres"
            )
            return math.nan
        straight = float(np.linalg.norm(self._points[b] - self._points[a]))
        if straight <= 0.0:
            self._problems.append(f"{where}: both nodes are at one point, and it has no length")
        return straight

    def _positive(self, value: Any, where: str) -> float:
        number = number_of(value)
        if number is None or not (math.isfinite(number) and number > 0.0):
            self._problems.append(f"{where}: expected a number above 0, got {shown(value)}")
            return math.nan
        return number

    def sites(self, ways: Ways) -> Sites:
        """Return the places; without positions, at the coordinates of an embedding."""
        if self.placed:
            return Sites(self._title, self.names, self._points, self._datum, self._numbers())
        pairs = ((a, b, way.metres, 1.0 / way.metres) for (a, b), way in ways.items())
        links = Links.between(len(self.names), pairs)
        points = np.zeros((links.n, 1))
        if not int(links.parts.max(initial=0)):  # `moves_along` refuses several parts in words
            points = embed(links, links.metres).points
        flat = np.column_stack([points, np.zeros(links.n)])[:, :2]
        axes = {f"{AXIS}{k + 1}": column for k, column in enumerate(points.T)}
        return Sites(self._title, self.names, flat, None, axes | self._numbers())

    def _numbers(self) -> dict[str, FloatArray]:
        """Return the attributes of the nodes that are numbers, NaN where a node has none."""
        own = {*self._keys, "pos", *HEIGHTS}
        found: dict[str, FloatArray] = {}
        for key in dict.fromkeys(key for data in self._data for key in data if key not in own):
            values = [data.get(key) for data in self._data]
            numbers = [number_of(value) for value in values]
            column = np.array([math.nan if number is None else number for number in numbers])
            text = any(
                number is None and value is not None
                for number, value in zip(numbers, values, strict=True)
            )
            if not text and np.isfinite(column).any() and not np.isinf(column).any():
                found[str(key)] = column
        return found

    def _refuse(self) -> None:
        fail(Path(self._title), self._problems)
