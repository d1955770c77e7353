"""Read the file of an experiment, and check all trials before the first trial runs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import ActiveSensingError, ConfigError
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning import policies as registered
from gp_active_sensing.planning.base import check_fit, revisits
from gp_active_sensing.sim import Scenario, build_loop, build_world, scenario_from_mapping
from gp_active_sensing.util.resources import find_resource
from gp_active_sensing.util.yaml_files import load_yaml
from gp_active_sensing_bench.metrics import true_weight_indices
from gp_active_sensing_bench.plan import (
    DEFAULT,
    Experiment,
    ExperimentConfig,
    flat_overrides,
    trials_of,
)

T = TypeVar("T")


def load_experiment(
    name_or_path: str | Path, *, seeds: int | None = None, baseline: str | None = None
) -> Experiment:
    """Read and check an experiment's file.

    Args:
        name_or_path: name of a shipped experiment ("bal_1d"), or path of a YAML file.
        seeds: number of seeds; None = as in the file.
        baseline: label of the baseline policy; None = as in the file.

    Raises:
        ResourceError: the experiment does not exist.
        ConfigError: keys or values are wrong. The error lists all problems with their paths.
    """
    path = find_resource("experiments", str(name_or_path))
    mapping = load_yaml(path)
    if seeds is not None:
        mapping["seeds"] = seeds
    if baseline is not None:
        mapping["baseline"] = baseline
    return read_experiment(mapping, source=str(path), base_dir=path.parent, name=path.stem)


def read_experiment(
    mapping: Mapping[str, Any],
    *,
    source: str = "",
    base_dir: Path | None = None,
    name: str = "experiment",
    check_worlds: bool = True,
) -> Experiment:
    """Build an experiment from plain data.

    Args:
        mapping: keys as in an experiment's file.
        source: origin of the data, for messages.
        base_dir: folder that is searched first for the scenario's file.
        name: default name of the experiment.
        check_worlds: True to also check each configuration by building its map, field and belief.

    Raises:
        ConfigError: keys or values are wrong. The error lists all problems with their paths.
    """
    reader = _ExperimentReader(base_dir, check_worlds)
    experiment = reader.read(mapping, name)
    if experiment is None or reader.problems:
        raise ConfigError(list(dict.fromkeys(reader.problems)), source=source)
    return experiment


class _ExperimentReader:
    """Reader that collects all problems of an experiment's file."""

    def __init__(self, base_dir: Path | None, check_worlds: bool) -> None:
        self.base_dir = base_dir
        self.check_worlds = check_worlds
        self.problems: list[str] = []
        self._places: dict[str, int] = {}

    def read(self, mapping: Mapping[str, Any], name: str) -> Experiment | None:
        config = self._try("", partial(from_mapping, ExperimentConfig, mapping))
        base = self._scenario(mapping.get("scenario"))
        own = {} if base is None else {str(base.policy["name"]): base.policy}
        policies = self._policies(mapping.get("policies") or own)
        overrides = self._overrides(mapping.get("configurations") or {DEFAULT: {}})
        readings = min(config.budgets, default=None) if config else None
        scenarios = self._variants(base, overrides, list(policies.values()), readings)
        if config is None or base is None or self.problems:
            return None
        self.problems.extend(_not_seeds(base, config.seeded))
        at = self._columns(config, scenarios)
        self._check_metrics(config, scenarios)
        if self.problems:
            return None
        written = dataclasses.replace(
            config,
            name=config.name or name,
            scenario={k: v for k, v in base.to_mapping().items() if k not in ("policy", "seed")},
            policies=policies,
            configurations={
                label: {key: _at(scenarios[label].to_mapping(), key) for key in flat}
                for label, flat in overrides.items()
            },
        )  # also checks the baseline against the labels
        trials = tuple(trials_of(written, scenarios))
        first: dict[str, str] = {}
        for trial in trials:
            here = f"{trial.configuration}, {trial.policy}"
            if first.setdefault(trial.key, here) != here:
                self.problems.append(
                    f"{first[trial.key]!r} and {here!r} (configuration, policy) describe the same "
                    "missions; remove one"
                )
        return Experiment(written, trials, at)

    def _try(self, prefix: str, build: Callable[[], T]) -> T | None:
        try:
            return build()
        except ConfigError as error:
            self.problems.extend(_under(prefix, problem) for problem in error.problems)
        except ActiveSensingError as error:
            self.problems.append(f"{prefix}: {error}")
        return None

    # -- parts ---------------------------------------------------------------------------------

    def _scenario(self, given: Any) -> Scenario | None:
        """Return the scenario with absolute file names."""
        self._folder = self.base_dir
        if isinstance(given, str):
            beside = Path(given) if self.base_dir is None else self.base_dir / given
            path = beside
            if not beside.is_file():
                found = self._try("scenario", partial(find_resource, "sim", given))
                if found is None:
                    return None
                path = found
            loaded = self._try("scenario", partial(load_yaml, path))
            if loaded is None:
                return None
            given, self._folder = {"name": path.stem, **loaded}, path.parent
        if not isinstance(given, Mapping):
            return None  # reported before as a wrong type
        return self._try("scenario", partial(scenario_from_mapping, given, base_dir=self._folder))

    def _policies(self, given: Any) -> dict[str, dict[str, Any]]:
        """Return the complete configuration of each policy, by label."""
        found: dict[str, dict[str, Any]] = {}
        for label, policy in self._mappings("policies", given, "such as {name: bal, horizon: 3}"):
            # The label is the default of `name`, if it is the name of a policy.
            named = {"name": label} if label in registered or not policy else {}
            whole = {**named, **policy}
            built = self._try(f"policies.{label}", partial(build_policy, whole))
            if built is not None:
                found[label] = {"name": whole["name"], **to_mapping(built)}
        return found

    def _mappings(self, key: str, given: Any, what: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield (label, mapping) for each entry of `given`. An empty entry has the mapping {}."""
        for label, value in given.items() if isinstance(given, Mapping) else ():
            if value is None or isinstance(value, Mapping):
                yield str(label), value or {}
            else:
                got = f"{type(value).__name__} {value!r}"
                self.problems.append(f"{key}.{label}: expected a mapping {what}, got {got}")

    def _overrides(self, given: Any) -> dict[str, dict[str, Any]]:
        """Return the overrides of each configuration: values by dotted key, such as ``a.b``."""
        found: dict[str, dict[str, Any]] = {}
        for label, overrides in self._mappings("configurations", given, "of keys of the scenario"):
            found[label] = flat_overrides(overrides)
            for key in found[label]:
                instead = {"policy": "policies", "seed": "seeds"}.get(key.split(".")[0])
                if instead is not None:
                    self.problems.append(
                        f"configurations.{label}.{key}: belongs under {instead} of the experiment"
                    )
        return found

    def _variants(
        self,
        base: Scenario | None,
        overrides: Mapping[str, Mapping[str, Any]],
        policies: Sequence[Mapping[str, Any]],
        readings: int | None,
    ) -> dict[str, Scenario]:
        """Return the scenario of each configuration, by label."""
        found: dict[str, Scenario] = {}
        if base is None:
            return found
        for label, flat in overrides.items():
            prefix = f"configurations.{label}"
            mapping = self._try(prefix, partial(_merged, base.to_mapping(), flat))
            if mapping is None:
                continue
            build = partial(scenario_from_mapping, mapping, base_dir=self._folder)
            scenario = self._try(prefix, build)
            if scenario is None:
                continue
            if self.check_worlds:
                places = self._try(prefix, partial(_build_world, scenario, policies, readings))
                if places is not None:
                    self._places[label] = places
            found[label] = scenario
        return found

    def _columns(
        self, config: ExperimentConfig, scenarios: Mapping[str, Scenario]
    ) -> tuple[int, ...]:
        """Return the numbers of readings at which the tables have a column."""
        for label, places in self._places.items():
            self.problems.extend(
                f"{key}: {n} readings, but the map of configuration {label!r} has {places} places"
                for key in ("budgets", "checkpoints")
                for n in getattr(config, key)
                if n > places and not _all_revisit(config)
            )
        if config.budgets:
            self.problems.extend(
                f"configurations.{label}.budget.readings: belongs under budgets of the experiment"
                for label, overrides in config.configurations.items()
                if "budget.readings" in flat_overrides(overrides or {})
            )
            return tuple(sorted(config.budgets))
        own = {label: s.budget.readings for label, s in scenarios.items()}
        for label, readings in own.items():
            if readings is None and not config.checkpoints:
                self.problems.append(
                    f"budgets: expected budgets or checkpoints, since the scenario of "
                    f"configuration {label!r} has no budget.readings"
                )
            elif readings is not None and readings < max(config.checkpoints, default=0):
                self.problems.append(
                    f"checkpoints: the last one is {max(config.checkpoints)}, but missions of "
                    f"configuration {label!r} end after budget.readings = {readings}"
                )
        return tuple(sorted(config.checkpoints or {n for n in own.values() if n is not None}))

    def _check_metrics(self, config: ExperimentConfig, scenarios: Mapping[str, Scenario]) -> None:
        if "true_weight" in config.metrics and not any(
            true_weight_indices(s.to_mapping()) for s in scenarios.values()
        ):
            self.problems.append(
                "metrics: true_weight needs a field of kind gp, drawn with the belief's kernel and "
                "a length-scale that is among belief.length_scales; no configuration has one"
            )


def _under(prefix: str, problem: str) -> str:
    """Return a problem with the path of its key in front."""
    if not prefix:
        return problem
    if prefix.startswith("policies."):
        problem = problem.removeprefix("policy.")
    return f"{prefix}.{problem}" if re.match(r"[\w.\[\]]+: ", problem) else f"{prefix}: {problem}"


def _not_seeds(scenario: Scenario, keys: tuple[str, ...]) -> list[str]:
    """Return a problem for each of `keys` that does not name a seed in the scenario."""
    problems = []
    for number, key in enumerate(keys):
        where = f"seeded[{number}]"
        try:
            value = _at(scenario.to_mapping(), key)
        except (KeyError, TypeError):
            problems.append(f"{where}: the scenario has no key {key!r}; such as map.seed")
            continue
        if key.split(".")[-1] != "seed" or not isinstance(value, int):
            problems.append(f"{where}: expected a key named seed, such as map.seed, got {key!r}")
        elif key == "seed":
            problems.append(f"{where}: the scenario's own seed is given anyway; remove it")
    return problems


def _all_revisit(config: ExperimentConfig) -> bool:
    """Return whether all policies may choose observed places again."""
    names = [str((policy or {}).get("name", label)) for label, policy in config.policies.items()]
    return all(revisits(registered.factory(name)) for name in names)


def _build_world(
    scenario: Scenario, policies: Sequence[Mapping[str, Any]], readings: int | None
) -> int:
    """Build all parts of a mission as a check. Return the number of places."""
    if readings is not None:
        budget = dataclasses.replace(scenario.budget, readings=readings)
        scenario = dataclasses.replace(scenario, budget=budget)
    topology = build_world(scenario).topology
    # Check a policy of the experiment: the scenario's own policy may run no trial.
    scenario = dataclasses.replace(scenario, policy=dict((policies or [scenario.policy])[0]))
    loop = build_loop(scenario, topology)
    for policy in policies if loop.quantities else ():
        check_fit(build_policy(policy), loop.belief, topology, loop.quantities.values())
    return topology.n


def _at(mapping: Mapping[str, Any], key: str) -> Any:
    value: Any = mapping
    for part in key.split("."):
        value = value[part]
    return value


def _merged(mapping: dict[str, Any], flat: Mapping[str, Any]) -> dict[str, Any]:
    """Set the values of dotted keys such as ``a.b`` in nested data.

    Raises:
        ConfigError: ``a`` is a value, not a section.
    """
    for key, value in flat.items():
        target: Any = mapping
        *parents, last = key.split(".")
        for parent in parents:
            target = target.setdefault(parent, {})
            if not isinstance(target, dict):
                msg = f"{key}: {parent!r} is a value, not a section"
                raise ConfigError(msg)
        target[last] = value
    return mapping
