"""Build a topology from its configuration."""

from __future__ import annotations

import dataclasses
import logging
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, MapError, suggest
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.features import FEATURES, RELATIONAL, ROAD_DISTANCE, SHARE
from gp_active_sensing.topology.free import DESIGNS, FreeTopology, make_points
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.grid import make_grid, make_line
from gp_active_sensing.topology.links import MIDDLE
from gp_active_sensing.topology.loaders import load_roads
from gp_active_sensing.topology.projection import metres_of
from gp_active_sensing.topology.roads import U_TURNS, Roads
from gp_active_sensing.topology.segments import keep_largest
from gp_active_sensing.topology.weights import WeightsConfig, weights_of
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.resources import find_resource

__all__ = ["MapConfig", "Start", "build_topology", "check_start", "place_index", "place_near"]

logger = logging.getLogger(__name__)

_CELL = re.compile(r"c\d+r\d+")

_FAR = 0.1
"""Share of a map's extent by which a position may lie off every place."""

_KEYS = {
    "line": ("count", "spacing", "moves", "origin"),
    "grid": (
        "columns",
        "rows",
        "spacing",
        "moves",
        "origin",
        "neighbours",
        "outline",
        "obstacles",
    ),
    "points": ("count", "low", "high", "design", "seed"),
    "roads": (
        "file",
        "features",
        "relational",
        "relational_share",
        "anchor",
        "u_turns",
        "largest_component",
    ),
}
_SHARED = ("kind", "name", "frame", "speed", "reach", "weights")


@dataclass(frozen=True)
class MapConfig:
    """Where a probe may go; `kind` says which of the other keys count."""

    kind: str = param(help="kind of map", choices=tuple(_KEYS))
    name: str = param("", help='name for messages; "" = the kind, or the name of the file')
    frame: str = param("", help='metric frame of the positions; "" = the file\'s own, or "map"')
    speed: float = param(
        1.0, help="speed of the probe where the map has no limit", unit="m/s", above=0.0
    )
    file: str = param("", help="roads: a map that ships with the package, or a path")
    features: tuple[str, ...] = param(
        ("x", "y"),
        help=f"roads: what the covariance is a function of: some of {', '.join(FEATURES)} and the "
        f"map's own numbers; or [{RELATIONAL}], coordinates of an embedding of the road graph",
        min_items=1,
    )
    relational: tuple[str, ...] | None = param(
        None,
        help=f"roads, features: [{RELATIONAL}]: what the links of the road graph weigh by, such as "
        f"[length, speed_limit], or [{ROAD_DISTANCE}]; null = those of length, lanes, speed_limit, "
        "direction that the map has",
        min_items=1,
    )
    relational_share: float = param(
        SHARE,
        help="share of the squared distances that the embedding explains: more takes more "
        "dimensions",
        above=0.0,
        high=1.0,
    )
    anchor: float = param(
        MIDDLE,
        help="roads: where along a segment its value belongs, for features and kernels: 0 its "
        "start, 0.5 its middle, 1 its end (speeds that queues before junctions make)",
        low=0.0,
        high=1.0,
    )
    u_turns: str = param("dead_ends", help="roads: where U-turns are allowed", choices=U_TURNS)
    largest_component: bool = param(
        False, help="roads: keep only the largest part with a way from each segment to each"
    )
    count: int = param(0, help="line, points: number of places", low=0)
    low: tuple[float, ...] = param(
        (), help="points: lower corner of the box they are drawn in, an entry for each dimension"
    )
    high: tuple[float, ...] = param((), help="points: upper corner of the box")
    design: str = param(
        "sobol",
        help="points: drawn each by itself, as a Latin hypercube, or as a scrambled Sobol sequence",
        choices=DESIGNS,
    )
    seed: int = param(0, help="points: key of the draw", low=0)
    columns: int = param(
        0, help="grid: number of cells along x; 0 = as many as the outline takes", low=0
    )
    rows: int = param(
        0, help="grid: number of cells along y; 0 = as many as the outline takes", low=0
    )
    spacing: float = param(
        1.0, help="line, grid: distance between neighbouring places", unit="m", above=0.0
    )
    origin: tuple[float, float] = param(
        (0.0, 0.0), help="line, grid: position of the first place", unit="m"
    )
    moves: str = param(
        "adjacent", help="line, grid: any place next, or neighbours", choices=("adjacent", "free")
    )
    reach: float = param(
        0.0,
        help="places within so many metres of driving may be next, whatever is crossed on the way; "
        "0 = adjacent ones only, and on through observed ones",
        unit="m",
        low=0.0,
    )
    neighbours: int = param(4, help="grid: 4 or 8 (with diagonals)", low=4, high=8)
    outline: tuple[tuple[float, float], ...] | None = param(
        None,
        help="grid: cells outside are no places; two opposite corners of a rectangle, or the "
        "corners of a polygon; null = all are",
        unit="m",
    )
    obstacles: tuple[tuple[tuple[float, float], ...], ...] = param(
        (),
        help="grid: two opposite corners of a rectangle, or the corners of a polygon, each",
        unit="m",
    )
    weights: WeightsConfig = dataclasses.field(default_factory=WeightsConfig)

    def __post_init__(self) -> None:
        problems: list[str] = []
        if self.neighbours not in (4, 8):
            problems.append(f"neighbours: expected 4 or 8, got {self.neighbours}")
        needed = {
            "line": ("count",),
            "grid": () if self.outline else ("columns", "rows"),
            "points": ("count", "low", "high"),
            "roads": ("file",),
        }
        for key in needed.get(self.kind, ()):
            if not getattr(self, key):
                problems.append(f"{key}: is required for kind {self.kind!r} and missing")
        known = (*_SHARED, *_KEYS.get(self.kind, ()))
        for field in dataclasses.fields(self):
            if field.name not in known and getattr(self, field.name) != field.default:
                problems.append(f"{field.name}: has no meaning for kind {self.kind!r}; remove it")
        if self.kind == "points":
            problems += self._box_problems()
        if self.reach and self.moves == "free" and self.kind != "roads":
            problems.append("reach: has no meaning with moves: free, any place is next; remove it")
        if self.relational is not None and self.features != (RELATIONAL,):
            problems.append(f"relational: is for features: [{RELATIONAL}]; set that, or remove it")
        if self.reach and self.kind == "points":
            problems.append("reach: has no meaning for kind 'points', any place is next; remove it")
        if self.kind not in _KEYS:
            hint = suggest(self.kind, _KEYS)
            problems = [f"kind: expected one of {', '.join(_KEYS)}, got {self.kind!r}.{hint}"]
        if problems:
            raise ConfigError(problems)

    def _box_problems(self) -> list[str]:
        if len(self.low) != len(self.high):
            return [f"high: expected {len(self.low)} entries as in low, got {len(self.high)}"]
        return [
            f"high[{i}]: must be more than low[{i}], {a:g}, got {b:g}"
            for i, (a, b) in enumerate(zip(self.low, self.high, strict=True))
            if not b > a
        ]


