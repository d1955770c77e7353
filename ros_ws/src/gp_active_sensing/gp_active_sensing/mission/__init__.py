"""Mission logic without ROS, shared by robots, simulation and replay.

`inbox` receives poses and readings as plain numbers. `ingestion` assigns each reading to a place
of the map. `mission` updates the belief, requests decisions and carries them out.
"""
