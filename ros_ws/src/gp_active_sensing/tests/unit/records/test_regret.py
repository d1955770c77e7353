from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning.bandits.gp_ucb import regret_bound
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.records.regret import Regret, objective_of, regret_of
from gp_active_sensing.sim import build_loop, build_world, run_scenario, scenario_from_mapping
from tests.journals import records_of
from tests.unit.sim.scenarios import LINE, mapping, scenario

VALUES = np.array([1.0, 5.0, 2.0, 4.0])
GUESS = np.array([0.0, 1.0, 3.0, 2.0])
UCB: dict[str, Any] = {"name": "gp_ucb"}


class Moving(GroundTruth):
    """The largest value is at the place of the second."""

    changes = True

    def at(self, seconds: float) -> np.ndarray:
        return np.roll([9.0, 1.0, 2.0, 3.0], int(seconds))


def test_each_stage_is_compared_with_the_best_place() -> None:
    regret = Regret(GroundTruth(VALUES), "maximise")
    assert regret.stage(0, GUESS, 0.0) == {
        "regret": 4.0,
        "cumulative_regret": 4.0,
        "recommended": 2,
        "recommended_regret": 3.0,
    }
    assert regret.stage(3, GUESS, 1.0)["cumulative_regret"] == 5.0
    assert regret.stage(1, VALUES, 1.0) == {
        "regret": 0.0,
        "cumulative_regret": 5.0,
        "recommended": 1,
        "recommended_regret": 0.0,
    }


def test_a_field_that_changes_is_compared_with_as_it_is() -> None:
    regret = Regret(Moving(np.zeros(4)), "maximise")
    assert regret.stage(0, GUESS, 0.0)["regret"] == 0.0
    assert regret.stage(0, GUESS, 1.0)["regret"] == 6.0
    assert regret.stage(1, GUESS, 1.0)["regret"] == 0.0


def test_it_goes_on_after_the_stages_of_an_earlier_process() -> None:
    regret = Regret(GroundTruth(VALUES), "maximise")
    records = [regret.stage(went, GUESS, 0.0) for went in (0, 2, None)]
    again = Regret(GroundTruth(VALUES), "maximise")
    again.resume(records)
    assert again.decisions == regret.decisions == 2
    assert again.stage(3, GUESS, 0.0) == regret.stage(3, GUESS, 0.0)
    again.resume([])
    assert (again.decisions, again.cumulative) == (0, 0.0)


def test_what_is_looked_for_is_said_by_the_policy_or_the_scenario() -> None:
    policy = scenario(policy=UCB).build_policy()
    lowest = scenario(policy={**UCB, "objective": "minimise"}).build_policy()
    other = scenario(policy={"name": "ie"}).build_policy()
    assert objective_of(policy) == "maximise"
    assert objective_of(lowest) == objective_of(lowest, "minimise") == "minimise"
    assert (objective_of(other), objective_of(other, "minimise")) == ("", "minimise")
    with pytest.raises(ConfigError, match=r"policy\.objective: is maximise, and seek says minimi"):
        objective_of(policy, "minimise")
    with pytest.raises(ConfigError, match=r"seek: expected one of maximise, minimise, got 'max'"):
        scenario_from_mapping(mapping(seek="max"))


@pytest.mark.parametrize("objective", ["maximise", "minimise"])
def test_records_and_summary_of_a_run(tmp_path: Path, objective: str) -> None:
    policy = {**UCB, "objective": objective}
    built = scenario(
        policy=policy, belief={"length_scales": [2], "mean_std": 0.0}, budget={"readings": 9}
    )
    summary = run_scenario(built, tmp_path / "run", clock=lambda: 0.0)
    records = records_of(tmp_path / "run")
    sign = 1.0 if objective == "maximise" else -1.0
    gain = sign * build_world(built).truth.at(0.0)
    expected = [gain.max() - gain[record["location"]] for record in records]
    assert [r["regret"] for r in records] == pytest.approx(expected)
    assert [r["cumulative_regret"] for r in records] == pytest.approx(np.cumsum(expected).tolist())
    assert all(
        r["recommended_regret"] == pytest.approx(gain.max() - gain[r["recommended"]])
        for r in records
    )
    world = build_world(built)
    prior = build_loop(built, world.topology).belief
    bounds = [regret_bound(built.build_policy(), prior, t) for t in range(1, len(records) + 1)]
    assert [r["regret_bound"] for r in records] == pytest.approx(bounds)
    found = summary.regret
    assert found["average"] == pytest.approx(sum(expected) / len(expected))
    assert found["simple"] == pytest.approx(min(expected))
    assert found["best"] == world.topology.names[int(gain.argmax())]
    assert found["best_value"] == pytest.approx(sign * gain.max())
    assert found["recommended"] == world.topology.names[records[-1]["recommended"]]
    assert found["bound"] == pytest.approx(bounds[-1])


def test_another_policy_is_measured_by_what_the_scenario_looks_for(tmp_path: Path) -> None:
    built = scenario(policy={"name": "random"}, seek="minimise")
    summary = run_scenario(built, tmp_path / "run", clock=lambda: 0.0)
    assert summary.regret["objective"] == "minimise"
    assert summary.regret["bound"] is None


def test_there_is_no_bound_where_not_any_place_may_be_next() -> None:
    for changes in (
        {"field": {"kind": "formula", "formula": "cos(x + t)"}},
        {"budget": {"readings": 6, "metres": 500.0}},
        {"budget": {"readings": 6, "seconds": 500.0}},
    ):
        known = {"policy": UCB, "belief": {"length_scales": [2.0]}}
        for sections, bounded in ((known, True), ({**known, **changes}, False)):
            field = sections.get("field", LINE["field"])
            built = scenario_from_mapping({**mapping(**sections), "field": field})
            world = build_world(built)
            regret = regret_of(build_loop(built, world.topology), world.truth)
            assert regret is not None
            assert ("regret_bound" in regret.stage(0, world.truth.at(0.0), 0.0)) == bounded
        built = scenario(**known)
        several = regret_of(build_loop(built, world.topology), world.truth, probes=2)
        assert several is not None
        assert "regret_bound" not in several.stage(0, world.truth.at(0.0), 0.0)
