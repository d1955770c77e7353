"""ROS 2 nodes, their parameters, and conversions between messages and the core.

Only this package imports rclpy and message packages. The module `environment` works without these
packages and reports which of them are missing.
"""
