"""The map of a column of water: a raster of each of its layers, or of one that is asked for."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.cli import cli
from gp_active_sensing.errors import RunError
from gp_active_sensing.export import FieldMap, export_map, format_of
from gp_active_sensing.export.lattice import layer_at, layers_of
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.topology import Topology, build_topology
from gp_active_sensing.topology.base import FreeTopology
from gp_active_sensing.topology.loaders.map_server import load as read_map_server
from gp_active_sensing.topology.loaders.rasters import of_ascii

HEIGHTS = [0.0, -3.0, -6.0, -9.0, -12.0, -15.0]
CELLS = 36


@pytest.fixture(scope="module")
def column() -> FieldMap:
    """The grid of the scenario thermocline, where four places were read."""
    topology = build_topology(load_scenario("thermocline").map)
    config = BeliefConfig(length_scales=((150.0, 150.0, 6.0),), signal_std=(5.0,))
    belief = belief_on(config, topology)
    for name, value in (("c0r0z0", 22.0), ("c2r3z1", 21.0), ("c5r5z3", 10.0), ("c1r4z5", 8.0)):
        belief.observe(topology.names.index(name), value, 0.01)
    return FieldMap.of(topology, belief, unit="degC", quantity="water temperature", title="lake")


def of_layer(field: FieldMap, k: int) -> slice:
    """The places of a layer: they are numbered layer by layer."""
    assert field.topology.n == CELLS * len(HEIGHTS)
    return slice(CELLS * k, CELLS * (k + 1))


def test_an_ascii_grid_of_each_layer_has_the_values_of_its_places(
    column: FieldMap, tmp_path: Path
) -> None:
    files = {path.name: path for path in export_map(column, tmp_path / "lake.asc", "asc")}
    assert sorted(files) == sorted(
        f"lake_z{z:g}m_{part}.asc" for z in HEIGHTS for part in ("mean", "std")
    )
    for k, z in enumerate(HEIGHTS):
        for part, values in (("mean", column.mean), ("std", column.std)):
            grid, _ = of_ascii(files[f"lake_z{z:g}m_{part}.asc"])
            assert grid.transform == (40.0, 0.0, -20.0, 0.0, -40.0, 220.0)
            assert grid.values.shape == (6, 6)
            there = of_layer(column, k)
            where = np.rint(column.topology.positions[there] / 40.0).astype(int)
            found = grid.values[::-1][where[:, 1], where[:, 0]]
            np.testing.assert_allclose(found, values[there], rtol=1e-8)


def test_heights_come_along(column: FieldMap, tmp_path: Path) -> None:
    [path] = export_map(column, tmp_path / "lake.geojson", "geojson")
    found = json.loads(path.read_text(encoding="utf-8"))["features"]
    heights = column.topology.heights
    assert heights is not None
    assert [feature["properties"]["z"] for feature in found] == heights.tolist()


def test_a_geotiff_has_the_bands_of_each_layer(column: FieldMap, tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio", reason="the extra [maps] is not installed")
    [path] = export_map(column, tmp_path / "lake.tif", "geotiff")
    with rasterio.open(path) as raster:
        words = [f"z{z:g}m_{part}" for z in HEIGHTS for part in ("mean", "std", "readings")]
        assert list(raster.descriptions) == words
        assert [raster.tags(number)["z"] for number in (1, 4, 18)] == ["0", "-3", "-15"]
        assert raster.units[:3] == ("degC", "degC", None)
        for k in range(len(HEIGHTS)):
            there = of_layer(column, k)
            where = column.topology.positions[there].tolist()
            found = np.array(list(raster.sample(where, indexes=[3 * k + 1, 3 * k + 2, 3 * k + 3])))
            np.testing.assert_allclose(found[:, 0], column.mean[there], rtol=1e-6)
            np.testing.assert_allclose(found[:, 1], column.std[there], rtol=1e-6)
            assert found[:, 2].tolist() == column.readings[there].tolist()


def test_a_level_stands_for_the_same_value_in_every_layer(column: FieldMap, tmp_path: Path) -> None:
    files = export_map(column, tmp_path / "lake", "pgm")
    assert len(files) == 4 * len(HEIGHTS)
    scales = set()
    for z in HEIGHTS:
        path = tmp_path / f"lake_z{z:g}m_mean.yaml"
        grid, _ = read_map_server(path)
        assert (grid.resolution, grid.origin, grid.values.shape) == (40.0, (-20.0, -20.0), (6, 6))
        first = path.read_text(encoding="ascii").splitlines()[0]
        assert f"estimate at z {z:g} m [degC]" in first
        scales.add(first.partition("value = ")[2])
    assert len(scales) == 1


def test_one_layer_by_its_height_or_near_it(column: FieldMap) -> None:
    for asked, height in ((-6.0, -6.0), (-5.3, -6.0), (0.7, 0.0)):
        layer = layer_at(column.topology, asked)
        assert layer.height == height
        one = column.at_height(asked)
        there = of_layer(column, HEIGHTS.index(height))
        assert one.topology.names == column.topology.names[there]
        assert one.mean.tolist() == column.mean[there].tolist()
        assert one.title == f"lake, z {height:g} m"


def test_a_height_between_layers_is_refused_with_those_there_are(column: FieldMap) -> None:
    for asked in (3.0, -4.5, -16.0, 6.0, math.nan):
        said = r"no layer at .* m: its layers are at 0, -3, -6, -9, -12, -15 m \(z counts upwards"
        with pytest.raises(RunError, match=said):
            column.at_height(asked)


def scattered(points: list[tuple[float, float, float]]) -> Topology:
    names = [str(i) for i in range(len(points))]
    flat, heights = [p[:2] for p in points], [p[2] for p in points]
    return FreeTopology("casts", "map", names, flat, heights=heights)


def test_casts_are_no_layers() -> None:
    for points, why in (
        ([(x, y, z) for x, y in ((0, 0), (7.3, 2), (1.1, 9)) for z in (0, -5)], "rows and columns"),
        ([(0, 0, z) for z in (0, -5, -10)], "its places stand above one another"),
        ([(x, 0, -1.0 * x - z) for x in range(4) for z in (0, 0.5)], "beside them at their height"),
        ([(x, 0, 0) for x in range(4)] * 2, "at one position and height"),
    ):
        for kind in ("asc", "pgm", "geotiff"):
            with pytest.raises(RunError, match=f"map 'casts' is no grid: .*{why}.*csv and geojson"):
                format_of(kind).check(scattered(points))


def test_layers_with_cells_of_their_own_have_the_same_rows_and_columns() -> None:
    """A lake that is narrower below: what is no place there has no data."""
    points = [(x, y, 0) for x in range(4) for y in range(3)] + [(x, 1, -2) for x in (1, 2)]
    upper, lower = layers_of(scattered([(float(x), float(y), float(z)) for x, y, z in points]))
    assert (upper.height, lower.height) == (0.0, -2.0)
    assert upper.lattice.shape == lower.lattice.shape == (3, 4)
    raster = lower.lattice.filled(np.array([5.0, 7.0]))
    assert raster[1, 1:3].tolist() == [5.0, 7.0]
    assert np.isnan(raster).sum() == 10


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "dive"
    few = ["budget.metres=null", "budget.readings=4", "limit.expansions=10", "limit.seconds=null"]
    run_scenario(load_scenario("thermocline", overrides=few), path)
    return path


@pytest.mark.slow
def test_the_command(run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def export(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["export", str(run_dir), *words])
        return done.exit_code, done.output

    code, said = export("--to", "asc", "--layer", "-3")
    assert (code, said.split()) == (0, ["dive_z-3m_mean.asc", "dive_z-3m_std.asc"])
    code, said = export("--to", "csv", "--layer", "-3.2", "--stage", "2")
    assert (code, said.split()) == (0, ["dive-stage2_z-3m.csv"])
    with (tmp_path / "dive-stage2_z-3m.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["z"] for row in rows} == {"-3.0"}
    assert len(rows) == CELLS
    code, said = export("--to", "asc")
    assert code == 1
    assert "dive_z-3m_mean.asc, dive_z-3m_std.asc: there already" in said
    assert not (tmp_path / "dive_z0m_mean.asc").exists(), "all or nothing"
