"""Places from a table: stations and sampling sites with names, heights and further numbers."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.config import from_mapping, param
from gp_active_sensing.errors import ConfigError, MapError, listed, suggest
from gp_active_sensing.topology.base import Places
from gp_active_sensing.topology.generated import MOST_CELLS, FreeTopology
from gp_active_sensing.topology.graph import GraphTopology, Move
from gp_active_sensing.topology.legs import Speeds
from gp_active_sensing.topology.loaders.drafts import fail, number_of
from gp_active_sensing.topology.loaders.files import MOST_TEXT, check_file
from gp_active_sensing.topology.projection import LONLAT, in_system, place, points_in_metres
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.tables import MISSING, Table

__all__ = [
    "HEIGHTS",
    "ColumnsConfig",
    "Sites",
    "is_stations",
    "load_stations",
    "read_stations",
    "topology_of",
]

logger = logging.getLogger(__name__)

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "name": ("name", "station", "site", "id", "place"),
    "x": ("x", "x_m", "easting"),
    "y": ("y", "y_m", "northing"),
    "lon": ("lon", "longitude", "lng"),
    "lat": ("lat", "latitude"),
}
"""What a column means -> its names, in any case; the first that is there counts."""
HEIGHTS: Mapping[str, float] = {
    "z": 1.0,
    "z_m": 1.0,
    "height": 1.0,
    "height_m": 1.0,
    "altitude": 1.0,
    "elevation": 1.0,
    "depth": -1.0,
    "depth_m": -1.0,
}
"""Names of a height -> its sign: depths count downwards."""
_MEANING: Mapping[str, str] = {
    "name": "name",
    "x": "x",
    "y": "y",
    "longitude": "lon",
    "latitude": "lat",
    "height": "z",
    "depth": "z",
}
"""Key of `ColumnsConfig` -> what its column means here."""


@dataclass(frozen=True)
class ColumnsConfig:
    """What the columns of a table of places are called; "" = one of the usual names."""

    name: str = param("", help="points of a file: column with the name of each place")
    x: str = param("", help="points of a file: column with x of each place, in metres")
    y: str = param("", help="points of a file: column with y of each place, in metres")
    longitude: str = param(
        "", help="points of a file: column with the longitude of each place, in degrees"
    )
    latitude: str = param(
        "", help="points of a file: column with the latitude of each place, in degrees"
    )
    height: str = param(
        "", help="points of a file: column with the height of each place, upwards, in metres"
    )
    depth: str = param(
        "", help="points of a file: column with the depth of each place, downwards, in metres"
    )

    def __post_init__(self) -> None:
        keys: dict[str, list[str]] = {}
        for key, title in self.given().items():
            keys.setdefault(title.lower(), []).append(key)
        problems = [
            f"{', '.join(several)}: all name the column {getattr(self, several[0])!r}; a column "
            "says one thing"
            for several in keys.values()
            if len(several) > 1
        ]
        if self.height and self.depth:
            problems.append("height, depth: both say how high a place is; name one of them")
        if problems:
            raise ConfigError(problems)

    def given(self) -> dict[str, str]:
        """Return the keys that name a column, each with its name."""
        return {key: title for key in _MEANING if (title := getattr(self, key).strip())}


@dataclass(frozen=True)
class Sites:
    """Places as a table or a graph gives them.

    Args:
        title: name of the map.
        names: (n,) of the places.
        points: (n, 2) x, y, or (n, 3) with z upwards [m].
        datum: longitude and latitude of the origin; None = not known.
        numbers: (n,) further numbers by name, NaN where a place has none.
    """

    title: str
    names: tuple[str, ...]
    points: FloatArray
    datum: tuple[float, float] | None = None
    numbers: Mapping[str, FloatArray] = field(default_factory=dict)


def is_stations(path: Path) -> bool:
    """Return whether a file is a table of places, by its first line; one of edges is not.

    Args:
        path: of any file.
    """
    if path.suffix.lower() != ".csv":
        return False
    try:
        check_file(path, MOST_TEXT)
        with Table(path, MapError) as table:
            titles = {title.lower() for title in table.header}
    except MapError:  # said by the one who reads it
        return False
    from gp_active_sensing.topology.loaders.table import COLUMNS  # of roads

    pairs = ("x", "y"), ("lon", "lat")
    placed = any(all(titles.intersection(_COLUMNS[key]) for key in pair) for pair in pairs)
    return placed and not all(titles.intersection(COLUMNS[key]) for key in ("from", "to"))


def load_stations(
    path: Path,
    *,
    columns_of: ColumnsConfig | Mapping[str, str] | None = None,
    distances: Path | None = None,
    features: Sequence[str] | None = None,
    speed: float | Speeds = 1.0,
    reach: float = 0.0,
    name: str = "",
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Return the map of the places of a CSV table.

    Without a table of distances any place may be next, by the straight way.

    Args:
        path: a row for each place, see `read_stations`.
        columns_of: what its columns are called, see `read_stations`.
        distances: ways between them, see `distance_table`; None = straight.
        features: what the covariance is a function of; None = x, y, and z where there are heights.
        speed: of the probe [m/s], or its speeds along a way and up and down.
        reach: places within so many metres may be next, too; 0 = adjacent ones only.
        name: of the map; "" = that of the file.
        frame: metric frame of the positions.

    Raises:
        MapError: with every problem found (the first ten in words), each with its line.
        ConfigError: no such feature, or columns that contradict each other.
        MissingDependencyError: the table has longitudes, and pyproj is missing.
    """
    sites = read_stations(path, name=name, columns_of=columns_of)
    moves: list[list[Move]] | None = None
    speeds = speed if isinstance(speed, Speeds) else Speeds(speed)
    if distances is not None:
        from gp_active_sensing.topology.distance_table import moves_along, read_distances

        ways = read_distances(distances, sites.names)
        moves = moves_along(ways, sites.points, speeds, names=sites.names, where=str(distances))
    return topology_of(sites, moves, features=features, speed=speeds, reach=reach, frame=frame)


