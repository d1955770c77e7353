from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.report.payload import build_payload
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import run_scenario
from tests.journals import records_of
from tests.unit.sim.scenarios import GRID, mapping, scenario

UCB: dict[str, Any] = {"name": "gp_ucb", "scale": 1.0}
KNOWN = {"length_scales": [20], "mean_value": 33.0, "mean_std": 0.0}


def search(path: Path, base: dict[str, Any] = GRID, **sections: Any) -> dict[str, Any]:
    built = scenario(mapping(base, belief=KNOWN, policy=UCB, budget={"readings": 8}), **sections)
    run_scenario(built, path, clock=lambda: 0.0)
    data = load_run(path)
    return build_payload(data, replay(data))


def test_regret_is_that_of_the_records_with_the_bound_on_its_mean(tmp_path: Path) -> None:
    found = search(tmp_path / "run")
    records = records_of(tmp_path / "run")
    regret = found["regret"]
    assert regret["each"][0] is regret["average"][0] is regret["bound"][0] is None
    each = [record["regret"] for record in records]
    assert regret["each"][1:] == pytest.approx(each, rel=1e-4)
    running = np.cumsum(each) / np.arange(1, len(each) + 1)
    assert regret["average"][1:] == pytest.approx(running.tolist(), rel=1e-4)
    bounds = [record["regret_bound"] / t for t, record in enumerate(records, start=1)]
    assert regret["bound"][1:] == pytest.approx(bounds, rel=1e-4)
    assert found["objective"] == "maximise"
    assert found["probes"] == []


def test_of_several_probes_stages_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    found = search(tmp_path / "run", probes=2, policy={"name": "gp_ucb", "scale": 5.0})
    records = records_of(tmp_path / "run")
    by_number = {record["stage"]: record["regret"] for record in records}
    expected = [by_number[step["n"]] for step in found["steps"] if step["n"]]
    assert found["regret"]["each"][1:] == pytest.approx(expected, rel=1e-4)
    assert "bound" not in found["regret"]
    assert found["probes"] == ["probe_1", "probe_2"]
