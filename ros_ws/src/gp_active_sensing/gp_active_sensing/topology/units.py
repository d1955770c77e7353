"""Units of length, names of heights, and the signs of depths."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.types import FloatArray

__all__ = ["HEIGHTS", "below_water", "metres_in", "upwards_of"]

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
_UNITS = {
    "": 1.0, "m": 1.0, "metres": 1.0, "meters": 1.0, "cm": 0.01, "mm": 0.001, "km": 1000.0,
    "ft": 0.3048, "feet": 0.3048, "foot": 0.3048, "fathoms": 1.8288, "fathom": 1.8288,
}  # fmt: skip
"""[m]"""


def metres_in(unit: str) -> float | None:
    """Return the metres of a unit, None where it is not known."""
    plain = unit.strip().lower().removeprefix("us survey ").removeprefix("us_")
    return _UNITS.get(plain if plain != "metre" and plain != "meter" else "m")


def upwards_of(title: str) -> float | None:
    """Return what heights under a title ("Depth", "z (ft)") are times [m], None of others."""
    found = re.fullmatch(r"([a-z]+)(?:[ _]*[\[(]?([a-z]+)[\])]?)?", title.strip().lower())
    if found is None or found[1] not in HEIGHTS:
        return None
    unit = metres_in(found[2] or "")
    return None if unit is None else HEIGHTS[found[1]] * unit


def below_water(depths: FloatArray, where: str) -> tuple[FloatArray, tuple[str, ...]]:
    """Return heights of depths [m], whichever sign these have, and notes.

    Raises:
        MapError: some are above 0 and some below.
    """
    known = depths[np.isfinite(depths)]
    below, above = int((known > 0.0).sum()), int((known < 0.0).sum())
    if below and above:
        msg = (
            f"{where}: {below} depths are above 0 and {above} below; depths count downwards from "
            "the water: give all one sign, or name it a height, which counts upwards"
        )
        raise MapError(msg)
    if not above:
        return -depths, ()
    return depths, (f"{where}: all depths are negative and were taken as heights below the water",)
