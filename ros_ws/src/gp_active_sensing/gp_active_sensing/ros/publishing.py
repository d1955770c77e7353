"""What the node ``active_sensing`` says: waypoint, plan, field, belief, map, records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.event_handler import PublisherEventCallbacks
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Float64MultiArray
from visualization_msgs.msg import MarkerArray

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.build import Parts
from gp_active_sensing.mission.jobs import PlanJob, Stage
from gp_active_sensing.ros import outputs, qos
from gp_active_sensing.ros.diagnostics import Health
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.topology import whole_way
from gp_active_sensing.types import BoolArray, FloatArray, Plan

__all__ = ["Results", "probe_topic"]

_TOPICS: tuple[tuple[str, Any, Any], ...] = (
    ("field", PointCloud2, qos.reliable(1)),
    ("map", MarkerArray, qos.latched()),
    ("length_scale_belief", Float64MultiArray, qos.reliable(10)),
)


_PROBE_TOPICS: tuple[tuple[str, Any, Any], ...] = (
    ("next_waypoint", PoseStamped, qos.latched()),
    ("plan", Path, qos.latched()),
)
"""Of each probe, in its namespace where there are several."""


class Results:
    """The outputs of a mission (`worker.Outputs`); used from both of its threads.

    Args:
        node: publishes.
        parts: the mission and its records.
        exit_at_end: end the process when the mission is over.
    """

    def __init__(self, node: GuardedNode, parts: Parts, *, exit_at_end: bool) -> None:
        self._node = node
        self._parts = parts
        self._exit_at_end = exit_at_end
        self._topology = parts.mission.loop.topology
        self._waypoints: dict[str, PoseStamped] = {}
        """The last one sent, by topic."""
        self.health = Health(node, parts)
        topics = [*_TOPICS]
        for name in parts.mission.probes:
            topics += [(probe_topic(name, topic), *rest) for topic, *rest in _PROBE_TOPICS]
        self._publishers = {
            topic: node.own(
                node.create_publisher(kind, topic, profile, event_callbacks=self._events(topic))
            )
            for topic, kind, profile in topics
        }

    def now_ns(self) -> int:
        """Return the time of the node's clock (simulated or not)."""
        return int(self._node.get_clock().now().nanoseconds)

    def _events(self, topic: str) -> PublisherEventCallbacks:
        def matched(event: Any) -> None:
            # A latched message reaches subscribers that ask for it; this reaches the others too.
            if event.current_count_change > 0 and (last := self._waypoints.get(topic)):
                self._publish(topic, last)

        return PublisherEventCallbacks(
            matched=self._node.guarded(matched),
            incompatible_qos=self._node.guarded(self.health.incompatible(topic, publishing=True)),
        )

    def _publish(self, topic: str, message: Any) -> None:
        self._publishers[topic].publish(message)

    def send_waypoint(self, probe: str, plan: Plan) -> None:
        """Publish the waypoint of a probe and the way to it."""
        self.send_again(probe, plan.path[-1])
        loop = self._parts.mission.loop
        places = whole_way(self._topology, plan, loop.belief.observed, loop.set_aside)
        path = outputs.plan_path(self._topology, places, self.now_ns())
        self._publish(probe_topic(probe, "plan"), path)

    def send_again(self, probe: str, place: int) -> None:
        """Publish the waypoint of a place."""
        topology, topic = self._topology, probe_topic(probe, "next_waypoint")
        # The stamp of the decision: what a node that was started again sends is the same message.
        stamp_ns = self._parts.mission.probes[probe].sent_ns
        message = outputs.waypoint_message(topology.goals[place], topology.frame, stamp_ns)
        self._waypoints[topic] = message
        self._publish(topic, message)

    def send_map(self, observed: BoolArray | None = None, planned: Sequence[int] = ()) -> None:
        """Publish the map with what is observed and planned."""
        if observed is None:
            observed = self._parts.mission.loop.belief.observed
        markers = outputs.map_markers(self._topology, observed, planned, self.now_ns())
        self._publish("map", markers)

    def send_results(self, job: PlanJob) -> None:
        """Publish field, belief and map, and record the stage that ended."""
        mean, std = _predict(job.loop)
        if job.finished is not None:
            self._record(job.finished, job.loop, mean, std)
        belief, now = job.loop.belief, self.now_ns()
        self._publish("field", outputs.field_cloud(self._topology, mean, std, now))
        weights = outputs.weights_message(belief.weights, belief.hyperparameters)
        self._publish("length_scale_belief", weights)
        self.send_map(belief.observed, self._planned())

    def _planned(self) -> Sequence[int]:
        plans = [p.plan or p.stages.home for p in self._parts.mission.probes.values()]
        return [place for plan in plans if plan is not None for place in plan.path]

    def mission_ended(self) -> None:
        """Write summary and report; the last waypoint stands."""
        mission, recorder = self._parts.mission, self._parts.recorder
        logger = self._node.get_logger()
        logger.info(f"the mission is over: {mission.reason}; the last waypoint stands")
        try:
            if recorder.save(mission, "finished") and recorder.run is not None:
                page = recorder.report()
                logger.info(f"records: {page or recorder.run.path}")
        finally:
            self.health.publish()  # so that listeners know before the process may end
            if self._exit_at_end:
                self._node.end(0)

    def finish(self, reason: str) -> None:
        """End a mission because somebody says that it is over; nothing plans beside this."""
        self._stop(reason)
        self.send_results(self._parts.mission.look())
        self.mission_ended()

    def interrupted(self) -> None:
        """Write the last words of a mission that is not over; the threads have stopped."""
        ended = self._parts.mission.state == "ended"
        self._stop("the node was shut down", over=False)
        if not ended:
            self._parts.recorder.save(self._parts.mission, "interrupted")

    def _stop(self, reason: str, *, over: bool = True) -> None:
        mission = self._parts.mission
        for stage in mission.stop(reason, over=over):
            self._record(stage, mission.loop, *_predict(mission.loop))

    def _record(self, stage: Stage, loop: SensingLoop, mean: FloatArray, std: FloatArray) -> None:
        if not self._parts.mission.claim(stage):
            return  # done meanwhile, by the other thread
        line = self._parts.recorder.stage(stage, loop.belief, mean, std)
        self._node.get_logger().info(line)


def probe_topic(probe: str, topic: str) -> str:
    """Return the name of a topic of a probe."""
    return f"{probe}/{topic}" if probe else topic


def _predict(loop: SensingLoop) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of the field at every place."""
    mean, variance = loop.belief.predict()
    return mean, np.sqrt(np.maximum(variance, 0.0))
