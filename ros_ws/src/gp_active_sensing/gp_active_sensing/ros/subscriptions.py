"""Subscribe to the readings and poses of each probe for ``active_sensing``.

`Diagnostics.listen` creates each subscription and counts its messages. The messages arrive
serialised, and `qos.MessageGate` decodes them.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from rclpy.qos import QoSProfile

from gp_active_sensing.errors import ConfigError, MissingDependencyError, ReadingError
from gp_active_sensing.messages.conversions import ValueReader, pose_reader, stamp_ns
from gp_active_sensing.messages.twists import Twists
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.inbox import RawBattery, RawReading
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.stream_config import (
    LEAST_MAX_RATE,
    MOST_BYTES,
    TF,
    PoseConfig,
    QuantityConfig,
    ReadingConfig,
    most_per_second,
)
from gp_active_sensing.ros import qos
from gp_active_sensing.ros.diagnostics import Diagnostics
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.to_messages import RosTypes, find_message_type
from gp_active_sensing.ros.transforms import TransformBuffer, Transforms, moved, pose_of, turn_of
from gp_active_sensing.util.wording import is_reported

logger = logging.getLogger(__name__)

Take: TypeAlias = Callable[[Any, float], None]
"""Function that processes a message and its arrival time (monotonic seconds)."""


class Subscriptions:
    """Subscriptions of all probes; their callbacks put converted messages into the inbox.

    Raises:
        ConfigError, MissingDependencyError: a message type or field does not exist.
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
        self._pose = config.pose
        self._sensors = _sensors(config)
        self._names = {
            **{sensor.key: sensor.stream.topic for sensor in self._sensors},
            "pose": config.pose.topic,
            "battery": config.battery.topic,
            "twist": config.pose.twist_topic,
        }
        self._twists: dict[str, Twists] = {}
        pose = config.pose
        topology = parts.mission.loop.topology
        self._frame = frame = topology.frame
        self._has_heights = topology.heights is not None
        self._transforms: Transforms | None = None
        self._buffer: TransformBuffer | None = None
        """Buffer of the transforms of tf; None = `_tf` has not created it yet."""
        self._no_tf = ""
        """Reason why tf is not available; "" = available."""
        self._bodies: dict[str, str] = {}
        """Child frame of the poses of each probe, by the probe's name."""
        self._frames_logged: set[str] = set()
        for quantity in (each for sensor in self._sensors for each in sensor.quantities):
            key, each = quantity.key, quantity.config
            if each.mount_from == TF and not quantity.reader.has_stamp:
                msg = (
                    f"{key}.mount_from: tf needs header.frame_id of the readings, and {each.type} "
                    f"has no header; set {key}.mount: [x, y] instead"
                )
                raise ConfigError(msg)
            if each.mount_from == TF and self._buffer is None:
                self._buffer = TransformBuffer(node, f"{key}.mount_from: tf")
        if pose.type == TF:
            self._transforms = Transforms(node, frame, pose.rate)
        else:
            self._read_pose = pose_reader(
                pose.type,
                datum=pose.origin(topology.datum),
                frame=frame,
                covariance=pose.covariance == "use",
                zero_altitude=pose.zero_altitude,
                heights=self._has_heights,
            )
        for name in parts.mission.probes:
            self.listen(name)

    def listen(self, probe: str) -> None:
        """Subscribe to the topics of a probe."""
        for sensor in self._sensors:
            if carried := [each for each in sensor.quantities if each.is_on(probe)]:
                take = partial(self._on_reading, sensor.key, carried, probe)
                self._listen_to_stream(sensor.key, probe, sensor.stream, take)
        if self._names["battery"]:
            self._listen_to_battery(probe)
        if self._names["twist"]:
            self._listen_to_twist(probe)
        if self._transforms is None:
            self._listen_to_stream("pose", probe, self._pose, partial(self._on_pose, probe))
            return
        child = probe_topic(probe, self._pose.child_frame.lstrip("/"))
        stream = self._transforms.add(child, partial(self._on_transform, probe))
        self._health.streams[probe_topic(probe, "pose")] = stream

    def drop(self, probe: str) -> None:
        """Destroy the subscriptions of a probe."""
        self._twists.pop(probe, None)
        for key in self._names:
            stream = self._health.streams.pop(probe_topic(probe, key), None)
            if stream is None:
                continue  # the probe does not have this input
            if stream.subscription is not None:
                self._node.destroy_owned(stream.subscription)
            elif self._transforms is not None:
                self._transforms.drop(stream)

    def _listen_to_stream(
        self, key: str, probe: str, stream: ReadingConfig | PoseConfig, take: Take
    ) -> None:
        profile = qos.sensor(stream.rate, reliable=stream.reliable, catch_up=stream.catch_up)
        self._subscribe(key, probe, stream.type, take, profile, most_per_second(stream))
        if key == "pose" and self._pose.latched and not stream.catch_up:
            self._request_latched(probe)

    def _subscribe(
        self, key: str, probe: str, type: str, take: Take, profile: QoSProfile, most: float
    ) -> None:
        """Subscribe to one topic of a probe; reject messages beyond the rate `most` [Hz]."""
        kind, refuse = find_message_type(type), partial(self._refuse, key, probe)
        size = MOST_BYTES["pose" if key in _KINDS else "reading"]
        gate = qos.MessageGate(kind, refuse, size=size, rate=most)

        def on_bytes(data: bytes, received: float) -> None:
            gate.process(data, lambda message: take(message, received))

        name = probe_topic(probe, self._names[key])
        self._health.listen(probe_topic(probe, key), name, kind, on_bytes, profile)

    def _listen_to_battery(self, probe: str) -> None:
        refuse = partial(self._refuse, "battery", probe)

        def take(message: Any, received: float) -> None:
            level = float(message.percentage)
            if not math.isfinite(level) and message.capacity > 0.0:
                level = float(message.charge / message.capacity)
            if not 0.0 <= level <= 1.0:
                refuse("no_charge", f"has percentage {level:g}, expected a number from 0 to 1")
                return
            stamp = self._health.stamped("battery", stamp_ns(message.header.stamp))
            self._inbox.put(RawBattery(stamp, level), received, probe)

        self._subscribe("battery", probe, _BATTERY, take, qos.sensor(1.0), LEAST_MAX_RATE)

    def _listen_to_twist(self, probe: str) -> None:
        """Subscribe to the velocity of a probe, and add the velocity to the probe's poses."""
        twists = self._twists[probe] = Twists(self._pose.twist_type)

        def take(message: Any, received: float) -> None:
            try:
                twists.note(message, self._node.now_ns())
            except ValueError as error:
                self._refuse("twist", probe, "not_finite", str(error))

        profile = qos.sensor(self._pose.rate)
        self._subscribe("twist", probe, self._pose.twist_type, take, profile, LEAST_MAX_RATE)

    def _request_latched(self, probe: str) -> None:
        """Request the latched pose, since a robot that stands does not publish its pose again."""
        kind, name = find_message_type(self._pose.type), probe_topic(probe, self._pose.topic)
        watched = self._health.streams[probe_topic(probe, "pose")]

        def receive(data: bytes, info: Mapping[str, Any]) -> None:
            if not watched.count:
                watched.on_message(data, qos.received_at(info))

        self._node.own(self._node.create_subscription(kind, name, receive, qos.latched(), raw=True))

    def _refuse(self, topic: str, probe: str, reason: str, why: str) -> None:
        kind = _KINDS.get(topic, "readings")
        word = reason if kind == "readings" else f"{topic}_{reason}"
        count = self._inbox.refuse(kind, word, probe)
        if is_reported(count):
            name = probe_topic(probe, self._names[topic])
            name = "/tf" if topic == "pose" and self._pose.type == TF else name
            logger.warning(
                "a message of topic %s %s: it is not used (%s, %d so far)", name, why, word, count
            )

    def _on_reading(
        self, topic: str, carried: Sequence[_Quantity], probe: str, message: Any, received: float
    ) -> None:
        for each in carried:
            try:
                value = each.reader.read(message)
                tf = each.config.mount_from == TF
                mount = self._mount(probe, message.header.frame_id, each.key) if tf else None
            except ReadingError as error:
                self._refuse(topic, probe, error.reason, str(error))
                continue
            # A message type without a header has no stamp.
            stamp = self._node.now_ns() if value.stamp_ns is None else value.stamp_ns
            stamp, variance = self._health.stamped(topic, stamp), value.noise_variance
            raw = RawReading(stamp, value.value, variance, mount=mount, quantity=each.name)
            self._inbox.put(raw, received, probe)

    def _mount(self, probe: str, sensor: str, section: str) -> tuple[float, ...]:
        """Return the position of a sensor on its probe [m], as tf reports it.

        The entries are the distances ahead and to the left. On a map with heights, the third entry
        is the distance upwards.
        """
        assert self._buffer is not None, "made when it was configured"
        body = self._bodies.get(probe) or probe_topic(probe, self._pose.child_frame)
        body, sensor = body.lstrip("/"), sensor.lstrip("/")
        axes = "xyz" if self._has_heights else "xy"
        if body == sensor:
            return (0.0,) * len(axes)
        why = "its header.frame_id is empty"
        if sensor:
            try:
                found = self._buffer.newest(body, sensor)
                turn_of(found)
                place = found.transform.translation
            except self._buffer.error as error:
                why = qos.first_line(error).rstrip(".")
            except ReadingError as error:
                why = f"it {error}"
            else:
                sits = tuple(float(getattr(place, axis)) for axis in axes)
                if all(map(math.isfinite, sits)):
                    return sits
                why = f"it is at ({', '.join(map(str, sits))})"
        msg = (
            f"of frame {sensor!r} has no place on the probe, expected the transform "
            f"{body} <- {sensor} on /tf_static ({why}); publish it, or set {section}.mount: [x, y]"
        )
        raise ReadingError("no_mount", msg)

    def _on_pose(self, probe: str, message: Any, received: float) -> None:
        pose = self._read_pose(message)
        self._bodies[probe] = getattr(message, "child_frame_id", "")
        if pose.frame.lstrip("/") != self._frame:
            pose = self._in_map(pose)
        self._put_pose(probe, pose, received)

    def _on_transform(self, probe: str, transform: Any, received: float) -> None:
        try:
            pose = pose_of(transform, self._frame)
        except ReadingError as error:
            self._refuse("pose", probe, error.reason, str(error))
            return
        self._put_pose(probe, pose, received)

    def _in_map(self, pose: Pose) -> Pose:
        """Transform a pose to the map's frame by tf; if tf has no transform, do not change it."""
        buffer = self._tf()
        why = self._no_tf
        if buffer is not None:
            try:
                found = buffer.at(self._frame, pose.frame.lstrip("/"), pose.stamp_ns)
                there = moved(pose, found, self._frame)
            except buffer.error as error:
                why = qos.first_line(error).rstrip(".")
            except ReadingError as error:
                why = f"the transform {error}"
            else:
                self._frames_logged.discard(pose.frame)
                return there
        if pose.frame not in self._frames_logged and len(self._frames_logged) < _MOST_FRAMES_LOGGED:
            self._frames_logged.add(pose.frame)
            logger.warning(
                "poses are in frame %r, the map is in frame %r, and tf has no transform between "
                "them: %s",
                pose.frame[:100],
                self._frame,
                why,
            )
        return pose

    def _tf(self) -> TransformBuffer | None:
        if self._buffer is None and not self._no_tf:
            try:
                self._buffer = TransformBuffer(self._node, "a pose in another frame than the map's")
            except MissingDependencyError as error:
                self._no_tf = str(error)
        return self._buffer

    def _put_pose(self, probe: str, pose: Pose, received: float) -> None:
        pose = dataclasses.replace(pose, stamp_ns=self._health.stamped("pose", pose.stamp_ns))
        if probe in self._twists:
            pose = self._twists[probe].beside(pose)
        self._inbox.put(pose, received, probe)


