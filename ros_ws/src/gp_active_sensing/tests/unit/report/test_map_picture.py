from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra [plot] is not installed")
from matplotlib.colors import to_hex

from gp_active_sensing.report.frame import VALUES
from gp_active_sensing.report.map_picture import place_picture, road_picture, save_picture
from gp_active_sensing.topology import (
    OccupancyGrid,
    RoadMap,
    load_roads,
    make_grid,
    make_occupancy_map,
)
from tests.unit.topology.road_maps import segment, street, write


def drawn(figure: Any) -> dict[str, Any]:
    axes = figure.axes[0]
    found = [*axes.collections, *axes.lines]
    return {part.get_gid(): part for part in found if part.get_gid()}


def words(figure: Any) -> list[str]:
    axes = figure.axes[0]
    legend = axes.get_legend()
    return [axes.get_title(), *(text.get_text() for text in (legend.texts if legend else ()))]


def load(tmp_path: Path, *features: object) -> RoadMap:
    return load_roads(write(tmp_path / "map.geojson", [*features, *street()]))


def test_roads_have_the_colour_of_their_limit(tmp_path: Path) -> None:
    far = segment("far", "x", "y", [(300, 0), (400, 0)], name="<&>")
    road_map = load(tmp_path, far)
    figure = road_picture(road_map)
    parts = drawn(figure)
    lines = [line.tolist() for line in parts["roads"].get_segments()]
    assert lines == [[list(point) for point in s.line] for s in road_map.segments]
    colours = {to_hex(colour) for colour in parts["roads"].get_colors()}
    assert {VALUES[0], VALUES[-1], "#d1242f"} <= colours
    assert parts["arrows"].N == 3
    assert words(figure) == [
        "small: 7 segments, 0.7 km, 43 % one-way",
        "no limit known",
        "outside the largest part (1)",
    ]
    save_picture(figure, tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_places_moves_and_what_is_cut_off() -> None:
    shore = [(0, 0), (20, 0), (20, 4), (60, 4), (60, 0), (100, 0), (100, 20), (60, 20), (60, 6)]
    pond = make_grid(spacing=10, outline=[*shore, (20, 6), (20, 20), (0, 20)])
    assert pond.components.weak == 2
    figure = place_picture(pond, "pond")
    parts = drawn(figure)
    assert len(parts["#2f7d9f"].get_xdata()) == len(pond.components.largest)
    assert len(parts["#d1242f"].get_xdata()) == pond.n - len(pond.components.largest) == 9
    assert len(parts["moves"].get_segments()) == sum(map(len, pond.moves)) // 2
    assert len(parts["shore"].get_segments()) == 1
    assert words(figure) == ["pond", "place", "move", "outside the largest part (9)"]
    assert "c0r0" in [text.get_text() for text in figure.axes[0].texts]


def test_walls_and_unknown_ground_lie_below() -> None:
    values = np.zeros((40, 60), dtype=np.int8)
    values[[0, -1]] = values[:, [0, -1]] = 100
    values[5:15, 10:20] = -1
    for yaw in (0.0, 0.3):
        grid = OccupancyGrid(values, 0.5, yaw=yaw)
        figure = place_picture(make_occupancy_map(grid, 1.0), "room")
        (image,) = figure.axes[0].images
        kinds = np.asarray(image.get_array())
        assert ((kinds == 2) == (values == 100)).all()
        assert ((kinds == 1) == (values < 0)).all()
        turned = image.get_transform() - figure.axes[0].transData
        cell = np.array([[12.0, 7.0]])
        assert turned.transform(0.5 * cell) == pytest.approx(grid.position_of(cell))
        assert words(figure)[1:4] == ["place", "unknown", "occupied"]


def test_shore_and_obstacles_are_drawn_as_given(tmp_path: Path) -> None:
    island = [(4, 4), (6, 4), (5, 6)]
    lake = make_grid(spacing=1, outline=[(0, 0), (10, 10)], obstacles=[island], inflation=1.0)
    shore, rock = drawn(place_picture(lake, "lake"))["shore"].get_segments()
    assert np.ptp(shore, axis=0).tolist() == [10.0, 10.0]
    assert np.ptp(rock, axis=0).tolist() == [2.0, 2.0]
    save_picture(place_picture(make_grid(1, 1, 1.0), "one"), tmp_path / "one.svg")
