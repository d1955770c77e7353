"""A mission for which nobody says what chooses: the default has to do in every one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.planning import DEFAULT_POLICY, build_policy
from gp_active_sensing.replay.options import ReplayOptions, settled
from gp_active_sensing.sim import Scenario, run_scenario
from gp_active_sensing.sim.scenario import scenario_from_mapping
from tests.cases import for_each

GRID = {"kind": "grid", "columns": 6, "rows": 4, "spacing": 10.0, "speed": 5.0}
FORGETS = {"drift": {"kind": "injection", "doubling": 30.0, "forget_after": 27.0}}
MISSIONS: dict[str, dict[str, Any]] = {
    "readings": {"budget": {"readings": 9}},
    "metres and the way home": {"budget": {"metres": 160.0}, "probe": {"start": 3, "end": "start"}},
    "no budget": {"budget": {}},
    "an error": {"budget": {"error": 1.5}},
    "a field that drifts": {"budget": {"readings": 20}, "belief": FORGETS},
    "far moves": {"budget": {"readings": 6}, "map": {"reach": 25.0}},
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


@for_each("sections", list(MISSIONS.values()))
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
    if not budget:
        assert summary.observed == 24
