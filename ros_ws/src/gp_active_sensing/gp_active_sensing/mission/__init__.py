"""Mission logic from messages to waypoints, without ROS: shared by robots, simulation and replay.

Poses and readings arrive as plain numbers (`inbox`). Readings get a place (`ingestion`) and are
passed to the engine. `mission` requests decisions and carries them out.
"""