@dataclass(frozen=True)
class _Quantity:
    """Quantity that the messages of a topic contain.

    Args:
        name: name of a further quantity; "" = the main quantity.
        key: section of the quantity's configuration.
    """

    name: str
    key: str
    config: ReadingConfig
    reader: ValueReader

    def is_on(self, probe: str) -> bool:
        """Return whether the probe measures the quantity."""
        probes = self.config.probes if isinstance(self.config, QuantityConfig) else ()
        return not probes or probe in probes


@dataclass(frozen=True)
class _Sensor:
    """Topic whose messages contain one or several quantities."""

    key: str
    stream: ReadingConfig
    quantities: tuple[_Quantity, ...]


def _sensors(config: ActiveSensingConfig) -> tuple[_Sensor, ...]:
    """Return the topics of the readings, with the quantities of each topic.

    Raises:
        ConfigError: two quantities have different settings for the same topic.
    """
    types, topics = RosTypes(), dict[str, list[_Quantity]]()
    for name, each in {"": config.reading, **config.further}.items():
        known = config.readings.get(name or config.main, each)
        key = f"readings.{name or config.main}" if config.readings else "reading"
        reader = ValueReader(types, each, key)
        topics.setdefault(each.topic, []).append(_Quantity(name, key, known, reader))
    found = []
    for quantities in topics.values():
        first, *others = quantities
        for other, what in ((o, what) for o in others for what in _OF_TOPIC):
            mine, theirs = getattr(first.config, what), getattr(other.config, what)
            if mine != theirs:
                msg = (
                    f"{other.key}.{what}: {theirs} is not {first.key}.{what}, {mine}, and both "
                    f"come on topic {first.config.topic}"
                )
                raise ConfigError(msg)
        rate = max(each.config.rate for each in quantities)
        stream = dataclasses.replace(first.config, rate=rate)
        found.append(_Sensor(first.name or "reading", stream, tuple(quantities)))
    return tuple(found)


_OF_TOPIC = ("type", "reliable", "catch_up")
"""Configuration keys that must be equal for all quantities of a topic."""
_KINDS = {"pose": "poses", "battery": "batteries", "twist": "twists"}
"""For each stream: name under which the inbox counts its messages; default = ``readings``."""
_BATTERY = "sensor_msgs/msg/BatteryState"
_MOST_FRAMES_LOGGED = 20
