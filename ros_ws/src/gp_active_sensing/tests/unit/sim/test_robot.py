from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim import World
from gp_active_sensing.sim.robot import Observation, SimulatedRobot
from gp_active_sensing.sim.sensor import SensorConfig, SimulatedSensor
from tests.unit.mission.worlds import chain, place


def road_world(on_the_way: bool = True) -> World:
    roads = chain()
    truth = GroundTruth(np.arange(roads.n, dtype=np.float64))
    config = SensorConfig(noise_std=0.0, on_the_way=on_the_way)
    return World(roads, truth, SimulatedSensor(truth, config, 0), place(roads, "a1"), 10.0)


def run(player: SimulatedRobot, seconds: float, step: float = 0.5) -> list[Observation]:
    return [player.step(step) for _ in range(round(seconds / step))]


def test_it_drives_at_its_speed_and_reads_in_the_second_half() -> None:
    world = road_world()
    player = SimulatedRobot(world)
    goal = place(world.topology, "a2")
    player.go_to(goal)
    moments = run(player, 12.0)
    assert moments[-1].pose[:2] == (200.0, 0.0)
    assert moments[3].speed == pytest.approx(10.0)
    taken = [(m, r) for m in moments for r in m.readings]
    assert len(taken) == 1
    moment, reading = taken[0]
    assert reading.location == goal
    assert reading.value == world.truth.at(0.0)[goal]
    assert 150.0 <= moment.pose[0] < 160.0
    assert reading.stamp_ns <= moment.stamp_ns


def test_a_new_waypoint_on_the_way_is_driven_to_from_the_end_of_the_segment() -> None:
    world = road_world()
    player = SimulatedRobot(world)
    player.go_to(place(world.topology, "a2"))
    run(player, 6.0)
    player.go_to(place(world.topology, "a3"))
    xs = [m.pose[0] for m in run(player, 14.0)]
    assert all(0 <= b - a <= 5.0 + 1e-9 for a, b in pairwise(xs))
    assert xs[-1] == 300.0
    assert player.goal == place(world.topology, "a3")


def test_places_on_the_way_are_read_once_each_unless_only_the_goal_is_wanted() -> None:
    for on_the_way, names in ((True, ["a2", "a3"]), (False, ["a3"])):
        world = road_world(on_the_way)
        player = SimulatedRobot(world)
        player.go_to(place(world.topology, "a3"))
        read = [r.location for m in run(player, 25.0) for r in m.readings]
        assert read == [place(world.topology, name) for name in names]


def test_waypoints_are_found_by_position_and_heading() -> None:
    world = road_world()
    player = SimulatedRobot(world)
    for i, (x, y, heading) in enumerate(world.topology.goals):
        assert player.place_of(x, y, heading) == i
    assert player.place_of(50.0, 0.0, 0.0) is None
