"""SUMO as a live world: background traffic runs, and the probe is a vehicle in it.

Needs the core's extra ``[sumo]`` (libsumo), which nothing outside this folder imports and this folder
imports only when a simulation is started.
"""
