"""Extracts of OpenStreetMap: junctions, directions, turns, broken files."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import MapError, MissingDependencyError
from gp_active_sensing.topology import RoadMap, Roads, load_roads
from tests.unit.topology.loaders.extracts import NODES, RESIDENTIAL, Relation, Way, osm, write_osm
from tests.unit.topology.loaders.test_files import LAUGHS

osmium = pytest.importorskip("osmium", reason="the extra [maps] is not installed")
pytest.importorskip("pyproj", reason="the extra [maps] is not installed")


def load(
    tmp_path: Path, *ways: Way, relations: tuple[Relation, ...] = (), missing: int = 0
) -> RoadMap:
    return load_roads(write_osm(tmp_path, osm(ways, relations, missing)))


def ends(road_map: RoadMap) -> dict[str, tuple[str, str]]:
    return {segment.id: (segment.start, segment.end) for segment in road_map.segments}


def test_streets_are_cut_where_they_meet(tmp_path: Path) -> None:
    road_map = load(
        tmp_path,
        (17, [1, 2, 3, 4], {**RESIDENTIAL, "name": "East Street", "maxspeed": "30"}),
        (19, [13, 3, 23], {"highway": "tertiary", "oneway": "yes", "ref": "K 7", "lanes": "2"}),
        (23, [3, 33], {"highway": "footway"}),
    )
    assert ends(road_map) == {
        "17.0": ("1", "3"),
        "-17.0": ("3", "1"),
        "17.1": ("3", "4"),
        "-17.1": ("4", "3"),
        "19.0": ("13", "3"),
        "19.1": ("3", "23"),
    }
    first, twin, *_, last = road_map.segments
    assert (road_map.name, road_map.crs, road_map.datum) == (
        "quarter",
        "EPSG:4326",
        (13.4025, 52.501),
    )
    assert len(first.line) == 3
    assert twin.line == first.line[::-1]
    assert first.speed_limit == pytest.approx(30 / 3.6)
    assert (first.name, first.road_class, first.lanes) == ("East Street", "residential", None)
    assert (last.name, last.road_class, last.lanes) == ("K 7", "tertiary", 2.0)
    assert first.length == pytest.approx(2 * 67.9, abs=0.1)


def test_a_path_is_never_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "http:").mkdir()
    write_osm(tmp_path / "http:", osm([(1, [1, 2], RESIDENTIAL)]))
    monkeypatch.chdir(tmp_path)
    assert len(load_roads(Path("http:/quarter.osm")).segments) == 2


def test_directions(tmp_path: Path) -> None:
    road_map = load(
        tmp_path,
        (1, [1, 2], {**RESIDENTIAL, "oneway": "-1"}),
        (2, [2, 3, 13, 12, 2], {**RESIDENTIAL, "junction": "roundabout"}),
        (3, [4, 5], {"highway": "motorway"}),
        (4, [5, 6], {"highway": "motorway", "oneway": "no"}),
        (5, [6, 7], {**RESIDENTIAL, "oneway": "reversible"}),
    )
    assert ends(road_map) == {
        "-1.0": ("2", "1"),
        "2.0": ("2", "2"),
        "3.0": ("4", "5"),
        "4.0": ("5", "6"),
        "-4.0": ("6", "5"),
    }
    assert road_map.notes == ("left out: streets whose direction changes with the hour (1)",)


def test_streets_that_meet_themselves_or_leave_the_extract(tmp_path: Path) -> None:
    for nodes, missing, expected in (
        ([1, 2, 12, 11, 1, 21], 0, {"1.0": ("1", "1"), "1.1": ("1", "21")}),
        ([1, 2, 3, 4, 5], 3, {"1.0": ("1", "2"), "1.1": ("4", "5")}),
    ):
        road_map = load(tmp_path, (1, nodes, {**RESIDENTIAL, "oneway": "yes"}), missing=missing)
        assert ends(road_map) == expected
    assert road_map.notes == ("left out: nodes of streets that leave the extract (1)",)


CROSSING: tuple[Way, ...] = (
    (1, [1, 2], RESIDENTIAL),
    (2, [2, 3], RESIDENTIAL),
    (3, [2, 12], RESIDENTIAL),
    (4, [2, 22], RESIDENTIAL),
)


def turn(kind: str, first: int, via: int, second: int, **tags: str) -> Relation:
    members = [("from", "way", first), ("via", "node", via), ("to", "way", second)]
    return {"restriction": kind, **tags}, members


def test_turn_restrictions(tmp_path: Path) -> None:
    for relation, allowed in (
        (turn("no_left_turn", 1, 2, 3), {"2.0", "4.0"}),
        (turn("only_straight_on", 1, 2, 2), {"2.0"}),
        (turn("no_left_turn", 1, 2, 3, **{"except": "motorcar;bicycle"}), None),
        (turn("no_left_turn", 1, 1, 3), None),  # the node is not where they meet
        (turn("no_left_turn", 1, 2, 99), None),  # no street of the map
        (turn("give_way", 1, 2, 3), None),
    ):
        road_map = load(tmp_path, *CROSSING, relations=(relation,))
        (first,) = (s for s in road_map.segments if s.id == "1.0")
        assert (None if first.successors is None else set(first.successors)) == allowed
        others = [s.successors for s in road_map.segments if s.id != "1.0"]
        if allowed is not None:
            assert others == [None] * len(others)
            assert road_map.notes == ("1 turn restriction(s) applied",)
            roads = Roads(road_map)
            assert {roads.names[b] for b in roads.neighbours(0)} == allowed


def test_where_nothing_else_is_allowed_one_turns_back(tmp_path: Path) -> None:
    ways = [(1, [1, 2], RESIDENTIAL), (2, [2, 3], RESIDENTIAL)]
    road_map = load(tmp_path, *ways, relations=(turn("no_straight_on", 1, 2, 2),))
    assert road_map.segments[0].successors == ("-1.0",)
    both = (turn("no_straight_on", 1, 2, 2), turn("no_u_turn", 1, 2, 1))
    assert load(tmp_path, *ways, relations=both).segments[0].successors == ()


def test_a_binary_extract_gives_the_same(tmp_path: Path) -> None:
    ways: list[Way] = [(1, [1, 2, 3], RESIDENTIAL), (2, [2, 12], {"highway": "primary"})]
    path = tmp_path / "quarter.osm.pbf"
    with osmium.SimpleWriter(str(path)) as writer:
        for node in (1, 2, 3, 12):
            writer.add_node(osmium.osm.mutable.Node(id=node, version=1, location=NODES[node]))
        for identity, nodes, tags in ways:
            writer.add_way(osmium.osm.mutable.Way(id=identity, version=1, nodes=nodes, tags=tags))
    assert load_roads(path) == load(tmp_path, *ways)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(MapError, match=r"quarter\.osm\.pbf: is no OpenStreetMap file, or a damage"):
        load_roads(path)
    path.write_bytes(random.Random(1).randbytes(500))
    with pytest.raises(MapError, match="is no OpenStreetMap file, or a damaged"):
        load_roads(path)


EVIL = (
    f'<?xml version="1.0"?><!DOCTYPE osm [{LAUGHS}]><osm version="0.6"><way id="1">'
    '<tag k="highway" v="&lol9;"/></way></osm>'
)


def test_broken_extracts(tmp_path: Path) -> None:
    for text, message in (
        ("", "is no OpenStreetMap file, or a damaged or truncated one"),
        ("<gpx/>", "is no OpenStreetMap file"),
        (osm([(1, [1, 2], {"highway": "path"})]), "has no segments; expected ways with highway=r"),
        (EVIL, "XML entities are not supported"),
    ):
        with pytest.raises(MapError, match=message) as caught:
            load_roads(write_osm(tmp_path, text))
        assert "quarter.osm" in str(caught.value)


def test_without_osmium_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path: Any = write_osm(tmp_path, osm(CROSSING))
    monkeypatch.setitem(sys.modules, "osmium", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.*gp_active_sensing\[maps\]'"):
        load_roads(path)
