"""Maps from graphs of networkx: nodes as places, or edges as roads, as osmnx has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.errors import MapError, listed
from gp_active_sensing.topology.features import AXIS
from gp_active_sensing.topology.generated import FreeTopology
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.links import Links, embed
from gp_active_sensing.topology.loaders.files import fail, number_of, shown
from gp_active_sensing.topology.loaders.graph import check_graph, crs_of, road_map_of
from gp_active_sensing.topology.loaders.tables import ColumnsConfig, Sites, SitesReader
from gp_active_sensing.topology.projection import LOCAL, LONLAT
from gp_active_sensing.topology.roads import Roads
from gp_active_sensing.topology.stations import DirectWay, Ways, moves_along, topology_of

if TYPE_CHECKING:
    import networkx as nx

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
    if not graph.number_of_edges():
        msg = f"{title}: has {len(graph)} nodes and no edges; expected at least one edge"
        raise MapError(msg)
    names = [str(node) for node in graph]
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        msg = f"{title}: nodes are told apart by their names as text; {listed(twice)} is twice"
        raise MapError(msg)
    sites = _placed(graph, title, names, crs or crs_of(graph))
    ways = _ways(graph, title, names, sites)
    if sites is None:
        sites = _embedded(title, names, ways)
        settings.setdefault("features", list(sites.numbers))
    moves = moves_along(ways, sites.points, speeds, names=sites.names, where=title)
    return topology_of(sites, moves, speed=speeds, **settings)


def _placed(graph: nx.Graph[Any], title: str, names: Sequence[str], crs: str) -> Sites | None:
    """Return the nodes as places, read like a table of them; None where none has a position."""
    data = [dict(values) for _, values in graph.nodes(data=True)]
    pair = next((p for p in _POSITIONS if any(set(p) & d.keys() for d in data)), None)
    problems: list[str] = []
    if pair is None:
        if not any("pos" in d for d in data):
            return None
        pair = ("x", "y")
    widths: set[int] = set()
    for name, values in zip(names, data, strict=True):
        pos = values.pop("pos", None)
        if not set(pair) & values.keys():
            if pos is None or not 2 <= len(pos) <= 3:
                what = f"expected {' and '.join(pair)}, or pos, got {shown(pos)}"
                problems.append(f"node {name!r}: {what}")
                continue
            widths.add(len(pos))
            values |= dict(zip((*pair, "z"), pos, strict=False))
    if len(widths) > 1:
        problems.append("some nodes have three coordinates in pos, and others two")
    fail(title, problems)
    keys = list(dict.fromkeys((*pair, *(str(key) for values in data for key in values))))
    reader = SitesReader(title, ["node", *keys], ColumnsConfig(name="node"))
    rows = [
        (f"node {name!r}", [name, *(_cell(values.get(key)) for key in keys)])
        for name, values in zip(names, data, strict=True)
    ]
    reader.add(rows)
    found = reader.finish(title, crs or (LOCAL if pair == ("x", "y") else LONLAT))
    if len(found.names) < len(names):
        msg = f"{title}: nodes {found.notes[0]}; give them a position"
        raise MapError(msg)
    return found


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _ways(graph: nx.Graph[Any], title: str, names: Sequence[str], sites: Sites | None) -> Ways:
    """Return the direct ways along the edges; of parallel ones the shortest."""
    place = {node: k for k, node in enumerate(graph)}
    problems: list[str] = []
    found: Ways = {}

    def positive(value: Any, where: str) -> float:
        number = number_of(value)
        if number is None or not (math.isfinite(number) and number > 0.0):
            problems.append(f"{where}: expected a number above 0, got {shown(value)}")
            return math.nan
        return number

    for start, end, data in graph.edges(data=True):
        a, b = place[start], place[end]
        if a == b:
            continue
        where, length = f"edge {names[a]!r} to {names[b]!r}", data.get("length")
        metres = math.nan
        if length is not None:
            metres = positive(length, f"{where}: length")
        elif sites is None:
            problems.append(
                f"{where}: has no length, and nodes have no positions; give every node x and y, or "
                "every edge its length in metres"
            )
        else:
            metres = float(np.linalg.norm(sites.points[b] - sites.points[a]))
            if metres <= 0.0:
                problems.append(f"{where}: both nodes are at one point, and it has no length")
        seconds = data.get("seconds")
        if seconds is not None:
            seconds = positive(seconds, f"{where}: seconds")
        for pair in [(a, b)] if graph.is_directed() else [(a, b), (b, a)]:
            if pair not in found or metres < found[pair].metres:
                found[pair] = DirectWay(metres, seconds)
    fail(title, problems)
    return found


def _embedded(title: str, names: Sequence[str], ways: Ways) -> Sites:
    """Return places at the coordinates of an embedding of the ways."""
    pairs = ((a, b, way.metres, 1.0 / way.metres) for (a, b), way in ways.items())
    links = Links.between(len(names), pairs)
    points = np.zeros((links.n, 1))
    if not int(links.parts.max(initial=0)):  # `moves_along` refuses several parts in words
        points = embed(links, links.metres).points
    flat = np.column_stack([points, np.zeros(links.n)])[:, :2]
    return Sites(
        title, tuple(names), flat, None, {f"{AXIS}{k + 1}": c for k, c in enumerate(points.T)}
    )
