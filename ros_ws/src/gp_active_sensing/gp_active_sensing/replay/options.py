"""Configuration of a replay from journal, scenario, parameter file and options.

Later sources override earlier ones: the journal in the bag, a scenario, a ROS parameter file, the
options of the command line, and overrides ``a.b=value``.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.config import declared, from_mapping
from gp_active_sensing.errors import ConfigError, brief_repr
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.planning import DEFAULT_POLICY, build_policy
from gp_active_sensing.replay.recording import Recording
from gp_active_sensing.replay.topics import Topics
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.sim.scenario import with_policy
from gp_active_sensing.topology.loaders import kind_of_map
from gp_active_sensing.util.yaml_files import apply_overrides, load_yaml

NODE = "active_sensing"


@dataclass(frozen=True)
class ReplayOptions:
    """Options of a replay.

    Args:
        scenario: name or path of a scenario with map and belief; "" = no scenario.
        params: ROS parameter file.
        map_file: name or path of a road map.
        policy: name of another policy.
        budget: number of places to observe.
        expansions: largest number of expansions per decision; replaces the limit in seconds.
        seed: seed of all random numbers.
        reading_topic, reading_field, pose_topic: same as the parameters of the node; the bag
            determines the message types.
        overrides: configuration values, each as ``a.b=value``.
    """

    scenario: str = ""
    params: Path | None = None
    map_file: str = ""
    policy: str = ""
    budget: int | None = None
    expansions: int | None = None
    seed: int | None = None
    reading_topic: str = ""
    reading_field: str = ""
    pose_topic: str = ""
    overrides: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """True if an option changes the recorded mission."""
        return self != ReplayOptions()


def settled(
    given: ReplayOptions, base: Recording | None, types: Mapping[str, str], *, follow: bool
) -> tuple[ActiveSensingConfig, dict[str, Any] | None]:
    """Return the configuration, and its scenario (None = no scenario).

    Args:
        given: the options.
        base: recorded mission in the bag; None = no mission.
        types: type of each topic in the bag, used where no type is configured.
        follow: True = the probe's route is fixed. The budget then comes only from the parameter
            file and the options.

    Raises:
        ConfigError: keys or values are wrong, or there is no map.
        ResourceError: a scenario or map is missing.
    """
    mapping: dict[str, Any] = {}
    scenario: dict[str, Any] | None = None
    parameters = {} if given.params is None else parameters_of(given.params)
    parameters.pop("use_sim_time", None)
    named = given.scenario or str(parameters.get("scenario") or "")
    if base is not None and not named and given.params is None and not given.map_file:
        mapping = dict(base.config)
        scenario = None if base.scenario is None else dict(base.scenario)
    elif named:
        scenario = load_scenario(named).to_mapping()
        mapping = known_keys(ActiveSensingConfig, scenario)
        mapping.pop("probes")  # the number of simulated probes, not the names in the bag
        mapping["mission"] = {"retries": scenario["sensor"]["retries"]}
        mapping["scenario"] = named
    if follow:
        mapping["budget"] = {}
        mapping["probe"] = {k: v for k, v in mapping.get("probe", {}).items() if k != "end"}
    mapping = _overlaid(mapping, parameters)
    policy = given.policy or _policy_of(given.overrides)
    if policy:
        mapping = with_policy(mapping, policy)
    mapping = _overlaid(mapping, _options(given, types))
    mapping = apply_overrides(mapping, given.overrides)
    mapping |= {"autostart": True, "run_dir": ""}
    _check_has_map(mapping)
    source = "" if given.params is None else str(given.params)
    problems: list[str] = []
    config: ActiveSensingConfig | None = None
    try:
        config = from_mapping(ActiveSensingConfig, mapping, source=source)
    except ConfigError as error:
        problems += error.problems
    try:
        build_policy(mapping.get("policy", DEFAULT_POLICY))
    except ConfigError as error:
        problems += [problem for problem in error.problems if problem not in problems]
    if problems or config is None:
        raise ConfigError(problems, source=source)
    if follow:
        config = dataclasses.replace(
            config,
            mission=dataclasses.replace(config.mission, follow="probe", wait_for_plan=True),
            expert=dataclasses.replace(config.expert, ask=False),  # no expert answers
        )
    return config, scenario


def check_program(
    given: ReplayOptions, base: Recording | None, config: ActiveSensingConfig
) -> None:
    """Reject a policy's program that the bag names, unless an option also names it.

    Raises:
        ConfigError: a program chose the places of the recorded mission, and no option names this
            program.
    """
    if base is None or given.scenario or given.params is not None or given.map_file:
        return  # the bag's configuration is not used
    theirs = base.config.get("policy")
    command = config.policy.get("command")
    if command is None or not isinstance(theirs, Mapping) or theirs.get("command") != command:
        return
    if any("command" in override for override in given.overrides):
        return  # named in the options
    msg = (
        f"policy.command: the bag says that a program chose the places, {brief_repr(command)}. A "
        "bag may come from anybody, so it is not run; name another policy (--policy), or the "
        "program yourself (--set 'policy.command=[…]')"
    )
    raise ConfigError([msg])


def topics_of(
    given: ReplayOptions, base: Recording | None, config: ActiveSensingConfig
) -> dict[str, Topics]:
    """Return the topics of each probe. Raises ConfigError if several probes have the same topic."""
    names = config.probes or ("",)
    usual = {"reading": config.reading.topic, "pose": config.pose.topic}
    found: dict[str, Topics] = {}
    for name in names:
        of_bag = None if base is None else base.topics.get(name)
        pair: dict[str, Any] = {}
        prefix = f"/{name}" if name else ""
        for kind, topic_given in (("reading", given.reading_topic), ("pose", given.pose_topic)):
            if not topic_given and of_bag is not None:
                pair[kind] = getattr(of_bag, kind)
                continue
            topic = topic_given or usual[kind]
            if topic.startswith("/") and len(names) > 1:
                msg = (
                    f"--{kind}-topic: {topic} is one topic and there are {len(names)} probes; give "
                    f"a name that is in each one's namespace, such as {topic.rsplit('/', 1)[1]}"
                )
                raise ConfigError(msg)
            pair[kind] = topic if topic.startswith("/") else f"{prefix}/{topic}"
        further = {}
        for quantity, each in config.further.items():
            if not each.probes or name in each.probes:
                topic = each.topic if each.topic.startswith("/") else f"{prefix}/{each.topic}"
                topic = topic if of_bag is None else of_bag.further.get(quantity, topic)
                further[quantity] = pair["reading"] if each.topic == usual["reading"] else topic
        pair["further"] = further
        if twist := config.pose.twist_topic:
            twist = twist if twist.startswith("/") else f"{prefix}/{twist}"
            pair["twist"] = twist if of_bag is None else of_bag.twist or twist
        found[name] = Topics(**pair)
    return found


def parameters_of(path: Path) -> dict[str, Any]:
    """Return the nested parameters of the node in a ROS parameter file. Raises ConfigError."""
    whole = load_yaml(path)
    found: dict[str, Any] = {}
    ours = False
    for name, section in whole.items():
        node = str(name).strip("/").rsplit("/", 1)[-1]
        if node not in {"*", "**", NODE}:
            continue
        inner = section.get("ros__parameters") if isinstance(section, Mapping) else None
        if not isinstance(inner, Mapping):
            msg = f"{name}: expected ros__parameters below it, as in config/probe.yaml"
            raise ConfigError(msg, source=str(path))
        ours = True
        found = _overlaid(found, _nested(inner))
    if not ours:
        msg = f"expected parameters of {NODE}, or of /**; found {', '.join(map(str, whole))}"
        raise ConfigError(msg, source=str(path))
    return found


def known_keys(cls: type, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of nested data that are fields of the configuration class `cls`."""
    found: dict[str, Any] = {}
    for field, hint in declared(cls):
        if field.name not in mapping:
            continue
        value = mapping[field.name]
        inner = dataclasses.is_dataclass(hint) and isinstance(value, Mapping)
        found[field.name] = known_keys(typing.cast(type, hint), value) if inner else value
    return found


