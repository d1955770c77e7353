from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission import changes
from gp_active_sensing.types import Budget
from tests.cases import for_each
from tests.robots import Robot, Voyage
from tests.unit.mission.missions import Drive

BOAT: dict[str, Any] = {
    "map": {"kind": "grid", "columns": 6, "rows": 5, "spacing": 20.0},
    "belief": {"length_scales": [40.0], "signal_std": [1.0], "noise_std": [0.1]},
    "policy": {"name": "ie"},
    "budget": {"readings": 15},
    "reading": {"delay": 3.0},
    "mission": {"wait_for_reading": False},
    "waypoint": {"ahead": 4},
}


def sail(follows: bool = True, **config: Any) -> Voyage:
    voyage = Voyage(BOAT | config, Robot(0.0, 0.0, radius=5.0), delay=3.0)
    voyage.follows = follows
    return voyage


@for_each("follows", [True, False])
def test_a_boat_with_a_late_sensor_does_not_stop(follows: bool) -> None:
    voyage = sail(follows)
    assert voyage.run(600.0)
    loop, robot = voyage.mission.loop, voyage.robot
    speed = np.hypot(*np.diff(np.array(robot.way), axis=0).T) / voyage.dt
    under_way = speed[: int(np.flatnonzero(speed > 1.0)[-1])]
    assert loop.belief.observed.sum() == 15
    assert loop.counts["missed"] == 0
    assert (under_way < 0.3).sum() * voyage.dt / 15 <= 0.2
    assert under_way.mean() >= 0.85 * robot.speed, "it accelerates once, and turns"
    assert voyage.mission.driven.metres == pytest.approx(robot.metres, rel=0.03)
    stops = sail(waypoint={"ahead": 1})
    assert stops.run(600.0)
    assert stops.now_ns > 1.3 * voyage.now_ns


def test_a_place_that_stays_unread_is_visited_again_and_costs_one_reading() -> None:
    voyage = sail(mission={"wait_for_reading": False, "reading_timeout": 2.0}, budget={})
    voyage.config["budget"] = {"metres": 5000.0}
    voyage.start()
    deaf, field = [True], voyage.field
    voyage.field = lambda x, y: math.nan if deaf[0] and math.hypot(x - 40, y) < 25 else field(x, y)
    counts = voyage.mission.loop.counts
    assert voyage.run(600.0, lambda: counts["missed"] > 0)
    deaf[0] = False
    assert voyage.run(900.0)
    loop = voyage.mission.loop
    assert loop.belief.observed.all()
    assert not loop.set_aside
    assert loop.spent == 30


def test_readings_to_come_keep_the_mission_and_its_budget() -> None:
    drive = Drive(None, lag=2.0, waypoint={"ahead": 3}, budget={"readings": 5}).start()
    mission = drive.built.mission
    drive.decide(5)
    drive.steps(5)
    assert mission.loop.spent == 0
    assert mission.state == "running"
    assert mission.decisions.stage == 5, "the others are promised"
    assert "still to come" in mission.reason
    drive.run()
    assert mission.loop.belief.observed.sum() == mission.loop.spent == 5
    assert len(set(drive.decided)) == 5


def test_without_a_reading_in_time_the_mission_comes_back() -> None:
    short = {"reading_timeout": 1.0, "silent_places": 0}
    drive = Drive(None, dropout=0.4, lag=0.3, waypoint={"ahead": 3}, mission=short).start()
    drive.run()
    mission = drive.built.mission
    loop, stages = mission.loop, mission.probe.stages.unrecorded  # nobody records them here
    assert loop.belief.observed.sum() == 12
    assert not loop.reservations.kept(loop.observed_of, ())
    assert sorted(s.number for s in stages) == list(range(1, mission.decisions.stage + 1))
    without = [s for s in stages if s.value is None]
    assert len(without) == loop.counts["missed"] > 0
    assert {s.plan.path[-1] for s in without if not s.again} == loop.set_aside


def test_a_dead_sensor_pauses_and_resuming_waits_again() -> None:
    drive = Drive(None, dropout=1.0, waypoint={"ahead": 3}, mission={"reading_timeout": 1.0})
    mission = drive.start().built.mission
    while mission.state == "running":
        drive.step()
    assert mission.reason.startswith("no reading")
    passed = len(mission.probe.passed)
    assert passed > 0
    drive.steps(50)
    assert mission.resume() == ""
    drive.step()
    assert mission.state == "running"
    assert len(mission.probe.passed) >= passed


def test_a_lowered_budget_drops_what_was_promised_last() -> None:
    drive = Drive(None, lag=2.0, waypoint={"ahead": 3}).start()
    mission = drive.built.mission
    drive.decide(6)
    changes.set_budget(mission, Budget(readings=3))
    drive.run()
    assert mission.loop.belief.observed.sum() == 3
    assert mission.reason.startswith("the budget of readings")


def test_a_probe_that_settles_stops() -> None:
    voyage = sail(mission={"wait_for_reading": False, "settle": 4.0}, budget={"readings": 3})
    assert voyage.run(300.0)
    assert not voyage.mission.probe.flows
    assert voyage.mission.loop.belief.observed.sum() == 3
