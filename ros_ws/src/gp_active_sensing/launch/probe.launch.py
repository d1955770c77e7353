"""Sense with a real probe: readings and poses in, the next waypoint out."""

from dataclasses import dataclass
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from gp_active_sensing.config import param
from gp_active_sensing.ros.launching import (
    MAPS,
    MissionArguments,
    SensorArguments,
    declarations,
    read_arguments,
    remap,
)


@dataclass(frozen=True, kw_only=True)
class Arguments(MissionArguments, SensorArguments):
    """Arguments of this launch file."""

    map: str | None = param(None, help=f"road map: a path, {MAPS}; empty = that of params_file")
    waypoint_topic: str | None = param(
        "next_waypoint", help="topic of the next waypoint; goal_pose for Nav2"
    )
    query_topic: str | None = param("expert/query", help="topic of the questions to an expert")
    answer_topic: str | None = param("expert/answer", help="topic of its answers")
    navigate: str | None = param(
        None,
        help="topic: the waypoint on its topic; action: as a goal of Nav2's NavigateToPose as well",
        choices=("topic", "action"),
    )
    params_file: str | None = param("probe.yaml", help="ROS parameter file; arguments go before it")
    use_sim_time: bool | None = param(False, help="take the time from /clock")


def start(context: LaunchContext) -> list[Any]:
    """Return the processes, by the values of the arguments."""
    given = read_arguments(Arguments, context.launch_configurations)
    parameters = {
        "map.file": given.map,
        "policy.name": given.policy,
        "budget.readings": given.budget,
        "plan_ahead": given.plan_ahead,
        "probes": given.names,
        **given.sensor_parameters,
        "waypoint.navigate": given.navigate,
        "run_dir": given.run_dir,
        "use_sim_time": given.use_sim_time,
    }
    of_each = {
        "reading": given.reading_topic,
        "pose": given.pose_topic,
        "next_waypoint": given.waypoint_topic,
    }
    of_all = {"expert/query": given.query_topic, "expert/answer": given.answer_topic}
    recorded = [name or topic for topic, name in {**of_each, **of_all}.items()]
    return [
        *given.recorder(recorded, use_sim_time=given.use_sim_time),
        Node(
            package="gp_active_sensing",
            executable="active_sensing",
            parameters=given.parameters(parameters),
            remappings=[
                *remap({**of_each, "~/plan": given.plan_topic}, given.names),
                *remap({**of_all, **given.view_topics}),
            ],
            **given.process("active_sensing", respawn=bool(given.respawn)),
        ),
        *given.viewer(use_sim_time=given.use_sim_time, next_waypoint=given.waypoint_topic),
    ]


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    declared = [DeclareLaunchArgument(**keywords) for keywords in declarations(Arguments)]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
