"""Configuration classes of maps: each kind of map has a class of its own.

The keys of section ``map`` determine the class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from gp_active_sensing.config import declared, default_of, param, plain
from gp_active_sensing.errors import ConfigError, ResourceError, suggest
from gp_active_sensing.topology.geometry import HEIGHTS, OCCUPIED, UNKNOWN, Speeds
from gp_active_sensing.topology.loaders import (
    OF_FILE,
    ends_of,
    find_map,
    kind_of_map,
    kinds_of_file,
    name_problems,
)
from gp_active_sensing.topology.loaders.tables import named_columns
from gp_active_sensing.topology.segments import FEATURES, MIDDLE, RELATIONAL, U_TURNS

USUAL_PLACES = 400
"""Approximate number of places of a grid whose spacing is not configured."""
MOST_WEIGHT = 1e12
"""Largest allowed weight of a place."""
KINDS = ("line", "grid", "points", "roads")


@dataclass(frozen=True)
class AreaConfig:
    """Configuration of an area and of the weight of its places."""

    outline: str | tuple[tuple[float, float], ...] = param(
        help="two opposite corners of a rectangle, the corners of a polygon, or a file of areas",
        unit="m",
    )
    weight: float = param(1.0, help="weight of each place in the area", low=0.0, high=MOST_WEIGHT)

    def __post_init__(self) -> None:
        if problems := name_problems("outline", self.outline):
            raise ConfigError(problems)


@dataclass(frozen=True)
class WeightsConfig:
    """Configuration of the weights of places in the error of the map; by default all weights are 1.

    The weight of a place is its value in `column` times the weight of the area that contains it.
    """

    column: str = param(
        "",
        help="column of the map to which the weights of the places are proportional, such as "
        'length. "" = none',
    )
    areas: tuple[AreaConfig, ...] = param(
        (),
        help="regions of interest: a list of {outline, weight}, or a file of areas. outline has "
        "two opposite corners of a rectangle or the corners of a polygon [m]. Where areas overlap, "
        "the last area counts",
    )
    elsewhere: float = param(1.0, help="weight outside of all areas", low=0.0, high=MOST_WEIGHT)

    def __post_init__(self) -> None:
        if self.elsewhere != 1.0 and not self.areas:
            msg = (
                "elsewhere: is the weight outside of the areas, of which none is given; got "
                f"{self.elsewhere:g}"
            )
            raise ConfigError(msg)


@dataclass(frozen=True, init=False)
class MapConfig:
    """Configuration of a map; the given keys determine the subclass of the instance."""

    VARIANTS: ClassVar[tuple[type[MapConfig], ...]] = ()
    REMOVED: ClassVar[Mapping[str, str]] = {
        "descent_speed": "was removed; climb_speed is for both directions",
        "geofence": "was removed; outline cuts the map of a file as well",
        "occupied": f"was removed; cells of {OCCUPIED} and more are occupied",
        "period": "was removed; a map is looked at every 2 s",
        "relational": "was removed; links weigh by length, lanes, speed_limit and direction, and "
        "a kernel graph_matern32 takes metres by road",
        "relational_share": "was removed; an embedding explains 95 % of the squared distances",
    }
    WERE: ClassVar[Mapping[str, Any]] = {
        "descent_speed": None,
        "geofence": None,
        "occupied": OCCUPIED,
        "period": 2.0,
        "relational": None,
    }
    KIND: ClassVar[str | None] = None
    WHAT: ClassVar[str] = ""
    """Text that follows the kind of map in error messages."""
    file = ""
    """File of the map; "" = no file."""
    topic = ""
    """Topic of the map; "" = no topic."""

    kind: str | None = param(None, help="kind of map. null = the kind of the file", choices=KINDS)
    name: str = param("", help='name for messages. "" = the kind, or the name of the file')
    frame: str = param(
        "", help='metric frame of the positions. "" = the frame in the file, or "map"'
    )
    speed: float = param(
        1.0, help="speed of the probe where the map has no limit", unit="m/s", above=0.0
    )
    reach: float = param(
        0.0,
        help="largest driving distance to the next place; the probe may pass other places. 0 = "
        "the next place is a neighbour, or a place that can be reached through observed places "
        "only",
        unit="m",
        low=0.0,
    )
    weights: WeightsConfig = dataclasses.field(default_factory=WeightsConfig)

    def __new__(cls, kind: str | None = None, **keys: Any) -> MapConfig:
        """Create an instance of the subclass that fits the keys."""
        return object.__new__(cls.variant({"kind": kind, **keys})[0])

    def __init__(self, kind: str | None = None, **keys: Any) -> None:
        """Accept the keys of any kind of map."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.KIND)
        if problems := list(self._problems()):
            raise ConfigError(problems)

    @classmethod
    def variant(cls, given: Mapping[str, Any]) -> tuple[type[MapConfig], dict[str, Any]]:
        """Return the subclass that fits the given keys, and its arguments.

        Keys of other subclasses are dropped if they have their default values.

        Raises:
            ConfigError: the kind is missing or does not fit the file, or a key has no meaning for
                the kind.
        """
        if cls is not MapConfig:
            return cls, dict(given)
        columns = given.get("columns_of")
        if isinstance(columns, Mapping):  # as in records of earlier versions
            given = {**given, "columns_of": [f"{k}={v}" for k, v in columns.items() if v]}
        if given.get("descent_speed") == given.get("climb_speed"):
            given = {key: value for key, value in given.items() if key != "descent_speed"}
        usual = {field.name: plain(default_of(field)) for field, _ in declared(MapConfig)}
        stated = {key for key in given if key in usual and plain(given[key]) != usual[key]}
        kinds = _kinds_of({key: given[key] for key in stated})
        known = {kind: {field.name for field in dataclasses.fields(kind)} for kind in kinds}
        fitting = [kind for kind in kinds if stated <= known[kind]]
        if not fitting:
            what = " or ".join(dict.fromkeys(repr(kind.KIND) for kind in kinds))
            strange = stated - set().union(*known.values()) or stated - known[kinds[0]]
            raise ConfigError(
                [
                    f"{key}: has no meaning for kind {what}{kinds[0].WHAT}; remove it"
                    for key in given
                    if key in strange
                ]
            )
        chosen = fitting[0] if len(fitting) == 1 else FileConfig
        own = {field.name for field in dataclasses.fields(chosen)}
        return chosen, {k: v for k, v in given.items() if k in own or k not in usual}

    @property
    def speeds(self) -> Speeds:
        """Speeds of the probe."""
        return Speeds(self.speed)

    @property
    def features(self) -> tuple[str, ...] | None:
        """Features of the covariance; None = the positions."""
        return None

    def _problems(self) -> Iterator[str]:
        yield from ()


