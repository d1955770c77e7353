"""Convert nav_msgs/OccupancyGrid messages, from an installed ROS or from a bag, to maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.messages.conversions import heading_of, stamp_ns, unit_quaternion
from gp_active_sensing.records.run_map import GridMap
from gp_active_sensing.topology.geometry import OccupancyGrid

MAP_TYPE = "nav_msgs/msg/OccupancyGrid"
MOST_CELLS = 25_000_000
"""Largest number of cells of a map, 5000 × 5000; reading such a map takes 0.9 GB of memory."""
_HEAD = 65_536
"""Largest size of all fields of a message except the cells [bytes]."""
_LEVEL = 1e-3
"""Sine of half the largest accepted tilt of a map."""


def check_size(data: bytes) -> None:
    """Raise MapError if a serialised message is too large for a map of `MOST_CELLS` cells."""
    if len(data) > MOST_CELLS + _HEAD:
        msg = (
            f"occupancy grid: the message has {len(data)} bytes, expected a map of at most "
            f"{MOST_CELLS} cells; publish a coarser map, or a part of it"
        )
        raise MapError(msg)


def read_map(message: Any) -> GridMap:
    """Return the map of an object with the fields of nav_msgs/OccupancyGrid.

    Raises:
        MapError: the message has no frame, inconsistent sizes, invalid values or a tilted origin.
    """
    info, frame = message.info, str(message.header.frame_id).lstrip("/")
    if not frame:
        msg = (
            "occupancy grid: its header.frame_id is empty, expected the frame that poses and "
            "waypoints are in, such as map; have its publisher name it"
        )
        raise MapError(msg)
    rows, columns = int(info.height), int(info.width)
    if rows * columns > MOST_CELLS:
        msg = (
            f"occupancy grid: {columns} × {rows} cells are more than {MOST_CELLS}; publish a "
            "coarser map, or a part of it"
        )
        raise MapError(msg)
    values = np.asarray(message.data, dtype=np.int8)
    if rows * columns != values.size or not values.size:
        msg = (
            f"occupancy grid: expected {columns} × {rows} = {rows * columns} cells as its info "
            f"says, got {values.size}"
        )
        raise MapError(msg)
    where, turn = info.origin.position, info.origin.orientation
    given = np.array([turn.x, turn.y, turn.z, turn.w], dtype=np.float64)
    x, y, z, w = unit_quaternion(*given.tolist()) if given.any() else (0.0, 0.0, 0.0, 1.0)
    if not max(abs(x), abs(y)) <= _LEVEL or not np.isfinite(given).all():
        msg = (
            "occupancy grid: expected an origin that is turned about z only, got the quaternion "
            f"({turn.x:g}, {turn.y:g}, {turn.z:g}, {turn.w:g})"
        )
        raise MapError(msg)
    grid = OccupancyGrid(
        values.reshape(rows, columns),
        # Undo the float32 of the message: 0.05 instead of 0.05000000074505806.
        float(str(np.float32(info.resolution))),
        (float(where.x), float(where.y)),
        heading_of(x, y, z, w),
    )
    return GridMap(grid, frame, stamp_ns(message.header.stamp))
