"""Convert results, maps and probes to messages; find message classes by their names."""

from __future__ import annotations

import array
import importlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point, PoseStamped
from nav_msgs.msg import OccupancyGrid, Path
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import ColorRGBA, Float64MultiArray, Header, MultiArrayDimension
from visualization_msgs.msg import Marker, MarkerArray

from gp_active_sensing.belief import HyperParameters
from gp_active_sensing.errors import ConfigError, MissingDependencyError, suggest
from gp_active_sensing.export.lattice import Lattice
from gp_active_sensing.export.occupancy import Limits, levels_of
from gp_active_sensing.kernels import NONE
from gp_active_sensing.messages.conversions import split_type_name
from gp_active_sensing.messages.point_cloud import Points, layout
from gp_active_sensing.mission.config import GEOGRAPHIC
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.lookup import route_geometry
from gp_active_sensing.topology.projection import geographic_of, local_system
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.wording import shown


def find_message_type(name: str) -> Any:
    """Return a message class by its name, such as ``sensor_msgs/msg/Temperature``.

    Raises:
        ConfigError: the name is not valid, or the message does not exist.
        MissingDependencyError: the package is not installed.
    """
    package, short = split_type_name(name)
    try:
        module = importlib.import_module(f"{package}.msg")
    except ImportError as error:
        msg = (
            f"message type {name!r}: the package {package} cannot be imported ({error}); install "
            f"it (ros-$ROS_DISTRO-{package.replace('_', '-')}) and source its workspace"
        )
        raise MissingDependencyError(msg) from error
    cls = getattr(module, short, None)
    if cls is None:
        known = [n for n in dir(module) if not n.startswith("_")]
        msg = f"message type {name!r}: {package} has no message {short}.{suggest(short, known)}"
        raise ConfigError(msg)
    return cls


def type_name(message_type: Any) -> str:
    """Return the name of a message class, such as ``sensor_msgs/msg/Temperature``."""
    return f"{message_type.__module__.split('.')[0]}/msg/{message_type.__name__}"


class RosTypes:
    """Message types of the installed ROS, as `messages.conversions.MessageTypes` needs them."""

    def fields(self, name: str) -> Mapping[str, str]:
        """Return the fields of a message type and their types."""
        return dict(find_message_type(name).get_fields_and_field_types())


def time_of(stamp_ns: int) -> Time:
    """Convert a time [ns] to a ROS message."""
    seconds, nanoseconds = divmod(max(0, int(stamp_ns)), 1_000_000_000)
    return Time(sec=seconds, nanosec=nanoseconds)


def waypoint_message(
    goal: Sequence[float] | FloatArray, frame: str, stamp_ns: int, altitude: float = 0.0
) -> PoseStamped:
    """Return the message of a waypoint at an altitude [m].

    `goal` (3,) has x, y [m] and the heading [rad].
    """
    message = PoseStamped(header=Header(stamp=time_of(stamp_ns), frame_id=frame))
    message.pose.position.x = float(goal[0])
    message.pose.position.y = float(goal[1])
    message.pose.position.z = altitude
    message.pose.orientation.z = math.sin(0.5 * float(goal[2]))
    message.pose.orientation.w = math.cos(0.5 * float(goal[2]))
    return message


def plan_path(
    topology: Topology,
    places: Sequence[int],
    stamp_ns: int,
    altitude: float = 0.0,
    line: FloatArray | None = None,
) -> Path:
    """Return the route over `places` as a path that follows the map's geometry.

    The heading of each pose is the direction to the next pose. The last pose has the heading of the
    last place's waypoint. If `line` (k, 2) [m] is given, the path follows this curve instead of the
    map's geometry.
    """
    path = Path(header=Header(stamp=time_of(stamp_ns), frame_id=topology.frame))
    curved = line is not None
    line = route_geometry(topology, places) if line is None else line
    up = np.zeros(len(line))
    if topology.heights is not None and not curved:
        line, up = topology.positions[list(places)], topology.heights[list(places)]
    headings = [math.atan2(dy, dx) for dx, dy in np.diff(line, axis=0)]
    if curved:
        headings += headings[-1:] or [0.0]
    else:
        headings += [float(topology.goals[place][2]) for place in places[-1:]]
    path.poses = [
        waypoint_message((float(x), float(y), heading), topology.frame, stamp_ns, altitude + z)
        for (x, y), heading, z in zip(line, headings, up.tolist(), strict=True)
    ]
    return path


