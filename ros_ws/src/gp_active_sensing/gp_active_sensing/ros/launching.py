"""Description of a launch as plain data; ``ros2 launch`` and the runner both use it.

`resolve` turns a `LaunchSpec` (see `launches`) and the given arguments into nodes to run; `runner`
starts them, and `launch_description` hands the same to ``ros2 launch``.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import ConfigError, MissingDependencyError, suggest
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.ros.parameter_files import check_parameter_file
from gp_active_sensing.util.resources import find_resource
from gp_active_sensing.util.threads import THREAD_VARIABLES

__all__ = [
    "END_SECONDS",
    "KILL_SECONDS",
    "RESPAWN_SECONDS",
    "Argument",
    "LaunchSpec",
    "NodeRun",
    "NodeSpec",
    "Use",
    "node_environment",
    "resolve",
]

PACKAGE = "gp_active_sensing"
_PROFILE_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
RESPAWN_SECONDS = 2.0
"""Before a node is started again [s]."""
END_SECONDS = 20.0
"""A node has from SIGINT to SIGTERM, for its last words and its report [s]."""
KILL_SECONDS = 5.0
"""And from there to SIGKILL [s]."""
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class Argument:
    """One argument of a launch, ``name:=value``.

    Args:
        name: its name.
        help: one sentence, with the unit.
        default: used when not given; "" leaves the matter to the parameter file.
        kind: str, int, float or bool; or what makes a value of the text, and raises ConfigError.
        choices: allowed words.
        required: must be given.
    """

    name: str
    help: str
    default: str = ""
    kind: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    required: bool = False

    def parse(self, text: str) -> Any:
        """Return the value, or None for an empty one.

        Raises:
            ConfigError: not of the argument's kind, or none of its choices.
        """
        if text == "":
            if self.required:
                msg = f"{self.name}: is required ({self.help}); give {self.name}:=…"
                raise ConfigError(msg)
            return None
        if self.choices and text not in self.choices:
            hint = suggest(text, self.choices)
            msg = f"{self.name}: expected one of {', '.join(self.choices)}, got {text!r}.{hint}"
            raise ConfigError(msg)
        if self.kind is bool:
            if text.lower() not in _WORDS:
                msg = f"{self.name}: expected true or false, got {text!r}"
                raise ConfigError(msg)
            return _WORDS[text.lower()]
        try:
            return self.kind(text)
        except ConfigError:
            raise
        except ValueError:
            word = "a whole number" if self.kind is int else "a number"
            msg = f"{self.name}: expected {word}, got {text!r}"
            raise ConfigError(msg) from None


@dataclass(frozen=True)
class Use:
    """Stands for the value of an argument; an argument left empty sets nothing."""

    argument: str


@dataclass(frozen=True)
class NodeSpec:
    """One node of a launch.

    Args:
        executable: as in ``ros2 run <package> <executable>``.
        name: name of the node.
        package: the package it is in.
        parameters: parameter -> value, or the argument that gives it, or several for a list.
        remappings: topic -> the argument that gives its other name.
        shared: the same of topics that several probes have one of.
        private_of: node that ``~/`` in a topic stands for; "" = this one.
        arguments: command line ahead of the ROS arguments; ``config`` files are looked up.
        per_probe: argument with the names of several probes: their topics, each in the namespace
            of its name, are remapped as the one probe's would be.
        only_if: argument that says whether to start it: true, or any text.
        required: its end ends the launch.
        respawn: argument (true or false) that says whether it is started again when it was killed
            or crashed.
    """

    executable: str
    name: str
    package: str = PACKAGE
    parameters: Mapping[str, Use | tuple[Use, ...] | bool | int | float | str] = field(
        default_factory=dict
    )
    remappings: Mapping[str, Use] = field(default_factory=dict)
    shared: Mapping[str, Use] = field(default_factory=dict)
    private_of: str = ""
    arguments: tuple[str, ...] = ()
    per_probe: str = ""
    only_if: str = ""
    required: bool = True
    respawn: str = ""


@dataclass(frozen=True)
class LaunchSpec:
    """One launch: what it is for, its arguments and its nodes."""

    name: str
    help: str
    arguments: tuple[Argument, ...]
    nodes: tuple[NodeSpec, ...]


@dataclass(frozen=True)
class NodeRun:
    """One node with everything decided."""

    spec: NodeSpec
    parameters: dict[str, Any]
    remappings: dict[str, str]
    params_file: Path | None
    arguments: tuple[str, ...]
    respawn: bool = False

    @property
    def module(self) -> str:
        """The Python module behind one of our executables."""
        return f"{PACKAGE}.ros.{self.spec.executable}_node"

    def command(self) -> tuple[str, ...]:
        """Return the command that starts the node without ``ros2``.

        Raises:
            MissingDependencyError: a program of another package that is not on the path.
        """
        if self.spec.package == PACKAGE:
            start = [sys.executable, "-m", self.module]
        else:
            program = shutil.which(self.spec.executable)
            if program is None:
                msg = (
                    f"{self.spec.executable} is not on the PATH: install the package "
                    f"{self.spec.package} of ROS 2 and source its setup file, or leave it out"
                )
                raise MissingDependencyError(msg)
            start = [program]
        ros = ["-r", f"__node:={self.spec.name}"]
        if self.params_file is not None:
            ros += ["--params-file", str(self.params_file)]
        for topic, other in self.remappings.items():
            ros += ["-r", f"{topic}:={other}"]
        for name, value in self.parameters.items():
            # JSON is YAML: quoted text stays text, whatever it looks like.
            ros += ["-p", f"{name}:={json.dumps(value)}"]
        return (*start, *self.arguments, "--ros-args", *ros)


def resolve(spec: LaunchSpec, given: Mapping[str, str]) -> list[NodeRun]:
    """Decide what a launch starts.

    Args:
        spec: the launch.
        given: argument -> text; arguments that are missing take their defaults.

    Raises:
        ConfigError: with every argument that is unknown or has a wrong value; or with everything
            in the parameter file that ROS cannot read.
        ResourceError: a parameter file that does not exist.
    """
    known = {argument.name: argument for argument in spec.arguments}
    problems: list[str] = []
    for name in given:
        if name not in known:
            problems.append(
                f"{name}: unknown argument.{suggest(name, known)} Known: {', '.join(known)}"
            )
    values: dict[str, Any] = {}
    for name, argument in known.items():
        try:
            values[name] = argument.parse(given.get(name, argument.default))
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(problems, source=f"launch {spec.name}")
    wanted = [node for node in spec.nodes if not node.only_if or values[node.only_if]]
    file = None
    if values.get("params_file"):
        file = find_resource("config", values["params_file"]).absolute()
        check_parameter_file(file)
    return [_resolve_node(node, values, file) for node in wanted]


def _resolve_node(node: NodeSpec, values: Mapping[str, Any], file: Path | None) -> NodeRun:
    parameters: dict[str, Any] = {}
    for name, value in node.parameters.items():
        decided: Any = value
        if isinstance(value, Use):
            decided = values[value.argument]
            if isinstance(decided, tuple):
                decided = list(decided)  # launch takes a tuple for parts of one text
        elif isinstance(value, tuple):
            decided = [values[use.argument] for use in value if values[use.argument]] or None
        if decided is not None:
            parameters[name] = decided
    others = {topic: values[use.argument] for topic, use in node.remappings.items()}
    remappings = {topic: other for topic, other in others.items() if other}
    if node.per_probe and (names := values[node.per_probe]):
        remappings = _for_each(names, remappings)
    shared = {topic: values[use.argument] for topic, use in node.shared.items()}
    remappings |= {topic: other for topic, other in shared.items() if other}
    remappings = {
        _named(topic, node.private_of): _named(other, node.private_of)
        for topic, other in remappings.items()
        if other != topic
    }
    params_file = file if node.package == PACKAGE else None
    arguments = tuple(
        str(find_resource(*argument.split("/", 1))) if "/" in argument else argument
        for argument in node.arguments
    )
    respawn = bool(node.respawn and values[node.respawn])
    return NodeRun(node, parameters, remappings, params_file, arguments, respawn)


def _named(topic: str, node: str) -> str:
    """Return a topic whose ``~/`` stands for another node than the one that hears of it."""
    return f"{node}/{topic[2:]}" if node and topic.startswith("~/") else topic


def _for_each(names: Sequence[str], remappings: Mapping[str, str]) -> dict[str, str]:
    """Return remappings for each of several probes.

    Raises:
        ConfigError: a topic with a / in front, which would be the same for all of them.
    """
    shared = sorted(other for other in remappings.values() if other.startswith("/"))
    if shared and len(names) > 1:
        msg = (
            f"{', '.join(shared)}: several probes cannot share a topic; without the / in front it "
            f"is {probe_topic(names[0], shared[0].lstrip('/'))} and so on"
        )
        raise ConfigError(msg)
    return {
        probe_topic(name, topic): other if other.startswith("/") else probe_topic(name, other)
        for name in names
        for topic, other in remappings.items()
        if other != topic
    }


def node_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that nodes should have and the given environment has not.

    Fast DDS finds its peers within a quarter of a second with our profile, otherwise in up to
    three. Planning works on small matrices, where more threads only get into each other's way (and
    results are the same to the bit with one thread only).
    """
    added = {name: "1" for name in THREAD_VARIABLES if name not in environment}
    if not any(name in environment for name in _PROFILE_VARIABLES):
        added[_PROFILE_VARIABLES[0]] = str(find_resource("config", "fastdds.xml").absolute())
    return added
