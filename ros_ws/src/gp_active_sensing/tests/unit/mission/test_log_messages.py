"""What a mission says in the log."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from gp_active_sensing.mission.log_messages import (
    DEACTIVATED,
    FINISHING,
    MissionLog,
)
from gp_active_sensing.mission.mission import Mission
from tests.cases import for_each
from tests.unit.mission.test_blocked import under_way
from tests.unit.mission.worlds import Rig, grid


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name.endswith("log_messages")]


def test_a_decision_is_told_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(3))
    under_way(rig)
    plan = rig.mission.plan
    assert plan is not None
    telling = MissionLog(rig.mission, "ie", "degC")
    telling.decision("", plan)
    assert told(caplog) == [], "not before the stage before is told"
    telling.decisions(np.array([3.0, 4.0, 12.5**0.5]))
    where, why = told(caplog)
    assert where == "stage 1: next: c1r0 (10 m); map uncertainty 3.54 degC"
    assert why.startswith("stage 1: chosen: c1r0, the only place that could be next, worth ")
    assert " nat" in why
    telling.decisions(np.zeros(3))
    assert len(told(caplog)) == 2, "each once"


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
