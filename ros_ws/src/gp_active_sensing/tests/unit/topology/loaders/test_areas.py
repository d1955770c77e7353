"""Areas from KML, KMZ, plans of QGroundControl and GeoJSON, and the grids made of them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import gp_active_sensing as gas
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.messages.conversions import geodetic_to_local
from gp_active_sensing.mission.stream_config import PoseConfig
from gp_active_sensing.topology.base import GraphTopology
from gp_active_sensing.topology.loaders.areas import read_areas

pytest.importorskip("pyproj")

LON, LAT = 8.0, 47.0
EAST, NORTH = 1.0 / 76_000.0, 1.0 / 111_200.0
"""About a metre, in degrees."""


def ring(west: float, south: float, east: float, north: float) -> list[list[float]]:
    """Return the closed ring of a rectangle, metres from the middle, in longitude and latitude."""
    corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    return [[LON + x * EAST, LAT + y * NORTH] for x, y in corners]


SHORE = ring(-100, -60, 100, 60)
ISLAND = ring(-20, -20, 20, 20)
POND = ring(-8, -8, 8, 8)
CROSSED = [SHORE[k] for k in (0, 2, 1, 3, 0)]


def kml(*marks: str) -> str:
    body = "".join(f"<Placemark>{mark}</Placemark>" for mark in marks)
    return (
        '<?xml version="1.0" encoding="UTF-8"?><kml xmlns="http://www.opengis.net/kml/2.2">'
        f"<Document><Folder>{body}</Folder></Document></kml>"
    )


def coordinates(corners: list[list[float]]) -> str:
    text = "\n  ".join(f"{x},{y},0" for x, y in corners)
    return f"<LinearRing><coordinates>\n  {text}\n</coordinates></LinearRing>"


def mark(
    corners: list[list[float]], name: str = "", *holes: list[list[float]], more: str = ""
) -> str:
    inner = "".join(f"<innerBoundaryIs>{coordinates(h)}</innerBoundaryIs>" for h in holes)
    return (
        f"<name>{name}</name>{more}<Polygon><outerBoundaryIs>{coordinates(corners)}"
        f"</outerBoundaryIs>{inner}</Polygon>"
    )


def path_of(corners: list[list[float]], name: str = "") -> str:
    text = " ".join(f"{x!r},{y!r},0" for x, y in corners)
    return f"<name>{name}</name><LineString><coordinates>{text}</coordinates></LineString>"


def write(folder: Path, text: str | dict[str, Any], name: str = "lake.kml") -> Path:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


def feature(corners: list[list[float]], **properties: Any) -> dict[str, Any]:
    geometry = {"type": "Polygon", "coordinates": [corners]}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def collection(*features: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features), **more}


def plan(**more: Any) -> dict[str, Any]:
    """A plan with a fence and a hole in it, both polygons, and a circle shut out."""
    whole: dict[str, Any] = {
        "fileType": "Plan",
        "geoFence": {
            "polygons": [
                {"polygon": [[y, x] for x, y in SHORE[:-1]], "inclusion": True},
                {"polygon": [[y, x] for x, y in ISLAND[:-1]], "inclusion": False},
            ],
            "circles": [
                {"circle": {"center": [LAT, LON + 60 * EAST], "radius": 15.0}, "inclusion": False}
            ],
        },
        "mission": {"items": [], "plannedHomePosition": [LAT, LON - 80 * EAST, 400.0]},
        "rallyPoints": {"points": [[LAT, LON, 0]]},
    }
    return {**whole, **more}


def grid(file: Path | str, **keys: Any) -> GraphTopology:
    places = gas.build_topology(from_mapping(gas.MapConfig, {"file": str(file), **keys}))
    assert isinstance(places, GraphTopology)
    return places


def test_a_lake_with_an_island(tmp_path: Path) -> None:
    path = write(tmp_path, kml(mark(SHORE, "Lake", ISLAND)))
    areas = read_areas(path)
    assert areas.outline.area == pytest.approx(200 * 120 - 40 * 40, rel=0.01)
    assert areas.datum == pytest.approx((LON, LAT), abs=1e-5)
    places = grid(path, spacing=10)
    assert places.datum == areas.datum
    assert (places.name, places.frame) == ("lake", "map")
    assert not (np.abs(places.positions) < 19.0).all(axis=1).any()
    assert 220 < places.n < 280
    low, high = places.positions.min(axis=0), places.positions.max(axis=0)
    np.testing.assert_allclose(low, -high, atol=0.2)  # as much is left over on either side


def test_what_lies_within_is_a_hole_and_what_lies_within_that_is_not(tmp_path: Path) -> None:
    path = write(tmp_path, kml(mark(POND, "pond"), mark(ISLAND, "Isla"), mark(SHORE, "lake")))
    areas = read_areas(path)
    assert areas.outline.area == pytest.approx(200 * 120 - 40 * 40 + 16 * 16, rel=0.01)
    assert any("holes" in note and "Isla" in note for note in areas.notes)


def test_regions_of_interest_have_a_weight(tmp_path: Path) -> None:
    more = '<ExtendedData><Data name="weight"><value>5</value></Data></ExtendedData>'
    bay = ring(45, -60, 100, 60)
    path = write(tmp_path, kml(mark(SHORE, "Lake"), mark(bay, "bay", more=more)))
    places = grid(path, spacing=10)
    x = places.positions[:, 0]
    np.testing.assert_array_equal(places.weights, np.where(x > 45.0, 5.0, 1.0))


def test_ends_of_a_path_meet_within_a_hand(tmp_path: Path) -> None:
    """What was rounded when it was written still meets; a gap of a few metres does not."""
    west, south = SHORE[0]
    near = [*SHORE[:-1], [west + 0.05 * EAST, south + 0.05 * NORTH]]
    areas = read_areas(write(tmp_path, kml(path_of(near, "lake"), path_of(ISLAND, "Isla"))))
    assert areas.outline.area == pytest.approx(24_000 - 40 * 40, rel=0.01)
    assert len(areas.outline.exterior.coords) == 5
    apart = [*SHORE[:-1], [west, south + 3 * NORTH]]
    with pytest.raises(MapError, match=r"has no polygon, but 1 lines;.*not as a path or line"):
        read_areas(write(tmp_path, kml(path_of(apart, "lake")), "open.kml"))


def test_a_closed_path_beside_polygons_counts_where_its_name_says_so(tmp_path: Path) -> None:
    """A track that ends where it began is no hole in the lake that was drawn beside it."""
    open_way = path_of(SHORE[:3], "way")
    marks = [mark(SHORE, "Lake"), path_of(ISLAND, "Tuesday"), path_of(POND, "rock"), open_way]
    areas = read_areas(write(tmp_path, kml(*marks)))
    assert areas.outline.area == pytest.approx(24_000, rel=0.01)
    assert [round(rock.area) for rock in areas.obstacles] == [256]
    assert any("'rock'" in note and "was taken as an area" in note for note in areas.notes)
    assert "left out: 1 lines, 1 closed paths beside polygons" in areas.notes


def test_a_plan_of_qgroundcontrol(tmp_path: Path) -> None:
    areas = read_areas(write(tmp_path, plan(), "lake.plan"))
    assert areas.outline.area == pytest.approx(24_000, rel=0.01)
    assert sorted(round(obstacle.area, -1) for obstacle in areas.obstacles) == [710.0, 1600.0]
    assert areas.home == pytest.approx((-80.0, 0.0), abs=1.0)
    assert any("probe.start: [-80" in note for note in areas.notes)


def latlon(corners: list[list[float]]) -> list[list[float]]:
    return [[y, x] for x, y in corners]


def at(*points: tuple[float, float]) -> list[list[float]]:
    return [[LAT + y * NORTH, LON + x * EAST] for x, y in points]


def mission(*items: dict[str, Any]) -> dict[str, Any]:
    every = [{"type": "ComplexItem", **item} for item in items]
    return plan(geoFence={}, mission={"items": every}, rallyPoints={})


def corridor(*points: tuple[float, float], width: object = 20) -> dict[str, Any]:
    return {"complexItemType": "CorridorScan", "CorridorWidth": width, "polyline": at(*points)}


def test_a_corridor_of_a_plan_is_as_wide_as_it_says(tmp_path: Path) -> None:
    """Half the width on either side, with flat ends: nothing lies beyond its first point."""
    straight = write(tmp_path, mission(corridor((-100, 0), (100, 0))), "river.plan")
    areas = read_areas(straight, datum=(LON, LAT))
    assert areas.outline.area == pytest.approx(200 * 20, rel=0.01)
    assert areas.outline.bounds == pytest.approx((-100, -10, 100, 10), abs=0.5)
    bent = write(tmp_path, mission(corridor((0, 0), (100, 0), (100, 100))), "bend.plan")
    outline = read_areas(bent, datum=(LON, LAT)).outline
    assert outline.area == pytest.approx(2 * 100 * 20 - 100 + np.pi * 100 / 4, rel=0.01)
    assert outline.covers(shapely.Point(105, -5))  # round the bend
    assert not outline.covers(shapely.Point(109.5, -9.5))
    round_way = corridor((0, 0), (100, 0), (100, 100), (0, 100), (0, 0))
    ringed = read_areas(write(tmp_path, mission(round_way), "ring.plan"), datum=(LON, LAT)).outline
    assert ringed.area == pytest.approx(120 * 120 - 80 * 80, rel=0.03)
    assert not ringed.covers(shapely.Point(50, 50))


def test_surveys_structures_and_corridors_are_one_outline(tmp_path: Path) -> None:
    survey = {"complexItemType": "survey", "polygon": latlon(ring(-100, -60, 0, 60)[:-1])}
    tower = {"complexItemType": "StructureScan", "polygon": latlon(ring(40, 40, 60, 60)[:-1])}
    way = {"type": "SimpleItem", "command": 16}
    items = mission(survey, way, tower, corridor((0, 0), (100, 0)))
    rally = {"rallyPoints": {"points": [[LAT, LON, 0]]}}
    areas = read_areas(write(tmp_path, items | rally, "all.plan"))
    assert areas.outline.geom_type == "MultiPolygon"
    assert areas.outline.area == pytest.approx(100 * 120 + 20 * 20 + 100 * 20, rel=0.01)
    assert "structure scan 3: the ground of the structure was taken as an area" in areas.notes
    assert "left out: 1 waypoints and other items, 1 rally points" in areas.notes


def test_geojson_in_metres_and_in_degrees(tmp_path: Path) -> None:
    square = [[0, 0], [40, 0], [40, 30], [0, 30], [0, 0]]
    local = grid(write(tmp_path, feature(square), "pond.geojson"), kind="grid", spacing=5)
    assert local.datum is None
    assert local.n == 9 * 7
    assert grid(tmp_path / "pond.geojson", spacing=5).n == local.n  # of areas, as it has no lines
    degrees = grid(write(tmp_path, collection(feature(SHORE)), "lake.geojson"), spacing=10)
    assert degrees.datum == pytest.approx((LON, LAT), abs=1e-5)
    bare = {"type": "MultiPolygon", "coordinates": [[SHORE], [ring(200, 0, 250, 50)]]}
    assert read_areas(write(tmp_path, bare, "bare.json")).outline.geom_type == "MultiPolygon"


def test_outline_fence_obstacles_and_areas_from_files(tmp_path: Path) -> None:
    """Each key takes a file; all of them are laid about the middle of the first."""
    write(tmp_path, kml(mark(SHORE, "Lake")))
    write(tmp_path, kml(mark(ISLAND, "anything")), "rocks.kml")
    write(tmp_path, kml(mark(ring(-50, -60, 200, 60), "x")), "fence.kml")
    write(tmp_path, kml(mark(ring(55, -60, 100, 60), "x")), "bay.kml")
    (tmp_path / "boat.yaml").write_text(
        """
