"""A mission for which nobody says what chooses: the default has to do in every one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.planning import DEFAULT_POLICY, build_policy
from gp_active_sensing.replay.options import ReplayOptions, settled
from gp_active_sensing.sim import Scenario, build_loop, build_world, run_scenario
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing.sim.scenario import scenario_from_mapping

GRID = {"kind": "grid", "columns": 6, "rows": 4, "spacing": 10.0, "speed": 5.0}
FORGETS = {"drift": {"kind": "injection", "doubling": 30.0, "forget_after": 27.0}}
EXPERT = {"kind": "model", "noise_std": 0.1}
MISSIONS: dict[str, dict[str, Any]] = {
    "readings": {"budget": {"readings": 9}},
    "metres and the way home": {"budget": {"metres": 160.0}, "probe": {"start": 3, "end": "start"}},
    "seconds": {"budget": {"seconds": 40.0}},
    "no budget": {"budget": {}},
    "an error": {"budget": {"error": 1.5}},
    "a field that drifts": {"budget": {"readings": 20}, "belief": FORGETS},
    "an expert that nobody asks": {"budget": {"readings": 6}, "expert": EXPERT},
    "goals only": {"budget": {"readings": 6}, "sensor": {"on_the_way": False}},
    "far moves": {"budget": {"readings": 6}, "map": {"reach": 25.0}},
    "any place": {"budget": {"readings": 6}, "map": {"moves": "free"}},
    "any place, metres": {"budget": {"metres": 150.0}, "map": {"moves": "free"}},
    "roads": {"budget": {"metres": 1500.0}, "map": {"kind": "roads", "file": "town.geojson"}},
    "a sensor that drops out": {"budget": {"readings": 6}, "sensor": {"dropout": 0.3}},
}


def scenario(sections: dict[str, Any]) -> Scenario:
    own = dict(sections)
    place = own.pop("map", {})
    return scenario_from_mapping(
        {
            "name": "unsaid",
            "seed": 4,
            "map": place if "kind" in place else {**GRID, **place},
            "field": {"kind": "gp", "length_scale": 20.0, "signal_std": 3.0},
            "sensor": {"noise_std": 0.3, **own.pop("sensor", {})},
            "probe": {"start": 0},
            "limit": {"expansions": 20},
            **own,
        }
    )


def test_there_is_one_default() -> None:
    build_policy(DEFAULT_POLICY)
    name = DEFAULT_POLICY["name"]
    assert scenario({}).policy["name"] == name
    assert from_mapping(ActiveSensingConfig, {"map": GRID}).policy == DEFAULT_POLICY
    given = ReplayOptions(overrides=tuple(f"map.{key}={value}" for key, value in GRID.items()))
    assert settled(given, None, {}, follow=True)[0].policy["name"] == name


@pytest.mark.parametrize("sections", MISSIONS.values(), ids=list(MISSIONS))
def test_it_drives_any_mission(sections: dict[str, Any], tmp_path: Path) -> None:
    summary = run_scenario(scenario(sections), tmp_path / "run")
    budget = sections["budget"]
    assert summary.status == "finished"
    assert summary.policy == DEFAULT_POLICY["name"]
    assert summary.observed >= 2
    if budget.get("readings"):
        assert summary.observed <= budget["readings"]
    if budget.get("metres"):
        assert summary.metres <= budget["metres"] + 1e-6
    if budget.get("seconds"):
        assert summary.seconds <= budget["seconds"] + 1e-6
    if not budget:
        assert summary.observed == 24


@pytest.mark.parametrize("probes", [3])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("budget", [{"metres": 90.0}], ids=str)
def test_several_probes_share_the_map(probes: int, together: bool, budget: dict[str, Any]) -> None:
    built = scenario({"budget": budget, "probes": probes})
    runner = SimulationRunner(built, parameters={"mission": {"together": together}})
    assert runner.run(3000.0)
    observed = int(runner.mission.loop.belief.observed.sum())
    assert 2 * probes <= observed <= budget.get("readings", 24)
    for probe in runner.mission.probes.values():
        assert probe.left.metres is None or probe.left.metres >= -1e-6


def test_a_probe_that_is_driven_for_ever_is_always_sent_on() -> None:
    sections = {"budget": {}, "belief": FORGETS}
    runner = SimulationRunner(scenario(sections))
    assert not runner.run(400.0)
    goals = [place for _, place in runner.sent]
    assert len(goals) > 100
    assert len(set(goals)) >= 20, "of 24 places"


def test_where_the_probe_drives_where_it_likes_it_is_told_a_place() -> None:
    """As in a replay: no budget, and the next decision is asked for from somewhere else."""
    built = scenario({"budget": {}})
    world = build_world(built)
    loop = build_loop(built, world.topology)
    for visit, place in enumerate((0, 1, 7, 13, 23, 2)):
        plan = loop.ask(place)
        assert plan.waypoint is not None
        assert not loop.belief.observed[plan.waypoint]
        reading = world.sensor.read(place, 0, visit)
        assert reading is not None
        loop.tell([reading])
