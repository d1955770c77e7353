"""A reading whose place is uncertain says less of it: by what the field varies over that."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission.poses import Pose, PoseTrack
from gp_active_sensing.records.event_lines import parse_event
from gp_active_sensing.records.events import ReadingUsed
from gp_active_sensing.report.steps import JournalTeller
from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig, grid


def read_at(rig: Rig, t: float, x: float, variance: float, value: float = 12.0) -> None:
    rig.mission.inbox.put(Pose(round(t * SECOND), "map", x, 0.0, 0.0, variance), rig.seconds)
    rig.reading(t, value, 0.01)
    rig.step(t)


def deviation(rig: Rig, at: int) -> float:
    return math.sqrt(float(rig.loop.belief.predict()[1][at]))


@for_each("window", [None, 0.0, 5.0])
@for_each("own", [None, 0.01])
def test_the_variance_is_the_expected_square_of_the_increment(
    window: float | None, own: float | None
) -> None:
    """Against the covariance itself: 2 (k(0) - k(d)) of neighbours, scaled to the distance."""
    rig = Rig(grid(5), taking={"window": window})
    rig.mission.inbox.put(Pose(SECOND, "map", 20.0, 0.0, 0.0, 9.0), rig.seconds)
    rig.reading(1.0, 12.0, own)
    rig.step(1.0)
    rig.ingestion.stop_waiting()
    belief, ten = rig.loop.belief, 10.0
    expected = []
    for h in belief.hyperparameters:
        # Of the four nearest two are 10 m away and two 20 m.
        scale = float(np.ravel(h.length_scales)[0])
        slopes = [2.0 * (1.0 - math.exp(-0.5 * (d / scale) ** 2)) / d**2 for d in (ten, 2 * ten)]
        expected.append(9.0 * sum(slopes) / 2.0)
    assert belief.varies_by(2, 9.0) == pytest.approx(expected, rel=1e-9)
    precision, *_ = belief._data.places.collapse(
        np.array([2]), belief.noise_variance, None, belief._data._beside(np.array([2]))
    )
    assert 1.0 / precision[:, 0] == pytest.approx([0.01 + v for v in expected], rel=1e-5)


def test_many_readings_of_one_stay_remove_none_of_it() -> None:
    """What makes one position wrong makes all of them wrong: a receiver's error lasts."""
    rig = Rig(grid(5), taking={"window": None})
    found = []
    for i in range(50):
        read_at(rig, 1.0 + 0.1 * i, 20.0, 25.0)
        found.append(deviation(rig, 2))
    lowest = math.sqrt(float(rig.loop.belief.varies_by(2, 25.0).min()))
    assert found[-1] > 0.8 * lowest


@for_each("window", [None, 0.0, 5.0])
def test_the_journal_has_it_and_gives_it_back(window: float | None) -> None:
    rig, other = (Rig(grid(5), taking={"window": window}) for _ in range(2))
    belief = rig.loop.belief.copy()
    report = JournalTeller(belief, rig.topology)
    for i in range(12):
        read_at(rig, 1.0 + i, 5.0 * i, 4.0 + i, 12.0 + 0.3 * i)
    rig.ingestion.stop_waiting()
    lines = [line for line in rig.events if line["event"] == "reading"]
    assert all(line["position_variance"] >= 4.0 for line in lines)
    assert all(line["stay"]["off"] >= 2.0 for line in lines)
    for line in lines:
        event = parse_event(line)
        assert isinstance(event, ReadingUsed)
        other.ingestion.pipeline.tell_again(event)
        assert len(list(report.tell([event]))) == 1
    mine, theirs, shown = (b.predict() for b in (rig.loop.belief, other.loop.belief, belief))
    assert mine[0].tolist() == theirs[0].tolist()
    assert mine[1].tolist() == theirs[1].tolist()
    np.testing.assert_allclose(shown, mine, rtol=1e-9)


def test_the_gate_is_as_much_wider() -> None:
    options = {"gate": 6.0, "gate_places": 3, "window": 0.0}

    def told(variance: float) -> Rig:
        rig = Rig(grid(6), taking=options)
        for i in range(5):
            read_at(rig, 1.0 + i, 10.0 * i, 0.0, 10.0)
        read_at(rig, 9.0, 40.0, variance, 11.5)
        return rig

    assert told(0.0).ingestion.rejected["gated"] == 1
    assert told(900.0).ingestion.rejected["gated"] == 0


@for_each("value", [-5.5e303, 1e200, math.inf])
@for_each("window", [None, 0.0])
def test_a_value_out_of_range_at_an_uncertain_pose_is_counted(
    value: float, window: float | None
) -> None:
    rig = Rig(grid(5), taking={"window": window})
    read_at(rig, 1.0, 20.0, 25.0, value)
    assert sum(rig.ingestion.rejected.values()) == 1
    assert rig.observed == []


def test_what_is_no_covariance_is_counted_and_the_pose_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(grid(5))
    with caplog.at_level(logging.WARNING):
        read_at(rig, 1.0, 20.0, -1.0)
    assert rig.observed == ["c2r0"]
    assert rig.ingestion.checks.bad_covariances == 1
    assert not rig.ingestion.rejected
    assert "pose.covariance: ignore" in caplog.text
    assert "position_variance" not in rig.events[-1]


def test_between_two_poses_it_is_between() -> None:
    track = PoseTrack(10.0, 60.0)
    track.add(Pose(0, "map", 0.0, 0.0, 0.0, 1.0, 0.1, z_variance=1.0))
    track.add(Pose(4 * SECOND, "map", 4.0, 0.0, 0.0, 9.0, 0.5, z_variance=3.0))
    found: Any = track.at(SECOND)
    between = found.variance, found.turn_variance, found.z_variance
    assert between == pytest.approx((3.0, 0.2, 1.5))
