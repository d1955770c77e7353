"""Maps out of messages nav_msgs/OccupancyGrid, of an installed ROS or of a bag."""

from __future__ import annotations

from typing import Any

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.messages.conversions import heading_of, stamp_ns
from gp_active_sensing.topology.kept_maps import GridMap
from gp_active_sensing.topology.occupancy import OccupancyGrid

__all__ = ["MAP_TYPE", "read_map"]

MAP_TYPE = "nav_msgs/msg/OccupancyGrid"
_LEVEL = 1e-3
"""Sine of half the angle by which a map may be tilted out of the plane."""


def read_map(message: Any) -> GridMap:
    """Return the map of a message.

    Args:
        message: nav_msgs/OccupancyGrid, or anything with its fields.

    Raises:
        MapError: no frame, sizes that do not fit, values that are none, an origin that is tilted.
    """
    info, frame = message.info, str(message.header.frame_id).lstrip("/")
    if not frame:
        msg = (
            "occupancy grid: its header.frame_id is empty, expected the frame that poses and "
            "waypoints are in, such as map; have its publisher name it"
        )
        raise MapError(msg)
    rows, columns = int(info.height), int(info.width)
    values = np.asarray(message.data, dtype=np.int8)
    if rows * columns != values.size or not values.size:
        msg = (
            f"occupancy grid: expected {columns} × {rows} = {rows * columns} cells as its info "
            f"says, got {values.size}"
        )
        raise MapError(msg)
    where, turn = info.origin.position, info.origin.orientation
    finite = np.isfinite([turn.x, turn.y, turn.z, turn.w]).all()
    if not finite or abs(float(turn.x)) > _LEVEL or abs(float(turn.y)) > _LEVEL:
        msg = (
            "occupancy grid: expected an origin that is turned about z only, got the quaternion "
            f"({turn.x:g}, {turn.y:g}, {turn.z:g}, {turn.w:g})"
        )
        raise MapError(msg)
    yaw = heading_of(turn.x, turn.y, turn.z, turn.w)
    grid = OccupancyGrid(
        values.reshape(rows, columns),
        # A float32 in the message: 0.05, not 0.05000000074505806.
        float(str(np.float32(info.resolution))),
        (float(where.x), float(where.y)),
        yaw if np.isfinite(yaw) else 0.0,
    )
    return GridMap(grid, frame, stamp_ns(message.header.stamp))
