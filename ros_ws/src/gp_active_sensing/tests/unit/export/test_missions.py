"""The route that is left of a run, as ground stations read it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gp_active_sensing.cli import cli
from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.report.route_left import route_left
from gp_active_sensing.topology.projection import local_metres
from tests.unit.mission.missions import Drive

HOOK = [[0, 0], [60, 0], [60, 50], [40, 50], [40, 20], [20, 20], [20, 50], [0, 50]]
LAKE = {"kind": "grid", "outline": HOOK, "spacing": 10.0, "datum": [48.1, 11.5]}


def killed(folder: Path, stage: int, **config: object) -> Drive:
    """Return a mission that was killed after so many decisions."""
    options = {"map": LAKE, "policy": {"name": "lawnmower"}, "budget": {"readings": 20}}
    drive = Drive(folder, **(options | config)).start()
    drive.decide(stage)
    drive.kill()
    return drive


def test_the_route_that_is_left_comes_home_round_the_land(tmp_path: Path) -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    drive = killed(tmp_path / "run", 4, probe={"end": "start"})
    [(home, route)] = route_left(tmp_path / "run", 2.0).values()
    drive.start()
    topology = drive.built.mission.loop.topology
    points = np.array(
        [
            local_metres(longitude, latitude, (11.5, 48.1))
            for latitude, longitude, _ in [home, *route]
        ]
    )
    assert topology.ground is not None
    for a, b in pairwise(points):
        assert topology.ground.in_sight(a, b[None])[0]
        assert np.abs(topology.positions - b).max(axis=1).min() < 1e-3
    assert len(np.unique(points.round(1), axis=0)) > 10
    first = drive.sent[0]
    assert isinstance(first, Pose)
    assert np.hypot(*(points[-1] - (first.x, first.y))) < 10.0, "where it began"
    assert {height for _, _, height in route} == {2.0}


def test_ground_stations_get_the_same_route(tmp_path: Path) -> None:
    pytest.importorskip("pyproj", reason="the extra [maps] is not installed")
    killed(tmp_path / "run", 3)
    run, out = str(tmp_path / "run"), tmp_path / "boat"
    for suffix in ("plan", "waypoints"):
        done = CliRunner().invoke(
            cli, ["export", run, "--to", suffix, "--out", f"{out}.{suffix}", "--altitude", "3"]
        )
        assert done.exit_code == 0, done.output
    plan = json.loads(out.with_suffix(".plan").read_text())
    items = plan["mission"]["items"]
    lines = [line.split("\t") for line in out.with_suffix(".waypoints").read_text().splitlines()]
    assert (plan["fileType"], lines[0]) == ("Plan", ["QGC WPL 110"])
    assert [line[:4] for line in lines[1:3]] == [["0", "1", "0", "16"], ["1", "0", "3", "16"]]
    assert {len(line) for line in lines[1:]} == {12}
    assert [item["doJumpId"] for item in items] == list(range(1, len(items) + 1))
    for item, line in zip(items, lines[2:], strict=True):
        assert item["params"][4:] == pytest.approx([float(x) for x in line[8:11]], abs=1e-7)
    again = CliRunner().invoke(cli, ["export", run, "--to", "plan", "--out", f"{out}.plan"])
    assert again.exit_code == 1
    assert CliRunner().invoke(cli, ["export", run, "--to", "plan", "--stage", "1"]).exit_code == 2


def test_no_route_without_a_decision_a_datum_or_after_the_end(tmp_path: Path) -> None:
    killed(tmp_path / "idle", 0)
    with pytest.raises(RunError, match="no decision"):
        route_left(tmp_path / "idle")
    killed(tmp_path / "metres", 2, map={"kind": "grid", "columns": 4, "rows": 2, "spacing": 9.0})
    with pytest.raises(RunError, match="no position on Earth"):
        route_left(tmp_path / "metres")
    Drive(tmp_path / "over", map=LAKE, budget={"readings": 2}).start().run()
    with pytest.raises(RunError, match="is over"):
        route_left(tmp_path / "over")
