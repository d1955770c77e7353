"""Convert the processes of `launches` to actions of ``ros2 launch``; only launch files use it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from launch import LaunchContext
from launch.actions import LogInfo, Shutdown
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from gp_active_sensing.config import is_accepted, removed_hint
from gp_active_sensing.errors import RunError
from gp_active_sensing.ros.environment import crashed, describe, ended_in_order, node_environment
from gp_active_sensing.ros.launches import Arguments, Process, parsed, read_arguments
from gp_active_sensing.ros.runner import END_SECONDS, KILL_SECONDS, RESPAWN_SECONDS


def start(context: LaunchContext, kind: type[Arguments]) -> list[Any]:
    """Return the actions of a launch; `context` contains the values of its arguments."""
    failures: list[str] = []
    texts = context.launch_configurations
    given = read_arguments(kind, texts)
    # This is no error: a launch file that includes this one may have such an argument.
    removed = {
        name: removed_hint(kind, name)
        for name, text in texts.items()
        if text and not is_accepted(kind, name, parsed(text))
    }
    notes = [LogInfo(msg=f"{name}: {hint}") for name, hint in removed.items() if hint]
    return notes + [_action(process, OnExit(process, failures)) for process in given.processes()]


def _action(process: Process, on_exit: OnExit) -> Any:
    # Without a type, launch would convert the text "5" to a number.
    typed = {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in process.parameters.items()
    }
    return Node(
        package=process.package,
        executable=process.executable,
        namespace=process.namespace or None,
        parameters=[part for part in (process.params_file, typed) if part],
        remappings=list(process.remappings),
        arguments=list(process.arguments),
        ros_arguments=["--log-level", process.log_level] if process.log_level else [],
        name=process.name,
        output="screen",
        additional_env=node_environment(os.environ),
        sigterm_timeout=f"{END_SECONDS:g}",
        sigkill_timeout=f"{KILL_SECONDS:g}",
        respawn=process.respawn,
        respawn_delay=RESPAWN_SECONDS,
        on_exit=on_exit,
    )


@dataclass(frozen=True)
class OnExit:
    """Handler that is called when a process of a launch ends."""

    process: Process
    failures: list[str]

    def __call__(self, event: Any, context: LaunchContext) -> list[Any] | None:
        """Handle the exit event of a process; return the next actions.

        Raises:
            RunError: a process failed. Only an exception makes ``ros2 launch`` end the other
                processes and exit with a code other than 0.
        """
        process, code, asked = self.process, event.returncode, context.is_shutdown
        if process.respawn and crashed(code) and not asked:
            return None
        if not ended_in_order(code, asked=asked):
            self.failures.append(f"{process.name} ended with {describe(code)}")
        if not process.required:
            return None
        if self.failures:
            reason = "; ".join(self.failures)
            self.failures.clear()
            raise RunError(reason)
        return [Shutdown(reason=f"{process.name} ended")]
