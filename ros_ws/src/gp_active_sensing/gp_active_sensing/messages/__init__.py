"""Conversion of messages to numbers, for ROS classes and for decoded messages of bags."""
