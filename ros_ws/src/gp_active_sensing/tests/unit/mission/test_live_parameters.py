from __future__ import annotations

import dataclasses
from typing import Any

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.mission.live_parameters import LIVE, adjust
from gp_active_sensing.records.event_lines import parse_event
from gp_active_sensing.records.events import BudgetChanged
from gp_active_sensing.types import Aim, Budget, PlanLimit
from tests.unit.mission.test_blocked import under_way
from tests.unit.mission.worlds import Rig, drive_to, grid


def config(**changes: Any) -> ActiveSensingConfig:
    whole: dict[str, Any] = {"map": {"kind": "grid", "columns": 4, "rows": 1}}
    return from_mapping(ActiveSensingConfig, whole | changes)


def test_every_live_parameter_is_one_and_takes_effect() -> None:
    before = config(budget={"readings": 3, "metres": 50.0})
    parts = build_parts(before, None)
    now = config(
        budget={"readings": 2, "metres": 60.0, "seconds": 70.0, "error": 1.5, "error_of": "worst"},
        limit={"expansions": 5},
        mission={
            "arrival_radius": 0.2,
            "reading_timeout": 3.0,
            "settle": 1.5,
            "retries": 7,
            "wait_for_reading": False,
            "silent_places": 5,
            "first_leg": 7.5,
            "drive_timeout": 8.0,
            "block_seconds": 9.0,
            "lost_after": 10.0,
            "exit_at_end": True,
        },
        waypoint={"rate": 2.0, "altitude": 5.0},
        reading={"gate": 4.0, "gate_places": 3, "delay": 0.5},
        expert={"timeout": 1.5, "max_age": 60.0, "max_ahead": 2.0},
    )
    changed = {
        f"{s.name}.{f.name}"
        for s in dataclasses.fields(now)
        if dataclasses.is_dataclass(a := getattr(now, s.name))
        for f in dataclasses.fields(a)
        if getattr(a, f.name) != getattr(getattr(before, s.name), f.name)
    }
    assert changed | {"limit.seconds"} == set(LIVE)
    adjust(parts, before, now)
    mission = parts.mission
    assert mission.loop.limit == PlanLimit(None, 5)
    assert mission.loop.retries == 7
    assert mission.loop.aim == Aim(1.5, "worst")
    assert mission.loop.remaining.readings == 2
    assert mission.budget == Budget(2, 60.0, 70.0)
    probe = mission.probe
    assert (probe.own_budget.metres, probe.own_budget.seconds) == (60.0, 70.0)
    assert (probe.arrival.radius, probe.arrival.timeout) == (0.2, 3.0 + 1.5 + 0.5)
    assert (probe.ingestion.dwelling.radius, probe.ingestion.dwelling.seconds) == (0.2, 1.5)
    assert probe.ingestion.delay == 0.5
    assert (probe.ingestion.pipeline.gate.limit, probe.ingestion.pipeline.gate.places) == (4.0, 3)
    for part in (mission, mission.fleet, mission.blocked, probe):
        assert part.config is now.mission
    adjust(parts, now, config())
    assert mission.loop.limit == PlanLimit(seconds=1.0), "a robot never plans without a limit"


def test_a_budget_that_is_raised_lets_a_mission_go_on_that_was_on_its_way_home() -> None:
    rig = Rig(grid(5), budget=2, back_to_start=True)
    under_way(rig)
    drive_to(rig, 2.0, 1)
    assert rig.sent[-1] == 0, "on the way home"
    changes.set_budget(rig.mission, Budget(readings=4))
    rig.step(3.0)
    assert rig.loop.remaining.readings == 2
    assert rig.sent[-1] == 2
    assert rig.mission.reason == ""
    drive_to(rig, 4.0, 2)
    drive_to(rig, 5.0, 3)
    drive_to(rig, 6.0, 0, None)
    assert rig.mission.state == "ended"
    assert len(rig.observed) == 4
    (event,) = [e for e in rig.events if e["event"] == "budget"]
    changed = parse_event(event)
    assert isinstance(changed, BudgetChanged)
    assert changed.budget == Budget(readings=4)


def test_a_budget_below_what_was_spent_ends_the_mission() -> None:
    rig = Rig(grid(5), budget=5)
    under_way(rig)
    drive_to(rig, 2.0, 1)
    drive_to(rig, 3.0, 2)
    assert rig.sent[-1] == 3
    changes.set_budget(rig.mission, Budget(readings=2))
    rig.step(4.0)
    rig.step(4.1)
    assert rig.mission.state == "ended"
    assert rig.mission.reason == "the budget of readings is spent"
    assert rig.loop.remaining.readings == 0
