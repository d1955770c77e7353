from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import build_loop, build_world, run_scenario
from tests.unit.sim.scenarios import GRID, scenario
from tests.unit.sim.test_resume import killed_and_resumed

FIELD = {**GRID["field"], "time_scale": 60.0}
INJECTION = {"kind": "injection", "rate": 0.05, "forget_after": 30.0}
MISSIONS: dict[str, dict[str, Any]] = {
    "ie, injection": {"policy": {"name": "ie"}, "belief": {**GRID["belief"], "drift": INJECTION}},
    "ei, kernel": {
        "policy": {"name": "ei"},
        "belief": {**GRID["belief"], "drift": {"kind": "kernel", "time_scale": 40.0}},
    },
    "tv_gp_ucb": {"policy": {"name": "tv_gp_ucb", "step": 5.0}},
    "sw_gp_ucb": {"policy": {"name": "sw_gp_ucb", "window": 8, "step": 5.0}},
    "sparq_gp_ucb": {
        "policy": {"name": "sparq_gp_ucb", "step": 10.0},
        "expert": {"kind": "model", "delay": 1.0, "faults": 0.2},
    },
}


def mission(name: str) -> Any:
    return scenario(GRID, field=FIELD, budget={"readings": 10}, **MISSIONS[name])


def test_killed_and_resumed_it_is_equal_to_the_bit(tmp_path: Path) -> None:
    for name in MISSIONS:
        what = mission(name)
        whole = tmp_path / f"whole {name}"
        killed_and_resumed(what, whole, run_scenario(what, whole).to_mapping(), 3)


def test_a_report_knows_how_the_readings_aged(tmp_path: Path) -> None:
    """Its belief is that of the mission: the weights of λ are those of the records."""
    for name in MISSIONS:
        run_scenario(mission(name), tmp_path / name)
        data = load_run(tmp_path / name)
        drift = data.fresh_belief().drift
        assert drift.changing
        assert not data.notes
        assert drift == build_loop(mission(name), build_world(mission(name)).topology).belief.drift
        shown = replay(data)
        assert shown.unused == 0
        for step, record in zip(shown.steps[1:], data.records, strict=True):
            # Answers that came in after a stage are told with it.
            if "expert" not in MISSIONS[name]:
                np.testing.assert_allclose(list(step.masses.values()), record["weights"], atol=1e-9)
        answered = sum(e["event"] == "answer" for e in data.events)
        assert (answered > 0) == ("expert" in MISSIONS[name])


def test_a_policy_and_a_belief_with_different_drifts_do_not_begin(tmp_path: Path) -> None:
    what = scenario(
        GRID,
        field=FIELD,
        policy={"name": "sw_gp_ucb"},
        belief={**GRID["belief"], "drift": INJECTION},
    )
    with pytest.raises(ConfigError, match=r"belief\.drift: is kind injection"):
        run_scenario(what, tmp_path / "run")
    assert not (tmp_path / "run" / "journal.jsonl").exists()
