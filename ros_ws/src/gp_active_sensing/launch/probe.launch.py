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

    map: str | None = param(None, help=f"map file: a path, {MAPS}; empty = that of params_file")
    waypoint_topic: str | None = param(
        None,
        help="topic of the next waypoint, goal_pose for Nav2; empty = that of params_file, or "
        "next_waypoint",
    )
    grid_topic: str | None = param(
        None,
        help="topic of a nav_msgs/msg/OccupancyGrid that is the map, such as map for a SLAM; in "
        "place of map",
    )
    query_topic: str | None = param("expert/query", help="topic of the questions to an expert")
    answer_topic: str | None = param("expert/answer", help="topic of its answers")
    navigate: str | None = param(
        None,
        help="topic: the waypoint on its topic; action: as a goal of Nav2's NavigateToPose as well",
        choices=("topic", "action"),
    )
    params_file: str | None = param("probe.yaml", help="ROS parameter file; arguments go before it")
    use_sim_time: bool | None = param(
        None, help="take the time from /clock; empty = as params_file says, or false"
    )


def start(context: LaunchContext) -> list[Any]:
    """Return the processes, by the values of the arguments."""
    given = read_arguments(Arguments, context.launch_configurations)
    parameters = {
        "map.file": given.map,
        "map.topic": given.grid_topic,
        "map.frame": given.map_frame,
        "policy.name": given.policy,
        "budget.readings": given.budget,
        "plan_ahead": given.plan_ahead,
        "probes": given.names,
        **given.sensor_parameters,
        "waypoint.topic": given.waypoint_topic,
        "waypoint.navigate": given.navigate,
        "mission.exit_at_end": given.exit_at_end,
        "run_dir": given.kept_in,
        "use_sim_time": given.use_sim_time,
    }
    simulated = given.use_sim_time
    if simulated is None:
        simulated = bool(given.in_file.get("use_sim_time"))
    of_all = {"expert/query": given.query_topic, "expert/answer": given.answer_topic}
    recorded = [given.topic_of(stream) for stream in ("reading", "pose", "waypoint")]
    recorded += [name or topic for topic, name in of_all.items()]
    if grid := given.grid_topic or given.in_file.get("map", {}).get("topic"):
        recorded.append(str(grid))
    return [
        *given.recorder(recorded, use_sim_time=simulated),
        Node(
            remappings=[
                *remap({"~/plan": given.plan_topic}, given.names),
                *remap({**of_all, **given.view_topics}),
            ],
            **given.node("active_sensing", parameters, respawn=bool(given.respawn)),
        ),
        *given.live_page(),
        *given.viewer(use_sim_time=simulated),
    ]


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    declared = [DeclareLaunchArgument(**keywords) for keywords in declarations(Arguments)]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
