from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose, mounted
from gp_active_sensing.records.event_lines import parse_event
from gp_active_sensing.records.events import ReadingUsed
from gp_active_sensing.report.steps import BeliefUpdater
from gp_active_sensing.topology import Topology, make_grid
from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig, chain, grid


def read_near(rig: Rig, t: float, x: float, variance: float, value: float = 12.0) -> None:
    rig.mission.inbox.put(Pose(round(t * SECOND), "map", x, 0.0, 0.0, variance), rig.seconds)
    rig.reading(t, value, 0.01)
    rig.step(t)


def deviation(rig: Rig, at: int) -> float:
    return math.sqrt(float(rig.loop.belief.predict()[1][at]))


def test_the_variance_is_the_expected_square_of_the_increment() -> None:
    """Against the covariance itself: 2 (k(0) - k(d)) of neighbours, scaled to the distance."""
    belief, ten = Rig(grid(5)).loop.belief, 10.0
    expected = []
    for h in belief.hyperparameters:
        # Of the four nearest two are 10 m away and two 20 m.
        scale = float(np.ravel(h.length_scales)[0])
        slopes = [2.0 * (1.0 - math.exp(-0.5 * (d / scale) ** 2)) / d**2 for d in (ten, 2 * ten)]
        expected.append(9.0 * sum(slopes) / 2.0)
    assert belief.varies_by(2, 9.0) == pytest.approx(expected, rel=1e-9)


def test_many_readings_of_one_stay_remove_none_of_it() -> None:
    """What makes one position wrong makes all of them wrong: a receiver's error lasts."""
    rig = Rig(grid(5), taking={"window": None})
    found = []
    for i in range(50):
        read_near(rig, 1.0 + 0.1 * i, 20.0, 25.0)
        found.append(deviation(rig, 2))
    lowest = math.sqrt(float(rig.loop.belief.varies_by(2, 25.0).min()))
    assert found[-1] > 0.8 * lowest


@for_each("window", [None, 0.0, 5.0])
def test_the_journal_has_it_and_gives_it_back(window: float | None) -> None:
    rig, other = (Rig(grid(5), taking={"window": window}) for _ in range(2))
    belief = rig.loop.belief.copy()
    report = BeliefUpdater(belief, rig.topology)
    for i in range(12):
        read_near(rig, 1.0 + i, 5.0 * i, 4.0 + i, 12.0 + 0.3 * i)
    rig.ingestion.stop_waiting()
    lines = [line for line in rig.events if line["event"] == "reading"]
    assert all(line["position_variance"] >= 4.0 for line in lines)
    assert all(line["stay"]["off"] >= 2.0 for line in lines)
    for line in lines:
        event = parse_event(line)
        assert isinstance(event, ReadingUsed)
        other.ingestion.pipeline.replay_reading(event)
        assert report.add(event) is not None
    mine, theirs, shown = (b.predict() for b in (rig.loop.belief, other.loop.belief, belief))
    assert mine[0].tolist() == theirs[0].tolist()
    assert mine[1].tolist() == theirs[1].tolist()
    np.testing.assert_allclose(shown, mine, rtol=1e-9)


def test_the_gate_is_as_much_wider() -> None:
    options = {"gate": 6.0, "gate_places": 3, "window": 0.0}

    def told(variance: float) -> Rig:
        rig = Rig(grid(6), taking=options)
        for i in range(5):
            read_near(rig, 1.0 + i, 10.0 * i, 0.0, 10.0)
        read_near(rig, 9.0, 40.0, variance, 11.5)
        return rig

    assert told(0.0).ingestion.rejected["gated"] == 1
    assert told(900.0).ingestion.rejected["gated"] == 0


@for_each("value", [-5.5e303, 1e200, math.inf])
@for_each("window", [None, 0.0])
def test_a_value_out_of_range_at_an_uncertain_pose_is_counted(
    value: float, window: float | None
) -> None:
    rig = Rig(grid(5), taking={"window": window})
    read_near(rig, 1.0, 20.0, 25.0, value)
    assert sum(rig.ingestion.rejected.values()) == 1
    assert rig.observed == []


