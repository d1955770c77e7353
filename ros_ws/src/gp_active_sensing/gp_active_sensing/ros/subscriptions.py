"""Subscriptions of ``active_sensing``: readings and poses of each probe, put into the inbox.

Messages are taken as they were sent, serialised, so that one that is too large or comes too fast
costs nothing but a count: a publisher that floods must not take the node's time or memory.

`Diagnostics.listen` makes the subscription and counts its messages; `Subscriptions._on_bytes` is
what it calls.
"""

from __future__ import annotations

import dataclasses
import importlib
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.serialization import deserialize_message
from rclpy.time import Time

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.messages.conversions import (
    RateLimit,
    ValueReader,
    heading_of,
    pose_reader,
    stamp_ns,
)
from gp_active_sensing.mission.config import ActiveSensingConfig, PoseConfig, ReadingConfig
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.stream_config import TF, most_per_second
from gp_active_sensing.ros import qos
from gp_active_sensing.ros.diagnostics import Diagnostics
from gp_active_sensing.ros.node_base import GuardedNode, steady_clock
from gp_active_sensing.ros.to_messages import RosTypes, find_message_type
from gp_active_sensing.ros.topic_monitor import TopicMonitor

__all__ = ["Subscriptions", "Transforms"]


logger = logging.getLogger(__name__)


class Subscriptions:
    """Subscribes for each probe; callbacks convert a message and leave it in the inbox.

    Args:
        node: subscribes.
        config: message types, fields, rates.
        parts: the mission, whose inbox it fills.
        health: watches the topics.

    Raises:
        ConfigError, MissingDependencyError: a message type or field that there is not.
    """

    def __init__(
        self,
        node: GuardedNode,
        config: ActiveSensingConfig,
        parts: MissionComponents,
        health: Diagnostics,
    ) -> None:
        self._node = node
        self._inbox = parts.mission.inbox
        self._health = health
        self._reading, self._pose = config.reading, config.pose
        reading, pose = config.reading, config.pose
        self._read_value = ValueReader(
            RosTypes(),
            reading.type,
            reading.field,
            reading.variance_field,
            noise_variance=reading.noise_variance,
            scale=reading.scale,
            offset=reading.offset,
        )
        frame = parts.mission.loop.topology.frame
        self._transforms: Transforms | None = None
        if pose.type == TF:
            self._transforms = Transforms(node, frame, pose.rate)
        else:
            self._read_pose = pose_reader(pose.type, datum=pose.datum, frame=frame)
        for name in parts.mission.probes:
            self.listen(name)

    def listen(self, probe: str) -> None:
        """Subscribe to the topics of a probe."""
        self._subscribe("reading", probe, self._reading, self._on_reading)
        if self._transforms is None:
            self._subscribe("pose", probe, self._pose, self._on_pose)
            return
        child = probe_topic(probe, self._pose.child_frame.lstrip("/"))
        stream = self._transforms.add(child, partial(self._put_pose, probe))
        self._health.streams[probe_topic(probe, "pose")] = stream

    def drop(self, probe: str) -> None:
        """Listen to the topics of a probe no more."""
        for topic in ("reading", "pose"):
            stream = self._health.streams.pop(probe_topic(probe, topic))
            if stream.subscription is not None:
                self._node.give_back(stream.subscription)
            elif self._transforms is not None:
                self._transforms.drop(stream)

    def _subscribe(
        self,
        topic: str,
        probe: str,
        stream: ReadingConfig | PoseConfig,
        take: Callable[[str, Any, float], None],
    ) -> None:
        kind = find_message_type(stream.type)
        limit = RateLimit(most_per_second(stream), time.monotonic)
        callback = partial(self._on_bytes, topic, probe, stream, kind, limit, take)
        profile = qos.sensor(stream.rate, reliable=stream.reliable, catch_up=stream.catch_up)
        name = probe_topic(probe, stream.topic)
        self._health.listen(probe_topic(probe, topic), name, kind, callback, profile)

    def _on_bytes(
        self,
        topic: str,
        probe: str,
        stream: ReadingConfig | PoseConfig,
        kind: Any,
        limit: RateLimit,
        take: Callable[[str, Any, float], None],
        data: bytes,
        received: float,
    ) -> None:
        """Look at a message only when it is of a size and rate that can be used."""
        refuse = partial(self._refuse, topic, probe)
        if len(data) > stream.max_bytes:
            why = f"has {len(data)} bytes, more than {topic}.max_bytes ({stream.max_bytes})"
            refuse("too_large", why)
            return
        if not limit.allows():
            most = f"{topic}.max_rate ({most_per_second(stream):g} a second)"
            refuse("too_fast", f"comes faster than {most}, so not every one is used; this one")
            return
        try:
            message = deserialize_message(data, kind)
        except Exception as error:
            refuse("undecodable", f"is not a valid {stream.type} ({_first_line(error)})")
            return
        try:
            take(probe, message, received)
        except Exception as error:
            refuse("unreadable", f"cannot be read ({error!r})")

    def _refuse(self, topic: str, probe: str, reason: str, why: str) -> None:
        kind, word = ("poses", f"pose_{reason}") if topic == "pose" else ("readings", reason)
        count = self._inbox.refuse(kind, word, probe)
        if count in (1, 10, 100) or count % 1000 == 0:
            stream = self._pose if topic == "pose" else self._reading
            name = probe_topic(probe, stream.topic)
            logger.warning(
                "a message of topic %s %s: it is not used (%s, %d so far)", name, why, word, count
            )

    def _on_reading(self, probe: str, message: Any, received: float) -> None:
        value = self._read_value.read(message)
        stamp = value.stamp_ns
        if stamp is None:  # a type without a header
            stamp = int(self._node.get_clock().now().nanoseconds)
        raw = RawReading(self._stamped("reading", stamp), value.value, value.noise_variance)
        self._inbox.put(raw, received, probe)

    def _on_pose(self, probe: str, message: Any, received: float) -> None:
        self._put_pose(probe, self._read_pose(message), received)

    def _put_pose(self, probe: str, pose: Pose, received: float) -> None:
        pose = dataclasses.replace(pose, stamp_ns=self._stamped("pose", pose.stamp_ns))
        self._inbox.put(pose, received, probe)

    def _stamped(self, topic: str, stamp_ns: int) -> int:
        """Return the stamp, or the time of arrival for one that its publisher left at zero."""
        if stamp_ns != 0:
            return stamp_ns
        self._health.note_unstamped(topic)
        return int(self._node.get_clock().now().nanoseconds)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip() or type(error).__name__


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
        try:  # not on PyPI, and needed for nothing else
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
