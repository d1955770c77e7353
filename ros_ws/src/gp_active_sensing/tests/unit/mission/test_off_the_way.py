from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import shapely

from gp_active_sensing.mission import changes
from gp_active_sensing.mission.ingestion.ingestion import Ingestion
from gp_active_sensing.types import Budget
from tests.cases import for_each
from tests.robots import Localisation, Robot, Voyage
from tests.unit.mission.worlds import Rig, begun, grid

CONFIG: dict[str, Any] = {
    "map": {"kind": "grid", "spacing": 10.0, "outline": [[0, 0], [60, 0], [60, 40], [0, 40]]},
    "belief": {"length_scales": [20.0], "signal_std": [1.0], "noise_std": [0.1]},
    "policy": {"name": "ie"},
    "budget": {"readings": 30},
    "mission": {"wait_for_reading": False},
    "probe": {"end": "c0r0"},
}


def stream(rig: Rig, begin: float, seconds: float, x: float, y: float = 0.0) -> float:
    """Let poses come at one position, 5 a second, with a reading each; return when they end."""
    t = begin
    for _ in range(round(5 * seconds)):
        t += 0.2
        rig.pose(t, x, y)
        rig.reading(t)
        rig.step(t)
    return t


def test_a_jump_and_back_is_not_driven_and_no_place(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(grid(10))
    assert isinstance(rig.ingestion, Ingestion)
    rig.ingestion.checks._name = "boat_2"
    t = stream(rig, 1.0, 6.0, 0.0)
    t = stream(rig, t, 2.0, 40.0)
    t = stream(rig, t, 6.0, 0.0)
    assert rig.ingestion.metres == 0.0
    assert rig.observed == ["c0r0"]
    assert rig.ingestion.rejected["pose_jumped"] == 10
    assert rig.ingestion.checks.jumps == 1
    assert "boat_2: the position jumped by 40 m" in caplog.text


def test_a_jump_that_stays_is_believed_and_not_driven() -> None:
    rig = Rig(grid(10))
    t = stream(rig, 1.0, 6.0, 0.0)
    t = stream(rig, t, 6.0, 40.0)
    assert rig.ingestion.metres == 0.0
    assert rig.observed == ["c0r0", "c4r0"]
    for k in range(50):  # and it drives on from there
        rig.pose(t + 0.2 * (k + 1), 40.0 + 0.4 * k)
    rig.step(t + 10.0)
    assert rig.ingestion.metres == pytest.approx(19.6)


def test_a_drive_that_speeds_up_is_no_jump() -> None:
    rig, x, speed = Rig(grid(100)), 0.0, 0.0
    for k in range(200):
        rig.pose(1.0 + 0.2 * k, x)
        speed = min(30.0, speed + 0.5)
        x += 0.2 * speed
    rig.step(60.0)
    assert rig.ingestion.checks.jumps == 0


@for_each(("speed", "rate"), [(3.0, 5.0), (20.0, 10.0), (30.0, 5.0), (40.0, 1.0)])
def test_a_simulated_start_at_full_speed_is_a_drive(speed: float, rate: float) -> None:
    rig, t = Rig(grid(400)), 1.0
    for _ in range(40):
        t += 1.0 / rate
        rig.pose(t, 0.0)
    for k in range(40):
        t += 1.0 / rate
        rig.pose(t, speed * (k + 1) / rate)
    rig.step(t + 5.0)
    assert rig.ingestion.rejected["pose_jumped"] <= 1
    assert rig.ingestion.metres == pytest.approx(speed * 40 / rate, rel=0.01)


@for_each("then", ["warn", "pause", "return"])
def test_off_the_map_is_an_alarm(then: str, caplog: pytest.LogCaptureFixture) -> None:
    config = {**CONFIG, "mission": {**CONFIG["mission"], "off_map": then}}
    voyage = Voyage(config, Robot(5.0, 5.0))
    voyage.run(20.0)
    robot, mission = voyage.robot, voyage.mission
    assert mission.alarms == ()
    for _ in range(40):  # a current takes it over the shore
        robot.y -= 2.0
        robot.vx = robot.vy = 0.0
        voyage.step()
    (alarm,) = mission.alarms
    assert "from the shore" in alarm
    metres = mission.probe.ground.astray
    assert metres is not None
    assert metres == pytest.approx(-robot.y, abs=3.0)
    assert next(r.levelname for r in caplog.records if "off the map" in r.message) == "ERROR"
    if then == "pause":
        assert mission.state == "paused"
        return
    if then == "return":
        place = mission.probe.ingestion.matcher.nearest(robot.x, robot.y)[0]
        voyage.run(2.0)
        assert voyage.legs[-1][1] == tuple(mission.loop.topology.positions[place].tolist())
    assert voyage.run(400.0, lambda: mission.alarms == ())
    assert voyage.run(900.0), "and it goes on"
    assert mission.state == "ended"


def test_far_off_the_map_a_probe_does_not_turn_back_again_and_again() -> None:
    rig = begun(Rig(grid(5), budget=Budget(9, 60.0, end=0), snap_distance=20.0))
    rig.pose(2.0, 0.0, 45.0)  # it has used too much for the way to its goal and home
    for _ in range(5):
        rig.step(2.0)
    kinds = [event["event"] for event in rig.events]
    assert kinds.count("decision") == 2, "one on the map, and one off it"


def test_a_latched_pose_holds_until_the_next_one() -> None:
    """AMCL sends a pose on motion only: a robot that stands is somewhere all the same."""
    config = {
        **CONFIG,
        "pose": {"type": "geometry_msgs/msg/PoseWithCovarianceStamped"},
        "mission": {"settle": 2.0},
    }
    voyage = Voyage(config, Robot(5.0, 5.0, speed=1.0), Localisation(white=0.02, variance=0.02))
    voyage.on_motion = 0.25
    assert voyage.run(3000.0, lambda: len(voyage.routes) > 12)
    rejected = voyage.mission.probe.ingestion.rejected
    assert rejected["no_pose"] == 0
    assert voyage.mission.probe.stages.driven.metres == pytest.approx(voyage.robot.metres, rel=0.05)


HOOK = [(0, 0), (200, 0), (200, 150), (160, 150), (160, 40), (40, 40), (40, 150), (0, 150)]


def sailing(rate: float, **mission: float) -> Voyage:
    """A boat with GPS that is sent around the land between the arms of a hook."""
    area = {"kind": "grid", "spacing": 20.0, "outline": [list(map(float, at)) for at in HOOK]}
    config = {**CONFIG, "map": area, "budget": {"metres": 5000.0}, "probe": {"end": "c0r7"}}
    config["mission"] = {"wait_for_reading": False, **mission}
    gps = Localisation(white=0.15, slow=0.6)
    return Voyage(config, Robot(180.0, 130.0), gps, rate=rate)


def test_a_lowered_budget_brings_a_boat_home_round_the_land() -> None:
    voyage = sailing(5.0)
    boat, mission = voyage.robot, voyage.mission
    assert voyage.run(5000.0, lambda: mission.decisions.stage >= 6)
    lowered = replace(mission.budget, metres=mission.driven.metres + 10.0)
    changes.set_budget(mission, lowered)
    sent = len(voyage.legs)
    assert voyage.run(5000.0)
    assert len(voyage.legs) - sent >= 2, "a corner, and the end place"
    assert shapely.covers(shapely.Polygon(HOOK).buffer(2.0), shapely.LineString(boat.way))
    assert math.dist(boat.way[-1], (0.0, 140.0)) < 15.0
    assert mission.driven.metres == pytest.approx(boat.metres, rel=0.03, abs=3.0)


def test_an_anchor_a_multipath_and_a_dropout_are_not_driven() -> None:
    """Ten minutes at anchor, a position 40 m off for two seconds, twenty seconds without radio."""
    voyage = sailing(2.0, drive_timeout=0.0)
    boat, mission = voyage.robot, voyage.mission
    boat.speed, cruise = 0.0, boat.speed
    voyage.run(600.0)
    assert mission.driven.metres <= 1.0
    boat.speed = cruise
    assert voyage.run(1000.0, lambda: mission.decisions.stage >= 3)
    for offset, seconds in ((0.0, 10.0), (40.0, 2.0), (0.0, 10.0)):
        voyage.localisation.offset = (0.0, offset)
        voyage.run(seconds)
    assert mission.rejected["pose_jumped"] >= 3
    voyage.silent = True
    voyage.run(20.0)
    voyage.silent = False
    assert voyage.run(1000.0, lambda: mission.decisions.stage >= 25)
    assert mission.driven.metres == pytest.approx(boat.metres, rel=0.03)
    assert mission.loop.belief.observed.sum() >= 6
