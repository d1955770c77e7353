"""When a reading counts: near the point of its place, and once the probe has settled there."""

from __future__ import annotations

import pytest

from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig, grid


@for_each("delay", [0.0, 1.5])
@for_each(
    ("apart", "offset", "speed", "spacing"),
    [
        (0.05, 0.0, 4.0, 10.0),
        (0.05, 0.02, 4.0, 5.0),
        (0.1, 0.05, 4.0, 10.0),
        (0.2, 0.05, 2.0, 10.0),
        (1.0, 0.05, 2.0, 10.0),
        (1.0, 0.03, 0.5, 10.0),
    ],
)
def test_readings_are_held_to_the_point_whenever_poses_come(
    apart: float, offset: float, speed: float, spacing: float, delay: float
) -> None:
    """Poses every `apart` seconds, readings every 0.1 s and `offset` later: it says where it is."""
    rig = Rig(grid(4, spacing=spacing), taking={"window": None, "delay": delay})

    def at(t: float) -> float:
        return min(max(speed * (t - 8.0), 0.0), spacing)  # from a point to the next one

    last = 8.0 + spacing / speed + delay + 1.2  # it has been there for a pose and a reading
    messages = [(1.0 + apart * i, "pose") for i in range(round((last - 1.0) / apart) + 1)]
    messages += [(1.0 + offset + 0.1 * i, "reading") for i in range(round(10.0 * (last - 1.0)))]
    for t, what in sorted(messages):
        rig.seconds = t
        if what == "pose":
            rig.pose(t, at(t))
        else:
            rig.reading(t, at(t - delay))
        rig.step(t)
        if rig.loop.belief.observed[1]:
            break
    told = [event["value"] for event in rig.events if event["event"] == "reading"]
    assert rig.observed == ["c0r0", "c1r0"]
    assert spacing - max(told) <= 0.1 * spacing + speed * 0.1


@for_each("window", [None, 0.0])
def test_a_probe_that_stands_beside_the_point_and_says_no_pose_is_at_the_place(
    window: float | None,
) -> None:
    """Some localisations speak only while the probe moves; it stops short of each point."""
    rig = Rig(grid(4), arrival_radius=2.0, reading_timeout=5.0, taking={"window": window})
    rig.mission.start()
    x = 0.0
    for number in range(600):
        t = 1.0 + 0.1 * number
        rig.seconds = t
        goal = rig.topology.positions[rig.sent[-1], 0] - 1.5 if rig.sent else 0.0
        if number == 0 or x < goal:
            x = min(max(goal, 0.0), x + 0.4)
            rig.pose(t, x)
        rig.reading(t, 10.0)
        rig.step(t)
    assert len(rig.observed) == 4
    assert not rig.loop.set_aside


def test_readings_before_it_has_settled_are_counted_and_not_used() -> None:
    rig = Rig(grid(3), arrival_radius=2.0, settle=3.0)
    for i in range(60):
        t, x = 0.1 * i, min(0.0, -5.0 + i)  # at the point from 0.5 s on; within 2 m from 0.3 s on
        rig.read(1.0 + t, x, value=7.0)
        assert rig.loop.belief.observed[0] == (t >= 3.3 - 1e-9)
    assert rig.ingestion.rejected["settling"] == 33
    assert rig.loop.counts["accepted"] == 60 - 33


@for_each("window", [None, 0.0])
def test_readings_that_are_late_and_have_to_settle_are_waited_for(window: float | None) -> None:
    """Each place gives one: 3 s to settle and 4 s until the sensor says it, 2 s to wait."""
    rig = Rig(
        grid(3),
        taking={"window": window, "delay": 4.0},
        budget=3,
        arrival_radius=2.0,
        reading_timeout=2.0,
        settle=3.0,
    )
    rig.mission.start()
    been: list[tuple[float, float]] = []
    x = 0.0
    for i in range(600):
        t = 1.0 + 0.1 * i
        goal = 10.0 * rig.sent[-1] if rig.sent else 0.0
        x += max(-0.4, min(0.4, goal - x))
        been.append((t, x))
        rig.seconds = t
        rig.pose(t, x)
        if i >= 40:
            rig.reading(t, been[i - 40][1])
        rig.step(t)
    assert rig.mission.state == "ended", rig.mission.reason
    assert rig.sent == sorted(set(rig.sent)), "no place is waited for twice"
    assert rig.loop.belief.observed.all()
    assert not rig.loop.set_aside
    assert not [event for event in rig.events if event["event"] == "miss"]
    for event in rig.events:
        if event["event"] == "reading":
            stood = [s for s, at in been if abs(at - 10.0 * event["location"]) <= 2.0 + 1e-9]
            assert event["stamp_ns"] / SECOND - stood[0] >= 3.0 - 1e-6
            assert event["value"] == pytest.approx(10.0 * event["location"], abs=2.0)
