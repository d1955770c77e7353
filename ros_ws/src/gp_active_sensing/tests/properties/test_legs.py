"""No leg leaves the map: lakes with islands, every policy, whatever happens on the way."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from gp_active_sensing.mission import changes
from gp_active_sensing.mission.course import places_of_plan
from gp_active_sensing.planning import policies
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.types import Budget
from tests.chooser import CHOOSER
from tests.robots import Robot, Voyage

SPACING = 10.0
HAIR = 1e-3
NEEDS = {"external": {"command": [sys.executable, "-S", str(CHOOSER)]}}
NAMES = [name for name in policies.names() if name != "ite"]  # which refuses a grid


def lake(seed: int) -> shapely.Polygon:
    rng = np.random.default_rng([35, seed])
    angles = np.linspace(0.0, math.tau, 40, endpoint=False)
    waves = sum(
        rng.uniform(-0.5, 0.5) / k * np.cos(k * angles + rng.uniform(0.0, math.tau))
        for k in range(1, 8)
    )
    radii = 70.0 * np.clip(1.0 + waves, 0.25, 2.0)
    water = shapely.Polygon(np.column_stack([radii * np.cos(angles), radii * np.sin(angles)]))
    for _ in range(int(rng.integers(1, 6))):
        x, y = rng.uniform(-60.0, 60.0, 2)
        island = shapely.Point(x, y).buffer(rng.uniform(3.0, 18.0), quad_segs=3)
        bar = shapely.LineString([(x, y), (x + rng.normal(0.0, 40.0), y + rng.normal(0.0, 40.0))])
        water = water.difference(island.union(bar.buffer(rng.uniform(1.0, 4.0), quad_segs=1)))
    return max(shapely.get_parts(water), key=lambda part: part.area)


def corners(ring: Any) -> list[list[float]]:
    return [list(point) for point in ring.coords[:-1]]


def mapped(water: shapely.Polygon, **more: Any) -> dict[str, Any]:
    return {
        "kind": "grid",
        "outline": corners(water.exterior),
        "obstacles": [corners(ring) for ring in water.interiors],
        "spacing": SPACING,
        "origin": [0.0, 0.0],
        "largest_component": True,
        **more,
    }


def over_land(water: shapely.Polygon, voyage: Voyage, by: float = HAIR) -> list[Any]:
    """Return the legs that leave the water by more than so much [m]."""
    wide = water.buffer(by)
    return [leg for leg in voyage.legs if not shapely.covers(wide, shapely.LineString(leg))]


def drive(seed: int, tmp_path: Path) -> None:
    """Send a robot around a lake, with a lowered budget, a blocked place and a restart."""
    water, rng = lake(seed), np.random.default_rng([36, seed])
    name = NAMES[seed % len(NAMES)]
    free = rng.random() < 0.25
    area = mapped(water, moves="free" if free else "adjacent", neighbours=4 + 4 * (seed % 2))
    topology = build_topology(MapConfig(**area))
    start, end = rng.integers(topology.n, size=2).tolist()
    x, y = topology.positions[start] + rng.uniform(-2.0, 2.0, 2)
    if not shapely.contains_xy(water, x, y):
        x, y = topology.positions[start]
    config = {
        "map": area,
        "belief": {"length_scales": [20.0, 40.0], "signal_std": [1.0], "noise_std": [0.1]},
        "policy": {"name": name, **NEEDS.get(name, {})},
        "probe": {"end": topology.names[end]},
        "budget": {"readings": 40, "metres": 3000.0},
        "limit": {"expansions": 3},
        "mission": {"wait_for_reading": False, "drive_timeout": 0.0, "block_seconds": 5.0},
        "expert": {"ask": False},
        "waypoint": {"ahead": 1 + seed % 4},
        "run_dir": str(tmp_path / "run"),
    }
    robot = Robot(float(x), float(y), 8.0, acceleration=math.inf, tolerance=0.01, radius=0.02)
    voyage = Voyage(config, robot, rate=1.0)
    voyage.follows = bool(seed % 4)
    voyage.run(3000.0, lambda: voyage.mission.decisions.stage >= 4)
    voyage.mission.unreachable("", "a test")
    voyage.run(3000.0, lambda: voyage.mission.decisions.stage >= 6)
    voyage.run(float(rng.integers(1, 6)))
    if voyage.mission.state != "ended":
        voyage.start_again()
    voyage.run(3000.0, lambda: voyage.mission.decisions.stage >= 8)
    voyage.run(float(rng.integers(1, 6)))
    changes.set_budget(voyage.mission, Budget(40, voyage.mission.driven.metres + 60.0))
    assert voyage.run(3000.0), f"{name}: it comes home"
    assert voyage.mission.state == "ended", voyage.mission.reason
    assert over_land(water, voyage) == [], f"lake {seed}, {name}"
    for path in voyage.routes:
        check_plan(water, topology, path)
    for path in filter(lambda path: len(path) > 1, voyage.paths):
        line = shapely.LineString(topology.positions[list(path)])
        assert shapely.covers(water.buffer(HAIR), line), f"lake {seed}, {name}: next_path"


def check_plan(water: shapely.Polygon, topology: Any, path: tuple[int, ...]) -> None:
    """Fail unless ~/plan stays on the water."""
    from gp_active_sensing.types import Plan

    plan = Plan(path[-1:], 0.0, 0.0, 0, 0.0, deadline_hit=False, path=path)
    begin = topology.positions[path[0]].tolist()
    places = places_of_plan(topology, begin, plan, np.zeros(topology.n, dtype=np.bool_))
    line = topology.positions[list(places)]
    assert len(line) < 2 or shapely.covers(water.buffer(HAIR), shapely.LineString(line))


@pytest.mark.seeds
def test_no_leg_leaves_a_lake(seed: int, tmp_path: Path) -> None:
    drive(seed, tmp_path)


@pytest.mark.long
def test_no_leg_leaves_one_of_200_lakes(tmp_path: Path) -> None:
    for seed in range(200):
        drive(seed, tmp_path / str(seed))


def test_home_from_the_other_arm_of_a_hook() -> None:
    """A budget that is lowered brings a boat home round the land between the arms."""
    hook = [(0, 0), (200, 0), (200, 150), (160, 150), (160, 40), (40, 40), (40, 150), (0, 150)]
    water = shapely.Polygon(hook)
    config = {
        "map": {**mapped(water), "obstacles": []},
        "belief": {"length_scales": [20.0, 40.0], "signal_std": [1.0], "noise_std": [0.1]},
        "policy": {"name": "ie"},
        "probe": {"end": "c1r14"},
        "budget": {"readings": 60, "metres": 5000.0},
        "mission": {"wait_for_reading": False},
    }
    voyage = Voyage(config, Robot(180.0, 140.0))
    voyage.run(600.0, lambda: voyage.mission.decisions.stage >= 5)
    changes.set_budget(voyage.mission, Budget(60, voyage.mission.driven.metres + 1.0))
    before = len(voyage.legs)
    assert voyage.run(2000.0)
    assert len(voyage.legs) - before >= 3, "two corners, and the end place"
    assert over_land(water, voyage, by=1.0) == [], "places on the shore, and a boat overshoots"
    assert math.dist(voyage.robot.way[-1], (10.0, 140.0)) < SPACING


def ashore(seed: int) -> tuple[int, list[Any]]:
    """Return how often a boat drifted ashore, and its legs from water that lead over land."""
    water, rng = lake(seed), np.random.default_rng([37, seed])
    area = mapped(water, moves="adjacent", neighbours=8)
    topology = build_topology(MapConfig(**area))
    config = {
        "map": area,
        "belief": {"length_scales": [20.0, 40.0], "signal_std": [1.0], "noise_std": [0.1]},
        "policy": {"name": "random"},
        "budget": {"readings": 60},
        "pose": {"off_map": 3.0},
        "mission": {"wait_for_reading": False, "drive_timeout": 0.0, "off_map": "return"},
    }
    x, y = topology.positions[int(rng.integers(topology.n))].tolist()
    robot = Robot(x, y, speed=8.0, acceleration=math.inf, tolerance=0.01)
    voyage = Voyage(config, robot, rate=1.0)
    probe, drifted = voyage.mission.probe, 0
    for along in (water.exterior.length * rng.random(6)).tolist():
        stage = voyage.mission.decisions.stage + 3
        voyage.run(500.0, lambda: voyage.mission.decisions.stage >= stage)  # noqa: B023
        point = shapely.line_interpolate_point(water.exterior, along)
        away = np.array([point.x, point.y]) * (1.0 + 12.0 / math.hypot(point.x, point.y))
        if shapely.distance(water, shapely.Point(away)) > 5.0:
            robot.x, robot.y, robot.goal = *away.tolist(), None
            drifted += voyage.run(20.0, lambda: probe.ground.astray is not None)
            voyage.run(20.0, lambda: probe.ground.astray is None)
    legs = over_land(water, voyage)
    return drifted, [leg for leg in legs if shapely.covers(water, shapely.Point(leg[0]))]


def test_a_boat_that_drifted_ashore_comes_back_by_water() -> None:
    """It is sent to the nearest place, and from there on in sight of each waypoint."""
    found = [ashore(seed) for seed in range(12, 26)]
    assert [legs for _, legs in found if legs] == []
    assert sum(drifted for drifted, _ in found) >= 20
