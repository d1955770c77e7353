"""Maps of stations and sampling sites. A second table may list the paths between the sites."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import MapError, listed, suggest
from gp_active_sensing.topology.base import FreeTopology, GraphTopology, Places, Topology
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.topology.loaders import (
    MOST_TEXT,
    check_file,
    fail,
    fault,
    find_map,
    number_of,
    read_as,
)
from gp_active_sensing.topology.loaders.tables import SitesReader, named_columns
from gp_active_sensing.topology.map_config import StationsConfig
from gp_active_sensing.topology.search import Move
from gp_active_sensing.topology.segments import part_of
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.tables import MISSING, Table

logger = logging.getLogger(__name__)


def of_stations(config: StationsConfig, path: Path, base_dir: Path | None) -> Places:
    """Return the map of places from a CSV table or from the points of a GIS file.

    Positions are in columns `x` and `y` [m], or in `longitude` and `latitude` [degree]. With a
    column `zone`, `x` and `y` are UTM coordinates. Optional columns are `name` (default 1, 2, …)
    and `height`, `z` or `depth` [m, or the unit in the title]. Every other column of numbers
    becomes an attribute of the places; an empty cell or a fill value is NaN. Titles are
    case-insensitive.

    Raises:
        MapError: the file has problems; the message shows the first ten, each with its line.
        ConfigError: a feature is unknown, or columns contradict each other.
        MissingDependencyError: the table has longitudes, and pyproj is missing.
    """
    table = read_as("points", path, most=MOST_TEXT)
    sites = SitesReader(path, table, named_columns(config.columns_of)).finish(config.crs)
    points, numbers, features = sites.points, dict(sites.numbers), config.features
    name, frame = config.name or path.name.partition(".")[0], config.frame or "map"
    where = name, frame, sites.names, points[:, :2]
    moves: list[list[Move]] | None = None
    if config.distances:
        beside = find_map(config.distances, base_dir)
        ways = read_distances(beside, sites.names)
        moves = moves_along(ways, points, config.speeds, names=sites.names, where=str(beside))
    more: dict[str, Any] = {"heights": points[:, 2] if points.shape[1] == 3 else None}
    if features is not None:
        plain = Topology(*where, **more, numbers=numbers)
        more["features"], more["feature_names"] = plain.columns(features)
        numbers = {key: values for key, values in numbers.items() if key not in features}
    more["numbers"] = numbers
    made: Places
    if moves is None:
        made = FreeTopology(*where, speed=config.speeds, **more)
    else:
        made = GraphTopology(*where, moves, reach=config.reach, **more)
    return made.located(sites.datum).noted(sites.notes)


# -- paths between places: a list of pairs --------------------------------------------------------

_LIST: Mapping[str, tuple[str, ...]] = {
    "from": ("from", "from_name", "source"),
    "to": ("to", "to_name", "target"),
    "metres": ("metres", "meters", "distance", "distance_m", "length", "length_m"),
    "seconds": ("seconds", "duration", "duration_s"),
    "oneway": ("oneway",),
}
"""Accepted titles of each column (case-insensitive)."""
_YES = {"1", "true", "yes"}
_NO = {"0", "false", "no", ""}
_ROUNDING = 1e-9
"""Largest relative difference of two costs that counts as rounding."""
_SHORT = 0.99
"""Smallest plausible length of a path, as a fraction of the straight-line distance."""


Ways = dict[tuple[int, int], tuple[float, float]]
"""Metres and seconds of the path from one place to another; NaN = not stated."""


def read_distances(path: Path, names: Sequence[str]) -> Ways:
    """Read a table of the paths between places; `names` are the names of the places.

    Columns are `from`, `to` and `metres`; `seconds` and `oneway` are optional. A path counts in
    both directions unless `oneway` is 1, true or yes, or the other direction has its own row.

    Raises:
        MapError: the table has problems; the message shows the first ten, each with its line.
    """
    check_file(path, MOST_TEXT)
    places = {name: place for place, name in enumerate(names)}
    ways: Ways = {}
    lines: dict[tuple[int, int], int] = {}
    one_way = set[tuple[int, int]]()
    problems: list[str] = []

    def place_of(name: str, where: str) -> int:
        if name not in places:
            problems.append(f"{where}: no place {name!r} on the map.{suggest(name, names)}")
        return places.get(name, -1)

    def positive(cell: str, where: str) -> float:
        value = number_of(cell)
        if value is None or not 0.0 < value < math.inf:
            problems.append(f"{where}: expected a number above 0, got {cell!r}")
            return math.nan
        return value

    with Table(path, MapError) as table:
        titles = [title.lower() for title in table.header]
        columns = {
            key: titles.index(next(name for name in known if name in titles))
            for key, known in _LIST.items()
            if not set(known).isdisjoint(titles)
        }
        missing = [key for key in ("from", "to", "metres") if key not in columns]
        if missing:
            msg = (
                f"{path}, line 1: expected columns from, to and metres, got {listed(table.header)}."
                f"{suggest(missing[0], table.header)} A matrix becomes such a list with stack() of "
                "pandas"
            )
            raise MapError(msg)
        for line, row in table:
            where, cells = f"line {line}", {key: row[at].strip() for key, at in columns.items()}
            a, b = place_of(cells["from"], where), place_of(cells["to"], where)
            metres, seconds = positive(cells["metres"], f"{where}, metres"), math.nan
            if cells.get("seconds", "").lower() not in MISSING:
                seconds = positive(cells["seconds"], f"{where}, seconds")
            word = cells.get("oneway", "").lower()
            if word not in _YES | _NO:
                problems.append(f"{where}: oneway: expected 0 or 1, got {word!r}")
            if a < 0 or b < 0 or math.isnan(metres) or a == b:
                continue
            if (first := lines.setdefault((a, b), line)) != line:
                what = f"from {names[a]!r} to {names[b]!r}"
                problems.append(f"lines {first} and {line}: both are {what}; keep one")
            ways[a, b] = metres, seconds
            if word in _YES:
                one_way.add((a, b))
    fail(path, problems)
    if not ways:
        raise fault(path, "expected ways between places, found none")
    return {(b, a): way for (a, b), way in ways.items() if (a, b) not in one_way} | ways


def moves_along(
    ways: Ways, points: FloatArray, speeds: Speeds, *, names: Sequence[str], where: str
) -> list[list[Move]]:
    """Return the moves (n,) out of places at `points` (n, 2 or 3) [m] along the paths `ways`.

    The cost of a move is that of the cheapest path, which may cross other places. `speeds`
    determine the duration of paths without stated seconds. `where` and `names` are for messages.

    Raises:
        MapError: the paths do not connect all places.
    """
    n = len(points)
    pairs = np.array(sorted(ways), dtype=np.int64)
    offsets = points[pairs[:, 1]] - points[pairs[:, 0]]
    metres, given = np.array([ways[a, b] for a, b in pairs.tolist()]).T.copy()
    seconds = np.where(np.isnan(given), speeds.seconds(offsets, metres), given)
    labels = part_of(pairs, n)
    sizes = np.bincount(labels)
    if (count := len(sizes)) > 1:
        some = [names[place] for place in np.flatnonzero(labels == np.argmin(sizes)).tolist()]
        shown = ", ".join(map(str, sorted(sizes.tolist(), reverse=True)[:8]))
        raise fault(
            where,
            f"no way joins the {count} parts into which it divides the {n} places "
            f"({shown}{', …' if count > 8 else ''} places); the smallest holds {listed(some)}. Add "
            "a way between them, or leave places out",
        )
    short = metres < _SHORT * speeds.metres(offsets)
    if short.any():
        a, b = pairs[int(np.argmax(short))]
        logger.warning(
            "%s: %d of %d ways are shorter than the straight line, such as from %r to %r; are they "
            "and the positions in metres?",
            where,
            int(short.sum()),
            len(pairs),
            names[a],
            names[b],
        )
    least = _shortest(pairs, metres, n), _shortest(pairs, seconds, n)
    longer = (least[0] < metres * (1.0 - _ROUNDING)) | (least[1] < seconds * (1.0 - _ROUNDING))
    if longer.any():
        logger.info(
            "%s: %d of %d ways are longer than a way over other places, and have the cost of that "
            "way",
            where,
            int(longer.sum()),
            len(pairs),
        )
    moves: list[list[Move]] = [[] for _ in range(n)]
    for (a, b), *cost in zip(pairs.tolist(), *(each.tolist() for each in least), strict=True):
        moves[a].append(Move(b, *cost))
    if traps := [name for name, out in zip(names, moves, strict=True) if not out]:
        logger.warning("%s: no way leads on from %s", where, listed(traps))
    return moves


def _shortest(pairs: IntArray, costs: FloatArray, n: int) -> FloatArray:
    """Return the cost (m,) of the cheapest path for each of the sorted `pairs` (m, 2)."""
    from scipy.sparse import csgraph, csr_array

    search: Any = csgraph.dijkstra  # typed for arrays of sources only
    starts = np.searchsorted(pairs[:, 0], np.arange(n + 1)).astype(np.intc)
    graph = csr_array((costs, pairs[:, 1].astype(np.intc), starts), shape=(n, n))
    least = costs.copy()
    for a in range(n):
        out = slice(int(starts[a]), int(starts[a + 1]))
        if out.stop > out.start:
            found = search(graph, indices=a, limit=float(costs[out].max()))
            least[out] = np.minimum(least[out], found[pairs[out, 1]])
    return np.asarray(least)
