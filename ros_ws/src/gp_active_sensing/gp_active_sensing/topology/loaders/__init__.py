"""Catalogue of map formats, and checks of every map file.

The limits on size are far above any real map. They stop files that were made to exhaust memory.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError, MissingDependencyError, ResourceError, brief_repr
from gp_active_sensing.registry import Registry
from gp_active_sensing.topology.segments import RoadMap
from gp_active_sensing.util.files import open_file
from gp_active_sensing.util.resources import find_resource

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
"""Kind of content, file name endings, and reader of each format. Add new formats here.

A reader takes a path and returns a `RoadMap` (roads), a `Drawing` (areas), an `OccupancyGrid` and
notes (cells), or a `PlaceTable` (points). A reader of a raster also takes the name of a band, and
returns a `RasterFile` and its unit. A reader raises one MapError for all problems of a file,
or MissingDependencyError.
"""
loaders: Registry[Any] = Registry("map format", group="gp_active_sensing.map_loaders")
"""Reader of each format; a key such as "areas .kml" is the kind of content and the file ending.

A plug-in for roads is registered under an ending without a kind of content.
"""
for _kind, _ends, _where in _FORMATS:
    for _end in _ends:
        loaders.add(f"{_kind} {_end}", f"{__name__}.{_where}")

_CONTENTS = {"roads": ("roads",), "grid": ("areas", "cells", "raster"), "points": ("points",)}
"""Kinds of file content from which each kind of map can be made."""
OF_FILE = tuple(_CONTENTS)
"""Kinds of maps that a file can contain."""
_TAKES_CRS = {".geojson", ".json", ".graphml", ".csv"}
"""File name endings of road formats that can have any coordinate system."""

MOST_TEXT = 256 * 2**20
"""Largest size of a file of GeoJSON or of a table [bytes]."""
SHOWN_PROBLEMS = 10


# -- formats ---------------------------------------------------------------------------------------


def ends_of(*kinds: str) -> tuple[str, ...]:
    """Return the file name endings of some kinds of content, such as "roads" and "areas"."""
    named = [name.rpartition(" ") for name in loaders]
    return tuple(end for kind, _, end in named if (kind or "roads") in kinds)


def read_as(kind: str, path: Path, *given: Any, crs: str = "", most: int = sys.maxsize) -> Any:
    """Read a file of at most `most` bytes with the reader of its format.

    `given` are further arguments of the reader. Only readers of roads take a `crs`.

    Raises:
        MapError: the file has another format, is too large, or cannot be used.
        MissingDependencyError: a library that the format needs is not installed.
        PluginError: the plug-in of the format cannot be used.
    """
    found = [end for end in ends_of(kind) if path.name.lower().endswith(end)]
    if not found:
        known = "; ".join(f"{k}: {', '.join(sorted(ends_of(*c)))}" for k, c in _CONTENTS.items())
        raise fault(
            path,
            f"expected a file of a map ({known}), got one that ends in "
            f"{''.join(path.suffixes[-2:])!r}",
        )
    end = max(found, key=len)
    if crs and end not in _TAKES_CRS:
        raise fault(
            path,
            f"a coordinate system can be given for {', '.join(sorted(_TAKES_CRS))}; "
            f"files ending in {end} have their own",
        )
    check_file(path, most)
    name = f"{kind} {end}"
    read: Callable[..., Any] = loaders.factory(name if name in loaders else end)
    made = read(path, *given, **{"crs": crs} if crs else {})
    if kind == "roads" and not isinstance(made, RoadMap):
        raise fault(path, f"the reader of {end} must return a RoadMap, it gave {made!r:.60}")
    return made


def load_roads(path: Path, *, crs: str = "") -> RoadMap:
    """Read a road map in the format of its file ending. Raises the errors of `read_as`.

    `crs` overrides the coordinate system of the file: "local" for metres, "EPSG:4326" for longitude
    and latitude, …; "" = the system that the file declares.
    """
    road_map: RoadMap = read_as("roads", path, crs=crs)
    return road_map


def find_map(file: str, base_dir: Path | None = None) -> Path:
    """Return the path of a map file in `base_dir`, at `file` itself, or among the shipped maps.

    Raises:
        ResourceError: no such file.
    """
    if base_dir is not None and (base_dir / file).is_file():
        return base_dir / file
    return find_resource("maps", file)


def kinds_of_file(file: str) -> tuple[str, ...]:
    """Return the kinds of map that a file of this name can contain; () for an unknown ending."""
    name = Path(file).name.lower()
    return tuple(kind for kind, of in _CONTENTS.items() if name.endswith(ends_of(*of)))


def kind_of_map(file: str) -> str:
    """Return the kind of map in a file; "roads" if no map can be read."""
    try:
        path = find_map(file)
    except ResourceError:
        return "roads"
    kinds = kinds_of_file(path.name)
    if len(kinds) < 2:
        return kinds[0] if kinds else "roads"
    try:
        if "grid" not in kinds:
            from gp_active_sensing.topology.loaders.table import is_edges

            places = path.suffix.lower() == ".csv" and not is_edges(path)
            return "points" if places else "roads"
        if "roads" in kinds:
            return _kind_in_geojson(read_text(path))
        from gp_active_sensing.topology.loaders.vector import only_points

        return "points" if only_points(path) else "grid"
    except (MapError, MissingDependencyError):
        return "roads" if "roads" in kinds else "grid"  # The reader refuses the file.


def _kind_in_geojson(text: str) -> str:
    if re.search(r'"(from|startid)"\s*:', text) or not re.search('(Polygon|Point)"', text):
        return "roads"
    if 'Polygon"' in text:
        return "grid"
    return "roads" if 'LineString"' in text else "points"


def name_problems(key: str, given: object) -> list[str]:
    """Return the problems of a file name that is given in place of corners."""
    known = ends_of("areas")
    if not isinstance(given, str) or given.lower().endswith(known):
        return []
    ends = ", ".join(known)
    return [f"{key}: expected a list of corners, or a file ending in {ends}; got {given!r:.60}"]


# -- files within limits ---------------------------------------------------------------------------


def check_file(path: Path, most: int = sys.maxsize) -> None:
    """Raise MapError if a file is missing or has more than `most` bytes."""
    try:
        with open_file(path) as stream:
            size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise fault(path, f"cannot be read: {error.strerror or error}") from error
    if size > most:
        raise fault(path, f"is too large: expected at most {most >> 20} MiB")


def read_text(path: Path) -> str:
    """Return the text of a map file in UTF-8, without a byte order mark. Raises MapError."""
    check_file(path, MOST_TEXT)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise fault(path, f"cannot be read as text in UTF-8: {error}") from error


def read_json(path: Path) -> Any:
    """Return the data of a JSON file. Raises MapError if the file is not JSON."""
    text = read_text(path)
    if not text.strip():
        raise fault(path, "is empty")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5000 digits
        raise fault(path, f"is not valid JSON, perhaps truncated: {error}") from error


def declared_crs(whole: Mapping[str, Any]) -> str:
    """Return the coordinate system in the project's header or the member "crs" of GeoJSON."""
    header, crs = whole.get("gp_active_sensing"), whole.get("crs")
    old = crs.get("properties") if isinstance(crs, dict) else None
    own = header.get("crs") if isinstance(header, dict) else None
    return str(own or (old.get("name") if isinstance(old, dict) else "") or "")