def _options(given: ReplayOptions, types: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"reading": {}, "pose": {}}
    if given.map_file:
        found["map"] = {"kind": kind_of_map(given.map_file), "file": given.map_file}
    if given.budget is not None:
        found["budget"] = {"readings": given.budget}
    if given.expansions is not None:
        found["limit"] = {"expansions": given.expansions, "seconds": None}
    if given.seed is not None:
        found["seed"] = given.seed
    if given.reading_field:
        found["reading"]["field"] = given.reading_field
    for kind, topic in (("reading", given.reading_topic), ("pose", given.pose_topic)):
        if topic and (own := _type_in(types, topic)):  # a named topic implies its type
            found[kind]["type"] = own
    return found


def _type_in(types: Mapping[str, str], topic: str) -> str:
    """Return the type of a topic in a bag, "" = none; `topic` may lack the namespace."""
    if topic.startswith("/"):
        return types.get(topic, "")
    return next((kind for name, kind in types.items() if name.endswith(f"/{topic}")), "")


def _policy_of(overrides: tuple[str, ...]) -> str:
    names = [text.partition("=")[2].strip() for text in overrides if text.startswith("policy.name")]
    return names[-1].strip("'\"") if names else ""


def _overlaid(base: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the values of `part`; a new policy or kind of map replaces its section."""
    result = dict(base)
    for key, value in part.items():
        before = result.get(key)
        if not (isinstance(before, Mapping) and isinstance(value, Mapping)):
            result[key] = dict(value) if isinstance(value, Mapping) else value
            continue
        other = any(word in value and value[word] != before.get(word) for word in ("name", "kind"))
        whole = other and key in {"policy", "map"}
        result[key] = dict(value) if whole else _overlaid(before, value)
    return result


def _nested(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested data for parameters with dots in their names; NaN becomes None."""
    found: dict[str, Any] = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            inner: Any = _nested(value)
        elif isinstance(value, float) and math.isnan(value):
            inner = None
        else:
            inner = value
        for part in reversed(str(key).split(".")):
            inner = {part: inner}
        found = _overlaid(found, inner)
    return found


def _check_has_map(mapping: Mapping[str, Any]) -> None:
    if not mapping.get("map"):
        msg = (
            "no map: the bag is not a recorded mission of active_sensing, so say where it took "
            "place: --scenario NAME, --params FILE or --map FILE"
        )
        raise ConfigError(msg)