def test_what_is_no_covariance_is_counted_and_the_pose_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(grid(5))
    with caplog.at_level(logging.WARNING):
        read_near(rig, 1.0, 20.0, -1.0)
    assert rig.observed == ["c2r0"]
    assert rig.ingestion.checks.bad_covariances == 1
    assert not rig.ingestion.rejected
    assert "pose.covariance: ignore" in caplog.text
    assert "position_variance" not in rig.events[-1]


STEP, LAYER = 10.0, 2.0


def column() -> Topology:
    """Five places from west to east in each of four layers, 2 m apart."""
    return make_grid(5, 1, STEP, heights=[0.0, -LAYER, -2 * LAYER, -3 * LAYER])


def read_at(
    rig: Rig, t: float, x: float, z: float, variance: float = 0.0, z_variance: float = 0.0,
    *, value: float = 12.0, heading: float = 0.0,
) -> None:  # fmt: skip
    pose = Pose(round(t * SECOND), "map", x, 0.0, heading, variance, z=z, z_variance=z_variance)
    rig.mission.inbox.put(pose, rig.seconds)
    rig.reading(t, value, 0.01)
    rig.step(t)


def lines(rig: Rig) -> list[dict[str, Any]]:
    return [event for event in rig.events if event["event"] == "reading"]


@for_each("window", [None, 0.0, 5.0])
def test_the_variance_of_a_reading_is_its_own_and_what_the_field_varies_by(
    window: float | None,
) -> None:
    rig = Rig(column(), taking={"window": window})
    read_at(rig, 1.0, 20.0, -LAYER, variance=9.0, z_variance=0.5)
    rig.ingestion.stop_waiting()
    belief, place = rig.loop.belief, rig.topology.names.index("c2r0z1")
    precision, *_ = belief._data.places.collapse(
        np.array([place]), belief.noise_variance, None, belief._data._beside(np.array([place]))
    )
    expected = 0.01 + belief.varies_by(place, 9.0, 0.5)
    assert 1.0 / precision[:, 0] == pytest.approx(expected, rel=1e-5)
    [line] = lines(rig)
    assert (line["position_variance"], line["height_variance"]) == (9.0, 0.5)
    assert line["position"] == [20.0, 0.0, -LAYER]
    if window is None:
        assert line["stay"]["off"] == pytest.approx([3.0, math.sqrt(0.5)], rel=1e-5)


@for_each(
    ("mount", "heading", "name"),
    [
        ((0.0, 0.0), 0.0, "c2r0z1"),
        ((0.0, 0.0, -2.0), 0.0, "c2r0z2"),
        ((0.0, 0.0, 2.0), math.nan, "c2r0z0"),
        ((10.0, 0.0, -4.0), 0.0, "c3r0z3"),
        ((10.0, 0.0, -4.0), math.pi, "c1r0z3"),
    ],
)
def test_a_reading_counts_for_the_layer_of_its_sensor(
    mount: tuple[float, ...], heading: float, name: str
) -> None:
    rig = Rig(column(), taking={"mount": mount})
    read_at(rig, 1.0, 20.0, -LAYER, heading=heading)
    assert rig.observed == [name]
    here = rig.ingestion.here
    assert rig.topology.names[here.place] == "c2r0z1", "the probe itself"


def test_a_reading_far_above_the_map_is_off_it(caplog: pytest.LogCaptureFixture) -> None:
    """Of 10 m across and 2 m up, 9 m up are farther than a place is from the next."""
    rig = Rig(column(), taking={"mount": (0.0, 0.0, 9.0)})
    read_at(rig, 1.0, 20.0, 0.0)
    assert rig.ingestion.rejected == {"off_map": 1}
    assert "taken at (20.0, 0.0, 9.0), farther than 10 m from every place" in caplog.text


def positions(rig: Rig) -> list[tuple[float, float]]:
    found = [event["position"] for event in rig.events if event["event"] == "reading"]
    return [(round(x, 9), round(y, 9)) for x, y in found]


def test_on_a_road_the_sensor_has_to_have_driven_it() -> None:
    rig = Rig(chain(), taking={"mount": (-80.0, 0.0)}, coverage=0.5)
    for i in range(21):
        rig.read(1.0 + i, 10.0 * i, value=7.0)
        # The sensor is 80 m behind: on a1 only from x = 80 m on, half of it driven at 130 m.
        assert ("a1" in rig.observed) == (10.0 * i >= 130.0)
    assert "a2" not in rig.observed


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
