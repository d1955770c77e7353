"""Publish the inputs and outcomes of a mission on ``~/journal``, so that bags contain them.

A message is a JSON list of frames, which `mission.input_log` describes. A replay of a bag with this
topic repeats the same decisions.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks
from std_msgs.msg import String

from gp_active_sensing.config import to_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.input_log import InputLog
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.ros import qos
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.util.files import json_ready
from gp_active_sensing.util.process import versions

logger = logging.getLogger(__name__)

DEPTH = 2000
"""Number of latched messages; a recorder that starts late still receives them."""
PERIOD = 0.1
"""Longest time for which frames are collected in one message [s]."""
_SOON = ("reading", "status", "moved")
"""Kinds of events that may wait for `PERIOD`; other events are published at once."""


class JournalTopic:
    """Publisher of a mission's input log on ``~/journal``."""

    def __init__(
        self,
        node: GuardedNode,
        config: ActiveSensingConfig,
        scenario: Mapping[str, Any] | None,
        parts: MissionComponents,
    ) -> None:
        self._lock = threading.Lock()
        self._waiting: list[dict[str, Any]] = []
        self._since = 0.0
        self.failures = 0
        profile = qos.reliable(DEPTH, latched=True)
        events = PublisherEventCallbacks(matched=node.guarded(self._on_matched))
        self._publisher = node.own(
            node.create_publisher(String, "~/journal", profile, event_callbacks=events)
        )
        mission = parts.mission
        trace = InputLog(self._queue_frame, time.monotonic)

        def resolved(name: str, topics: Mapping[str, str]) -> dict[str, str]:
            found = {kind: probe_topic(name, topic) for kind, topic in topics.items() if topic}
            return {kind: node.resolve_topic_name(topic) for kind, topic in found.items()}

        pose = config.pose
        streams = {"reading": config.reading.topic, "pose": pose.topic, "twist": pose.twist_topic}
        further = {name: each.topic for name, each in config.further.items()}
        topics: dict[str, dict[str, Any]] = {n: {**resolved(n, streams)} for n in mission.probes}
        if further:
            for name, of_probe in topics.items():
                of_probe["further"] = resolved(name, further)
        live = mission.map
        topic = "" if live is None else node.resolve_topic_name(config.map.topic)
        setup = dict(
            config=to_mapping(config),
            scenario=scenario,
            topics=topics,
            versions=versions(),
            process=f"{os.getpid()}-{time.monotonic_ns()}",
            earlier=parts.recorder.earlier,
            tail=parts.recorder.tail,
            places=parts.places,
            **({} if live is None else {"map": {"topic": topic, "mark": live.places.mark}}),
        )
        self._setup = {"n": 0, "setup": setup}
        self._trace = mission.trace = trace
        parts.recorder.listener = trace.event
        self._publish([self._setup])
        node.own(node.create_timer(PERIOD, self.flush))

    def _on_matched(self, event: Any) -> None:
        # A recorder that starts late may have missed the first frame, which a replay needs.
        if event.current_count_change > 0:
            self._publish([self._setup])

    def changed(self, config: ActiveSensingConfig) -> None:
        """Record a changed configuration; the caller has locked the mission."""
        self._trace.changed(**to_mapping(config))

    def _queue_frame(self, frame: dict[str, Any]) -> None:
        """Queue a frame; publish the queue at once after an urgent event, else after `PERIOD`."""
        now = time.monotonic()
        with self._lock:
            if not self._waiting:
                self._since = now
            self._waiting.append(frame)
            late = now - self._since >= PERIOD
        at_once = any(event.get("event") not in _SOON for event in frame.get("events", ()))
        if late or at_once:
            self.flush()

    def flush(self) -> None:
        """Publish the queued frames."""
        with self._lock:
            frames, self._waiting = self._waiting, []
        if frames:
            self._publish(frames)

    def _publish(self, frames: list[dict[str, Any]]) -> None:
        """Publish frames; if this fails, count the error and let the mission continue."""
        try:
            text = json.dumps(json_ready(frames), allow_nan=False, separators=(",", ":"))
            self._publisher.publish(String(data=text))
        except Exception:
            self.failures += 1
            if self.failures in (1, 10, 100):
                logger.exception("the journal is not published (%d times)", self.failures)
