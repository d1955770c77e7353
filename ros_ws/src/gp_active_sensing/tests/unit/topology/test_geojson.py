"""The GeoJSON loader: what it reads, and what it says about broken files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.export.geojson import text_of
from gp_active_sensing.topology import load_roads
from gp_active_sensing.topology.segments import Segment
from tests.unit.topology.road_maps import HEADER, segment, street, write

LINE = [(0, 0), (100, 0)]


def test_reads_segments_and_their_properties(tmp_path: Path) -> None:
    more = {"name": "High Street", "lanes": 2, "speed_limit_mps": 13.9, "class": "local"}
    features = [
        segment(7, 1, 2, [(0, 0, 5.0), (30, 40, 6.0)], successors=["8"], **more),
        segment("8", "2", "1", [(30, 40), (0, 0)], length_m=61.5, limit_kmh=36),
    ]
    road_map = load_roads(write(tmp_path / "two.geojson", features))
    assert (road_map.name, road_map.frame) == ("small", "map")
    line = ((0.0, 0.0), (30.0, 40.0))
    assert road_map.segments == (
        Segment("7", "1", "2", line, 50.0, 2.0, 13.9, ("8",), "High Street", "local"),
        Segment("8", "2", "1", ((30.0, 40.0), (0.0, 0.0)), 61.5, None, 10.0),
    )


def test_two_way_segments_get_a_twin(tmp_path: Path) -> None:
    features = [segment("ab", "a", "b", LINE, oneway=False, lanes=2, successors=["-ab"])]
    first, second = load_roads(write(tmp_path / "one.geojson", features)).segments
    assert second == Segment("-ab", "b", "a", first.line[::-1], 100.0, 2.0)


def test_junctions_may_be_listed(tmp_path: Path) -> None:
    points = [
        {"type": "Feature", "properties": {"id": j}, "geometry": {"type": "Point"}} for j in "abcd"
    ]
    assert len(load_roads(write(tmp_path / "map.geojson", [*points, *street()])).segments) == 6
    with pytest.raises(MapError, match=r"feature 5 \(id 'bd'\): to: no junction 'd'"):
        load_roads(write(tmp_path / "map.geojson", [*points[:3], *street()]))


def test_files_that_are_no_maps(tmp_path: Path) -> None:
    for text, message in (
        (b"", "is empty"),
        (b'{"type": "FeatureCollection", "features": [{"type": "Fea', "not valid JSON, perhaps"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[1, 2]", "expected a GeoJSON FeatureCollection with a list of features, got 'list'"),
        (b'{"type": "FeatureCollection", "features": []}', "has no features"),
        (b"\xff\xfe\x00\x80", "cannot be read"),
        (None, "cannot be read"),
    ):
        path = tmp_path / "broken.geojson"
        path.write_bytes(text) if text is not None else path.unlink()
        with pytest.raises(MapError, match=message) as caught:
            load_roads(path)
        assert str(path) in str(caught.value)


def without(key: str) -> dict[str, Any]:
    feature = segment("ab", "a", "b", LINE)
    del feature["properties"][key]
    return feature


def test_broken_features(tmp_path: Path) -> None:
    for feature, message in (
        (7, "feature 1: expected an object of type 'Feature', got 7"),
        ({"type": "Feature"}, "feature 1: expected properties, got None"),
        (
            {"type": "Feature", "properties": {"id": "p"}, "geometry": {"type": "Polygon"}},
            r"feature 1 \(id 'p'\): expected a LineString or a Point, got 'Polygon'",
        ),
        (without("id"), "id: expected text, got None"),
        (without("from"), r"feature 1 \(id 'ab'\): from: expected text, got None"),
        (segment("ab", "a", "b", [(0, 0)]), "a LineString needs 2 or more points, got 1"),
        (segment("ab", "a", "b", [(0, 0), (math.nan, 1)]), "point 1: expected two finite numbers"),
        (segment("ab", "a", "b", [(0, 0), ("1", 1)]), "point 1: expected two finite numbers"),
        (segment("ab", "a", "b", [(5, 5), (5, 5)]), "has zero length"),
        (segment("ab", "a", "b", LINE, length_m=0.0), "length_m: expected a number above 0, got 0"),
        (segment("ab", "a", "b", LINE, lanes=True), "lanes: expected a number above 0, got True"),
        (segment("ab", "a", "b", LINE, limit_mph="x"), "limit_mph: expected a number above 0, got"),
        (segment("ab", "a", "b", LINE, oneway="no"), "oneway: expected true or false, got 'no'"),
        (segment("ab", "a", "b", LINE, successors="bc"), "successors: expected a list, got 'bc'"),
        (segment("zy", "z", "y", LINE), r"id 'zy' is taken by feature 0 \(id 'zy'\)"),
        (segment("ab", "a", "z", LINE, successors=["zx"]), "no segment 'zx'.*Did you mean 'zy'"),
        (segment("ab", "a", "b", LINE, successors=["zy"]), "'zy' starts at junction 'z', but"),
    ):
        good = segment("zy", "z", "y", [(0, 10), (100, 10)])
        with pytest.raises(MapError, match=message) as caught:
            load_roads(write(tmp_path / "broken.geojson", [good, feature]))
        assert "broken.geojson: feature 1" in str(caught.value)


def test_all_problems_at_once(tmp_path: Path) -> None:
    features = [segment(f"s{i}", "a", "b", [(0, 0)]) for i in range(13)]
    with pytest.raises(MapError, match="13 problems in the map") as caught:
        load_roads(write(tmp_path / "broken.geojson", features))
    assert "feature 9 (id 's9')" in str(caught.value)
    assert "… and 3 more" in str(caught.value)


def test_headers_that_do_not_fit(tmp_path: Path) -> None:
    for change, message in (
        ({"schema": 2}, "gp_active_sensing.schema: expected 1, got 2"),
        ({"crs": 4326}, "gp_active_sensing.crs: expected the name of a system, got 4326"),
        ({"datum": [200.0, 1.0]}, r"datum: expected \[longitude, latitude\], got \[200.0, 1.0\]"),
        ({"units": "degree"}, "gp_active_sensing.units: expected 'metre', got 'degree'"),
    ):
        with pytest.raises(MapError, match=message):
            load_roads(write(tmp_path / "map.geojson", street(), header={**HEADER, **change}))


def test_other_numbers_are_kept_and_other_things_are_said(tmp_path: Path) -> None:
    others = {"slope": 0.02, "trees": 7, "surface": "tar", "length": 9.0, "mean": None}
    feature = segment("ab", "a", "b", LINE, **others)
    road_map = load_roads(write(tmp_path / "map.geojson", [feature]))
    assert road_map.segments[0].extra == {"slope": 0.02, "trees": 7.0}
    assert road_map.notes == (
        "left out: 'length', since every segment has a feature of that name (1)",
        "left out: 'surface', which is no number (1)",
    )


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    features = [*street(), segment("ba", "b", "a", [(100, 0), (0, 1.2346)], slope=0.5, name="Café")]
    header = {**HEADER, "datum": [13.4, 52.5]}
    first = load_roads(write(tmp_path / "map.geojson", features, header))
    text = text_of(first)
    (tmp_path / "again.geojson").write_text(text, encoding="utf-8")
    again = load_roads(tmp_path / "again.geojson")
    assert again.datum == (13.4, 52.5)
    assert [replace(s, line=(), length=0) for s in again.segments] == [
        replace(s, line=(), length=0) for s in first.segments
    ]
    assert again.segments[-1].line == ((100.0, 0.0), (0.0, 1.235))
    assert text_of(again) == text
