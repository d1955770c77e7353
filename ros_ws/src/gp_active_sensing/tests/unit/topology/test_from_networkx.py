"""Maps from graphs of networkx: nodes as places, and an osmnx-like graph as roads."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import gp_active_sensing as gas
from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.roads import Roads
from gp_active_sensing.types import Cost
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
    roads = gas.from_networkx(graph)
    assert isinstance(roads, Roads)
    assert set(roads.names) == {f"{u}_{v}_{key}" for u, v, key in graph.edges(keys=True)}
    assert "3_13_0" in roads.names
    assert "13_3_0" not in roads.names, "a one-way street"
    assert roads.datum == pytest.approx((13.402, 52.501), abs=1e-6)
    lengths = {f"{u}_{v}_{key}": d for u, v, key, d in graph.edges(keys=True, data="length")}
    for i, name in enumerate(roads.names):
        drawn = float(np.hypot(*np.diff(roads.geometry(i), axis=0).T).sum())
        assert drawn == pytest.approx(lengths[name], rel=5e-3)  # osmnx measures on a sphere
    import osmnx

    projected = gas.from_networkx(osmnx.project_graph(graph))
    order = [projected.names.index(name) for name in roads.names]  # osmnx may have changed it
    assert len(order) == projected.n
    np.testing.assert_allclose(projected.positions[order], roads.positions, atol=0.3)
    osmnx.save_graphml(graph, tmp_path / "saved.graphml")
    saved = build_topology(MapConfig(file=str(tmp_path / "saved.graphml")))
    assert saved.names == roads.names
    np.testing.assert_allclose(saved.positions, roads.positions, atol=1e-6)


def test_nodes_are_places() -> None:
    graph: nx.Graph[str] = nx.Graph(name="harbour")
    graph.add_node("pier", x=0.0, y=0.0, depth=3.0, salt=31.0)
    graph.add_node("buoy", x=30.0, y=40.0, depth=3.0)
    graph.add_node("wreck", x=30.0, y=40.0, depth=15.0, kind="old")
    graph.add_edge("pier", "buoy")
    graph.add_edge("buoy", "wreck", length=20.0, seconds=99.0)
    places = gas.from_networkx(graph, speed=2.0)
    assert isinstance(places, GraphTopology)
    assert (places.name, places.names) == ("harbour", ("pier", "buoy", "wreck"))
    assert places.heights is not None
    np.testing.assert_array_equal(places.heights, [-3.0, -3.0, -15.0])
    assert places.feature_names == ("x", "y", "z")
    everywhere = np.ones(3, dtype=np.bool_)
    assert places.route(0, 2, everywhere).cost == Cost(70.0, 25.0 + 99.0)
    assert places.attributes.names == ("salt",)  # who has one and who has none
    with pytest.raises(MapError, match="'salt' was asked for, but place 'buoy' has none"):
        places.columns(["salt"])


def test_directions_and_parallel_edges_count() -> None:
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for name, pos in {"a": (0, 0), "b": (10, 0), "c": (10, 10)}.items():
        graph.add_node(name, pos=pos)
    graph.add_edge("a", "b", length=30.0)
    graph.add_edge("a", "b", length=12.0)
    graph.add_edge("b", "c")
    graph.add_edge("c", "a")
    places = gas.from_networkx(graph)
    assert [[(m.to, m.metres) for m in out] for out in places.moves] == [
        [(1, 12.0)],
        [(2, 10.0)],
        [(0, pytest.approx(math.hypot(10.0, 10.0)))],
    ]


def test_lengths_alone_are_embedded() -> None:
    graph: nx.Graph[str] = nx.Graph()
    nx.add_path(graph, "abcd", length=25.0)
    places = gas.from_networkx(graph)
    assert places.feature_names == ("mds_1",)
    assert float(np.ptp(places.features)) == pytest.approx(75.0)
    assert float(np.ptp(places.positions[:, 0])) == pytest.approx(75.0)


def two_nodes(**edge: object) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph(name="two")
    graph.add_node("a", x=0.0, y=0.0)
    graph.add_node("b", x=3.0, y=4.0)
    graph.add_edge("a", "b", **edge)
    return graph


def test_graphs_that_are_refused() -> None:
    bare, nan, apart = nx.Graph([("a", "b")]), two_nodes(), two_nodes()
    nan.nodes["b"]["y"] = math.nan
    apart.add_node("far", x=90.0, y=0.0)
    numbered: nx.Graph[Any] = nx.Graph()
    numbered.add_edge(1, "1", length=3.0)
    for graph, message in (
        (bare, "edge 'a' to 'b': has no length, and nodes have no pos"),
        (two_nodes(length=-5.0), "edge 'a' to 'b': length: expected a number above 0"),
        (nan, "node 'b': y: expected a finite number, got nan"),
        (apart, "no way joins the 2 parts .* the smallest holds far"),
        (numbered, "told apart by their names as text; 1 is twice"),
    ):
        with pytest.raises(MapError, match=message):
            gas.from_networkx(graph)
