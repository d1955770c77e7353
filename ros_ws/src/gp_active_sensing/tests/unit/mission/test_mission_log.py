"""What a mission says in the log."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.mission_log import MissionLog, budget_left
from gp_active_sensing.types import Budget, CandidateValue, Plan
from tests.unit.mission.test_blocked import under_way
from tests.unit.mission.test_mission import drive_to
from tests.unit.mission.worlds import Rig, grid


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name.endswith("mission_log")]


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


def test_a_search_that_the_limit_ended_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(3))
    under_way(rig)
    values = (CandidateValue(1, 1.0, 1.5), CandidateValue(2, 0.5, 1.25))
    plan = Plan((1,), 1.0, 1.5, 10, 0.1, deadline_hit=True, path=(1,), candidates=values)
    telling = MissionLog(rig.mission, "bal")
    telling.decision("", plan)
    telling.decisions(np.ones(3))
    assert "the limit ended the search before the choice was certain" in caplog.text


def test_the_way_home_is_told_by_the_mission_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(3))
    home = Plan((), 0.0, 0.0, 0, 0.0, deadline_hit=False, path=(0,), reason="spent")
    telling = MissionLog(rig.mission, "ie")
    telling.decision("", home)
    telling.decisions(np.ones(3))
    assert caplog.text == ""


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
    told = [r.getMessage() for r in caplog.records if r.name.endswith("mission_log")]
    readings = [line for line in told if "readings" in line]
    assert readings[0] == "90 % left of the readings: 18 of 20"
    assert [line.split()[0] for line in readings] == [f"{n}0" for n in range(9, 0, -1)] + ["0"]
    assert len([line for line in told if "metres" in line]) == 1


def test_without_a_budget_nothing_is_told() -> None:
    assert list(budget_left(Rig(grid(3)).mission)) == []
