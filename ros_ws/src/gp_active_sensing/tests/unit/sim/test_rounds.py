"""Several simulated probes in rounds: decided together, told together, within the budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import Belief
from gp_active_sensing.records.events import DecisionAsked, Event
from gp_active_sensing.sim import Scenario, scenario_from_mapping
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing.types import PlacedReading
from tests.requesting import asked


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
    def __init__(self, of: Scenario) -> None:
        super().__init__(of, parameters={"mission": {"together": True}}, driver="sim")
        self.records: list[Any] = []
        self.on_stage = self.records.append
        self.loop = self.mission.loop

        self.parts.recorder.listener = self._hear
        self.asked: list[tuple[str, Belief, int, Any]] = []
        """At each question: probe, belief, number of decisions, state of the policy."""

    def _hear(self, event: Event) -> None:
        if isinstance(event, DecisionAsked):
            loop = self.loop
            self.asked.append((event.probe, loop.belief.copy(), loop.decisions, loop.policy_state))

    def first(self) -> list[tuple[str, Belief, int, Any]]:
        """Return what was known at the first question of each round."""
        return [asked for asked in self.asked if asked[0] == "probe_1"]

    def play(self) -> list[Any]:
        assert self.run(1e6)
        return self.records


def test_nothing_is_known_of_a_round_before_it_is_over() -> None:
    """What the policy saw at each decision: readings of earlier rounds only."""
    rounds = Rounds(scenario())
    records = rounds.play()
    seen = [int(belief.readings.sum()) for _, belief, *_ in rounds.asked]
    assert seen == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9, 12, 12, 12]
    assert [record["stage"] for record in records] == list(range(1, 13))
    assert sorted(record["visits"] for record in records) == list(range(1, 13))
    assert [record["probe"] for record in records] == ["probe_1", "probe_2", "probe_3"] * 4
    assert "readings is spent" in rounds.mission.reason


def test_the_goals_of_a_round_are_the_joint_choice() -> None:
    rounds = Rounds(scenario())
    rounds.play()
    _, belief, number, state = rounds.first()[1]
    at = [place for _, place in rounds.sent[:3]]
    plans, _ = rounds.loop.policy.plan_batch(  # type: ignore[attr-defined]
        asked(belief, rounds.world.topology, None, rng=np.random.default_rng([0, number])),
        at,
        state,
    )
    went = [place for _, place in rounds.sent[3:6]]
    assert went == [plan.waypoint for plan in plans]


def test_predictions_and_recommendations_are_those_after_the_round() -> None:
    rounds = Rounds(scenario())
    truth = rounds.truth.at(0.0)
    records = rounds.play()
    beliefs = [belief for _, belief, *_ in rounds.first()]
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
    left = [probe.own_budget.metres for probe in rounds.mission.probes.values()]
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
