"""Missions of the node that have to end somewhere, without threads and without rclpy."""

from __future__ import annotations

import pytest

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import Budget
from tests.unit.mission.worlds import Rig, chain, grid, place


def go(rig: Rig, t: float, target: int, *, read: bool = True) -> None:
    """Put the probe on a grid's place, with a reading."""
    x, y = rig.topology.positions[target]
    rig.pose(t, float(x), float(y))
    if read:
        rig.reading(t, 5.0)
    rig.step(t)


def started(topology: Topology, **options: object) -> Rig:
    rig = Rig(topology, **options)  # type: ignore[arg-type]
    rig.mission.start()
    rig.pose(1.0, 0.0)
    rig.step(1.0)
    return rig


def test_the_last_waypoint_is_the_end_place_and_arriving_there_ends_it() -> None:
    rig = started(grid(5), budget=Budget(readings=3, end=0))
    t = 1.0
    while rig.mission.probe.stages.home is None:
        t += 1.0
        go(rig, t, rig.sent[-1])
    assert rig.mission.state == "running"
    assert rig.mission.reason.endswith("is spent; on the way to the end place")
    assert rig.sent[-1] == 0
    assert rig.mission.probe.stages.target == 0
    assert len(rig.observed) == 3
    go(rig, t + 1, 1)
    assert rig.mission.state == "running"
    assert not rig.over
    go(rig, t + 5, 0)
    assert rig.over
    assert (rig.mission.state, rig.mission.reason) == ("ended", "the budget of readings is spent")
    kinds = [event["event"] for event in rig.events]
    assert kinds[-2:] == ["moved", "end"]
    assert kinds.count("home") == 1
    assert kinds.count("decision") == rig.mission.probe.stages.number
    home = next(event for event in rig.events if event["event"] == "home")
    assert home["path"][-1] == 0
    driven = sum(event["metres"] for event in rig.events if event["event"] == "moved")
    assert driven == pytest.approx(rig.mission.probe.stages.driven.metres)


def test_where_it_stands_already_nothing_is_sent() -> None:
    rig = started(grid(3), budget=Budget(readings=1, end=0))
    assert rig.sent == [0]
    go(rig, 2.0, 0)
    assert rig.mission.state == "ended"
    assert rig.sent == [0]


def test_back_to_where_it_began() -> None:
    rig = Rig(grid(5), budget=Budget(readings=2), back_to_start=True)
    rig.mission.start()
    rig.pose(0.5, 500.0)
    rig.step(0.5)
    assert rig.sent == [], "the start must be known: off the map it waits"
    rig.pose(1.0, 20.0)
    rig.step(1.0)
    assert rig.probe.purse.end == 2
    for t in range(2, 10):
        if rig.mission.probe.stages.home is None:
            go(rig, float(t), rig.sent[-1])
    assert rig.sent[-1] == 2


def test_after_a_pause_the_way_home_goes_on() -> None:
    rig = started(grid(5), budget=Budget(readings=2, end=0))
    t = 1.0
    while rig.mission.probe.stages.home is None:
        t += 1.0
        go(rig, t, rig.sent[-1])
    sent = len(rig.sent)
    before = rig.mission.probe.stages.driven.metres
    rig.mission.pause()
    rig.pose(t + 1, 40.0)  # carried away, free of charge
    rig.step(t + 1)
    assert rig.mission.resume() == ""
    rig.step(t + 2)
    assert rig.sent[sent:] == [0], "sent again"
    go(rig, t + 3, 0)
    assert rig.mission.state == "ended"
    assert rig.mission.probe.stages.driven.metres == pytest.approx(before + 40.0)


def test_half_a_segment_is_still_to_be_driven_when_the_next_is_chosen() -> None:
    """a1 a2 a3 there and b3 b2 b1 back, 100 m each; decisions fall in the middle of a segment."""
    roads = chain()
    a2, b1 = (place(roads, name) for name in ("a2", "b1"))
    for metres, sent in ((589.0, []), (590.0, [a2])):
        rig = Rig(roads, budget=Budget(metres=metres, end=b1))
        rig.mission.start()
        rig.pose(1.0, 10.0)
        # 90 m to the end of a1, and 500 m back to b1: there is no turning before the dead end.
        if not sent:
            with pytest.raises(PlanningError, match="to 'b1' takes 500 m and 50 s, 499 m are left"):
                rig.step(1.0)
        else:
            rig.step(1.0)
        assert rig.sent == sent
