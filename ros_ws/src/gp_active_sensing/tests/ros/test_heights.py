"""A mission in three dimensions with nodes: z in poses, waypoints, the plan, the field, the map."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import NavSatFix

from gp_active_sensing.messages.conversions import pose_reader
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import GRID, Probe, sensing

COLUMN = (
    *(word for word in GRID if not word.startswith(("map.columns", "belief.length"))),
    "map.columns:=2",
    "map.heights:=[0.0, -3.0, -6.0]",
    "belief.length_scales:='[[20.0, 20.0, 6.0], [20.0, 20.0, 20.0]]'",
)
HEIGHTS = {0.0, -3.0, -6.0}


def test_waypoints_have_a_z_and_poses_are_matched_by_theirs(ros: Ros, tmp_path: Path) -> None:
    run = tmp_path / "run"
    sensing(ros, "budget.readings:=5", f"run_dir:={run}", given=COLUMN)
    probe = Probe(ros).connect()
    probe.pose(0.0, z=-6.1)  # over, or rather below, c0r0z2
    wait_until(lambda: probe.waypoints, "the first waypoint")
    first = probe.waypoints[0].pose.position
    assert first.z in HEIGHTS
    wait_until(lambda: probe.heard["plan"], "the plan")
    assert probe.heard["plan"][0].poses[-1].pose.position == first
    probe.obedient = True
    probe.hear(probe.waypoints[0])
    probe.wait_value("state", "ended")
    wait_until((run / "summary.json").exists, "the summary")
    assert json.loads((run / "summary.json").read_text())["observed"] == 5
    found = {w.pose.position.z for w in probe.waypoints}
    assert len(found) > 1
    assert found <= HEIGHTS
    cloud = probe.heard["field"][-1]
    values = np.frombuffer(bytes(cloud.data), dtype="<f4").reshape(cloud.width, 5)
    assert set(values[:, 2].tolist()) == HEIGHTS
    markers = probe.heard["map"][-1].markers
    shown = {round(p.z) for m in markers if m.ns == "topology" for p in m.points}
    assert len(shown) == len(HEIGHTS)
    labels = [d.label for d in probe.heard["length_scale_belief"][-1].layout.dim]
    assert any("length_scale=20/20/6 " in label for label in labels)


def test_the_altitude_of_a_fix() -> None:
    kind, datum = "sensor_msgs/msg/NavSatFix", (54.0, 10.0)
    fix = NavSatFix(latitude=54.0, longitude=10.0, altitude=37.5)
    assert pose_reader(kind, datum=datum, zero_altitude=40.0)(fix).z == pytest.approx(-2.5)
    assert np.isnan(pose_reader(kind, datum=datum)(fix).z)
