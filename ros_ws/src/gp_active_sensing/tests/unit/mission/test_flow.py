"""Robots that are sent on where they arrive, with their readings still to come."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission import changes
from gp_active_sensing.types import Budget
from tests.cases import for_each
from tests.robots import Localisation, Robot, Voyage
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


FIELDS = 12


def waves(seed: int) -> Callable[[float, float], float]:
    """Return a smooth field with a length-scale of about 30 m and a standard deviation of 2.2."""
    rng = np.random.default_rng([5, seed])
    k, phase, height = rng.normal(size=(40, 2)) / 30.0, rng.uniform(0, 6.3, 40), rng.normal(size=40)
    return lambda x, y: float(10.0 + 0.5 * height @ np.cos(k @ (x, y) + phase))


def figures(seed: int, ahead: int, follows: bool, budget: dict[str, Any]) -> list[float]:
    """Return what one voyage of a 3 m/s boat with GPS and a sensor that is 3 s late gives."""
    config = {
        "map": {"kind": "grid", "columns": 14, "rows": 10, "spacing": 20.0},
        "mission": {"wait_for_reading": False},
        "limit": {"expansions": 200},
        "reading": {"delay": 3.0},
        "waypoint": {"ahead": ahead},
        "budget": budget,
        "seed": seed,
    }
    gps = Localisation(white=0.15, slow=0.6, seed=seed)
    voyage = Voyage(config, Robot(0.0, 0.0, radius=5.0), gps, delay=3.0)
    voyage.follows, voyage.field = follows, waves(seed)
    assert voyage.run(2000.0)
    mission, loop = voyage.mission, voyage.mission.loop
    speed = np.hypot(*np.diff(np.array(voyage.robot.way), axis=0).T) / voyage.dt
    truth = np.array([voyage.field(x, y) for x, y in loop.topology.positions.tolist()])
    mean, variance = loop.belief.mixture().moments()
    idle = float((speed < 0.3).sum()) * voyage.dt / mission.decisions.stage
    covered = np.abs(mean - truth) <= 1.96 * np.sqrt(variance)
    error, seconds = float(np.sqrt(np.mean((mean - truth) ** 2))), 1e-9 * voyage.now_ns
    driven, places = mission.driven.metres, float(loop.belief.observed.sum())
    return [
        *(idle, float(speed.mean()), seconds, voyage.robot.metres, driven, places, error),
        100.0 * float(covered.mean()),
    ]


@pytest.mark.long
def test_before_and_after() -> None:
    """Print idle time, speed, metres, places, error and coverage; `-s` shows the table."""
    lines: list[str] = []
    head = "idle s  m/s   s     m true m charged places error cover %"
    for budget in ({"readings": 40}, {"seconds": 300.0}):
        table = {
            name: np.array([figures(seed, *how, budget) for seed in range(FIELDS)])
            for name, how in {
                "stops (ahead: 1)": (1, False),
                "next_waypoint (ahead: 4)": (4, False),
                "next_path (ahead: 4)": (4, True),
            }.items()
        }
        lines.append(f"\n{budget}, mean of {FIELDS} fields{'':8}{head}")
        before, *after = table.values()
        for name, rows in table.items():
            lines.append(" ".join([f"{name:36}", *(f"{x:6.2f}" for x in rows.mean(axis=0))]))
        for rows in after:
            worse = rows[:, 6] - before[:, 6]
            error = worse.std(ddof=1) / math.sqrt(FIELDS)
            lines.append(f"error, paired: {worse.mean():+.3f}, standard error {error:.3f}")
            sys.stdout.write("\n".join(lines) + "\n")
            lines.clear()
            assert rows[:, 0].mean() <= 0.2
            assert rows[:, 1].mean() >= 0.9 * 3.0
            assert (rows[:, 5] >= before[:, 5]).all()
            assert worse.mean() <= 2.0 * error
