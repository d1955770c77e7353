"""Several simulated probes in rounds: decided together, told together, within the budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.planning.request import BatchRequest
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.sim import Scenario, scenario_from_mapping
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing.types import PlacedReading


def scenario(**more: Any) -> Scenario:
    known = {
        "map": {"kind": "points", "count": 60, "low": [0, 0], "high": [1, 1]},
        "field": {"kind": "formula", "formula": "0.6*cos(6*x1) + 0.5*x2"},
        "sensor": {"noise_std": 0.02},
        "belief": {"length_scales": [0.1, 0.3], "signal_std": [0.5], "noise_std": [0.02]},
        "policy": {"name": "ucb_dpp_max"},
        "probes": 3,
        "budget": {"readings": 12},
    }
    return scenario_from_mapping(known | more)


class Rounds(SimulationRunner):
    """Plays round by round."""

    def __init__(self, of: Scenario) -> None:
        super().__init__(of, parameters={"mission": {"together": True}}, driver="sim")
        self.records: list[Any] = []
        self.on_stage = self.records.append
        self.loop = self.mission.loop

    def round(self) -> list[Any]:
        """Go on until the records of a round are there, or the mission is over; return them."""
        done = len(self.records)
        while len(self.records) == done and self.mission.state != "ended":
            self.step()
        return self.records[done:]

    def play(self) -> list[Any]:
        assert self.run(1e6)
        return self.records


def test_nothing_is_known_of_a_round_before_it_is_over() -> None:
    """What the policy saw at each decision: readings of earlier rounds only."""
    rounds = Rounds(scenario())
    seen: list[int] = []

    def hear(event: Any) -> None:
        if event["event"] == "asked":
            seen.append(int(rounds.loop.belief.readings.sum()))

    rounds.parts.recorder.listener = lambda event: hear(to_line(event))
    records = rounds.play()
    assert seen == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9, 12, 12, 12]
    assert [record["stage"] for record in records] == list(range(1, 13))
    assert sorted(record["visits"] for record in records) == list(range(1, 13))
    assert [record["probe"] for record in records] == ["probe_1", "probe_2", "probe_3"] * 4
    assert "readings is spent" in rounds.mission.reason


def test_the_goals_of_a_round_are_the_joint_choice() -> None:
    rounds = Rounds(scenario())
    before: list[tuple[Any, ...]] = []

    def hear(event: Any) -> None:
        if event["event"] == "asked" and event["probe"] == "probe_1":
            loop = rounds.loop
            at = [probe.at for probe in rounds.mission.probes.values()]
            before.append((loop.belief.copy(), at, loop.decisions, loop.policy_state))

    rounds.parts.recorder.listener = lambda event: hear(to_line(event))
    rounds.round()
    rounds.round()
    belief, at, number, state = before[1]
    plans, _ = rounds.loop.policy.plan_batch(  # type: ignore[attr-defined]
        BatchRequest(belief, rounds.world.topology, at, rng=np.random.default_rng([0, number])),
        state,
    )
    went = [place for _, place in rounds.sent[3:6]]
    assert went == [plan.waypoint for plan in plans]


def test_predictions_and_recommendations_are_those_after_the_round() -> None:
    rounds = Rounds(scenario())
    truth = rounds.truth.at(0.0)
    beliefs: list[Any] = []

    def hear(event: Any) -> None:
        if event["event"] == "asked" and event["probe"] == "probe_1":
            beliefs.append(rounds.loop.belief.copy())

    rounds.parts.recorder.listener = lambda event: hear(to_line(event))
    records = rounds.play()
    for number, record in enumerate(records):
        mean, _ = beliefs[1 + number // 3].predict()
        named = int(np.argmax(mean))
        assert record["recommended"] == named
        assert record["recommended_regret"] == pytest.approx(truth.max() - truth[named])
        went = truth.max() - truth[record["location"]]
        assert record["regret"] == pytest.approx(went)
    assert records[-1]["observed"] == int(rounds.loop.belief.observed.sum())
    assert records[-1]["observed"] <= max(record["visits"] for record in records) == 12


def test_each_probe_drives_its_own_budget_and_comes_home() -> None:
    of = scenario(
        map={"kind": "grid", "columns": 6, "rows": 6, "spacing": 10.0},
        field={"kind": "gp", "length_scale": 20.0},
        belief={"length_scales": [20.0], "signal_std": [1.0], "noise_std": [0.1]},
        probe={"start": "random", "end": "start", "speed": 2.0},
        budget={"metres": 120.0, "readings": 60},
    )
    rounds = Rounds(of)
    starts = [player.at for player in rounds.players.values()]
    assert len(set(starts)) == 3
    records = rounds.play()
    assert [player.at for player in rounds.players.values()] == starts
    left = [probe.purse.metres for probe in rounds.mission.probes.values()]
    assert all(metres is not None and metres >= -1e-6 for metres in left)
    driven = rounds.mission.driven
    assert driven.metres == pytest.approx(360.0 - sum(left))  # type: ignore[arg-type]
    # A round takes as long as its longest way: less than all ways one after another.
    assert rounds.seconds < driven.metres / 2.0
    assert len(records) > 3
    assert rounds.mission.reason


def test_readings_of_a_round_are_told_in_the_order_of_time() -> None:
    of = scenario(
        map={"kind": "grid", "columns": 8, "rows": 1, "spacing": 10.0},
        field={"kind": "gp", "length_scale": 20.0},
        belief={"length_scales": [20.0], "signal_std": [1.0], "noise_std": [0.1]},
        probe={"start": 0, "speed": 1.0},
    )
    rounds = Rounds(of)
    told: list[int] = []
    tell = rounds.loop.tell

    def noted(readings: list[PlacedReading]) -> Any:
        told.extend(placed.reading.stamp_ns for placed in readings)
        return tell(readings)

    rounds.loop.tell = noted  # type: ignore[method-assign, assignment]
    rounds.play()
    assert told == sorted(told)
    assert rounds.loop.counts["late"] == 0
