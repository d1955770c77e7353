"""Convert results to messages. Free functions; no node, no executor."""

from __future__ import annotations

import array
import math
from collections.abc import Mapping, Sequence

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Float64MultiArray, Header, MultiArrayDimension

from gp_active_sensing.belief import HyperParameters
from gp_active_sensing.kernels import NONE
from gp_active_sensing.messages.point_cloud import Points, layout
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.geometry import route_geometry
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.wording import shown

__all__ = [
    "diagnostic_status",
    "field_cloud",
    "plan_path",
    "time_of",
    "values_cloud",
    "waypoint_message",
    "weights_message",
]


def time_of(stamp_ns: int) -> Time:
    """Return nanoseconds as a message."""
    seconds, nanoseconds = divmod(max(0, int(stamp_ns)), 1_000_000_000)
    return Time(sec=seconds, nanosec=nanoseconds)


def waypoint_message(
    goal: Sequence[float] | FloatArray, frame: str, stamp_ns: int, altitude: float = 0.0
) -> PoseStamped:
    """Return a waypoint.

    Args:
        goal: (3,) x, y [m] and heading [rad].
        frame: of the position.
        stamp_ns: when it was decided.
        altitude: z [m].
    """
    message = PoseStamped(header=Header(stamp=time_of(stamp_ns), frame_id=frame))
    message.pose.position.x = float(goal[0])
    message.pose.position.y = float(goal[1])
    message.pose.position.z = altitude
    message.pose.orientation.z = math.sin(0.5 * float(goal[2]))
    message.pose.orientation.w = math.cos(0.5 * float(goal[2]))
    return message


def plan_path(
    topology: Topology, places: Sequence[int], stamp_ns: int, altitude: float = 0.0
) -> Path:
    """Return the way over some places in order, along the map's geometry.

    Each pose heads for the next one, the last as its place's waypoint does.
    """
    path = Path(header=Header(stamp=time_of(stamp_ns), frame_id=topology.frame))
    line = route_geometry(topology, places)
    headings = [math.atan2(dy, dx) for dx, dy in np.diff(line, axis=0)]
    headings += [float(topology.goals[place][2]) for place in places[-1:]]
    path.poses = [
        waypoint_message((float(x), float(y), heading), topology.frame, stamp_ns, altitude)
        for (x, y), heading in zip(line, headings, strict=True)
    ]
    return path


def field_cloud(
    topology: Topology, mean: FloatArray, std: FloatArray, stamp_ns: int
) -> PointCloud2:
    """Return the field at every place as points with x, y, z, mean, std (float32).

    Args:
        topology: the map.
        mean: (n,) in the unit of the readings.
        std: (n,) in the same unit.
        stamp_ns: time of the belief.
    """
    names = ("x", "y", "z", "mean", "std")
    table = np.zeros((topology.n, len(names)), dtype="<f4")
    table[:, :2] = topology.positions
    with np.errstate(over="ignore"):  # beyond a float32 is infinite, and said by is_dense
        table[:, 3] = mean
        table[:, 4] = std
    return PointCloud2(
        header=Header(stamp=time_of(stamp_ns), frame_id=topology.frame),
        height=1,
        width=topology.n,
        fields=[
            PointField(name=name, offset=4 * i, datatype=PointField.FLOAT32, count=1)
            for i, name in enumerate(names)
        ],
        is_bigendian=False,
        point_step=4 * len(names),
        row_step=4 * len(names) * topology.n,
        # rclpy copies an array as a block and bytes element by element.
        data=array.array("B", table.tobytes()),
        is_dense=bool(np.isfinite(table).all()),
    )


def values_cloud(points: Points, header: Header) -> PointCloud2:
    """Return points with x, y, z, value and variance as a question to an expert, or its answer.

    Args:
        points: see `messages.point_cloud`.
        header: frame, and time of the question or of the values.
    """
    columns, data = layout(points)
    step = len(data) // len(points) if len(points) else 0
    return PointCloud2(
        header=header,
        height=1,
        width=len(points),
        fields=[
            PointField(name=c.name, offset=c.offset, datatype=c.code, count=1) for c in columns
        ],
        is_bigendian=False,
        point_step=step,
        row_step=len(data),
        data=array.array("B", data),
        is_dense=all(bool(np.isfinite(points[c.name]).all()) for c in columns),
    )


def weights_message(
    weights: Sequence[float] | FloatArray, hyperparameters: Sequence[HyperParameters]
) -> Float64MultiArray:
    """Return the belief over hyper-parameters; each dimension's label names one candidate.

    A dimension of size 1 a candidate is how labels fit into this message: entry i of ``data``
    belongs to ``layout.dim[i].label``, such as ``length_scale=150 signal_std=14 noise_std=2``, of a
    belief over kernels ``kernel=PER+SE length_scale=150 …``, and ``… place_std=3`` where places
    have something of their own and ``… attribute_std=2`` where their attributes explain a part.
    Under ``kernel=none`` no place tells of another, and there is no length-scale.
    """
    message = Float64MultiArray()
    for candidate in hyperparameters:
        scales = "/".join(f"{ell:g}" for ell in candidate.length_scales)
        kernel = f"kernel={candidate.kernel} " if candidate.kernel else ""
        scales = "" if candidate.kernel == NONE else f"length_scale={scales} "
        label = (
            f"{kernel}{scales}signal_std={candidate.signal_std:g} "
            f"noise_std={candidate.noise_std:g}"
            f"{f' place_std={candidate.place_std:g}' if candidate.place_std else ''}"
            f"{f' attribute_std={candidate.attribute_std:g}' if candidate.attribute_std else ''}"
        )
        message.layout.dim.append(MultiArrayDimension(label=label, size=1, stride=1))
    message.data = array.array("d", [float(w) for w in weights])
    return message


def diagnostic_status(
    name: str, hardware_id: str, level: int, summary: str, values: Mapping[str, object]
) -> DiagnosticStatus:
    """Return a status with its values in words; `level` is 0 ok, 1 warning, 2 error."""
    status = DiagnosticStatus(name=name, hardware_id=hardware_id, message=summary)
    status.level = bytes([level])
    status.values = [KeyValue(key=key, value=shown(value)) for key, value in values.items()]
    return status
