"""Maps finer than the places, probabilities beyond limits, and contours."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from shapely.geometry import Point, Polygon, shape

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.cli import cli
from gp_active_sensing.errors import RunError
from gp_active_sensing.export import FieldMap, export_map
from gp_active_sensing.export.field_map import Limit
from gp_active_sensing.export.fine import fine_points
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.topology import Topology, build_topology
from gp_active_sensing.topology.base import FreeTopology
from gp_active_sensing.topology.grids import make_grid
from tests.cases import for_each
from tests.unit.sim.scenarios import GRID, scenario

SHORE = [(0.0, 0.0), (30.0, 0.0), (30.0, 11.0), (11.0, 30.0), (0.0, 30.0)]
ISLAND = [(8.0, 8.0), (13.0, 8.0), (13.0, 13.0), (8.0, 13.0)]


def sloping(topology: Topology, **keys: object) -> FieldMap:
    """Return the map of a field that rises by 0.1 a metre to the east, read at every place."""
    config = BeliefConfig(signal_std=(2.0,), noise_std=(0.01,), length_scales=(40.0,))
    belief = belief_on(config, topology)
    for place, x in enumerate(topology.positions[:, 0].tolist()):
        belief.observe(place, 0.1 * x)
    return FieldMap.of(topology, belief, **keys)  # type: ignore[arg-type]


def test_points_lie_inside_the_outline_and_reach_the_shore() -> None:
    lake = make_grid(spacing=5.0, outline=SHORE, obstacles=[ISLAND])
    points, within = fine_points(lake, 0.5)
    assert within is None
    water = Polygon(SHORE, [ISLAND])
    assert all(water.buffer(1e-6).contains(Point(p)) for p in points.positions[::37])
    assert points.n * 0.25 == pytest.approx(water.area, rel=0.02)
    assert points.weights.sum() == pytest.approx(points.n * 0.25)


def test_along_roads_every_piece_belongs_to_its_segment() -> None:
    town = build_topology(load_scenario("town").map)
    points, within = fine_points(town, 20.0)
    assert within is not None
    assert set(within.tolist()) == set(range(town.n))
    lengths = [float(np.hypot(*np.diff(town.geometry(i), axis=0).T).sum()) for i in range(town.n)]
    assert points.weights.sum() == pytest.approx(sum(lengths))
    assert points.weights.max() <= 20.0
    odd = np.flatnonzero(np.bincount(within) == 1)
    np.testing.assert_allclose(
        points.positions[np.searchsorted(within, odd)], town.positions[odd], atol=1e-6
    )


def test_layers_and_scattered_places_have_fine_maps() -> None:
    grid = make_grid(4, 3, 2.0)
    heights = np.repeat([0.0, -3.0], grid.n)
    layers = FreeTopology(
        "l", "map", [str(i) for i in range(24)], np.tile(grid.positions, (2, 1)), heights=heights
    )
    points, _ = fine_points(layers, 1.0)
    assert points.n == 2 * 48
    assert set(points.heights.tolist() if points.heights is not None else []) == {0.0, -3.0}
    scattered = FreeTopology("s", "map", "abcd", [(0.0, 0.0), (9.0, 1.0), (8.0, 8.0), (1.0, 7.0)])
    assert 50 <= fine_points(scattered, 1.0)[0].n <= 75


@for_each("spacing", [0.0, float("nan"), 1e-3])
def test_spacings_that_make_no_map(spacing: float) -> None:
    with pytest.raises(RunError):
        fine_points(make_grid(10, 10, 5.0), spacing)


def test_a_fine_map_has_the_values_of_the_places_and_what_lies_between() -> None:
    grid = make_grid(6, 5, 3.0)
    coarse = sloping(grid, limits=[Limit(0.7), Limit(0.7, above=False)])
    fine = sloping(grid, limits=[Limit(0.7)], spacing=1.0)
    at = {tuple(p): i for i, p in enumerate(fine.topology.positions.round(6).tolist())}
    which = [at[tuple(p)] for p in grid.positions.round(6).tolist()]
    np.testing.assert_allclose(fine.mean[which], coarse.mean, atol=1e-9)
    np.testing.assert_allclose(fine.std[which], coarse.std, atol=1e-9)
    beyond = coarse.probabilities
    np.testing.assert_allclose(fine.probabilities["above_0.7"][which], beyond["above_0.7"])
    np.testing.assert_allclose(beyond["above_0.7"] + beyond["below_0.7"], 1.0)
    np.testing.assert_allclose(fine.mean, 0.1 * fine.topology.positions[:, 0], atol=0.02)


def test_contours_lie_where_the_field_has_the_level(tmp_path: Path) -> None:
    field = sloping(make_grid(10, 8, 2.0), limits=[Limit(0.9)], spacing=1.0)
    paths = export_map(field, tmp_path / "map.csv", "csv", levels=[0.5, 1.2, 99.0])
    assert [path.name for path in paths] == ["map.csv", "map_contours.geojson"]
    found = json.loads(paths[1].read_text())
    assert found["gp_active_sensing"]["crs"] == "local"
    lines = {
        f["properties"]["contour"]: shape(f["geometry"])
        for f in found["features"]
        if "contour" in f["properties"]
    }
    assert set(lines) == {0.5, 1.2}
    for level, line in lines.items():
        np.testing.assert_allclose(np.array(line.coords)[:, 0], 10.0 * level, atol=0.3)
    areas = [f for f in found["features"] if f["properties"].get("area") == "above_0.9"]
    assert [f["properties"]["probability"] for f in areas] == [0.5, 0.9, 0.99]
    sizes = [shape(f["geometry"]).area for f in areas]
    assert sizes == sorted(sizes, reverse=True)
    assert shape(areas[0]["geometry"]).bounds[0] == pytest.approx(9.0, abs=0.3)


def test_contours_across_the_meridian_of_180_degrees_are_cut() -> None:
    pytest.importorskip("pyproj")
    from gp_active_sensing.export.contours import as_contours

    grid = make_grid(30, 30, 100.0).located((179.99, -17.0))
    found = json.loads(as_contours(sloping(grid, limits=[Limit(100.0)]), [50.0, 150.0, 250.0]))
    area = max(
        (shape(f["geometry"]) for f in found["features"] if "area" in f["properties"]),
        key=lambda each: each.area,
    )
    assert area.geom_type == "MultiPolygon"
    assert all(part.bounds[2] - part.bounds[0] < 1.0 for part in area.geoms)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_scenario(load_scenario("line"), tmp_path / "run")

    def export(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["export", "run", "--to", "csv", *words])
        return result.exit_code, result.output

    assert export("--spacing", "0.5", "--above", "1", "--below", "-1", "--out", "fine.csv")[0] == 0
    rows = list(csv.DictReader((tmp_path / "fine.csv").read_text().splitlines()))
    assert {"above_1", "below_-1"} < set(rows[0])
    for words in (
        ("--spacing", "0"),
        ("--contours", "1,x"),
        ("--contours", "nan"),
        ("--above", "nan"),
    ):
        assert export(*words)[0] == 2, words
    code, output = export("--contours", "1", "--out", "other.csv")  # one row of cells
    assert code == 1
    assert "Traceback" not in output
    assert not (tmp_path / "other.csv").exists()


def test_a_level_without_a_line_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_scenario(scenario(GRID, budget={"readings": 2}), tmp_path / "run")
    words = ["export", "run", "--to", "csv", "--contours", "1000,2000"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0
    assert "no line at 1000, 2000: the estimate lies in" in result.output
