"""Figures of a road map."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.topology import load_roads
from gp_active_sensing.topology.inspection import Survey, survey
from tests.unit.topology.road_maps import segment, street, write


def look(tmp_path: Path, *features: object) -> Survey:
    return survey(load_roads(write(tmp_path / "map.geojson", list(features))))


def test_figures_of_a_small_map(tmp_path: Path) -> None:
    figures = look(tmp_path, *street())
    assert (figures.segments, figures.junctions, figures.metres) == (6, 4, 600.0)
    assert (figures.width, figures.height) == (200.0, 50.0)
    assert figures.one_way_share == pytest.approx(2 / 6)
    assert (figures.dead_ends, figures.parts, figures.largest, figures.outside) == (1, 1, 6, 0)
    assert (figures.shortest, figures.median_length, figures.longest) == (50.0, 100.0, 150.0)
    assert (figures.slowest, figures.fastest, figures.without_limit) == (5.0, 20.0, 0)
    assert figures.lanes == {"1": 4, "2": 2}
    assert figures.features == ("x", "y", "direction", "length", "lanes", "speed_limit")
    assert figures.warnings == ()


def test_what_may_surprise_is_said(tmp_path: Path) -> None:
    figures = look(
        tmp_path,
        segment("ab", "a", "b", [(0, 0), (100, 0)], slope=0.1, trees=3, lanes=1),
        segment("cd", "c", "d", [(0, 9), (100, 9)], slope=0.1, speed_limit_mps=9.0),
    )
    assert figures.features == ("x", "y", "direction", "length", "slope")
    text = "\n".join(figures.warnings)
    assert "1 of 2 segments lie outside the largest part" in text
    assert "maps import --largest-component" in text
    assert "1 of 2 segments have no speed limit" in text
    assert "tells none apart: length, slope" in text
    assert "cannot be a feature: lanes, speed_limit, trees" in text