@dataclass(frozen=True)
class _FileMapConfig(MapConfig):
    file: str = param(
        "",
        help="name of a shipped map, or a path. Files of grids: occupancy map (YAML file of "
        "map_server), raster (.tif, .asc) or areas (.kml, .plan of QGroundControl, .geojson). File "
        "of points: CSV table of places",
    )
    crs: str = param(
        "",
        help="coordinate system of the file: local (metres), EPSG:4326 (longitude, latitude), "
        'EPSG:32632, … "" = the system that the file declares',
    )


@dataclass(frozen=True)
class _WithFeatures(MapConfig):
    features: tuple[str, ...] | None = param(
        None,
        help="roads, points of a file: inputs of the covariance function. Possible are "
        f"{', '.join(FEATURES)} (points: x, y, z) and numeric columns of the map. [{RELATIONAL}] = "
        "coordinates of an embedding of the road graph. null = x and y, and z if heights are known",
        min_items=1,
    )


@dataclass(frozen=True)
class _WithLargest(MapConfig):
    largest_component: bool = param(
        False,
        help="roads, grid: keep only the largest set of places that can all be reached from each "
        "other",
    )


@dataclass(frozen=True)
class _WithClimb(MapConfig):
    climb_speed: float | None = param(
        None,
        help="grid with heights, points of a file: largest vertical speed, up or down. null = no "
        "separate limit; `speed` counts along the sloping path",
        unit="m/s",
        above=0.0,
    )

    @property
    def speeds(self) -> Speeds:
        """Speeds of the probe."""
        return Speeds(self.speed, self.climb_speed)


@dataclass(frozen=True)
class _WithCount(MapConfig):
    count: int = param(0, help="line, points: number of places", low=0)

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if not self.count:
            yield f"count: is required for kind {self.KIND!r} and missing"


