"""Configuration of a map, with the weights of its places; build the map that it describes."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.topology.base import Places, Topology
from gp_active_sensing.topology.features import FEATURES, RELATIONAL, ROAD_DISTANCE, SHARE
from gp_active_sensing.topology.generated import (
    DESIGNS,
    FreeTopology,
    make_grid,
    make_line,
    make_points,
)
from gp_active_sensing.topology.geometry import inside_of, polygon
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.links import MIDDLE
from gp_active_sensing.topology.loaders import load_roads
from gp_active_sensing.topology.roads import U_TURNS, Roads
from gp_active_sensing.topology.segments import keep_largest
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.resources import find_resource

__all__ = ["AreaConfig", "MapConfig", "WeightsConfig", "build_topology", "weights_of"]

logger = logging.getLogger(__name__)

_MOST = 1e12
"""Largest weight: sums of squares of more would not be exact."""


@dataclass(frozen=True)
class AreaConfig:
    """A part of the map that counts more, or less, than the rest."""

    outline: tuple[tuple[float, float], ...] = param(
        help="two opposite corners of a rectangle, or the corners of a polygon", unit="m"
    )
    weight: float = param(1.0, help="of each place in it", low=0.0, high=_MOST)


@dataclass(frozen=True)
class WeightsConfig:
    """How much each place counts in the error of the map; without any of it all count the same.

    The weight of a place is what `column` says of it, times the weight of the area it lies in.
    """

    column: str = param(
        "",
        help="the map's own number of a place that its weight is proportional to, such as length; "
        '"" = none',
    )
    areas: tuple[AreaConfig, ...] = param(
        (),
        help="regions of interest: a list of {outline, weight}, outline being two opposite corners "
        "of a rectangle or the corners of a polygon [m]; where two overlap the later one counts",
    )
    elsewhere: float = param(1.0, help="weight outside of all areas", low=0.0, high=_MOST)

    def __post_init__(self) -> None:
        if self.elsewhere != 1.0 and not self.areas:
            msg = (
                "elsewhere: is the weight outside of the areas, of which none is given; got "
                f"{self.elsewhere:g}"
            )
            raise ConfigError(msg)


def weights_of(config: WeightsConfig, places: Places) -> FloatArray:
    """Return the (n,) weights of places, at least one of them above 0.

    Args:
        config: what they are made of.
        places: of the map; a place lies in an area when its position does, edges included.

    Raises:
        ConfigError: no such column, a weight below 0, areas that are no polygons or hold no place,
            or nothing that counts.
        MapError: a column that a place lacks.
    """
    weights = np.ones(places.n)
    if config.column:
        weights = _column(config.column, places)
    if config.areas:
        weights = weights * _areas(config, places)
    if not weights.any():
        msg = f"weights: no place of map {places.name!r} counts, all weights are 0"
        raise ConfigError(msg)
    return weights


def _column(name: str, places: Places) -> FloatArray:
    try:
        found, titles = places.columns([name])
    except ConfigError as error:
        problems = [problem.removeprefix("features: ") for problem in error.problems]
        raise ConfigError([f"weights.column: {problem}" for problem in problems]) from None
    if len(titles) != 1:
        msg = f"weights.column: {name!r} is no single number, but {', '.join(titles)}"
        raise ConfigError(msg)
    values: FloatArray = found[:, 0]
    wrong = ~((values >= 0.0) & (values <= _MOST))
    if wrong.any():
        first = int(np.argmax(wrong))
        msg = (
            f"weights.column: must be 0 … {_MOST:g}, but {name!r} of place "
            f"{places.names[first]!r} is {values[first]:g} ({int(wrong.sum())} of {places.n} "
            "places are so)"
        )
        raise ConfigError(msg)
    return values


def _areas(config: WeightsConfig, places: Places) -> FloatArray:
    problems: list[str] = []
    factors = np.full(places.n, config.elsewhere)
    for number, area in enumerate(config.areas):
        key = f"weights.areas[{number}].outline"
        shape = polygon(area.outline, key, problems)
        if shape is None:
            continue
        held = inside_of(shape, places.positions)
        if not held.any():
            problems.append(f"{key}: holds no place of map {places.name!r}{_extent(places)}")
        factors[held] = area.weight
    if problems:
        raise ConfigError(problems)
    return factors


def _extent(places: Places) -> str:
    (x0, y0), (x1, y1) = places.positions.min(axis=0), places.positions.max(axis=0)
    return f" (its places are at x {x0:g} … {x1:g}, y {y0:g} … {y1:g} m)"


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
    shared: dict[str, Any] = {
        "name": config.name or config.kind,
        "frame": config.frame or "map",
        "speed": config.speed,
    }
    if config.kind == "points":
        box = config.count, config.low, config.high
        return make_points(*box, design=config.design, seed=config.seed, **shared)
    shared |= {"moves": config.moves, "origin": config.origin, "reach": config.reach}
    if config.kind == "line":
        return make_line(config.count, config.spacing, **shared)
    if config.kind == "grid":
        return make_grid(
            config.columns,
            config.rows,
            config.spacing,
            neighbours=config.neighbours,
            outline=config.outline,
            obstacles=config.obstacles,
            **shared,
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
