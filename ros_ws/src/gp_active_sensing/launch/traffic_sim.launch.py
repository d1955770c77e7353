"""Sense with a simulated probe that drives through a simulated field or live traffic."""

from __future__ import annotations

from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from gp_active_sensing.ros.launching import VIEW_TOPICS, Given, arguments

ARGUMENTS = arguments(
    *("scenario", "policy", "budget", "plan_ahead", "seed", "speed_factor"),
    *(*VIEW_TOPICS.values(), "plan_topic"),
    *("probes", "run_dir", "respawn", "record", "exit_at_end", "rviz"),
    params_file="traffic_sim.yaml",
)


def start(context: LaunchContext) -> list[Any]:
    """Return the processes, by the values of the arguments."""
    given = Given(ARGUMENTS, context.launch_configurations)
    simulated = {
        "scenario": "scenario",
        "seed": "seed",
        "policy_name": "policy",
        "probes": "probes",
        "speed_factor": "speed_factor",
    }
    parameters = {
        "scenario": "scenario",
        "policy.name": "policy",
        "budget.readings": "budget",
        "plan_ahead": "plan_ahead",
        "probes": "probes",
        "seed": "seed",
        "run_dir": "run_dir",
        "mission.exit_at_end": "exit_at_end",
    }
    return [
        *given.recorder(use_sim_time=True),
        Node(
            package="gp_active_sensing",
            executable="simulator",
            # active_sensing ends the launch, once its records are written.
            parameters=given.parameters(simulated, exit_at_end=False),
            **given.process("simulator"),
        ),
        Node(
            package="gp_active_sensing",
            executable="active_sensing",
            parameters=given.parameters(parameters, use_sim_time=True),
            remappings=[
                *given.remappings({"~/plan": "plan_topic"}, each=given["probes"]),
                *given.remappings(VIEW_TOPICS),
            ],
            **given.process("active_sensing", respawn=given["respawn"]),
        ),
        *given.rviz(use_sim_time=True),
    ]


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    declared = [DeclareLaunchArgument(**argument.declaration) for argument in ARGUMENTS]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
