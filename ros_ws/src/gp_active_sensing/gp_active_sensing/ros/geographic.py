"""Waypoints in degrees, for autopilots that take positions on Earth."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from std_msgs.msg import Header

from gp_active_sensing.errors import ConfigError, MissingDependencyError
from gp_active_sensing.mission.config import GEOGRAPHIC
from gp_active_sensing.ros.to_messages import find_message_type
from gp_active_sensing.topology.projection import geographic_of, local_system

__all__ = ["GeographicWaypoints"]

_EITHER = ("geographic_msgs/msg/GeoPoseStamped", "sensor_msgs/msg/NavSatFix")
"""Types that `GEOGRAPHIC` stands for; the first one that is installed."""
_ABOVE_HOME = 6
"""FRAME_GLOBAL_REL_ALT of ardupilot_msgs/GlobalPosition and mavros_msgs/GlobalPositionTarget."""
_POSITION_ONLY = 0b1101_1111_1000
"""Their type_mask: velocity, acceleration, yaw and yaw rate are to be ignored."""
_MAP_FRAME = "map"
"""The only frame that ArduPilot takes such a message in."""


class GeographicWaypoints:
    """Converts waypoints of the map into messages with latitude and longitude.

    Args:
        type: message type, or `GEOGRAPHIC`.
        origin: latitude and longitude of the map's origin [degree]; None = not known.

    Raises:
        ConfigError: the map does not say where on Earth it lies.
        MissingDependencyError: the message type or pyproj is not installed.
    """

    def __init__(self, type: str, origin: tuple[float, ...] | None) -> None:
        if origin is None:
            msg = (
                f"waypoint.type: {type} needs the place of the map on Earth, and the map has none: "
                "give pose.datum: [latitude, longitude] of its origin, or a map in degrees"
            )
            raise ConfigError(msg)
        self.kind = _kind_of(type)
        self._system = local_system((origin[1], origin[0]))
        self._degrees(0.0, 0.0)  # says now, and not with the first waypoint, what is missing

    def convert(self, waypoint: PoseStamped) -> Any:
        """Return a waypoint in degrees; its z becomes the altitude [m]."""
        here = waypoint.pose.position
        longitude, latitude = self._degrees(here.x, here.y)
        stamp, frame = waypoint.header.stamp, waypoint.header.frame_id
        message = self.kind(header=Header(stamp=stamp, frame_id=frame))
        if hasattr(message, "pose"):
            message.pose.orientation = waypoint.pose.orientation
        point = message.pose.position if hasattr(message, "pose") else message
        point.latitude, point.longitude, point.altitude = latitude, longitude, here.z
        if hasattr(message, "coordinate_frame"):
            message.header.frame_id = _MAP_FRAME
            message.coordinate_frame, message.type_mask = _ABOVE_HOME, _POSITION_ONLY
        return message

    def _degrees(self, x: float, y: float) -> tuple[float, float]:
        [(longitude, latitude)] = np.asarray(
            geographic_of([(x, y)], self._system, where="waypoint.type")
        ).tolist()
        return longitude, latitude


def _kind_of(type: str) -> Any:
    if type != GEOGRAPHIC:
        return find_message_type(type)
    try:
        return find_message_type(_EITHER[0])
    except MissingDependencyError:
        return find_message_type(_EITHER[1])
