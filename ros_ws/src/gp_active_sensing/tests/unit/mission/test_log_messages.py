"""What a mission says in the log."""

from __future__ import annotations

import logging

import pytest

from gp_active_sensing.mission.log_messages import (
    DEACTIVATED,
    FINISHING,
)
from gp_active_sensing.mission.mission import Mission
from tests.cases import for_each
from tests.unit.mission.test_blocked import under_way
from tests.unit.mission.worlds import Rig, grid


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [(r.levelname, r.getMessage()) for r in caplog.records]
    caplog.clear()
    return found


@for_each(
    ("reason", "level"),
    [(DEACTIVATED, "INFO"), ("the sensor is silent", "WARNING"), (FINISHING, None)],
)
def test_a_pause_that_nobody_asked_for_is_a_warning(
    caplog: pytest.LogCaptureFixture, reason: str, level: str | None
) -> None:
    caplog.set_level(logging.INFO)
    mission = under_way_mission(caplog)
    mission.pause(reason)
    assert [found for found, _ in said(caplog)] == ([] if level is None else [level])


def under_way_mission(caplog: pytest.LogCaptureFixture) -> Mission:
    rig = Rig(grid(3))
    under_way(rig)
    caplog.clear()
    return rig.mission
