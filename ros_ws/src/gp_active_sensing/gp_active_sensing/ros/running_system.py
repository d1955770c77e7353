"""What a running ROS system offers: its topics, and what is heard on some of them for a moment."""

from __future__ import annotations

import importlib
import math
import os
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rclpy.time import Time

from gp_active_sensing.ros import qos
from gp_active_sensing.ros.environment import node_environment
from gp_active_sensing.ros.heard import LISTEN_SECONDS, Heard, pace_of
from gp_active_sensing.ros.to_messages import find_message_type
from gp_active_sensing.ros.topic_monitor import received_at

__all__ = ["HEAR_SECONDS", "RunningSystem", "running_system"]

FOUND_SECONDS = 2.0
"""How long a first topic is waited for: discovery takes a quarter of a second, at times two."""
QUIET_SECONDS = 0.5
"""So long after the last new topic, no more are expected."""
HEAR_SECONDS = 3.0
"""How long something is waited for that should be there at once: a map, a transform."""
_NAME = "gp_active_sensing_init"
_POLL = 0.05
_OF_EVERY_NODE = ("/parameter_events", "/rosout")


class RunningSystem:
    """Looks at the ROS system around; see `running_system`.

    Args:
        node: asks for topics, and subscribes.
        spin: lets its callbacks run, for a moment.
    """

    def __init__(self, node: Any, spin: Callable[[], None]) -> None:
        self._node = node
        self._spin = spin

    def topics(self, wanted: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
        """Return by name the topics that somebody publishes, each with its types.

        Returns once those that are wanted are there, or, without any, when no more appear.

        Args:
            wanted: names of topics to wait for, for a moment.
        """
        end = time.monotonic() + FOUND_SECONDS
        found: dict[str, tuple[str, ...]] = {}
        quiet = math.inf
        while True:
            now = self._published()
            if now != found:
                found, quiet = now, time.monotonic() + QUIET_SECONDS
            moment = time.monotonic()
            complete = set(wanted) <= set(found) if wanted else moment > quiet
            if complete or moment > max(end, quiet if found and not wanted else end):
                return found
            self._spin()

    def listeners(self, wanted: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return by name the topics that somebody listens to, each with the types expected there.

        Args:
            wanted: names of topics to wait for, for a moment.
        """
        self._until(lambda: all(map(self._node.count_subscribers, wanted)), QUIET_SECONDS)
        found = {}
        for name, _ in self._node.get_topic_names_and_types():
            ends = self._node.get_subscriptions_info_by_topic(name)
            if ends and name not in _OF_EVERY_NODE:
                found[str(name)] = tuple(sorted({str(end.topic_type) for end in ends}))
        return dict(sorted(found.items()))

    def hear(
        self, types: Mapping[str, str], slow: Callable[[list[str]], None] = lambda topics: None
    ) -> dict[str, Heard]:
        """Listen to topics until their rates are known, or for `LISTEN_SECONDS`.

        Args:
            types: topic -> message type; those of one type that is not installed are left out.
            slow: told once which topics are listened to for longer than `HEAR_SECONDS`.

        Raises:
            ConfigError, MissingDependencyError: a type that there is not.
        """
        found = {topic: Heard(topic) for topic in types}
        stamps: dict[str, list[float]] = {topic: [] for topic in types}
        for topic, name in types.items():
            self._subscribe(found[topic], stamps[topic], find_message_type(name))

        def unknown() -> list[str]:
            return [heard.topic for heard in found.values() if not heard.is_known]

        if not self._until(lambda: not unknown()):
            slow(unknown())
            self._until(lambda: not unknown(), LISTEN_SECONDS - HEAR_SECONDS)
        ended = time.monotonic()
        for subscription in list(self._node.subscriptions):
            self._node.destroy_subscription(subscription)
        pace = self._pace([(stamps[heard.topic], heard.times) for heard in found.values()])
        for heard in found.values():
            heard.pace = pace
            heard.silent = ended - heard.times[-1] if heard.times else math.nan
        return found

    def _pace(self, streams: Collection[tuple[list[float], list[float]]]) -> float:
        """Return the seconds of simulated time in one of real time; 1 where there is no simulation.

        Args:
            streams: stamps of messages that have one, and when each came.
        """
        if not self._node.count_publishers("/clock"):
            return 1.0
        paces = [pace_of(stamps, times) for stamps, times in streams]
        return statistics.median([pace for pace in paces if math.isfinite(pace)] or [1.0])

    def latched(self, topic: str, type: str) -> Any | None:
        """Return the last message of a publisher that keeps it; None when none comes.

        Args:
            topic: its name.
            type: of the message.
        """
        found: list[Any] = []
        kind = find_message_type(type)
        subscription = self._node.create_subscription(kind, topic, found.append, qos.latched())
        self._until(lambda: bool(found))
        self._node.destroy_subscription(subscription)
        return found[-1] if found else None

    def why_no_transform(self, target: str, source: str) -> str:
        """Return why tf does not say how a frame lies in another one, "" when it does.

        Args:
            target: the other one, such as map.
            source: the frame, such as base_link.
        """
        tf2 = importlib.import_module("tf2_ros")  # `fit.tf_problem` says where it is missing
        buffer = tf2.Buffer()
        listener = tf2.TransformListener(buffer, self._node)
        why = ""

        def known() -> bool:
            nonlocal why
            try:
                buffer.lookup_transform(target, source, Time())
            except tf2.TransformException as error:
                why = str(error).strip().rstrip(".") or type(error).__name__
                return False
            why = ""
            return True

        self._until(known)
        for subscription in (listener.tf_sub, listener.tf_static_sub):
            self._node.destroy_subscription(subscription)
        if not why:
            return ""
        return (
            f"tf has no transform from {source!r} to the map's frame {target!r} ({why}): start "
            "what publishes it (a localisation or SLAM)"
        )

    def _until(self, done: Callable[[], bool], seconds: float = HEAR_SECONDS) -> bool:
        """Let callbacks run until something is the case; return whether it is."""
        end = time.monotonic() + seconds
        while not (found := done()) and time.monotonic() < end:
            self._spin()
        return found

    def _subscribe(self, heard: Heard, stamps: list[float], kind: Any) -> None:
        def take(message: Any, info: Mapping[str, Any]) -> None:
            heard.messages[:] = [message]
            heard.times.append(received_at(info))
            if hasattr(message, "header"):
                stamps.append(1e-9 * Time.from_msg(message.header.stamp).nanoseconds)

        self._node.create_subscription(kind, heard.topic, take, qos.sensor(100.0))

    def _published(self) -> dict[str, tuple[str, ...]]:
        found = {}
        for name, types in self._node.get_topic_names_and_types():
            if name not in _OF_EVERY_NODE and self._node.count_publishers(name):
                found[str(name)] = tuple(map(str, types))
        return dict(sorted(found.items()))


@contextmanager
def running_system() -> Iterator[RunningSystem]:
    """Take part in the ROS system of this domain for a moment, as a node without a sound."""
    os.environ.update(node_environment(os.environ))  # found within a quarter of a second
    context = Context()
    rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = rclpy.create_node(
            _NAME, context=context, enable_rosout=False, start_parameter_services=False
        )
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        try:
            yield RunningSystem(node, lambda: executor.spin_once(timeout_sec=_POLL))
        finally:
            executor.remove_node(node)
            executor.shutdown()
            node.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)
