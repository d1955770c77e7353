"""Find a place (of a reading, by name, index or position), the line of a way, parts of a map.

The first event of a run has ``places``, a fingerprint of the places of its map. So a later version,
or a changed file, cannot give a run other places without an error.
"""

from __future__ import annotations

import logging
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError, ReadingError, RunError, suggest
from gp_active_sensing.topology.base import SAME_DISTANCE, Topology
from gp_active_sensing.topology.geometry import NEAR, spacing_of
from gp_active_sensing.topology.projection import DEGREE, local_metres
from gp_active_sensing.types import FloatArray, IntArray, Reading
from gp_active_sensing.util.wording import moment

logger = logging.getLogger(__name__)


def place_of(reading: Reading, topology: Topology, snap_distance: float) -> int:
    """Return the place of a reading, made of anything a sensor may say.

    One that says its place keeps it. In a mission that was found before, from poses and headings,
    by `mission.matching`. A position may be `snap_distance` [m] from its place.

    Raises:
        ReadingError: why it cannot be used, with the word that it is counted under.
    """
    where = f"reading of {reading.source or 'the sensor'} at {moment(reading.stamp_ns)}"
    value = _number(reading.value)
    if value is None:
        msg = f"{where}: expected a number, got {type(reading.value).__name__}"
        raise ReadingError("not_a_number", msg)
    if not math.isfinite(value):
        msg = f"{where}: expected a finite value, got {reading.value}"
        raise ReadingError("not_finite", msg)
    if reading.noise_variance is not None:
        variance = _number(reading.noise_variance)
        if variance is None or not (math.isfinite(variance) and variance > 0):
            msg = f"{where}: expected a noise variance above 0, got {reading.noise_variance!r}"
            raise ReadingError("bad_variance", msg)
    if reading.location is not None:
        place = _number(reading.location)
        if place is None or not 0 <= place < topology.n or place != int(place):
            msg = f"{where}: place {reading.location!r} is not on the map (0 … {topology.n - 1})"
            raise ReadingError("unknown_location", msg)
        return int(place)
    given = reading.position
    position = [_number(c) for c in given] if isinstance(given, Iterable) else []
    axes = "x, y" if topology.heights is None else "x, y, z"
    numbers = [c for c in position if c is not None and math.isfinite(c)]
    if len(numbers) != len(position) or len(numbers) not in {2, len(axes.split())}:
        msg = f"{where}: needs a place or a finite position ({axes}), got {reading.position!r}"
        raise ReadingError("bad_position", msg)
    if len(numbers) == 2 and topology.heights is not None:
        msg = (
            f"{where}: the places of map {topology.name!r} have heights; its position needs "
            f"x, y and z, got {reading.position!r}"
        )
        raise ReadingError("bad_position", msg)
    x, y, *up = numbers
    location = topology.snap(x, y, snap_distance, *up)
    if location is None:
        msg = (
            f"{where}: position ({', '.join(f'{c:.9g}' for c in numbers)}) is farther than "
            f"{snap_distance:g} m from every place of map {topology.name!r}"
        )
        raise ReadingError("off_map", msg)
    return location