def field_cloud(
    topology: Topology, mean: FloatArray, std: FloatArray, stamp_ns: int
) -> PointCloud2:
    """Return the field as points that have x, y, z, mean and std (float32).

    `mean` (n,) and `std` (n,) are the mean and the standard deviation at each place.
    """
    names = ("x", "y", "z", "mean", "std")
    table = np.zeros((topology.n, len(names)), dtype="<f4")
    table[:, : topology.points.shape[1]] = topology.points
    with np.errstate(over="ignore"):  # values beyond float32 become infinite, and is_dense false
        table[:, 3], table[:, 4] = mean, std
    fields = [(name, 4 * i, PointField.FLOAT32) for i, name in enumerate(names)]
    header = Header(stamp=time_of(stamp_ns), frame_id=topology.frame)
    return _cloud(header, fields, topology.n, table.tobytes(), bool(np.isfinite(table).all()))


def occupancy_grid(
    lattice: Lattice, values: FloatArray, limits: Limits, frame: str, stamp_ns: int
) -> OccupancyGrid:
    """Return a grid of `values` (n,), scaled to 0 … 100; -1 = cell without a place."""
    stamp = time_of(stamp_ns)
    message = OccupancyGrid(header=Header(stamp=stamp, frame_id=frame))
    message.info.map_load_time = stamp
    message.info.resolution = float(lattice.cell[0])
    message.info.height, message.info.width = lattice.shape
    message.info.origin.position.x, message.info.origin.position.y = lattice.corner
    message.info.origin.orientation.w = 1.0
    message.data = array.array("b", levels_of(lattice, values, limits).tobytes())
    return message


def limits_message(limits: Mapping[str, Limits]) -> Float64MultiArray:
    """Return the field values to which the cell values 0 and 100 of each grid correspond.

    Entry i of ``data`` has the label ``layout.dim[i].label``. In the grid ``<name>``, the entry
    ``<name>_low`` corresponds to the cell value 0, and ``<name>_high`` to the cell value 100.
    """
    message = Float64MultiArray()
    for name, (low, high) in limits.items():
        for label, value in ((f"{name}_low", low), (f"{name}_high", high)):
            message.layout.dim.append(MultiArrayDimension(label=label, size=1, stride=1))
            message.data.append(float(value))
    return message


def values_cloud(points: Points, header: Header) -> PointCloud2:
    """Return the message that contains a query to an expert, or the expert's answer.

    `points` are built by `messages.point_cloud`. The stamp of `header` is the time of the query, or
    the time for which the answer holds.
    """
    columns, data = layout(points)
    fields = [(c.name, c.offset, c.code) for c in columns]
    dense = all(bool(np.isfinite(points[c.name]).all()) for c in columns)
    return _cloud(header, fields, len(points), data, dense)


def _cloud(
    header: Header, fields: Sequence[tuple[str, int, int]], count: int, data: bytes, dense: bool
) -> PointCloud2:
    return PointCloud2(
        header=header,
        height=1,
        width=count,
        fields=[PointField(name=n, offset=o, datatype=kind, count=1) for n, o, kind in fields],
        is_bigendian=False,
        point_step=len(data) // count if count else 0,
        row_step=len(data),
        # rclpy copies an array as one block, but bytes element by element.
        data=array.array("B", data),
        is_dense=dense,
    )