@dataclass(frozen=True)
class _Regular(MapConfig):
    spacing: float | tuple[float, float] = param(
        0.0,
        help="line, grid: distance between neighbouring places. A grid may have [along x, along "
        f"y]. 0 = about {USUAL_PLACES} places if an outline or a file gives the size of the map, "
        "otherwise 1 m",
        unit="m",
        low=0.0,
    )
    origin: tuple[float, float] | None = param(
        None,
        help="line, grid: position of one place. The other places are multiples of the spacing "
        "away. null = [0, 0], the lower left corner of an outline, the south-west cell of a "
        "raster, or the middle of the areas of a file",
        unit="m",
    )
    moves: str = param(
        "adjacent",
        help="line, grid: places that may be next: free = any, adjacent = the neighbours",
        choices=("adjacent", "free"),
    )

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if isinstance(self.spacing, tuple) and not all(self.spacing):
            yield f"spacing: expected two distances above 0, got {list(self.spacing)}"
        if self.moves == "free":
            yield from _no_reach(self)


def _no_reach(config: MapConfig) -> Iterator[str]:
    if config.reach:
        yield "reach: has no meaning where any place is next; remove it"


@dataclass(frozen=True)
class FileConfig(_WithFeatures, _WithLargest, _FileMapConfig):
    """Configuration of a map in a file whose name does not reveal the kind of map."""

    def of_content(self, path: Path) -> MapConfig:
        """Return the configuration for the kind of map that the file at `path` contains.

        Raises:
            ConfigError: a key has no meaning for this kind of map.
        """
        kind, keys = MapConfig.variant({**vars(self), "kind": kind_of_map(str(path))})
        return kind(**keys)


@dataclass(frozen=True)
class LineConfig(_Regular, _WithCount):
    """Configuration of a line of places along x."""

    KIND: ClassVar = "line"

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if isinstance(self.spacing, tuple):
            yield f"spacing: a line has one, got {list(self.spacing)}"


@dataclass(frozen=True)
class PointsConfig(_WithCount):
    """Configuration of randomly drawn places; a probe may drive from any place to any other."""

    KIND: ClassVar = "points"

    low: tuple[float, ...] = param(
        (),
        help="points: lower corner of the box in which random places are drawn, one entry per "
        "dimension",
    )
    high: tuple[float, ...] = param((), help="points: upper corner of the box")
    seed: int = param(0, help="points: seed of the draw", low=0)

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        yield from _no_reach(self)
        for key, given in (("low", self.low), ("high", self.high)):
            if not given:
                yield f"{key}: is required for kind 'points' and missing"
        if len(self.low) != len(self.high):
            yield f"high: expected {len(self.low)} entries as in low, got {len(self.high)}"
        for i, (a, b) in enumerate(zip(self.low, self.high, strict=False)):
            if not b > a:
                yield f"high[{i}]: must be more than low[{i}], {a:g}, got {b:g}"


@dataclass(frozen=True)
class StationsConfig(_WithFeatures, _WithClimb, _FileMapConfig):
    """Configuration of places from a table or from the points of a GIS file."""

    KIND: ClassVar = "points"
    WHAT: ClassVar = " with a file"

    columns_of: tuple[str, ...] = param(
        (),
        help="points of a file: names of its columns, such as [name=ID, x=E, y=N]. Known are name, "
        "x, y, longitude, latitude, height, depth",
    )
    distances: str = param(
        "",
        help="points of a file: CSV table of the ways between places, with columns from, to, "
        'metres. "" = straight lines between all places',
    )

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if not self.distances:
            yield from _no_reach(self)
        try:
            named_columns(self.columns_of)
        except ConfigError as error:
            yield from error.problems


@dataclass(frozen=True)
class RoadsConfig(_WithFeatures, _WithLargest, _FileMapConfig):
    """Configuration of a road map, whose places are road segments."""

    KIND: ClassVar = "roads"

    anchor: float = param(
        MIDDLE,
        help="roads: point of a segment that stands for the whole segment in features and "
        "kernels. 0 = start, 0.5 = middle, 1 = end (for a field of speeds, since queues form at "
        "the ends of segments, before junctions)",
        low=0.0,
        high=1.0,
    )
    u_turns: str = param("dead_ends", help="roads: where U-turns are allowed", choices=U_TURNS)

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if not self.file:
            yield "file: is required for kind 'roads' and missing"


