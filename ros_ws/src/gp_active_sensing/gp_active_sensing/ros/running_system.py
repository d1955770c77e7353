"""Compare a running ROS system with a mission: topics, types, fields, frames and rates.

`commands.mission_draft` shows the result.
"""

from __future__ import annotations

import importlib
import math
import os
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rclpy.time import Time

from gp_active_sensing.errors import ConfigError, MissingDependencyError, listed, suggest
from gp_active_sensing.messages.conversions import FieldPath, header_of, number_paths, pose_reader
from gp_active_sensing.mission.stream_config import PoseConfig, ReadingConfig
from gp_active_sensing.ros import qos
from gp_active_sensing.ros.environment import node_environment
from gp_active_sensing.ros.qos import received_at
from gp_active_sensing.ros.received import LISTEN_SECONDS, SLOWEST, TopicSample, pace_of
from gp_active_sensing.ros.to_messages import RosTypes, find_message_type
from gp_active_sensing.topology import Roads, Topology

FOUND_SECONDS = 4.0
"""Longest wait for the first topic [s]; discovery usually takes 0.25 s, sometimes 3 s."""
QUIET_SECONDS = 0.5
"""Time without a new topic after which the list of topics is complete [s]."""
RECEIVE_SECONDS = 3.0
"""Longest wait for a latched message or a transform [s]."""
_NAME = "gp_active_sensing_init"
_POLL = 0.05
_OF_EVERY_NODE = ("/parameter_events", "/rosout")


