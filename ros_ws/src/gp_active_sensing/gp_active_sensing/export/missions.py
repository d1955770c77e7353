"""Routes as mission files of ground stations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

Point = tuple[float, float, float]
"""Latitude and longitude [degree], and height above home [m]."""

_WAYPOINT, _ABOVE_HOME = 16, 3
"""MAV_CMD_NAV_WAYPOINT and MAV_FRAME_GLOBAL_RELATIVE_ALT of MAVLink."""


def as_plan(home: Point, route: Sequence[Point]) -> str:
    """Return a route as a plan of QGroundControl (``.plan``); `home` is the vehicle's position."""
    items = [
        {
            "type": "SimpleItem",
            "autoContinue": True,
            "command": _WAYPOINT,
            "doJumpId": number,
            "frame": _ABOVE_HOME,
            "params": [0, 0, 0, None, *point],
            "Altitude": point[2],
            "AltitudeMode": 1,
            "AMSLAltAboveTerrain": None,
        }
        for number, point in enumerate(route, start=1)
    ]
    mission = {
        "version": 2,
        "firmwareType": 0,  # any; the plan does not state kind and speed of the vehicle
        "globalPlanAltitudeMode": 1,
        "plannedHomePosition": list(home),
        "items": items,
    }
    plan = {
        "fileType": "Plan",
        "version": 1,
        "groundStation": "QGroundControl",
        "mission": mission,
        "geoFence": {"version": 2, "circles": [], "polygons": []},
        "rallyPoints": {"version": 2, "points": []},
    }
    return json.dumps(plan, indent=2) + "\n"


def as_waypoints(home: Point, route: Sequence[Point]) -> str:
    """Return a route as a file of Mission Planner (``QGC WPL 110``); see `as_plan`."""
    lines = ["QGC WPL 110"]
    for number, (latitude, longitude, height) in enumerate([home, *route]):
        current, frame = (0, _ABOVE_HOME) if number else (1, 0)
        where = f"{latitude:.8f}\t{longitude:.8f}\t{height:.3f}"
        lines.append(f"{number}\t{current}\t{frame}\t{_WAYPOINT}\t0\t0\t0\t0\t{where}\t1")
    return "\n".join(lines) + "\n"


MISSIONS: Mapping[str, Callable[[Point, Sequence[Point]], str]] = {
    "plan": as_plan,
    "waypoints": as_waypoints,
}
"""Function that writes each format; the key is the format's name and the suffix of its files."""
