"""Send waypoints and plans: on topics, and as goals of Nav2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.event_handler import PublisherEventCallbacks

from gp_active_sensing.mission.config import WaypointConfig
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.node_base import GuardedNode, steady_clock
from gp_active_sensing.topology import whole_way
from gp_active_sensing.types import Plan

if TYPE_CHECKING:
    from gp_active_sensing.ros.navigate import Navigator

__all__ = ["PROBE_TOPICS", "Waypoints"]

PROBE_TOPICS: tuple[tuple[str, Any, Any], ...] = (
    ("next_waypoint", PoseStamped, qos.latched()),
    ("~/plan", Path, qos.latched()),
)
"""Of each probe, in its namespace where there are several: ``~/probe_1/plan``."""


class Waypoints:
    """Publishes them; `send` and `send_again` may be called by any thread.

    Args:
        node: publishes.
        parts: the mission.
        config: where they go, how often, how high.
        incompatible: makes the callback that reports a subscriber that does not fit a topic.

    Raises:
        MissingDependencyError: goals of Nav2 are asked for, and nav2_msgs is not installed.
    """

    def __init__(
        self,
        node: GuardedNode,
        parts: MissionComponents,
        config: WaypointConfig,
        incompatible: Callable[[str], Callable[[Any], None]],
    ) -> None:
        self._node = node
        self._mission = parts.mission
        self._topology = parts.mission.loop.topology
        self._config = config
        self._incompatible = incompatible
        self._last: dict[str, PoseStamped] = {}
        """The waypoint sent last, by topic."""
        self._publishers: dict[str, Any] = {}
        self._timer: Any = None
        self.navigator: Navigator | None = None
        if config.navigate == "action":
            from gp_active_sensing.ros.navigate import Navigator

            self.navigator = Navigator(node, parts.mission, config.action)
        for name in parts.mission.probes:
            self._offer(name)
        self._stream()

    def add_probe(self, name: str) -> None:
        """Make the topics of a probe."""
        self._offer(name)
        if self.navigator is not None:
            self.navigator.add_probe(name)

    def set_config(self, config: WaypointConfig) -> None:
        """Go on with another rate or altitude."""
        faster = config.rate != self._config.rate
        self._config = config
        if faster:
            self._stream()

    def send(self, probe: str, plan: Plan) -> None:
        """Send a probe to the waypoint of a plan, and publish the way to it."""
        self.send_again(probe, plan.path[-1])
        loop = self._mission.loop
        places = whole_way(self._topology, plan, loop.belief.observed, loop.set_aside)
        path = outputs.plan_path(self._topology, places, self._now_ns(), self._config.altitude)
        self._publishers[probe_topic(probe, "~/plan")].publish(path)

    def send_again(self, probe: str, place: int) -> None:
        """Send a probe to the waypoint of a place."""
        topology, topic = self._topology, probe_topic(probe, "next_waypoint")
        # The stamp of the decision: what a node that was started again sends is the same message.
        stamp_ns = self._mission.probes[probe].sent_ns
        goal = topology.goals[place]
        message = outputs.waypoint_message(goal, topology.frame, stamp_ns, self._config.altitude)
        self._last[topic] = message
        self._publishers[topic].publish(message)
        if self.navigator is not None:
            self.navigator.go(probe, place, message)

    def close(self) -> None:
        """Give back what is not the node's own to give back."""
        if self.navigator is not None:
            self.navigator.close()

    # -- inside --------------------------------------------------------------------------------

    def _now_ns(self) -> int:
        return int(self._node.get_clock().now().nanoseconds)

    def _offer(self, name: str) -> None:
        for topic, kind, profile in PROBE_TOPICS:
            full = probe_topic(name, topic)
            self._publishers[full] = self._node.own(
                self._node.create_publisher(kind, full, profile, event_callbacks=self._events(full))
            )

    def _events(self, topic: str) -> PublisherEventCallbacks:
        def matched(event: Any) -> None:
            # A latched message reaches subscribers that ask for it; this reaches the others too.
            if event.current_count_change > 0 and (last := self._last.get(topic)):
                self._publishers[topic].publish(last)

        return PublisherEventCallbacks(
            matched=self._node.guarded(matched),
            incompatible_qos=self._node.guarded(self._incompatible(topic)),
        )

    def _stream(self) -> None:
        """Send the last waypoints again and again, if that is wanted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._config.rate > 0.0:
            period = min(1.0 / self._config.rate, 1e6)  # a timer counts nanoseconds
            self._timer = self._node.own(
                self._node.create_timer(period, self._send_last, clock=steady_clock())
            )

    def _send_last(self) -> None:
        stamp = outputs.time_of(self._now_ns())
        for name, probe in self._mission.probes.items():
            topic = probe_topic(name, "next_waypoint")
            last = self._last.get(topic)
            if last is None or probe.gone:
                continue
            message = PoseStamped(pose=last.pose)
            message.header.frame_id, message.header.stamp = last.header.frame_id, stamp
            self._publishers[topic].publish(message)
