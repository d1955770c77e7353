"""Live traffic by SUMO, with the robot as a vehicle. The extra ``[sumo]`` is required."""
