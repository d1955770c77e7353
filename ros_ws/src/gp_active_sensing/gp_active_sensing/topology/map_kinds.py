"""Which kind of map a file holds: the end of its name says it, or its content."""

from __future__ import annotations

from pathlib import Path

from gp_active_sensing.errors import ResourceError
from gp_active_sensing.topology.grids import GRID_ENDS
from gp_active_sensing.topology.loaders import find_map, loaders
from gp_active_sensing.topology.loaders.areas import holds_areas

__all__ = ["OF_FILE", "ends_in_words", "kind_of_map", "kinds_of_file"]

OF_FILE = ("roads", "grid", "points")
"""Kinds of maps that a file may hold."""
_POINT_ENDS = (".csv",)


def kinds_of_file(file: str) -> tuple[str, ...]:
    """Return the kinds of map that a file may be by the end of its name, () where it says nothing.

    A name without an end is that of a map that ships with the package.

    Args:
        file: a path or a name.
    """
    name = Path(file).name.lower()
    ends = {"roads": tuple(loaders), "grid": GRID_ENDS, "points": _POINT_ENDS}
    return tuple(kind for kind in OF_FILE if name.endswith(ends[kind]))


def kind_of_map(file: str, base_dir: Path | None = None) -> str:
    """Return the kind of map that a file is; "roads" where it cannot be found, or is no map.

    Args:
        file: a path, or the name of a map that ships with the package.
        base_dir: folder that a relative path is looked for in first.
    """
    try:
        path = find_map(file, base_dir)
    except ResourceError:
        return "roads"
    kinds = kinds_of_file(path.name)
    if len(kinds) > 1 and "grid" in kinds:
        return "grid" if holds_areas(path) else "roads"
    if len(kinds) > 1:
        from gp_active_sensing.topology.stations import is_stations  # seldom wanted

        return "points" if is_stations(path) else "roads"
    return kinds[0] if kinds else "roads"


def ends_in_words() -> str:
    """Return how the names of all files of maps end, for messages."""
    return (
        f"roads: {', '.join(loaders)}; grids: {', '.join(sorted(GRID_ENDS))}; "
        f"points: {', '.join(_POINT_ENDS)}"
    )
