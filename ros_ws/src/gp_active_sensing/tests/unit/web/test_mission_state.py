from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.mission.checkers import MUTE
from gp_active_sensing.mission.fleet import SILENT
from gp_active_sensing.records import events as of
from gp_active_sensing.topology.base import GraphTopology
from gp_active_sensing.types import Budget, Cost, Plan
from gp_active_sensing.web.mission_state import MissionState, SpeedLog, rest_of_route
from tests.cases import for_each


def corner(datum: tuple[float, float] | None = None) -> GraphTopology:
    """Three places: 30 m east, then 40 m north."""
    positions = np.array([[0.0, 0.0], [30.0, 0.0], [30.0, 40.0]])
    return GraphTopology("corner", "map", ("a", "b", "c"), positions, [(), (), ()]).located(datum)


def test_distance_is_along_the_way_and_the_bearing_that_of_its_end() -> None:
    found = rest_of_route(corner(), (0, 1, 2), (0.0, 0.0), 2.0)
    assert found == {"metres": 70.0, "bearing": 36.9, "seconds": 35.0, "north": False}
    halfway = rest_of_route(corner((11.0, 48.0)), (0, 1, 2), (30.0, 10.0), None)
    assert halfway == {"metres": 30.0, "bearing": 0.0, "seconds": None, "north": True}


def test_a_speed_is_measured_while_driving_and_planned_while_standing() -> None:
    speeds, plan = SpeedLog(), Plan((1,), cost=Cost(20.0, 10.0))
    assert speeds.of("", plan) == 2.0
    for second in range(10):
        speeds.add("", second * 10**9, 1.5 * second)
    assert speeds.of("", plan) == pytest.approx(1.5)
    for second in range(10, 60):
        speeds.add("", second * 10**9, 13.5)
    assert speeds.of("", plan) == 2.0
    speeds.add("", 0, 0.0)  # its clock was set back
    assert speeds.of("", Plan((1,))) is None


HERE = of.ProbePosition(130.0, (5, 0.0, 0.0))
LEFT_NOTHING = Plan((1,))
SILENCE = of.RosterChanged(
    stamp_ns=1, probe="boat", why=f"{SILENT} 30 s", where=of.ProbePosition(0.0)
)


@for_each("event, words", [
    (of.StatusNoted(probes={}, alarms=("boat is off the map",)), "off the map"),
    (of.StatusNoted(probes={"boat": of.ProbeStatus(HERE, {})}), "30 m more than its budget"),
    (of.StateChanged(stamp_ns=1, state="paused", reason=f"{MUTE} for 40 s"), MUTE),
    (SILENCE, SILENT),
    (
        of.DecisionTaken(stage=3, plan=LEFT_NOTHING, stamp_ns=1, left=Budget(seconds=-8.0)),
        "8 s beyond its budget",
    ),
])  # fmt: skip
def test_alarms(event: of.Event, words: str) -> None:
    state = MissionState(Budget(metres=100.0, seconds=60.0))
    assert state.alarms_in_words() == []
    state.apply(event)
    (said,) = state.alarms_in_words()
    assert words in said
