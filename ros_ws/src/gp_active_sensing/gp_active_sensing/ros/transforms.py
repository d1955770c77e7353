"""Use the transforms of tf for poses of probes, changes of frames, and positions of sensors.

tf2_ros has no wheel on PyPI, so it is imported only when transforms are needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import math
from collections.abc import Callable
from typing import Any

from rclpy.time import Time

from gp_active_sensing.errors import MissingDependencyError, ReadingError
from gp_active_sensing.messages.conversions import heading_of, stamp_ns
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.qos import TopicMonitor

_UNIT = 0.01
"""Tolerance of the squared length of a rotation quaternion; tf2 has the same tolerance."""


class TfPoses(TopicMonitor):
    """Monitor of the poses of one frame in tf; it works like the monitor of a topic."""

    what = "transform"

    def __init__(self, parent: str, child: str, take: Callable[[Any, float], None]) -> None:
        super().__init__("a transform", take)
        self.child = child
        self.newest_ns = -1
        self.why = "nothing has been looked up yet"
        self._name = f"{parent} <- {child}"

    @property
    def name(self) -> str:
        """Names of the target frame and the source frame."""
        return self._name


class TransformBuffer:
    """Buffer of tf2_ros for the transforms on ``/tf`` and ``/tf_static``.

    Raises:
        MissingDependencyError: tf2_ros is not installed.
    """

    def __init__(self, node: GuardedNode, need: str, otherwise: str = "") -> None:
        try:  # optional dependency
            tf2 = importlib.import_module("tf2_ros")
        except ImportError as error:
            msg = (
                f"{need} needs the Python package tf2_ros, which cannot be imported ({error}): "
                f"install ros-$ROS_DISTRO-tf2-ros-py and source its workspace{otherwise}"
            )
            raise MissingDependencyError(msg) from error
        self.error: type[Exception] = tf2.TransformException
        """Class of the error that tf2 raises if it has no transform."""
        self._buffer = tf2.Buffer()
        self._listener = tf2.TransformListener(self._buffer, node)
        for subscription in ("tf_sub", "tf_static_sub"):
            node.own(getattr(self._listener, subscription))

    def newest(self, target: str, source: str) -> Any:
        """Return the newest transform from frame `source` to frame `target`; may raise `error`."""
        return self._buffer.lookup_transform(target, source, Time())

    def at(self, target: str, source: str, stamp_ns: int) -> Any:
        """Return the transform at a time [ns], or else the newest transform; may raise `error`.

        A pose may be newer than all transforms, if a localisation updates them rarely.
        """
        if stamp_ns > 0:
            with contextlib.suppress(self.error):
                return self._buffer.lookup_transform(target, source, Time(nanoseconds=stamp_ns))
        return self.newest(target, source)


def moved(pose: Pose, transform: Any, frame: str) -> Pose:
    """Transform a pose to another frame.

    The pose's variance is unchanged, since a rotation does not change the trace of a covariance.

    Raises:
        ReadingError: the transform's rotation is invalid.
    """
    place, turn = transform.transform.translation, turn_of(transform)
    cos, sin = math.cos(turn), math.sin(turn)
    return dataclasses.replace(
        pose,
        frame=frame,
        x=place.x + cos * pose.x - sin * pose.y,
        y=place.y + sin * pose.x + cos * pose.y,
        heading=math.remainder(pose.heading + turn, math.tau),
        z=place.z + pose.z,
    )


class Transforms:
    """Periodic lookup of the probes' poses in tf.

    Args:
        parent: frame of the map.
        rate: rate at which the poses are looked up [Hz, real time].

    Raises:
        MissingDependencyError: tf2_ros is not installed.
    """

    def __init__(self, node: GuardedNode, parent: str, rate: float) -> None:
        self._buffer = TransformBuffer(
            node,
            "pose.type: tf",
            "; or have the pose published as a message, such as geometry_msgs/msg/PoseStamped",
        )
        self._parent = parent
        self._streams: list[TfPoses] = []
        node.own(node.create_timer(1.0 / rate, self.look_up))

    def add(self, child: str, take: Callable[[Any, float], None]) -> TfPoses:
        """Add the frame of a probe; `take` is called with each new transform of this frame."""
        stream = TfPoses(self._parent, child, take)
        self._streams.append(stream)
        return stream

    def drop(self, stream: TopicMonitor) -> None:
        """Stop looking up the frame of a stream."""
        self._streams = [other for other in self._streams if other is not stream]

    def look_up(self) -> None:
        """Look up the newest transform of each added frame."""
        for stream in self._streams:
            try:
                found = self._buffer.newest(self._parent, stream.child)
            except self._buffer.error as error:
                stream.why = str(error).strip().rstrip(".") or type(error).__name__
                continue
            stamp = stamp_ns(found.header.stamp)
            # A transform without a new stamp is old. A static transform has the stamp 0.
            if stamp == 0 or stamp != stream.newest_ns:
                stream.newest_ns = stamp
                stream.on_message(found)
            stream.why = "its stamp does not change"


def pose_of(transform: Any, frame: str) -> Pose:
    """Return the pose of a probe, given the transform from the probe to the map's frame.

    Raises:
        ReadingError: the transform's rotation is invalid.
    """
    place, stamp = transform.transform.translation, stamp_ns(transform.header.stamp)
    x, y, z = float(place.x), float(place.y), float(place.z)
    return Pose(stamp, frame, x, y, turn_of(transform), z=z)


def turn_of(transform: Any) -> float:
    """Return the rotation of a transform about the z axis [rad].

    Raises:
        ReadingError: the rotation is not a quaternion of length 1.
    """
    q = transform.transform.rotation
    length = math.hypot(q.x, q.y, q.z, q.w)
    if not abs(length * length - 1.0) <= _UNIT:  # also true for NaN
        msg = (
            f"has the rotation ({q.x:g}, {q.y:g}, {q.z:g}, {q.w:g}), expected a quaternion of "
            "length 1: correct the node that publishes this transform"
        )
        raise ReadingError("not_finite", msg)
    return heading_of(q.x / length, q.y / length, q.z / length, q.w / length)
