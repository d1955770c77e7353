"""Networks of real places, where GPAS_DATA names the folder that has them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from gp_active_sensing.export.geojson import text_of
from gp_active_sensing.topology import load_roads
from gp_active_sensing.topology.segments import length_of


@pytest.mark.slow
def test_a_network_and_its_table_are_the_same_map(shared_data: Path, tmp_path: Path) -> None:
    for net, table in (
        ("town.net.xml", "town.edges.csv"),
        ("tampines.net.xml.gz", "tampines.edges.csv"),
        ("monaco.net.xml.gz", "monaco.edges.csv"),
    ):
        first, second = (load_roads(shared_data / "sumo" / name) for name in (net, table))
        assert first.name == second.name
        by_id = {segment.id: segment for segment in second.segments}
        assert set(by_id) == {segment.id for segment in first.segments}
        for segment in first.segments:
            other = by_id[segment.id]
            assert segment.length == pytest.approx(other.length, abs=0.01)
            for name in ("start", "end", "name", "lanes", "speed_limit"):
                assert getattr(segment, name) == getattr(other, name)
            assert set(segment.successors or ()) == set(other.successors or ())
        drawn = sorted(abs(length_of(s.line) / s.length - 1.0) for s in first.segments)
        assert drawn[int(0.98 * len(drawn))] < 0.01
        # The table takes another lane where those of an edge have different numbers of points.
        apart = [math.dist(s.line[0], by_id[s.id].line[0]) for s in first.segments]
        assert sorted(apart)[int(0.98 * len(apart))] < 0.1
        written = tmp_path / "map.geojson"
        written.write_text(text_of(first), encoding="utf-8")
        again = load_roads(written)
        assert [replace(s, line=(), length=0) for s in again.segments] == [
            replace(s, line=(), length=0, speed_limit=round(s.speed_limit or 0, 4))
            for s in first.segments
        ]
