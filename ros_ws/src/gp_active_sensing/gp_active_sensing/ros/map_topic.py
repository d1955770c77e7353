"""Receive the map of ``active_sensing`` from a latched topic (OccupancyGrid), as SLAM publishes it.

The callback stores the newest message. A separate thread computes the places of the map
(`mission.live_map`), so that neither readings nor plans wait for it. The mission begins with the
first map.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import OccupancyGrid
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.serialization import deserialize_message

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.messages.occupancy import MAP_TYPE, check_size, read_map
from gp_active_sensing.mission.live_map import FirstMap, MapFeed
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.records.run_map import GridMap
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.diagnostics import MISSION_STATUS, WARN
from gp_active_sensing.ros.node_base import GuardedNode, Throttle
from gp_active_sensing.topology.map_config import OccupancyConfig

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.05
"""Interval between checks for the first map [s, real time]."""
JOIN_SECONDS = 1.0
PERIOD = 2.0
"""Smallest time between two maps that are used [s]; a newer map replaces a map that waits."""


class MapTopic:
    """Subscription to the map's topic, whose messages update the mission's map.

    Args:
        begin: builds the mission from the first map; called by the node's executor.
        changed: called after the places have changed, by the thread that converts maps.
    """

    def __init__(
        self,
        node: GuardedNode,
        config: OccupancyConfig,
        begin: Callable[[FirstMap], None],
        changed: Callable[[], None],
    ) -> None:
        self._node, self._config = node, config
        self._begin, self._changed = begin, changed
        self._mission: Mission | None = None
        self._first: FirstMap | None = None
        self.problem = ""
        """Reason for the newest refusal of a map; "" = no map has been refused."""
        self.refused = 0
        self._throttle = Throttle(10.0, time.monotonic)
        self._feed = MapFeed(PERIOD, time.monotonic)
        events = SubscriptionEventCallbacks(incompatible_qos=node.guarded(self._incompatible))
        self._subscription = node.own(
            node.create_subscription(
                OccupancyGrid,
                config.topic,
                self._feed.put,
                qos.latched(),
                event_callbacks=events,
                raw=True,
            )
        )
        self._publisher = node.own(
            node.create_publisher(DiagnosticArray, "/diagnostics", qos.reliable())
        )
        self._timers = [
            node.own(node.create_timer(LOOK_SECONDS, self._check)),
            node.own(node.create_timer(1.0, self._report_waiting)),
        ]
        self._since = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="map", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """Full name of the topic, after namespace and remapping are applied."""
        return str(self._subscription.topic_name)

    def follow(self, mission: Mission) -> None:
        """Update the map of `mission` with each message from now on."""
        self._mission = mission
        for timer in self._timers:
            timer.cancel()

    def close(self) -> None:
        """Stop the thread that converts maps."""
        self._feed.close()
        self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        while (data := self._feed.wait_for_map()) is not None:
            try:
                self._receive(data)
            except Exception:
                logger.exception("a map of topic %s could not be used", self.name)

    def _receive(self, data: bytes) -> None:
        mission = self._mission
        try:
            found = self._read(data)
        except MapError as error:
            if mission is None or mission.map is None:
                self._refuse(str(error))
            else:
                mission.map.refuse("unreadable", str(error))
            return
        if mission is not None and mission.map is not None:
            if mission.map.adopt(mission, found):
                self._changed()
            return
        try:
            self._first = FirstMap.of(self._config, found)
        except (MapError, ConfigError) as error:
            self._refuse(str(error))

    def _read(self, data: bytes) -> GridMap:
        check_size(data)
        try:
            message = deserialize_message(data, OccupancyGrid)
        except Exception as error:
            msg = f"a message is not a valid {MAP_TYPE} ({qos.first_line(error)})"
            raise MapError(msg) from error
        return read_map(message)

    def _refuse(self, why: str) -> None:
        self.refused += 1
        self.problem = why
        logger.error(
            "a map of topic %s cannot be used: %s. Waiting for the next map (%d so far)",
            self.name,
            why,
            self.refused,
        )

    def _check(self) -> None:
        first, self._first = self._first, None
        if first is None or self._mission is not None:
            return
        try:
            self._begin(first)
        except MapError as error:
            self._refuse(str(error))

    def _report_waiting(self) -> None:
        """Report that no map has come: every second in the diagnostics, every 10 s in the log."""
        if self._mission is not None:
            return
        start = "start the SLAM or the map server, or set map.topic"
        why = self.problem or qos.why_silent(
            self._node, self.name, MAP_TYPE, start, "set map.topic"
        )
        text = f"waiting for a map on topic {self.name}: {why}"
        if time.monotonic() - self._since > 2.0 and self._throttle.ready("waiting"):
            self._node.get_logger().warning(text)
        full = self._node.get_fully_qualified_name().lstrip("/")
        values: dict[str, object] = {
            "state": "waiting",
            "reason": text,
            "maps_received": self._feed.received,
            "maps_refused": self.refused,
        }
        status = outputs.diagnostic_status(f"{full}: {MISSION_STATUS}", full, WARN, text, values)
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _incompatible(self, event: Any) -> None:
        _, text = qos.incompatible(self.name, event, publishing=False)
        self._node.get_logger().warning(text)