def build_topology(config: MapConfig, *, base_dir: Path | None = None) -> Topology:
    """Build the map a configuration describes.

    Args:
        config: what to build.
        base_dir: folder that a relative `file` is looked for in first (the scenario's).

    Raises:
        ConfigError: an outline or obstacles that are no polygons, features that do not exist,
            weights that are none.
        MapError: a map file that cannot be used.
        ResourceError: a map file that cannot be found.
    """
    places = _built(config, base_dir)
    if config.weights == WeightsConfig():
        return places
    return places.weighted(weights_of(config.weights, places))


def _built(config: MapConfig, base_dir: Path | None) -> FreeTopology | GraphTopology:
    if config.kind == "line":
        return make_line(
            config.count,
            config.spacing,
            moves=config.moves,
            origin=config.origin,
            speed=config.speed,
            reach=config.reach,
            name=config.name or "line",
            frame=config.frame or "map",
        )
    if config.kind == "grid":
        return make_grid(
            config.columns,
            config.rows,
            config.spacing,
            neighbours=config.neighbours,
            outline=config.outline,
            obstacles=config.obstacles,
            moves=config.moves,
            origin=config.origin,
            speed=config.speed,
            reach=config.reach,
            name=config.name or "grid",
            frame=config.frame or "map",
        )
    if config.kind == "points":
        return make_points(
            config.count,
            config.low,
            config.high,
            design=config.design,
            seed=config.seed,
            speed=config.speed,
            name=config.name or "points",
            frame=config.frame or "map",
        )
    road_map = load_roads(_map_file(config.file, base_dir))
    if config.name:
        road_map = dataclasses.replace(road_map, name=config.name)
    if config.largest_component:
        road_map = keep_largest(road_map, config.u_turns)
    for note in road_map.notes:
        logger.info("map %r: %s", road_map.name, note)
    return Roads(
        road_map,
        features=config.features,
        relational=config.relational,
        share=config.relational_share,
        anchor=config.anchor,
        u_turns=config.u_turns,
        speed=config.speed,
        frame=config.frame,
        reach=config.reach,
    )


