"""Trials in memory equal runs on disk; the statistics are the textbook's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.experiments import mean_of, paired_difference, run_trial
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import load_scenario, run_scenario

SHORT = ["budget.readings=4", "map.count=20", "policy.horizon=2", "limit.expansions=3"]


def without_times(records):
    return [{k: v for k, v in r.items() if k != "plan_seconds"} for r in records]


def test_a_trial_has_the_records_of_a_run(tmp_path) -> None:
    scenario = load_scenario("line", overrides=SHORT)
    trial = run_trial(scenario)
    run_scenario(scenario, tmp_path / "run")
    on_disk = RunDirectory.open(tmp_path / "run").records()
    assert len(trial.records) == 4
    for mine, disk in zip(without_times(trial.records), without_times(on_disk), strict=True):
        assert mine["location"] == disk["location"]
        assert mine["rmspe"] == pytest.approx(disk["rmspe"], abs=0)
        np.testing.assert_array_equal(mine["weights"], disk["weights"])
    assert trial.at(4, "stage") == on_disk[3]["stage"]
    with pytest.raises(ValueError, match="4 stages, asked for number 5"):
        trial.at(5, "rmspe")


def test_policies_see_the_same_field_and_noise() -> None:
    trials = [
        run_trial(load_scenario("line", overrides=[*SHORT, f"policy={{name: {name}}}"]))
        for name in ("random", "ie")
    ]
    places = [{r["location"]: r["value"] for r in t.records} for t in trials]
    shared = set(places[0]) & set(places[1])
    for place in shared:
        assert places[0][place] == places[1][place]


def test_mean_and_standard_error() -> None:
    estimate = mean_of([1.0, 2.0, 3.0, 4.0])
    assert estimate.mean == 2.5
    assert estimate.error == pytest.approx(math.sqrt(5 / 3) / 2)
    assert str(mean_of([1.0, 1.0])) == "1.00 ± 0.00"
    assert math.isnan(mean_of([1.0]).error)
    with pytest.raises(ValueError, match="at least one value"):
        mean_of([])
    with pytest.raises(ValueError, match="all finite"):
        mean_of([1.0, math.nan])


def test_pairing_removes_what_seeds_have_in_common() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 10, size=30)
    first = (hard + 1.0 + rng.normal(0, 0.1, size=30)).tolist()
    assert paired_difference(first, hard.tolist()).error < 0.05
    with pytest.raises(ValueError, match="argument 2"):
        paired_difference([1.0], [1.0, 2.0])