def weights_message(
    weights: Sequence[float] | FloatArray, hyperparameters: Sequence[HyperParameters]
) -> Float64MultiArray:
    """Return the weights of the hyperparameter candidates, each with a label.

    Entry i of ``data`` belongs to ``layout.dim[i].label``, such as ``length_scale=150 signal_std=14
    noise_std=2``. Each dimension has size 1. If the belief has several kernels, the label begins
    with the kernel: ``kernel=PER+SE length_scale=150 …``. The label of a candidate without spatial
    correlation has ``kernel=none`` and no length-scale. A label ends with the further components of
    the model. ``place_std=3`` is a variation between places. ``attribute_std=2`` is the effect of
    the places' attributes on the mean. ``long_std=1`` is a long-range component.
    ``amplitude_slopes=0.35/0`` is an amplitude that changes along x and y.
    """
    message = Float64MultiArray()
    for candidate in hyperparameters:
        scales = "/".join(f"{ell:g}" for ell in candidate.length_scales)
        slopes = "/".join(f"{slope:g}" for slope in candidate.amplitude_slopes)
        kernel = f"kernel={candidate.kernel} " if candidate.kernel else ""
        scales = "" if candidate.kernel == NONE else f"length_scale={scales} "
        label = (
            f"{kernel}{scales}signal_std={candidate.signal_std:g} "
            f"noise_std={candidate.noise_std:g}"
            f"{f' place_std={candidate.place_std:g}' if candidate.place_std else ''}"
            f"{f' attribute_std={candidate.attribute_std:g}' if candidate.attribute_std else ''}"
            f"{f' long_std={candidate.long_std:g}' if candidate.long_std else ''}"
            f"{f' amplitude_slopes={slopes}' if slopes else ''}"
        )
        message.layout.dim.append(MultiArrayDimension(label=label, size=1, stride=1))
    message.data = array.array("d", [float(w) for w in weights])
    return message


def diagnostic_status(
    name: str, hardware_id: str, level: int, summary: str, values: Mapping[str, object]
) -> DiagnosticStatus:
    """Return a status, with its values as text. `level`: 0 = ok, 1 = warning, 2 = error."""
    status = DiagnosticStatus(name=name, hardware_id=hardware_id, message=summary)
    status.level = bytes([level])
    status.values = [KeyValue(key=key, value=shown(value)) for key, value in values.items()]
    return status


Colour = tuple[float, float, float, float]

MARKS: dict[str, tuple[Colour, float]] = {
    "topology": ((0.55, 0.55, 0.6, 0.6), 1.0),
    "visited": ((0.15, 0.5, 0.9, 1.0), 2.0),
    "set_aside": ((0.35, 0.35, 0.4, 1.0), 2.0),
    "blocked": ((0.85, 0.1, 0.15, 1.0), 3.0),
    "planned": ((0.95, 0.6, 0.1, 1.0), 3.0),
    "next": ((1.0, 0.3, 0.0, 1.0), 5.0),
}
"""Colour and relative width of a marker, by kind of place; later kinds are drawn on top."""

_ROAD_METRES = 3.0
"""Width at which a road is drawn [m], per unit of relative width in `MARKS`."""
_HERE: Colour = (1.0, 0.25, 0.9, 1.0)  # a colour that the field does not use
_GONE: Colour = (0.5, 0.5, 0.5, 1.0)
_LIFETIME_SECONDS = 3
"""Time for which a probe's marker is shown after its message [s]."""


def map_markers(
    topology: Topology, places: Mapping[str, Sequence[int]], stamp_ns: int
) -> MarkerArray:
    """Return one marker for the whole map, and one marker for the places of each kind in `MARKS`.

    If a kind has no places, its marker is deleted, since RViz warns of empty markers.
    """
    header = Header(stamp=time_of(stamp_ns), frame_id=topology.frame)
    lines = any(len(topology.geometry(place)) > 1 for place in range(topology.n))
    unit = _ROAD_METRES if lines else 0.1 * _spacing(topology)
    markers = []
    for number, (kind, (colour, width)) in enumerate(MARKS.items()):
        found = range(topology.n) if kind == "topology" else places.get(kind, ())
        marker = Marker(header=header, ns=kind, id=number)
        marker.action = Marker.ADD if found else Marker.DELETE
        marker.type = Marker.LINE_LIST if lines else Marker.POINTS
        marker.pose.orientation.w = 1.0
        marker.scale.x = marker.scale.y = width * unit
        marker.color = _colour(colour)
        marker.points = _points(topology, found, 0.1 * (number - len(MARKS)))
        markers.append(marker)
    return MarkerArray(markers=markers)


