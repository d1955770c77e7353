"""What the tags of OpenStreetMap say about driving: which ways, which directions, how fast.

After the pages Key:highway, Key:oneway, Key:maxspeed, Key:lanes and Key:access of its wiki.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from gp_active_sensing.topology.loaders.common import KMH, MPH
from gp_active_sensing.topology.loaders.values import number_of

__all__ = ["DRIVABLE", "Directions", "directions", "drivable", "lanes_of", "limit_of", "speed_of"]

_WITH_LINKS = ("motorway", "trunk", "primary", "secondary", "tertiary")
DRIVABLE = frozenset(
    {
        *_WITH_LINKS,
        *(f"{kind}_link" for kind in _WITH_LINKS),
        *("unclassified", "residential", "living_street", "road"),
    }
)
"""Values of `highway` that are streets; no service ways, tracks or paths."""

_CLOSED = {"no", "private", "agricultural", "forestry", "delivery", "emergency"}
_ACCESS = ("motorcar", "motor_vehicle", "vehicle", "access")
"""Keys about who may drive, the more special first."""
_KNOT = 1852.0 / 3600.0
_WALK = 7.0 * KMH
_SPEED = re.compile(r"(\d+(?:[.,]\d+)?)\s*(km/h|kmh|kph|mph|knots)?$")
_UNITS = {"km/h": KMH, "kmh": KMH, "kph": KMH, "mph": MPH, "knots": _KNOT}


class Directions(NamedTuple):
    """In which directions of its points a way may be driven."""

    forward: bool
    backward: bool


def drivable(tags: Mapping[str, str]) -> bool:
    """Return whether cars of the public may drive along a way."""
    if tags.get("highway") not in DRIVABLE or tags.get("area") == "yes":
        return False
    word = next((tags[key] for key in _ACCESS if key in tags), "yes")
    return word not in _CLOSED


def directions(tags: Mapping[str, str]) -> Directions:
    """Return the directions; neither, when they change with the hour."""
    word = tags.get("oneway", "")
    if word in ("-1", "reverse"):
        return Directions(forward=False, backward=True)
    if word in ("yes", "true", "1"):
        return Directions(forward=True, backward=False)
    if word in ("reversible",):
        return Directions(forward=False, backward=False)
    if word in ("no", "false", "0", "alternating"):
        return Directions(forward=True, backward=True)
    implied = tags.get("junction") in ("roundabout", "circular") or tags["highway"] == "motorway"
    return Directions(forward=True, backward=not implied)


def speed_of(text: str) -> float | None:
    """Return a speed limit [m/s], None where the text is no number ("none", "RO:urban")."""
    if text.strip() == "walk":
        return _WALK
    found = _SPEED.match(text.strip())
    if found is None:
        return None
    return float(found[1].replace(",", ".")) * _UNITS[found[2] or "km/h"] or None


def limit_of(tags: Mapping[str, str], *, backward: bool) -> float | None:
    """Return the speed limit in a direction [m/s], None where it is not known."""
    own = tags.get("maxspeed:backward" if backward else "maxspeed:forward")
    return speed_of(own if own is not None else tags.get("maxspeed", ""))


def lanes_of(tags: Mapping[str, str], *, backward: bool, both: bool) -> float | None:
    """Return the lanes in a direction, None where they are not known.

    `lanes` counts both directions of a two-way street; half of them are taken where
    `lanes:forward` and `lanes:backward` do not say.
    """
    own = _count(tags.get("lanes:backward" if backward else "lanes:forward", ""))
    if own is not None:
        return own
    total = _count(tags.get("lanes", ""))
    if total is None or not both:
        return total
    return max(1.0, total / 2.0)


def _count(text: str) -> float | None:
    value = number_of(text)
    return value if value is not None and 0.0 < value < 100.0 else None
