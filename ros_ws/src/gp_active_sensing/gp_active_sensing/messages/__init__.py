"""Conversion of messages to numbers, for ROS classes and decoded messages of bags; no ROS here."""
