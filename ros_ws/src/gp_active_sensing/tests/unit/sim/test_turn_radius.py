from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.sim import Scenario, build_world, run_scenario, scenario_from_mapping
from gp_active_sensing.sim.runner import SimulationRunner
from tests.unit.sim.test_resume import killed_and_resumed

RADIUS = 15.0


def lake(policy: str, metres: float = 900.0, radius: float = RADIUS, **more: Any) -> Scenario:
    return scenario_from_mapping(
        {
            "name": "lake",
            "map": {
                "kind": "grid", "columns": 7, "rows": 6, "spacing": 20.0, "moves": "free",
                "speed": 2.0,
            },
            "field": {"kind": "gp", "length_scale": 40.0, "signal_std": 3.0},
            "sensor": {"noise_std": 0.3, "on_the_way": False},
            "probe": {"start": 0, "end": "start"},
            "drive": {"turn_radius": radius},
            "belief": {"length_scales": [40.0], "signal_std": [3.0], "noise_std": [0.3]},
            "policy": {"name": policy},
            "budget": {"metres": metres},
            "limit": {"expansions": 40},
        }
        | more
    )  # fmt: skip


def driven(scenario: Scenario, **parameters: Any) -> tuple[SimulationRunner, float]:
    runner = SimulationRunner(scenario, parameters=parameters)
    assert runner.run(5000.0)
    return runner, runner.mission.probes[""].ingestion.metres


def test_the_budget_is_kept_and_used() -> None:
    for policy in ("tour", "lawnmower", "spread", "max_entropy", "random"):
        runner, metres = driven(lake(policy))
        assert metres <= 900.0 + 1e-6
        assert runner.mission.probes[""].home or runner.players[""].at == 0
        assert metres > 600.0, "and most of the budget was used"


def test_what_a_decision_costs_is_what_is_driven() -> None:
    runner = SimulationRunner(lake("random", metres=700.0))
    mission = runner.mission
    promised, begun, compared = None, 0.0, 0
    while mission.state != "ended":
        runner.step()
        plan, metres = mission.decisions.last_plan, mission.probes[""].ingestion.metres
        if plan is None or plan is promised or not plan.waypoints:
            continue
        if promised is not None and promised.cost.metres > 0.0:
            # A reading that waits for the probe to come nearer counts on arriving.
            assert metres - begun == pytest.approx(promised.cost.metres, rel=2e-3)
            compared += 1
        promised, begun = plan, metres
    assert compared > 3


def test_seconds_are_kept_as_well() -> None:
    runner, _ = driven(lake("tour", budget={"seconds": 450.0}))
    assert runner.mission.probes[""].home
    left = runner.mission.probes[""].remaining.seconds
    assert left is not None
    assert left >= -1e-6


def test_it_never_turns_tighter() -> None:
    scenario = lake("tour")
    runner = SimulationRunner(scenario, period=0.25)
    poses = []
    while runner.mission.state != "ended":
        runner.step()
        poses.append(runner.players[""].pose)
    x, y, heading = np.array(poses).T
    apart, turned = np.hypot(np.diff(x), np.diff(y)), np.abs(np.diff(np.unwrap(heading)))
    # Headings are those of the chords of an arc, drawn in steps of 5°.
    assert (turned <= apart / RADIUS + np.radians(5.1)).all()


def test_a_lake_that_is_too_small_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"drive\.turn_radius: a turning circle of 200 m"):
        build_world(lake("tour", radius=100.0))


def test_a_run_that_was_cut_off_goes_on_to_the_same_end(tmp_path: Path) -> None:
    what, whole = lake("tour", metres=600.0), tmp_path / "whole"
    killed_and_resumed(what, whole, run_scenario(what, whole).to_mapping(), 2)
