"""The trials of an experiment: configurations × policies × budgets × seeds, each with its key."""

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

from gp_active_sensing.belief import with_mark
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.experiments.config import ExperimentConfig
from gp_active_sensing.sim import Scenario, scenario_from_mapping

__all__ = ["DEFAULT", "Experiment", "TrialSpec", "key_of", "key_today", "trials_of"]

DEFAULT = "default"
"""Label of the scenario as it is."""


@dataclass(frozen=True)
class TrialSpec:
    """One mission to simulate: plain data, so that it can travel to another process.

    Args:
        key: hash of the complete scenario; what is done is known by it.
        experiment: name.
        configuration: label.
        policy: label.
        seed: of every random draw.
        budget: readings of the mission, None = the scenario's own budget.
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
        """Return what a record says about where it belongs."""
        return {
            "experiment": self.experiment,
            "configuration": self.configuration,
            "policy": self.policy,
            "seed": self.seed,
            "budget": self.budget,
        }

    def __str__(self) -> str:
        budget = "" if self.budget is None else f", {self.budget} readings"
        where = "" if self.configuration == DEFAULT else f"{self.configuration}, "
        return f"{where}{self.policy}, seed {self.seed}{budget}"


@dataclass(frozen=True)
class Experiment:
    """An experiment that can run.

    Args:
        config: the file, with the scenario and every default of the policies written out.
        trials: configurations × policies × budgets × seeds, in the order of the file.
        at: numbers of readings that the tables have as columns.
    """

    config: ExperimentConfig
    trials: tuple[TrialSpec, ...]
    at: tuple[int, ...]


def key_of(scenario: Mapping[str, Any]) -> str:
    """Return the key of a trial: a hash of its complete scenario mapping, whatever its order."""
    text = json.dumps(scenario, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def key_today(scenario: Mapping[str, Any]) -> str:
    """Return the key that a trial of an earlier version has in this one.

    Keys that were added to scenarios since then have their defaults, which change nothing.
    Returns "" where this version cannot read the scenario.
    """
    try:
        return key_of(scenario_from_mapping(scenario).to_mapping())
    except ConfigError:
        return ""


def _marked(scenario: Scenario) -> Scenario:
    """Return the scenario with what its belief's model holds: another model is another trial."""
    with contextlib.suppress(ConfigError):  # said where it is built
        return dataclasses.replace(scenario, belief=with_mark(scenario.belief))
    return scenario


def trials_of(config: ExperimentConfig, scenarios: Mapping[str, Scenario]) -> Iterator[TrialSpec]:
    """Yield the trials of an experiment, in the order of its file, the seeds fastest.

    Args:
        config: with every policy written out.
        scenarios: label of a configuration -> its scenario.
    """
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
