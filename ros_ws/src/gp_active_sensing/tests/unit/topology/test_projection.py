"""Coordinates into local metres, and units that are not what they are said to be."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gp_active_sensing.errors import MapError, MissingDependencyError
from gp_active_sensing.topology import load_roads
from gp_active_sensing.topology.projection import LOCAL, LONLAT, LocalPoints, place
from tests.unit.topology.road_maps import HEADER, segment, write

pyproj = pytest.importorskip("pyproj", reason="the extra [maps] is not installed")

STREET = [((13.40, 52.50), (13.41, 52.50)), ((13.41, 52.50), (13.41, 52.51))]
WIDE = [((10 + k / 100, 50.0), (10 + (k + 1) / 100, 50.0)) for k in range(200)]
"""A country's roads: as metres it would be 2 m across, of segments of a centimetre."""
ROOM = [((0.0, 0.0), (8.0, 3.0)), ((8.0, 3.0), (40.0, 30.0))]


class Placed(NamedTuple):
    lines: list[Any]
    made: LocalPoints


def placed(lines: Sequence[Any], crs: str, **options: Any) -> Placed:
    return Placed(*place(lines, crs, where="streets.geojson", **options))


def test_metres_stay_as_they_are() -> None:
    found = placed(ROOM, LOCAL)
    assert (found.lines, found.made.crs, found.made.datum, found.made.notes) == (
        ROOM,
        LOCAL,
        None,
        (),
    )
    assert placed(ROOM, "").made.crs == LOCAL


def test_degrees_become_metres_about_the_middle() -> None:
    found = placed(STREET, LONLAT)
    assert found.made.datum == (13.405, 52.505)
    geodesic = pyproj.Geod(ellps="WGS84")
    for line, ((lon0, lat0), (lon1, lat1)) in zip(found.lines, STREET, strict=True):
        _, _, metres = geodesic.inv(lon0, lat0, lon1, lat1)
        assert math.dist(*line) == pytest.approx(metres, rel=1e-5)
    (x0, y0), (x1, y1) = found.lines[1]
    assert x0 == pytest.approx(x1, abs=0.2)  # it runs north
    assert y1 > y0


def test_a_map_and_a_satellite_receiver_agree() -> None:
    """The node turns fixes into metres by itself; positions must fall onto the map."""
    from gp_active_sensing.messages.conversions import geodetic_to_local

    found = placed(STREET, LONLAT)
    assert found.made.datum is not None
    lon, lat = found.made.datum
    for line, ends in zip(found.lines, STREET, strict=True):
        for (x, y), (point_lon, point_lat) in zip(line, ends, strict=True):
            east, north = geodetic_to_local(point_lat, point_lon, (lat, lon))
            assert (east, north) == pytest.approx((x, y), abs=0.01)


def test_longitude_comes_first_whatever_the_axes() -> None:
    for crs in (
        "EPSG:4326",
        "WGS84",
        "urn:ogc:def:crs:OGC:1.3:CRS84",
        "urn:ogc:def:crs:EPSG::4326",
    ):
        assert placed(STREET, crs).lines == placed(STREET, LONLAT).lines


def test_other_projections_come_to_the_same() -> None:
    change = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:32633", always_xy=True)
    utm = [tuple(change.transform(*point) for point in line) for line in STREET]
    first, second = placed(utm, "EPSG:32633"), placed(STREET, LONLAT)
    assert first.made.crs == "EPSG:32633"
    assert first.made.datum == second.made.datum
    for a, b in zip(first.lines, second.lines, strict=True):
        assert sum(a, ()) == pytest.approx(sum(b, ()), abs=0.002)


def test_undeclared_degrees_are_seen_and_said() -> None:
    found = placed(STREET, "")
    assert found.made.crs == LONLAT
    assert "look like longitude and latitude and were taken as EPSG:4326" in found.made.notes[0]
    small = placed(STREET, "", allow_small=True)
    assert small.made.crs == LOCAL
    assert placed(WIDE, "").made.crs == LONLAT


def test_units_that_do_not_fit() -> None:
    for lines, crs, lengths, message in (
        (STREET, LOCAL, (), "look like longitude and latitude.*EPSG:4326"),
        (STREET, "EPSG:32633", (), "declared as EPSG:32633, whose unit is metres, but look like"),
        ([((0, 0), (5000, 300))], LONLAT, (), 'no degrees; metres are declared as "local"'),
        ([((52.5, 113.4), (52.6, 113.5))], LONLAT, (), "may have changed places"),
        (ROOM, LONLAT, (), "usually .* km long; x 0 … 40, y 0 … 30 look like metres"),
        (STREET, "EPSG:99999", (), "unknown coordinate system 'EPSG:99999'; expected"),
        ([((9e8, 9e8), (9e8, 9.1e8))], "EPSG:32633", (), "outside the area of its coordinate"),
        (WIDE, LOCAL, (), "look like longitude and latitude.*EPSG:4326"),
    ):
        with pytest.raises(MapError, match=message) as caught:
            placed(lines, crs, lengths=lengths)
        assert str(caught.value).startswith("streets.geojson: ")


def test_a_map_across_the_180th_meridian() -> None:
    found = placed(
        [((179.999, -16.0), (-179.999, -16.0)), ((-179.999, -16.0), (-179.998, -16.0))], LONLAT
    )
    assert found.made.datum == (-179.9995, -16.0)
    ((x0, _), (x1, _)), (_, (x2, _)) = found.lines
    assert (x1 - x0) / 2 == pytest.approx(x2 - x1, rel=1e-4)
    assert x2 - x1 == pytest.approx(107.0, abs=0.1)


def test_without_pyproj_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyproj", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.*gp_active_sensing\[maps\]'"):
        placed(STREET, LONLAT)
    assert placed(ROOM, LOCAL).made.crs == LOCAL


def test_geojson_says_its_system_in_three_ways(tmp_path: Path) -> None:
    features = [segment("ab", "a", "b", STREET[0])]
    ours = load_roads(
        write(tmp_path / "a.geojson", features, header={**HEADER, "crs": "EPSG:4326"})
    )
    undeclared = load_roads(write(tmp_path / "b.geojson", features, header=None))
    path = write(tmp_path / "c.geojson", features, header=None)
    old = '{"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}, '
    path.write_text(old + path.read_text("utf-8")[1:], encoding="utf-8")
    declared = load_roads(path)
    given = load_roads(write(tmp_path / "d.geojson", features), crs="EPSG:4326")
    assert ours.segments == undeclared.segments == declared.segments == given.segments
    assert ours.datum == declared.datum == (13.405, 52.5)
    assert not ours.notes
    assert len(undeclared.notes) == 1
    assert ours.segments[0].length == pytest.approx(679.0, abs=0.5)
