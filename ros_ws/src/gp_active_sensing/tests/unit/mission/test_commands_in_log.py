"""What an operator did, and what the mission did by itself, leaves a line each in the log."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from gp_active_sensing.mission import changes
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.mission.live_parameters import adjust
from gp_active_sensing.mission.log_messages import DEACTIVATED, FINISHING, budget_words
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.types import Budget
from tests.unit.mission.test_blocked import under_way
from tests.unit.mission.test_live_parameters import config
from tests.unit.mission.worlds import Rig, grid


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
