"""Sense with a real probe: readings and poses in, the next waypoint out."""

from __future__ import annotations

from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from gp_active_sensing.ros.launching import (
    SENSOR_PARAMETERS,
    SENSOR_TOPICS,
    VIEW_TOPICS,
    Given,
    arguments,
)

ARGUMENTS = arguments(
    *("map", "policy", "budget", "plan_ahead"),
    *(*SENSOR_TOPICS.values(), *SENSOR_PARAMETERS.values(), "waypoint_topic"),
    *("query_topic", "answer_topic", *VIEW_TOPICS.values(), "plan_topic"),
    *("probes", "navigate", "run_dir", "respawn", "record", "use_sim_time", "rviz"),
    params_file="probe.yaml",
)


def start(context: LaunchContext) -> list[Any]:
    """Return the processes, by the values of the arguments."""
    given = Given(ARGUMENTS, context.launch_configurations)
    parameters = {
        "map.file": "map",
        "policy.name": "policy",
        "budget.readings": "budget",
        "plan_ahead": "plan_ahead",
        "probes": "probes",
        **SENSOR_PARAMETERS,
        "waypoint.navigate": "navigate",
        "run_dir": "run_dir",
        "use_sim_time": "use_sim_time",
    }
    of_each = {**SENSOR_TOPICS, "next_waypoint": "waypoint_topic", "~/plan": "plan_topic"}
    of_all = {"expert/query": "query_topic", "expert/answer": "answer_topic", **VIEW_TOPICS}
    return [
        *given.recorder(use_sim_time=given["use_sim_time"]),
        Node(
            package="gp_active_sensing",
            executable="active_sensing",
            parameters=given.parameters(parameters),
            remappings=[
                *given.remappings(of_each, each=given["probes"]),
                *given.remappings(of_all),
            ],
            **given.process("active_sensing", respawn=given["respawn"]),
        ),
        *given.rviz(use_sim_time=given["use_sim_time"]),
    ]


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    declared = [DeclareLaunchArgument(**argument.declaration) for argument in ARGUMENTS]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
