"""Where a probe may go: maps as places, features and legal moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.topology.base import FreeTopology, GraphTopology, Topology
    from gp_active_sensing.topology.config import build_topology
    from gp_active_sensing.topology.grids import make_grid, make_line, make_occupancy_map
    from gp_active_sensing.topology.loaders import load_roads
    from gp_active_sensing.topology.lookup import check_start, place_index, route_geometry
    from gp_active_sensing.topology.map_config import MapConfig
    from gp_active_sensing.topology.occupancy import OccupancyGrid
    from gp_active_sensing.topology.roads import Roads
    from gp_active_sensing.topology.search import Move
    from gp_active_sensing.topology.segments import RoadMap, Segment
    from gp_active_sensing.topology.stations import load_stations

__all__ = [
    "FreeTopology",
    "GraphTopology",
    "MapConfig",
    "Move",
    "OccupancyGrid",
    "RoadMap",
    "Roads",
    "Segment",
    "Topology",
    "build_topology",
    "check_start",
    "load_roads",
    "load_stations",
    "make_grid",
    "make_line",
    "make_occupancy_map",
    "place_index",
    "route_geometry",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": ("FreeTopology", "GraphTopology", "Topology"),
        "config": ("build_topology",),
        "grids": ("make_grid", "make_line", "make_occupancy_map"),
        "loaders": ("load_roads",),
        "lookup": ("check_start", "place_index", "route_geometry"),
        "map_config": ("MapConfig",),
        "occupancy": ("OccupancyGrid",),
        "roads": ("Roads",),
        "search": ("Move",),
        "segments": ("RoadMap", "Segment"),
        "stations": ("load_stations",),
    },
)
