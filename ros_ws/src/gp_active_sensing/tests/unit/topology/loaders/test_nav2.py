"""Graphs of the Nav2 route server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import RoadMap, load_roads


def node(identity: Any, x: float, y: float, **properties: Any) -> dict[str, Any]:
    return {
        "type": "Feature",
        "properties": {"id": identity, "frame": "map", **properties},
        "geometry": {"type": "Point", "coordinates": [x, y]},
    }


def edge(identity: Any, start: Any, end: Any, **properties: Any) -> dict[str, Any]:
    return {
        "type": "Feature",
        "properties": {"id": identity, "startid": start, "endid": end, **properties},
        "geometry": {"type": "MultiLineString"},  # as the server's own saver leaves it
    }


def room() -> list[dict[str, Any]]:
    """Return a graph as the route server has it, in a room of half a metre."""
    return [
        node(0, 0.0, 0.0),
        node(1, 0.4, 0.0),
        node(2, 0.4, 0.3, operations={"stop": {"type": "stop", "trigger": "NODE"}}),
        edge(3, 0, 1, metadata={"abs_speed_limit": 0.5, "speed_limit": 0.85, "aisle": 14}),
        edge(4, 1, 2, cost=10.0, overridable=False, metadata={"name": "door", "region": {"a": 1}}),
        edge(5, 2, 0),
    ]


def load(tmp_path: Path, features: list[Any], **members: Any) -> RoadMap:
    path = tmp_path / "graph.geojson"
    data = {"type": "FeatureCollection", "features": features, **members}
    path.write_text(json.dumps(data), encoding="utf-8")
    return load_roads(path)


def test_reads_nodes_and_edges(tmp_path: Path) -> None:
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}}
    road_map = load(tmp_path, room(), crs=crs)
    first, second, third = road_map.segments
    assert (road_map.name, road_map.frame, road_map.crs) == ("graph", "map", "local")
    assert (first.id, first.start, first.end) == ("3", "0", "1")
    assert first.line == ((0.0, 0.0), (0.4, 0.0))
    assert first.speed_limit == 0.5
    assert first.extra == {"speed_share": 0.85, "aisle": 14.0}
    assert second.extra == {"cost": 10.0}
    assert third.length == pytest.approx(0.5)
    assert road_map.notes == (
        "left out: 'name', which is no number (1)",
        "left out: 'operations' of a node (1)",
        "left out: 'region', which is no number (1)",
    )


def test_broken_graphs(tmp_path: Path) -> None:
    for change, message in (
        (edge(9, 0, 7), r"feature 6 \(edge 9\): endid: no node '7'"),
        (edge(9, 0, 1, metadata=[1]), r"metadata: expected an object, got \[1\]"),
        (edge(9, 0, 1, metadata={"aisle": float("nan")}), "aisle: expected a finite number"),
        (node(2, 5.0, 5.0), "id '2' is taken by another node"),
        (node(8, 1.0, 1.0, frame="odom"), r"nodes are in 2 frames \(map, odom\)"),
    ):
        features = [*room(), change]
        with pytest.raises(MapError, match=message):
            load(tmp_path, features)


def test_edges_of_one_id_and_those_without_length(tmp_path: Path) -> None:
    """As in the graphs that Nav2 ships: the server tells edges apart by their nodes."""
    again = load(tmp_path, [*room(), edge(3, 0, 2), edge(3, 2, 1), edge(8, 1, 1)])
    assert [s.id for s in again.segments if s.id.partition("/")[0] == "3"] == ["3", "3/2", "3/3"]
    assert "8" not in {s.id for s in again.segments}
    assert any("without length" in note for note in again.notes)
