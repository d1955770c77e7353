"""Roads from graphs of networkx, as osmnx makes them, and broken ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import shapely

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import MapConfig, Roads, build_topology
from tests.unit.topology.loaders.extracts import RESIDENTIAL, osm, write_osm


def of_osmnx(folder: Path) -> nx.MultiDiGraph[int]:
    """A block as osmnx itself reads it from an extract, with a street across it."""
    osmnx = pytest.importorskip("osmnx", reason="osmnx is not installed")
    one_way = {"highway": "primary", "maxspeed": "50", "lanes": "2", "oneway": "yes"}
    ways = [
        (100, [1, 2, 3], {**RESIDENTIAL, "maxspeed": "30", "name": "South"}),
        (101, [3, 13, 23], one_way),
        (102, [23, 22, 21], RESIDENTIAL),
        (103, [21, 11, 1], RESIDENTIAL),
        (104, [11, 12, 13], {**RESIDENTIAL, "maxspeed": "20 mph"}),
    ]
    graph: nx.MultiDiGraph[int] = osmnx.graph_from_xml(write_osm(folder, osm(ways)))
    return graph


def test_a_graph_of_osmnx_is_the_road_map_of_its_extract(tmp_path: Path) -> None:
    """Projected or not, saved or not: the same streets with the same lengths."""
    graph = of_osmnx(tmp_path)
    roads = Roads.from_networkx(graph)
    assert set(roads.names) == {f"{u}_{v}_{key}" for u, v, key in graph.edges(keys=True)}
    assert "3_13_0" in roads.names
    assert "13_3_0" not in roads.names, "a one-way street"
    assert roads.datum == pytest.approx((13.402, 52.501), abs=1e-6)
    lengths = {f"{u}_{v}_{key}": d for u, v, key, d in graph.edges(keys=True, data="length")}
    for i, name in enumerate(roads.names):
        drawn = float(np.hypot(*np.diff(roads.geometry(i), axis=0).T).sum())
        assert drawn == pytest.approx(lengths[name], rel=5e-3)  # osmnx measures on a sphere
    import osmnx

    projected = Roads.from_networkx(osmnx.project_graph(graph))
    order = [projected.names.index(name) for name in roads.names]  # osmnx may have changed it
    assert len(order) == projected.n
    np.testing.assert_allclose(projected.positions[order], roads.positions, atol=0.3)
    osmnx.save_graphml(graph, tmp_path / "saved.graphml")
    saved = build_topology(MapConfig(file=str(tmp_path / "saved.graphml")))
    assert saved.names == roads.names
    np.testing.assert_allclose(saved.positions, roads.positions, atol=1e-6)


def city() -> nx.MultiDiGraph:
    """A quarter as osmnx has it: a one-way ring, a street both ways with a bend, a loop."""
    graph = nx.MultiDiGraph(crs="epsg:32633", created_date="2024-01-01", simplified=True)
    at = {17: (0.0, 0.0), 18: (120.0, 0.0), 19: (120.0, 90.0), 20: (0.0, 90.0)}
    for node, (x, y) in at.items():
        graph.add_node(node, x=390_000.0 + x, y=5_800_000.0 + y, street_count=3)
    for a, b in ((17, 18), (18, 19), (19, 20), (20, 17)):
        length = float(abs(at[a][0] - at[b][0]) + abs(at[a][1] - at[b][1]))
        graph.add_edge(
            a, b, osmid=a, highway="residential", oneway=True, length=length, maxspeed="30"
        )
    bend = shapely.LineString([(390_000, 5_800_000), (390_060, 5_800_060), (390_120, 5_800_090)])
    both = {
        "osmid": [4, 5],
        "highway": ["primary", "secondary"],
        "name": ["High Street", "Main Road"],
        "oneway": False,
        "lanes": ["4", "3"],
        "maxspeed": ["50", "30 mph"],
        "length": bend.length,
        "bridge": "yes",
        "width": 7.5,
    }
    graph.add_edge(17, 19, **both, reversed=False, geometry=bend)
    graph.add_edge(19, 17, **both, reversed=True, geometry=bend.reverse())
    return graph


def test_a_graph_of_osmnx() -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    roads = Roads.from_networkx(city(), name="quarter")
    first, bend = roads.segments[0], roads.segments[1]
    assert (roads.name, roads.n, roads.frame) == ("quarter", 6, "map")
    assert (first.id, first.start, first.end, first.length) == ("17_18_0", "17", "18", 120.0)
    assert (first.speed_limit, first.road_class) == (pytest.approx(30 / 3.6), "residential")
    assert (bend.id, bend.name, bend.road_class) == ("17_19_0", "High Street, Main Road", "primary")
    assert bend.speed_limit == pytest.approx(30 * 1609.344 / 3600)
    assert bend.lanes == 1.5  # the fewest, both directions counted
    assert bend.extra == {"width": 7.5}
    assert len(bend.line) == 3
    assert bend.line[0] == pytest.approx(first.line[0])
    back = next(s for s in roads.segments if s.start == "19" and s.end == "17")
    assert back.line == bend.line[::-1]
    assert roads.road_map.datum == pytest.approx((13.3795, 52.34), abs=0.01)


def test_an_undirected_graph_of_osmnx() -> None:
    graph: Any = nx.MultiGraph(crs="local")
    graph.add_node(1, x=0.0, y=0.0)
    graph.add_node(2, x=100.0, y=0.0)
    line = shapely.LineString([(100, 0), (50, 30), (0, 0)])
    graph.add_edge(1, 2, length=120.0, oneway=True, **{"from": 2, "to": 1}, geometry=line)
    graph.add_edge(1, 2, length=120.0, oneway=False, geometry=line)
    one_way, there, back = Roads.from_networkx(graph).segments
    assert (one_way.start, one_way.end, one_way.line[0]) == ("2", "1", (100.0, 0.0))
    assert (there.start, there.line[0], there.line[1]) == ("1", (0.0, 0.0), (50.0, 30.0))
    assert (back.id, back.start, back.line[0]) == ("-1_2_1", "2", (100.0, 0.0))


def line(**edge: Any) -> Any:
    graph: Any = nx.DiGraph()
    graph.add_node("a", x=0.0, y=0.0)
    graph.add_node("b", x=100.0, y=0.0)
    graph.add_edge("a", "b", **edge)
    return graph


def at_one_place() -> Any:
    graph = line(length=100.0)
    graph.add_node("c", x=100.0, y=0.0)
    graph.add_edge("c", "a", length=100.0)
    return graph


def test_broken_graphs() -> None:
    for graph, message in (
        ([], r"expected a graph of networkx, got \[\]"),
        (nx.Graph(), "graph: has 0 nodes and no edges"),
        (nx.empty_graph(4), "graph: has 4 nodes and no edges; expected at least one edge"),
        (nx.path_graph(3), r"graph: nodes have no positions \(x and y\); networkx.kamada"),
        (at_one_place(), r"nodes 'b' and 'c' are both at \(100, 0\); make one node of them"),
        (line(length=-4.0), "edge 'a_b_0': length: expected a number above 0, got -4.0"),
        (line(geometry=shapely.Point(1, 2)), r"geometry: expected LINESTRING"),
    ):
        with pytest.raises(MapError, match=message):
            Roads.from_networkx(graph)
