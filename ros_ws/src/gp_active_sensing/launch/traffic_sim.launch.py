"""The launch `traffic_sim`, described in gp_active_sensing.ros.launches."""

from gp_active_sensing.ros.launch_description import to_launch_description
from gp_active_sensing.ros.launches import launch_spec
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return the launch; ``--show-args`` lists its arguments."""
    return to_launch_description(launch_spec("traffic_sim"))
