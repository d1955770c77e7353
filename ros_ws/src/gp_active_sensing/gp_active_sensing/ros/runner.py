"""Start the nodes of a launch file without ``ros2 launch``, which an installation by pip lacks.

``python -m gp_active_sensing.ros.runner traffic_sim policy:=bal`` starts the same nodes with the
same parameters as ``ros2 launch gp_active_sensing traffic_sim.launch.py policy:=bal``, marks their
output with their names and ends them together. It reads the same launch files: there they import
stand-ins for ``launch`` and ``launch_ros``, which keep what is said of the processes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

from gp_active_sensing.errors import (
    ActiveSensingError,
    ConfigError,
    MissingDependencyError,
    UnknownNameError,
    suggest,
)
from gp_active_sensing.ros.environment import FAILED, REFUSED, require_ros
from gp_active_sensing.ros.launching import (
    Arguments,
    declarations,
    node_environment,
    read_arguments,
)
from gp_active_sensing.ros.processes import ProcessGroup, Program
from gp_active_sensing.util.resources import find_resource, list_resources

__all__ = [
    "Launch",
    "Process",
    "child_environment",
    "exit_code",
    "launch_names",
    "main",
    "make_group",
    "parse_arguments",
    "read_launch",
]

_GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
_SUFFIX = ".launch.py"
_USAGE = """\
Usage: python -m gp_active_sensing.ros.runner LAUNCH [NAME:=VALUE …] [--show-args]

Starts the nodes of a launch file and ends them together; Ctrl-C ends all.

Launch files:
"""


class Process(SimpleNamespace):
    """Stands for ``Node`` and ``ExecuteProcess``: their keywords are its attributes."""

    def command(self) -> tuple[str, ...]:
        """Return the command that starts it, without ``ros2`` for a node.

        Raises:
            MissingDependencyError: a program of another package that is not on the path.
        """
        if hasattr(self, "cmd"):
            return tuple(self.cmd)
        if self.package == "gp_active_sensing":
            start = [sys.executable, "-m", f"gp_active_sensing.ros.{self.executable}_node"]
        elif program := shutil.which(self.executable):
            start = [program]
        else:
            msg = (
                f"{self.executable} is not on the PATH: install the package {self.package} of "
                "ROS 2 and source its setup file, or leave it out"
            )
            raise MissingDependencyError(msg)
        ros = ["-r", f"__node:={self.name}", *getattr(self, "ros_arguments", ())]
        if namespace := getattr(self, "namespace", ""):
            ros += ["-r", f"__ns:=/{namespace.strip('/')}"]
        for topic, other in getattr(self, "remappings", ()):
            ros += ["-r", f"{topic}:={other}"]
        for given in self.parameters:
            if isinstance(given, str):
                ros += ["--params-file", given]
            else:
                # JSON is YAML: quoted text stays text, whatever it looks like.
                for name, value in given.items():
                    ros += ["-p", f"{name}:={json.dumps(value)}"]
        return (*start, *getattr(self, "arguments", ()), "--ros-args", *ros)


STAND_INS: dict[str, dict[str, Any]] = {
    "launch": {"LaunchContext": SimpleNamespace, "LaunchDescription": list},
    "launch.actions": {
        "DeclareLaunchArgument": SimpleNamespace,
        "ExecuteProcess": Process,
        "OpaqueFunction": SimpleNamespace,
    },
    "launch_ros": {},
    "launch_ros.actions": {"Node": Process},
    "launch_ros.parameter_descriptions": {"ParameterValue": lambda value, value_type: value},
}


@contextlib.contextmanager
def stand_ins() -> Iterator[None]:
    """Make the stand-ins what ``import launch`` finds."""
    before = {name: sys.modules.get(name) for name in STAND_INS}
    for name, members in STAND_INS.items():
        sys.modules[name] = module = ModuleType(name)
        vars(module).update(members)
    try:
        yield
    finally:
        for name, module_before in before.items():
            del sys.modules[name]
            if module_before is not None:
                sys.modules[name] = module_before


@dataclass(frozen=True)
class Launch:
    """A launch file: `start` returns its processes, given a context with the arguments' texts."""

    name: str
    help: str
    arguments: type[Arguments]
    start: Callable[[Any], list[Process]]

    def resolve(self, given: Mapping[str, str]) -> list[Process]:
        """Decide what is started.

        Args:
            given: argument -> text; arguments that are missing take their defaults.

        Raises:
            ConfigError: with every argument that is unknown or has a wrong value; or with
                everything in the parameter file that ROS cannot read.
            ActiveSensingError: something that is needed is missing.
        """
        read_arguments(self.arguments, given, strict=True)
        with stand_ins():
            return self.start(SimpleNamespace(launch_configurations=given))


