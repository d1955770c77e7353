"""Convert an expert's questions and answers to and from ``sensor_msgs/PointCloud2``.

A question asks for the values at some places. It has a point for each place, with x, y, z [m] in
the map's frame and NaN as value and variance. An answer has the same points with value and
variance. This module does not import ROS. It accepts any object with the fields of the message,
such as a message from a bag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gp_active_sensing.messages.conversions import stamp_ns
from gp_active_sensing.mission.inbox import RawAnswer
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Reading

FIELDS = ("x", "y", "z", "value", "variance")
Points: TypeAlias = npt.NDArray[np.void]
"""Array (k,) of points with the columns `FIELDS`, float64."""
_POINTS = np.dtype([(name, "f8") for name in FIELDS])
_KINDS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
"""numpy type of each code of ``sensor_msgs/PointField``."""
_CODES = {kind: code for code, kind in _KINDS.items()}
_NEAR = 1e-3
"""Largest rounding error of positions sent as float32 [m]."""


@dataclass(frozen=True)
class Column:
    """Field of the points: its name, its offset in a point [bytes], and its ``PointField`` code."""

    name: str
    offset: int
    code: int


def query_points(topology: Topology, places: Sequence[int]) -> Points:
    """Return the points of a question to an expert: positions, and NaN as value and variance."""
    points = np.full(len(places), np.nan, dtype=_POINTS)
    points["x"], points["y"] = topology.positions[list(places)].T
    points["z"] = 0.0 if topology.heights is None else topology.heights[list(places)]
    return points


def answer_points(topology: Topology, readings: Sequence[Reading]) -> Points:
    """Return the points of an expert's answer; every reading must have a place."""
    points = query_points(topology, [r.location for r in readings if r.location is not None])
    points["value"] = [r.value for r in readings]
    points["variance"] = [
        np.nan if r.noise_variance is None else r.noise_variance for r in readings
    ]
    return points


def layout(points: Points) -> tuple[tuple[Column, ...], bytes]:
    """Return the fields and the packed little-endian data of a message with `points`."""
    xyz = np.array([points[name] for name in "xyz"])
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.abs(xyz - xyz.astype("f4").astype("f8"))
    kind = "f4" if (moved[~np.isnan(xyz)] <= _NEAR).all() else "f8"
    packed = np.dtype([(n, f"<{kind if n in 'xyz' else 'f8'}") for n in FIELDS])
    offsets = np.cumsum([0, *(packed[n].itemsize for n in FIELDS)])
    columns = tuple(
        Column(name, int(offset), _CODES[packed[name].str[1:]])
        for name, offset in zip(FIELDS, offsets, strict=False)
    )
    return columns, points.astype(packed).tobytes()


def points_of(message: Any) -> Points:
    """Return the points of a message, which may have further fields and any byte order.

    Raises:
        ValueError: the message lacks a field, or its sizes are inconsistent.
    """
    columns = {str(f.name): f for f in message.fields}
    missing = [name for name in FIELDS if name not in columns]
    if missing:
        had = ", ".join(columns)[:200] or "none"
        msg = f"expected the fields {', '.join(FIELDS)}; {', '.join(missing)} missing, got {had}"
        raise ValueError(msg)
    step, width, height = (int(v) for v in (message.point_step, message.width, message.height))
    row = int(message.row_step) or step * width
    data = memoryview(bytes(message.data))
    if width * height == 0:
        return np.zeros(0, dtype=_POINTS)
    if step <= 0 or row < step * width or len(data) < row * (height - 1) + step * width:
        msg = (
            f"expected {height} rows of {width} points of {step} bytes ({row} a row), got "
            f"{len(data)} bytes"
        )
        raise ValueError(msg)
    order = ">" if message.is_bigendian else "<"
    points = np.zeros((height, width), dtype=_POINTS)
    for name in FIELDS:
        field = columns[name]
        kind = _KINDS.get(int(field.datatype))
        offset = int(field.offset)
        if kind is None or int(field.count) > 1:
            msg = f"field {name}: expected one number, got {field.count} of type {field.datatype}"
            raise ValueError(msg)
        column = np.dtype(order + kind)
        if offset + column.itemsize > step:
            msg = f"field {name}: at byte {offset} of a point of {step} bytes"
            raise ValueError(msg)
        points[name] = np.ndarray(
            (height, width), column, buffer=data, offset=offset, strides=(row, step)
        )
    return points.reshape(-1)


def answers_of(message: Any, most: int | None = None) -> list[RawAnswer]:
    """Return the answers in a message; invalid numbers are kept for the caller to reject.

    `most` is the largest accepted number of points; None = no limit.

    Raises:
        ValueError: the message has too many points, lacks a field, or has inconsistent sizes.
    """
    count = int(message.width) * int(message.height)
    if most is not None and count > most:
        msg = f"expected at most {most} points, one a place of the map, got {count}"
        raise ValueError(msg)
    points = points_of(message)
    stamp, frame = stamp_ns(message.header.stamp), str(message.header.frame_id)
    return [
        RawAnswer(stamp, frame, x, y, value, variance, z)
        for x, y, z, value, variance in points.tolist()
    ]
