"""What a mission says in the log."""

from __future__ import annotations

import logging

import pytest

from gp_active_sensing.mission.telling import Telling, budget_left
from gp_active_sensing.types import Budget, CandidateValue, Plan
from tests.unit.mission.test_blocked import under_way
from tests.unit.mission.test_mission import drive_to
from tests.unit.mission.worlds import Rig, grid


def test_a_decision_is_told_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(3))
    under_way(rig)
    plan = rig.mission.plan
    assert plan is not None
    Telling(rig.mission, "ie").decision("", plan)
    (line,) = [r.getMessage() for r in caplog.records if r.name.endswith("telling")]
    assert line.startswith("stage 1: chosen: c1r0, the only place that could be next, worth ")
    assert " nat" in line


def test_a_search_that_the_limit_ended_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(3))
    under_way(rig)
    values = (CandidateValue(1, 1.0, 1.5), CandidateValue(2, 0.5, 1.25))
    plan = Plan((1,), 1.0, 1.5, 10, 0.1, deadline_hit=True, path=(1,), candidates=values)
    Telling(rig.mission, "bal").decision("", plan)
    assert "the limit ended the search before the choice was certain" in caplog.text


def test_the_way_home_is_told_by_the_mission_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(3))
    home = Plan((), 0.0, 0.0, 0, 0.0, deadline_hit=False, path=(0,), reason="spent")
    Telling(rig.mission, "ie").decision("", home)
    assert caplog.text == ""


def test_each_tenth_of_the_budget_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(30), budget=Budget(readings=20, metres=1000.0))
    telling = Telling(rig.mission, "ie")
    telling.budget()
    under_way(rig)
    for t in range(2, 22):
        telling.budget()
        drive_to(rig, float(t), rig.sent[-1])
        telling.budget()
    told = [r.getMessage() for r in caplog.records if r.name.endswith("telling")]
    readings = [line for line in told if "readings" in line]
    assert readings[0] == "90 % left of the readings: 18 of 20"
    assert [line.split()[0] for line in readings] == [f"{n}0" for n in range(9, 0, -1)] + ["0"]
    assert len([line for line in told if "metres" in line]) == 1


def test_without_a_budget_nothing_is_told() -> None:
    assert list(budget_left(Rig(grid(3)).mission)) == []
