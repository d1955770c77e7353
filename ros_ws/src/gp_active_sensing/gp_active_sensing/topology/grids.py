"""Grids as a configuration describes them: cells of areas, of an occupancy map, of a raster."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.ndimage import center_of_mass, label
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.generated import (
    FreeTopology,
    in_metres,
    make_grid,
    make_occupancy_map,
    make_raster_map,
)
from gp_active_sensing.topology.geometry import (
    Outline,
    Speeds,
    bounds_of,
    common,
    inside_of,
    polygon,
)
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.loaders import find_map, map_server
from gp_active_sensing.topology.loaders.areas import Areas, read_areas
from gp_active_sensing.topology.loaders.rasters import RasterCells, load_raster_cells, usual_step
from gp_active_sensing.topology.map_config import (
    USUAL_PLACES,
    AreasConfig,
    GridConfig,
    OccupancyConfig,
    RasterConfig,
)
from gp_active_sensing.topology.occupancy import OccupancyGrid
from gp_active_sensing.topology.search import Move

logger = logging.getLogger(__name__)

Places: TypeAlias = FreeTopology | GraphTopology
Step: TypeAlias = float | tuple[float, float]

_TRIED = 3
"""Round spacings whose places are counted."""
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


class BuiltGrid(NamedTuple):
    """A grid, and what was worked out for it."""

    places: Places
    spacing: Step  # of the places, along x and along y, or alike [m]
    origin: tuple[float, float]  # a point of their lattice [m]


def _near(area: float) -> list[float]:
    """Return round spacings for an area [m²], the nearest to `USUAL_PLACES` places first [m]."""
    wanted = math.sqrt(area / USUAL_PLACES)
    power = 10.0 ** math.floor(math.log10(wanted))
    found = {float(f"{r * p:.6g}") for r in _ROUND for p in (0.1 * power, power, 10.0 * power)}
    return sorted(found, key=lambda spacing: (abs(math.log(spacing / wanted)), spacing))


def usual_map(
    grid: OccupancyGrid, config: OccupancyConfig, build: Callable[[float], Places]
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
    raster = None
    if isinstance(config, RasterConfig) and path is not None:
        raster = load_raster_cells(path, config.lonlat, config.value, config.crs)
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
        "inflation": config.inflation,
    }
    if isinstance(config, AreasConfig | RasterConfig):
        shared["speed"] = Speeds(config.speed, config.climb_speed)
    ground.notes += _narrowed(ground, config.inflation)
    if raster is not None and isinstance(config, RasterConfig):
        built = _on_raster(config, raster, shared, ground.notes)
    elif isinstance(config, OccupancyConfig) and path is not None:
        built = _on_occupancy(config, path, shared, ground.notes)
    else:
        assert isinstance(config, AreasConfig)
        built = _on_areas(config, shared, ground)
    places = built.places
    if not isinstance(config, OccupancyConfig):  # of which the largest part is kept
        places = _in_parts(config, places, ground)
    if ground.regions:
        weights = np.ones(places.n)
        for name, shape, weight in ground.regions:
            held = inside_of(shape, places.positions)
            weights[held] = weight
            ground.notes.append(f"region {name!r} of weight {weight:g}: {int(held.sum())} places")
        places = places.weighted(weights)
    return built._replace(places=places.located(ground.datum).noted(ground.notes))


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
        self.of_file = raster is not None
        self.datum = config.lonlat
        self._base_dir, self._crs = base_dir, config.crs
        self._metres = ""
        if raster is not None:
            self.notes += raster.notes
            self.datum = self.datum or raster.datum
        if path is not None and isinstance(config, AreasConfig):
            self._take("file", path)
        elif path is not None and (raster is None or raster.datum is None):
            self._metres = f"file {path.name}"
        if isinstance(config.outline, str):
            self._take("outline", find_map(config.outline, base_dir))
        elif config.outline is not None:
            self._metres = self._metres or "outline"
            self._cut("outline", config.outline)
        for number, obstacle in enumerate(config.shut):
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

    def _cut(self, key: str, shape: Outline) -> None:
        self.outline = shape if self.outline is None else common(self.outline, shape, key)

    def ground(self) -> Any:
        """Return the outline without the obstacles as a shape; None where there is none.

        Also where a shape is no polygon, which is refused when the map is made.
        """
        if self.outline is None:
            return None
        import shapely

        shape = polygon(self.outline, "outline", [])
        others = [polygon(obstacle, "obstacles", []) for obstacle in self.obstacles]
        if shape is None or None in others:
            return None
        return shape.difference(shapely.union_all(others))


def _on_areas(config: AreasConfig, shared: dict[str, Any], ground: _AreaLayout) -> BuiltGrid:
    sized = bool(config.columns and config.rows)
    spacing = config.spacing or 1.0
    if not (config.spacing or sized) and (shape := ground.ground()) is not None:
        free = shape.buffer(-config.inflation) if config.inflation else shape
        if free.area > 0.0:
            spacing = _near(free.area)[0]
            _log_spacing(spacing, round(free.area / spacing**2), ground.notes)
    origin = config.origin
    if origin is None and ground.of_file and ground.outline is not None and not sized:
        # In the middle of the outline: as much is left over on either side.
        low_x, low_y, high_x, high_y = bounds_of(ground.outline)
        step = np.broadcast_to(np.asarray(spacing), (2,))
        origin = (
            low_x + 0.5 * math.fmod(high_x - low_x, float(step[0])),
            low_y + 0.5 * math.fmod(high_y - low_y, float(step[1])),
        )
    shared |= {"heights": config.heights, "origin": origin}
    places = make_grid(config.columns, config.rows, spacing, **shared)
    if origin is None:  # as `make_grid` has it then
        cornered = ground.outline is not None and not (config.columns or config.rows)
        origin = bounds_of(ground.outline)[:2] if cornered and ground.outline else (0.0, 0.0)
    return BuiltGrid(places, spacing, origin)


def _in_parts(config: GridConfig, places: Places, ground: _AreaLayout) -> Places:
    """Return a map with all its parts, or with the largest one, as the configuration says."""
    if not isinstance(places, GraphTopology) or places.components.weak == 1:
        return places
    parts, kept = places.components.weak, sorted(places.components.largest)
    if not config.largest_component:
        if ground.of_file or config.inflation:
            logger.warning(
                "map %r: no move joins its %d parts; the largest one has %d of %d places; a "
                "smaller spacing may join them, map.largest_component: true keeps the largest only",
                *(places.name, parts, len(kept), places.n),
            )
        return places
    ground.notes.append(
        f"kept the largest part, {len(kept)} of {places.n} places, since no move joins the "
        f"{parts} parts"
    )
    number = {place: i for i, place in enumerate(kept)}
    return GraphTopology(
        places.name,
        places.frame,
        [places.names[i] for i in kept],
        places.positions[kept],
        [[Move(number[to], *cost) for to, *cost in places.moves[i]] for i in kept],
        heights=None if places.heights is None else places.heights[kept],
        numbers={key: values[kept] for key, values in places.numbers.items()},
        reach=places.reach,
    ).over(places.ground)


def _on_raster(
    config: RasterConfig, cells: RasterCells, shared: dict[str, Any], notes: list[str]
) -> BuiltGrid:
    free = int(np.count_nonzero(~cells.empty))
    rows, columns = cells.shape
    each = math.prod(cells.cell)
    notes.append(
        f"{columns} × {rows} cells of {in_metres(np.array(cells.cell))}: {free} with data, "
        f"{cells.empty.size - free} without"
    )
    if free == cells.empty.size:
        notes.append("every cell has data, so there is no shore: map.outline cuts the map smaller")
    if config.inflation:
        wide = int(np.count_nonzero(~cells.blocked(config.inflation)))
        notes.append(_taken(config.inflation, free * each, wide * each))
        free = wide
    spacing = config.spacing
    if not spacing:
        spacing = usual_step(cells, _near(max(free, 1) * each)[0])
        step = np.broadcast_to(np.asarray(spacing), (2,))
        _log_spacing(spacing, round(free * each / float(step.prod())), notes)
    origin = config.origin or cells.first
    places = make_raster_map(cells, spacing, value=config.value, anchor=origin, **shared)
    return BuiltGrid(places, spacing, origin)


def _log_spacing(spacing: Step, places: int, notes: list[str]) -> None:
    step = np.broadcast_to(np.asarray(spacing), (2,))
    notes.append(
        f"spacing {in_metres(step)}, for about {places} places; map.spacing makes it finer or "
        "coarser"
    )


def _on_occupancy(
    config: OccupancyConfig, path: Path, shared: dict[str, Any], notes: list[str]
) -> BuiltGrid:
    grid, found = map_server.load(path)
    notes += found
    counts = ", ".join(f"{count} {what}" for what, count in grid.counts().items())
    rows, columns = grid.shape
    notes.append(f"{columns} × {rows} cells of {grid.resolution:g} m: {counts}")
    spacing, origin = config.spacing, config.origin or (0.0, 0.0)

    def build(step: Step) -> Places:
        return make_occupancy_map(grid, step, anchor=origin, **shared | config.counting)

    if spacing:
        places = build(spacing)
    else:
        spacing, places = usual_map(grid, config, build)
        _log_spacing(spacing, places.n, notes)
    for note in _lost_places(places, spacing, grid.resolution, build):
        logger.warning("map %r: %s", places.name, note)
        notes.append(note)
    notes += _lost_ground(grid, config, places)
    return BuiltGrid(places, spacing, origin)


# -- what falls away -------------------------------------------------------------------------------

_LEAST = 0.01
"""Part of a map whose loss is worth a word, or a search for a spacing that keeps it."""
_FINER = (0.8, 0.65, 0.5, 0.35, 0.25)


def _around(parts: Iterable[tuple[float, float, float]]) -> str:
    """Return parts of the ground in words, by their sizes [m²] and middles: the largest three."""
    ordered = sorted(parts, key=lambda part: -part[0])
    shown = [f"{size:.3g} m² around ({x:.1f}, {y:.1f})" for size, x, y in ordered[:3]]
    more = f" and {len(ordered) - 3} smaller parts" if len(ordered) > 3 else ""
    return ", ".join(shown) + more


def _taken(inflation: float, free: float, wide: float) -> str:
    return f"inflation {inflation:g} m takes {free - wide:.6g} of {free:.6g} m² of free ground"


def _narrowed(ground: _AreaLayout, inflation: float) -> Iterator[str]:
    """Yield what an inflation [m] takes from the ground of areas."""
    if not inflation or (shape := ground.ground()) is None:
        return
    import shapely

    narrowed = shape.buffer(-inflation)
    yield _taken(inflation, shape.area, narrowed.area)
    gone, cut = [], []
    for part in shapely.get_parts(shape):
        left = [p for p in shapely.get_parts(narrowed.intersection(part)) if p.area > 0.0]
        middle = part.representative_point()
        if not left:
            gone.append((part.area, middle.x, middle.y))
        elif len(left) > 1:
            cut += [(p.area, *p.representative_point().coords[0]) for p in left]
    if gone:
        yield f"{_around(gone)} are wholly within that inflation"
    if cut:
        yield f"that inflation cuts the ground into {len(cut)} parts: {_around(cut)}"


def _lost_places(
    places: Places, spacing: Step, finest: float, build: Callable[[Step], Places]
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
    middles = [np.bincount(part, axis) / sizes for axis in lost.T]
    rooms = _around(zip((sizes * each).tolist(), *(m.tolist() for m in middles), strict=True))
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
        f"joins to the others: {rooms}; {advice}"
    )


def _lost_ground(grid: OccupancyGrid, config: OccupancyConfig, places: Places) -> Iterator[str]:
    """Yield which free ground has no place: what inflation takes, and rooms between places."""
    free = ~grid.blocked(**{**config.counting, "inflation": 0.0})
    wide = ~grid.blocked(**config.counting)
    cell = grid.resolution**2
    least = max(_LEAST * float(wide.sum()), 1.0)

    def without(ground: np.ndarray, held: Callable[[np.ndarray], np.ndarray]) -> str:
        """Return a note on the rooms of some ground without a place."""
        rooms, count = label(ground)
        sizes = np.bincount(rooms.ravel(), minlength=count + 1)
        sizes[[0, *np.unique(held(rooms))]] = 0
        empty = np.flatnonzero(sizes >= least)
        if not len(empty):
            return ""
        middles = np.array(center_of_mass(ground, rooms, empty))[:, ::-1] + 0.5
        at = grid.position_of(middles).tolist()
        return _around((sizes[k] * cell, x, y) for k, (x, y) in zip(empty, at, strict=True))

    at = np.concatenate([places.positions, places.lost])
    columns, rows = np.floor(grid.cells_of(at)).astype(np.int64).T
    inside = (columns >= 0) & (rows >= 0) & (columns < wide.shape[1]) & (rows < wide.shape[0])
    if empty := without(wide, lambda rooms: rooms[rows[inside], columns[inside]]):
        yield f"{empty} hold no place: a smaller spacing may"
    if config.inflation:
        yield _taken(config.inflation, free.sum() * cell, wide.sum() * cell)
        if empty := without(free, lambda rooms: rooms[wide]):
            yield f"{empty} are wholly within that inflation"
