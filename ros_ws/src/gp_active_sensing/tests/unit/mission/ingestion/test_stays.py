from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.ingestion.stays import Stays, StoredAverage, noise_of
from gp_active_sensing.records.event_lines import parse_event
from gp_active_sensing.records.events import ReadingUsed, StayRecord
from gp_active_sensing.topology import RoadMap, Roads, Segment
from gp_active_sensing.types import Reading
from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig, grid, placed


def read(
    t: float, value: float, x: float = 0.0, at: int = 0, variance: float | None = None
) -> Reading:
    return Reading(round(t * SECOND), at, value, variance, position=(x, 0.0))


def take(ours: Stays, reading: Reading, *, begins: bool = False) -> StoredAverage:
    return ours.add(placed(reading), begins=begins)


def stays(noise: float | None = 0.0, near: float = math.inf) -> Stays:
    found = Stays(lambda reading: noise, lambda place: (10.0 * place, 0.0))
    found.near = lambda place: near
    return found


def test_each_further_one_takes_the_place_of_what_was_told() -> None:
    ours = stays()
    first = take(ours, read(1.0, 4.0)).reading
    second = take(ours, read(1.1, 6.0))
    assert second.before.reading == first
    assert (second.reading.value, second.count) == (5.0, 2)
    third = take(ours, read(1.2, 8.0))
    # What goes is known by the stamp it was first told with.
    assert third.before.reading == replace(second.reading, stamp_ns=SECOND)
    assert (third.reading.value, third.reading.stamp_ns) == (6.0, round(1.2 * SECOND))


@for_each(("gap", "together"), [(0.1, True), (4.9, True), (5.0, False)])
def test_a_stay_ends_when_its_place_is_left_for_long(gap: float, together: bool) -> None:
    ours = stays()
    take(ours, read(1.0, 4.0))
    take(ours, read(1.0 + 0.5 * gap, 9.0, at=1))  # elsewhere in between: a pose jumped
    assert (take(ours, read(1.0 + gap, 6.0)).before is not None) is together


def test_only_a_part_that_follows_a_cut_counts_as_farther_off() -> None:
    """As it is taken, and as it is taken again from the journal and goes on."""
    more: dict[str, Any] = {"longest": lambda: 1.0, "parts": lambda: 4.0}
    one, again = (Stays(lambda reading: 0.01, lambda place: (0.0, 0.0), **more) for _ in "12")
    one.near = again.near = lambda place: 1.25
    for t, begins, off in ((1.0, False, 3.0), (2.0, False, 6.0), (3.0, True, 3.0)):
        first, second = read(t, 20.0, x=3.0), read(t + 0.5, 20.0, x=3.0)
        told = take(one, first, begins=begins)
        assert told.reading.off == off, t
        event = ReadingUsed(reading=first, stay=told.to_record())
        assert again.restore_reading(event, begins=begins) == told
        assert take(again, second) == take(one, second), t


def test_the_variance_of_an_average_follows_its_equation() -> None:
    for count, sample, noise, expected in (
        (3, 1.0, 0.1, 0.1 / 3 + 1.0 - 0.4),  # room 1 + 3 sqrt(2 / 2)
        (19, 0.1, 1.0, 0.8 + 0.2 / 19),  # room 1 + 3 sqrt(2 / 18): an error in common
        (4, 0.3, 0.3, 0.075),
    ):
        assert noise_of(count, sample, noise) == pytest.approx(expected, rel=1e-5), count


def test_a_reading_that_comes_late_does_not_make_a_stay_older() -> None:
    ours = stays()
    first = take(ours, read(5.0, 4.0))
    late = take(ours, read(4.0, 6.0))
    assert late.before == first.placed
    assert late.reading.stamp_ns == 5 * SECOND
    assert late.reading.value == 5.0


def test_a_revisit_begins_a_stay_and_is_paid() -> None:
    rig = Rig(grid(4), budget=5, taking={"window": None})
    for t in (1.0, 1.5):
        rig.read(t, 0.0, value=20.0)
    assert rig.loop.remaining.readings == 4
    rig.loop.reservations.make("", (0,), again=True)
    rig.read(2.0, 0.0, value=21.0)
    assert rig.loop.remaining.readings == 3
    assert int(rig.loop.belief.readings[0]) == 2


