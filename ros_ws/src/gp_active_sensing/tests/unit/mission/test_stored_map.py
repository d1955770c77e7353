"""A run keeps the places that it began with, whatever a later version makes of the same map."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.run_dirs import AUTO
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import run_scenario
from gp_active_sensing.sim.scenario import Scenario, scenario_from_mapping
from gp_active_sensing.topology import MapConfig, build_topology, grids
from gp_active_sensing.topology.config import build_settled
from gp_active_sensing.topology.kept_maps import keep_map
from gp_active_sensing.topology.stored import mark_of_places, other_places
from gp_active_sensing.web.follow import RunFollower
from gp_active_sensing_learning.data.request import RowRequest, load_readings
from tests.journals import change_events
from tests.unit.mission.grids import LARGER, LIVE, drive_on, house, steps
from tests.unit.mission.missions import Drive

HALL = house((-1.0, -1.0, 25.0, 17.0))
UNSTATED = {key: value for key, value in LIVE.items() if key != "spacing"}


def another_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a later version work out coarser places."""
    monkeypatch.setattr(grids, "USUAL_PLACES", 60)


def on_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return maps whose spacing nobody states, by the kind of their file."""
    keep_map(folder, 1, HALL)
    lines = ["ncols 100", "nrows 30", "xllcorner -3.7", "yllcorner -3.3", "cellsize 2"]
    raster = "\n".join([*lines, *[" ".join(["7"] * 100)] * 30])
    (folder / "bay.asc").write_text(raster + "\n", encoding="utf-8")
    ring = [[-3.0, -2.0], [290.5, -2.0], [290.5, 70.0], [-3.0, 70.0], [-3.0, -2.0]]
    shore = {"type": "Polygon", "coordinates": [ring]}
    feature = {"type": "Feature", "properties": {}, "geometry": shore}
    areas = {"type": "FeatureCollection", "crs": "local", "features": [feature]}
    (folder / "shore.geojson").write_text(json.dumps(areas), encoding="utf-8")
    return {
        "map_server": {"kind": "grid", "file": str(folder / "map-1.yaml")},
        "raster": {"kind": "grid", "file": str(folder / "bay.asc")},
        "areas": {"kind": "grid", "file": str(folder / "shore.geojson")},
    }


def cut_off(drive: Drive, count: int = 10) -> tuple[str, ...]:
    drive.start()
    steps(drive, count)
    names = drive.built.mission.loop.topology.names
    drive.kill()
    return names


def same_places(names: tuple[str, ...], run: Path) -> None:
    """Report, live page and learning have the places of the run."""
    assert load_run(run).topology.names == names
    follower = RunFollower(run)
    follower.go_on(60.0)
    assert follower.found is not None, follower.problem
    assert follower.found.data.topology.names == names
    assert load_readings(RowRequest(data=str(run))).topology.names == names


@pytest.mark.parametrize("kind", ["map_server", "raster", "areas"])
def test_places_of_a_file_stay_when_a_version_works_them_out_otherwise(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, run = on_files(tmp_path)[kind], tmp_path / "run"
    drive = Drive(run, map=section)
    names = cut_off(drive)
    another_rule(monkeypatch)
    assert build_topology(MapConfig(**section)).n < len(names), "it would be another map"
    same_places(names, run)
    drive.start()
    assert drive.built.mission.loop.topology.names == names
    drive.run()
    assert load_run(run).topology.names == names
    assert sum(e["event"] == "reading" for e in RunDirectory.open(run).events()) >= 10


def test_places_of_a_topic_stay_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    drive = drive_on(run, HALL, map=UNSTATED)
    names = cut_off(drive)
    another_rule(monkeypatch)
    same_places(names, run)
    drive.first = LARGER  # another one is published by now
    drive.start()
    assert drive.built.mission.loop.topology.names == names


def test_what_is_stated_is_not_written_down_again(tmp_path: Path) -> None:
    cut_off(Drive(tmp_path / "run"))
    start = RunDirectory.open(tmp_path / "run").start
    assert start["map"] == {"origin": [0.0, 0.0]}
    assert start["places"]["count"] == 30
    stated = {"kind": "grid", "columns": 6, "rows": 5, "spacing": 10.0, "origin": [0.0, 0.0]}
    cut_off(Drive(tmp_path / "other", map=stated))
    assert "map" not in RunDirectory.open(tmp_path / "other").start


def simulated(section: dict[str, Any]) -> Scenario:
    return scenario_from_mapping(
        {
            "name": "hall",
            "map": section,
            "field": {"kind": "formula", "formula": "15 + sin(x / 9) + cos(y / 7)"},
            "policy": {"name": "ie"},
            "limit": {"expansions": 20},
            "budget": {"readings": 6},
        }
    )


def test_a_simulation_goes_on_with_its_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = simulated(on_files(tmp_path)["areas"])
    whole = run_scenario(scenario, tmp_path / "run")
    run = tmp_path / "run"
    names = load_run(run).topology.names

    def cut(events: list[dict[str, Any]]) -> None:
        del events[len(events) // 2 :]

    change_events(run / "journal.jsonl", cut)
    another_rule(monkeypatch)
    again = run_scenario(scenario, run, resume=True)
    assert again.rmspe == whole.rmspe
    assert load_run(run).topology.names == names
    (tmp_path / "shore.geojson").write_text(
        (tmp_path / "shore.geojson").read_text("utf-8").replace("290.5", "280.5"), "utf-8"
    )
    with pytest.raises(RunError, match="does not give the places that the run began with"):
        run_scenario(scenario, run, resume=True)


def test_a_file_that_has_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    section, run = on_files(tmp_path)["map_server"], tmp_path / "run"
    drive = Drive(run, map=section)
    count = len(cut_off(drive))
    keep_map(tmp_path, 1, house((-1.0, -1.0, 21.0, 17.0)))
    said = rf"run: map 'map-1': it does not give .*: expected {count} places from .* came \d+ from"
    with pytest.raises(RunError, match=said) as found:
        drive.start()
    assert "put it back as it was" in str(found.value)
    assert "begin a new run in another directory" in str(found.value)
    with pytest.raises(RunError, match=said):
        load_run(run)
    with pytest.raises(RunError, match=said):
        load_readings(RowRequest(data=str(run)))
    follower = RunFollower(run)
    follower.go_on(60.0)
    assert follower.found is None
    assert "does not give the places" in follower.problem
    keep_map(tmp_path, 1, HALL)
    drive.start()
    assert drive.built.mission.loop.topology.n == count


def test_where_the_directory_is_free_to_choose_a_new_mission_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    section = on_files(tmp_path)["map_server"]
    drive = Drive(Path(AUTO), map=section)
    cut_off(drive)
    keep_map(tmp_path, 1, house((-1.0, -1.0, 21.0, 17.0)))
    drive.sent.clear()
    with caplog.at_level(logging.ERROR):
        drive.start()
    assert "a new mission is begun" in caplog.text
    assert "does not give the places" in caplog.text
    assert len(list((tmp_path / "gp_active_sensing").iterdir())) == 2


# -- configurations of other versions -----------------------------------------------------------


def change_config(run: Path, change: Any) -> None:
    path = run / "config.yaml"
    config = yaml.safe_load(path.read_text("utf-8"))
    change(config)
    path.write_text(yaml.safe_dump(config), "utf-8")


def test_a_key_that_a_run_does_not_know_has_its_default(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run")
    cut_off(drive)

    def older(config: dict[str, Any]) -> None:
        for key in ("value", "geofence", "patience", "weights", "origin"):
            del config["map"][key]
        del config["belief"]["axis_ratio"], config["budget"]["error"], config["probe"]["end"]
        del config["expert"]["max_age"]

    change_config(tmp_path / "run", older)
    drive.start()
    assert drive.built.mission.decisions.stage > 0
    drive.kill()
    change_config(tmp_path / "run", lambda config: config["map"].pop("columns"))
    with pytest.raises(RunError, match=r"different: map\.columns\. Start the node with the same"):
        drive.start()


# -- marks ----------------------------------------------------------------------------------------


def marked(change: Any = None, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the mark of a grid whose positions were changed."""
    topology = build_topology(MapConfig("grid", columns=20, rows=15, spacing=5.0))
    points = topology.points.copy()
    if change is not None:
        change(points)

    class Changed:
        n = topology.n

    changed: Any = Changed()
    changed.names, changed.points = names or topology.names, points
    return json.loads(json.dumps(mark_of_places(changed)))  # as a journal has it


