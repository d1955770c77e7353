"""A run keeps the places that it began with, whatever a later version makes of the same map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report.source import load_run
from gp_active_sensing.topology import MapConfig, build_topology, grids
from gp_active_sensing.topology.kept_maps import keep_map
from gp_active_sensing.topology.stored import mark_of_places, other_places
from gp_active_sensing.web.follow import RunFollower
from tests.cases import for_each
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
    ring = [[-3.0, -2.0], [290.5, -2.0], [290.5, 70.0], [-3.0, 70.0], [-3.0, -2.0]]
    shore = {"type": "Polygon", "coordinates": [ring]}
    feature = {"type": "Feature", "properties": {}, "geometry": shore}
    areas = {"type": "FeatureCollection", "crs": "local", "features": [feature]}
    (folder / "shore.geojson").write_text(json.dumps(areas), encoding="utf-8")
    return {
        "map_server": {"kind": "grid", "file": str(folder / "map-1.yaml")},
        "areas": {"kind": "grid", "file": str(folder / "shore.geojson")},
    }


def cut_off(drive: Drive, count: int = 10) -> tuple[str, ...]:
    drive.start()
    steps(drive, count)
    names = drive.built.mission.loop.topology.names
    drive.kill()
    return names


def same_places(names: tuple[str, ...], run: Path) -> None:
    """Report and live page have the places of the run."""
    assert load_run(run).topology.names == names
    follower = RunFollower(run)
    follower.go_on(60.0)
    assert follower.found is not None, follower.problem
    assert follower.found.data.topology.names == names


@for_each("kind", ["map_server", "areas"])
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
    follower = RunFollower(run)
    follower.go_on(60.0)
    assert follower.found is None
    assert "does not give the places" in follower.problem
    keep_map(tmp_path, 1, HALL)
    drive.start()
    assert drive.built.mission.loop.topology.n == count


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

    def one(points: np.ndarray) -> None:
        points[123] += 2.0

    assert other_places(mark, marked(noise)) == "", "another machine may be a millimetre off"
    assert other_places(mark, marked(one))
    assert other_places(mark, marked(names=tuple(map(str, range(300)))))
    for unreadable in ({"count": 300}, "?"):
        assert other_places(unreadable, mark)
