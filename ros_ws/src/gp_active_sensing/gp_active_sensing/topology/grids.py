"""Grids as a configuration describes them: cells of a rectangle, of areas, of an occupancy map."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.generated import FreeTopology, make_grid
from gp_active_sensing.topology.geometry import Outline, bounds_of, inside_of, polygon
from gp_active_sensing.topology.graph import GraphTopology, Move
from gp_active_sensing.topology.legs import Speeds
from gp_active_sensing.topology.loaders import find_map
from gp_active_sensing.topology.loaders.areas import AREA_ENDS, Areas, read_areas
from gp_active_sensing.topology.occupancy import make_occupancy_map

if TYPE_CHECKING:
    from gp_active_sensing.topology.config import MapConfig

__all__ = ["EITHER_ENDS", "GRID_ENDS", "USUAL_PLACES", "build_grid", "usual_spacing"]

logger = logging.getLogger(__name__)

_MAP_SERVER_ENDS = (".yaml", ".yml")
GRID_ENDS = (*_MAP_SERVER_ENDS, *AREA_ENDS)
"""How the names of files of grids end."""
EITHER_ENDS = (".geojson", ".json")
"""How the names of files end that hold a road map, or areas."""

USUAL_PLACES = 400
"""Places of a grid whose spacing is not given, about."""
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def usual_spacing(area: float) -> float:
    """Return a round spacing with which an area [m²] has about `USUAL_PLACES` places [m]."""
    wanted = math.sqrt(area / USUAL_PLACES)
    power = 10.0 ** math.floor(math.log10(wanted))
    return float(f"{min(_ROUND, key=lambda r: abs(math.log(r * power / wanted))) * power:.6g}")


def build_grid(
    config: MapConfig, path: Path | None, base_dir: Path | None = None
) -> tuple[FreeTopology | GraphTopology, tuple[str, ...]]:
    """Build the grid that a configuration describes.

    Args:
        config: of kind "grid".
        path: of its file, None where it has none.
        base_dir: folder that other files are looked for in first.

    Returns:
        The map, and notes on what was taken for granted, a sentence each.

    Raises:
        ConfigError: an outline or obstacles that are no polygons, or that leave no cell.
        MapError: a file that cannot be used.
    """
    ground = _AreaLayout(config, path, base_dir)
    shared: dict[str, Any] = {
        "name": config.name or (path.name.partition(".")[0] if path else config.kind),
        "frame": config.frame or "map",
        "speed": config.speed,
        "moves": config.moves,
        "reach": config.reach,
        "neighbours": config.neighbours,
        "outline": ground.outline,
        "obstacles": ground.obstacles,
    }
    if path is not None and path.name.lower().endswith(_MAP_SERVER_ENDS):
        places = _on_occupancy(config, path, shared, ground.notes)
    else:
        places = _on_areas(config, shared, ground)
    if ground.regions:
        weights = np.ones(places.n)
        for name, shape, weight in ground.regions:
            held = inside_of(shape, places.positions)
            weights[held] = weight
            ground.notes.append(f"region {name!r} of weight {weight:g}: {int(held.sum())} places")
        places = places.weighted(weights)
    return places.located(ground.datum), tuple(ground.notes)


class _AreaLayout:
    """Outline, obstacles and regions in the metres of the map, from its keys and their files."""

    def __init__(self, config: MapConfig, path: Path | None, base_dir: Path | None) -> None:
        self.notes: list[str] = []
        self.regions: list[tuple[str, Any, float]] = []
        self.obstacles: list[Any] = []
        self.outline: Outline | None = None
        self.of_file = False
        self.datum: tuple[float, float] | None = None
        if config.datum is not None:
            self.datum = config.datum[1], config.datum[0]
        self._base_dir = base_dir
        self._metres = ""
        if path is not None:
            if path.name.lower().endswith(_MAP_SERVER_ENDS):
                self._metres = f"file {path.name}"
            else:
                self._take("file", path)
        for key, given in (("outline", config.outline), ("geofence", config.geofence)):
            if given is not None:
                self._within(key, given)
        others = [config.obstacles] if isinstance(config.obstacles, str) else config.obstacles
        for number, obstacle in enumerate(others):
            key = f"obstacles[{number}]"
            if isinstance(obstacle, str):
                self.obstacles.append(self._read(key, find_map(obstacle, base_dir)).everything)
            else:
                self._metres = self._metres or key
                self.obstacles.append(obstacle)

    def _read(self, key: str, path: Path) -> Areas:
        areas = read_areas(path, datum=self.datum)
        if self.datum is None and areas.datum is not None and self._metres:
            msg = (
                f"{key}: {path} is in degrees, and {self._metres} in metres: say where the origin "
                "of these lies with map.datum: [latitude, longitude]"
            )
            raise ConfigError(msg)
        self.datum = self.datum or areas.datum
        if areas.datum is None:
            self._metres = self._metres or f"{key} {path.name}"
        self.notes += areas.notes
        return areas

    def _take(self, key: str, path: Path) -> None:
        """Take outline, obstacles and regions of a file."""
        areas = self._read(key, path)
        if areas.outline is None:
            msg = (
                f"{path}: has obstacles or regions, but no outline that places lie in; add its "
                "polygon, or give map.outline and name this file in map.obstacles"
            )
            raise MapError(msg)
        self._cut(key, areas.outline)
        self.of_file = True
        self.obstacles += areas.obstacles
        self.regions += areas.regions

    def _within(self, key: str, given: str | Outline) -> None:
        """Leave only what is within an outline, or within that of a file."""
        if isinstance(given, str):
            self._take(key, find_map(given, self._base_dir))
            return
        self._metres = self._metres or key
        if self.outline is None:
            self.outline = given
            return
        problems: list[str] = []
        shape = polygon(given, key, problems)
        if problems:
            raise ConfigError(problems)
        self._cut(key, shape)

    def _cut(self, key: str, shape: Any) -> None:
        if self.outline is None:
            self.outline = shape
            return
        import shapely

        problems: list[str] = []
        before = polygon(self.outline, "outline", problems)
        if problems:
            raise ConfigError(problems)
        parts = [p for p in shapely.get_parts(before.intersection(shape)) if p.area > 0.0]
        if not parts:
            msg = f"{key}: has nothing in common with the outline; do both lie where they should?"
            raise ConfigError(msg)
        self.outline = shapely.MultiPolygon(parts) if len(parts) > 1 else parts[0]

    def area(self) -> float:
        """Return the area of the outline without the obstacles [m²], 0 where there is none."""
        if self.outline is None:
            return 0.0
        import shapely

        shape = polygon(self.outline, "outline", [])
        others = [polygon(obstacle, "obstacles", []) for obstacle in self.obstacles]
        if shape is None or None in others:
            return 0.0  # it will be refused as such
        return float(shape.difference(shapely.union_all(others)).area)


def _on_areas(
    config: MapConfig, shared: dict[str, Any], ground: _AreaLayout
) -> FreeTopology | GraphTopology:
    sized = bool(config.columns and config.rows)
    spacing = config.spacing or (1.0 if sized else _for_area(ground.area(), ground.notes))
    origin = config.origin
    if ground.of_file and ground.outline is not None and origin == (0.0, 0.0) and not sized:
        # In the middle of the outline: as much is left over on either side.
        low_x, low_y, high_x, high_y = bounds_of(ground.outline)
        step = np.broadcast_to(np.asarray(spacing), (2,))
        origin = (
            low_x + 0.5 * math.fmod(high_x - low_x, float(step[0])),
            low_y + 0.5 * math.fmod(high_y - low_y, float(step[1])),
        )
    shared["speed"] = Speeds(config.speed, config.climb_speed, config.descent_speed)
    shared |= {"heights": config.heights, "origin": origin}
    places = make_grid(config.columns, config.rows, spacing, **shared)
    if not isinstance(places, GraphTopology) or places.components.weak == 1:
        return places
    if config.largest_component:
        return _largest_part(places, ground.notes)
    if ground.of_file:
        parts, largest = places.components.weak, len(places.components.largest)
        logger.warning(
            "map %r: no move joins its %d parts, the largest of which has %d of %d places; a "
            "smaller spacing may join them, map.largest_component: true keeps the largest only",
            places.name,
            parts,
            largest,
            places.n,
        )
    return places


def _largest_part(places: GraphTopology, notes: list[str]) -> GraphTopology:
    kept = sorted(places.components.largest)
    number = {place: i for i, place in enumerate(kept)}
    notes.append(
        f"kept the largest part, {len(kept)} of {places.n} places, since no move joins the "
        f"{places.components.weak} parts"
    )
    return GraphTopology(
        places.name,
        places.frame,
        [places.names[i] for i in kept],
        places.positions[kept],
        [
            [Move(number[move.to], move.metres, move.seconds) for move in places.moves[i]]
            for i in kept
        ],
        heights=None if places.heights is None else places.heights[kept],
        reach=places.reach,
    )


def _for_area(area: float, notes: list[str]) -> float:
    """Return the spacing of a map that has none [m], and say it."""
    if not area:  # there is no outline, or none that is one: then it will be refused as such
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
    spacing = config.spacing
    if not spacing:
        free = np.count_nonzero(~grid.blocked(**how))
        spacing = _for_area(float(free) * grid.resolution**2, notes)
    return make_occupancy_map(grid, spacing, anchor=config.origin, **how, **shared)
