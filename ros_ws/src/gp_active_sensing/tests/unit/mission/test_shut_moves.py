from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission.course import places_along
from gp_active_sensing.records.events import MoveShut
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.topology.base import GraphTopology
from gp_active_sensing.topology.shut import is_doorway, with_shut
from tests.robots import House, HouseRobot, Voyage
from tests.unit.mission.teams import Team
from tests.unit.mission.worlds import Rig, chain, grid, place

WALL = {(6, y) for y in range(7) if y not in (1, 5)}
DOOR = (6, 1)


def voyage(*, detours: bool, metres: float = 60.0, **more: Any) -> Voyage:
    """Return a mission in a house of two rooms, whose door near the start is shut."""
    house = House(13, 7, WALL)
    config = {
        "map": house.map,
        "policy": {"name": "bal"},
        "budget": {"metres": metres},
        "probe": {"end": "start", "speed": 1.0},
        "belief": {"length_scales": [2.0, 5.0], "signal_std": [1.0], "noise_std": [0.1]},
        "limit": {"expansions": 50},
        "mission": {"drive_timeout": 20.0, "block_seconds": 600.0},
        **more,
    }
    robot = HouseRobot(
        4.0, 1.0, speed=1.0, acceleration=math.inf, tolerance=0.1, house=house, detours=detours
    )
    house.shut = {DOOR}
    return Voyage(config, robot)


def test_a_shut_move_closes_its_doorway_and_the_ground() -> None:
    topology = voyage(detours=True).mission.loop.topology
    a, b = place(topology, "c7r1"), place(topology, "c6r1")
    assert is_doorway(topology, a, b)
    assert not is_doorway(topology, place(topology, "c3r3"), place(topology, "c3r4"))
    shut = with_shut(topology, [(a, b)])
    assert b not in shut.neighbours(a)
    assert a not in shut.neighbours(b)
    path = shut.ways_to(place(topology, "c4r1"), "metres").route(a).path
    assert place(topology, "c6r5") in path
    direct = topology.ways_to(place(topology, "c4r1"), "metres").route(a).path
    start = topology.positions[a]
    assert places_along(topology, start, direct) == direct
    assert place(topology, "c6r5") in places_along(shut, start, direct)
    assert b in topology.neighbours(a)


def test_a_closed_road_is_closed_in_both_directions() -> None:
    roads = chain()
    shut = with_shut(roads, [(place(roads, "a1"), place(roads, "a2"))])
    assert isinstance(shut, GraphTopology)
    closed = {place(roads, "a2"), place(roads, "b2")}
    assert not closed & {move.to for out in shut.moves for move in out}
    assert with_shut(roads, []) is roads


@pytest.mark.parametrize("detours", [True, False])
def test_a_mission_gets_home_though_a_door_is_shut(detours: bool) -> None:
    run = voyage(detours=detours)
    assert run.run(500.0, lambda: bool(run.mission.loop.shut))
    ((a, b),) = run.mission.loop.shut
    points = run.mission.loop.topology.positions
    assert np.abs(points[[a, b]] - DOOR).max() <= 1.0
    assert run.mission.blocked.shut_moves
    run.robot.house.shut = set()  # what the controller knows does not matter any more
    known = len(run.robot.way)
    assert run.run(500.0, lambda: run.mission.probe.home)
    assert not any(math.dist(at, DOOR) < 0.3 for at in run.robot.way[known:])
    assert math.dist((run.robot.x, run.robot.y), (4.0, 1.0)) < 1.0


def test_a_long_detour_shuts_the_door_that_explains_it() -> None:
    run = voyage(detours=True, policy={"name": "lawnmower"}, metres=500.0)
    found: list[MoveShut] = []
    run.mission.blocked._journal = lambda e: found.append(e) if isinstance(e, MoveShut) else None
    assert run.run(1500.0, lambda: any("planned" in event.why for event in found))
    points = run.mission.loop.topology.positions
    assert DOOR in {tuple(points[place]) for place in (found[-1].start, found[-1].goal)}


def test_a_shut_move_survives_a_restart_and_opens_in_time(tmp_path: Path) -> None:
    more = {"run_dir": str(tmp_path / "run"), "mission": {"drive_timeout": 20.0}}
    run = voyage(detours=False, **more)
    assert run.run(1500.0, lambda: bool(run.mission.loop.shut))
    shut = run.mission.loop.shut
    run.start_again()
    assert run.mission.loop.shut == shut
    assert set(run.mission.loop.topology.moves) != set(run.mission.loop.whole.moves)
    with RunDirectory.open(tmp_path / "run") as kept:
        (line,) = [line for line in kept.events() if line["event"] == MoveShut.KIND]
    assert run.run(400.0, lambda: not run.mission.loop.shut)
    assert 1e-9 * run.now_ns >= 1e-9 * line["until_ns"]
    assert run.mission.loop.topology is run.mission.loop.whole


@pytest.mark.parametrize(("columns", "rows"), [(4, 4), (5, 1)])
def test_the_move_before_a_place_that_is_refused_is_shut_unless_all_is_beyond(
    columns: int, rows: int
) -> None:
    rig = Rig(grid(columns, rows))
    rig.read(1.0, 0.0)
    rig.mission.start()
    rig.step(1.0)
    goal = rig.sent[-1]
    assert rig.mission.unreachable() == ""
    assert rig.loop.blocked == {goal}
    assert rig.loop.shut == ({(0, goal)} if rows > 1 else set())


def test_no_other_probe_is_led_through_a_move_that_is_shut() -> None:
    team = Team(("a", "b"), map={"columns": 12, "rows": 1})
    team.here("a", "b")
    team.step()
    blocked = team.mission.blocked
    ahead = team.probe("b").plan
    assert ahead is not None
    blocked.replay_move(MoveShut(start=5, goal=ahead.path[0], until_ns=10**12, stamp_ns=1))
    team.mission._avoid_shut_moves()
    assert team.probe("b").plan is None
    assert team.probe("a").plan is not None
