"""Configurations that runs, journals and bags of earlier versions hold can still be read."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.planning import build_policy
from gp_active_sensing.records.earlier import EarlierRun
from gp_active_sensing.sim.scenario import Scenario

EARLIER: dict[str, Any] = json.loads(Path(__file__).with_name("earlier.json").read_text("utf-8"))


@pytest.mark.parametrize("name", EARLIER["scenarios"])
def test_the_configuration_of_a_simulated_run(name: str) -> None:
    given = EARLIER["scenarios"][name]
    if name == "town_live":  # whose `rerouting` is an option of SUMO now
        given["traffic"]["rerouting"] = None
    found = from_mapping(Scenario, given)
    assert found.map.kind == given["map"]["kind"]
    assert build_policy(found.policy)


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("name", EARLIER["nodes"])
def test_the_parameters_of_a_mission(
    name: str, ahead: bool, caplog: pytest.LogCaptureFixture
) -> None:
    given = {**EARLIER["nodes"][name], "plan_ahead": ahead}
    found = from_mapping(ActiveSensingConfig, given)
    assert found.policy == given["policy"]
    assert build_policy(found.policy)
    assert len(caplog.records) == ahead, "a node that planned ahead does not any more"


def test_a_decision_of_a_version_that_planned_ahead_is_followed() -> None:
    """Its decisions on arrival had two more keys; one that was planned ahead is another one."""
    now = {"event": "decision", "stage": 3}
    run = EarlierRun(
        SimpleNamespace(path="run"),
        [
            {"event": "start", "driver": "sim"},
            {**now, "foreseen": False, "foreseen_for": None},
            {**now, "foreseen": True, "foreseen_for": 1.5},
        ],
    )
    assert run.has({"event": "start", "driver": "sim"})
    assert run.has(now)
    with pytest.raises(RunError):
        run.has(now)
