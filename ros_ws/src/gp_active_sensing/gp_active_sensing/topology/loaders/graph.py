"""Road maps from graphs of networkx and osmnx, and from GraphML files of ``osmnx.save_graphml``.

Nodes have `x` and `y` in the coordinate system `crs` of the graph. Edges may have `length` [m],
`geometry` (a LineString or its text), `maxspeed` [km/h], `speed_kph`, `lanes`, `highway` and
`name`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gp_active_sensing.errors import MapError, brief_repr
from gp_active_sensing.topology.loaders import fault, number_of
from gp_active_sensing.topology.loaders.drafts import KMH, Drafts
from gp_active_sensing.topology.loaders.osm import speed_of
from gp_active_sensing.topology.projection import LOCAL
from gp_active_sensing.topology.segments import Point, RoadMap, length_of
from gp_active_sensing.util.lazy import library
from gp_active_sensing.util.xml_files import elements, tag_of

_USED = {
    *("length", "geometry", "maxspeed", "speed_kph", "lanes", "highway", "name", "successors"),
    *("osmid", "oneway", "reversed", "ref", "service", "from", "to", "u", "v", "key"),
}
"""Attributes of edges that do not become features."""
_ONE = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^\s,\[\]'\"]+)")
_POSITIONS = (("x", "y"), ("lon", "lat"))
_ONE_WAY = {"true", "yes", "1", "-1", "reverse"}
"""Values of the attribute `oneway` that make an edge one-way."""


class _Edge(NamedTuple):
    """Edge of a graph; `one_way` = from start to end only."""

    name: str
    start: str
    end: str
    values: Mapping[str, Any]
    one_way: bool


def _node(drafts: Drafts, identity: str, values: Mapping[str, Any]) -> None:
    keys = next((pair for pair in _POSITIONS if pair[0] in values), _POSITIONS[0])
    found = [values.get(key) for key in keys]
    if found == [None, None] and "pos" in values:
        found = list(values["pos"])[:2]
    known = [value if (n := number_of(value)) is None else n for value in found]
    drafts.node(f"node {identity!r}", identity, known)


def _edge(drafts: Drafts, edge: _Edge) -> None:
    """Add a directed edge, or both directions of an undirected edge.

    An undirected edge with `oneway` needs `from` and `to`.
    """
    name, start, end, values, one_way = edge
    where, words = f"edge {name!r}", {w.lower() for w in _each(values.get("oneway"))}
    two_way = not (one_way or words & _ONE_WAY)
    if not (one_way or two_way):
        start, end = str(values.get("from")), str(values.get("to"))
        if {start, end} != {edge.start, edge.end}:
            drafts.problems.append(
                f"{where}: oneway in an undirected graph; say with from and to (its nodes) "
                "in which direction, or give a DiGraph"
            )
            return
        if words & {"-1", "reverse"}:
            start, end = end, start
    if not one_way:
        values = _from_start(values, drafts.nodes.get(start))
    if not (ends := drafts.between(where, start, end)):
        empty = [key for key, node in (("from", start), ("to", end)) if not node]
        drafts.problems += [f"{where}: {key}: no node ''" for key in empty]
        return
    lanes = min(filter(None, map(number_of, _each(values.get("lanes")))), default=None)
    if lanes is not None and str(values.get("oneway")) == "False":
        lanes = max(1.0, lanes / 2.0)  # OpenStreetMap counts both directions
    length, line, successors = (values.get(k) for k in ("length", "geometry", "successors"))
    number = None if _missing(length) else number_of(length)
    # An edge of length 0 has the length of its line; `Drafts` joins the ends of a line of 0 m.
    known = not _missing(length) and number != 0.0
    drafts.edge(
        where,
        (name, start, end),
        ends if _missing(line) else drafts.wkt(line, "geometry", where),
        {
            "length": (length if number is None else number) if known else None,
            "lanes": lanes,
            "speed_limit": _limit(drafts, values),
            "successors": successors if isinstance(successors, list | tuple) else None,
            "name": ", ".join(_each(values.get("name"))),
            "road_class": next(iter(_each(values.get("highway"))), ""),
        },
        extra={
            key: value if number_of(value) is None else number_of(value)
            for key, value in values.items()
            if key not in _USED and not _missing(value)
        },
        two_way=two_way,
    )


def _limit(drafts: Drafts, values: Mapping[str, Any]) -> float | None:
    """Return the lowest speed limit of a merged edge [m/s]; None = not known."""
    found = [speed_of(text) for text in _each(values.get("maxspeed"))]
    known = [speed for speed in found if speed is not None]
    if len(found) > 1:
        drafts.count("the lowest of several limits was taken")
    if known:
        return min(known)
    guess = number_of(values.get("speed_kph"))
    return guess * KMH if guess else None


def road_map_of(graph: Any, *, name: str = "", crs: str = "") -> RoadMap:
    """Return the road map of a graph of networkx or osmnx.

    Nodes have x and y, lon and lat, or pos. A directed edge is a segment. An undirected edge is
    two segments, one in each direction. With `oneway`, it is only the segment from its node `from`
    to its node `to`. An edge without `length` [m] has the length of its line. If `name` or `crs` is
    "", the graph's value is used.

    Raises:
        MapError: the graph has problems; the message names the node or edge of each.
        MissingDependencyError: the coordinates are not in metres, and pyproj is not installed.
    """
    nx = library("networkx", "graphs are read with networkx")
    if not isinstance(graph, nx.Graph):
        msg = f"expected a graph of networkx, got {brief_repr(graph)}"
        raise MapError(msg)
    name = name or str(graph.graph.get("name") or "graph")
    of: Any = graph.edges  # typed as of a graph without parallel edges
    edges = []
    for start, end, *keys, values in of(
        data=True, **{"keys": True} if graph.is_multigraph() else {}
    ):
        key = keys[0] if keys else 0
        # A text as key is a name; osmnx numbers parallel edges.
        title = key if isinstance(key, str) and key else f"{start}_{end}_{key}"
        edges.append(_Edge(title, str(start), str(end), values, graph.is_directed()))
    if not edges:
        raise fault(name, f"has {len(graph)} nodes and no edges; expected at least one edge")
    own = graph.graph.get("crs") or ""
    crs = crs or (own.to_string() if hasattr(own, "to_string") else str(own))
    if not any({"x", "lon", "pos"} & data.keys() for _, data in graph.nodes(data=True)):
        raise fault(
            name,
            "nodes have no positions (x and y); networkx.kamada_kawai_layout gives some "
            "by the lengths of edges",
        )
    drafts = Drafts(Path(name), join_zero_length=True)
    for node, data in graph.nodes(data=True):
        _node(drafts, str(node), data)
    if not drafts.problems:
        drafts.problems += _at_one_place(drafts.nodes, edges)
    for edge in edges:
        _edge(drafts, edge)
    return drafts.finish(crs, name=name, allow_small=crs == LOCAL)


def _at_one_place(nodes: Mapping[str, Point], edges: Iterable[_Edge]) -> list[str]:
    """Return a problem for each pair of nodes at one position that no edge of 0 m joins."""
    places: dict[Point, list[str]] = defaultdict(list)
    for node, point in nodes.items():
        places[point].append(node)
    if len(places) == len(nodes):
        return []
    joined = {
        frozenset((edge.start, edge.end))
        for edge in edges
        if not edge.values.get("length") and edge.values.get("geometry") is None
    }
    return [
        f"nodes {first!r} and {other!r} are both at ({x:g}, {y:g}); make one node of them "
        "(networkx.contracted_nodes), or move one"
        for (x, y), (first, *others) in places.items()
        for other in others
        if frozenset((first, other)) not in joined
    ]


def _from_start(values: Mapping[str, Any], start: Point | None) -> Mapping[str, Any]:
    """Return the values of an edge; its line is reversed if its end is nearer to `start`."""
    line: Any = values.get("geometry")
    if start is None or _missing(line):
        return values
    if isinstance(line, str):
        import shapely

        try:
            line = shapely.from_wkt(line)
        except shapely.errors.GEOSException:
            return values  # `Drafts.wkt` reports the problem.
    points: Any = getattr(line, "coords", ())
    if len(points) < 2:
        return values
    first, last = ((point[0], point[1]) for point in (points[0], points[-1]))
    if length_of((start, first)) <= length_of((start, last)):
        return values
    return {**values, "geometry": line.reverse()}


def _each(value: Any) -> list[str]:
    """Return the entries of a list, or of the text of a list, as texts."""
    if _missing(value):
        return []
    if isinstance(value, list | tuple | set):
        return [str(entry) for entry in value]
    text = str(value)
    if not text.startswith("["):
        return [text]
    return ["".join(groups) for groups in _ONE.findall(text)]


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value)


def load(path: Path, *, crs: str = "") -> RoadMap:
    """Read a GraphML file; `crs` overrides its coordinate system, "" = the declared system."""
    drafts = Drafts(path, join_zero_length=True)
    names: dict[str, str] = {}
    edges: list[_Edge] = []
    counts: Counter[tuple[str, str]] = Counter()
    directed = True
    wanted = ("key", "data", "node", "edge")
    for element in elements(path, wanted, root="graphml", opened=("graph",)):
        tag, identity = tag_of(element), element.get("id", "")
        values = {
            names.get(key := data.get("key", ""), key): (data.text or "").strip()
            for data in (element, *element)
            if tag_of(data) == "data"
        }
        if tag == "graph":
            directed = element.get("edgedefault", "directed") != "undirected"
        elif tag == "key":
            names[identity] = element.get("attr.name", "")
        elif tag == "data":
            crs = crs or values.get("crs", "")
        elif tag == "node":
            _node(drafts, identity, values)
        else:
            own = element.get("directed", "")
            start, end = ends = element.get("source", ""), element.get("target", "")
            # osmnx writes keys of parallel edges as ids; in other files, ids are names or missing.
            plain = not identity or identity.isdigit()
            name = f"{start}_{end}_{identity or counts[ends]}" if plain else identity
            counts[ends] += 1
            edges.append(_Edge(name, start, end, values, own != "false" if own else directed))
    for edge in edges:
        _edge(drafts, edge)
    return drafts.finish(crs, nothing="expected nodes and edges")
