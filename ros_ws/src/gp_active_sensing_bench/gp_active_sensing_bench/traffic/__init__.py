"""SUMO as a live world: background traffic runs, and the probe is a vehicle in it.

Needs the core's extra ``[sumo]`` (libsumo), which only this folder imports, and only when a
simulation is started.
"""
