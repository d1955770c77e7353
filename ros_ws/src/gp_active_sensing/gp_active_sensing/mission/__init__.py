"""From messages to waypoints, without ROS: what a robot, a simulated one and a logged bag share.

Poses and readings come in as plain numbers (`inbox`), find their place (`ingestion`), are told to the
engine, and bring the mission (`mission`) from one decision to the next.
"""
