"""Parts that do not hang together, and the largest that does."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gp_active_sensing.topology import MapConfig, RoadMap, Roads, build_topology, load_roads
from gp_active_sensing.topology.inspection import survey
from gp_active_sensing.topology.segments import keep_largest, parts_of
from tests.unit.topology.road_maps import segment, street, write

FAR = segment("far", "x", "y", [(900, 0), (950, 0)])
INTO = segment("into", "w", "a", [(-50, 0), (0, 0)])
OUT = segment("out", "d", "z", [(100, 50), (100, 90)])


def load(tmp_path: Path, *features: object) -> RoadMap:
    return load_roads(write(tmp_path / "map.geojson", [*features, *street()]))


def test_a_map_in_one_piece(tmp_path: Path) -> None:
    road_map = load(tmp_path)
    parts = parts_of(road_map)
    assert (parts.weak, parts.strong, len(parts.outside), len(parts.traps)) == (1, 1, 0, 0)
    assert keep_largest(road_map) is road_map


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


def test_where_u_turns_would_join_parts_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    helps = "with map.u_turns: always, which lets a probe turn round at every junction and not at "
    road_map = load_roads(write(tmp_path / "ring.geojson", RING))
    (warning,) = [text for text in survey(road_map).warnings if "outside the largest" in text]
    assert warning.startswith("3 of 6 segments lie outside")
    assert warning.endswith(f"; {helps}dead ends only, all of them can be reached")
    with caplog.at_level(logging.WARNING):
        Roads(road_map)
    assert f"{helps}dead ends only, all of them" in caplog.text
    assert not any("U-turn" in w or "u_turns" in w for w in survey(road_map, "always").warnings)
    apart = load_roads(write(tmp_path / "apart.geojson", [*RING, FAR]))
    (warning,) = [text for text in survey(apart).warnings if "outside the largest" in text]
    assert warning.endswith("all but 1 of them can be reached")
    (warning,) = [
        text for text in survey(load(tmp_path, FAR)).warnings if "outside the largest" in text
    ]
    assert "u_turns" not in warning


def test_the_largest_part_is_kept_and_the_rest_said(tmp_path: Path) -> None:
    kept = keep_largest(load(tmp_path, FAR, INTO, OUT))
    assert [s.id for s in kept.segments] == ["ab", "-ab", "bc", "-bc", "bd", "dc"]
    (note,) = kept.notes
    assert note.startswith("kept the largest part with a way from each segment to each: ")
    assert note.endswith("6 of 9 segments; 3 (0.1 km) were dropped")
    assert len(parts_of(kept).outside) == 0


def test_of_equally_large_parts_the_first_is_kept(tmp_path: Path) -> None:
    lines = [segment(i, a, b, [(k, 0), (k + 9, 0)]) for k, (i, a, b) in enumerate(PAIRS)]
    road_map = load_roads(write(tmp_path / "map.geojson", lines))
    assert [s.id for s in keep_largest(road_map, "always").segments] == ["ab", "ba"]


PAIRS = [("ab", "a", "b"), ("cd", "c", "d"), ("ba", "b", "a"), ("dc", "d", "c")]


def test_listed_successors_lose_what_was_dropped(tmp_path: Path) -> None:
    features = [
        segment("ab", "a", "b", [(0, 0), (9, 0)], successors=["ba", "bz"]),
        segment("ba", "b", "a", [(9, 0), (0, 0)]),
        segment("bz", "b", "z", [(9, 0), (9, 9)]),
    ]
    kept = keep_largest(load_roads(write(tmp_path / "map.geojson", features)))
    assert [(s.id, s.successors) for s in kept.segments] == [("ab", ("ba",)), ("ba", None)]


def test_a_map_with_one_segment(tmp_path: Path) -> None:
    road_map = load_roads(write(tmp_path / "map.geojson", [FAR]))
    assert keep_largest(road_map) is road_map
    roads = Roads(road_map)
    assert (roads.n, roads.neighbours(0).tolist()) == (1, [])


def test_a_scenario_asks_for_the_largest_part(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(write(tmp_path / "map.geojson", [FAR, *street()]))
    with caplog.at_level(logging.INFO):
        assert build_topology(MapConfig(kind="roads", file=path)).n == 7
    assert "1 of 7 segments lie outside the largest part" in caplog.text
    assert "map.largest_component: true leaves them out" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO):
        config = MapConfig(kind="roads", file=path, largest_component=True)
        assert build_topology(config).n == 6
    assert "6 of 7 segments; 1 (0.1 km) were dropped" in caplog.text
    assert "outside the largest part" not in caplog.text
