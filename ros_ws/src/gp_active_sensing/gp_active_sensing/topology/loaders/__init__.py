"""The catalogue of map formats: one file a format, found by how the name of the map's file ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError, MissingDependencyError, ResourceError
from gp_active_sensing.registry import Registry
from gp_active_sensing.topology.loaders.files import check_file, fault
from gp_active_sensing.topology.segments import RoadMap
from gp_active_sensing.util.resources import find_resource

_HERE = __name__
_GIS = (".kml", ".kmz", ".geojson", ".json", ".shp", ".gpkg")
_FORMATS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("roads", (".geojson", ".json"), "geojson:load"),
    ("roads", (".graphml",), "graph:load"),
    ("roads", (".osm", ".osm.pbf", ".pbf"), "osm:load"),
    ("roads", (".net.xml", ".net.xml.gz"), "sumo:load"),
    ("roads", (".csv",), "table:load"),
    ("areas", _GIS, "areas:of_features"),
    ("areas", (".plan",), "plans:read_plan"),
    ("cells", (".yaml", ".yml"), "map_server:load"),
    ("raster", (".tif", ".tiff", ".nc"), "rasters:of_gdal"),
    ("raster", (".asc",), "rasters:of_ascii"),
    ("points", (".csv",), "tables:of_csv"),
    ("points", _GIS, "tables:of_features"),
)
"""Kind of content and ending of a file -> its reader; add a format here.

roads: a function of a path that returns a `RoadMap`; areas: a `Drawing`; cells: an `OccupancyGrid`
and notes; raster: of a path and a value, a `RasterFile` and its unit; points: a `PlaceTable`.

Every reader raises MapError for a file that cannot be used, with every problem found (the first ten
in words) and where it is, and MissingDependencyError where a library is missing.
"""
loaders: Registry[Any] = Registry("map format", group="gp_active_sensing.map_loaders")
"""Kind of content and ending, such as "areas .kml" -> reader. A plug-in whose name is an
end alone reads roads."""
for _kind, _ends, _where in _FORMATS:
    for _end in _ends:
        loaders.add(f"{_kind} {_end}", f"{_HERE}.{_where}")

OF_FILE = ("roads", "grid", "points")
"""Kinds of maps that a file may hold."""
_OF_GRID = ("areas", "cells", "raster")
_TAKES_CRS = {".geojson", ".json", ".graphml", ".csv"}
"""Formats of roads whose coordinates may be in any system; the others say or fix theirs."""


def ends_of(*kinds: str) -> tuple[str, ...]:
    """Return how the names of files end that hold one of these, such as "roads" and "areas"."""
    named = [name.rpartition(" ") for name in loaders]
    return tuple(end for kind, _, end in named if (kind or "roads") in kinds)


def reader_of(kind: str, path: Path) -> tuple[str, Callable[..., Any]]:
    """Return how a name ends and what reads such a file.

    Raises:
        MapError: the file is of another format.
        PluginError: the format is that of a plug-in that cannot be used.
    """
    found = [end for end in ends_of(kind) if path.name.lower().endswith(end)]
    if not found:
        kinds = {"roads": ("roads",), "grids": _OF_GRID, "points": ("points",)}
        known = "; ".join(f"{what}: {', '.join(sorted(ends_of(*k)))}" for what, k in kinds.items())
        raise fault(
            path,
            f"expected a file of a map ({known}), got one that ends in "
            f"{''.join(path.suffixes[-2:])!r}",
        )
    end = max(found, key=len)
    name = f"{kind} {end}"
    return end, loaders.factory(name if name in loaders else end)


def kinds_of_file(file: str) -> tuple[str, ...]:
    """Return the kinds of map that a file may be by the end of its name, () where it says nothing.

    A name without an end is that of a map that ships with the package.
    """
    name = Path(file).name.lower()
    kinds = {"roads": ends_of("roads"), "grid": ends_of(*_OF_GRID), "points": ends_of("points")}
    return tuple(kind for kind in OF_FILE if name.endswith(kinds[kind]))


def kind_of_map(file: str) -> str:
    """Return the kind of map that a file is; "roads" where it cannot be found, or is no map."""
    try:
        path = find_map(file)
    except ResourceError:
        return "roads"
    kinds = kinds_of_file(path.name)
    if len(kinds) < 2:
        return kinds[0] if kinds else "roads"
    if "grid" not in kinds:
        from gp_active_sensing.topology.loaders.tables import is_stations  # seldom wanted

        return "points" if is_stations(path) else "roads"
    return _kind_in_geojson(path) if "roads" in kinds else _kind_of_shapes(path)


def _kind_of_shapes(path: Path) -> str:
    """Return what a file of GIS holds: areas, or points alone."""
    from gp_active_sensing.topology.loaders.vector import only_points

    try:
        return "points" if only_points(path) else "grid"
    except (MapError, MissingDependencyError):
        return "grid"  # it is refused when it is read


def _kind_in_geojson(path: Path) -> str:
    """Return what a file of GeoJSON holds: lines between junctions, areas, or points alone."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return "roads"  # it is refused when it is read
    if re.search(r'"(from|startid)"\s*:', text) or not re.search('(Polygon|Point)"', text):
        return "roads"
    if 'Polygon"' in text:
        return "grid"
    return "roads" if 'LineString"' in text else "points"


def name_problems(key: str, given: object) -> list[str]:
    """Return what is wrong with a text that stands for corners: it has to name a file of areas."""
    known = ends_of("areas")
    if not isinstance(given, str) or given.lower().endswith(known):
        return []
    ends = ", ".join(known)
    return [f"{key}: expected a list of corners, or a file ending in {ends}; got {given!r:.60}"]


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

    `crs` is the coordinate system of the file, whatever it says itself ("local" for metres,
    "EPSG:4326" for longitude and latitude, …); "" = what it says.

    Raises:
        MapError: unknown format, or a map that cannot be used.
        MissingDependencyError: the format needs a library that is not installed.
        PluginError: the format is that of a plug-in that cannot be used.
    """
    end, load = reader_of("roads", path)
    if crs and end not in _TAKES_CRS:
        raise fault(
            path,
            f"a coordinate system can be given for {', '.join(sorted(_TAKES_CRS))}; "
            f"files ending in {end} have their own",
        )
    check_file(path)
    road_map: object = load(path, crs=crs) if crs else load(path)
    if not isinstance(road_map, RoadMap):
        raise fault(path, f"the reader of {end} must return a RoadMap, it gave {road_map!r:.60}")
    return road_map