def topology_of(
    sites: Sites,
    moves: Sequence[Sequence[Move]] | None,
    *,
    features: Sequence[str] | None = None,
    speed: float | Speeds = 1.0,
    reach: float = 0.0,
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Return the map of places.

    Args:
        sites: the places.
        moves: (n,) out of each place; None = any place may be next.
        features: what the covariance is a function of; None = the points.
        speed: of the probe, where any place may be next.
        reach: places within so many metres may be next, too.
        frame: metric frame of the positions.

    Raises:
        ConfigError: no such feature.
        MapError: a feature that a place lacks.
    """
    points, numbers = sites.points, dict(sites.numbers)
    more: dict[str, Any] = {"heights": points[:, 2] if points.shape[1] == 3 else None}
    more["numbers"] = numbers
    if features is not None:
        plain = Places(sites.title, frame, sites.names, points[:, :2], **more)
        more["features"], more["feature_names"] = plain.columns(features)
        more["numbers"] = {key: v for key, v in numbers.items() if key not in features}
    made: FreeTopology | GraphTopology
    where = sites.title, frame, sites.names, points[:, :2]
    if moves is None:
        made = FreeTopology(*where, speed=speed, **more)
    else:
        made = GraphTopology(*where, moves, reach=reach, **more)
    made.datum = sites.datum
    return made


def read_stations(
    path: Path, *, name: str = "", columns_of: ColumnsConfig | Mapping[str, str] | None = None
) -> Sites:
    """Read a table of places.

    Columns, in any case and order: `x` and `y` [m], or `longitude` and `latitude` [degree], which
    are projected; perhaps a `name` (else the places are called 1, 2, …) and a `height`, `z` or
    `depth` [m]. Every other column of numbers is kept by its name, with gaps where a cell is empty.

    Args:
        path: of a CSV file with a header.
        name: of the map; "" = that of the file.
        columns_of: columns with names of their own, such as ``{"x": "E", "y": "N"}``: keys are
            those of `ColumnsConfig`. They come before columns with the usual names.

    Raises:
        MapError: with every problem found (the first ten in words), each with its line.
        ConfigError: `columns_of` has a key that means nothing, or names a column twice.
        MissingDependencyError: the table has longitudes, and pyproj is missing.
    """
    if not isinstance(columns_of, ColumnsConfig):
        columns_of = from_mapping(ColumnsConfig, columns_of, path="columns_of")
    check_file(path, MOST_TEXT)
    with Table(path, MapError) as table:
        columns, upwards = _columns_of(table, columns_of)
        rows = list(table)
    if not rows:
        msg = f"{path}: expected a row for each place below the header, found none"
        raise MapError(msg)
    if len(rows) > MOST_CELLS:
        msg = f"{path}: {len(rows)} places are more than {MOST_CELLS}"
        raise MapError(msg)
    problems: list[str] = []
    both = {"x", "lon"} <= columns.keys()
    pair = ("lon", "lat") if "lon" in columns else ("x", "y")
    keys = [*pair, *(["z"] if "z" in columns else []), *(["x", "y"] if both else [])]
    found = np.array([_coordinates(line, row, keys, columns, problems) for line, row in rows])
    names = _names(rows, columns.get("name"), problems)
    if problems:
        fail(path, problems)
    if "z" in columns:
        found[:, 2] *= upwards
    datum = None
    if pair == ("lon", "lat"):
        degrees = [(x, y) for x, y in found[:, :2].tolist()]
        metres, datum = points_in_metres(degrees, LONLAT, where=str(path))
        if both:
            datum = _origin_of(found[:, -2:], metres, degrees, datum, path)
            metres, found = found[:, -2:], found[:, :-2]
        found[:, :2] = metres
    elif np.abs(found[:, :2]).max() <= 180.0 and 0.0 < np.ptp(found[:, :2], axis=0).max() < 1.0:
        logger.warning(
            "%s: all places lie within a metre; longitudes and latitudes are to be in columns "
            "longitude and latitude, x and y are metres",
            path,
        )
    used = {at for at, _ in columns.values()}
    used |= {at for at, title in enumerate(table.header) if title in ("x", "y", "z")}
    numbers = _numbers(table.header, rows, used, path)
    return Sites(name or path.name.removesuffix(".csv"), names, found, datum, numbers)


_SAME = 0.05
"""Metres and degrees of a place that differ by more are not of one place [m]."""


def _origin_of(
    given: FloatArray,
    metres: FloatArray,
    degrees: Sequence[tuple[float, float]],
    middle: tuple[float, float],
    path: Path,
) -> tuple[float, float]:
    """Return the origin of x and y where longitudes and latitudes are given, too.

    A table that `export` wrote has both. Positions stay as they were, in the frame that they
    were in.

    Args:
        given: (n, 2) x and y [m].
        metres: (n, 2) the same places about the middle of the table [m].
        degrees: (n,) longitude and latitude of each.
        middle: longitude and latitude of the middle.
        path: for messages.

    Raises:
        MapError: the two are not of the same places.
    """
    shift = np.mean(metres - given, axis=0, keepdims=True)
    exact = in_system(shift, middle, LONLAT, where=str(path))[0]
    off = math.inf
    for decimals in (6, 9):  # an origin is mostly one of six decimals
        origin = round(float(exact[0]), decimals), round(float(exact[1]), decimals)
        lines = [[point] for point in degrees]
        made = place(lines, LONLAT, where=str(path), datum=origin)
        off = float(np.hypot(*(np.array([line[0] for line in made.lines]) - given).T).max())
        if off <= _SAME:
            return origin
    msg = (
        f"{path}: has x and y and longitude and latitude, and they are not of the same places: "
        f"they differ by up to {off:.3g} m, wherever x and y begin; keep one pair, of which "
        "the positions are made, or name its columns in columns_of"
    )
    raise MapError(msg)


_Rows = Sequence[tuple[int, Sequence[str]]]


def _columns_of(table: Table, own: ColumnsConfig) -> tuple[dict[str, tuple[int, str]], float]:
    """Return where the columns are and what they are called, and the sign of their heights.

    They are name, x and y or lon and lat, z.
    """
    found = _own_columns(table, own)
    taken = {at for at, _ in found.values()}
    titles = ["" if at in taken else title.lower() for at, title in enumerate(table.header)]
    own_pair = {"x", "y"} & found.keys(), {"lon", "lat"} & found.keys()
    unwanted = set[str]()  # where one pair is named, the other one is not looked for
    if any(own_pair) and not all(own_pair):
        unwanted = {"lon", "lat"} if own_pair[0] else {"x", "y"}
    for key, names in _COLUMNS.items():
        title = next((name for name in names if name in titles), None)
        if title is not None and key not in found.keys() | unwanted:
            found[key] = titles.index(title), table.header[titles.index(title)]
    upwards = -1.0 if own.depth else 1.0
    heights = [at for at, title in enumerate(titles) if title in HEIGHTS]
    if "z" not in found and heights:
        if len(heights) > 1:
            both = " and ".join(repr(table.header[at]) for at in heights)
            msg = (
                f"{table.path}: columns {both} both say how high a place is; keep one of them, or "
                "name it as height or depth in columns_of"
            )
            raise MapError(msg)
        found["z"] = heights[0], table.header[heights[0]]
        upwards = HEIGHTS[titles[heights[0]]]
    pairs = [{"x", "y"} <= found.keys(), {"lon", "lat"} <= found.keys()]
    if not any(pairs):
        hint = suggest("longitude" if "lat" in found else "x", table.header)
        msg = (
            f"{table.path}, line 1: expected columns x and y [m], or longitude and latitude "
            f"[degree], got {listed(table.header)}.{hint} Columns with other names are given by "
            "columns_of, such as {x: E, y: N}"
        )
        raise MapError(msg)
    for half in () if all(pairs) else {"x", "y"} if pairs[1] else {"lon", "lat"}:
        found.pop(half, None)
    return found, upwards


def _own_columns(table: Table, own: ColumnsConfig) -> dict[str, tuple[int, str]]:
    """Return where the columns are that are named, by what they mean.

    Raises:
        MapError: one is not there.
    """
    plain = [title.lower() for title in table.header]
    found: dict[str, tuple[int, str]] = {}
    problems: list[str] = []
    for key, title in own.given().items():
        if title in table.header:  # in the case that it is given in first
            at = table.header.index(title)
        elif title.lower() in plain:
            at = plain.index(title.lower())
        else:
            hint = suggest(title, table.header)
            problems.append(
                f"line 1: no column {title!r}, which columns_of.{key} names, but "
                f"{listed(table.header)}.{hint}"
            )
            continue
        found[_MEANING[key]] = at, table.header[at]
    if problems:
        fail(table.path, problems)
    return found


def _coordinates(
    line: int,
    row: Sequence[str],
    keys: Sequence[str],
    columns: Mapping[str, tuple[int, str]],
    problems: list[str],
) -> list[float]:
    found = []
    for key in keys:
        at, title = columns[key]
        value = number_of(row[at])
        if value is None or not math.isfinite(value):
            what = f"got {row[at].strip()!r}" if row[at].strip() else "it is missing"
            problems.append(f"line {line}, column {title!r}: expected a finite number, {what}")
            value = math.nan
        found.append(value)
    return found


def _names(rows: _Rows, column: tuple[int, str] | None, problems: list[str]) -> tuple[str, ...]:
    if column is None:
        return tuple(str(k + 1) for k in range(len(rows)))
    seen: dict[str, int] = {}
    for line, row in rows:
        name = row[column[0]].strip()
        if not name:
            problems.append(f"line {line}, column {column[1]!r}: the name is missing")
        elif name in seen:
            problems.append(
                f"lines {seen[name]} and {line}: both places are called {name!r}; give each a name "
                "of its own"
            )
        else:
            seen[name] = line
    return tuple(seen)


def _numbers(
    header: Sequence[str], rows: _Rows, used: set[int], path: Path
) -> dict[str, FloatArray]:
    """Return the other columns of numbers; of a name that comes twice the first."""
    found: dict[str, FloatArray] = {}
    text: list[str] = []
    for at, title in enumerate(header):
        if at in used or not title or title in found:
            continue
        values = np.full(len(rows), math.nan)
        for k, (_, row) in enumerate(rows):
            word = row[at].strip()
            if word.lower() in MISSING:
                continue
            value = number_of(word)
            if value is None or not math.isfinite(value):
                text.append(title)
                break
            values[k] = value
        else:
            if np.isfinite(values).any():
                found[title] = values
    if text:
        logger.info("%s: columns that are no numbers are left out: %s", path, listed(text))
    return found
