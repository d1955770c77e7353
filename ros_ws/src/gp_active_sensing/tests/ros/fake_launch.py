"""A stand-in for ``launch`` and ``launch_ros`` that is just large enough for our launch files.

It knows only what they use, with the same signatures, and refuses everything else, so that a wrong
keyword fails here as it would in a robot's terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


@dataclass
class LaunchDescription:
    entities: list[Any]


@dataclass
class LaunchContext:
    launch_configurations: dict[str, str] = field(default_factory=dict)
    is_shutdown: bool = False


class DeclareLaunchArgument:
    def __init__(
        self,
        name: str,
        *,
        default_value: str | None = None,
        description: str | None = None,
        choices: Iterable[str] | None = None,
    ) -> None:
        assert isinstance(default_value, str | None)
        assert description
        self.name, self.default_value = name, default_value
        self.description = description
        self.choices = None if choices is None else list(choices)
        if self.choices is not None and default_value is not None:
            # As in launch: a default outside of the choices is an error.
            assert default_value in self.choices


class OpaqueFunction:
    def __init__(self, *, function: Callable[[LaunchContext], list[Any] | None]) -> None:
        self.function = function


@dataclass
class Shutdown:
    reason: str = ""


class ParameterValue:
    def __init__(self, value: Any, *, value_type: Any = None) -> None:
        self.value, self.value_type = value, value_type


class Node:
    def __init__(
        self,
        *,
        executable: str,
        package: str | None = None,
        name: str | None = None,
        parameters: Sequence[str | dict[str, Any]] | None = None,
        remappings: Sequence[tuple[str, str]] | None = None,
        arguments: Sequence[str] | None = None,
        additional_env: dict[str, str] | None = None,
        output: str = "log",
        on_exit: Any = None,
        respawn: bool = False,
        respawn_delay: float | None = None,
        sigterm_timeout: str = "5",
        sigkill_timeout: str = "5",
    ) -> None:
        self.executable, self.package, self.name = executable, package, name
        self.parameter_files = [p for p in parameters or () if isinstance(p, str)]
        self.parameters: dict[str, Any] = {}
        for given in parameters or ():
            if isinstance(given, dict):
                self.parameters.update(
                    {k: v.value if isinstance(v, ParameterValue) else v for k, v in given.items()}
                )
        self.remappings = dict(remappings or ())
        self.arguments = list(arguments or ())
        self.additional_env = dict(additional_env or {})
        self.output, self.on_exit = output, on_exit
        self.respawn, self.respawn_delay = respawn, respawn_delay
        self.timeouts = (float(sigterm_timeout), float(sigkill_timeout))

    def ended(self, code: int, *, asked: bool = False) -> list[Any]:
        """Return what is done when the process ends with an exit code.

        Args:
            code: minus n after signal n.
            asked: the launch is shutting down.
        """
        if callable(self.on_exit):
            context = LaunchContext(is_shutdown=asked)
            return self.on_exit(SimpleNamespace(returncode=code), context) or []
        return self.on_exit or []


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the stand-in what ``import launch`` finds."""
    contents: dict[str, dict[str, Any]] = {
        "launch": {"LaunchDescription": LaunchDescription},
        "launch.actions": {
            "DeclareLaunchArgument": DeclareLaunchArgument,
            "OpaqueFunction": OpaqueFunction,
            "Shutdown": Shutdown,
        },
        "launch_ros": {},
        "launch_ros.actions": {"Node": Node},
        "launch_ros.parameter_descriptions": {"ParameterValue": ParameterValue},
    }
    for name, members in contents.items():
        module = ModuleType(name)
        for key, value in members.items():
            setattr(module, key, value)
        monkeypatch.setitem(sys.modules, name, module)


def describe(launch_file: Path) -> LaunchDescription:
    """Execute a launch file as ``ros2 launch`` does, by path."""
    name = launch_file.name.replace(".", "_")
    module = ModuleType(name)
    SourceFileLoader(name, str(launch_file)).exec_module(module)
    description = module.generate_launch_description()
    assert isinstance(description, LaunchDescription)
    return description


def declared(description: LaunchDescription) -> dict[str, DeclareLaunchArgument]:
    """Return the declared arguments by name."""
    found = [e for e in description.entities if isinstance(e, DeclareLaunchArgument)]
    return {argument.name: argument for argument in found}


def run(description: LaunchDescription, **given: str) -> list[Node]:
    """Launch a description with arguments; return the nodes it starts."""
    context = LaunchContext()
    nodes: list[Node] = []
    for entity in description.entities:
        if isinstance(entity, DeclareLaunchArgument):
            value = given.get(entity.name, entity.default_value)
            assert value is not None, f"{entity.name} is required"
            if entity.choices is not None:
                assert value in entity.choices
            context.launch_configurations[entity.name] = value
        else:
            assert isinstance(entity, OpaqueFunction)
            nodes.extend(entity.function(context) or [])
    return nodes
