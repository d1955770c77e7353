"""Sense with a real probe: readings and poses in, the next waypoint out."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from gp_active_sensing.ros.launch_actions import start
from gp_active_sensing.ros.launches import Probe, declarations


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    arguments = [DeclareLaunchArgument(**words) for words in declarations(Probe)]
    return LaunchDescription([*arguments, OpaqueFunction(function=start, args=[Probe])])
