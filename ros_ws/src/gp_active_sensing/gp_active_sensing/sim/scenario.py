"""Scenario of a simulated mission, as a tree of frozen dataclasses."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.config import Param, from_mapping, param, to_mapping
from gp_active_sensing.engine.config import BudgetConfig, DriveConfig, LimitConfig, TripConfig
from gp_active_sensing.engine.limits import LimitsConfig
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.experts.base import ExpertConfig
from gp_active_sensing.kernels import scale_unit
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.names import MOST_PROBES, numbered
from gp_active_sensing.mission.stream_config import PlannedConfig
from gp_active_sensing.planning import DEFAULT_POLICY, build_policy, policies
from gp_active_sensing.planning.base import Policy
from gp_active_sensing.records.regret import OBJECTIVES, objective_of
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.sensor import SensorConfig
from gp_active_sensing.sim.traffic import TrafficConfig
from gp_active_sensing.topology import MapConfig
from gp_active_sensing.util.resources import find_resource
from gp_active_sensing.util.yaml_files import apply_overrides, load_yaml

_FILES = {
    "belief": ("history", "model"),
    "map": ("file", "outline", "obstacles", "weights"),
    "field": ("file",),
    "policy": ("command",),
    "traffic": ("net", "routes"),
}
"""Scenario keys whose values are file names, by section."""


@dataclass(frozen=True)
class ProbeConfig(TripConfig):
    """Start, end and speed of a simulated probe."""

    start: int | str | tuple[float, float] | None = param(
        None,
        help="first place of the probe: a name in quotes, an index, [x, y] for the nearest place "
        "(metres of the map, or longitude and latitude), or random = drawn by the seed. null = any "
        "place may be first",
    )


@dataclass(frozen=True, kw_only=True)
class FurtherField(PlannedConfig):
    """Further quantity of a scenario: its field, sensor and belief."""

    field: FieldConfig
    sensor: SensorConfig = dataclasses.field(default_factory=SensorConfig)


_ALWAYS_ENDS = 500
"""Largest number of search expansions per decision in a scenario without `limit`."""


@dataclass(frozen=True)
class Scenario:
    """A simulated mission."""

    REMOVED: ClassVar[Mapping[str, str]] = ActiveSensingConfig.REMOVED

    map: MapConfig = param(help="map of the places where the probe may go")  # noqa: RUF009
    field: FieldConfig = param(help="the field to measure")  # noqa: RUF009
    belief: BeliefConfig = param(  # noqa: RUF009
        BeliefConfig(), help="prior knowledge about the field. Left out = no prior knowledge"
    )
    name: str = param(
        "scenario", help="name of the scenario, also used in the name of the run directory"
    )
    description: str = param("", help="one or two sentences, for reports")
    seed: int = param(0, help="seed of all random draws", low=0)
    traffic: TrafficConfig = dataclasses.field(default_factory=TrafficConfig)
    sensor: SensorConfig = dataclasses.field(default_factory=SensorConfig)
    quantities: dict[str, FurtherField] = dataclasses.field(
        default_factory=dict,
        metadata={
            "param": Param(
                help="further quantities by name, read at the same places. Each quantity has the "
                "keys field, sensor, belief, weight, sampled and link"
            )
        },
    )
    probe: ProbeConfig = dataclasses.field(default_factory=ProbeConfig)
    drive: DriveConfig = dataclasses.field(default_factory=DriveConfig)
    probes: int = param(
        1,
        help="number of probes that share the mission and its budget of readings. The first probe "
        "begins at probe.start; the seed draws the starts of the others. Each probe has its own "
        "budget.metres and budget.seconds",
        low=1,
        high=MOST_PROBES,
    )
    expert: ExpertConfig = dataclasses.field(default_factory=ExpertConfig)
    policy: dict[str, Any] = dataclasses.field(
        default_factory=lambda: dict(DEFAULT_POLICY),
        metadata={
            "param": Param(help="name of the policy and its parameters; `policies` lists them")
        },
    )
    seek: str | None = param(
        None,
        help="maximise or minimise, for the regret in the records. null = the objective of the "
        "policy, if the policy has one",
        choices=OBJECTIVES,
    )
    budget: BudgetConfig = dataclasses.field(default_factory=BudgetConfig)
    limits: LimitsConfig = dataclasses.field(default_factory=LimitsConfig)
    limit: LimitConfig = dataclasses.field(
        default_factory=lambda: LimitConfig(expansions=_ALWAYS_ENDS)
    )

    def __post_init__(self) -> None:
        if not self.name or any(c in self.name for c in "/\\\0") or self.name.startswith("."):
            msg = f"name: expected a word that can be part of a file name, got {self.name!r}"
            raise ConfigError(msg)
        if self.field.kind == "sumo" and self.probe.speed != "limit":
            msg = "probe.speed: has no meaning in traffic, where the probe is a car among others"
            raise ConfigError(msg)
        if self.field.kind != "sumo" and self.traffic != TrafficConfig():
            msg = f"traffic: is for a field of kind sumo, this one is of kind {self.field.kind}"
            raise ConfigError(msg)
        if self.field.kind == "sumo" and self.sensor.seconds:
            msg = "sensor.seconds: has no meaning in traffic, where the probe cannot stop at will"
            raise ConfigError(msg)
        if self.field.kind == "sumo" and self.probes > 1:
            msg = f"probes: in live traffic there is one car, got {self.probes}; several probes "
            msg += "need a field that is known (a table or a draw)"
            raise ConfigError(msg)

        for name, each in self.quantities.items():
            if "sumo" in (self.field.kind, each.field.kind):
                msg = f"quantities.{name}: in live traffic there is one quantity, the speed"
                raise ConfigError(msg)
        if self.field.kind == "sumo" and self.expert.kind != "none":
            msg = "expert.kind: in live traffic nobody knows the field; it needs one that is known "
            msg += f"(a table or a draw), got {self.expert.kind}"
            raise ConfigError(msg)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the probes ("probe_1", "probe_2", …); () for a single probe."""
        return numbered(str(self.probes)) if self.probes > 1 else ()

    @property
    def main(self) -> str:
        """Name of the main quantity; "" if the scenario has a single quantity."""
        word = re.sub("[^a-z0-9]+", "_", self.field.quantity.lower()).strip("_")
        return word if self.quantities else ""

    @property
    def scale_unit(self) -> str:
        """Unit of the length-scales: metres for positions or roads; "" for other features."""
        drawn = self.map.kind == "points" and not self.map.file
        features = ("x1",) if drawn else self.map.features or ("x", "y")
        return scale_unit(features, self.belief.kernel_names)

    def build_policy(self) -> Policy:
        """Return the policy of the scenario. Raises ConfigError for invalid parameters."""
        return build_policy(self.policy)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data that `scenario_from_mapping` accepts."""
        return to_mapping(self)


def load_scenario(
    name_or_path: str | Path, *, overrides: Sequence[str] = (), policy: str | None = None
) -> Scenario:
    """Read a scenario.

    Args:
        name_or_path: name of a shipped scenario ("town"), or path of a YAML file.
        overrides: ``a.b=value`` with YAML values, applied last.
        policy: name of a policy that replaces the scenario's policy; see `with_policy`.

    Raises:
        ResourceError: the scenario does not exist; the message lists shipped scenarios.
        ConfigError: keys or values are wrong, or `overrides` and `policy` name different policies.
    """
    path = find_resource("sim", str(name_or_path))
    mapping = load_yaml(path)
    mapping.setdefault("name", path.stem)
    if policy is not None:
        mapping = with_policy(mapping, policy)
    mapping = apply_overrides(mapping, overrides)
    chosen = mapping.get("policy")
    named = chosen.get("name", policy) if isinstance(chosen, Mapping) else policy
    if policy is not None and named != policy:
        msg = f"policy.name: {named!r} was set, and {policy!r} asked for (--policy); give one"
        raise ConfigError(msg)
    try:
        return scenario_from_mapping(mapping, base_dir=path.parent)
    except ConfigError as error:
        found = [_with_origin(problem, overrides, str(path)) for problem in error.problems]
        raise type(error)(found) from error


def _with_origin(problem: str, overrides: Sequence[str], source: str) -> str:
    """Return `problem` with its origin in front: the override that caused it, or else `source`."""
    keys = re.split(r"[.\[]", problem.partition(":")[0])
    for override in reversed(overrides):  # the last one takes effect
        own = override.partition("=")[0].strip().split(".")
        if keys[: len(own)] == own:
            return f"{override} (given on the command line): {problem}"
    return f"{source}: {problem}"


def scenario_from_mapping(
    mapping: Mapping[str, Any], *, source: str = "", base_dir: Path | None = None
) -> Scenario:
    """Build a scenario from the sections of a scenario file.

    Relative file names are searched first in `base_dir`. Error messages contain `source`, the
    origin of the data.

    Raises:
        ConfigError: keys or values are wrong; the error lists all of them with their paths.
    """
    problems: list[str] = []
    scenario: Scenario | None = None
    mapping = _with_files(mapping, base_dir)
    try:
        scenario = from_mapping(Scenario, mapping, source=source)
    except ConfigError as error:
        problems.extend(error.problems)
    chosen = mapping.get("policy") if isinstance(mapping, Mapping) else None
    policy: Any = None
    if chosen is None or isinstance(chosen, Mapping):
        try:
            policy = build_policy(dict(chosen or DEFAULT_POLICY))
        except ConfigError as error:
            problems += [
                problem if problem.startswith("policy.") else f"policy: {problem}"
                for problem in error.problems
            ]
    if scenario is not None and policy is not None:
        try:
            objective_of(policy, scenario.seek)
        except ConfigError as error:
            problems.extend(error.problems)
    if problems or scenario is None:
        raise ConfigError(problems, source=source)
    name = scenario.policy.get("name")
    # Store all parameters of the policy, including defaults, in the configuration of the run.
    return dataclasses.replace(scenario, policy={"name": name, **to_mapping(policy)})


def with_policy(mapping: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return scenario data with another policy. Parameters that both policies have are kept.

    Raises:
        UnknownNameError: no policy has this name.
    """
    factory: Any = policies.factory(name)
    known = {field.name for field in dataclasses.fields(factory)}
    old = mapping.get("policy")
    kept: dict[str, Any] = {}
    if isinstance(old, Mapping):
        kept = {k: v for k, v in old.items() if k in known}
    return {**mapping, "policy": {"name": name, **kept}}


def _with_files(mapping: Any, base_dir: Path | None) -> Any:
    if base_dir is None or not isinstance(mapping, Mapping):
        return mapping
    result = dict(mapping)
    for section, keys in _FILES.items():
        inner = result.get(section)
        if isinstance(inner, Mapping):
            found = {key: _beside(inner[key], base_dir) for key in keys if key in inner}
            result[section] = {**inner, **found}
    if isinstance(further := result.get("quantities"), Mapping):
        result["quantities"] = {name: _with_files(v, base_dir) for name, v in further.items()}
    return result


def _beside(value: Any, base_dir: Path) -> Any:
    """Return `value`; names of files that exist in `base_dir` become absolute paths."""
    if isinstance(value, list):
        return [_beside(item, base_dir) for item in value]
    if isinstance(value, Mapping):
        return {key: _beside(item, base_dir) for key, item in value.items()}
    if isinstance(value, str) and value and (base_dir / value).is_file():
        # Do not resolve an absolute path: the Python of a virtual environment is a link.
        return value if Path(value).is_absolute() else str((base_dir / value).resolve())
    return value
