"""Find the place of a reading, or reject a reading that cannot be used."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real

import numpy as np

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Reading
from gp_active_sensing.util.wording import moment

__all__ = ["place_of"]


def place_of(reading: Reading, topology: Topology, snap_distance: float) -> int:
    """Return the place of a reading.

    One that says its place keeps it. In a mission that was found before, from poses and headings,
    by `mission.matching`.

    Args:
        reading: made of anything a sensor may say.
        topology: the map.
        snap_distance: farthest distance of a position from its place [m].

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
    x, y = position if len(position) == 2 else (None, None)
    if x is None or y is None or not (math.isfinite(x) and math.isfinite(y)):
        msg = f"{where}: needs a place or a finite position (x, y), got {reading.position!r}"
        raise ReadingError("bad_position", msg)
    location = topology.snap(x, y, snap_distance)
    if location is None:
        msg = (
            f"{where}: position ({x:.1f}, {y:.1f}) is farther than "
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
