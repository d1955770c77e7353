"""Pictures of road maps."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.report.frame import VALUES
from gp_active_sensing.report.map_picture import draw_png, svg_of
from gp_active_sensing.topology import RoadMap, load_roads
from gp_active_sensing.topology.inspection import survey
from tests.unit.topology.road_maps import segment, street, write

SVG = "{http://www.w3.org/2000/svg}"


def load(tmp_path: Path, *features: object) -> RoadMap:
    return load_roads(write(tmp_path / "map.geojson", [*features, *street()]))


def drawn(road_map: RoadMap) -> tuple[ET.Element, list[ET.Element]]:
    root = ET.fromstring(svg_of(road_map, survey(road_map)))
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
    draw_png(road_map, survey(road_map), tmp_path / "map.png")
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
        draw_png(road_map, survey(road_map), tmp_path / "map.png")