def _number(value: object) -> float | None:
    """Return what a sensor says as a float (inf beyond its range), None when it is no number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


_CELL = re.compile(r"c-?\d+r-?\d+(z\d+)?")

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
    """Return the index of the place nearest to x, y [m], or to longitude, latitude [degree].

    Degrees are those that lie on a map with a datum. `key` begins the message.

    Raises:
        ConfigError: it is farther from every place than these are from one another, and than a
            tenth of the map.
    """
    x, y = position
    datum = topology.datum
    if datum is not None:
        # Degrees farther from the origin than the map is long are metres.
        east, north = x - datum[0], y - datum[1]
        apart = DEGREE * math.hypot(east * math.cos(math.radians(datum[1])), north)
        if apart <= float(np.ptp(topology.positions, axis=0).max()):
            x, y = local_metres(x, y, datum)
    low, high = topology.positions.min(axis=0), topology.positions.max(axis=0)
    nearest = topology.snap(x, y, math.inf)
    far = max(NEAR * math.dist(low, high), spacing_of(topology.positions).across)
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


def place_index(topology: Topology, given: str | int, key: str) -> int:
    """Return the index of a place given by name or index; `key` begins the message.

    Raises:
        ConfigError: no such place; the message has the nearest match.
    """
    if isinstance(given, str):
        if given in topology.names:
            return topology.names.index(given)
        hint = suggest(given, topology.names)
        if cell := _CELL.fullmatch(topology.names[0]):
            layer = "z<layer>" if cell[1] else ""
            hint = (
                f" Cells are called c<column>r<row>{layer}, such as {topology.names[0]} and "
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


def route_geometry(topology: Topology, path: Sequence[int]) -> FloatArray:
    """(m, 2) the line driven along places in their order [m], each point once."""
    pieces = [topology.geometry(place) for place in path]
    points = np.concatenate(pieces) if pieces else np.zeros((0, 2))
    apart = np.hypot(*np.diff(points, axis=0).T) if len(points) > 1 else np.zeros(0)
    first = np.ones(min(len(points), 1), dtype=np.bool_)
    return np.asarray(points[np.concatenate([first, apart > SAME_DISTANCE])])


def runs(points: FloatArray, places: IntArray, count: int) -> list[IntArray]:
    """Return places in `count` groups of one size (some empty), each of places near each other.

    `points` (n, 2 or 3) are those of the whole map [m]. Places are put in the order of a
    space-filling curve [Morton1966], which resolves heights as finely as positions: a metre upwards
    often changes as much as many across.
    """
    low, span = points[places].min(axis=0), np.ptp(points[places], axis=0)
    span[:2] = span[:2].max()
    cells = ((points[places] - low) / np.maximum(span, 1e-300) * 65535.0).astype(np.int64)
    code = np.zeros(len(cells), dtype=np.int64)
    axes = cells.shape[1]
    for bit in range(16):
        for axis in range(axes):
            code |= ((cells[:, axis] >> bit) & 1) << (axes * bit + axis)
    return np.array_split(places[np.argsort(code, kind="stable")], count)


def parts_that_count(topology: Topology, count: int) -> list[IntArray]:
    """Return the places of a map that have a weight in so many parts, or one a place if fewer."""
    counted = np.flatnonzero(topology.weights > 0.0)
    return runs(topology.points, counted, min(count, len(counted)))


# -- the places of a run ---------------------------------------------------------------------------

NO_LONGER = (
    "it does not give the places that the run began with: {}. Its file or its configuration has "
    "changed since, or this version makes places of it in another way: put it back as it was, use "
    "the version that the run was begun with, or begin a new run in another directory"
)
"""Said where the places of a run are others than they were."""
_OFF = 0.05
"""How far positions may be off that another machine works out [m]; never more than a thousandth of
the map."""


def mark_of_places(topology: Topology) -> dict[str, Any]:
    """Return a fingerprint of the places of a map, as plain data.

    ``count``: number of places; ``names``: checksum of their names, in order; ``box``: smallest and
    largest coordinates [m]. ``spread``: signed sum of all positions over the square root of their
    number [m]. The name of a place determines its sign.
    """
    names = [name.encode() for name in topology.names]
    signs = np.array([1.0 - 2.0 * (zlib.crc32(name) & 1) for name in names])
    points = topology.points
    spread = signs @ points / math.sqrt(topology.n)
    return {
        "count": topology.n,
        "names": f"{zlib.crc32(b'|'.join(names)):08x}",
        "box": [points.min(axis=0).tolist(), points.max(axis=0).tolist()],
        "spread": spread.tolist(),
    }


def other_places(stored: Any, found: Mapping[str, Any]) -> str:
    """Return how places by `mark_of_places` differ from those told; "" = they do not."""
    if stored is None:
        return ""
    try:
        then, now = (np.array(m["box"], dtype=np.float64) for m in (stored, found))
        sums = [np.array(m["spread"], dtype=np.float64) for m in (stored, found)]
        same = int(stored["count"]) == found["count"] and then.shape == now.shape
        same_names = stored["names"] == found["names"]
        if same:
            extent = float(np.ptp(now, axis=0).max())
            most = min(_OFF, 1e-3 * extent) if extent > 0.0 else _OFF
            off = max(float(np.abs(then - now).max()), float(np.abs(np.subtract(*sums)).max()))
            if off <= most and same_names:
                return ""
        return (
            f"expected {stored['count']} places from {_at(then[0])} to {_at(then[1])} m, came "
            f"{found['count']} from {_at(now[0])} to {_at(now[1])} m"
            + (f"; their {'position' if same_names else 'name'}s are others" if same else "")
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"the description of its places is damaged ({error!r})"


def _at(point: Any) -> str:
    return f"({', '.join(f'{number:g}' for number in point)})"


def check_places(start: Mapping[str, Any], topology: Topology, where: Path | str) -> None:
    """See that a map has the places that a run began with, by its first event.

    Raises:
        RunError: it has others.
    """
    if why := other_places(start.get("places"), mark_of_places(topology)):
        versions = start.get("versions")
        version = versions.get("gp_active_sensing") if isinstance(versions, Mapping) else None
        by = f" (the run was begun by version {version})" if version else ""
        msg = f"{where}: map {topology.name!r}: {NO_LONGER.format(why)}{by}"
        raise RunError(msg)
