"""Grids as a configuration describes them: cells of a rectangle, of areas, of an occupancy map."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.ndimage import label
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.generated import FreeTopology, in_metres, make_grid
from gp_active_sensing.topology.geometry import (
    Outline,
    Speeds,
    bounds_of,
    common,
    inside_of,
    polygon,
)
from gp_active_sensing.topology.graph import GraphTopology, Move
from gp_active_sensing.topology.loaders import find_map
from gp_active_sensing.topology.loaders.areas import Areas, read_areas
from gp_active_sensing.topology.map_config import (
    USUAL_PLACES,
    GridConfig,
    file_kind,
    unused_keys,
)
from gp_active_sensing.topology.occupancy import OccupancyGrid, make_occupancy_map
from gp_active_sensing.topology.raster_map import (
    RasterCells,
    load_raster_cells,
    make_raster_map,
    usual_step,
)

__all__ = [
    "build_grid",
    "usual_map",
]

logger = logging.getLogger(__name__)

Places: TypeAlias = FreeTopology | GraphTopology
_Lattice: TypeAlias = tuple[Places, float | tuple[float, float], tuple[float, float]]
"""Places, their spacing and a point of their lattice [m]."""


_TRIED = 3
"""Round spacings whose places are counted."""
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


class BuiltGrid(NamedTuple):
    """A grid, and what was worked out for it."""

    places: Places  # the map
    notes: tuple[str, ...]  # on what was taken for granted, a sentence each
    spacing: float | tuple[float, float]  # of the places, along x and along y, or alike [m]
    origin: tuple[float, float]  # a point of their lattice [m]


def _near(area: float) -> list[float]:
    """Return round spacings for an area [m²], the nearest to `USUAL_PLACES` places first [m]."""
    wanted = math.sqrt(area / USUAL_PLACES)
    power = 10.0 ** math.floor(math.log10(wanted))
    found = {float(f"{r * p:.6g}") for r in _ROUND for p in (0.1 * power, power, 10.0 * power)}
    return sorted(found, key=lambda spacing: (abs(math.log(spacing / wanted)), spacing))


def usual_map(
    grid: OccupancyGrid, config: GridConfig, build: Callable[[float], Places]
) -> tuple[float, Places]:
    """Return the spacing of a map on an occupancy grid that states none [m], and that map.

    Of the round ones it is that with the number of places nearest to `USUAL_PLACES`: walls, doors
    and the radius of the probe take away more than their area. It is never finer than the cells.
    `build` makes the map with a spacing; a MapError counts as no place.

    Raises:
        MapError: no spacing gives a place.
    """
    free = np.count_nonzero(~grid.blocked(**config.counting))
    tried: dict[float, Places | None] = {}
    for wanted in _near(max(1, int(free)) * grid.resolution**2)[:_TRIED]:
        spacing = max(wanted, grid.resolution)
        if spacing not in tried:
            try:
                tried[spacing] = build(spacing)
            except MapError:  # no place on free ground; a finer one may have some
                tried[spacing] = None

    def off(spacing: float) -> float:
        """Return how far the number of places is from the usual one."""
        places = tried[spacing]
        return abs(math.log((0.5 if places is None else places.n) / USUAL_PLACES))

    spacing = min(tried, key=lambda spacing: (off(spacing), spacing))
    return spacing, tried[spacing] or build(spacing)  # which says why there is no place


def build_grid(config: GridConfig, path: Path | None, base_dir: Path | None = None) -> BuiltGrid:
    """Build the grid that a configuration describes, of a file where `path` is not None.

    Raises:
        ConfigError: an outline or obstacles that are no polygons, or that leave no cell.
        MapError: a file that cannot be used.
    """
    kind = file_kind(path.name) if path else ""
    if problems := unused_keys(config, kind):
        raise ConfigError(problems)
    raster = None
    if path is not None and kind == "raster":
        raster = load_raster_cells(
            path, config.datum and (config.datum[1], config.datum[0]), config.value, config.crs
        )
    ground = _AreaLayout(config, path, base_dir, raster)
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
    if path is not None and kind == "map_server":
        places, spacing, origin = _on_occupancy(config, path, shared, ground.notes)
    elif raster is not None:
        places, spacing, origin = _on_raster(config, raster, shared, ground.notes)
        places = _in_parts(config, places, ground)
    else:
        places, spacing, origin = _on_areas(config, shared, ground)
        places = _in_parts(config, places, ground)
    if ground.regions:
        weights = np.ones(places.n)
        for name, shape, weight in ground.regions:
            held = inside_of(shape, places.positions)
            weights[held] = weight
            ground.notes.append(f"region {name!r} of weight {weight:g}: {int(held.sum())} places")
        places = places.weighted(weights)
    return BuiltGrid(places.located(ground.datum), tuple(ground.notes), spacing, origin)


class _AreaLayout:
    """Outline, obstacles and regions in the metres of the map, from its keys and their files."""

    def __init__(
        self,
        config: GridConfig,
        path: Path | None,
        base_dir: Path | None,
        raster: RasterCells | None,
    ) -> None:
        self.notes: list[str] = []
        self.regions: list[tuple[str, Any, float]] = []
        self.obstacles: list[Any] = []
        self.outline: Outline | None = None
        self.of_file = False
        self.datum: tuple[float, float] | None = None
        if config.datum is not None:
            self.datum = config.datum[1], config.datum[0]
        self._base_dir, self._crs = base_dir, config.crs
        self._metres = ""
        if raster is not None:
            self.notes += raster.notes
            self.datum, self.of_file = self.datum or raster.datum, True
        if path is not None:
            if raster is not None or file_kind(path.name):
                if raster is None or raster.datum is None:
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
        areas = read_areas(path, datum=self.datum, crs=self._crs if key == "file" else "")
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
        self._cut(key, given)

    def _cut(self, key: str, shape: Outline) -> None:
        self.outline = shape if self.outline is None else common(self.outline, shape, key)

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


def _on_areas(config: GridConfig, shared: dict[str, Any], ground: _AreaLayout) -> _Lattice:
    sized = bool(config.columns and config.rows)
    spacing = config.spacing or 1.0
    # No area: there is no outline, or none that is one, which will be refused as such.
    if not (config.spacing or sized) and (area := ground.area()):
        spacing = _near(area)[0]
        _say_spacing(spacing, round(area / spacing**2), ground.notes)
    origin = config.origin
    if origin is None and ground.of_file and ground.outline is not None and not sized:
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
    if origin is None:  # as `make_grid` has it then
        cornered = ground.outline is not None and not (config.columns or config.rows)
        origin = bounds_of(ground.outline)[:2] if cornered and ground.outline else (0.0, 0.0)
    return places, spacing, origin


def _in_parts(config: GridConfig, places: Places, ground: _AreaLayout) -> Places:
    """Return a map with all its parts, or with the largest one, as the configuration says."""
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
    part = GraphTopology(
        places.name,
        places.frame,
        [places.names[i] for i in kept],
        places.positions[kept],
        [
            [Move(number[move.to], move.metres, move.seconds) for move in places.moves[i]]
            for i in kept
        ],
        heights=None if places.heights is None else places.heights[kept],
        numbers={key: values[kept] for key, values in places.numbers.items()},
        reach=places.reach,
    )
    return part.over(places.ground)


def _on_raster(
    config: GridConfig, cells: RasterCells, shared: dict[str, Any], notes: list[str]
) -> _Lattice:
    known = int(np.count_nonzero(~cells.empty))
    rows, columns = cells.shape
    width, height = cells.cell
    notes.append(
        f"{columns} × {rows} cells of {in_metres(np.array(cells.cell))}: {known} with data, "
        f"{cells.empty.size - known} without"
    )
    if known == cells.empty.size:
        notes.append("every cell has data, so there is no shore: map.outline cuts the map smaller")
    spacing = config.spacing
    if not spacing:
        spacing = usual_step(cells, _near(known * width * height)[0])
        step = np.broadcast_to(np.asarray(spacing), (2,))
        notes.append(
            f"spacing {in_metres(step)}, for about {known * width * height / step.prod():.0f} "
            "places; map.spacing makes it finer or coarser"
        )
    shared["speed"] = Speeds(config.speed, config.climb_speed, config.descent_speed)
    origin = config.origin or cells.first
    places = make_raster_map(cells, spacing, value=config.value, anchor=origin, **shared)
    return places, spacing, origin


def _say_spacing(spacing: float, places: int, notes: list[str]) -> None:
    notes.append(
        f"spacing {spacing:g} m, for about {places} places; map.spacing makes it finer or coarser"
    )


def _on_occupancy(
    config: GridConfig, path: Path, shared: dict[str, Any], notes: list[str]
) -> _Lattice:
    from gp_active_sensing.topology.loaders import map_server

    grid, found = map_server.load(path)
    notes += found
    counts = ", ".join(f"{count} {what}" for what, count in grid.counts(config.occupied).items())
    rows, columns = grid.shape
    notes.append(f"{columns} × {rows} cells of {grid.resolution:g} m: {counts}")
    spacing, origin = config.spacing, config.origin or (0.0, 0.0)

    def build(step: float | tuple[float, float]) -> Places:
        return make_occupancy_map(grid, step, anchor=origin, **config.counting, **shared)

    if spacing:
        places = build(spacing)
    else:
        spacing, places = usual_map(grid, config, build)
        _say_spacing(spacing, places.n, notes)
    for note in _lost_places(places, spacing, grid.resolution, build):
        logger.warning("map %r: %s", places.name, note)
        notes.append(note)
    notes += _lost_ground(grid, config.counting, places)
    return places, spacing, origin


_LEAST = 0.01
"""Part of a map whose loss is worth a word, or a search for a spacing that keeps it."""
_FINER = (0.8, 0.65, 0.5, 0.35, 0.25)


def _lost_places(
    places: Places,
    spacing: float | tuple[float, float],
    finest: float,
    build: Callable[[float | tuple[float, float]], Places],
) -> Iterator[str]:
    """Yield which places of free ground were left out, and the spacing that would keep them.

    No spacing below `finest` [m] is tried; `build` makes the map with another one.
    """
    step = np.broadcast_to(np.asarray(spacing, dtype=np.float64), (2,))
    lost, each = places.lost, float(step.prod())
    if len(lost) <= _LEAST * places.n:
        return
    near = cKDTree(lost).query_pairs(1.01 * float(np.hypot(*step)), output_type="ndarray")
    joined = coo_array((np.ones(len(near)), near.T), shape=(len(lost),) * 2)
    _, part = connected_components(joined, directed=False)
    sizes = np.bincount(part)
    rooms = ", ".join(
        f"{sizes[k] * each:.3g} m² around ({x:.1f}, {y:.1f})"
        for k in np.argsort(-sizes, kind="stable")[:3]
        for x, y in [lost[part == k].mean(axis=0)]
    )
    more = f" and {len(sizes) - 3} smaller parts" if len(sizes) > 3 else ""
    advice = "no smaller spacing keeps them"
    for share in _FINER:
        finer = tuple(float(f"{share * side:.2g}") for side in step.tolist())
        if min(finer) < finest:
            break
        made = build((finer[0], finer[1]))
        if len(made.lost) * math.prod(finer) <= 0.1 * len(lost) * each:
            shown = f"{finer[0]:g}" if finer[0] == finer[1] else f"[{finer[0]:g}, {finer[1]:g}]"
            advice = f"map.spacing: {shown} keeps them"
            break
    yield (
        f"left out: {len(lost)} places ({len(lost) * each:.3g} m²) of free ground that no move "
        f"joins to the others: {rooms}{more}; {advice}"
    )


def _lost_ground(grid: OccupancyGrid, how: Mapping[str, Any], places: Places) -> Iterator[str]:
    """Yield which free ground has no place: what inflation takes, and rooms between places."""
    free = ~grid.blocked(**{**how, "inflation": 0.0})
    wide = ~grid.blocked(**how)
    cell = grid.resolution**2
    least = max(_LEAST * float(wide.sum()), 1.0)
    rooms, count = label(wide)
    at = np.concatenate([places.positions, places.lost])
    columns, rows = np.floor(grid.cells_of(at)).astype(np.int64).T
    inside = (columns >= 0) & (rows >= 0) & (columns < wide.shape[1]) & (rows < wide.shape[0])
    held = np.unique(rooms[rows[inside], columns[inside]])
    sizes = np.bincount(rooms.ravel(), minlength=count + 1)
    sizes[[0, *held]] = 0
    empty = np.flatnonzero(sizes >= least)
    if len(empty):
        yield f"{_where(grid, rooms, empty, sizes, cell)} hold no place: a smaller spacing may"
    if how["inflation"]:
        yield (
            f"inflation {how['inflation']:g} m takes {(free.sum() - wide.sum()) * cell:.3g} of "
            f"{free.sum() * cell:.3g} m² of free ground"
        )
        rooms, count = label(free)
        sizes = np.bincount(rooms.ravel(), minlength=count + 1)
        sizes[np.unique(rooms[wide])] = 0
        sizes[0] = 0
        if len(empty := np.flatnonzero(sizes >= least)):
            yield f"{_where(grid, rooms, empty, sizes, cell)} are wholly within that inflation"


def _where(
    grid: OccupancyGrid, rooms: np.ndarray, parts: np.ndarray, sizes: np.ndarray, cell: float
) -> str:
    """Return the sizes of parts of the ground, and where the largest ones are."""
    shown = []
    for k in parts[np.argsort(-sizes[parts], kind="stable")][:3]:
        rows, columns = np.nonzero(rooms == k)
        middle = np.array([(columns.mean() + 0.5, rows.mean() + 0.5)])
        x, y = grid.position_of(middle)[0].tolist()
        shown.append(f"{sizes[k] * cell:.3g} m² around ({x:.1f}, {y:.1f})")
    return ", ".join(shown) + (f" and {len(parts) - 3} smaller parts" if len(parts) > 3 else "")
