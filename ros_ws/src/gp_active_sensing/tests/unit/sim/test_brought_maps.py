"""A mission on a map that people bring, from its file to an export that other programs read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shapely
from click.testing import CliRunner

from gp_active_sensing.cli import cli
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import run_scenario, scenario_from_mapping
from gp_active_sensing.util.resources import find_resource


def test_a_lake_of_qgroundcontrol(tmp_path: Path) -> None:
    """Cells of the export lie in the polygons of the plan, as read without this package."""
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    what = scenario_from_mapping(
        {
            "map": {"file": "lake.plan", "spacing": 30.0},
            "field": {"kind": "gp", "length_scale": 60.0, "signal_std": 2.0, "unit": "degC"},
            "budget": {"readings": 6},
            "probe": {"start": [-138.7, 59.8], "end": "start", "speed": 2.0},
            "limit": {"expansions": 30},
        }
    )
    run, out = tmp_path / "run", tmp_path / "home.geojson"
    done = run_scenario(what, run)
    assert (done.status, done.observed) == ("finished", 6)
    command = ["export", str(run), "--to", "geojson", "--out", str(out)]
    assert CliRunner().invoke(cli, command).exit_code == 0
    data = json.loads(out.read_text(encoding="utf-8"))
    assert data["gp_active_sensing"]["crs"] == "EPSG:4326"
    plan = json.loads(find_resource("maps", "lake.plan").read_text(encoding="utf-8"))
    fences = [shape for shape in plan["geoFence"]["polygons"] if shape["inclusion"]]
    fence = shapely.union_all(
        [shapely.Polygon([(lon, lat) for lat, lon in shape["polygon"]]) for shape in fences]
    )
    features = {feature["properties"]["place"]: feature for feature in data["features"]}
    assert len(features) > 40
    for feature in features.values():
        assert fence.buffer(1e-6).covers(shapely.geometry.shape(feature["geometry"]).centroid)
    visited = [record["name"] for record in RunDirectory.open(run).records()]
    read = [name for name, f in features.items() if f["properties"]["readings"]]
    assert sorted(read) == sorted(set(visited))
    first = shapely.geometry.shape(features[visited[0]]["geometry"]).centroid
    lat, lon, _ = plan["mission"]["plannedHomePosition"]
    assert shapely.Point(lon, lat).distance(first) < 120.0 / 75_000.0  # degrees of longitude
