"""Live traffic by SUMO, with the robot as a vehicle. It needs the extra ``[sumo]``."""
