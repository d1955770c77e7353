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
from gp_active_sensing.types import Budget, Plan
from tests.cases import for_each
from tests.unit.mission.test_blocked import under_way
from tests.unit.mission.test_mission import drive_to
from tests.unit.mission.worlds import Rig, grid


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name.endswith("log_messages")]


def plan_of(mission: Mission) -> Plan:
    plan = mission.plan
    assert plan is not None
    return plan


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


def test_what_a_reading_brought_is_told_before_the_next_decision(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(4))
    under_way(rig)
    mission, telling = rig.mission, MissionLog(rig.mission, "ie", "degC")
    telling.decision("", plan_of(mission))
    telling.decisions(np.full(4, 0.8))
    drive_to(rig, 2.0, rig.sent[-1])
    (stage,) = mission.probe.stages.unrecorded
    telling.decision("", plan_of(mission))
    telling.decisions(np.full(4, 0.7))
    assert len(told(caplog)) == 2, "stage 1 has not been recorded yet"
    assert mission.claim(stage)
    telling.decisions(np.full(4, 0.6))
    where = told(caplog)[2]
    assert where.startswith("stage 2: next: c2r0 (10 m); map uncertainty 0.80 → 0.60 degC")
    telling.decision("", plan_of(mission))
    telling.decisions(np.full(4, 0.6001))
    assert told(caplog)[4].endswith("map uncertainty 0.60 degC"), "no change to speak of"
    telling.decision("", plan_of(mission))
    telling.decisions(np.full(4, np.inf))
    assert told(caplog)[6].endswith("c2r0 (10 m)"), "what is not known is not said"
    telling.decision("", plan_of(mission))
    telling.decisions(np.full(4, 1e6), known=False)
    assert told(caplog)[8].endswith("c2r0 (10 m)"), "a scale that no reading has said"


def test_each_tenth_of_the_budget_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(30), budget=Budget(readings=20, metres=1000.0))
    telling = MissionLog(rig.mission, "ie")
    telling.budget()
    under_way(rig)
    for t in range(2, 22):
        telling.budget()
        drive_to(rig, float(t), rig.sent[-1])
        telling.budget()
    told = [r.getMessage() for r in caplog.records if r.name.endswith("log_messages")]
    readings = [line for line in told if "readings" in line]
    assert readings[0] == "90 % left of the readings: 18 of 20"
    assert [line.split()[0] for line in readings] == [f"{n}0" for n in range(9, 0, -1)] + ["0"]
    assert len([line for line in told if "metres" in line]) == 1


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
