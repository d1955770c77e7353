"""Grids as a configuration describes them: cells of a rectangle, of an outline, of a map file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.topology.generated import FreeTopology, make_grid
from gp_active_sensing.topology.geometry import Outline, polygon
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.legs import Speeds
from gp_active_sensing.topology.occupancy import OccupancyGrid, make_occupancy_map

if TYPE_CHECKING:
    from gp_active_sensing.topology.config import MapConfig

__all__ = ["GRID_ENDS", "USUAL_PLACES", "build_grid", "usual_spacing"]

MAP_SERVER_ENDS = (".yaml", ".yml")
GRID_ENDS = MAP_SERVER_ENDS
"""How the names of files of grids end."""

USUAL_PLACES = 400
"""Places of a grid whose spacing is not given, about."""
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def usual_spacing(area: float) -> float:
    """Return a round spacing with which an area [m²] has about `USUAL_PLACES` places [m]."""
    wanted = math.sqrt(area / USUAL_PLACES)
    power = 10.0 ** math.floor(math.log10(wanted))
    return float(f"{min(_ROUND, key=lambda r: abs(math.log(r * power / wanted))) * power:.6g}")


def build_grid(
    config: MapConfig, path: Path | None
) -> tuple[FreeTopology | GraphTopology, tuple[str, ...]]:
    """Build the grid that a configuration describes.

    Args:
        config: of kind "grid".
        path: of its file, None where it has none.

    Returns:
        The map, and notes on what was taken for granted, a sentence each.

    Raises:
        ConfigError: an outline or obstacles that are no polygons, or that leave no cell.
        MapError: a file that cannot be used.
    """
    notes: list[str] = []
    shared: dict[str, Any] = {
        "name": config.name or (path.name.partition(".")[0] if path else config.kind),
        "frame": config.frame or "map",
        "speed": config.speed,
        "moves": config.moves,
        "reach": config.reach,
        "neighbours": config.neighbours,
        "outline": config.outline,
        "obstacles": config.obstacles,
    }
    if path is not None:
        return _on_occupancy(config, path, shared, notes), tuple(notes)
    spacing = config.spacing
    if not spacing:
        spacing = 1.0
        if config.outline is not None and not (config.columns or config.rows):
            spacing = _of_area(_area_of(config.outline), notes)
    shared["speed"] = Speeds(config.speed, config.climb_speed, config.descent_speed)
    shared |= {"heights": config.heights, "origin": config.origin}
    places = make_grid(config.columns, config.rows, spacing, **shared)
    return places, tuple(notes)


def _area_of(outline: Outline) -> float:
    """Return the area of an outline [m²], 0 where it is none."""
    shape = polygon(outline, "outline", [])
    return 0.0 if shape is None else float(shape.area)


def _of_area(area: float, notes: list[str]) -> float:
    """Return the spacing of a map that has none [m], and say it."""
    if not area:  # it is no outline, and will be refused as such
        return 1.0
    spacing = usual_spacing(area)
    notes.append(
        f"spacing {spacing:g} m, for about {area / spacing**2:.0f} places; map.spacing makes it "
        "finer or coarser"
    )
    return spacing


def _on_occupancy(
    config: MapConfig, path: Path, shared: dict[str, Any], notes: list[str]
) -> FreeTopology | GraphTopology:
    from gp_active_sensing.topology.loaders import map_server

    grid, found = map_server.load(path)
    notes += found
    counts = ", ".join(f"{count} {what}" for what, count in grid.counts(config.occupied).items())
    rows, columns = grid.shape
    notes.append(f"{columns} × {rows} cells of {grid.resolution:g} m: {counts}")
    how: dict[str, Any] = {
        "inflation": config.inflation,
        "unknown": config.unknown,
        "occupied": config.occupied,
    }
    spacing = config.spacing or _of_area(_free_area(grid, how), notes)
    return make_occupancy_map(grid, spacing, anchor=config.origin, **how, **shared)


def _free_area(grid: OccupancyGrid, how: dict[str, Any]) -> float:
    """Return the area of the free cells [m²]."""
    return float(np.count_nonzero(~grid.blocked(**how))) * grid.resolution**2
