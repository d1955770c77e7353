"""Samples take time: the probe stops at its goal, and reads at the end of the stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.sim import build_world, scenario_from_mapping
from gp_active_sensing.sim.runner import SimulationRunner, build_players
from tests.unit.sim.scenarios import GRID, mapping, scenario

CLOCK = {"kind": "formula", "formula": "t"}
"""A field whose every reading says when it was taken."""
EXACT = {"noise_std": 0.0, "on_the_way": False}


def stopping(seconds: float, **sections: Any) -> Any:
    sensor = {**EXACT, "seconds": seconds, **sections.pop("sensor", {})}
    data = {**mapping(GRID, sensor=sensor, policy={"name": "random"}, **sections), "field": CLOCK}
    return scenario_from_mapping(data)


def stages(what: Any) -> list[Any]:
    runner = SimulationRunner(what, driver="sim")
    runner.on_stage = (records := list[Any]()).append
    assert runner.run(1e6)
    runner.close()
    return records


def test_each_visit_takes_so_long() -> None:
    moving = stages(stopping(0.0))
    found = stages(stopping(60.0))
    assert [r["path"] for r in found] == [r["path"] for r in moving]
    for stage, (with_stop, without) in enumerate(zip(found, moving, strict=True), start=1):
        assert with_stop["driven_seconds"] == pytest.approx(without["driven_seconds"] + 60 * stage)
        assert with_stop["value"] == pytest.approx(with_stop["driven_seconds"])
        assert with_stop["driven_metres"] == without["driven_metres"]


def test_a_budget_of_seconds_counts_the_stops() -> None:
    budget = {"readings": None, "seconds": 31.0}
    moving = stages(stopping(0.0, budget=budget))
    found = stages(stopping(10.0, budget=budget))
    assert 0 < len(found) < len(moving)


def player_of(built: Any) -> Any:
    (player,) = build_players(built, build_world(built)).values()
    return player


def test_a_player_stands_before_it_reads() -> None:
    player = player_of(stopping(30.0))
    player.go_to(1)  # 10 m at 2 m/s
    seconds = 0
    while not (moment := player.step(1.0)).readings:
        seconds += 1
        assert seconds < 100
    (reading,) = moment.readings
    assert (reading.location, reading.value) == (1, pytest.approx(1e-9 * reading.stamp_ns))
    assert seconds + 1 == 35
    player.go_to(1)  # once more where it stands
    assert not any(player.step(1.0).readings for _ in range(29))
    assert player.step(1.0).readings


def test_a_player_that_is_sent_on_does_not_read() -> None:
    player = player_of(stopping(30.0))
    player.go_to(1)
    for _ in range(20):
        player.step(1.0)
    player.go_to(2)
    taken = [r for _ in range(60) for r in player.step(1.0).readings]
    assert [r.location for r in taken] == [2]


def test_places_on_the_way_are_read_in_passing() -> None:
    player = player_of(stopping(30.0, sensor={"on_the_way": True}))
    player.go_to(3)
    taken = [r for _ in range(80) for r in player.step(1.0).readings]
    assert [r.location for r in taken] == [1, 2, 3]
    gaps = np.diff([1e-9 * r.stamp_ns for r in taken])
    assert gaps.tolist() == pytest.approx([5.0, 35.0])


def test_the_mission_of_the_nodes_waits_for_it() -> None:
    for stop in (60.0, 400.0):
        played = SimulationRunner(stopping(stop), period=0.5)
        assert played.run(4000.0)
        assert played.mission.loop.counts["missed"] == 0
        assert not played.mission.loop.blocked
        assert int(played.mission.loop.belief.observed.sum()) == 6
        assert played.seconds > 6 * stop


def test_visits_are_counted_and_the_budget_is_one_of_visits() -> None:
    found = stages(scenario(policy={"name": "gp_ucb", "scale": 50.0}, budget={"readings": 30}))
    assert [record["visits"] for record in found] == list(range(1, 31))
    assert found[-1]["observed"] < 12
    assert "visits" not in stages(scenario(policy={"name": "ie"}))[0]


def test_a_mission_that_would_never_end_does_not_begin() -> None:
    built = scenario(policy={"name": "gp_ucb"}, budget={"readings": None, "metres": 50.0})
    with pytest.raises(ConfigError, match=r"budget\.readings: is needed with policy gp_ucb"):
        stages(built)
