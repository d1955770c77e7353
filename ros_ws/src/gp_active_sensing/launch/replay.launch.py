"""Learn the field from the readings and poses of a bag, and say where one should have gone."""

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
    *("bag", "rate", "scenario", "map", "decisions", "policy", "budget"),
    *(*SENSOR_TOPICS.values(), *SENSOR_PARAMETERS.values()),
    *(*VIEW_TOPICS.values(), "plan_topic", "salvage", "run_dir", "rviz"),
    params_file="replay.yaml",
)


def start(context: LaunchContext) -> list[Any]:
    """Return the processes, by the values of the arguments."""
    given = Given(ARGUMENTS, context.launch_configurations)
    parameters = {
        "scenario": "scenario",
        "map.file": "map",
        "policy.name": "policy",
        "budget.readings": "budget",
        "mission.begin": "decisions",
        **SENSOR_PARAMETERS,
        "run_dir": "run_dir",
    }
    # Not what the node publishes itself, of which a recorded mission is full.
    played = [given[name] for name in ("reading_topic", "pose_topic") if given[name]] or None
    topics = {**SENSOR_TOPICS, "~/plan": "plan_topic", **VIEW_TOPICS}
    return [
        Node(
            package="gp_active_sensing",
            executable="active_sensing",
            parameters=given.parameters(parameters, use_sim_time=True),
            remappings=given.remappings(topics),
            **given.process("active_sensing"),
        ),
        Node(
            package="gp_active_sensing",
            executable="bag_player",
            parameters=given.parameters(
                {"bag": "bag", "rate": "rate", "salvage": "salvage"},
                topics=played,
                wait_for=played,
                journal="active_sensing/journal",
                finish="active_sensing/finish",
            ),
            **given.process("bag_player"),
        ),
        *given.rviz(use_sim_time=True),
    ]


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    declared = [DeclareLaunchArgument(**argument.declaration) for argument in ARGUMENTS]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
