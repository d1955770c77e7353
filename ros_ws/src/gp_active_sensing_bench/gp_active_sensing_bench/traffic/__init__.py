"""Live traffic by SUMO, with the probe as a vehicle.

It needs the extra ``[sumo]`` (libsumo), which is imported when a simulation starts.
"""
