"""Find places by reading, name, index or position."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import TypeAlias

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError, ReadingError, suggest
from gp_active_sensing.topology.base import SAME_DISTANCE, Topology
from gp_active_sensing.topology.geometry import NEAR, spacing_of
from gp_active_sensing.topology.projection import DEGREE, local_metres
from gp_active_sensing.types import FloatArray, Reading
from gp_active_sensing.util.wording import moment

logger = logging.getLogger(__name__)


def place_of(reading: Reading, topology: Topology, snap_distance: float) -> int:
    """Return the place of a reading, from its location or its position.

    A position may be up to `snap_distance` [m] from its place. Fields of the reading may have
    wrong types.

    Raises:
        ReadingError: the reading is unusable; the error has a reason code.
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
    """Convert a value to float; inf = too large for a float, None = not a number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


_CELL = re.compile(r"c-?\d+r-?\d+(z\d+)?")

Start: TypeAlias = str | int | tuple[float, float]
"""Name, index or position of a place."""


def check_start(topology: Topology, start: Start | None) -> int | None:
    """Return the index of the place where a probe starts, given its name, index or position.

    Raises:
        ConfigError: no such place; the message suggests a similar name.
        MapError: no other place is reachable from the starting place.
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

    On a map with a datum, a position counts as degrees if it is then no farther from the datum than
    the extent of the map. Otherwise, it counts as metres. `key` begins each message.

    Raises:
        ConfigError: the nearest place is too far away. The limit is the spacing of places or
            `NEAR` times the diagonal of the map, whichever is larger.
    """
    x, y = position
    datum = topology.datum
    if datum is not None:
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
    """Return the index of a place (`given` is its name or index). Raises ConfigError."""
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
    """Return the line (m, 2) [m] of a drive through places, without repeated points."""
    points = np.concatenate([np.zeros((0, 2)), *(topology.geometry(place) for place in path)])
    apart = np.hypot(*np.diff(points, axis=0, prepend=np.inf).T)
    return np.asarray(points[apart > SAME_DISTANCE])
