"""What a mission says in the log."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from gp_active_sensing.mission import changes
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.mission.live_parameters import adjust
from gp_active_sensing.mission.log_messages import (
    DEACTIVATED,
    FINISHING,
    MissionLog,
    budget_left,
    budget_words,
)
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.types import Budget, CandidateValue, Plan
from tests.unit.mission.test_blocked import under_way
from tests.unit.mission.test_live_parameters import config
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
    told = [r.getMessage() for r in caplog.records if r.name.endswith("log_messages")]
    readings = [line for line in told if "readings" in line]
    assert readings[0] == "90 % left of the readings: 18 of 20"
    assert [line.split()[0] for line in readings] == [f"{n}0" for n in range(9, 0, -1)] + ["0"]
    assert len([line for line in told if "metres" in line]) == 1


def test_without_a_budget_nothing_is_told() -> None:
    assert list(budget_left(Rig(grid(3)).mission)) == []


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [(r.levelname, r.getMessage()) for r in caplog.records]
    caplog.clear()
    return found


def test_each_command_leaves_a_line_with_who_or_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig(grid(4), budget=Budget(readings=3, metres=50.0))
    mission = rig.mission
    mission.state = "idle"
    assert mission.start("asked by ~/start") == ""
    begun = "the mission begins (asked by ~/start): 4 places, budget 3 readings, 50 m"
    assert said(caplog) == [("INFO", begun)]
    under_way(rig)
    caplog.clear()
    assert mission.pause("asked by ~/pause") == ""
    paused = "paused at stage 1 (asked by ~/pause); the last waypoint stands"
    assert said(caplog) == [("INFO", paused)]
    assert mission.pause("asked by ~/pause") != ""
    assert said(caplog) == [], "nothing was done"
    assert mission.resume("asked by ~/resume") == ""
    assert said(caplog) == [("INFO", "resumed at stage 1 (asked by ~/resume)")]
    changes.set_budget(mission, Budget(readings=5))
    (line,) = said(caplog)
    now = "the budget is now 5 readings (was 3 readings, 50 m); "
    assert line == ("INFO", f"{now}readings spent or under way: 1, driven: 0 m")


@pytest.mark.parametrize(
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


def test_a_changed_parameter_is_said_with_what_it_was(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    before = config(limit={"expansions": 5})
    parts = build_parts(before, None)
    caplog.clear()
    now = replace(before, plan_ahead=not before.plan_ahead)
    now = replace(now, limit=replace(before.limit, seconds=0.5, expansions=None))
    adjust(parts, before, now)
    words = ("no", "yes") if before.plan_ahead else ("yes", "no")
    seconds = before.limit.seconds
    was = "not set" if seconds is None else f"{seconds:g}"
    told = (
        f"changed: limit.seconds is now 0.5 (was {was}), "
        "limit.expansions is now not set (was 5), "
        f"plan_ahead is now {words[0]} (was {words[1]})"
    )
    assert said(caplog) == [("INFO", told)]
    adjust(parts, now, now)
    assert said(caplog) == []


def test_budgets_in_words() -> None:
    assert budget_words(Budget()) == "no limit"
    assert budget_words(Budget(4, 500.0, 60.5)) == "4 readings, 500 m, 60.5 s"
