"""Write the parameter file of a mission from a few answers of its user."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.config import declared, default_of, from_mapping, plain, to_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.topology import MapConfig, Roads, Topology
from gp_active_sensing.topology.config import build_settled
from gp_active_sensing.topology.loaders.drafts import KMH, MPH
from gp_active_sensing.topology.projection import DEGREE
from gp_active_sensing.util.resources import find_resource, is_shipped
from gp_active_sensing.util.wording import counted
from gp_active_sensing.util.yaml_files import check_meaning, comment, scalar

if TYPE_CHECKING:
    from gp_active_sensing.records.run_map import GridMap

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
_SIDES = re.compile(rf"^\s*({_NUMBER})\s*[x×]\s*({_NUMBER})\s*m?\s*$")
_CORNERS = re.compile(rf"^\s*{_NUMBER}(?:\s*,\s*{_NUMBER}){{3}}\s*$")
_AMOUNT = re.compile(rf"^\s*({_NUMBER})\s*([A-Za-z]*)\s*$")
_UNITS = {
    **dict.fromkeys(("", "reading", "readings", "place", "places"), ("readings", 1.0)),
    **dict.fromkeys(("m", "metres", "meters"), ("metres", 1.0)),
    "km": ("metres", 1000.0),
    **dict.fromkeys(("s", "seconds"), ("seconds", 1.0)),
    **dict.fromkeys(("min", "minutes"), ("seconds", 60.0)),
    **dict.fromkeys(("h", "hour", "hours"), ("seconds", 3600.0)),
}
_SPEEDS = {"": 1.0, "m/s": 1.0, "km/h": KMH, "mph": MPH, "kn": 1852 / 3600}
_FARTHEST_DATUM = 5000.0
"""Largest plausible distance of a datum from the places of a map with an origin [m]."""
_HEAD = """\
# A mission for gp_active_sensing. What is not here has its default: `ros2 param describe
# /active_sensing NAME` says what a parameter is for. Start it:
{start}
/**:
  ros__parameters:
"""


@dataclass(frozen=True)
class MissionMap:
    """Map of a mission, which is built once to check the map's parameters.

    Args:
        section: configuration section `map`, without default values.
        places: the places; None = no map has come on the topic yet.
        from_file: True = the map is from a file or a topic and may have a frame and an origin.
        shipped: path of the map if it ships with the package; None = a map of the user.
    """

    section: Mapping[str, Any]
    places: Topology | None
    from_file: bool
    shipped: Path | None = None

    @property
    def frame(self) -> str:
        """Coordinate frame of the map; "" = unknown."""
        return str(self.section.get("frame", "")) if self.places is None else self.places.frame


def read_map(
    text: str,
    *,
    spacing: float | None = None,
    radius: float | None = None,
    frame: str = "",
    speed: float | None = None,
) -> MissionMap:
    """Build the map that a user's answer describes.

    Args:
        text: a file, the name of a shipped map, a rectangle such as ``60x40`` [m], or its corners
            ``x0,y0,x1,y1`` [m].
        spacing: distance between neighbouring places [m]; None = the map's own spacing.
        radius: radius of the probe, used as smallest distance from walls [m]; None = 0.
        frame: frame of the positions; "" = frame of the file, or ``map``.
        speed: speed of the robot where the map has no limit [m/s]; None = the default.

    Raises:
        ActiveSensingError: the file does not exist or is not a map, or the rectangle is wrong.
    """
    more = _more(spacing, radius, frame) | ({} if speed is None else {"speed": speed})
    corners = _corners(text)
    if corners is not None:
        x0, y0, x1, y1 = corners
        section = {"kind": "grid", "outline": [[x0, y0], [x1, y1]], **more}
        return _tried(section, from_file=False)
    file = str(Path(text).expanduser()) if text.startswith("~") else text
    path = find_resource("maps", file)  # raises a clear error for a missing file
    found = _tried({"file": file, **more}, from_file=True)
    return dataclasses.replace(found, shipped=path if is_shipped(path) else None)


def _tried(section: dict[str, Any], *, from_file: bool) -> MissionMap:
    """Build a map; add the computed spacing to `section`, so that each run has the same places."""
    config = from_mapping(MapConfig, section, path="map")
    places, settled = build_settled(config)
    spacing = to_mapping(settled).get("spacing")
    if spacing and spacing != to_mapping(config).get("spacing"):
        section = {**section, "spacing": spacing}
    return MissionMap(section, places, from_file)


def _more(spacing: float | None, radius: float | None, frame: str) -> dict[str, Any]:
    given = {"spacing": spacing, "inflation": radius, "frame": frame or None}
    return {key: value for key, value in given.items() if value is not None}


def live_map(
    topic: str,
    found: GridMap | None,
    *,
    spacing: float | None = None,
    radius: float | None = None,
    frame: str = "",
) -> MissionMap:
    """Build a map from a topic.

    Args:
        topic: topic of nav_msgs/OccupancyGrid.
        found: newest message; None = no message has come yet.
        spacing: distance between neighbouring places [m]; None = spacing of the first map.
        radius: radius of the probe, used as smallest distance from walls [m]; None = 0.
        frame: expected frame; "" = any.

    Raises:
        MapError: the map is in another frame, or has no free ground.
        ConfigError: the spacing does not fit the map.
    """
    section: dict[str, Any] = {"topic": topic, **_more(spacing, radius, frame)}
    config = from_mapping(MapConfig, section, path="map")
    if found is None:
        return MissionMap(section, None, True)
    from gp_active_sensing.mission.live_map import FirstMap

    return MissionMap(section, FirstMap.of(config, found).places.topology, True)


def _corners(text: str) -> tuple[float, float, float, float] | None:
    if sides := _SIDES.match(text):
        corners = (0.0, 0.0, float(sides[1]), float(sides[2]))
    elif _CORNERS.match(text):
        a, b, c, d = (float(word) for word in text.split(","))
        corners = (min(a, c), min(b, d), max(a, c), max(b, d))
    else:
        return None
    if not (corners[2] > corners[0] and corners[3] > corners[1]):
        msg = f"map: a rectangle with an area is expected, such as 60x40 [m], got {text!r}"
        raise ConfigError(msg)
    return corners


def in_words(places: Topology) -> str:
    """Describe a map by its number of places, size, frame and origin."""
    width, height = np.ptp(places.positions[:, :2], axis=0)
    text = f"{counted(places.n, 'place')}, {width:,.0f} × {height:,.0f} m, frame {places.frame}"
    if places.datum is not None:
        text += f", origin at latitude {places.datum[1]:.6f}, longitude {places.datum[0]:.6f}"
    return text.replace(",0", "0") if width < 1000 > height else text


def datum_misfit(datum: tuple[float, float], places: Topology) -> str:
    """Return why a datum (latitude, longitude) does not fit a map with an origin; "" = it fits."""
    if places.datum is None:
        return ""
    longitude, latitude = places.datum
    north, east = np.array((datum, datum[::-1])).T - ((latitude,), (longitude,))  # also swapped
    east = ((east + 180.0) % 360.0 - 180.0) * math.cos(math.radians(latitude))
    offsets = places.positions[:, :2, None] - DEGREE * np.array((east, north))
    away, swapped = np.hypot(offsets[:, 0], offsets[:, 1]).min(axis=0)
    if away <= _FARTHEST_DATUM:
        return ""
    given, other = (f"{a:.7g},{b:.7g}" for a, b in (datum, datum[::-1]))
    hint = f"latitude comes first (--datum {other}), or " if swapped <= _FARTHEST_DATUM else ""
    return (
        f"pose: --datum {given} lies {away / 1000.0:,.0f} km from the map, whose origin is "
        f"{latitude:.6f},{longitude:.6f}: {hint}leave --datum out"
    )


def limitless(places: Topology | None) -> str:
    """Return a text on the places that have no speed limit; "" = every place has one.

    `places` None = a map from a topic.
    """
    if not isinstance(places, Roads):
        return "the map does not say how fast the robot is"
    missing = sum(segment.speed_limit is None for segment in places.segments)
    return f"{missing} of {places.n} roads have no speed limit" if missing else ""


def read_speed(text: str) -> float:
    """Parse a speed in a user's answer, such as ``1.5`` or ``3 kn`` [m/s].

    Raises:
        ConfigError: the answer is not a number above 0, or its unit is unknown.
    """
    match = re.fullmatch(rf"({_NUMBER})\s*([a-z/]*)", text.strip().lower())
    factor = _SPEEDS.get(match[2]) if match else None
    if match is None or factor is None or float(match[1]) <= 0.0:
        msg = f"speed: expected a number above 0, such as 1.5 (m/s) or 3 kn, got {text.strip()!r}"
        if re.search(r"\d,\d", text):
            msg += "; write a decimal number with a point (1.5)"
        raise ConfigError(msg)
    return float(match[1]) * factor


def read_budget(text: str, what: str = "budget") -> dict[str, int | float]:
    """Parse a budget in a user's answer: ``40``, ``2 km``, ``30 min``, ``40, 2 km``.

    Raises:
        ConfigError: an amount has no number or an unknown unit, or two amounts have the same unit.
    """
    found: dict[str, int | float] = {}
    if re.search(r"\d,\d", text):
        msg = (
            f"{what}: {text.strip()!r} has a comma within a number; write a decimal number with a "
            "point (1.5), thousands without a mark, and a space between two amounts (40, 2 km)"
        )
        raise ConfigError(msg)
    for part in text.split(","):
        match = _AMOUNT.match(part)
        if match is None or match[2].lower() not in _UNITS:
            msg = f"{what}: expected such as 40 (places), 2 km or 30 min, got {part.strip()!r}"
            raise ConfigError(msg)
        key, factor = _UNITS[match[2].lower()]
        amount = float(match[1]) * factor
        if key in found:
            msg = f"{what}: {key} are given twice, in {text!r}"
            raise ConfigError(msg)
        if amount <= 0.0 or (key == "readings" and amount != int(amount)):
            kind = "a whole number" if key == "readings" else "a number"
            msg = f"{what}: expected {kind} above 0, got {part.strip()!r}"
            raise ConfigError(msg)
        found[key] = int(amount) if key == "readings" else amount
    return found


def read_sortie(text: str) -> dict[str, float]:
    """Parse the range of one battery: ``2 km``, ``30 min``, or both; {} for an empty answer.

    Raises:
        ConfigError: an amount is a number of places, or is not valid.
    """
    found = read_budget(text, "sortie") if text.strip() else {}
    if "readings" in found:
        msg = f"sortie: expected metres or minutes, such as 2 km, 30 min, got {text!r}"
        raise ConfigError(msg)
    return {key: float(amount) for key, amount in found.items()}


def read_position(text: str) -> tuple[float, float]:
    """Parse a latitude and a longitude in a user's answer [degree].

    Raises:
        ConfigError: the answer is not two numbers, or a number is out of range.
    """
    words = text.split(",")
    numbers = [float(w) for w in words if re.fullmatch(rf"\s*{_NUMBER}\s*", w)]
    if len(words) != 2 or len(numbers) != 2 or abs(numbers[0]) > 90.0 or abs(numbers[1]) > 180.0:
        msg = f"datum: expected LATITUDE,LONGITUDE in degrees, got {text!r}"
        raise ConfigError(msg)
    return numbers[0], numbers[1]


def _value(tree: Any, key: str) -> Any:
    """Return the value of a dotted key in nested data; None = no value."""
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree


def mission_text(parameters: Mapping[str, Any], notes: Mapping[str, str], *, start: str) -> str:
    """Return the text of a mission's parameter file.

    Args:
        parameters: values by dotted key, in the order of the file; default values become comments.
        notes: comments beside the values, keyed like `parameters`.
        start: command that starts the mission.

    Raises:
        ConfigError: a parameter is wrong, or reading the text again gives other values.
    """
    nested: dict[str, Any] = {}
    for key, value in parameters.items():
        if key == "use_sim_time":
            continue
        *sections, last = key.split(".")
        target = nested
        for section in sections:
            target = target.setdefault(section, {})
        target[last] = value
    config = to_mapping(from_mapping(ActiveSensingConfig, nested))
    usual = to_mapping(ActiveSensingConfig(map=MapConfig("line", count=1)))
    usual["map"] = {field.name: plain(default_of(field)) for field, _ in declared(MapConfig)}
    rows = []
    meant = {}
    for key, value in parameters.items():
        row = f"{key}: {scalar(value)}"
        if key != "use_sim_time" and _value(config, key) == _value(usual, key):
            row = comment(row)
        else:
            meant[key] = value
        rows.append((row, notes.get(key, "")))
    width = min(44, max(len(row) for row, _ in rows))
    lines = [f"    {row:<{width}}  {comment(note)}" if note else f"    {row}" for row, note in rows]
    text = _HEAD.format(start=comment(f"  {start}")) + "\n".join(lines) + "\n"
    check_meaning(text, {"/**": {"ros__parameters": meant or None}}, what="parameter file")
    return text