def test_a_mark_tells_other_places() -> None:
    mark = marked()
    assert other_places(None, mark) == ""
    assert other_places(mark, marked()) == ""

    def noise(points: np.ndarray) -> None:
        points += np.random.default_rng(0).normal(0.0, 1e-3, points.shape)

    def shift(points: np.ndarray) -> None:
        points += 1.0

    def one(points: np.ndarray) -> None:
        points[123] += 2.0

    def swap(points: np.ndarray) -> None:
        points[[20, 101]] = points[[101, 20]]

    assert other_places(mark, marked(noise)) == "", "another machine may be a millimetre off"
    assert "from (0, 0) to (95, 70) m, came 300 from (1, 1)" in other_places(mark, marked(shift))
    assert "their positions are others" in other_places(mark, marked(one))
    topology = build_topology(MapConfig("grid", columns=20, rows=15, spacing=5.0))
    renamed = (*topology.names[:-1], "dock")
    assert "their names are others" in other_places(mark, marked(names=renamed))
    assert "cannot be read" in other_places({"count": 300}, mark)
    assert "cannot be read" in other_places("?", mark)
    smaller = build_topology(MapConfig("grid", columns=19, rows=15, spacing=5.0))
    assert "expected 300 places" in other_places(mark, mark_of_places(smaller))


def test_an_origin_can_be_asked_for_at_zero(tmp_path: Path) -> None:
    box: dict[str, Any] = {"kind": "grid", "outline": ((-4.5, -4.5), (40.0, 30.0))}
    for kind, section in {**on_files(tmp_path), "outline": box}.items():
        free, settled = build_settled(MapConfig(**section))
        asked = build_topology(MapConfig(**section, spacing=settled.spacing, origin=(0.0, 0.0)))
        again = build_topology(settled)
        assert again.names == free.names
        np.testing.assert_array_equal(again.positions, free.positions)
        step = np.broadcast_to(np.asarray(settled.spacing), (2,))
        off = np.abs(asked.positions / step - np.round(asked.positions / step))
        assert off.max() < 1e-6, kind
        assert settled.origin is not None
        assert (settled.origin == (0.0, 0.0)) == (kind == "map_server")