def test_crossing_a_place_the_readings_near_its_point_count() -> None:
    """Of a slope of 1 per metre read from 5 m before the point to 5 m behind it, in any part."""
    ours, whole = stays(0.01, near=1.25), []
    for i, x in enumerate(np.arange(-5.0, 5.01, 0.2)):
        told = take(ours, read(0.1 * i, 20.0 + float(x), x=float(x)))
        whole.append(told.reading)
    assert whole[-1].value == pytest.approx(20.0, abs=1e-6)
    at_point = whole[25]
    assert abs(at_point.value - 20.0) < 1.0  # a plain average is 2.5 off
    assert at_point.off == pytest.approx(20.0 - at_point.value, rel=1e-3)


def test_equal_readings_of_unknown_noise_have_a_variance_above_zero() -> None:
    ours = stays()
    for i in range(3):
        told = take(ours, read(0.1 * i, 7.0))
    assert told.reading.noise_variance > 0.0


def test_from_the_journal_the_same_comes_out_and_goes_on() -> None:
    rng = np.random.default_rng(3)
    one, other = stays(0.04, near=1.0), stays(0.04, near=1.0)
    for i in range(30):
        reading = read(0.1 * i, float(rng.normal()), x=float(rng.normal()), at=int(i / 10))
        told = take(one, reading)
        event = ReadingUsed(reading=reading, stay=told.to_record())
        assert other.restore_reading(event) == told
    more = read(3.0, 1.0, at=2)
    assert take(one, more) == take(other, more)


def test_a_journal_that_goes_on_with_a_stay_that_never_began_is_refused() -> None:
    with pytest.raises(RunError, match="never began"):
        stays().restore_reading(
            ReadingUsed(reading=read(1.0, 2.0), stay=StayRecord(2, 2.0, None, None))
        )


def drive(rig: Rig, y: float = 0.0) -> None:
    """Drive past the points at 0, 10, 20 and 30 m at 2 m/s with ten readings a second."""
    rng = np.random.default_rng(4)
    for i in range(150):
        t, x = 1.0 + 0.1 * i, 0.2 * i
        rig.seconds = t
        rig.read(t, x, y, value=10.0 + 0.1 * x + 0.1 * rng.standard_normal())


def test_a_probe_that_passes_is_one_reading_a_place_for_the_belief() -> None:
    rig = Rig(grid(4), taking={"window": None})
    drive(rig)
    np.testing.assert_array_equal(rig.loop.belief.readings, [1, 1, 1, 1])
    assert rig.ingestion.pipeline.used == 150  # each of them counts
    mean, variance = rig.loop.belief.predict()
    truth = 10.0 + 0.1 * rig.topology.positions[:, 0]
    assert np.abs(mean - truth).max() < 0.25
    assert (np.abs(mean - truth) < 3.0 * np.sqrt(variance)).all()
    plain = Rig(grid(4), taking={"window": 0.0})
    drive(plain)
    assert (np.sqrt(plain.loop.belief.predict()[1]) < np.sqrt(variance)).all()


def test_a_reading_beside_the_point_says_less_of_it() -> None:
    """Even alone; one at the point counts as it came, on a road any."""
    ours = stays(0.01, near=1.25)
    beside = take(ours, read(1.0, 20.0, x=4.8))
    assert (beside.before, beside.count) == (None, 1)
    assert beside.to_record() is not None
    assert (beside.reading.noise_variance, beside.reading.off) == (0.01, 4.8)
    at = take(ours, read(20.0, 20.0, x=0.099))
    assert at.to_record() is None
    assert (at.reading.noise_variance, at.reading.off) == (None, None)
    assert take(stays(0.01), read(1.0, 20.0, x=4.8)).to_record() is None
    assert take(stays(None, near=1.25), read(1.0, 20.0, x=4.8)).to_record() is None