class RunningSystem:
    """Inspector of the ROS system of this domain; `running_system` creates it."""

    def __init__(self, node: Any, spin: Callable[[], None]) -> None:
        self._node = node
        self._spin = spin

    def topics(self, wanted: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
        """Return the types of each topic that has a publisher, by the topic's name.

        Wait until no new topic appears. If a `wanted` topic is missing, wait for it as well.
        """
        end = quiet = time.monotonic() + FOUND_SECONDS
        found: dict[str, tuple[str, ...]] = {}
        while True:
            now, moment = self._published(), time.monotonic()
            if now != found:
                found, quiet = now, moment + QUIET_SECONDS
            if moment > quiet and (moment > end or set(wanted) <= set(found)):
                return found
            self._spin()

    def listeners(self, wanted: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the types of each topic that has a subscriber, by the topic's name."""
        self._until(lambda: all(map(self._node.count_subscribers, wanted)), QUIET_SECONDS)
        found = {}
        for name, _ in self._node.get_topic_names_and_types():
            ends = self._node.get_subscriptions_info_by_topic(name)
            if ends and name not in _OF_EVERY_NODE:
                found[str(name)] = tuple(sorted({str(end.topic_type) for end in ends}))
        return dict(sorted(found.items()))

    def receive(
        self, types: Mapping[str, str], slow: Callable[[list[str]], None] = lambda topics: None
    ) -> dict[str, TopicSample]:
        """Receive messages until the rates of all topics are known, for at most `LISTEN_SECONDS`.

        After `RECEIVE_SECONDS`, `slow` is called with the topics whose rates are still unknown.

        Raises:
            ConfigError, MissingDependencyError: a type does not exist.
        """
        found = {topic: TopicSample(topic) for topic in types}
        stamps: dict[str, list[float]] = {topic: [] for topic in types}
        for topic, name in types.items():
            self._subscribe(found[topic], stamps[topic], find_message_type(name))

        def unknown() -> list[str]:
            return [received.topic for received in found.values() if not received.is_known]

        if not self._until(lambda: not unknown()):
            slow(unknown())
            self._until(lambda: not unknown(), LISTEN_SECONDS - RECEIVE_SECONDS)
        ended = time.monotonic()
        for subscription in list(self._node.subscriptions):
            self._node.destroy_subscription(subscription)
        pace = self._pace([(stamps[received.topic], received.times) for received in found.values()])
        for received in found.values():
            received.pace = pace
            received.silent = ended - received.times[-1] if received.times else math.nan
        return found

    def _pace(self, streams: Collection[tuple[list[float], list[float]]]) -> float:
        """Return the seconds on the robot's clock per second of real time; 1 = no simulation."""
        if not self._node.count_publishers("/clock"):
            return 1.0
        paces = [pace_of(stamps, times) for stamps, times in streams]
        return statistics.median([pace for pace in paces if math.isfinite(pace)] or [1.0])

    def latched(self, topic: str, type: str) -> Any | None:
        """Return the newest message of a latched topic; None = no message comes."""
        found: list[Any] = []
        kind = find_message_type(type)
        subscription = self._node.create_subscription(kind, topic, found.append, qos.latched())
        self._until(lambda: bool(found))
        self._node.destroy_subscription(subscription)
        return found[-1] if found else None

    def why_no_transform(self, target: str, source: str) -> str:
        """Return why tf has no transform from `source` to `target`; "" = tf has one."""
        tf2 = importlib.import_module("tf2_ros")  # `tf_problem` checked that it exists
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

    def _until(self, done: Callable[[], bool], seconds: float = RECEIVE_SECONDS) -> bool:
        """Run callbacks until `done` returns True or the time is over; return its last result."""
        end = time.monotonic() + seconds
        while not (found := done()) and time.monotonic() < end:
            self._spin()
        return found

    def _subscribe(self, received: TopicSample, stamps: list[float], kind: Any) -> None:
        def take(message: Any, info: Mapping[str, Any]) -> None:
            received.messages[:] = [message]
            received.times.append(received_at(info))
            if (header := header_of(message)) is not None:
                stamps.append(1e-9 * Time.from_msg(header.stamp).nanoseconds)

        def take_kept(message: Any, info: Mapping[str, Any]) -> None:
            if not received.times:
                take(message, info)

        self._node.create_subscription(kind, received.topic, take, qos.sensor(100.0))
        if kind.__name__ == "PoseWithCovarianceStamped":  # AMCL publishes poses only in motion
            self._node.create_subscription(kind, received.topic, take_kept, qos.latched())

    def _published(self) -> dict[str, tuple[str, ...]]:
        found = {}
        for name, types in self._node.get_topic_names_and_types():
            if name not in _OF_EVERY_NODE and self._node.count_publishers(name):
                found[str(name)] = tuple(map(str, types))
        return dict(sorted(found.items()))


@contextmanager
def running_system() -> Iterator[RunningSystem]:
    """Start a node without publishers; yield an inspector of the ROS system of this domain."""
    os.environ.update(node_environment(os.environ))  # for a fast discovery
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


_WAYPOINT = "geometry_msgs/msg/PoseStamped"
_NEARLY = 1.1
"""Largest accepted time between two poses on a map without roads, as a multiple of `SLOWEST`."""

Topics = Mapping[str, tuple[str, ...]]
"""Message types of each topic, by the topic's name."""


def topic_misfit(what: str, topic: str, type: str, topics: Topics) -> str:
    """Return why a topic is not usable as `what` (reading, pose or map); "" = usable."""
    found = topics.get(topic)
    if found is None:
        near = suggest(topic, topics)
        known = listed([f"{name} ({types[0]})" for name, types in topics.items()])
        return f"{what}: nobody publishes {topic}.{near} Published: {known}"
    if type not in found:
        instead = "" if what == "map" else f"--{what}-type {found[0]}, or "
        return (
            f"{what}: {topic} is of type {', '.join(found)}, not {type}: "
            f"give {instead}another topic"
        )
    return ""


def silent_map(topic: str) -> str:
    """Return the text for a map topic that has a publisher, but on which no message came."""
    return (
        f"map: no message came on {topic} in {RECEIVE_SECONDS:g} s, though it has a publisher. Has "
        "it a map yet, and is it latched (transient local), as SLAM and map_server publish it?"
    )


def field_misfit(reading: ReadingConfig) -> str:
    """Return why the configured message field of the readings is not usable; "" = usable."""
    types = RosTypes()
    try:
        numbers = number_paths(reading.type, types)
    except (ConfigError, MissingDependencyError) as error:
        return f"reading: {error}"
    try:
        FieldPath.parse(reading.field, reading.type, types, "field")
    except ConfigError as error:
        return f"reading: {error}. Numbers in {reading.type}: {listed(numbers, 20)}"
    return ""


def reading_misfits(reading: ReadingConfig, received: TopicSample) -> list[str]:
    """Return the problems that the sample of a reading topic shows."""
    if not received.messages:
        text = (
            f"{_silent('reading', received)} For one that measures only where it is sent set "
            "mission.wait_for_reading: false, for one that measures seldom a longer "
            "mission.reading_timeout"
        )
        return [text]
    value = FieldPath.parse(reading.field, reading.type, RosTypes()).read(received.messages[-1])
    if math.isfinite(value):
        return []
    return [f"reading: {reading.field} of {received.topic} is {value}, which is not used"]


def tf_problem(topics: Topics) -> str:
    """Return why tf is not usable; "" = tf is usable."""
    if {"/tf", "/tf_static"}.isdisjoint(topics):
        return "nobody publishes /tf or /tf_static, so that no pose can be looked up"
    if find_spec("tf2_ros") is None:
        return (
            "tf2_ros is not installed, so that no pose can be looked up: install "
            "ros-$ROS_DISTRO-tf2-ros-py and source its workspace"
        )
    return ""


def pose_misfits(
    pose: PoseConfig,
    received: TopicSample,
    places: Topology | None,
    why_no_transform: Callable[[str, str], str],
) -> list[str]:
    """Return the problems that the sample of a pose topic shows.

    `places` is the map; None = the map is not known yet. ``why_no_transform(target, source)``
    returns why tf has no transform from frame `source` to frame `target`; "" = tf has one.
    """
    if not received.messages:
        return [_silent("pose", received)]
    found: list[str] = []
    slowest = SLOWEST if places is not None and places.roads else _NEARLY * SLOWEST
    if received.is_single or received.period > slowest:
        every = f"comes every {received.period:.0f} s"
        often = f"came {received.in_words}" if received.is_single else every
        found.append(
            f"pose: {received.topic} {often}, too slowly to place readings. Publish it "
            f"at least every {SLOWEST:g} s"
        )
    origin = pose.origin(None if places is None else places.datum)
    if "NavSatFix" in pose.type and origin is None:
        found.append(
            f"pose: {received.topic} is a position on earth, and the map does not say where it is: "
            "give --datum LATITUDE,LONGITUDE of its origin (x east, y north), or a map in degrees"
        )
        return found
    if places is None:
        return found
    at = pose_reader(pose.type, datum=origin, frame=places.frame)(received.messages[-1])
    frame = at.frame.lstrip("/")
    if frame != places.frame:
        if why := why_no_transform(places.frame, frame):  # otherwise the node transforms the poses
            found.append(
                f"pose: {received.topic} is in frame {frame!r}, the map in {places.frame!r}: give "
                f"--frame {frame} if the map's metres are of that frame, or a topic with poses in "
                f"the map's. They are not transformed, since {why}"
            )
    elif not (math.isfinite(at.x) and math.isfinite(at.y)):
        found.append(f"pose: {received.topic} has no position yet (no fix?)")
    else:
        found += filter(None, [_distance_note(at, places)])
    return found


def roads_note(received: TopicSample, places: Topology | None) -> str:
    """Return a warning if poses come too rarely for the roads of a map; otherwise ""."""
    if not isinstance(places, Roads) or received.is_single:
        return ""
    limited = [(s.length, s.speed_limit) for s in places.segments if s.speed_limit]
    seconds = statistics.median([length / limit for length, limit in limited] or [math.inf])
    if not 2.0 * received.period > seconds:  # also true for NaN
        return ""
    return (
        f"pose: {received.topic} comes every {received.period:.1f} s. Half of the roads are driven "
        f"in less than {seconds:.1f} s at their speed limits. Readings of a road with fewer than "
        "two poses seldom count (partial_visit): publish poses more often, or set a smaller "
        "mission.coverage"
    )


def waypoint_note(name: str, listeners: Topics, topics: Topics, poses: Collection[str]) -> str:
    """Return a warning if the waypoint topic `name` has no suitable subscriber; otherwise "".

    `listeners` has the types of each topic that has a subscriber; `topics` has those of each topic
    that has a publisher. The warning may propose another topic, but none of the topics in `poses`.
    """
    there = listeners.get(name, ())
    if others := sorted({*there, *topics.get(name, ())} - {_WAYPOINT}):
        what = f"waypoint: {name} is of type {', '.join(others)}"
        if _WAYPOINT in there:
            return f"{what}, too; what listens to that hears no waypoint ({_WAYPOINT})"
        return f"{what}; waypoints are {_WAYPOINT}: give another topic (--waypoint)"
    if there:
        return ""
    near = [each for each, types in listeners.items() if _WAYPOINT in types and each not in poses]
    what = (
        f"its topic with --waypoint; somebody listens to {listed(near)}" if near else "--waypoint"
    )
    return (
        f"waypoint: nobody listens to {name} ({_WAYPOINT}) yet, on which the robot is told where "
        f"to go: start what drives it, or give {what}"
    )


def _silent(what: str, received: TopicSample) -> str:
    return (
        f"{what}: no message came on {received.topic} in {LISTEN_SECONDS:g} s, though somebody "
        "publishes it: is the device on?"
    )


def _distance_note(at: Any, places: Topology) -> str:
    """Return a warning if the robot is farther from the map than the map's size; otherwise ""."""
    positions = places.positions[:, :2]
    extent = float(np.hypot(*np.ptp(positions, axis=0)))
    away = float(np.hypot(*(positions - (at.x, at.y)).T).min())
    if away <= extent:
        return ""
    return (
        f"pose: the robot is at ({at.x:.0f}, {at.y:.0f}), {away:,.0f} m from the nearest place of "
        "the map: the map, its origin (--datum) or the frame may be another one"
    )
