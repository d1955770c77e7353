"""ROS 2: the nodes, their parameters, and conversions between messages and the core.

The only place that may import rclpy or message packages. `environment` can be imported without
them and says what is missing.
"""
