"""Sensors that say nothing: no first waypoint before a reading, no end of places without one."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.requests import DecisionRequest
from tests.unit.mission.missions import CONFIG, SECOND
from tests.unit.mission.worlds import Rig, begun, grid


def test_no_waypoint_before_a_reading_was_heard() -> None:
    rig = begun(Rig(grid(), wait_for_reading=True))
    rig.step(2.0)
    assert rig.sent == []
    assert rig.probe.needs_reading
    rig.reading(2.0)
    rig.step(2.1)
    assert len(rig.sent) == 1
    assert not rig.probe.needs_reading


def test_a_reading_that_cannot_be_placed_is_one_and_nan_is_none() -> None:
    rig = Rig(grid(), wait_for_reading=True)
    rig.mission.start()
    rig.reading(0.5, math.nan)
    rig.pose(10.0, 0.0)
    rig.step(10.0)
    assert rig.sent == []
    rig.reading(0.5)
    rig.step(10.1)
    assert rig.ingestion.rejected["no_pose"] == 1
    assert len(rig.sent) == 1


def test_a_node_that_is_started_again_knows_that_it_has_heard_one(tmp_path: Path) -> None:
    whole = {**CONFIG, "mission": {}, "run_dir": str(tmp_path / "run")}
    config = from_mapping(ActiveSensingConfig, whole)
    parts = build_parts(config, None)
    parts.mission.start()
    parts.mission.pause()
    parts.mission.inbox.put(Pose(SECOND, "map", 0.0, 0.0, 0.0), 0.0)
    parts.mission.inbox.put(RawReading(SECOND, 10.0, None), 0.0)
    parts.mission.step(SECOND)
    parts.recorder.close()
    again = build_parts(config, None).mission
    again.resume()
    again.inbox.put(Pose(2 * SECOND, "map", 0.0, 0.0, 0.0), 0.0)
    assert any(isinstance(step.job, DecisionRequest) for step in again.step(2 * SECOND))


def silent(columns: int = 8, **mission: object) -> Rig:
    """Return a mission whose sensor gave one reading, and its probe under way."""
    rig = Rig(grid(columns), reading_timeout=1.0, retries=0, **mission)  # type: ignore[arg-type]
    rig.mission.start()
    rig.pose(1.0, 0.0)
    rig.reading(1.0)
    for t in (1.0, 1.1):
        rig.step(t)
    return rig


def drive(rig: Rig, t: float, places: int, *, read: bool = False) -> float:
    """Drive to so many places, waiting at each for longer than it takes; return the time."""
    for _ in range(places):
        if rig.mission.state != "running":
            break
        x, y = rig.topology.positions[rig.sent[-1]].tolist()
        for wait in (0.0, 0.6, 1.2):
            rig.pose(t + wait, x, y)
            if read:
                rig.reading(t + wait)
            rig.step(t + wait)
        t += 2.0
    return t


def test_places_without_readings_in_a_row_pause_the_mission(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        rig = silent()
        assert drive(rig, 2.0, 5) == pytest.approx(8.0), "three places, then it stops"
    mission = rig.mission
    assert mission.state == "paused"
    assert mission.reason.startswith("no reading for 6 s, at 3 places in a row (c")
    assert mission.reason.endswith("): check the sensor, then call ~/resume")
    assert mission.reason in caplog.text
    assert len(rig.loop.set_aside) == 3
    assert mission.plan is None


def test_one_reading_begins_the_count_anew() -> None:
    rig = silent()
    t = drive(rig, 2.0, 2)
    t = drive(rig, t, 1, read=True)
    drive(rig, t, 2)
    assert rig.mission.state == "running"
    assert len(rig.loop.set_aside) == 4
