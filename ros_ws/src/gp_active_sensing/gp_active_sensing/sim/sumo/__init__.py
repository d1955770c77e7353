"""SUMO as a live world: background traffic runs, and the probe is a vehicle in it.

Needs the extra ``[sumo]`` (libsumo), which nothing outside this folder imports and this folder
imports only when a simulation is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.sim.sumo.config import TrafficConfig
    from gp_active_sensing.sim.sumo.live import LiveTraffic, build_traffic
    from gp_active_sensing.sim.sumo.session import has_sumo
    from gp_active_sensing.sim.sumo.truth import LiveTruth, RecordedTruth
    from gp_active_sensing.sim.sumo.vehicle import ProbeVehicle, Visit

__all__ = [
    "LiveTraffic",
    "LiveTruth",
    "ProbeVehicle",
    "RecordedTruth",
    "TrafficConfig",
    "Visit",
    "build_traffic",
    "has_sumo",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "config": ("TrafficConfig",),
        "live": (
            "LiveTraffic",
            "build_traffic",
        ),
        "session": ("has_sumo",),
        "truth": (
            "LiveTruth",
            "RecordedTruth",
        ),
        "vehicle": (
            "ProbeVehicle",
            "Visit",
        ),
    },
)
