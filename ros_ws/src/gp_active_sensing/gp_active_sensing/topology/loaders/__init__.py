"""Map formats: one file a format, found by the suffix of the map's file."""

from __future__ import annotations

from pathlib import Path

from gp_active_sensing.errors import MapError
from gp_active_sensing.registry import Registry
from gp_active_sensing.topology.loaders import geojson
from gp_active_sensing.topology.segments import RoadMap

__all__ = ["load_roads", "loaders"]

loaders: Registry[RoadMap] = Registry("map format", group="gp_active_sensing.map_loaders")
"""Suffix, such as ".geojson" -> function of a path; add a format here."""

loaders.add(".geojson", geojson.load)
loaders.add(".json", geojson.load)


def load_roads(path: Path) -> RoadMap:
    """Read a road map in the format that its suffix names.

    Raises:
        MapError: unknown suffix, or a map that cannot be used.
        PluginError: the suffix is that of a plug-in that cannot be used.
    """
    suffix = path.suffix.lower()
    if suffix not in loaders:
        msg = f"{path}: expected a map file ending in {' or '.join(loaders)}, got {suffix!r}"
        raise MapError(msg)
    road_map: object = loaders.factory(suffix)(path)
    if not isinstance(road_map, RoadMap):
        msg = f"{path}: the reader of {suffix} must return a RoadMap, it gave {road_map!r:.60}"
        raise MapError(msg)
    return road_map
