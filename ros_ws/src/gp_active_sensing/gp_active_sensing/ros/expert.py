"""Exchange queries on ``expert/query`` and answers on ``expert/answer`` with an expert.

The node ``active_sensing`` sends queries (`ExpertClient`), and the simulator sends answers
(`ExpertServer`). An answer that is too large, too frequent or invalid is counted and not used.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from gp_active_sensing.experts.simulated import SimulatedExpert
from gp_active_sensing.messages.point_cloud import (
    Points,
    answer_points,
    answers_of,
    points_of,
    query_points,
)
from gp_active_sensing.mission.stream_config import MOST_ANSWERS, MOST_BYTES
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.node_base import GuardedNode, Throttle
from gp_active_sensing.topology.base import SAME_DISTANCE, Topology
from gp_active_sensing.util.wording import is_reported

if TYPE_CHECKING:  # the simulator needs none of these imports
    from gp_active_sensing.mission.expert_queries import ExpertQueries
    from gp_active_sensing.mission.factory import MissionComponents
    from gp_active_sensing.ros.diagnostics import Diagnostics

logger = logging.getLogger(__name__)

QUERY, ANSWER = "expert/query", "expert/answer"
DEPTH = 100
"""Queue length of the topic ``expert/answer`` [messages]."""
OK, WARN = 0, 1


class ExpertClient:
    """Client that publishes a mission's queries and passes the answers to the mission's inbox."""

    def __init__(
        self,
        node: GuardedNode,
        parts: MissionComponents,
        consulting: ExpertQueries,
        health: Diagnostics,
    ) -> None:
        self._node = node
        self._mission = parts.mission
        self._consulting = consulting
        self._health = health
        self._gate = qos.MessageGate(
            PointCloud2, self._refuse, size=MOST_BYTES["answer"], rate=MOST_ANSWERS
        )
        self._throttle = Throttle(10.0, time.monotonic)
        self.messages = 0
        """Number of valid answer messages."""
        events = PublisherEventCallbacks(
            incompatible_qos=node.guarded(health.incompatible(QUERY, publishing=True))
        )
        # The topic is latched, so that an expert that starts late can answer.
        self._queries = node.own(
            node.create_publisher(PointCloud2, QUERY, qos.latched(), event_callbacks=events)
        )
        events_of_answers = SubscriptionEventCallbacks(
            incompatible_qos=node.guarded(health.incompatible(ANSWER, publishing=False))
        )
        node.own(
            node.create_subscription(
                PointCloud2,
                ANSWER,
                self.on_bytes,
                qos.reliable(DEPTH),
                event_callbacks=events_of_answers,
                raw=True,
            )
        )
        health.expert = self.status

    def send(self, places: tuple[int, ...]) -> None:
        """Publish a query about places."""
        topology = self._mission.loop.topology
        header = Header(stamp=outputs.time_of(self._node.now_ns()), frame_id=topology.frame)
        self._queries.publish(outputs.values_cloud(query_points(topology, places), header))
        if not self._queries.get_subscription_count() and self._throttle.ready("nobody"):
            logger.warning(
                "topic %s has no subscriber: start an expert, or set expert.ask to false",
                self._name,
            )

    @property
    def _name(self) -> str:
        return str(self._queries.topic_name)

    def on_bytes(self, data: bytes) -> None:
        """Process a serialised answer, unless it exceeds the limit of its size or of the rate."""
        self._gate.process(data, self._on_answers)

    def _on_answers(self, message: PointCloud2) -> None:
        answers = answers_of(message, self._mission.loop.topology.n)
        self.messages += 1
        received = time.monotonic()
        for answer in answers:
            stamp_ns = self._health.stamped(ANSWER, answer.stamp_ns)
            self._mission.inbox.put(dataclasses.replace(answer, stamp_ns=stamp_ns), received)

    def _refuse(self, reason: str, why: str) -> None:
        word = f"answer_{reason}"
        count = self._mission.inbox.refuse("answers", word)
        if is_reported(count):
            logger.warning(
                "a message of topic %s %s: it is not used (%s, %d so far)", ANSWER, why, word, count
            )

    def status(self) -> tuple[int, str, dict[str, object]]:
        """Return level, summary and values of the expert's diagnostic status."""
        with self._mission.lock:
            books = self._consulting.books
            counts = books.to_mapping()
            waiting, asked = len(books.missing), len(books.places)
        rejected = dict(counts.pop("rejected", {}))
        listening = int(self._queries.get_subscription_count())
        values: dict[str, object] = {"experts": listening, "waiting_for": waiting}
        words = ("questions", "asked", "answered", "unanswered", "used", "late")
        values |= {word: counts.get(word, 0) for word in words}
        values["messages"] = self.messages
        values |= {f"rejected_{word}": number for word, number in sorted(rejected.items())}
        problems = [] if listening else [f"nobody hears {self._name}"]
        if rejected:
            problems.append(f"{sum(rejected.values())} rejected")
        if counts.get("unanswered"):
            problems.append(f"{counts['unanswered']} of {counts['asked']} not answered in time")
        summary = f"waiting for {waiting} of {asked} answers" if waiting else "ok"
        return WARN if problems else OK, "; ".join(problems) or summary, values


_NEAR = 1.0
"""Largest distance from a point of a query to its place [m]."""


def places_at(topology: Topology, points: Points) -> list[int]:
    """Return the places at the points of a query; points without a place are skipped.

    If two points have the same position, they get two places: the two directions of a road.
    """
    found: list[int] = []
    for x, y, z in zip(*(points[axis].tolist() for axis in "xyz"), strict=True):
        place = topology.snap(x, y, _NEAR, z)
        if place is None:
            continue
        apart = np.linalg.norm(topology.points - topology.points[place], axis=1)
        here = np.flatnonzero(apart <= SAME_DISTANCE).tolist()
        found.append(next((p for p in here if p not in found), place))
    return found


class ExpertServer:
    """Server that answers queries in simulated time, as the simulated expert of a scenario."""

    def __init__(self, node: GuardedNode, expert: SimulatedExpert, topology: Topology) -> None:
        self._node = node
        self._expert = expert
        self._topology = topology
        self._seconds = 0.0
        self._answers = node.own(node.create_publisher(PointCloud2, ANSWER, qos.reliable(DEPTH)))
        node.own(node.create_subscription(PointCloud2, QUERY, self._on_query, qos.latched()))

    def step(self, now_ns: int) -> None:
        """Publish the answers that are due at `now_ns` [ns], one message for each stamp."""
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
                "are not at a place of the map; they get no answer"
            )
        self._expert.ask(places, self._seconds)

    def _warn(self, what: str) -> None:
        self._node.get_logger().warning(f"a message of topic {QUERY} {what}; it is not used")
