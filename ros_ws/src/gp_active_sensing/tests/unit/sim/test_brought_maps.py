"""Missions on maps that people bring, from their file to an export that other programs read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shapely
from click.testing import CliRunner

from gp_active_sensing.cli import cli
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import run_scenario, scenario_from_mapping
from gp_active_sensing.util.resources import find_resource

FIELD = {"kind": "gp", "length_scale": 60.0, "signal_std": 2.0, "mean": 15.0, "unit": "degC"}
FEW = {"readings": 6}


def drive(folder: Path, map: dict[str, Any], **sections: Any) -> Path:
    """Run a small mission on a map, to its end; return the run directory."""
    what = {"name": "brought", "map": map, "field": FIELD, "budget": FEW, **sections}
    what.setdefault("limit", {"expansions": 30})
    done = run_scenario(scenario_from_mapping(what), folder / "run")
    assert (done.status, done.observed) == ("finished", 6)
    return folder / "run"


def taken_home(run: Path, format: str) -> Path:
    """Export the map of a run with the command, as its user does."""
    out = run.with_name(f"home.{format}")
    done = CliRunner().invoke(cli, ["export", str(run), "--to", format, "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out


def read_places(run: Path) -> list[str]:
    return [record["name"] for record in RunDirectory.open(run).records()]


def test_a_lake_of_qgroundcontrol(tmp_path: Path) -> None:
    """Cells of the export lie in the polygons of the plan, as read without this package."""
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    home = [-138.7, 59.8]
    probe = {"start": home, "end": "start", "speed": 2.0}
    run = drive(tmp_path, {"file": "lake.plan", "spacing": 30.0}, probe=probe)
    data = json.loads(taken_home(run, "geojson").read_text(encoding="utf-8"))
    assert data["gp_active_sensing"]["crs"] == "EPSG:4326"
    plan = json.loads(find_resource("maps", "lake.plan").read_text(encoding="utf-8"))
    fences = [shape for shape in plan["geoFence"]["polygons"] if shape["inclusion"]]
    assert fences
    fence = shapely.union_all(
        [shapely.Polygon([(lon, lat) for lat, lon in shape["polygon"]]) for shape in fences]
    )
    features = {feature["properties"]["place"]: feature for feature in data["features"]}
    assert len(features) > 40
    for feature in features.values():
        assert fence.buffer(1e-6).covers(shapely.geometry.shape(feature["geometry"]).centroid)
    read = [name for name, f in features.items() if f["properties"]["readings"]]
    assert sorted(read) == sorted(set(read_places(run)))
    first = shapely.geometry.shape(features[read_places(run)[0]]["geometry"]).centroid
    lat, lon, _ = plan["mission"]["plannedHomePosition"]
    assert shapely.Point(lon, lat).distance(first) < 120.0 / 75_000.0  # degrees of longitude
