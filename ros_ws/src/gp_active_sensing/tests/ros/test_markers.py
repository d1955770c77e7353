"""What RViz and Foxglove are given to draw."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from visualization_msgs.msg import Marker

from gp_active_sensing.ros.markers import MARKS, ShownProbe, map_markers, probe_markers
from gp_active_sensing.topology import MapConfig, build_topology
from tests.ros.test_conversions import roads

GRID = build_topology(MapConfig("grid", columns=3, rows=2, spacing=10.0))


def test_each_kind_of_place_is_a_marker_of_its_own() -> None:
    places = {"visited": [0], "planned": [1], "next": [1]}
    markers = map_markers(roads(), places, 0).markers
    assert [m.ns for m in markers] == list(MARKS)
    assert [m.id for m in markers] == [0, 1, 2, 3, 4, 5]
    shown = {m.ns: m for m in markers if m.action == Marker.ADD}
    assert set(shown) == {"topology", "visited", "planned", "next"}
    assert {m.type for m in shown.values()} == {Marker.LINE_LIST}
    assert {ns: len(m.points) for ns, m in shown.items()} == {
        "topology": 6,
        "visited": 2,
        "planned": 4,
        "next": 4,
    }
    assert [(p.x, p.y) for p in shown["visited"].points] == [(0, 0), (100, 0)]
    assert shown["next"].scale.x > shown["planned"].scale.x > shown["topology"].scale.x
    assert shown["next"].points[0].z > shown["planned"].points[0].z


def test_a_kind_without_places_is_deleted() -> None:
    markers = {m.ns: m for m in map_markers(GRID, {"blocked": [2]}, 0).markers}
    assert markers["blocked"].action == Marker.ADD
    assert markers["visited"].action == Marker.DELETE
    assert not markers["visited"].points


def test_the_places_of_a_grid_are_points() -> None:
    markers = map_markers(GRID, {"visited": [0, 5]}, 0).markers
    assert {m.type for m in markers} == {Marker.POINTS}
    assert [len(m.points) for m in markers if m.points] == [6, 2]


def test_a_probe_is_an_arrow_where_it_heads() -> None:
    (marker,) = probe_markers(GRID, [ShownProbe("", 3.0, 4.0, math.pi / 2, 10**9)]).markers
    assert marker.type == Marker.ARROW
    assert (marker.pose.position.x, marker.pose.position.y) == (3.0, 4.0)
    assert marker.pose.orientation.z == pytest.approx(math.sin(math.pi / 4))
    assert marker.lifetime.sec > 0, "a node that has died shows none"
    assert marker.header.frame_id == "map"


def test_without_a_heading_it_is_a_ball() -> None:
    (marker,) = probe_markers(GRID, [ShownProbe("", 3.0, 4.0, math.nan, 0)]).markers
    assert marker.type == Marker.SPHERE
    assert marker.pose.orientation.w == 1.0


def test_several_probes_have_names_and_those_that_are_gone_are_grey() -> None:
    shown = [
        ShownProbe("boat_1", 0.0, 0.0, 0.0, 0),
        ShownProbe("boat_2", 5.0, 0.0, 0.0, 0, takes_part=False),
    ]
    markers = probe_markers(GRID, shown).markers
    assert [(m.ns, m.id, m.text) for m in markers] == [
        ("probe", 0, ""),
        ("name", 0, "boat_1"),
        ("probe", 1, ""),
        ("name", 1, "boat_2"),
    ]
    assert markers[1].type == Marker.TEXT_VIEW_FACING
    assert markers[0].color.r > markers[0].color.g
    assert markers[2].color.g == markers[2].color.r