@dataclass(frozen=True)
class GridConfig(_Regular, _WithLargest, _FileMapConfig):
    """Configuration of a grid; base of `AreasConfig`, `OccupancyConfig` and `RasterConfig`."""

    KIND: ClassVar = "grid"

    neighbours: int = param(
        4, help="grid: number of neighbours of a place, 4 or 8 (with diagonals)", low=4, high=8
    )
    outline: str | tuple[tuple[float, float], ...] | None = param(
        None,
        help="grid: area of the places: two opposite corners of a rectangle, the corners of a "
        "polygon, or a file of areas. Cells outside are no places, even if the map's file has "
        "them. null = no outline",
        unit="m",
    )
    obstacles: str | tuple[str | tuple[tuple[float, float], ...], ...] = param(
        (),
        help="grid: list of obstacles. An obstacle is given by two opposite corners of a "
        "rectangle, the corners of a polygon, or a file of areas",
        unit="m",
    )
    datum: tuple[float, float] | None = param(
        None,
        help="grid: latitude and longitude of the point x = 0, y = 0 (x east, y north). null = "
        "the middle of the first file whose coordinates are in degrees",
        unit="degree",
        low=-180.0,
        high=180.0,
    )
    inflation: float = param(
        0.0,
        help="grid: distance, such as the radius of the probe, that places and ways keep from "
        "shores, fences, obstacles, occupied cells and cells without data",
        unit="m",
        low=0.0,
    )

    @property
    def lonlat(self) -> tuple[float, float] | None:
        """Longitude and latitude of the origin [degree], None if not configured."""
        return None if self.datum is None else (self.datum[1], self.datum[0])

    @property
    def making(self) -> dict[str, Any]:
        """Keyword arguments that all functions for making grids accept."""
        keys = ("moves", "reach", "neighbours", "inflation")
        return {"speed": self.speeds, **{key: getattr(self, key) for key in keys}}

    @property
    def shut(self) -> tuple[str | tuple[tuple[float, float], ...], ...]:
        """Obstacles; each is the name of a file or a tuple of corners."""
        return (self.obstacles,) if isinstance(self.obstacles, str) else self.obstacles

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if self.neighbours not in (4, 8):
            yield f"neighbours: expected 4 or 8, got {self.neighbours}"
        for key in ("outline", "obstacles"):
            yield from name_problems(key, getattr(self, key))
        for number, obstacle in enumerate(self.shut if self.shut != (self.obstacles,) else ()):
            yield from name_problems(f"obstacles[{number}]", obstacle)
        if self.datum is not None and abs(self.datum[0]) > 90.0:
            yield f"datum: expected [latitude, longitude] in degrees, got {list(self.datum)}"


@dataclass(frozen=True)
class AreasConfig(GridConfig, _WithClimb):
    """Configuration of a grid in a rectangle or in areas."""

    WHAT: ClassVar = " that is not made of an occupancy map or a raster"

    columns: int = param(
        0, help="grid: number of cells along x. 0 = as many as fit the outline", low=0
    )
    rows: int = param(
        0, help="grid: number of cells along y. 0 = as many as fit the outline", low=0
    )
    heights: tuple[float, ...] = param(
        (),
        help="grid: z of its layers, in ascending or descending order. z is positive upwards, so "
        "depths are negative. Moves up and down lead to the next layer. [] = one flat layer",
        unit="m",
    )

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if not (self.outline or self.file):
            for key, given in (("columns", self.columns), ("rows", self.rows)):
                if not given:
                    yield f"{key}: is required for kind 'grid' and missing"
        steps = [b - a for a, b in pairwise(self.heights)]
        if self.heights and self.file:
            yield "heights: a map of a file lies in the plane; remove heights"
        if not (all(step > 0.0 for step in steps) or all(step < 0.0 for step in steps)):
            yield f"heights: expected heights that ascend or descend, got {list(self.heights)}"
        if not self.heights:
            yield from _no_climb(self)


def _no_climb(config: _WithClimb) -> Iterator[str]:
    if config.climb_speed is not None:
        yield "climb_speed: is for a grid with heights; give heights, or remove it"


