"""SUMO networks: what a car may use, what follows what, where it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import Roads, load_roads
from tests.unit.topology.loaders.nets import CONNECTIONS, EDGES, LOCATION, net, write_net


def test_reads_what_cars_may_use(tmp_path: Path) -> None:
    for name in ("small.net.xml", "small.net.xml.gz"):
        road_map = load_roads(write_net(tmp_path, net(), name))
        assert (road_map.name, road_map.frame, road_map.datum) == ("small", "map", None)
        first, second, third = road_map.segments
        assert (first.id, first.start, first.end, first.name) == ("ab", "a", "b", "High Street")
        assert first.line == (
            (0.0, 1.5),
            (50.0, 3.0),
            (100.0, 1.5),
        )  # between its two lanes for cars
        assert (first.length, first.lanes, first.speed_limit) == (100.0, 2.0, 13.89)
        assert (first.road_class, first.successors) == ("local", ("ba", "bc"))
        assert (second.id, second.length, second.successors) == (
            "ba",
            99.5,
            (),
        )  # lane 0 is for buses
        assert (third.id, third.successors) == ("bc", ())
        assert road_map.notes == ("left out: edges closed to passenger cars (1)",)


def test_the_roads_obey_the_connections(tmp_path: Path) -> None:
    roads = Roads(load_roads(write_net(tmp_path, net())), u_turns="always")
    assert roads.neighbours(0).tolist() == [1, 2]
    assert roads.neighbours(1).tolist() == []


def test_a_car_takes_no_turn_of_others(tmp_path: Path) -> None:
    """What a connection, or the lane of its junction, is closed to is no turn of a car."""
    turn = '<connection from="ab" to="bc" fromLane="1" toLane="0" via=":b_0_0"'
    inner = 'id=":b_0_0" index="0"'
    for said in ('allow="bus bicycle"', 'disallow="passenger"', 'disallow="all"', 'allow="tram"'):
        text = net(connections=CONNECTIONS.replace(turn, f"{turn} {said}"))
        assert load_roads(write_net(tmp_path, text)).segments[0].successors == ("ba",)
        text = net(edges=EDGES.replace(inner, f"{inner} {said}"))
        assert load_roads(write_net(tmp_path, text)).segments[0].successors == ("ba",)
    for said in ('allow="bus passenger"', 'disallow="tram"', 'allow="all"'):
        text = net(connections=CONNECTIONS.replace(turn, f"{turn} {said}"))
        assert load_roads(write_net(tmp_path, text)).segments[0].successors == ("ba", "bc")
    closed = net(connections=CONNECTIONS.replace("/>", ' allow="bus"/>'))
    assert [s.successors for s in load_roads(write_net(tmp_path, closed)).segments] == [()] * 3


def test_a_network_without_connections(tmp_path: Path) -> None:
    road_map = load_roads(write_net(tmp_path, net(connections="")))
    assert road_map.segments[0].successors is None
    assert "has no connections" in road_map.notes[0]


def test_broken_edges(tmp_path: Path) -> None:
    for change, message in (
        (('edge id="ba"', 'edge id="ab"'), "edge 'ab': there is another edge of this id"),
        (('length="99.5"', 'length="0.00"'), "edge 'ba', lane 0: length: expected a number above"),
        (('speed="13.89"', 'speed="fast"'), "edge 'ab', lane 1: speed: expected .* got 'fast'"),
        (('shape="100,6 0,6"', 'shape="100,6"'), "edge 'ba', lane 0: expected a shape of 2 or mo"),
        (('shape="100,6 0,6"', 'shape="5,6 5,6"'), "edge 'ba': has zero length"),
        (('from="b" to="a"', 'to="a"'), "edge 'ba': from: expected text, got None"),
        (('to="c">', 'to="z">'), None),
    ):
        assert change[0] in EDGES
        path = write_net(tmp_path, net(edges=EDGES.replace(*change)))
        if message is None:  # another junction is no mistake
            assert load_roads(path).segments[2].end == "z"
            return
        with pytest.raises(MapError, match=message):
            load_roads(path)


def test_where_a_network_lies(tmp_path: Path) -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    tmerc = "+proj=tmerc +lon_0=13.4 +lat_0=52.5 +k=1 +ellps=WGS84 +units=m"
    here = f'<location netOffset="0,0" convBoundary="" origBoundary="" projParameter="{tmerc}"/>'
    assert load_roads(write_net(tmp_path, net(location=here))).datum == (13.4, 52.5)
    utm = "+proj=utm +zone=33 +ellps=WGS84 +datum=WGS84 +units=m +no_defs"
    there = f'<location netOffset="-390000,-5816000" projParameter="{utm}"/>'
    road_map = load_roads(write_net(tmp_path, net(location=there)))
    assert road_map.datum is None
    assert "do not point east and north there" in road_map.notes[0]
    unknown = LOCATION.replace('"!"', '"+proj=moon"')
    road_map = load_roads(write_net(tmp_path, net(location=unknown)))
    assert "unknown coordinate system '+proj=moon'" in road_map.notes[0]


def test_a_network_in_degrees(tmp_path: Path) -> None:
    path = write_net(tmp_path, net(location=LOCATION.replace('"!"', '"-"')))
    with pytest.raises(MapError, match=r"is in longitude and latitude \(projParameter '-'\)"):
        load_roads(path)


def test_a_coordinate_system_of_ones_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MapError, match=r"files ending in \.net\.xml have their own"):
        load_roads(write_net(tmp_path, net()), crs="EPSG:4326")
