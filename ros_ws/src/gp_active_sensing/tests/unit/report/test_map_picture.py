"""Pictures of road maps."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.report.frame import VALUES
from gp_active_sensing.report.map_picture import Picture, draw_png, svg_of
from gp_active_sensing.report.place_picture import DrawnGround, ground_of, place_picture
from gp_active_sensing.report.road_picture import road_picture
from gp_active_sensing.topology import (
    OccupancyGrid,
    RoadMap,
    load_roads,
    make_grid,
    make_occupancy_map,
)
from gp_active_sensing.topology.inspection import survey
from gp_active_sensing.util.resources import find_resource
from tests.unit.topology.road_maps import segment, street, write

SVG = "{http://www.w3.org/2000/svg}"


def load(tmp_path: Path, *features: object) -> RoadMap:
    return load_roads(write(tmp_path / "map.geojson", [*features, *street()]))


def picture_of(road_map: RoadMap) -> Picture:
    return road_picture(road_map, survey(road_map))


def drawn(road_map: RoadMap) -> tuple[ET.Element, list[ET.Element]]:
    root = ET.fromstring(svg_of(picture_of(road_map)))
    return root, [path for path in root.iter(f"{SVG}path") if path.get("stroke")]


def test_every_segment_is_a_line_in_the_colour_of_its_limit(tmp_path: Path) -> None:
    root, lines = drawn(load(tmp_path))
    assert sum(str(path.get("d")).count("M") for path in lines) == 6
    assert {path.get("stroke") for path in lines} == {VALUES[0], VALUES[21], VALUES[-1]}
    _, _, width, height = map(float, str(root.get("viewBox")).split())
    for path in lines:
        for point in str(path.get("d")).replace("M", "L").split("L")[1:]:
            x, y = map(float, point.split())
            assert 0.0 < x < width
            assert 0.0 < y < height


def test_north_is_up(tmp_path: Path) -> None:
    _, lines = drawn(load_roads(write(tmp_path / "m.geojson", [segment("n", "a", "b", NORTH)])))
    start, end = (float(p.split()[1]) for p in str(lines[0].get("d"))[1:].split("L"))
    assert start - end == pytest.approx(1000.0)


NORTH = [(0, 0), (0, 500)]


def test_arrows_and_legend(tmp_path: Path) -> None:
    far = segment("far", "x", "y", [(300, 0), (400, 0)], name="<&>")
    root, lines = drawn(load(tmp_path, far))
    arrows = [path for path in root.iter(f"{SVG}path") if path.get("transform")]
    assert len(arrows) == 3
    assert "#d1242f" in {path.get("stroke") for path in lines}
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert words == [
        "small: 7 segments, 0.7 km, 43 % one-way",
        "50 m",
        "limit 18 … 72 km/h",
        "no limit known",
        "outside the largest part (1)",
    ]


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra [experiments] is not installed")
    road_map = load(tmp_path)
    draw_png(picture_of(road_map), tmp_path / "map.png")
    data = (tmp_path / "map.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    width = int.from_bytes(data[16:20], "big")
    assert 1040 <= width <= 1060


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.backends.backend_agg", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    road_map = load(tmp_path)
    with pytest.raises(MissingDependencyError, match=r"\.svg needs nothing"):
        draw_png(picture_of(road_map), tmp_path / "map.png")


def marks(picture: Picture) -> tuple[dict[str, str], list[str]]:
    """Return the data of strokes by colour, and the words of the legend."""
    root = ET.fromstring(svg_of(picture))
    strokes = {
        str(path.get("stroke")): str(path.get("d"))
        for path in root.iter(f"{SVG}path")
        if path.get("stroke")
    }
    return strokes, [str(text.text) for text in root.iter(f"{SVG}text")]


def test_places_moves_and_what_is_cut_off() -> None:
    shore = [(0, 0), (20, 0), (20, 4), (60, 4), (60, 0), (100, 0), (100, 20), (60, 20), (60, 6)]
    pond = make_grid(spacing=10, outline=[*shore, (20, 6), (20, 20), (0, 20)])
    assert pond.components.weak == 2
    strokes, words = marks(place_picture(pond, DrawnGround((tuple(shore),)), "pond"))
    assert strokes["#2f7d9f"].count("M") == len(pond.components.largest)
    assert strokes["#d1242f"].count("M") == pond.n - len(pond.components.largest)
    assert strokes["#b9d3dd"].count("M") == sum(map(len, pond.moves)) // 2
    assert "#1f2328" in strokes, "the shore"
    assert words[0] == "pond"
    assert "outside the largest part (9)" in words
    assert "c0r0" in words, "few places have their names"


def test_walls_and_unknown_ground_lie_below() -> None:
    values = np.zeros((40, 60), dtype=np.int8)
    values[[0, -1]] = values[:, [0, -1]] = 100
    values[5:15, 10:20] = -1
    grid = OccupancyGrid(values, 0.5)
    places = make_occupancy_map(grid, 1.0)
    picture = place_picture(places, DrawnGround(cells=grid), "room")
    walls, unknown = picture.ground["#57606a"], picture.ground["#eaeef2"]
    scale = 1000.0 / 30.0
    assert sum(w * h for _, _, w, h in walls) == pytest.approx(196 * 0.25 * scale**2)
    assert sum(w * h for _, _, w, h in unknown) == pytest.approx(100 * 0.25 * scale**2)
    assert min(x for x, *_ in unknown) == pytest.approx(24.0 + 5.0 * scale)
    assert svg_of(picture).index('fill="#57606a"') < svg_of(picture).index('stroke="#2f7d9f"')
    turned = OccupancyGrid(values, 0.5, yaw=0.3)
    drawn_turned = place_picture(
        make_occupancy_map(turned, 1.0), DrawnGround(cells=turned), "turned"
    )
    assert len(drawn_turned.ground["#eaeef2"]) == 100


def test_a_large_grid_is_drawn_in_blocks() -> None:
    values = np.zeros((1200, 1200), dtype=np.int8)
    values[::7, ::5] = 100
    grid = OccupancyGrid(values, 0.05)
    wall = place_picture(make_grid(9, 9, 5.0), DrawnGround(cells=grid), "").ground["#57606a"]
    assert 400 <= len(wall) <= 400 * 400
    assert all(w > 0.0 and h > 0.0 for _, _, w, h in wall)


def test_the_ground_of_a_file() -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    lake = find_resource("maps", "lake.plan")
    places = make_grid(3, 3, 1.0).located((8.000243, 47.000001))
    ground = ground_of(lake, places, 65)
    assert len(ground.outlines) == 3, "the shore, an island, a circle"
    assert all(np.abs(ring).max() < 500.0 for ring in ground.outlines), "metres"
    assert ground_of(find_resource("maps", "terrain.asc"), places, 65) == DrawnGround()


def test_places_as_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra [experiments] is not installed")
    house = find_resource("maps", "house.yaml")
    places = make_grid(9, 7, 1.0)
    draw_png(place_picture(places, ground_of(house, places, 65), "house"), tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_one_place_alone_is_drawn() -> None:
    text = svg_of(place_picture(make_grid(1, 1, 1.0), DrawnGround(), "one"))
    assert not re.search("nan|inf", text)
