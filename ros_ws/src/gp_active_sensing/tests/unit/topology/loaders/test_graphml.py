"""Graphs as osmnx saves them, and others of that shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import load_roads

KEYS = {
    "node": ("x", "y", "street_count"),
    "edge": (
        *("osmid", "highway", "name", "oneway", "reversed", "length", "maxspeed", "lanes"),
        *("speed_kph", "travel_time", "geometry", "ref", "from", "to"),
    ),
}
NODES = {"5": (0.0, 0.0), "7": (100.0, 0.0), "9": (100.0, 50.0)}
STREET = {
    "osmid": "[17, 19]",
    "highway": "['residential', 'tertiary']",
    "name": "High Street",
    "oneway": "False",
    "reversed": "[False, True]",
    "length": "101.5",
    "maxspeed": "['50', '30 mph']",
    "lanes": "4",
    "speed_kph": "49.1",
    "travel_time": "7.3",
    "geometry": "LINESTRING (0 0, 50 2, 100 0)",
}


def text_of(
    edges: list[tuple[str, str, str, dict[str, str]]],
    nodes: dict[str, tuple[float, float]] = NODES,
    default: str = "directed",
) -> str:
    """Return a graph in the shape that networkx writes."""
    pairs = [(kind, name) for kind, every in KEYS.items() for name in every]
    names = {pair: f"d{k}" for k, pair in enumerate(pairs)}
    keys = "".join(
        f'<key id="{identity}" for="{kind}" attr.name="{name}" attr.type="string" />'
        for (kind, name), identity in names.items()
    )

    def data(kind: str, values: dict[str, str]) -> str:
        return "".join(
            f'<data key="{names[kind, key]}">{value}</data>' for key, value in values.items()
        )

    points = "".join(
        f'<node id="{node}">{data("node", {"x": str(x), "y": str(y), "street_count": "3"})}</node>'
        for node, (x, y) in nodes.items()
    )
    lines = "".join(
        f'<edge source="{a}" target="{b}" id="{key}">{data("edge", values)}</edge>'
        for a, b, key, values in edges
    )
    return (
        "<?xml version='1.0' encoding='utf-8'?>\n"
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}'
        f'<graph edgedefault="{default}">{points}{lines}</graph></graphml>'
    )


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "quarter.graphml"
    path.write_text(text, encoding="utf-8")
    return path


def test_reads_edges_and_their_attributes(tmp_path: Path) -> None:
    edges = [("5", "7", "0", STREET), ("7", "9", "0", {"length": "50", "oneway": "True"})]
    road_map = load_roads(write(tmp_path, text_of(edges)))
    first, second = road_map.segments
    assert (road_map.name, road_map.crs) == ("quarter", "local")
    assert (first.id, first.start, first.end) == ("5_7_0", "5", "7")
    assert first.line == ((0.0, 0.0), (50.0, 2.0), (100.0, 0.0))
    assert (first.length, first.lanes) == (101.5, 2.0)  # four in both directions
    assert first.speed_limit == pytest.approx(30 * 1609.344 / 3600)
    assert (first.name, first.road_class) == ("High Street", "residential")
    assert first.extra == {"travel_time": 7.3}
    assert second.line == ((100.0, 0.0), (100.0, 50.0))
    assert (second.lanes, second.speed_limit, second.extra) == (None, None, {})
    assert road_map.notes == ("the lowest of several limits was taken (1)",)


def test_edges_of_other_programs(tmp_path: Path) -> None:
    edges = [("5", "7", "", {"speed_kph": "36"}), ("5", "7", "", {}), ("7", "9", "m", {})]
    first, second, third, *_ = load_roads(write(tmp_path, text_of(edges))).segments
    assert [first.id, second.id, third.id] == ["5_7_0", "5_7_1", "m"]
    assert first.speed_limit == pytest.approx(10.0)
    both = load_roads(write(tmp_path, text_of(edges[:1], default="undirected")))
    assert [s.id for s in both.segments] == ["5_7_0", "-5_7_0"]


def test_edges_without_length_are_joined(tmp_path: Path) -> None:
    nodes = {**NODES, "8": (100.0, 0.0)}
    edges = [
        ("5", "7", "0", {}),
        ("7", "8", "0", {"length": "0.0"}),
        ("8", "9", "0", {}),
        ("5", "5", "0", {"length": "4"}),
    ]
    road_map = load_roads(write(tmp_path, text_of(edges, nodes=nodes)))
    assert [(s.start, s.end) for s in road_map.segments] == [("5", "7"), ("7", "9")]
    assert road_map.notes == ("2 segment(s) without length were left out and their ends joined",)


def test_broken_graphs(tmp_path: Path) -> None:
    for edges, message in (
        ([("5", "6", "0", {})], "edge '5_6_0': to: no node '6'"),
        ([("5", "7", "0", {"length": "-1"})], "edge '5_7_0': length: expected a number above 0"),
        ([("5", "7", "0", {"travel_time": "nan"})], "travel_time: expected a finite number"),
        ([("5", "7", "0", {"geometry": "POINT (1 2)"})], "geometry: expected LINESTRING"),
        ([("5", "7", "0", {})] * 2, "edge '5_7_0': id '5_7_0' is taken by edge '5_7_0'"),
        ([], "has no segments; expected nodes and edges"),
        ([("5", "7", "0", {}), ("5", "", "0", {})], "to: no node ''"),
    ):
        with pytest.raises(MapError, match=message) as caught:
            load_roads(write(tmp_path, text_of(edges)))
        assert "quarter.graphml" in str(caught.value)


def test_a_one_way_edge_without_a_direction_leads_from_its_from_to_its_to(tmp_path: Path) -> None:
    """As osmnx saves a graph that was made undirected."""
    for word, one_way in (
        ("True", True), ("true", True), ("1", True), ("yes", True), ("[False, True]", True),
        ("False", False), ("no", False), ("", False),
    ):  # fmt: skip
        said = {"oneway": word, "from": "7", "to": "5", "geometry": "LINESTRING (0 0, 50 2, 100 0)"}
        text = text_of([("5", "7", "0", said)], default="undirected")
        path = tmp_path / "a.graphml"
        for graph in (
            text,
            text.replace("undirected", "directed").replace('id="0"', 'directed="false"'),
        ):
            path.write_text(graph)
            found = load_roads(path).segments
            ways = {(s.start, s.end) for s in found}
            assert ways == ({("7", "5")} if one_way else {("7", "5"), ("5", "7")}), word
            assert next(s.line[0] for s in found if s.start == "7") == (100.0, 0.0)
    text = text_of([("5", "7", "0", {"oneway": "True"})], default="undirected")
    (tmp_path / "a.graphml").write_text(text)
    with pytest.raises(MapError, match="from and to"):
        load_roads(tmp_path / "a.graphml")
