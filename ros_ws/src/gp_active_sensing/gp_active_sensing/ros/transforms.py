"""Poses out of tf: the transform of the probe's frame in the map's, looked up at a steady rate.

tf2_ros is not on PyPI and not needed for anything else, so it is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from rclpy.time import Time

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.messages.conversions import heading_of, stamp_ns
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.ros.node_base import GuardedNode, steady_clock
from gp_active_sensing.ros.topic_monitor import TopicMonitor

__all__ = ["Transforms"]


class LookedUp(TopicMonitor):
    """A pose that is looked up; watched like a topic.

    Args:
        parent: frame of the map.
        child: frame of the probe.
        take: takes the poses, and when each was looked up.
    """

    what = "transform"

    def __init__(self, parent: str, child: str, take: Callable[[Pose, float], None]) -> None:
        super().__init__("a transform", take)
        self.child = child
        self.newest_ns = -1
        self.why = "nothing has been looked up yet"
        self._name = f"{parent} <- {child}"

    @property
    def name(self) -> str:
        """The two frames."""
        return self._name


class Transforms:
    """Looks up the poses of the probes.

    Args:
        node: listens to ``/tf`` and ``/tf_static``.
        parent: frame of the map.
        rate: lookups a second [Hz, real time].

    Raises:
        MissingDependencyError: tf2_ros is not installed.
    """

    def __init__(self, node: GuardedNode, parent: str, rate: float) -> None:
        try:
            self._tf2 = importlib.import_module("tf2_ros")
        except ImportError as error:
            msg = (
                f"pose.type: tf needs the Python package tf2_ros, which cannot be imported "
                f"({error}): install ros-$ROS_DISTRO-tf2-ros-py and source its workspace; or have "
                "the pose published as a message, such as geometry_msgs/msg/PoseStamped"
            )
            raise MissingDependencyError(msg) from error
        self._parent = parent
        self._buffer = self._tf2.Buffer()
        self._listener = self._tf2.TransformListener(self._buffer, node)
        for subscription in ("tf_sub", "tf_static_sub"):
            node.own(getattr(self._listener, subscription))
        self._streams: list[LookedUp] = []
        node.own(node.create_timer(1.0 / rate, self.look_up, clock=steady_clock()))

    def add(self, child: str, take: Callable[[Pose, float], None]) -> LookedUp:
        """Look up one more frame; `take` gets its poses, each once."""
        stream = LookedUp(self._parent, child, take)
        self._streams.append(stream)
        return stream

    def drop(self, stream: TopicMonitor) -> None:
        """Look a frame up no more."""
        self._streams = [other for other in self._streams if other is not stream]

    def look_up(self) -> None:
        """Look every frame up once, at its newest time."""
        for stream in self._streams:
            try:
                found = self._buffer.lookup_transform(self._parent, stream.child, Time())
            except self._tf2.TransformException as error:
                stream.why = str(error).strip().rstrip(".") or type(error).__name__
                continue
            stamp = stamp_ns(found.header.stamp)
            # Looked up more often than it is published; a static one has the stamp 0 for ever.
            if stamp == 0 or stamp != stream.newest_ns:
                stream.newest_ns = stamp
                stream.on_message(_pose(found, stamp, self._parent))
            stream.why = "its stamp does not change"


def _pose(found: Any, stamp: int, frame: str) -> Pose:
    place, q = found.transform.translation, found.transform.rotation
    return Pose(stamp, frame, float(place.x), float(place.y), heading_of(q.x, q.y, q.z, q.w))
