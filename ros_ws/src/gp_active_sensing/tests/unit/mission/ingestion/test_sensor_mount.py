"""A reading belongs where the sensor was, which need not be where the pose is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose, mounted
from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig, chain, grid


def positions(rig: Rig) -> list[tuple[float, float]]:
    found = [event["position"] for event in rig.events if event["event"] == "reading"]
    return [(round(x, 9), round(y, 9)) for x, y in found]


@for_each(
    ("heading", "expected"),
    [
        (0.0, (22.0, 1.0)),
        (0.5 * math.pi, (19.0, 2.0)),
        (math.pi, (18.0, -1.0)),
        (-0.5 * math.pi, (21.0, -2.0)),
    ],
)
def test_the_heading_turns_the_mount_into_the_map(
    heading: float, expected: tuple[float, float]
) -> None:
    rig = Rig(grid(5), taking={"mount": (2.0, 1.0)})
    rig.read(1.0, 20.0, 0.0, heading, value=7.0)
    assert positions(rig) == [expected]


def test_on_a_road_the_sensor_has_to_have_driven_it() -> None:
    rig = Rig(chain(), taking={"mount": (-80.0, 0.0)}, coverage=0.5)
    for i in range(21):
        rig.read(1.0 + i, 10.0 * i, value=7.0)
        # The sensor is 80 m behind: on a1 only from x = 80 m on, half of it driven at 130 m.
        assert ("a1" in rig.observed) == (10.0 * i >= 130.0)
    assert "a2" not in rig.observed


def test_without_a_heading_it_may_be_anywhere_about_the_pose() -> None:
    pose = Pose(0, "map", 3.0, 4.0, math.nan, variance=1.0)
    found = mounted(pose, (3.0, 4.0))
    assert (found.x, found.y) == (3.0, 4.0)
    assert found.variance == pytest.approx(1.0 + 25.0)


def test_the_course_over_ground_is_the_heading_of_a_receiver_that_moves() -> None:
    rig = Rig(grid(5), taking={"mount": (-2.0, 0.0)})
    for i in range(5):
        rig.read(1.0 + i, 10.0 * i, 0.0, math.nan, value=7.0)
    assert positions(rig) == [(0.0, 0.0)] + [(10.0 * i - 2.0, 0.0) for i in range(1, 5)]
    lines = [event for event in rig.events if event["event"] == "reading"]
    assert lines[0]["position_variance"] == 4.0, "before it moved"
    assert "position_variance" not in lines[1]


@for_each("std", [0.05, 0.5, 3.0])
def test_an_uncertain_heading_makes_the_place_uncertain(std: float) -> None:
    rng = np.random.default_rng(1)
    pose = Pose(0, "map", 0.0, 0.0, 0.3, turn_variance=std**2)
    found = mounted(pose, (1.5, -0.5))
    drawn = 0.3 + std * rng.standard_normal(200_000)
    x = 1.5 * np.cos(drawn) + 0.5 * np.sin(drawn)
    y = 1.5 * np.sin(drawn) - 0.5 * np.cos(drawn)
    measured = np.mean((x - found.x) ** 2 + (y - found.y) ** 2)
    assert found.variance == pytest.approx(measured, rel=0.02)


def test_what_tf_says_comes_with_the_reading() -> None:
    rig = Rig(grid(5))
    rig.pose(1.0, 20.0)
    for t, mount in ((1.0, (10.0, 0.0)), (1.1, (-10.0, 0.0))):  # two sensors on one topic
        what = RawReading(round(t * SECOND), 7.0, None, mount=mount)
        rig.mission.inbox.put(what, rig.seconds)
    rig.pose(2.0, 20.0)
    rig.step(2.0)
    assert rig.observed == ["c1r0", "c3r0"]
