"""Learn the field from the readings and poses of a bag, and publish the planner's choices."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from gp_active_sensing.ros.launch_actions import start
from gp_active_sensing.ros.launches import Replay, declarations


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    arguments = [DeclareLaunchArgument(**words) for words in declarations(Replay)]
    return LaunchDescription([*arguments, OpaqueFunction(function=start, args=[Replay])])
