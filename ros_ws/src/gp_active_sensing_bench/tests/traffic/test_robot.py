"""Live traffic played for the nodes: poses on the roads, and readings while the pose is there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_support.sumo import flow, parked_at, ring, write_cars
from gp_active_sensing.mission.matching import MapMatcher
from gp_active_sensing.sim import World, build_world
from gp_active_sensing.sim.robot import EPOCH_NS, Observation
from gp_active_sensing_bench.traffic.live import TrafficRobot

pytestmark = pytest.mark.heavy("sumo")

STEP = 0.1


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    cars = write_cars(tmp_path / "cars.xml", flow("ab bc cd da ab bc cd da", period=30.0))
    built = build_world(ring(routes=[cars], begin=60.0))
    yield built
    assert built.traffic is not None
    built.traffic.close()


def robot_in(world: World) -> TrafficRobot:
    assert world.traffic is not None
    player = world.traffic.robot(world)
    assert isinstance(player, TrafficRobot)
    return player


def go(player: TrafficRobot, world: World, name: str) -> None:
    x, y, heading = world.topology.goals[world.topology.names.index(name)]
    place = player.place_of(x, y, heading)
    assert place is not None
    player.go_to(place)


def until_there(player: TrafficRobot, most: float = 300.0) -> list[Observation]:
    moments = [player.step(STEP)]
    while moments[-1].stamp_ns < EPOCH_NS + 1e9 * most:
        moments.append(player.step(STEP))
        x, y, _ = moments[-1].pose
        goal = player._topology.goals[player.goal or 0]
        if player._next_goal is not None:
            continue  # it departs with SUMO's next step
        if player._traffic.vehicle.done and math.hypot(x - goal[0], y - goal[1]) < 0.01:
            break
    return moments


def drive_around(player: TrafficRobot, world: World, names: list[str]) -> list[Observation]:
    moments: list[Observation] = []
    for name in names:
        go(player, world, name)
        moments += until_there(player)
    return moments


def test_readings_are_taken_while_the_pose_is_on_the_road(world: World) -> None:
    player = robot_in(world)
    names = ["ab", "cd", "da", "ab", "be", "ba"]
    moments = drive_around(player, world, names)
    poses = {moment.stamp_ns: moment.pose for moment in moments}
    stamps = np.array(sorted(poses))
    matcher = MapMatcher(world.topology)
    seen = []
    for moment in moments:
        for reading in moment.readings:
            assert reading.stamp_ns <= moment.stamp_ns, "nothing is said before its time"
            pose = poses[int(stamps[np.argmin(np.abs(stamps - reading.stamp_ns))])]
            match = matcher.match(*pose)
            assert match is not None
            assert match.place == reading.location
            assert match.fraction > 0.5
            assert 5.0 < reading.value < 73.0
            seen.append(world.topology.names[match.place])
    assert seen == ["ab", "bc", "cd", "da", "ab", "be", "eb", "ba"]


def test_poses_go_forward_and_do_not_jump(world: World) -> None:
    player = robot_in(world)
    moments = drive_around(player, world, ["ab", "bc", "cd"])
    xy = np.array([moment.pose[:2] for moment in moments])
    steps = np.hypot(*np.diff(xy, axis=0).T)
    assert steps[1:].max() < 25.0, "the width of a junction"
    assert np.median(steps[steps > 0]) < 2.0
    assert [m.stamp_ns for m in moments] == [
        EPOCH_NS + round(1e9 * STEP) * (k + 1) for k in range(len(moments))
    ]


def test_without_a_waypoint_it_stands_and_traffic_goes_on(world: World) -> None:
    player = robot_in(world)
    assert world.traffic is not None
    first = player.step(STEP)
    for _ in range(100):
        moment = player.step(STEP)
    assert moment.pose == first.pose
    assert world.traffic.seconds == pytest.approx(10.0, abs=1.5)
    go(player, world, "ab")
    assert until_there(player)[-1].readings or world.truth.changes
    assert player.goal == world.topology.names.index("ab")


def test_a_blocked_road_ends_at_the_waypoint_without_a_reading(tmp_path: Path) -> None:
    cars = write_cars(tmp_path / "cars.xml", parked_at("bc"))
    world = build_world(ring(routes=[cars], begin=60.0, patience=100.0))
    player = robot_in(world)
    moments = drive_around(player, world, ["bc"])
    assert [world.topology.names[r.location or 0] for m in moments for r in m.readings] == ["ab"]
    assert player.dropouts == 1
    go(player, world, "cd")
    assert [r for m in until_there(player, 900.0) for r in m.readings]
    player.close()


def test_the_node_s_mission_knows_no_truth_and_waits_for_the_end_of_the_road(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gp_active_sensing.mission import factory
    from gp_active_sensing.sim import world

    scenario: dict[str, Any] = {"field": {"kind": "sumo"}}
    assert factory._is_live(scenario)
    assert not factory._is_live(None)
    assert not factory._is_live({"field": {"kind": "gp"}})
    monkeypatch.setattr(world, "build_world", pytest.fail)
    found = world.field_knowledge(ring().to_mapping())
    assert (found.truth, found.sensor, found.unit) == (None, None, "km/h")
