"""A start given as a position: the nearest place of the map."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.sim import build_world
from gp_active_sensing.topology import MapConfig, Roads, build_topology, check_start
from tests.unit.sim.scenarios import GRID, scenario
from tests.unit.topology.road_maps import segment, write


def test_the_nearest_place_is_the_start() -> None:
    for position, place in (
        ([0, 0], "c0r0"),
        ([11.0, 9.0], "c1r1"),
        ([34, 22], "c3r2"),
        ([-4.0, 1.0], "c0r0"),
    ):
        world = build_world(scenario(GRID, probe={"start": position}))
        assert world.start is not None
        assert world.topology.names[world.start] == place


def test_far_off_is_refused_with_where_the_map_lies() -> None:
    for position in ([-11.0, 0.0], [31.0, 400.0]):
        with pytest.raises(ConfigError, match=r"far off map 'grid', .* x 0 … 30, y 0 … 20 m"):
            build_world(scenario(GRID, probe={"start": position}))


def test_degrees_where_the_map_has_them(tmp_path: Path) -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    lines = [
        segment("s1", "a", "b", [(13.400, 52.5), (13.402, 52.5)], oneway=False),
        segment("s2", "b", "c", [(13.402, 52.5), (13.404, 52.501)], oneway=False),
    ]
    file = write(tmp_path / "quarter.geojson", lines, header=None)
    roads = build_topology(MapConfig(kind="roads", file=str(file)))
    assert isinstance(roads, Roads)

    def name(x: float, y: float) -> str:
        at = check_start(roads, (x, y))
        assert at is not None
        return roads.names[at]

    assert name(13.4005, 52.5) == "s1"
    assert name(13.4038, 52.5009) == "s2"
    x, y = roads.geometry(roads.names.index("s2"))[-1]
    assert name(float(x), float(y)) == "s2"  # metres
    with pytest.raises(ConfigError, match=r"about longitude 13\.402, latitude 52\.5005"):
        name(13.9, 52.5)
