from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from gp_active_sensing.messages.twists import Twists
from gp_active_sensing.mission.ingestion.odometer import Odometer
from gp_active_sensing.mission.poses import Pose
from tests.cases import for_each
from tests.robots import SECOND, Localisation, Robot

GPS = {"white": 0.15, "slow": 0.6}
AMCL = {"white": 0.03, "slow": 0.05, "memory": 20.0}


def odometer(spacing: float = 10.0, *, twists: bool = False) -> Odometer:
    return Odometer(0.2 * spacing, lambda x, y, z: math.hypot(x, y), twists=twists)


def lawnmower(step: float, rows: int) -> list[tuple[float, float]]:
    return [(x, row * step) for row in range(rows) for x in ((0, 80), (80, 0))[row % 2]]


def driven(robot: Robot, goals: list[tuple[float, float]], dt: float) -> Iterator[int]:
    """Drive to goals and rest at every fifth; yield the time after each step."""
    now_ns = SECOND
    for number, goal in enumerate(goals):
        robot.goal = goal
        waits = 0.0
        while waits < (8.0 if number % 5 == 4 else 0.0) or (
            math.dist((robot.x, robot.y), goal) > robot.tolerance + 0.3
        ):
            robot.step(dt)
            near = math.dist((robot.x, robot.y), goal) <= robot.tolerance + 0.3
            waits += dt if near else 0.0
            now_ns += round(SECOND * dt)
            yield now_ns


@for_each("memory, variance, rate", [(20.0, 0.0, 5.0), (60.0, 0.0, 5.0), (300.0, 0.77, 1.0)])
def test_a_boat_at_anchor_drives_nothing(memory: float, variance: float, rate: float) -> None:
    for seed in range(8):
        gps, meter = Localisation(**GPS, memory=memory, variance=variance, seed=seed), odometer()
        for k in range(round(600 * rate)):
            meter.add(gps.pose(SECOND + round(k * SECOND / rate), 0.0, 0.0))
        assert meter.metres <= 1.0, (memory, variance, seed)


@for_each(
    "noise, speed, rate, scale",
    [
        ({}, 3.0, 10.0, 1.0),  # exact odometry
        ({"white": 0.005}, 1.0, 50.0, 0.1),  # wheels
        (GPS, 3.0, 5.0, 1.0),
        (GPS, 1.5, 1.0, 1.0),
        (AMCL, 0.4, 10.0, 0.1),
        (AMCL, 0.5, 2.0, 0.1),
    ],
)
def test_a_drive_counts_as_long_as_it_is(
    noise: dict[str, float], speed: float, rate: float, scale: float
) -> None:
    """To 3 %, with a covariance and without one."""
    goals = [(scale * x, scale * y) for x, y in lawnmower(15.0, 12)]
    for variance in (0.0, 2.0 * sum(noise.get(k, 0.0) ** 2 for k in ("white", "slow"))):
        robot = Robot(0.0, 0.0, speed=speed, tolerance=0.5 * scale)
        where, meter = Localisation(**noise, variance=variance, seed=3), odometer(10.0 * scale)
        for now_ns in driven(robot, goals, 1.0 / rate):
            meter.add(where.pose(now_ns, robot.x, robot.y))
        assert meter.metres == pytest.approx(robot.metres, rel=0.03), variance


def test_exact_poses_count_to_the_bit() -> None:
    rng = np.random.default_rng(2)
    for dt in (0.1, 0.5, 1.0, 2.0):
        meter, total, before = odometer(), 0.0, (0.0, 0.0)
        for k in range(400):
            dx, dy = rng.choice([(0, 0), (10, 0), (-10, 0), (0, 10), (0, -10), (10, 10)])
            here = before[0] + float(dx), before[1] + float(dy)
            if k:
                total += math.hypot(here[0] - before[0], here[1] - before[1])
            meter.add(Pose(round(SECOND * (1 + k * dt)), "map", *here, 0.0))
            before = here
        assert meter.metres == total
        assert meter.memory == ()


def test_a_twist_says_that_the_robot_stands() -> None:
    meter, gps = odometer(), Localisation(white=0.15, slow=3.0, memory=10.0, variance=18.0)
    for k in range(600):
        x, speed = (0.3 * k, 1.5) if k < 100 else (30.0, 0.0)
        pose = gps.pose(SECOND + k * SECOND // 5, x, 0.0)
        meter.add(Pose(pose.stamp_ns, "map", pose.x, pose.y, 0.0, pose.variance, speed=speed))
        if k == 99:
            moved = meter.metres
    assert moved > 20.0
    assert meter.metres <= moved + 3.0


def test_it_goes_on_after_a_restart_as_if_there_had_been_none() -> None:
    gps, one, other = Localisation(**GPS), odometer(), odometer()
    for k in range(400):
        pose = gps.pose(SECOND + k * SECOND // 5, 0.2 * max(0, k - 100), 0.0)
        one.add(pose)
        other.add(pose)
        if k % 37 == 36:
            again = odometer()
            again.recall(other.metres, other.counted, other.memory)
            other = again
    assert (one.metres, one.counted, one.memory) == (other.metres, other.counted, other.memory)
    with pytest.raises(ValueError, match="17"):
        odometer().recall(1.0, one.counted, (1.0,))


def test_a_measured_velocity_tells_a_drift_from_a_drive() -> None:
    """A Doppler velocity with noise of its own: at anchor nothing counts, on a drive all does."""
    for seed in range(10):
        gps, meter = Localisation(**GPS, seed=seed), odometer(twists=True)
        twists, rng = Twists("geometry_msgs/msg/Twist"), np.random.default_rng(seed)

        def add(now_ns: int, robot: Robot) -> None:
            noise = 0.03 * rng.normal(size=2)  # noqa: B023
            linear = SimpleNamespace(x=robot.vx + noise[0], y=robot.vy + noise[1], z=0.0)
            twists.note(SimpleNamespace(linear=linear), now_ns)  # noqa: B023
            pose = gps.pose(now_ns, robot.x, robot.y)  # noqa: B023
            meter.add(twists.beside(pose))  # noqa: B023

        robot = Robot(0.0, 0.0)
        for k in range(600):
            add((1 + k) * SECOND, robot)
        assert meter.metres == 0.0, seed
        for now_ns in driven(robot, lawnmower(15.0, 6), 0.2):
            add(600 * SECOND + now_ns, robot)
        robot.vx = robot.vy = 0.0
        for k in range(1, 600):
            add((600 + k) * SECOND + now_ns, robot)
        assert meter.metres == pytest.approx(robot.metres, rel=0.03), seed


def test_a_velocity_counts_for_poses_of_its_time_only() -> None:
    twists, pose = Twists("geometry_msgs/msg/Twist"), Pose(5 * SECOND, "map", 0.0, 0.0, math.nan)
    assert math.isnan(twists.beside(pose).speed)
    still = SimpleNamespace(linear=SimpleNamespace(x=0.0, y=0.0, z=0.0))
    twists.note(still, 3 * SECOND)
    assert math.isnan(twists.beside(pose).speed)
    twists.note(still, 5 * SECOND)
    assert twists.beside(pose).speed == 0.0
    for absurd in (math.nan, 1e308):
        velocity = SimpleNamespace(x=absurd, y=0.0, z=0.0)
        with pytest.raises(ValueError, match="finite"):
            twists.note(SimpleNamespace(linear=velocity), 6 * SECOND)
    assert twists.beside(pose).speed == 0.0
