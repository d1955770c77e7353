"""Configuration of an experiment, and its trials: configurations × policies × budgets × seeds."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

from gp_active_sensing.belief.run_copy import with_mark
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.sim import Scenario
from gp_active_sensing_bench.metrics import METRICS


@dataclass(frozen=True)
class ExperimentConfig:
    """Trials, repetitions and metrics of an experiment."""

    scenario: str | dict[str, Any] = param(  # noqa: RUF009
        help="name of a shipped scenario, path relative to this file, or a scenario written out"
    )
    name: str = param("", help='used in the name of the directory; "" = the name of the file')
    description: str = param("", help="one or two sentences, for reports")
    seeds: int | tuple[int, ...] = param(
        10, help="seeds of the runs: a number n for 0 … n-1, or a list", low=0
    )
    seeded: tuple[str, ...] = param(
        (),
        help="further keys of the scenario that get the seed. With map.seed each run has its own "
        "points",
    )
    policies: dict[str, Any] = param(  # noqa: RUF009
        {},
        help="policies to compare: a mapping from a label of your choice to the name and "
        "parameters of a policy, as in a scenario. `name` may be left out if the label is the "
        "name. Empty = the scenario's own policy",
    )
    configurations: dict[str, Any] = param(  # noqa: RUF009
        {},
        help="changed keys of the scenario for each label, as `a.b: value` or nested. Empty = the "
        "unchanged scenario, with label `default`",
    )
    budgets: tuple[int, ...] = param(
        (),
        help="numbers of newly observed places. Each number has its own missions, since policies "
        "plan with the remaining budget",
        unit="readings",
        low=1,
    )
    checkpoints: tuple[int, ...] = param(
        (),
        help="numbers of observed places at which one mission is evaluated, in place of "
        "`budgets`. If neither key is given, a mission is evaluated at the end of the scenario's "
        "budget",
        unit="readings",
        low=1,
    )
    baseline: str | None = param(
        None, help="label of the policy that all others are compared with, seed by seed"
    )
    metrics: tuple[str, ...] = param(
        ("rmspe",),
        help="metrics to compute, from the list below",
        choices=tuple(METRICS),
        min_items=1,
    )
    designs: int | None = param(
        None,
        help="number of observed places in the picture of the routes (first seed). null = the "
        "first of `budgets` or `checkpoints`",
        unit="readings",
        low=1,
    )
    expected: str = param("", help="published results, for the reader only")

    def __post_init__(self) -> None:
        problems = []
        if self.name and (any(c in self.name for c in "/\\\0") or self.name.startswith(".")):
            problems.append(
                f"name: expected a word that can be part of a file name, got {self.name!r}"
            )
        if self.seeds in (0, ()):
            problems.append("seeds: expected at least one seed, got none")
        if self.budgets and self.checkpoints:
            problems.append(
                "checkpoints: cannot go with budgets; use budgets for missions of their own, or "
                "checkpoints along one mission"
            )
        for key in ("seeds", "budgets", "checkpoints", "metrics"):
            problems += _repeated(key, getattr(self, key))
        if self.baseline is not None and self.policies and self.baseline not in self.policies:
            known = ", ".join(self.policies)
            problems.append(
                f"baseline: no policy is labelled {self.baseline!r}."
                f"{suggest(self.baseline, self.policies)} Labels: {known}"
            )
        if problems:
            raise ConfigError(problems)

    def seed_list(self) -> tuple[int, ...]:
        """Return the seeds."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


def _repeated(key: str, values: Any) -> list[str]:
    if isinstance(values, int):
        return []
    again = sorted({str(v) for v in values if values.count(v) > 1})
    return [f"{key}: {', '.join(again)} given more than once"] if again else []


def flat_overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested overrides as values by dotted key, such as ``a.b``."""
    flat: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, Mapping) and value:
            flat.update({f"{key}.{k}": v for k, v in flat_overrides(value).items()})
        else:
            flat[str(key)] = value
    return flat


DEFAULT = "default"
"""Label of the configuration without overrides."""


@dataclass(frozen=True)
class TrialSpec:
    """Mission to simulate, as plain data that another process can receive.

    Args:
        key: hash of the complete scenario, which identifies the trial.
        seed: seed of all random numbers.
        budget: number of readings; None = budget of the scenario.
        config: complete scenario mapping.
    """

    key: str
    experiment: str
    configuration: str
    policy: str
    seed: int
    budget: int | None
    config: Mapping[str, Any]

    def labels(self) -> dict[str, Any]:
        """Return the fields that label the trial's record."""
        keys = ("experiment", "configuration", "policy", "seed", "budget")
        return {key: getattr(self, key) for key in keys}

    def __str__(self) -> str:
        budget = "" if self.budget is None else f", {self.budget} readings"
        where = "" if self.configuration == DEFAULT else f"{self.configuration}, "
        return f"{where}{self.policy}, seed {self.seed}{budget}"


@dataclass(frozen=True)
class Experiment:
    """Experiment that is ready to run.

    Args:
        config: content of the file, with the scenario and all defaults.
        trials: all trials in the order of the file.
        at: number of readings of each column of the tables.
    """

    config: ExperimentConfig
    trials: tuple[TrialSpec, ...]
    at: tuple[int, ...]


def key_of(scenario: Mapping[str, Any]) -> str:
    """Return the key of a trial: a hash of `scenario`, independent of the order of entries."""
    text = json.dumps(scenario, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _marked(scenario: Scenario) -> Scenario:
    """Return the scenario with a checksum of its kernel model, for the key of the trial."""
    with contextlib.suppress(ConfigError):  # building the belief reports the error
        return dataclasses.replace(scenario, belief=with_mark(scenario.belief))
    return scenario


def trials_of(config: ExperimentConfig, scenarios: Mapping[str, Scenario]) -> Iterator[TrialSpec]:
    """Yield the trials of an experiment in the order of its file. The seed varies fastest."""
    for configuration, given in scenarios.items():
        scenario = _marked(given)
        for label, policy in config.policies.items():
            for budget in sorted(config.budgets) or (None,):
                limit = scenario.budget
                if budget is not None:
                    limit = dataclasses.replace(limit, readings=budget)
                mission = dataclasses.replace(scenario, policy=policy, budget=limit)
                for seed in config.seed_list():
                    complete = dataclasses.replace(mission, seed=seed).to_mapping()
                    for path in config.seeded:
                        *sections, last = path.split(".")
                        reduce(getitem, sections, complete)[last] = seed
                    key = key_of(complete)
                    yield TrialSpec(key, config.name, configuration, label, seed, budget, complete)
