"""From file to trials: what is complete, what is refused, and how it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from bench_support.small import small, write
from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model_file import write_model
from gp_active_sensing.records.metrics import SCORES
from gp_active_sensing.sim import scenario_from_mapping
from gp_active_sensing.sim.fields.formula import Formula
from gp_active_sensing.util.resources import list_resources
from gp_active_sensing_bench import METRICS, load_experiment, read_experiment
from gp_active_sensing_bench.plan import key_of
from gp_active_sensing_bench.run import STAGE_KEYS
from tests.kernel_models import make_model, rows
from tests.unit.sim.scenarios import GRID
from tests.unit.sim.scenarios import mapping as scenario_mapping


def test_trials_are_configurations_policies_budgets_and_seeds() -> None:
    given = {"rough": {"field.length_scale": 1.0}, "loud": {"sensor": {"noise_std": 2.0}}}
    experiment = small(configurations=given, seeds=[4, 7, 1], budgets=[4, 2])
    found = [(t.configuration, t.policy, t.budget, t.seed) for t in experiment.trials]
    assert found == [
        (c, p, b, s)
        for c in ("rough", "loud")
        for p in ("random", "two")
        for b in (2, 4)
        for s in (4, 7, 1)
    ]
    assert len({t.key for t in experiment.trials}) == 24
    assert experiment.at == (2, 4)
    for trial in experiment.trials:
        scenario = scenario_from_mapping(trial.config)
        assert scenario.to_mapping() == trial.config
        assert (scenario.seed, scenario.budget.readings) == (trial.seed, trial.budget)
        assert scenario.policy["name"] == {"random": "random", "two": "bal"}[trial.policy]
        assert scenario.field.length_scale == (1.0 if trial.configuration == "rough" else 2.0)
        assert scenario.sensor.noise_std == (2.0 if trial.configuration == "loud" else 0.2)


def test_what_is_written_out_gives_the_same_trials(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path / "e.yaml", configurations={"a": {"map.count": 9}}))
    text = yaml.safe_dump(to_mapping(experiment.config))
    again = read_experiment(yaml.safe_load(text))
    assert again == experiment
    assert experiment.config.policies["two"]["discretisation"] == "cells"
    assert experiment.config.scenario["sensor"]["dropout"] == 0.0


def test_defaults() -> None:
    experiment = read_experiment({"scenario": scenario_mapping()}, name="mine")
    assert experiment.config.name == "mine"
    assert experiment.at == (6,)
    assert len(experiment.trials) == 10
    assert {t.policy for t in experiment.trials} == {"bal"}
    assert {t.configuration for t in experiment.trials} == {"default"}
    assert experiment.trials[0].config["policy"]["samples"] == 3  # the scenario's own
    assert experiment.trials[0].budget is None


def test_a_scenario_beside_the_file_comes_first(tmp_path: Path) -> None:
    (tmp_path / "town.yaml").write_text(yaml.safe_dump(scenario_mapping(map={"count": 7})))
    experiment = load_experiment(write(tmp_path / "e.yaml", scenario="town.yaml", budgets=[2]))
    assert experiment.trials[0].config["map"]["count"] == 7
    shipped = load_experiment(write(tmp_path / "f.yaml", scenario="line", budgets=[2]))
    assert shipped.trials[0].config["map"]["count"] == 100


def test_files_of_a_scenario_elsewhere_are_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "far"
    folder.mkdir()
    (folder / "values.csv").write_text("id,value\n" + "".join(f"{i},{i}\n" for i in range(12)))
    field = {"kind": "table", "file": "values.csv", "length_scale": None, "signal_std": 1.0}
    whole = {**scenario_mapping(), "field": {**field, "unit": "K"}}
    (folder / "s.yaml").write_text(yaml.safe_dump(whole))
    (folder / "other.csv").write_text("id,value\n" + "".join(f"{i},{-i}\n" for i in range(12)))
    path = write(
        tmp_path / "e.yaml",
        scenario="far/s.yaml",
        metrics=["rmspe"],
        configurations={"one": {}, "other": {"field.file": "other.csv"}},
    )
    experiment = load_experiment(path)
    again = read_experiment(to_mapping(experiment.config))
    assert [t.key for t in again.trials] == [t.key for t in experiment.trials]
    assert again.trials[-1].config["field"]["file"] == str(folder / "other.csv")


def test_the_key_is_of_the_whole_scenario_and_of_nothing_else() -> None:
    one, two = small(), small(name="renamed", policies={"r": {"name": "random"}}, baseline=None)
    assert {t.key for t in two.trials} < {t.key for t in one.trials}
    config = one.trials[0].config
    assert key_of(dict(reversed(config.items()))) == key_of(config)
    changed = {**config, "sensor": {**config["sensor"], "bias": 0.1}}
    assert key_of(changed) != key_of(config)


NEEDS_DATA = {"tampines"}
"""Experiments on measured roads, which do not ship with the package."""


def test_shipped_experiments_can_run() -> None:
    for name in list_resources("experiments"):
        if Path(name).stem not in NEEDS_DATA:
            experiment = load_experiment(name)
            assert experiment.config.description, name
            assert experiment.config.name == Path(name).stem


def test_further_keys_get_the_seed() -> None:
    scenario = scenario_mapping() | {
        "map": {"kind": "points", "count": 9, "low": [0.0], "high": [1.0], "seed": 5}
    }
    experiment = small(scenario=scenario, seeds=[4, 7], seeded=["map.seed"])
    found = [trial.config["map"]["seed"] for trial in experiment.trials]
    assert found == [trial.seed for trial in experiment.trials]
    assert set(found) == {4, 7}
    for trial in experiment.trials:
        assert scenario_from_mapping(trial.config).to_mapping() == trial.config
        assert trial.key == key_of(trial.config)
    plain = small(scenario=scenario, seeds=[4, 7])
    assert {trial.config["map"]["seed"] for trial in plain.trials} == {5}


WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"polices": {}}, ["polices: ", "'policies'"]),
    ({"scenario": None}, ["scenario: "]),
    ({"scenario": "lnie"}, ["scenario: ", "'line'"]),
    ({"scenario": {"map": {"kind": "lime"}}}, ["scenario.map.kind: "]),
    ({"scenario": 3}, ["scenario: "]),
    *(({"seeds": seeds}, ["seeds: "]) for seeds in (0, [], [1, 1], -1)),
    ({"seeded": ["map.sed"]}, ["seeded[0]: ", "'map.sed'"]),
    ({"seeded": ["map.count.seed"]}, ["seeded[0]: "]),
    ({"seeded": ["map.count"]}, ["seeded[0]: ", "map.seed"]),
    ({"seeded": ["seed"]}, ["seeded[0]: "]),
    ({"budgets": [0]}, ["budgets[0]: "]),
    ({"budgets": [5, 5]}, ["budgets: 5"]),
    ({"budgets": [13]}, ["budgets: 13 readings", "12 places"]),
    ({"checkpoints": [2]}, ["checkpoints: ", "budgets"]),
    ({"budgets": [], "checkpoints": [9]}, ["checkpoints: ", "9"]),
    ({"metrics": ["rmpse"]}, ["metrics[0]: ", "'rmspe'"]),
    ({"metrics": []}, ["metrics: "]),
    ({"baseline": "rnadom"}, ["baseline: ", "'random'"]),
    ({"policies": {"two": {"horizon": 2}}}, ["policies.two.name: "]),
    ({"policies": {"bal": {"horizn": 2}}}, ["policies.bal.horizn: ", "'horizon'"]),
    ({"policies": {"a": {"name": "bla"}}}, ["policies.a: ", "'bla'", "'bal'"]),
    ({"policies": {"a": 3}}, ["policies.a: "]),
    ({"policies": {"random": {}, "b": {"name": "random"}}}, ["'default, random' and 'default, b'"]),
    ({"configurations": {"a": 3}}, ["configurations.a: "]),
    ({"configurations": {"a": {"map.cuont": 3}}}, ["configurations.a.map.cuont: "]),
    ({"configurations": {"a": {"map.count.x": 3}}}, ["configurations.a.map.count.x: "]),
    ({"configurations": {"a": {"policy.horizon": 3}}}, ["a.policy.horizon: ", "policies"]),
    ({"configurations": {"a": {"seed": 3}}}, ["configurations.a.seed: ", "seeds"]),
    ({"configurations": {"a": {"budget.readings": 3}}}, ["a.budget.readings: ", "budgets"]),
    ({"configurations": {"a": {"probe.start": "99"}}}, ["configurations.a.probe.start: "]),
    ({"configurations": {"a": {"field.length_scale": 3.0}}}, ["metrics: true_weight"]),
    ({"name": "a/b"}, ["name: "]),
]
"""What is changed in a file, and words of its error: the key, and the name that was meant."""


def test_what_is_wrong_is_refused_with_its_key() -> None:
    for changes, expected in WRONG:
        with pytest.raises(ConfigError) as caught:
            small(**changes)
        for text in expected:
            assert text in str(caught.value), changes


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        small(
            seeds=-1,
            metrics=["rmpse"],
            policies={"bal": {"horizn": 2}, "b": {"name": "bla"}},
            configurations={"a": {"map.cuont": 3}, "b": {"sensor.noise_std": -1}},
        )
    assert len(caught.value.problems) == 6


def test_no_scenario_and_no_budget() -> None:
    with pytest.raises(ConfigError, match=r"^scenario: "):
        read_experiment({})
    with pytest.raises(ConfigError, match=r"^budgets: "):
        read_experiment({"scenario": scenario_mapping(budget={"readings": None, "metres": 9.0})})


def test_trials_of_another_model_have_other_keys(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"

    def keys(seed: int) -> set[str]:
        X, y = rows(seed)
        write_model(path, make_model(("SE", "LIN"), 0.35 * X, y))
        given = {**scenario_mapping(GRID), "belief": {"model": str(path)}}
        file = {"name": "e", "scenario": given, "seeds": 2, "policies": {"ie": {}}, "budgets": [2]}
        return {trial.key for trial in read_experiment({**file, "metrics": ["rmspe"]}).trials}

    assert keys(1) == keys(1)
    assert keys(5).isdisjoint(keys(1))


def test_every_score_of_a_stage_is_kept_and_a_metric() -> None:
    assert set(SCORES) <= set(METRICS) & set(STAGE_KEYS)


def test_the_test_functions_have_the_maxima_of_the_literature() -> None:
    """[Branin1972; Dixon1978; Anderson2000; Kathuria2016, Sec. 5]."""
    kept = Path(__file__).parents[1] / "experiments" / "batch_5.yaml"
    told = yaml.safe_load(kept.read_text("utf-8"))
    branin = told["scenario"]["field"]["formula"]
    cosines, hartmann = (
        told["configurations"][name]["field.formula"] for name in ("cosines", "hartmann6")
    )
    at = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
    for formula, largest, points in (
        (branin, -0.397887, ((-np.pi, 12.275), (np.pi, 2.275), (3.0 * np.pi, 2.475))),
        (cosines, 1.6, ((0.3125, 0.3125),)),
        (hartmann, 3.322368, (at,)),
    ):
        for point in points:
            for shift in (0.0, 0.01, -0.01):
                where = {f"x{k}": c + shift for k, c in enumerate(point, start=1)}
                value = float(Formula(formula).value(where))
                assert value == pytest.approx(largest, abs=2e-6) if not shift else value < largest
