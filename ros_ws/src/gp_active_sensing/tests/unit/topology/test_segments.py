"""Parts that do not hang together, and the largest that does."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gp_active_sensing.topology import RoadMap, Roads, load_roads
from gp_active_sensing.topology.inspection import survey
from gp_active_sensing.topology.segments import parts_of
from tests.unit.topology.road_maps import segment, street, write

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
    (warning,) = [text for text in survey(road_map).warnings if "outside the largest" in text]
    assert warning.startswith("3 of 6 segments lie outside")
    assert "map.u_turns: always" in warning
    with caplog.at_level(logging.WARNING):
        Roads(road_map)
    assert "map.u_turns: always" in caplog.text
    assert not any("u_turns" in text for text in survey(road_map, "always").warnings)
