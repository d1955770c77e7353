"""A launch as objects of ``launch``, imported only inside: an installation by pip has none."""

from __future__ import annotations

import os
from typing import Any

from gp_active_sensing.errors import RunError
from gp_active_sensing.ros.exit_codes import crashed, ended_in_order, said
from gp_active_sensing.ros.launching import (
    END_SECONDS,
    KILL_SECONDS,
    RESPAWN_SECONDS,
    LaunchSpec,
    NodeRun,
    node_environment,
    resolve,
)

__all__ = ["to_launch_description"]


def to_launch_description(spec: LaunchSpec) -> Any:
    """Return the ``launch.LaunchDescription`` of a launch.

    Arguments are declared, so that ``ros2 launch --show-args`` lists them; nodes are decided when
    the launch runs, by `resolve`.
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    from launch import LaunchDescription

    declared = []
    for argument in spec.arguments:
        extra: dict[str, Any] = {}
        if not argument.required:
            extra["default_value"] = argument.default
        if argument.choices:
            optional = () if argument.default else ("",)
            extra["choices"] = [*optional, *argument.choices]
        declared.append(DeclareLaunchArgument(argument.name, description=argument.help, **extra))

    def start(context: Any) -> list[Any]:
        names = [argument.name for argument in spec.arguments]
        given = {name: context.launch_configurations[name] for name in names}
        failures: list[str] = []
        return [_launch_node(run, failures) for run in resolve(spec, given)]

    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def _launch_node(run: NodeRun, failures: list[str]) -> Any:
    """Return the action; `failures` is where the nodes of a launch note how they failed."""
    from launch.actions import Shutdown
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    def ended(event: Any, context: Any) -> list[Any] | None:
        code = event.returncode
        if run.respawn and crashed(code) and not context.is_shutdown:
            return None
        if not ended_in_order(code, asked=context.is_shutdown):
            failures.append(f"{run.spec.name} ended with {said(code)}")
        if not run.spec.required:
            return None
        if failures:
            reason = "; ".join(failures)
            failures.clear()
            # The only way for `ros2 launch` to end with another code than 0; it ends the others.
            raise RunError(reason)
        return [Shutdown(reason=f"{run.spec.name} ended")]

    # Without a type, launch would read the text "5" as a number.
    typed = {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in run.parameters.items()
    }
    parameters: list[Any] = [] if run.params_file is None else [str(run.params_file)]
    if typed:
        parameters.append(typed)
    return Node(
        package=run.spec.package,
        executable=run.spec.executable,
        name=run.spec.name,
        parameters=parameters,
        remappings=list(run.remappings.items()),
        arguments=list(run.arguments),
        additional_env=node_environment(os.environ),
        output="screen",
        on_exit=ended,
        sigterm_timeout=f"{END_SECONDS:g}",
        sigkill_timeout=f"{KILL_SECONDS:g}",
        respawn=run.respawn,
        respawn_delay=RESPAWN_SECONDS,
    )
