"""Configuration of a map; build the map that it describes."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.features import FEATURES, RELATIONAL, ROAD_DISTANCE, SHARE
from gp_active_sensing.topology.generated import FreeTopology, make_line, make_points
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.grids import USUAL_PLACES, build_grid, file_kind, unused_keys
from gp_active_sensing.topology.legs import Speeds
from gp_active_sensing.topology.links import MIDDLE
from gp_active_sensing.topology.loaders import (
    OF_FILE,
    ends_of,
    find_map,
    kind_of_map,
    kinds_of_file,
    load_roads,
)
from gp_active_sensing.topology.loaders.areas import name_problems
from gp_active_sensing.topology.loaders.tables import HEIGHTS, ColumnsConfig
from gp_active_sensing.topology.occupancy import OCCUPIED, UNKNOWN
from gp_active_sensing.topology.roads import U_TURNS, Roads
from gp_active_sensing.topology.segments import keep_largest
from gp_active_sensing.topology.weights import WeightsConfig, weights_of

__all__ = ["MapConfig", "build_settled", "build_topology"]

logger = logging.getLogger(__name__)

_KEYS = {
    "line": ("count", "spacing", "moves", "origin"),
    "grid": (
        "file",
        "topic",
        "patience",
        "period",
        "columns",
        "rows",
        "spacing",
        "moves",
        "origin",
        "neighbours",
        "outline",
        "geofence",
        "obstacles",
        "datum",
        "largest_component",
        "inflation",
        "unknown",
        "occupied",
        "value",
        "heights",
        "climb_speed",
        "descent_speed",
    ),
    "points": ("count", "low", "high", "seed"),
    "points file": ("file", "columns_of", "distances", "features", "climb_speed", "descent_speed"),
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
_KINDS = tuple(kind for kind in _KEYS if " " not in kind)
_PLANE = ("x", "y")
_SHARED = ("kind", "name", "frame", "speed", "reach", "weights")


@dataclass(frozen=True)
class MapConfig:
    """Where a probe may go; `kind` says which of the other keys count."""

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"design": "was removed; points are drawn as a scrambled Sobol sequence"}
    )

    kind: str | None = param(
        None, help="kind of map; null = as the file says: roads, grid or points", choices=_KINDS
    )
    name: str = param("", help='name for messages; "" = the kind, or the name of the file')
    frame: str = param("", help='metric frame of the positions; "" = the file\'s own, or "map"')
    speed: float = param(
        1.0, help="speed of the probe where the map has no limit", unit="m/s", above=0.0
    )
    climb_speed: float | None = param(
        None,
        help="grid with heights, points of a file: most metres upwards in a second; null = as "
        "speed, which is along the way",
        unit="m/s",
        above=0.0,
    )
    descent_speed: float | None = param(
        None, help="the same downwards; null = as speed", unit="m/s", above=0.0
    )
    file: str = param(
        "",
        help="roads, grid: a map that ships with the package, or a path; of a grid an occupancy "
        "map (YAML file of map_server), a raster (.tif, .asc) or areas (.kml, .plan of "
        "QGroundControl, .geojson); points: a CSV table of places, instead of drawn ones",
    )
    columns_of: ColumnsConfig = dataclasses.field(default=ColumnsConfig())
    topic: str = param(
        "",
        help="grid: topic of a nav_msgs/msg/OccupancyGrid, such as map, in place of a file: the "
        'first message gives the places, later ones may add some and close others; "" = none',
    )
    patience: float = param(
        15.0,
        help="grid by topic: how long nothing may be left to choose before the mission ends; the "
        "map may grow",
        unit="s",
        low=0.0,
    )
    period: float = param(
        2.0,
        help="grid by topic: least time between two maps that are looked at; of those in between "
        "only the newest counts",
        unit="s",
        low=0.0,
    )
    distances: str = param(
        "",
        help="points of a file: CSV table of the ways from place to place, a matrix with the names "
        'of the places or a list with columns from, to, metres; "" = straight, to any place',
    )
    features: tuple[str, ...] | None = param(
        None,
        help="roads, points of a file: what the covariance is a function of: some of "
        f"{', '.join(FEATURES)} (points: x, y, z) and the map's own numbers; or [{RELATIONAL}], "
        "coordinates of an embedding of the road graph; null = x, y, and z where it has heights",
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
        False, help="roads, grid: keep only the largest part with a way from each place to each"
    )
    count: int = param(0, help="line, points: number of places", low=0)
    low: tuple[float, ...] = param(
        (), help="points: lower corner of the box they are drawn in, an entry for each dimension"
    )
    high: tuple[float, ...] = param((), help="points: upper corner of the box")
    seed: int = param(0, help="points: key of the draw", low=0)
    columns: int = param(
        0, help="grid: number of cells along x; 0 = as many as the outline takes", low=0
    )
    rows: int = param(
        0, help="grid: number of cells along y; 0 = as many as the outline takes", low=0
    )
    spacing: float | tuple[float, float] = param(
        0.0,
        help="line, grid: distance between neighbouring places; of a grid also [along x, along y]; "
        f"0 = about {USUAL_PLACES} places where an outline or a file says how large the map is, "
        "else 1 m",
        unit="m",
        low=0.0,
    )
    origin: tuple[float, float] | None = param(
        None,
        help="line, grid: position of the first place; with a file of map_server or a raster of "
        "any place: the others are multiples of the spacing away; null = [0, 0], or the lower left "
        "corner of an outline; with a file of areas such that as much is left over on either side, "
        "with a raster the centre of its south-west cell",
        unit="m",
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
    heights: tuple[float, ...] = param(
        (),
        help="grid: z of its layers, upwards (depths are negative), ascending or descending; a "
        "move up or down leads to the next layer; [] = one layer, in the plane",
        unit="m",
    )
    outline: str | tuple[tuple[float, float], ...] | None = param(
        None,
        help="grid: cells outside are no places; two opposite corners of a rectangle, the corners "
        "of a polygon, or a file of areas; null = all are",
        unit="m",
    )
    geofence: str | tuple[tuple[float, float], ...] | None = param(
        None,
        help="grid: no place and no way is outside of this, either; as outline",
        unit="m",
    )
    obstacles: str | tuple[str | tuple[tuple[float, float], ...], ...] = param(
        (),
        help="grid: two opposite corners of a rectangle, the corners of a polygon, or a file of "
        "areas, each",
        unit="m",
    )
    datum: tuple[float, float] | None = param(
        None,
        help="grid: latitude and longitude of the origin of its metres (x east, y north); null = "
        "the middle of the first file in degrees",
        unit="degree",
        low=-180.0,
        high=180.0,
    )
    inflation: float = param(
        0.0,
        help="grid from an occupancy map: nearer than this to an occupied cell is no place and no "
        "way; the radius of the probe",
        unit="m",
        low=0.0,
    )
    unknown: str = param(
        "blocked",
        help="grid from an occupancy map: what unknown cells count as; those beyond its edge are "
        "blocked",
        choices=UNKNOWN,
    )
    occupied: int = param(
        OCCUPIED,
        help="grid from an occupancy map: cells of this value and more are occupied",
        unit="%",
        low=1,
        high=100,
    )
    value: str = param(
        "",
        help="grid from a raster: what its values are: height (or z, altitude, elevation) or depth "
        "[m], which the places then have, or another name, under which they are a number of each "
        'place (map.weights.column, belief.attributes); "" = they only say where places are',
    )
    weights: WeightsConfig = dataclasses.field(default_factory=WeightsConfig)

    def __post_init__(self) -> None:
        problems: list[str] = []
        by_name = kinds_of_file(self.file) if self.file else ()
        if self.kind is None:
            of_table = "points" in by_name and self.columns_of != ColumnsConfig()
            only = "points" if of_table else by_name[0] if len(by_name) == 1 else None
            object.__setattr__(self, "kind", "grid" if self.topic else only)
        elif self.kind == "points" and self.file.lower().endswith(ends_of("points")):
            by_name = ("points",)  # those of the file, whatever else it holds
        elif by_name and self.kind in OF_FILE and self.kind not in by_name:
            problems.append(self._kind_problem(by_name))
        if self.kind is None and not self.file:
            problems.append(
                f"kind: is required where no file says it, and missing: one of {', '.join(_KINDS)}"
            )
        if self.neighbours not in (4, 8):
            problems.append(f"neighbours: expected 4 or 8, got {self.neighbours}")
        needed = {
            "line": ("count",),
            "grid": ()
            if self.outline or self.geofence or self.file or self.topic
            else ("columns", "rows"),
            "points": () if self.file else ("count", "low", "high"),
            "roads": ("file",),
        }
        for key in needed.get(self.kind or "", ()):
            if not getattr(self, key):
                problems.append(f"{key}: is required for kind {self.kind!r} and missing")
        kinds = (by_name or OF_FILE) if self.kind is None else (self.kind,)
        of_file = self.kind == "points" and bool(self.file)
        listed = ["points file" if kind == "points" and self.file else kind for kind in kinds]
        known = {*_SHARED, *(key for kind in listed for key in _KEYS.get(kind, ()))}
        for field in dataclasses.fields(self):
            if field.name not in known and getattr(self, field.name) != field.default:
                what = " or ".join(map(repr, kinds)) + (" with a file" if of_file else "")
                problems.append(f"{field.name}: has no meaning for kind {what}; remove it")
        if self.kind == "grid":
            of = "topic" if self.topic else file_kind(self.file)
            if of or not self.file or by_name:  # else the file has yet to be found
                problems += unused_keys(self, of)
        if self.topic:
            if self.file:
                problems.append("file: has no meaning with a topic; remove one of them")
            problems += [
                f"{key}: has no meaning with a topic, whose map is in metres; remove it, or give "
                "corners as outline"
                for key in ("geofence", "datum")
                if getattr(self, key) is not None
            ]
            given = [self.outline, *([self.obstacles] if self.obstacles else [])]
            if any(isinstance(area, str) for area in (*given, *self.obstacles)):
                problems.append("outline, obstacles: with a topic give corners, not a file")
        for key in ("outline", "geofence", "obstacles"):
            problems += name_problems(key, getattr(self, key))
        if not isinstance(self.obstacles, str):
            for number, obstacle in enumerate(self.obstacles):
                problems += name_problems(f"obstacles[{number}]", obstacle)
        if self.datum is not None and abs(self.datum[0]) > 90.0:
            problems.append(
                f"datum: expected [latitude, longitude] in degrees, got {list(self.datum)}"
            )
        if self.kind == "line" and isinstance(self.spacing, tuple):
            problems.append(f"spacing: a line has one, got {list(self.spacing)}")
        if isinstance(self.spacing, tuple) and not all(self.spacing):
            problems.append(f"spacing: expected two distances above 0, got {list(self.spacing)}")
        if self.kind == "points":
            problems += self._box_problems()
        problems += self._height_problems()
        if self.reach and self.moves == "free" and self.kind != "roads":
            problems.append("reach: has no meaning with moves: free, any place is next; remove it")
        if self.relational is not None and self.features != (RELATIONAL,):
            problems.append(f"relational: is for features: [{RELATIONAL}]; set that, or remove it")
        if self.reach and self.kind == "points" and not self.distances:
            problems.append("reach: has no meaning for kind 'points', any place is next; remove it")
        if self.kind is not None and self.kind not in _KINDS:
            hint = suggest(self.kind, _KINDS)
            problems = [f"kind: expected one of {', '.join(_KINDS)}, got {self.kind!r}.{hint}"]
        if problems:
            raise ConfigError(problems)

    def _kind_problem(self, kinds: tuple[str, ...]) -> str:
        return (
            f"kind: {self.file!r} is a map of kind {' or '.join(map(repr, kinds))}, not "
            f"{self.kind!r}; leave kind out, or name another file"
        )

    def _height_problems(self) -> list[str]:
        steps = [b - a for a, b in pairwise(self.heights)]
        found = []
        if self.heights and (self.file or self.topic):
            found.append("heights: a map of a file or topic lies in the plane; remove heights")
        if not (all(step > 0.0 for step in steps) or all(step < 0.0 for step in steps)):
            found.append(
                f"heights: expected heights that ascend or descend, got {list(self.heights)}"
            )
        if self.kind == "grid" and not self.heights and self.value.lower() not in HEIGHTS:
            found += [
                f"{key}: is for a grid with heights; give heights, or remove it"
                for key in ("climb_speed", "descent_speed")
                if getattr(self, key) is not None
            ]
        return found

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
    return build_settled(config, base_dir=base_dir)[0]


def build_settled(config: MapConfig, *, base_dir: Path | None = None) -> tuple[Topology, MapConfig]:
    """Build a map, and say what was worked out for it.

    Args:
        config: what to build.
        base_dir: as for `build_topology`.

    Returns:
        The map; and its configuration with the spacing and the origin that it has, where it is a
        line or a grid.

    Raises:
        ActiveSensingError: as `build_topology`.
    """
    places, settled = _built(config, base_dir)
    if config.weights == WeightsConfig():
        return places, settled
    return places.weighted(weights_of(config.weights, places, base_dir)), settled


def _built(
    config: MapConfig, base_dir: Path | None
) -> tuple[FreeTopology | GraphTopology, MapConfig]:
    if config.topic:
        return _of_topic(config, base_dir), config
    if config.kind is None or (config.file and config.kind in OF_FILE):
        path = find_map(config.file, base_dir)
        kind = config.kind or kind_of_map(str(path))
        # Also checks a name without an end against the file that was found.
        dataclasses.replace(config, kind=kind, file=path.name)
        of_kind = dataclasses.replace(config, kind=kind)
        if kind == "grid":
            return _grid(of_kind, path, base_dir, config)
        return {"roads": _roads, "points": _stations}[kind](of_kind, path, base_dir), config
    if config.kind == "grid":
        return _grid(config, None, base_dir, config)
    shared: dict[str, Any] = {
        "name": config.name or config.kind,
        "frame": config.frame or "map",
        "speed": config.speed,
    }
    if config.kind == "points":
        box = config.count, config.low, config.high
        return make_points(*box, seed=config.seed, **shared), config
    origin = config.origin or (0.0, 0.0)
    shared |= {"moves": config.moves, "origin": origin, "reach": config.reach}
    spacing = (config.spacing if isinstance(config.spacing, float) else 0.0) or 1.0
    settled = dataclasses.replace(config, spacing=spacing, origin=origin)
    return make_line(config.count, spacing, **shared), settled


def _of_topic(config: MapConfig, run_dir: Path | None) -> FreeTopology | GraphTopology:
    """Return the map that a mission has come to, by the maps in its run directory."""
    from gp_active_sensing.topology.kept_maps import kept_places

    if run_dir is None or not (run_dir / "map-1.yaml").is_file():
        msg = (
            f"topic: the map comes by topic {config.topic} of a running system, so there is none "
            "here; give file, the YAML file of a map that was saved"
        )
        raise ConfigError(msg)
    return kept_places(config, run_dir).topology


def _grid(
    config: MapConfig, path: Path | None, base_dir: Path | None, given: MapConfig
) -> tuple[FreeTopology | GraphTopology, MapConfig]:
    built = build_grid(config, path, base_dir)
    for note in built.notes:
        logger.info("map %r: %s", built.places.name, note)
    return built.places, dataclasses.replace(given, spacing=built.spacing, origin=built.origin)


def _stations(config: MapConfig, path: Path, base_dir: Path | None) -> FreeTopology | GraphTopology:
    from gp_active_sensing.topology.stations import load_stations  # seldom wanted

    return load_stations(
        path,
        columns_of=config.columns_of,
        distances=find_map(config.distances, base_dir) if config.distances else None,
        features=config.features,
        speed=Speeds(config.speed, config.climb_speed, config.descent_speed),
        reach=config.reach,
        name=config.name,
        frame=config.frame or "map",
    )


def _roads(config: MapConfig, path: Path, base_dir: Path | None) -> Roads:
    road_map = load_roads(path)
    if config.name:
        road_map = dataclasses.replace(road_map, name=config.name)
    if config.largest_component:
        road_map = keep_largest(road_map, config.u_turns)
    for note in road_map.notes:
        logger.info("map %r: %s", road_map.name, note)
    return Roads(
        road_map,
        features=config.features or _PLANE,
        relational=config.relational,
        share=config.relational_share,
        anchor=config.anchor,
        u_turns=config.u_turns,
        speed=config.speed,
        frame=config.frame,
        reach=config.reach,
    )
