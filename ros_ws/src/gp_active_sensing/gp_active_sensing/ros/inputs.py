"""What the node ``active_sensing`` hears: readings and poses of each probe, left in the inbox."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from gp_active_sensing.messages.conversions import ValueReader, pose_reader
from gp_active_sensing.mission.build import Parts
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.settings import ActiveSensingConfig
from gp_active_sensing.ros import qos
from gp_active_sensing.ros.diagnostics import Health
from gp_active_sensing.ros.message_types import RosTypes, find_message_type
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.publishing import probe_topic

__all__ = ["Inputs"]


class Inputs:
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
        self, node: GuardedNode, config: ActiveSensingConfig, parts: Parts, health: Health
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
        self._read_pose = pose_reader(pose.type, datum=pose.datum, frame=frame)
        for name in parts.mission.probes:
            self._listen(name)

    def _listen(self, probe: str) -> None:
        for topic, stream, take in (
            ("reading", self._reading, self._on_reading),
            ("pose", self._pose, self._on_pose),
        ):
            callback: Callable[[Any], None] = partial(take, probe)
            profile = qos.sensor(stream.rate, reliable=stream.reliable)
            kind = find_message_type(stream.type)
            self._health.listen(probe_topic(probe, topic), kind, callback, profile)

    def _on_reading(self, probe: str, message: Any) -> None:
        value = self._read_value.read(message)
        stamp = value.stamp_ns
        if stamp is None:  # a type without a header
            stamp = int(self._node.get_clock().now().nanoseconds)
        raw = RawReading(self._stamped("reading", stamp), value.value, value.noise_variance)
        self._inbox.put(raw, time.monotonic(), probe)

    def _on_pose(self, probe: str, message: Any) -> None:
        pose = self._read_pose(message)
        pose = dataclasses.replace(pose, stamp_ns=self._stamped("pose", pose.stamp_ns))
        self._inbox.put(pose, time.monotonic(), probe)

    def _stamped(self, topic: str, stamp_ns: int) -> int:
        """Return the stamp, or the time of arrival for one that its publisher left at zero."""
        if stamp_ns != 0:
            return stamp_ns
        self._health.note_unstamped(topic)
        return int(self._node.get_clock().now().nanoseconds)
