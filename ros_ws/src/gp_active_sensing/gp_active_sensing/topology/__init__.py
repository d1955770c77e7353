"""Maps: places, their features, and the moves between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.topology.base import FreeTopology as FreeTopology
    from gp_active_sensing.topology.base import GraphTopology as GraphTopology
    from gp_active_sensing.topology.base import Topology as Topology
    from gp_active_sensing.topology.config import build_topology as build_topology
    from gp_active_sensing.topology.geometry import OccupancyGrid as OccupancyGrid
    from gp_active_sensing.topology.grids import make_grid as make_grid
    from gp_active_sensing.topology.grids import make_line as make_line
    from gp_active_sensing.topology.grids import make_occupancy_map as make_occupancy_map
    from gp_active_sensing.topology.loaders import load_roads as load_roads
    from gp_active_sensing.topology.lookup import check_start as check_start
    from gp_active_sensing.topology.lookup import place_index as place_index
    from gp_active_sensing.topology.lookup import route_geometry as route_geometry
    from gp_active_sensing.topology.map_config import MapConfig as MapConfig
    from gp_active_sensing.topology.roads import Roads as Roads
    from gp_active_sensing.topology.search import Move as Move
    from gp_active_sensing.topology.segments import RoadMap as RoadMap
    from gp_active_sensing.topology.segments import Segment as Segment

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": ("FreeTopology", "GraphTopology", "Topology"),
        "config": ("build_topology",),
        "geometry": ("OccupancyGrid",),
        "grids": ("make_grid", "make_line", "make_occupancy_map"),
        "loaders": ("load_roads",),
        "lookup": ("check_start", "place_index", "route_geometry"),
        "map_config": ("MapConfig",),
        "roads": ("Roads",),
        "search": ("Move",),
        "segments": ("RoadMap", "Segment"),
    },
)