def _map_file(file: str, base_dir: Path | None) -> Path:
    if base_dir is not None and (base_dir / file).is_file():
        return base_dir / file
    return find_resource("maps", file)


Start: TypeAlias = str | int | tuple[float, float]
"""A place by its name, its index, or a position near it."""


def check_start(topology: Topology, start: Start | None) -> int | None:
    """Return the index of the place where a probe starts, by name, index or position.

    Raises:
        ConfigError: no such place; the message has the nearest match.
        MapError: no other place can be reached from it.
    """
    if start is None:
        return None
    if isinstance(start, tuple):
        index = place_near(topology, start, "start")
    else:
        index = place_index(topology, start, "start")
    if topology.free or topology.n == 1:
        return index
    everything = topology.reachable(index, np.zeros(topology.n, dtype=np.bool_), topology.n)
    count = int(everything.sum()) - int(everything[index])
    if count == 0:
        msg = (
            f"map {topology.name!r}: no place can be reached from the start "
            f"{topology.names[index]!r}; choose another start"
        )
        raise MapError(msg)
    if count < topology.n - 1:
        logger.warning(
            "map %r: only %d of %d other places can be reached from the start %r",
            topology.name,
            count,
            topology.n - 1,
            topology.names[index],
        )
    return index


def place_near(topology: Topology, position: tuple[float, float], key: str) -> int:
    """Return the index of the place nearest to a position.

    Args:
        topology: the map.
        position: x and y in metres of the map; longitude and latitude where the map knows where it
            lies on Earth and they lie on it.
        key: what it is for, begins the message.

    Raises:
        ConfigError: it is far off: farther from every place than these are from one another, and
            than a tenth of the map.
    """
    x, y = position
    datum = topology.road_map.datum if isinstance(topology, Roads) else None
    if datum is not None:
        x, y = metres_of(position, datum, float(np.ptp(topology.positions, axis=0).max()))
    low, high = topology.positions.min(axis=0), topology.positions.max(axis=0)
    nearest = topology.snap(x, y, math.inf)
    far = max(_FAR * math.dist(low, high), _spacing(topology.positions))
    if nearest is None or topology.snap(x, y, far) is None:
        msg = (
            f"{key}: ({position[0]:g}, {position[1]:g}) is far off map {topology.name!r}, which "
            f"lies at x {low[0]:g} … {high[0]:g}, y {low[1]:g} … {high[1]:g} m"
        )
        if datum is not None:
            msg += f", about longitude {datum[0]:g}, latitude {datum[1]:g}"
        raise ConfigError(msg)
    logger.info(
        "map %r: %s (%g, %g): the nearest place is %r",
        topology.name,
        key,
        *position,
        topology.names[nearest],
    )
    return nearest


def _spacing(positions: FloatArray) -> float:
    """Return how far a place is from its nearest neighbour, typically [m]."""
    from scipy.spatial import cKDTree

    if len(positions) < 2:
        return 0.0
    distances, _ = cKDTree(positions).query(positions, k=2)
    return float(np.median(np.asarray(distances)[:, 1]))


def place_index(topology: Topology, given: str | int, key: str) -> int:
    """Return the index of a place given by name or index.

    Args:
        topology: the map.
        given: the map's own name, or an index.
        key: what it is for, begins the message.

    Raises:
        ConfigError: no such place; the message has the nearest match.
    """
    if isinstance(given, str):
        if given in topology.names:
            return topology.names.index(given)
        hint = suggest(given, topology.names)
        if _CELL.fullmatch(topology.names[0]):
            hint = (
                f" Cells are called c<column>r<row>, such as {topology.names[0]} and "
                f"{topology.names[-1]}; those outside the outline or in an obstacle are no places"
            )
        msg = f"{key}: no place {given!r} on map {topology.name!r}.{hint}"
        raise ConfigError(msg)
    if not 0 <= given < topology.n:
        msg = (
            f"{key}: map {topology.name!r} has places 0 … {topology.n - 1}, got {given}; "
            "give a name in quotes, or an index"
        )
        raise ConfigError(msg)
    return int(given)
