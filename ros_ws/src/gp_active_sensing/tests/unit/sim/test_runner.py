"""Whole missions of simulated probes in virtual time: shared, safe, the same every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission import changes
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.sim import Scenario, scenario_from_mapping
from gp_active_sensing.sim.runner import SimulationRunner

NAMES = ("a", "b", "c")
REVISITING = ("gp_ucb", "thompson", "gp_bucb", "ucb_dpp_max", "est_dpp_sample", "lp_ucb")


def some_map(rng: np.random.Generator) -> dict[str, Any]:
    if rng.random() < 0.3:
        return {"kind": "roads", "file": "town.geojson", "features": ["x", "y"]}
    columns, rows = rng.integers(2, 7, size=2).tolist()
    found = {"kind": "grid", "columns": columns, "rows": rows, "spacing": 10.0, "speed": 5.0}
    if rng.random() < 0.3:
        found["moves"] = "free"
    elif rng.random() < 0.3:
        found["reach"] = 25.0
    return found


def some_scenario(seed: int, policies: tuple[str, ...] = ("random", "max_entropy")) -> Scenario:
    """Map, budget, sensor and end place as the seed has it."""
    rng = np.random.default_rng([seed, 0xF1])
    budget: dict[str, Any] = {"readings": int(rng.integers(1, 13))}
    if rng.random() < 0.4:
        budget["metres"] = float(rng.uniform(200.0, 900.0))
    probe: dict[str, Any] = {"start": "random"}
    if "metres" in budget and rng.random() < 0.5:
        probe["end"] = "start"
    return scenario_from_mapping(
        {
            "name": "some",
            "seed": seed,
            "map": some_map(rng),
            "field": {"kind": "gp", "length_scale": 20.0, "signal_std": 3.0},
            "sensor": {
                "noise_std": 0.3,
                "dropout": float(rng.choice([0.0, 0.3])),
                "on_the_way": bool(rng.random() < 0.7),
            },
            "probe": probe,
            "belief": {"length_scales": [20.0], "signal_std": [3.0], "noise_std": [0.3]},
            "policy": {"name": str(rng.choice(policies))},
            "budget": budget,
            "limit": {"expansions": 5},
        }
    )


def check(runner: SimulationRunner, readings: int) -> None:
    """Nobody is sent where another one goes, and no reading is taken that is not left."""
    mission = runner.mission
    goals = [p.plan.waypoints[0] for p in mission.fleet.present if p.plan is not None]
    assert len(goals) == len(set(goals)), "two probes are sent to one place"
    left = mission.loop.remaining.readings
    assert left is not None
    assert sum(mission.loop.costs(goal) for goal in goals) <= left
    assert int(mission.loop.belief.observed.sum()) <= readings - left


@pytest.mark.slow
@pytest.mark.seeds(0.5)
def test_whoever_dies_and_comes_back_the_others_share_what_is_left(seed: int) -> None:
    trouble(some_scenario(seed), seed)


@pytest.mark.slow
@pytest.mark.seeds(0.25)
def test_so_they_do_where_places_are_visited_again_and_choices_are_joint(seed: int) -> None:
    trouble(some_scenario(seed, REVISITING), seed, together=bool(seed % 2))


def trouble(scenario: Scenario, seed: int, **mission: Any) -> None:
    """Let probes die, leave, come back and be stopped until the mission is over."""
    readings = scenario.budget.readings
    assert readings is not None
    rng = np.random.default_rng([seed, 0xD1E])
    quick = {"lost_after": 5.0, "reading_timeout": 3.0, "block_seconds": 20.0, "retries": 1}
    runner = SimulationRunner(scenario, NAMES, parameters={"mission": quick | mission}, period=1.0)
    while not runner.mission.state == "ended":
        assert runner.seconds < 3000.0, "it does not end"
        dice = rng.random(3)
        name = str(rng.choice(NAMES))
        if dice[0] < 0.02:
            runner.silent ^= {name}
        elif dice[0] < 0.03:
            changes.leave(runner.mission, name)
        elif dice[0] < 0.06:
            changes.join(runner.mission, name)
        elif dice[0] < 0.07:
            runner.mission.unreachable(name)
        elif dice[0] < 0.08:
            runner.mission.pause()
            runner.step()
            runner.mission.resume()
        if runner.seconds > 500.0:  # after all the trouble, somebody finishes it
            runner.silent.clear()
            for other in NAMES:
                changes.join(runner.mission, other)
        runner.step()
        check(runner, readings)
    loop = runner.mission.loop
    if runner.mission.reason == "the budget of readings is spent":
        assert loop.remaining.readings == 0
        assert loop.revisits or int(loop.belief.observed.sum()) == readings


DRIFTING: list[dict[str, Any]] = [
    {"policy": {"name": "sw_gp_ucb", "window": 33.0}},
    {
        "policy": {"name": "sparq_gp_ucb", "step": 20.0},
        "expert": {"kind": "model", "noise_std": 0.1, "faults": 1.0, "timeout": 30.0},
    },
    {
        "policy": {"name": "max_entropy"},
        "belief": {
            "length_scales": [20.0],
            "signal_std": [3.0],
            "noise_std": [0.3],
            "drift": {"kind": "injection", "rate": 0.01, "forget_after": 27.0},
        },
    },
]


def grid(**sections: Any) -> Scenario:
    return scenario_from_mapping(
        {
            "name": "some",
            "seed": 4,
            "map": {"kind": "grid", "columns": 6, "rows": 4, "spacing": 10.0, "speed": 5.0},
            "field": {"kind": "gp", "length_scale": 20.0, "signal_std": 3.0},
            "sensor": {"noise_std": 0.3},
            "probe": {"start": 0},
            "belief": {"length_scales": [20.0], "signal_std": [3.0], "noise_std": [0.3]},
            "budget": {"readings": 30},
            **sections,
        }
    )


def test_a_mission_about_a_field_that_changes_comes_to_its_end() -> None:
    """What is forgotten between a reading and a decision is forgotten for the mission, too."""
    for sections in DRIFTING:
        runner = SimulationRunner(grid(**sections), period=2.0)
        assert runner.run(6000.0)
        assert runner.mission.reason == "the budget of readings is spent"
        assert runner.mission.loop.decisions <= 31


def test_policies_that_choose_among_all_places_keep_their_metres() -> None:
    """The probe drives the way that was planned, not another one through places it has passed."""
    for seed in range(3):
        built = grid(
            seed=seed,
            map={"kind": "grid", "columns": 14, "rows": 14, "spacing": 10.0, "speed": 5.0},
            policy={"name": "gp_ucb"},
            budget={"readings": 60, "metres": 300.0},
            probe={"start": 0, "end": "start"},
        )
        runner = SimulationRunner(built)
        assert runner.run(3000.0)
        assert runner.mission.probe.remaining.metres >= -1e-6


def test_one_wrong_stamp_does_not_make_all_else_out_of_date() -> None:
    lenient = {"pose": {"max_ahead": 1e6}}
    runner = SimulationRunner(
        grid(policy={"name": "sw_gp_ucb", "window": 60.0}), parameters=lenient
    )
    runner.run(30.0)
    mission = runner.mission
    late = runner.now_ns + 86_400 * 10**9
    x, y = mission.loop.topology.positions[5].tolist()
    mission.inbox.put(Pose(late, "map", x, y, 0.0), runner.clock())
    mission.inbox.put(RawReading(late, 1.0, None), runner.clock())
    assert runner.run(3000.0)
    assert mission.rejected["stamp_ahead"] == 1
    assert mission.loop.belief.seconds < 1e-9 * late - 3600.0