map:
  file: lake.kml
  outline: fence.kml
  obstacles: [rocks.kml, [[40, 40], [50, 50]]]
  spacing: [10, 20]
  weights: {areas: [{outline: bay.kml, weight: 3}]}
field: {kind: gp, length_scale: 40, signal_std: 2}
budget: {readings: 12}
limit: {expansions: 20}
""",
        encoding="utf-8",
    )
    scenario = gas.load_scenario(str(tmp_path / "boat.yaml"))
    places = gas.build_topology(scenario.map)
    x, y = places.positions.T
    assert x.min() > -51.0
    assert not ((np.abs(x) < 20.0) & (np.abs(y) < 20.0)).any()
    np.testing.assert_array_equal(places.weights, np.where(x > 55.0, 3.0, 1.0))
    summary = gas.run_scenario(scenario, tmp_path / "run").to_mapping()
    assert summary["stages"] == 12


def test_the_origin_may_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, kml(mark(SHORE, "Lake")))
    places = grid(path, spacing=10, datum=[LAT, LON - 1000 * EAST])
    assert places.datum == (LON - 1000 * EAST, LAT)
    assert places.positions[:, 0].mean() == pytest.approx(1000.0, rel=0.01)
    with pytest.raises(ConfigError, match=r"datum: expected \[latitude, longitude\]"):
        gas.MapConfig(file="lake.kml", datum=(100.0, 8.0))


def test_degrees_and_metres_without_an_origin_are_not_mixed(tmp_path: Path) -> None:
    far = str(write(tmp_path, kml(mark(ring(900, 0, 950, 50), "x")), "far.kml"))
    data = {"kind": "grid", "outline": [[-50, -50], [50, 50]], "obstacles": [far], "spacing": 10}
    with pytest.raises(ConfigError, match=r"is in degrees, and outline in metres.*map\.datum"):
        gas.build_topology(from_mapping(gas.MapConfig, data))
    places = gas.build_topology(from_mapping(gas.MapConfig, {**data, "datum": [LAT, LON]}))
    assert places.n == 11 * 11
    house = {"file": "house", "outline": far}
    with pytest.raises(ConfigError, match=r"and file house\.yaml in metres"):
        gas.build_topology(from_mapping(gas.MapConfig, house))


def test_an_outline_cuts_an_occupancy_map() -> None:
    whole = gas.build_topology(gas.MapConfig(file="house", spacing=0.6))
    hall = gas.build_topology(
        gas.MapConfig(file="house", spacing=0.6, outline=((2.0, -2.0), (9.0, 1.0)))
    )
    assert 10 < hall.n < whole.n
    assert set(hall.names) < set(whole.names)


def test_a_receiver_needs_no_datum_of_its_own() -> None:
    """Positions of a NavSatFix lie where the map has them: its origin is that of the poses."""
    places = gas.build_topology(gas.MapConfig(file="lake.kml", spacing=20.0))
    pose = PoseConfig(type="sensor_msgs/msg/NavSatFix")
    origin = pose.origin(places.datum)
    assert origin is not None
    assert origin == (places.datum or ())[::-1]
    island = geodetic_to_local(47.0 + 20 * NORTH, 8.0 + 60 * EAST, (origin[0], origin[1]))
    assert places.snap(*island, 15.0) is None
    there = geodetic_to_local(47.0, 8.0 - 100 * EAST, (origin[0], origin[1]))
    assert places.snap(*there, 15.0) is not None
    assert PoseConfig(datum=(1.0, 103.0)).origin(None) == (1.0, 103.0)
    assert PoseConfig(datum=(47.0, 8.001)).origin((8.0, 47.0)) == (47.0, 8.001)


def test_roles_come_from_properties_folders_and_names_that_say_nothing_else(tmp_path: Path) -> None:
    """A word within a proper name says nothing: such a lake is a lake."""
    inner = ring(20, 20, 60, 40)
    for name in (
        "Exclusion zone A", "exclusion_fence 2", "KeepOut", "NO-FLY ZONE", "no go: reeds",
        "Island 3", "Exclusion zone by the weir", "Obstacles", "rock (low)", "Keep out of here",
    ):  # fmt: skip
        for key in ("name", "Name", "NAME"):
            path = write(
                tmp_path, collection(feature(SHORE), feature(inner, **{key: name})), "a.json"
            )
            assert len(read_areas(path).obstacles) == 1, name
    apart = ring(200, 0, 300, 100)
    for name in (
        "Rock Lake", "Island Pond", "Fence Lake", "Avoid Bay", "Holes Creek", "Obstacle Bay",
        "Boundary Waters", "Lake of the Isles",
    ):  # fmt: skip
        areas = read_areas(write(tmp_path, kml(mark(SHORE, "Tarn"), mark(apart, name))))
        assert (areas.obstacles, areas.outline.geom_type) == ((), "MultiPolygon"), name
    for said in (
        {"ROLE": "Obstacle"},
        {"Type": "no_fly_zone"},
        {"kind": "ISLAND"},
        {"inclusion": False},
    ):
        path = write(tmp_path, collection(feature(SHORE), feature(inner, **said)), "b.geojson")
        assert len(read_areas(path).obstacles) == 1, said
    folder = (
        f"<Folder><name>Obstacles</name><Placemark>{mark(inner, 'Rock Lake')}</Placemark></Folder>"
    )
    text = kml(mark(SHORE, "Lake")).replace("</Document>", f"{folder}</Document>")
    areas = read_areas(write(tmp_path, text))
    assert len(areas.obstacles) == 1
    assert {note.partition(":")[0] for note in areas.notes} >= {
        "taken as outline",
        "taken as obstacle",
    }
    noted = read_areas(write(tmp_path, collection(feature(SHORE, role="wall")), "c.geojson")).notes
    assert any("'wall'" in note for note in noted)


def test_places_lie_within_all_inclusion_fences(tmp_path: Path) -> None:
    west, east = ring(-100, -60, 40, 60), ring(-40, -60, 100, 60)
    polygons = [{"polygon": latlon(r[:-1]), "inclusion": True} for r in (west, east)]
    circle = {"circle": {"center": [LAT, LON], "radius": 30.0}, "inclusion": True}
    survey = {"complexItemType": "survey", "polygon": latlon(SHORE[:-1])}
    for fence, area in (
        ({"polygons": polygons}, 80 * 120.0),
        ({"polygons": polygons[:1], "circles": [circle]}, math.pi * 900.0),
        ({"version": 1, "polygon": latlon(west[:-1])}, 140 * 120.0),
    ):
        path = write(tmp_path, {**mission(survey), "geoFence": fence}, "a.plan")
        assert read_areas(path).outline.area == pytest.approx(area, rel=0.01)
    marks = kml(mark(SHORE), mark(west, "Geofence 1"), mark(east, "Inclusion fence B"))
    assert read_areas(write(tmp_path, marks)).outline.area == pytest.approx(80 * 120, rel=0.01)
    apart = [{"polygon": latlon(ring(x, 0, x + 9, 9)[:-1]), "inclusion": True} for x in (0, 50)]
    with pytest.raises(MapError, match="nothing in common"):
        read_areas(write(tmp_path, {**mission(), "geoFence": {"polygons": apart}}, "a.plan"))


def test_a_layout_of_a_plan_that_is_not_known_is_refused(tmp_path: Path) -> None:
    polygon = latlon(SHORE[:-1])
    survey = {"complexItemType": "survey", "polygon": polygon}
    for fence, item in (
        ({"polygon": polygon, "version": 3}, survey),
        ({"polygons": [polygon]}, survey),
        ({"polygons": [{"polygon": polygon}]}, survey),
        ({"circle": {"center": [LAT, LON], "radius": 9}, "version": 1}, survey),
        ([polygon], survey),
        ({}, {"complexItemType": "SpiralScan", "polygon": polygon}),
    ):
        path = write(tmp_path, {**mission(survey, item), "geoFence": fence}, "a.plan")
        with pytest.raises(MapError):
            read_areas(path)


def test_a_home_that_is_not_set_or_far_away_does_not_move_the_map(tmp_path: Path) -> None:
    survey = mission({"complexItemType": "survey", "polygon": latlon(SHORE[:-1])})
    for home, known in (
        ([0, 0, 0], False), ([None, None, None], False), ([math.nan, 1.0], False), ([], False),
        (None, False), ([LAT + 2.0, LON], True),
    ):  # fmt: skip
        survey["mission"]["plannedHomePosition"] = home
        areas = read_areas(write(tmp_path, survey, "a.plan"))
        assert areas.datum == pytest.approx((LON, LAT), abs=1e-4)
        assert (areas.home is not None) == known
        assert not any("probe.start:" in note for note in areas.notes)


def test_a_polygon_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    turned = [*SHORE[2:], *SHORE[1:3]]
    for other in (SHORE, SHORE[::-1], turned, [[x + 2e-7, y] for x, y in SHORE]):
        areas = read_areas(write(tmp_path, kml(mark(SHORE, "a"), mark(other, "b"))))
        assert areas.outline.area == pytest.approx(24_000, rel=0.01)
        assert any("counts once" in note for note in areas.notes)


def test_degrees_are_degrees_however_large_the_area(tmp_path: Path) -> None:
    for west, south, size in (
        (-112.0, 40.5, 5.5),
        (8.0, 54.0, 1.6),
        (351.0, 40.0, 2.0),
        (-0.9, -0.9, 1.8),
        (179.2, -17, 1.6),
    ):
        corners = [(west, south), (west + size, south), (west + size, south + 1), (west, south + 1)]
        folded = [[x if x <= 360 else x - 360, y] for x, y in [*corners, corners[0]]]
        if west == 179.2:
            folded = [[x if x <= 180 else x - 360, y] for x, y in folded]
        areas = read_areas(write(tmp_path, collection(feature(folded)), "sea.geojson"))
        west_m, _, east_m, north_m = areas.outline.bounds
        width = size * 111_320 * math.cos(math.radians(south + 0.5))
        assert areas.datum is not None
        assert east_m - west_m == pytest.approx(width, rel=0.03)
        assert north_m == pytest.approx(55_600, rel=0.08)  # parallels are bent
    tank = [[0, 0], [3, 0], [3, 2], [0, 2], [0, 0]]
    path = write(tmp_path, collection(feature(tank)), "tank.geojson")
    assert read_areas(path, crs="local").outline.area == 6.0
    wide = [[0, 0], [600e3, 0], [600e3, 9e3], [0, 0]]
    with pytest.raises(MapError, match="600 km across"):
        read_areas(write(tmp_path, collection(feature(wide)), "wide.geojson"))


VRT = (
    '<OGRVRTDataSource><OGRVRTLayer name="x"><SrcDataSource>{file}</SrcDataSource></OGRVRTLayer>'
    "</OGRVRTDataSource>"
)


def test_a_file_that_speaks_of_another_one_is_not_opened(tmp_path: Path) -> None:
    secret = write(tmp_path, kml(mark(SHORE, "secret")), "secret.kml")
    virtual = VRT.format(file=secret)
    hidden = kml(mark(SHORE, "x")).replace("<Document>", f"<Document><!-- {virtual} -->")
    schema = kml(mark(SHORE)).replace("<kml ", '<kml xmlns:g="http://www.opengis.net/gml" ')
    for name in ("a.kml", "a.shp", "a.gpkg", "a.geojson"):
        for text in (virtual, hidden, schema, "GPX", '{"type": "Topology"}'):
            with pytest.raises(MapError):
                read_areas(write(tmp_path, text, name))


def test_refusals(tmp_path: Path) -> None:
    for name, text, message in (
        ("a.kml", "no xml", "is not valid XML"),
        ("a.kmz", "PK no archive", "is no KMZ archive, or a damaged one"),
        ("a.kml", "<gpx></gpx>", "expected a file that begins with <kml>, got <gpx>"),
        ("a.kml", '<!DOCTYPE x [<!ENTITY a "b">]><kml/>', "declares a document type or entities"),
        ("a.kml", kml(mark(CROSSED, "knot")), r"\('knot'\): its edges cross .* at"),
        ("a.kml", kml(mark(SHORE[:2], "thin")), "too few points"),
        ("a.kml", kml(mark([[y, 100.0 + x] for x, y in SHORE])), "latitude and longitude may"),
        ("a.kml", kml(mark(SHORE)).replace("8.00", "x.00"), "expected longitude,latitude"),
        (
            "a.kml",
            kml(mark(SHORE)).replace("outerBoundaryIs", "innerBoundaryIs"),
            "outerBoundaryIs",
        ),
        ("a.kml", kml(mark(ISLAND, "island")), "has obstacles or regions, but no outline"),
        ("a.plan", {"fileType": "Fence"}, "expected a plan of QGroundControl .*'Fence'"),
        ("a.plan", mission(corridor((0, 0), (9, 0), width=0)), "corridor scan 1: CorridorWidth:"),
        ("a.plan", mission(corridor((0, 0), (0, 0))), "corridor scan 1: expected 2 points or"),
        (
            "a.plan",
            mission({"complexItemType": "CorridorScan", "CorridorWidth": 5}),
            "corridor scan 1: expected a list of 2 … .* points, got None",
        ),
        ("a.geojson", collection(feature(CROSSED)), r"feature 0: its edges cross"),
        ("a.geojson", collection(feature([[0, "x"]])), "the coordinates of a corner"),
    ):
        path = write(tmp_path, text, name)
        with pytest.raises(MapError, match=message):
            gas.build_topology(gas.MapConfig(kind="grid", file=str(path)))


def test_refusals_of_the_grid(tmp_path: Path) -> None:
    path = write(tmp_path, kml(mark(SHORE, "Lake", ISLAND)))
    with pytest.raises(ConfigError, match=r"holds none of the 1 × 1 cell centres.*smaller spacing"):
        grid(path, spacing=500)
    with pytest.raises(
        MapError, match=r"lies .* km from the origin of the map.*longitude come first"
    ):
        grid(path, datum=[LON, LAT])
    far = str(write(tmp_path, kml(mark(ring(900, 0, 950, 50), "x")), "far.kml"))
    with pytest.raises(ConfigError, match="outline: has nothing in common with the area"):
        grid(path, outline=far)


def test_places_keep_away_from_shores_fences_and_obstacles(tmp_path: Path) -> None:
    """Parts that fall away, and parts that are cut off, are named."""
    ponds = "[[[0,0],[40,0],[40,30],[22,30],[22,32],[50,32],[50,60],[0,60],[0,32],[20,32],"
    ponds += "[20,30],[0,30],[0,0]]]"
    puddle = "[[[80,0],[83,0],[83,3],[80,0]]]"
    file = tmp_path / "ponds.geojson"
    file.write_text(f'{{"type":"MultiPolygon","coordinates":[{ponds},{puddle}]}}')
    rock = ((10.0, 40.0), (16.0, 46.0))
    keys: dict[str, Any] = {"file": str(file), "crs": "local", "spacing": 2.0, "neighbours": 8}
    fence = ((0.0, 0.0), (90.0, 55.0))
    near = gas.build_topology(gas.MapConfig(**keys, obstacles=(rock,), outline=fence))
    far = gas.build_topology(gas.MapConfig(**keys, obstacles=(rock,), outline=fence, inflation=3.0))
    ground = shapely.union_all(shapely.geometry.shape(json.loads(file.read_text())))
    ground = ground.difference(shapely.box(10, 40, 16, 46)).intersection(shapely.box(0, 0, 90, 55))
    assert isinstance(far, GraphTopology)
    lines = [far.positions[[i, m.to]] for i, out in enumerate(far.moves) for m in out]
    apart = shapely.distance(shapely.linestrings(lines), ground.boundary)
    assert 3.0 <= apart.min() <= 3.5
    assert far.n < near.n
    text = "\n".join(far.notes)
    assert "inflation 3 m takes " in text
    assert re.search(r"4.5 m² around \(8\d.*, [0-2].*\) are wholly within that inflation", text)
    assert "that inflation cuts the ground into 2 parts: " in text
    with pytest.raises(ConfigError, match="inflation: 30 m leaves nothing of the outline"):
        gas.build_topology(gas.MapConfig(**keys, inflation=30.0))
