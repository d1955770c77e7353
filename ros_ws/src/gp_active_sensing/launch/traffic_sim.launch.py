"""Sense with a simulated probe that drives through a simulated field or live traffic."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from gp_active_sensing.ros.launch_actions import start
from gp_active_sensing.ros.launches import TrafficSim, declarations


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    arguments = [DeclareLaunchArgument(**words) for words in declarations(TrafficSim)]
    return LaunchDescription([*arguments, OpaqueFunction(function=start, args=[TrafficSim])])
