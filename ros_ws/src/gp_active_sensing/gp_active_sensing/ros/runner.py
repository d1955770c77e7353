"""Start the nodes of a launch without ``ros2 launch``, which an installation by pip lacks.

``python -m gp_active_sensing.ros.runner traffic_sim policy:=bal`` starts the same nodes with the
same parameters as ``ros2 launch gp_active_sensing traffic_sim.launch.py policy:=bal``, marks their
output with their names and ends them together. Both read `launches`.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence

from gp_active_sensing.errors import ActiveSensingError, ConfigError, MissingDependencyError
from gp_active_sensing.ros.environment import FAILED, REFUSED, node_environment, require_ros
from gp_active_sensing.ros.launches import (
    LAUNCHES,
    PACKAGE,
    Process,
    declarations,
    find_launch,
    read_arguments,
)
from gp_active_sensing.ros.processes import ProcessGroup, Program

__all__ = [
    "child_environment",
    "command_of",
    "exit_code",
    "main",
    "make_group",
    "parse_arguments",
]

_GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
_USAGE = """\
Usage: python -m gp_active_sensing.ros.runner LAUNCH [NAME:=VALUE …] [--show-args]

Starts the nodes of a launch and ends them together; Ctrl-C ends all.

Launches:
"""


def command_of(process: Process) -> tuple[str, ...]:
    """Return the command that starts a process, without ``ros2`` for a node.

    Raises:
        MissingDependencyError: a program of another package that is not on the path.
    """
    if process.command:
        return process.command
    if process.package == PACKAGE:
        start = [sys.executable, "-m", f"{PACKAGE}.ros.{process.executable}_node"]
    elif program := shutil.which(process.executable):
        start = [program]
    else:
        msg = (
            f"{process.executable} is not on the PATH: install the package {process.package} of "
            "ROS 2 and source its setup file, or leave it out"
        )
        raise MissingDependencyError(msg)
    ros = ["-r", f"__node:={process.name}"]
    if process.log_level:
        ros += ["--log-level", process.log_level]
    if process.namespace:
        ros += ["-r", f"__ns:=/{process.namespace.strip('/')}"]
    for topic, other in process.remappings:
        ros += ["-r", f"{topic}:={other}"]
    if process.params_file:
        ros += ["--params-file", process.params_file]
    for name, value in process.parameters.items():
        # JSON is YAML: quoted text stays text, whatever it looks like.
        ros += ["-p", f"{name}:={json.dumps(value)}"]
    return (*start, *process.arguments, "--ros-args", *ros)


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
    """Return the processes of a launch, not yet started.

    Args:
        name: the launch.
        given: its arguments as text.
        environment: variables to start from; None = this process's.
        on_line: gets (process, line) of the output.

    Raises:
        ActiveSensingError: unknown or wrong arguments, or something that is needed is missing.
    """
    programs = [
        Program(p.name, command_of(p), p.required, p.respawn, p.when_asked)
        for p in read_arguments(find_launch(name), given, strict=True).processes()
    ]
    base = os.environ if environment is None else environment
    return ProcessGroup(programs, environment=child_environment(base), on_line=on_line)


def show_arguments(name: str) -> str:
    """Describe a launch and its arguments."""
    kind = find_launch(name)
    lines = [f"{name}: {kind.__doc__}", "", "Arguments, as name:=value:"]
    for argument in declarations(kind):
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
        rows = (f"  {name:12} {kind.__doc__}\n" for name, kind in LAUNCHES.items())
        sys.stdout.write(_USAGE + "".join(rows))
        return 0 if words else REFUSED
    try:
        if "--show-args" in words or "-s" in words:
            sys.stdout.write(show_arguments(words[0]))
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