def _points(topology: Topology, places: Iterable[int], z: float) -> list[Point]:
    points: list[Point] = []
    for place in places:
        up = z if topology.heights is None else z + float(topology.heights[place])
        line = [Point(x=float(x), y=float(y), z=up) for x, y in topology.geometry(place)]
        if len(line) > 1:
            points.extend(end for step in itertools.pairwise(line) for end in step)
        else:
            points.extend(line)
    return points


def probe_markers(topology: Topology, probes: Iterable[tuple[str, Pose, bool]]) -> MarkerArray:
    """Return a marker and a label for each probe: an arrow, or a sphere if it has no heading.

    Each entry of `probes` has the name ("" for a single probe), the pose, and True if the probe
    takes part in the mission.
    """
    size = _spacing(topology)
    markers = []
    for number, (name, pose, takes_part) in enumerate(probes):
        header = Header(stamp=time_of(pose.stamp_ns), frame_id=topology.frame)
        marker = Marker(header=header, ns="probe", id=number, action=Marker.ADD)
        marker.pose.position.x, marker.pose.position.y = pose.x, pose.y
        marker.pose.position.z = 0.1 + (0.0 if topology.heights is None else pose.z)
        marker.color = _colour(_HERE if takes_part else _GONE)
        marker.lifetime.sec = _LIFETIME_SECONDS
        if math.isfinite(pose.heading):
            marker.type = Marker.ARROW
            marker.pose.orientation.z = math.sin(0.5 * pose.heading)
            marker.pose.orientation.w = math.cos(0.5 * pose.heading)
            marker.scale.x, marker.scale.y, marker.scale.z = size, 0.35 * size, 0.35 * size
        else:
            marker.type = Marker.SPHERE
            marker.pose.orientation.w = 1.0
            marker.scale.x = marker.scale.y = marker.scale.z = 0.5 * size
        markers.append(marker)
        if name:
            markers.append(_label(marker, name, size))
    return MarkerArray(markers=markers)


def _label(arrow: Marker, text: str, size: float) -> Marker:
    marker = Marker(header=arrow.header, ns="name", id=arrow.id, action=Marker.ADD, text=text)
    marker.type = Marker.TEXT_VIEW_FACING
    marker.pose.position.x = arrow.pose.position.x
    marker.pose.position.y = arrow.pose.position.y + 0.8 * size
    marker.pose.position.z = arrow.pose.position.z
    marker.pose.orientation.w = 1.0
    marker.scale.z = 0.5 * size
    marker.color = arrow.color
    marker.lifetime = arrow.lifetime
    return marker


def _colour(colour: Colour) -> ColorRGBA:
    red, green, blue, alpha = colour
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def _spacing(topology: Topology) -> float:
    """Return the approximate distance between neighbouring places [m]."""
    extent = np.ptp(topology.positions, axis=0)
    return max(float(np.max(extent)) / max(1.0, math.sqrt(topology.n)), 1e-3)


# -- waypoints in degrees --------------------------------------------------------------------------

_EITHER = ("geographic_msgs/msg/GeoPoseStamped", "sensor_msgs/msg/NavSatFix")
"""Message types for `GEOGRAPHIC`: the second type is used if the first is not installed."""
_ABOVE_HOME = 6
"""Value that FRAME_GLOBAL_REL_ALT has in the messages of ArduPilot and MAVROS."""
_POSITION_ONLY = 0b1101_1111_1000
"""Value of type_mask with which the receiver ignores velocity, acceleration and yaw."""
_MAP_FRAME = "map"
"""The only frame_id that ArduPilot accepts in a GlobalPosition message."""


class GeographicWaypoints:
    """Converter of waypoints to messages that have a latitude and a longitude.

    Args:
        type: name of the message type; `GEOGRAPHIC` = GeoPoseStamped if installed, else NavSatFix.
        origin: latitude and longitude of the map's origin [degree]; None = unknown.

    Raises:
        ConfigError: the position of the map on Earth is unknown.
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
        self._degrees(0.0, 0.0)  # raises an error now and not at the first waypoint

    def convert(self, waypoint: PoseStamped) -> Any:
        """Convert a waypoint to latitude and longitude; its z becomes the altitude [m]."""
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
