"""Figures and parts of a road map."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gp_active_sensing.commands.map_survey import Survey, survey_roads
from gp_active_sensing.topology import RoadMap, Roads, load_roads
from gp_active_sensing.topology.roads import parts_of
from tests.unit.topology.road_maps import segment, street, write


def look(tmp_path: Path, *features: object) -> Survey:
    return survey_roads(load_roads(write(tmp_path / "map.geojson", list(features))))


def test_figures_of_a_small_map(tmp_path: Path) -> None:
    found = look(tmp_path, *street())
    figures = found.figures
    assert [figures[key] for key in ("segments", "junctions", "metres")] == [6, 4, 600.0]
    assert (figures["width"], figures["height"]) == (200.0, 50.0)
    assert figures["one_way_share"] == pytest.approx(2 / 6)
    keys = ("dead_ends", "parts", "largest", "outside")
    assert [figures[key] for key in keys] == [1, 1, 6, 0]
    assert [figures[key] for key in ("shortest", "median_length", "longest")] == [50, 100, 150]
    assert [figures[key] for key in ("slowest", "fastest", "without_limit")] == [5, 20, 0]
    assert figures["lanes"] == {"1": 4, "2": 2}
    assert figures["features"] == ["x", "y", "direction", "length", "lanes", "speed_limit"]
    assert found.warnings == []


def test_what_may_surprise_is_said(tmp_path: Path) -> None:
    found = look(
        tmp_path,
        segment("ab", "a", "b", [(0, 0), (100, 0)], slope=0.1, trees=3, lanes=1),
        segment("cd", "c", "d", [(0, 9), (100, 9)], slope=0.1, speed_limit_mps=9.0),
    )
    assert found.figures["features"] == ["x", "y", "direction", "length", "slope"]
    text = "\n".join(found.warnings)
    for words in ("outside the largest part", "no speed limit", "none apart: length, slope"):
        assert words in text
    assert "cannot be a feature: lanes, speed_limit, trees" in text


FAR = segment("far", "x", "y", [(900, 0), (950, 0)])
INTO = segment("into", "w", "a", [(-50, 0), (0, 0)])
OUT = segment("out", "d", "z", [(100, 50), (100, 90)])


def load(tmp_path: Path, *features: object) -> RoadMap:
    return load_roads(write(tmp_path / "map.geojson", [*features, *street()]))


def test_parts_agree_with_those_of_the_topology(tmp_path: Path) -> None:
    road_map = load(tmp_path, FAR, INTO, OUT)
    parts, theirs = parts_of(road_map), Roads(road_map).components
    assert (parts.weak, len(parts.largest)) == (2, 6)
    assert (parts.outside, parts.traps) == ((0, 1, 2), (0, 2))
    assert parts == theirs


def test_u_turns_join_parts(tmp_path: Path) -> None:
    back = segment("back", "z", "d", [(100, 90), (100, 50)])
    road_map = load(tmp_path, OUT, back)
    assert len(parts_of(road_map, "dead_ends").outside) == 0
    assert len(parts_of(road_map, "never").outside) > 0


RING = [
    segment(f"{a}{b}", a, b, [start, end], oneway=False)
    for a, b, start, end in (
        ("a", "b", (0, 0), (100, 0)),
        ("b", "c", (100, 0), (50, 80)),
        ("c", "a", (50, 80), (0, 0)),
    )
]
"""Driven round in either direction; without U-turns nobody gets from one to the other."""


def test_where_u_turns_may_join_parts_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    road_map = load_roads(write(tmp_path / "ring.geojson", RING))
    (warning,) = [text for text in survey_roads(road_map).warnings if "outside the largest" in text]
    assert "3 of 6 segments" in warning
    assert "map.u_turns: always" in warning
    with caplog.at_level(logging.WARNING):
        Roads(road_map)
    assert "map.u_turns: always" in caplog.text
    assert not parts_of(road_map, "always").outside
