"""Sense with a simulated probe that drives through a simulated field or live traffic."""

from dataclasses import dataclass
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from gp_active_sensing.config import param
from gp_active_sensing.ros.launching import (
    SCENARIOS,
    MissionArguments,
    declarations,
    read_arguments,
    remap,
)


@dataclass(frozen=True, kw_only=True)
class Arguments(MissionArguments):
    """Arguments of this launch file."""

    scenario: str | None = param("town", help=f"scenario: a path, {SCENARIOS}")
    seed: int | None = param(None, help="key of every random draw")
    speed_factor: float | None = param(None, help="simulated seconds per second")
    params_file: str | None = param(
        "traffic_sim.yaml", help="ROS parameter file; arguments go before it"
    )


def start(context: LaunchContext) -> list[Any]:
    """Return the processes, by the values of the arguments."""
    given = read_arguments(Arguments, context.launch_configurations)
    simulated = {
        "scenario": given.scenario,
        "seed": given.seed,
        "policy_name": given.policy,
        "map_frame": given.map_frame,
        "probes": given.names,
        "speed_factor": given.speed_factor,
        # active_sensing ends the launch, once its records are written.
        "exit_at_end": False,
    }
    parameters = {
        "scenario": given.scenario,
        "map.frame": given.map_frame,
        "policy.name": given.policy,
        "budget.readings": given.budget,
        "plan_ahead": given.plan_ahead,
        "probes": given.names,
        "seed": given.seed,
        "run_dir": given.kept_in,
        "mission.exit_at_end": given.exit_at_end,
        "use_sim_time": True,
    }
    recorded = ["reading", "pose", "next_waypoint", "expert/query", "expert/answer"]
    return [
        *given.recorder(recorded, use_sim_time=True),
        Node(**given.node("simulator", simulated)),
        Node(
            remappings=[
                *remap({"~/plan": given.plan_topic}, given.names),
                *remap(given.view_topics),
            ],
            **given.node("active_sensing", parameters, respawn=bool(given.respawn)),
        ),
        *given.live_page(),
        *given.viewer(use_sim_time=True),
    ]


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    declared = [DeclareLaunchArgument(**keywords) for keywords in declarations(Arguments)]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
