"""Mission logic from messages to waypoints, without ROS: shared by robots, simulation and replay.

Poses and readings arrive as plain numbers (`inbox`), are matched to places (`ingestion`) and told
to the engine; `mission` then goes from one decision to the next.
"""
