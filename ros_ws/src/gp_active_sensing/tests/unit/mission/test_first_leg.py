"""A first leg that is longer than the map is wide goes to nobody."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from gp_active_sensing.mission import changes
from tests.unit.mission.worlds import Rig, begun, grid

FAR = "Is 'grid' the right map, and the pose in its frame 'map'"


def far_away(**mission: Any) -> Rig:
    """Return a mission whose probe says that it is far off a map of 40 m."""
    rig = begun(Rig(grid(5), **mission), 3000.0, 400.0)
    return rig


def test_no_waypoint_goes_out_and_the_reason_names_both_positions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        rig = far_away()
    assert rig.sent == []
    assert rig.mission.state == "paused"
    reason = rig.mission.reason
    assert "from its pose (3000.0, 400.0) to c" in reason
    assert ", 0.0), more than the map's extent of 50 m. " in reason, "40 m, and 10 m beside it"
    assert FAR in reason
    assert "~/resume" in reason
    assert f"paused at stage 0 ({reason})" in caplog.text
    assert not [e for e in rig.events if e["event"] == "decision"]


def test_a_longer_first_leg_may_be_allowed_while_the_mission_is_paused() -> None:
    rig = far_away()
    changes.set_config(rig.mission, replace(rig.config, first_leg=4000.0))
    assert rig.mission.resume() == ""
    rig.step(2.0)
    assert rig.mission.state == "running"
    assert len(rig.sent) == 1


def test_only_the_first_leg_counts() -> None:
    rig = begun(Rig(grid(5), drive_timeout=0.0))
    assert len(rig.sent) == 1
    rig.pose(2.0, 3000.0)
    rig.mission.pause()
    rig.mission.resume()
    rig.mission.unreachable()
    rig.step(2.0)
    assert len(rig.sent) > 1
    assert rig.mission.state == "running"
