"""ROS 2: the nodes, their parameters, and conversions between messages and the core.

Only this package imports rclpy and message packages. Its module `environment` can be imported
without them and reports missing packages.
"""
