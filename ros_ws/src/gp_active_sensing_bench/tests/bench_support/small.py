"""Small experiments for tests, and records made by hand."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from gp_active_sensing_bench import Experiment, read_experiment
from tests.unit.sim.scenarios import mapping as scenario_mapping

TIMES = ("plan_seconds",)


def mapping(**changes: Any) -> dict[str, Any]:
    """Return an experiment's file as plain data: 2 policies × 2 budgets × 2 seeds."""
    return {
        "name": "small",
        "scenario": scenario_mapping(),
        "seeds": 2,
        "policies": {"random": {}, "two": {"name": "bal", "horizon": 2, "samples": 3}},
        "budgets": [2, 4],
        "baseline": "random",
        "metrics": ["rmspe", "true_weight", "plan_seconds"],
        **changes,
    }


def small(**changes: Any) -> Experiment:
    return read_experiment(mapping(**changes))


def write(path: Path, **changes: Any) -> Path:
    path.write_text(yaml.safe_dump(mapping(**changes), sort_keys=False))
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def what_was_done(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Key -> everything of a record but the times and the process that made it."""
    return {
        record["key"]: {
            **{k: record[k] for k in ("experiment", "configuration", "policy", "seed", "budget")},
            "config": record["config"],
            "reason": record["reason"],
            "stages": [
                {k: v for k, v in stage.items() if k not in TIMES} for stage in record["stages"]
            ],
        }
        for record in records
    }


def made(
    policy: str = "p",
    seed: int = 0,
    rmspe: Sequence[float | None] = (3.0, 2.0),
    *,
    budget: int | None = None,
    configuration: str = "default",
    observed: Sequence[int] | None = None,
    config: Mapping[str, Any] | None = None,
    **stage_keys: Sequence[Any],
) -> dict[str, Any]:
    """Return a record with one stage for each value of `rmspe`."""
    default = {
        "weights": (0.25, 0.75),
        "lower": 1.0,
        "upper": 1.5,
        "plan_seconds": 0.5,
        "expanded": 3,
        "nlpd": 1.0,
        "driven_metres": 7.0,
    }
    places = observed or range(1, len(rmspe) + 1)
    stages = []
    for number, (value, n) in enumerate(zip(rmspe, places, strict=True)):
        given = {key: values[number] for key, values in stage_keys.items()}
        stages.append({"observed": n, "rmspe": value, **default, **given})
    return {
        "configuration": configuration,
        "policy": policy,
        "seed": seed,
        "budget": budget,
        "config": config or {"field": {"unit": "K"}},
        "stages": stages,
    }


def with_a_bad_trial(experiment: Experiment) -> Experiment:
    """Return the experiment with a fourth trial that fails when it is run."""
    trials = list(experiment.trials)
    broken = json.loads(json.dumps(trials[3].config))
    broken["field"]["length_scale"] = [1.0, 2.0]  # the map has one feature
    trials[3] = dataclasses.replace(trials[3], config=broken)
    return dataclasses.replace(experiment, trials=tuple(trials))


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name in names else real(name, *a)
    )
