"""Start the nodes of a launch without ``ros2 launch``, which an installation by pip lacks.

``python -m gp_active_sensing.ros.runner traffic_sim policy:=bal`` starts the same nodes with the
same parameters as ``ros2 launch gp_active_sensing traffic_sim.launch.py policy:=bal``, marks their
output with their names and ends them together.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gp_active_sensing.errors import ActiveSensingError, ConfigError
from gp_active_sensing.ros.environment import require_ros
from gp_active_sensing.ros.exit_codes import FAILED, REFUSED, crashed
from gp_active_sensing.ros.launches import LAUNCHES, launch_spec
from gp_active_sensing.ros.launching import (
    END_SECONDS,
    KILL_SECONDS,
    RESPAWN_SECONDS,
    LaunchSpec,
    node_environment,
    resolve,
)
from gp_active_sensing.ros.processes import ProcessGroup, Program

__all__ = ["child_environment", "exit_code", "main", "make_group", "parse_arguments"]

_GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
_USAGE = """\
Usage: python -m gp_active_sensing.ros.runner LAUNCH [NAME:=VALUE …] [--show-args]

Starts the nodes of a launch and ends them together; Ctrl-C ends all.

Launches:
{launches}
"""


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
    spec: LaunchSpec,
    given: Mapping[str, str],
    *,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str, str], None] | None = None,
    **options: Any,
) -> ProcessGroup:
    """Return the processes of a launch, not yet started.

    Args:
        spec: the launch.
        given: its arguments as text.
        environment: variables to start from; None = this process's.
        on_line: gets (node, line) of the nodes' output.
        options: further ones of `ProcessGroup`.

    Raises:
        ConfigError: unknown or wrong arguments.
        ActiveSensingError: something the launch needs is missing.
    """
    runs = resolve(spec, given)
    programs = [
        Program(run.spec.name, run.command(), run.spec.required, crashed if run.respawn else None)
        for run in runs
    ]
    waits = {"grace": END_SECONDS, "patience": KILL_SECONDS, "rest": RESPAWN_SECONDS}
    options = {**waits, **options}
    base = os.environ if environment is None else environment
    return ProcessGroup(programs, environment=child_environment(base), on_line=on_line, **options)


def show_arguments(spec: LaunchSpec) -> str:
    """Describe a launch and its arguments."""
    lines = [f"{spec.name}: {spec.help}", "", "Arguments, as name:=value:"]
    for argument in spec.arguments:
        if argument.required:
            default = "required"
        else:
            default = f"default: {argument.default}" if argument.default else "optional"
        lines.append(f"  {argument.name}: {argument.help} ({default})")
        if argument.choices:
            lines.append(f"      one of: {', '.join(argument.choices)}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code.

    0 when the launch ended in order, also after Ctrl-C or SIGTERM; 1 when a node failed; 2 when
    what was given is refused, by this command or by a node.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(format="[runner] %(message)s", level=logging.INFO)
    usage = _USAGE.format(
        launches="\n".join(f"  {spec.name:12} {spec.help}" for spec in LAUNCHES.values())
    )
    if not words or words[0] in {"-h", "--help"}:
        sys.stdout.write(usage)
        return 0 if words else 2
    try:
        spec = launch_spec(words[0])
        if "--show-args" in words or "-s" in words:
            sys.stdout.write(show_arguments(spec))
            return 0
        given = parse_arguments(words[1:])
        group = make_group(spec, given)
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