@dataclass(frozen=True)
class OccupancyConfig(GridConfig):
    """Configuration of a grid of places on the free cells of an occupancy grid (file or topic)."""

    WHAT: ClassVar = " from an occupancy map"

    topic: str = param(
        "",
        help="grid: topic of a nav_msgs/msg/OccupancyGrid, such as map, in place of a file. The "
        'first message gives the places. Later messages may add places and close others. "" = no '
        "topic",
    )
    patience: float = param(
        15.0,
        help="grid by topic: the mission ends after this time in which no place could be chosen. "
        "Meanwhile the map may grow",
        unit="s",
        low=0.0,
    )
    unknown: str = param(
        "blocked",
        help="grid from an occupancy map: treatment of unknown cells. Cells beyond the edge of "
        "that map are blocked",
        choices=UNKNOWN,
    )

    @property
    def counting(self) -> dict[str, Any]:
        """Arguments of `OccupancyGrid.blocked`."""
        return {"inflation": self.inflation, "unknown": self.unknown}

    @property
    def making(self) -> dict[str, Any]:
        """Keyword arguments that all functions for making grids accept."""
        return super().making | {"unknown": self.unknown}

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if self.crs:
            yield "crs: an occupancy map is in metres of its frame; remove it"
        if not self.topic:
            return
        if self.file:
            yield "file: has no meaning with a topic; remove one of them"
        if self.datum is not None:
            yield "datum: has no meaning with a topic, whose map is in metres; remove it"
        if any(isinstance(area, str) for area in (self.outline, *self.shut)):
            yield "outline, obstacles: with a topic give corners, not a file"


@dataclass(frozen=True)
class RasterConfig(GridConfig, _WithClimb):
    """Configuration of a grid of places on those cells of a raster that have data."""

    WHAT: ClassVar = " from a raster"

    value: str = param(
        "",
        help="grid from a raster: meaning of the pixel values. height (z, altitude, elevation) or "
        "depth [m] = heights of the places. Any other name = a column of the places with this name "
        '(map.weights.column, belief.attributes). "" = the values only mark places',
    )

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if self.value in ("x", "y") or self.value != self.value.strip():
            what = "the name of a height or of a number of its own"
            yield f"value: expected {what}, got {self.value!r}"
        if self.value.lower() not in HEIGHTS:
            yield from _no_climb(self)


MapConfig.VARIANTS = (
    *(LineConfig, PointsConfig, StationsConfig, RoadsConfig),
    *(AreasConfig, OccupancyConfig, RasterConfig, FileConfig),
)


def _kinds_of(stated: Mapping[str, Any]) -> tuple[type[MapConfig], ...]:
    """Return the configuration classes that the keys `kind`, `topic` and `file` allow.

    Raises:
        ConfigError: the kind is missing or unknown, or does not fit the file.
    """
    kind, file, topic = (
        given if isinstance(given := stated.get(key), str) else ""
        for key in ("kind", "file", "topic")
    )
    if kind and kind not in KINDS:
        msg = f"kind: expected one of {', '.join(KINDS)}, got {kind!r}.{suggest(kind, KINDS)}"
        raise ConfigError(msg)
    if topic and kind in ("", "grid"):
        return (OccupancyConfig,)
    if not (kind or file):
        msg = f"kind: is required where no file says it, and missing: one of {', '.join(KINDS)}"
        raise ConfigError(msg)
    by_name: tuple[str, ...] = ()
    if file and not (by_name := kinds_of_file(file)):
        try:
            file = find_map(file).name  # a shipped map may be named without an ending
            by_name = kinds_of_file(file)
        except ResourceError:
            pass  # reported when the file is read
    if kind in OF_FILE and by_name and kind not in by_name:
        msg = (
            f"kind: {stated['file']!r} is a map of kind {' or '.join(map(repr, by_name))}, not "
            f"{kind!r}; leave kind out, or name another file"
        )
        raise ConfigError(msg)
    kinds = (kind,) if kind else by_name or OF_FILE
    if not kind and "columns_of" in stated and "points" in kinds:
        kinds = ("points",)
    of_grid: type[GridConfig] = AreasConfig
    if file.lower().endswith(ends_of("cells")):
        of_grid = OccupancyConfig
    elif file.lower().endswith(ends_of("raster")):
        of_grid = RasterConfig
    classes: Mapping[str, type[MapConfig]] = {
        "line": LineConfig,
        "grid": of_grid,
        "points": StationsConfig if file else PointsConfig,
        "roads": RoadsConfig,
    }
    return tuple(classes[kind] for kind in kinds)
