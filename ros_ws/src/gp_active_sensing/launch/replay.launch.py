"""Learn the field from the readings and poses of a bag, and say where one should have gone."""

from dataclasses import dataclass
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from gp_active_sensing.config import param
from gp_active_sensing.ros.launching import (
    BAGS,
    MAPS,
    SCENARIOS,
    SensorArguments,
    declarations,
    read_arguments,
    remap,
)


@dataclass(frozen=True, kw_only=True)
class Arguments(SensorArguments):
    """Arguments of this launch file."""

    bag: str = param(help=f"rosbag2 folder, .mcap or .db3 file, {BAGS}")
    rate: float | None = param(
        None, help="times the bag's own speed; 0 = as fast as can be taken in"
    )
    scenario: str | None = param(
        "town", help=f"where map and belief come from: a scenario, {SCENARIOS}"
    )
    map: str | None = param(None, help=f"map file: a path, {MAPS}; empty = that of the scenario")
    decisions: bool | None = param(
        None, help="take decisions: where the planner would have gone from where the probe was"
    )
    salvage: bool | None = param(False, help="play what can be read of a damaged bag")
    params_file: str | None = param(
        "replay.yaml", help="ROS parameter file; arguments go before it"
    )


def start(context: LaunchContext) -> list[Any]:
    """Return the processes, by the values of the arguments."""
    given = read_arguments(Arguments, context.launch_configurations)
    parameters = {
        "scenario": given.scenario,
        "map.file": given.map,
        "map.frame": given.map_frame,
        "policy.name": given.policy,
        "budget.readings": given.budget,
        "mission.begin": given.decisions,
        **given.sensor_parameters,
        "run_dir": given.kept_in,
        "use_sim_time": True,
    }
    # Not what the node publishes itself, of which a recorded mission is full.
    played = [given.topic_of("reading"), given.topic_of("pose")]
    player = {
        "bag": given.bag,
        "rate": given.rate,
        "salvage": given.salvage,
        "topics": played,
        "wait_for": played,
        "journal": "active_sensing/journal",
        "finish": "active_sensing/finish",
    }
    return [
        Node(
            remappings=remap({"~/plan": given.plan_topic, **given.view_topics}),
            **given.node("active_sensing", parameters),
        ),
        Node(**given.node("bag_player", player)),
        *given.live_page(),
        *given.viewer(use_sim_time=True),
    ]


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    declared = [DeclareLaunchArgument(**keywords) for keywords in declarations(Arguments)]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
