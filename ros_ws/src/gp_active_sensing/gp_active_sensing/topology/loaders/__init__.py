"""Map formats: one file a format, found by how the name of the map's file ends."""

from __future__ import annotations

from pathlib import Path

from gp_active_sensing.errors import MapError
from gp_active_sensing.registry import Registry
from gp_active_sensing.topology.loaders.files import check_file
from gp_active_sensing.topology.segments import RoadMap
from gp_active_sensing.util.resources import find_resource

__all__ = ["find_map", "load_roads", "loaders", "map_text"]

loaders: Registry[RoadMap] = Registry("map format", group="gp_active_sensing.map_loaders")
"""End of the name, such as ".geojson" -> function of a path; add a format here."""

loaders.add(".geojson", "gp_active_sensing.topology.loaders.geojson:load")
loaders.add(".json", "gp_active_sensing.topology.loaders.geojson:load")
loaders.add(".graphml", "gp_active_sensing.topology.loaders.graph:load")
loaders.add(".osm", "gp_active_sensing.topology.loaders.osm:load")
loaders.add(".osm.pbf", "gp_active_sensing.topology.loaders.osm:load")
loaders.add(".pbf", "gp_active_sensing.topology.loaders.osm:load")
loaders.add(".net.xml", "gp_active_sensing.topology.loaders.sumo:load")
loaders.add(".net.xml.gz", "gp_active_sensing.topology.loaders.sumo:load")
loaders.add(".csv", "gp_active_sensing.topology.loaders.table:load")

_TAKES_CRS = {".geojson", ".json", ".graphml", ".csv"}
"""Formats whose coordinates may be in any system; the others say or fix theirs."""


def find_map(file: str, base_dir: Path | None = None) -> Path:
    """Return the path of a file of maps: beside `base_dir`, as it is, or one that ships.

    Raises:
        ResourceError: there is none.
    """
    if base_dir is not None and (base_dir / file).is_file():
        return base_dir / file
    return find_resource("maps", file)


def load_roads(path: Path, *, crs: str = "") -> RoadMap:
    """Read a road map in the format that the end of its name says.

    Args:
        path: of the map.
        crs: coordinate system of the file, whatever it says itself ("local" for metres,
            "EPSG:4326" for longitude and latitude, …); "" = what it says.

    Raises:
        MapError: unknown format, or a map that cannot be used.
        MissingDependencyError: the format needs a library that is not installed.
        PluginError: the format is that of a plug-in that cannot be used.
    """
    name = path.name.lower()
    ends = [end for end in loaders if name.endswith(end)]
    if not ends:
        from gp_active_sensing.topology.map_kinds import ends_in_words

        msg = (
            f"{path}: expected a file of a map ({ends_in_words()}), got one that ends in "
            f"{''.join(path.suffixes[-2:])!r}"
        )
        raise MapError(msg)
    end = max(ends, key=len)
    if crs and end not in _TAKES_CRS:
        msg = (
            f"{path}: a coordinate system can be given for {', '.join(sorted(_TAKES_CRS))}; "
            f"files ending in {end} have their own"
        )
        raise MapError(msg)
    check_file(path)
    load = loaders.factory(end)
    road_map: object = load(path, crs=crs) if crs else load(path)
    if not isinstance(road_map, RoadMap):
        msg = f"{path}: the reader of {end} must return a RoadMap, it gave {road_map!r:.60}"
        raise MapError(msg)
    return road_map


def map_text(road_map: RoadMap, format: str = "roads") -> tuple[str, tuple[str, ...]]:
    """Return a road map as GeoJSON, and what of it that cannot say.

    Args:
        road_map: the map.
        format: "roads", our own, or "nav2", a graph for Nav2's route server.
    """
    from gp_active_sensing.topology.loaders import geojson, nav2  # only `maps` writes maps

    return nav2.text_of(road_map) if format == "nav2" else (geojson.text_of(road_map), ())