def test_an_absurd_value_is_a_stay_by_itself() -> None:
    """No average with it can be used: neither it nor those after it are lost, then or later."""
    rig, again = (Rig(grid(4), taking={"window": None}) for _ in range(2))
    for i, value in enumerate((20.0, 20.1, 1e60, 20.0, 20.2)):
        t = 1.0 + 0.1 * i
        rig.seconds = t
        rig.read(t, 0.0, value=value)
    readings = [event for event in rig.events if event["event"] == "reading"]
    assert [event.get("stay", {"count": 1})["count"] for event in readings] == [1, 2, 1, 1, 2]
    assert not rig.ingestion.rejected
    for event in readings:
        again.ingestion.pipeline.replay_reading(parse_event(event))  # type: ignore[arg-type]
    np.testing.assert_array_equal(again.loop.belief.readings, rig.loop.belief.readings)
    assert rig.loop.belief.readings[0] == 3


CHANGING = {
    "window": {"kind": "window", "window": 60.0},
    "injection": {"kind": "injection", "rate": 0.2 / 60.0},
    "kernel": {"kind": "kernel", "time_scale": 60.0},
}


def changing(drift: dict[str, Any]) -> Rig:
    rig = Rig(grid(4, 4), taking={"window": None})
    config = {"length_scales": [20.0], "signal_std": [2.0], "noise_std": [0.2], "mean_std": 10.0}
    belief = build_belief(from_mapping(BeliefConfig, config | drift), rig.topology.features)
    belief.place_at(rig.topology.positions)
    rig.loop.belief = belief
    return rig


def stand(rig: Rig, count: int, start: int = 0) -> None:
    """Stand four metres off the point of place 5, with ten readings a second."""
    rng = np.random.default_rng([0, start])
    for i in range(start, start + count):
        t = 1.0 + 0.1 * i
        rig.read(t, 14.0, 10.0, value=10.3 + 0.2 * float(rng.standard_normal()))


@for_each("seconds", [10, 90])
@for_each("kind", CHANGING)
def test_where_the_field_changes_a_long_stay_is_no_surer_of_the_point(
    kind: str, seconds: int
) -> None:
    """Four metres off the point, in parts of half a second: as sure as one average, or nearly."""
    stds = []
    for drift in ({}, {"drift": CHANGING[kind]}):
        rig = changing(drift)
        stand(rig, 10 * seconds)
        rig.loop.belief.advance(1.0 + seconds)
        stds.append(float(np.sqrt(rig.loop.belief.predict(np.array([5]))[1][0])))
    assert stds[0] == pytest.approx(0.39, rel=0.05)
    assert 0.65 * stds[0] < stds[1] < 1.1 * stds[0]


@for_each(("part", "off"), [(1.0, 0.0), (0.5, 35.4)])
def test_a_bent_road_that_is_driven_whole_is_known_on_average(part: float, off: float) -> None:
    """Its middle is a corner, 35 m off the average of what was read all along it."""
    bend = Segment("a1", "A", "B", ((0.0, 0.0), (100.0, 0.0), (100.0, 100.0)), 200.0,
                   speed_limit=10.0)  # fmt: skip
    rest = Segment("a2", "B", "A", ((100.0, 100.0), (0.0, 100.0), (0.0, 0.0)), 200.0,
                   speed_limit=10.0)  # fmt: skip
    rig = Rig(Roads(RoadMap("bend", "map", (bend, rest))), taking={"window": None}, coverage=0.1)
    for i in range(round(200 * part) + 1):
        t = 1.0 + 0.1 * i
        x, y, heading = (i, 0.0, 0.0) if i <= 100 else (100.0, i - 100.0, 0.5 * math.pi)
        rig.read(t, x, y, heading, value=10.0 + 0.1 * (-1) ** i)
    rig.pose(30.0, 60.0, 100.0, math.pi)  # on the other road
    rig.step(30.0)
    stays = [event["stay"] for event in rig.events if "stay" in event]
    assert stays[-1]["count"] == round(200 * part) + 1
    assert stays[-1]["off"] == pytest.approx(off, abs=1.0)