def launch_names() -> tuple[str, ...]:
    """Return the names of the launch files."""
    names = list_resources("launch")
    return tuple(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def read_launch(name: str) -> Launch:
    """Return a launch file by its name.

    Raises:
        UnknownNameError: no such launch file; the message has the nearest match.
    """
    known = launch_names()
    if name not in known:
        msg = f"unknown launch {name!r}.{suggest(name, known)} Known: {', '.join(known)}"
        raise UnknownNameError(msg)
    with stand_ins():
        found = runpy.run_path(str(find_resource("launch", f"{name}{_SUFFIX}")))
    return Launch(name, found["__doc__"].rstrip("."), found["Arguments"], found["start"])


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the nodes.

    The ROS wheels put themselves on LD_LIBRARY_PATH by starting the interpreter a second time, and
    leave a note that they did; with the note and without the path a child could not load them.
    """
    child = {**environment, **node_environment(environment), "PYTHONUNBUFFERED": "1"}
    if "LD_LIBRARY_PATH" not in child:
        child.pop(_GUARD, None)
    return child


def parse_arguments(words: Sequence[str]) -> dict[str, str]:
    """Split ``name:=value`` words.

    Raises:
        ConfigError: words of another form.
    """
    problems = [word for word in words if ":=" not in word or word.startswith(":=")]
    if problems:
        raise ConfigError([f"{word}: expected name:=value" for word in problems])
    return dict(word.split(":=", 1) for word in words)


def make_group(
    name: str,
    given: Mapping[str, str],
    *,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str, str], None] | None = None,
) -> ProcessGroup:
    """Return the processes of a launch file, not yet started.

    Args:
        name: the launch file.
        given: its arguments as text.
        environment: variables to start from; None = this process's.
        on_line: gets (process, line) of the output.

    Raises:
        ActiveSensingError: unknown or wrong arguments, or something that is needed is missing.
    """
    programs = [
        Program(run.name, run.command(), end.required, end.respawn, end.when_asked)
        for run in read_launch(name).resolve(given)
        for end in [run.on_exit]
    ]
    base = os.environ if environment is None else environment
    return ProcessGroup(programs, environment=child_environment(base), on_line=on_line)


def show_arguments(launch: Launch) -> str:
    """Describe a launch file and its arguments."""
    lines = [f"{launch.name}: {launch.help}", "", "Arguments, as name:=value:"]
    for argument in declarations(launch.arguments):
        given = argument.get("default_value")
        default = "required" if given is None else f"default: {given}" if given else "optional"
        lines.append(f"  {argument['name']}: {argument['description']} ({default})")
        if "choices" in argument:
            lines.append(f"      one of: {', '.join(argument['choices'][1:])}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code.

    0 when the launch ended in order, also after Ctrl-C or SIGTERM; 1 when a node failed; 2 when
    what was given is refused, by this command or by a node.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(format="[runner] %(message)s", level=logging.INFO)
    if not words or words[0] in {"-h", "--help"}:
        rows = (f"  {name:12} {read_launch(name).help}\n" for name in launch_names())
        sys.stdout.write(_USAGE + "".join(rows))
        return 0 if words else REFUSED
    try:
        if "--show-args" in words or "-s" in words:
            sys.stdout.write(show_arguments(read_launch(words[0])))
            return 0
        group = make_group(words[0], parse_arguments(words[1:]))
        require_ros()
    except ActiveSensingError as error:
        sys.stderr.write(f"{error}\n")
        return REFUSED
    try:
        group.run()
    except ActiveSensingError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    return exit_code(group)


def exit_code(group: ProcessGroup) -> int:
    """Return what the ends of a launch's nodes make together, whatever ended it."""
    if group.failures and not group.killed and set(group.failures.values()) == {REFUSED}:
        return REFUSED
    return FAILED if group.failures or group.killed else 0


if __name__ == "__main__":
    sys.exit(main())
