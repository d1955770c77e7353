from __future__ import annotations

import json
import math
from typing import Any

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records import events as of
from gp_active_sensing.records.event_lines import parse_event, to_line
from gp_active_sensing.records.events import (
    DecisionTaken,
    Event,
    Moved,
    ProbePosition,
    ProbeStatus,
    ReadingEvent,
    ReadingUsed,
    StayRecord,
)
from gp_active_sensing.types import Budget, CandidateValue, Cost, Plan, Reading

HERE = ProbePosition(12.5, (7, 1.0, -2.0))
NOWHERE = ProbePosition(0.0)
READING = Reading(5, 3, 1.25, 0.04, "/probe/reading", (1.0, 2.0))
PLAN = Plan(
    waypoints=(4, 7),
    lower=1.25,
    upper=1.5,
    expanded=17,
    seconds=0.1,
    deadline_hit=True,
    path=(2, 4),
    cost=Cost(20.0, 4.0),
    horizon=2,
    candidates=(CandidateValue(4, 1.25, 1.5), CandidateValue(9, 0.5, 0.75)),
)
EVENTS: list[Event] = [
    of.MissionStarted(details={"seed": 1, "versions": {"numpy": "2.4"}, "driver": "sim"}),
    of.MissionResumed(details={"seed": 1}),
    of.StateChanged(state="paused", reason="asked", probes={"a": HERE, "b": NOWHERE}, stamp_ns=3),
    of.ClockStepped(step_ns=9, stamp_ns=4),
    of.JournalGap(failures=2, damaged=True),
    of.MissionStopped(reason="Ctrl-C", stamp_ns=6),
    of.MissionEnded(reason="nothing is left", stamp_ns=6),
    of.DecisionAsked(
        at=None, pending=(3, 4), waiting={"b": 2, "c": None}, where=NOWHERE, stamp_ns=2, probe="a"
    ),
    of.DecisionAsked(at=3, pending=(), where=HERE, stamp_ns=2),
    DecisionTaken(
        stage=3,
        plan=PLAN,
        policy_state={"order": [1, 2]},
        at=2,
        where=HERE,
        foreseen=True,
        again=True,
        left=Budget(4, None, 30.0),
        stamp_ns=8,
        probe="a",
    ),
    of.AnswerUnused(waypoint=None, reason="over", expanded=3, stamp_ns=2),
    of.ReturnBegun(reason="over", path=(3, 2), cost=Cost(4.0, 2.0), at=4, where=HERE, stamp_ns=1),
    of.ReturnBegun(reason="over", path=(), cost=Cost(0, 0), sortie=True, where=HERE, stamp_ns=1),
    of.SortieChanged(number=1, over=True, stamp_ns=5, probe="b"),
    of.BatteryNoted(level=0.75, where=HERE, stamp_ns=5),
    Moved(cost=Cost(1.0, 2.0), where=HERE, went=0, given_up=True, stamp_ns=5, probe="b"),
    ReadingUsed(reading=Reading(1, None, 2.0), probe="a"),
    ReadingUsed(
        reading=READING,
        count=4,
        first_ns=1,
        taken_back="agreed",
        stay=StayRecord(4, 1.5, None, 0.25),
    ),
    of.ReadingGated(reading=READING, off=7.5),
    of.VisitMissed(location=0, again=False, stamp_ns=3),
    of.ExpertAsked(places=(1, 2), stamp_ns=3),
    of.ExpertAnswered(reading=READING, late=True),
    of.PlaceBlocked(location=4, until_ns=90, why="no nearer for 30 s", stamp_ns=3),
    of.MoveShut(start=3, goal=4, until_ns=90, why="14 m driven where 8 m were planned", stamp_ns=3),
    of.LimitsMoved(closed=(4, 5), opened=(2,), declared=(0, 1), began=("", "a"), stamp_ns=3),
    of.BudgetChanged(readings=3, metres=None, seconds=4.5, error=0.5, error_of="worst"),
    of.MapChanged(number=2, mark="5d41402a", places=40, closed=3, stamp_ns=3),
    of.RosterChanged(why="left: asked to leave", where=HERE, stamp_ns=3, probe="a"),
    of.StatusNoted(probes={"": ProbeStatus(HERE, {"no_pose": 2})}, expert={"late": 1}, stamp_ns=4),
]


def test_every_kind_is_here() -> None:
    found = vars(of).values()
    kinds = {kind for kind in found if isinstance(kind, type) and issubclass(kind, Event)}
    assert kinds - {Event, ReadingEvent} == {type(event) for event in EVENTS}
    assert set(of.EVENT_TYPES.values()) == kinds - {Event, ReadingEvent}


def test_an_event_survives_its_line() -> None:
    for event in EVENTS:
        line = json.loads(json.dumps(to_line(event)))
        assert parse_event(line) == event
        assert to_line(parse_event(line)) == line, event


def test_what_external_tools_read_keeps_its_keys() -> None:
    assert to_line(Moved(cost=Cost(1.0, 2.0))) == {"event": "moved", "metres": 1.0, "seconds": 2.0}
    keys = "event stamp_ns location position value noise_variance source"
    assert [*to_line(ReadingUsed(reading=Reading(1, None, 2.0)))] == keys.split()
    decision = to_line(DecisionTaken(stage=3, plan=PLAN, stamp_ns=1))
    assert decision["waypoints"] == [4, 7]
    assert decision["plan_seconds"] == 0.1
    assert {"at", "again", "policy_state"} <= decision.keys()
    assert "odometer" not in decision
    assert to_line(of.AnswerUnused(waypoint=None))["probe"] == ""
    assert "probe" not in to_line(Moved(cost=Cost(1.0, 2.0)))


def test_lines_of_the_wrong_shape_are_refused() -> None:
    lines: list[dict[str, Any]] = [
        {"event": "reading"},
        {"event": "reading", "stamp_ns": 1, "value": "much"},
        {"event": "reading", "stamp_ns": 1, "value": 1.0, "stay": {"value": 1.0}},
        {"event": "moved", "metres": math.inf, "seconds": 1.0},
        {"event": "status", "probes": {"": None}},
        {"event": "budget", "readings": "many", "metres": None, "seconds": None},
        {"event": "asked", "at": "there", "pending": [], "stamp_ns": 1},
        {"event": "query", "places": "abc"},
        {"event": "state", "state": "running", "reason": ""},
        {"event": "song", "verse": 3},
    ]
    for line in lines:
        with pytest.raises(RunError, match=f"'{line['event']}'"):
            parse_event(line)


def test_the_average_that_the_belief_holds() -> None:
    assert ReadingUsed(reading=READING).average is READING
    event = ReadingUsed(reading=READING, stay=StayRecord(4, 1.5, None, 0.25))
    held = event.average
    assert (held.value, held.noise_variance, held.off) == (1.5, None, 0.25)
    assert event.average.stamp_ns == READING.stamp_ns
