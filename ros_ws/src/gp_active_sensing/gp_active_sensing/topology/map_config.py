"""Configurations of maps: one a kind, and the section ``map`` that may be any of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.topology.features import FEATURES, RELATIONAL, ROAD_DISTANCE, SHARE
from gp_active_sensing.topology.links import MIDDLE
from gp_active_sensing.topology.loaders import OF_FILE, ends_of, kinds_of_file
from gp_active_sensing.topology.loaders.areas import name_problems
from gp_active_sensing.topology.loaders.tables import HEIGHTS, ColumnsConfig
from gp_active_sensing.topology.occupancy import OCCUPIED, UNKNOWN
from gp_active_sensing.topology.segments import U_TURNS
from gp_active_sensing.topology.weights import WeightsConfig

__all__ = [
    "USUAL_PLACES",
    "GridConfig",
    "LineConfig",
    "MapConfig",
    "PointsConfig",
    "RoadsConfig",
    "SharedConfig",
    "StationsConfig",
    "file_kind",
    "unused_keys",
]

KINDS = ("line", "grid", "points", "roads")
USUAL_PLACES = 400
"""Places of a grid whose spacing is not given, about."""


@dataclass(frozen=True)
class SharedConfig:
    """Keys of several kinds of maps; those of every kind are in `EVERY`."""

    EVERY: ClassVar = ("kind", "name", "frame", "speed", "reach", "weights")
    ALSO: ClassVar[tuple[str, ...]] = ()
    """Of the keys below those that a kind has besides."""

    kind: str | None = param(
        None, help="kind of map; null = as the file says: roads, grid or points", choices=KINDS
    )
    name: str = param("", help='name for messages; "" = the kind, or the name of the file')
    frame: str = param("", help='metric frame of the positions; "" = the file\'s own, or "map"')
    speed: float = param(
        1.0, help="speed of the probe where the map has no limit", unit="m/s", above=0.0
    )
    reach: float = param(
        0.0,
        help="places within so many metres of driving may be next, whatever is crossed on the way; "
        "0 = adjacent ones only, and on through observed ones",
        unit="m",
        low=0.0,
    )
    file: str = param(
        "",
        help="roads, grid: a map that ships with the package, or a path; of a grid an occupancy "
        "map (YAML file of map_server), a raster (.tif, .asc) or areas (.kml, .plan of "
        "QGroundControl, .geojson); points: a CSV table of places, instead of drawn ones",
    )
    crs: str = param(
        "",
        help="file: coordinate system of its coordinates, whatever it says itself: local (metres), "
        'EPSG:4326 (longitude, latitude), EPSG:32632, …; "" = what it says',
    )
    count: int = param(0, help="line, points: number of places", low=0)
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
    features: tuple[str, ...] | None = param(
        None,
        help="roads, points of a file: what the covariance is a function of: some of "
        f"{', '.join(FEATURES)} (points: x, y, z) and the map's own numbers; or [{RELATIONAL}], "
        "coordinates of an embedding of the road graph; null = x, y, and z where it has heights",
        min_items=1,
    )
    largest_component: bool = param(
        False, help="roads, grid: keep only the largest part with a way from each place to each"
    )
    weights: WeightsConfig = dataclasses.field(default_factory=WeightsConfig)

    @classmethod
    def keys(cls) -> frozenset[str]:
        """Return the keys that count for this kind."""
        own = {field.name for field in dataclasses.fields(cls)} & cls.__annotations__.keys()
        return frozenset({*cls.EVERY, *cls.ALSO, *own})

    def _problems(self) -> list[str]:
        """Return what is wrong with the keys of this kind."""
        return []


@dataclass(frozen=True)
class LineConfig(SharedConfig):
    """Places along x."""

    ALSO: ClassVar[tuple[str, ...]] = ("count", "spacing", "moves", "origin")

    def _problems(self) -> list[str]:
        found = [] if self.count else ["count: is required for kind 'line' and missing"]
        if isinstance(self.spacing, tuple):
            found.append(f"spacing: a line has one, got {list(self.spacing)}")
        return found


@dataclass(frozen=True)
class PointsConfig(SharedConfig):
    """Drawn points, any of which may be next."""

    ALSO: ClassVar[tuple[str, ...]] = ("count",)

    low: tuple[float, ...] = param(
        (), help="points: lower corner of the box they are drawn in, an entry for each dimension"
    )
    high: tuple[float, ...] = param((), help="points: upper corner of the box")
    seed: int = param(0, help="points: key of the draw", low=0)

    def _problems(self) -> list[str]:
        found = [
            f"{key}: is required for kind 'points' and missing"
            for key, given in (("count", self.count), ("low", self.low), ("high", self.high))
            if not given
        ]
        if len(self.low) != len(self.high):
            return [
                *found,
                f"high: expected {len(self.low)} entries as in low, got {len(self.high)}",
            ]
        return found + [
            f"high[{i}]: must be more than low[{i}], {a:g}, got {b:g}"
            for i, (a, b) in enumerate(zip(self.low, self.high, strict=True))
            if not b > a
        ]


@dataclass(frozen=True)
class StationsConfig(SharedConfig):
    """Places of a table."""

    ALSO: ClassVar[tuple[str, ...]] = ("file", "crs", "features", "climb_speed", "descent_speed")

    columns_of: ColumnsConfig = dataclasses.field(default=ColumnsConfig())
    distances: str = param(
        "",
        help="points of a file: CSV table of the ways from place to place, a matrix with the names "
        'of the places or a list with columns from, to, metres; "" = straight, to any place',
    )


@dataclass(frozen=True)
class RoadsConfig(SharedConfig):
    """Segments of roads."""

    ALSO: ClassVar[tuple[str, ...]] = ("file", "crs", "features", "largest_component")

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

    def _problems(self) -> list[str]:
        return [] if self.file else ["file: is required for kind 'roads' and missing"]


@dataclass(frozen=True)
class GridConfig(SharedConfig):
    """Cells of a rectangle, of areas, of an occupancy map or of a raster."""

    ALSO: ClassVar[tuple[str, ...]] = (
        *("file", "crs", "spacing", "moves", "origin", "largest_component"),
        *("climb_speed", "descent_speed"),
    )

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
    columns: int = param(
        0, help="grid: number of cells along x; 0 = as many as the outline takes", low=0
    )
    rows: int = param(
        0, help="grid: number of cells along y; 0 = as many as the outline takes", low=0
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

    @property
    def counting(self) -> dict[str, Any]:
        """What counts as free ground: the arguments of `OccupancyGrid.blocked`."""
        return {key: getattr(self, key) for key in ("inflation", "unknown", "occupied")}

    def _problems(self) -> list[str]:
        found: list[str] = []
        if not (self.outline or self.geofence or self.file or self.topic):
            found += [
                f"{key}: is required for kind 'grid' and missing"
                for key, given in (("columns", self.columns), ("rows", self.rows))
                if not given
            ]
        of = "topic" if self.topic else file_kind(self.file)
        if of or not self.file or kinds_of_file(self.file):  # else the file has yet to be found
            found += unused_keys(self, of)
        if self.topic:
            found += self._topic_problems()
        if not self.heights and self.value.lower() not in HEIGHTS:
            found += [
                f"{key}: is for a grid with heights; give heights, or remove it"
                for key in ("climb_speed", "descent_speed")
                if getattr(self, key) is not None
            ]
        return found

    def _topic_problems(self) -> list[str]:
        found = ["file: has no meaning with a topic; remove one of them"] if self.file else []
        found += [
            f"{key}: has no meaning with a topic, whose map is in metres; remove it, or give "
            "corners as outline"
            for key in ("geofence", "datum")
            if getattr(self, key) is not None
        ]
        given = [self.outline, *([self.obstacles] if self.obstacles else [])]
        if any(isinstance(area, str) for area in (*given, *self.obstacles)):
            found.append("outline, obstacles: with a topic give corners, not a file")
        return found


_NOT_FOR: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "map_server": (
        "a map of map_server, whose cells say where places are",
        ("columns", "rows", "value", "crs"),
    ),
    "raster": (
        "a raster, whose data say where places are",
        ("columns", "rows", "inflation", "unknown", "occupied"),
    ),
    "topic": (
        "a topic, whose map says where places are",
        ("columns", "rows", "value", "crs"),
    ),
    "": (
        "a grid that is not made of an occupancy map or a raster",
        ("inflation", "unknown", "occupied", "value"),
    ),
}
"""What a grid is made of -> how that is said, and the keys that have no effect then."""


def file_kind(name: str) -> str:
    """Return what a file of a grid is by the end of its name: map_server, raster, "" = areas."""
    if name.lower().endswith(ends_of("cells")):
        return "map_server"
    return "raster" if name.lower().endswith(ends_of("raster")) else ""


def unused_keys(config: GridConfig, kind: str) -> list[str]:
    """Return a problem for each key that is given and has no effect on a grid made of this kind.

    The kind is map_server, raster, topic, or "" = areas or nothing.
    """
    made_of, keys = _NOT_FOR[kind]
    usual = {field.name: field.default for field in dataclasses.fields(config)}
    found = [
        f"{key}: has no effect with {made_of}; remove it"
        for key in keys
        if getattr(config, key) != usual[key]
    ]
    if kind == "raster" and (config.value in ("x", "y") or config.value != config.value.strip()):
        what = "the name of a height or of a number of its own"
        found.append(f"value: expected {what}, got {config.value!r}")
    return found


_KINDS: Mapping[str, type[SharedConfig]] = {
    "line": LineConfig,
    "grid": GridConfig,
    "points": PointsConfig,
    "roads": RoadsConfig,
}


@dataclass(frozen=True)
class MapConfig(RoadsConfig, StationsConfig, GridConfig, PointsConfig, LineConfig):
    """Where a probe may go; `kind` says which of the other keys count."""

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"design": "was removed; points are drawn as a scrambled Sobol sequence"}
    )

    def __post_init__(self) -> None:
        problems: list[str] = []
        by_name = kinds_of_file(self.file) if self.file else ()
        if self.kind is None:
            of_table = "points" in by_name and self.columns_of != ColumnsConfig()
            only = "points" if of_table else by_name[0] if len(by_name) == 1 else None
            object.__setattr__(self, "kind", "grid" if self.topic else only)
        elif self.kind not in _KINDS:
            hint = suggest(self.kind, _KINDS)
            msg = f"kind: expected one of {', '.join(_KINDS)}, got {self.kind!r}.{hint}"
            raise ConfigError([msg])
        elif self.kind == "points" and self.file.lower().endswith(ends_of("points")):
            by_name = ("points",)  # those of the file, whatever else it holds
        elif by_name and self.kind in OF_FILE and self.kind not in by_name:
            problems.append(
                f"kind: {self.file!r} is a map of kind {' or '.join(map(repr, by_name))}, not "
                f"{self.kind!r}; leave kind out, or name another file"
            )
        if self.kind is None and not self.file:
            problems.append(
                f"kind: is required where no file says it, and missing: one of {', '.join(_KINDS)}"
            )
        problems += self._of_its_kind(by_name)
        problems += self._of_every_kind()
        if problems:
            raise ConfigError(problems)

    def _of_its_kind(self, by_name: tuple[str, ...]) -> list[str]:
        kinds = (by_name or OF_FILE) if self.kind is None else (self.kind,)
        of_file = self.kind == "points" and bool(self.file)
        each = [
            StationsConfig if kind == "points" and self.file else _KINDS[kind] for kind in kinds
        ]
        known = {key for kind in each for key in kind.keys()}
        what = " or ".join(map(repr, kinds)) + (" with a file" if of_file else "")
        found = [
            f"{field.name}: has no meaning for kind {what}; remove it"
            for field in dataclasses.fields(self)
            if field.name not in known and getattr(self, field.name) != field.default
        ]
        return found if self.kind is None else found + each[0]._problems(self)

    def _of_every_kind(self) -> list[str]:
        found: list[str] = []
        if self.neighbours not in (4, 8):
            found.append(f"neighbours: expected 4 or 8, got {self.neighbours}")
        for key in ("outline", "geofence", "obstacles"):
            found += name_problems(key, getattr(self, key))
        if not isinstance(self.obstacles, str):
            for number, obstacle in enumerate(self.obstacles):
                found += name_problems(f"obstacles[{number}]", obstacle)
        if self.datum is not None and abs(self.datum[0]) > 90.0:
            found.append(
                f"datum: expected [latitude, longitude] in degrees, got {list(self.datum)}"
            )
        if isinstance(self.spacing, tuple) and not all(self.spacing):
            found.append(f"spacing: expected two distances above 0, got {list(self.spacing)}")
        steps = [b - a for a, b in pairwise(self.heights)]
        if self.heights and (self.file or self.topic):
            found.append("heights: a map of a file or topic lies in the plane; remove heights")
        if not (all(step > 0.0 for step in steps) or all(step < 0.0 for step in steps)):
            found.append(
                f"heights: expected heights that ascend or descend, got {list(self.heights)}"
            )
        any_next = self.moves == "free" and self.kind != "roads"
        if self.reach and (any_next or (self.kind == "points" and not self.distances)):
            found.append("reach: has no meaning where any place is next; remove it")
        if self.relational is not None and self.features != (RELATIONAL,):
            found.append(f"relational: is for features: [{RELATIONAL}]; set that, or remove it")
        return found
