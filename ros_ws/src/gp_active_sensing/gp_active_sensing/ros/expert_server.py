"""Expert of a simulated world: receives ``expert/query``, answers on ``expert/answer``."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from gp_active_sensing.experts import SimulatedExpert
from gp_active_sensing.messages.point_cloud import Points, answer_points, points_of
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.topology.base import SAME_DISTANCE, Topology

__all__ = ["ExpertServer", "places_at"]

_NEAR = 1.0
"""Farthest distance of a question from the place that it means [m]."""


def places_at(topology: Topology, points: Points) -> list[int]:
    """Return the place at each point of a question; points that are at none are left out.

    Of places at one position (the two directions of a road) each is taken once, in order.
    """
    found: list[int] = []
    for x, y in zip(points["x"].tolist(), points["y"].tolist(), strict=True):
        place = topology.snap(x, y, _NEAR)
        if place is None:
            continue
        apart = np.hypot(*(topology.positions - topology.positions[place]).T)
        here = np.flatnonzero(apart <= SAME_DISTANCE).tolist()
        found.append(next((p for p in here if p not in found), place))
    return found


class ExpertServer:
    """Lets the expert of a scenario answer, in simulated time.

    Args:
        node: subscribes and publishes.
        expert: answers.
        topology: the map.
    """

    def __init__(self, node: GuardedNode, expert: SimulatedExpert, topology: Topology) -> None:
        self._node = node
        self._expert = expert
        self._topology = topology
        self._seconds = 0.0
        self._answers = node.own(
            node.create_publisher(PointCloud2, "expert/answer", qos.reliable(100))
        )
        node.own(
            node.create_subscription(PointCloud2, "expert/query", self._on_query, qos.latched())
        )

    def step(self, now_ns: int) -> None:
        """Publish what has been answered by a time, one message for each time it was valid at."""
        self._seconds = 1e-9 * now_ns
        answers = self._expert.answers(self._seconds)
        for stamp_ns, group in groupby(answers, key=lambda reading: reading.stamp_ns):
            header = Header(stamp=outputs.time_of(stamp_ns), frame_id=self._topology.frame)
            points = answer_points(self._topology, list(group))
            self._answers.publish(outputs.values_cloud(points, header))

    def _on_query(self, message: Any) -> None:
        try:
            points = points_of(message)
        except ValueError as error:
            self._warn(f"cannot be read ({error})")
            return
        frame = message.header.frame_id.lstrip("/")
        if frame != self._topology.frame:
            self._warn(f"is in frame {frame!r}, the map is in {self._topology.frame!r}")
            return
        places = places_at(self._topology, points)
        if len(places) < len(points):
            self._node.get_logger().warning(
                f"{len(points) - len(places)} of {len(points)} points that the expert is asked for "
                "are at no place of the map; they get no answer"
            )
        self._expert.ask(places, self._seconds)

    def _warn(self, what: str) -> None:
        self._node.get_logger().warning(f"a message of topic expert/query {what}; it is not used")
