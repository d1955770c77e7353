"""Where a probe may go: maps as places, features and legal moves."""

from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.config import MapConfig, build_topology, check_start, place_index
from gp_active_sensing.topology.free import FreeTopology
from gp_active_sensing.topology.geometry import route_geometry, whole_way
from gp_active_sensing.topology.graph import Components, GraphTopology, Move
from gp_active_sensing.topology.grid import make_grid
from gp_active_sensing.topology.line import make_line
from gp_active_sensing.topology.loaders import load_roads, loaders
from gp_active_sensing.topology.roads import Roads
from gp_active_sensing.topology.segments import RoadMap, Segment

__all__ = [
    "Components",
    "FreeTopology",
    "GraphTopology",
    "MapConfig",
    "Move",
    "RoadMap",
    "Roads",
    "Segment",
    "Topology",
    "build_topology",
    "check_start",
    "load_roads",
    "loaders",
    "make_grid",
    "make_line",
    "place_index",
    "route_geometry",
    "whole_way",
]