# -- checked values --------------------------------------------------------------------------------


def fail(path: Path | str, problems: Sequence[str]) -> None:
    """Raise MapError if there are problems."""
    if not problems:
        return
    if len(problems) == 1:
        msg = f"{path}: {problems[0]}"
    else:
        lines = [f"  - {problem}" for problem in problems[:SHOWN_PROBLEMS]]
        rest = len(problems) - SHOWN_PROBLEMS
        if rest > 0:
            lines.append(f"  … and {rest} more")
        msg = f"{path}: {len(problems)} problems in the map:\n" + "\n".join(lines)
    raise MapError(msg)


def fault(where: Path | str, what: str) -> MapError:
    """Return the MapError that states a fault of a map file."""
    return MapError(f"{where}: {what}")


def expected(path: Path | str, where: str, what: str, got: Any) -> MapError:
    """Return the MapError for a wrong value in a map file."""
    return MapError(f"{path}: {where}{': ' if where else ''}expected {what}, got {brief_repr(got)}")


def is_number(value: Any) -> bool:
    """Return whether a value is an int or float within the range of float, or NaN."""
    if isinstance(value, int) and abs(value) > 1 << 1000:
        return False
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_of(value: Any) -> float | None:
    """Convert a number or text to float; return None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def is_text(value: str) -> bool:
    """Return whether a text can be encoded as UTF-8; texts from JSON may have lone surrogates."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
