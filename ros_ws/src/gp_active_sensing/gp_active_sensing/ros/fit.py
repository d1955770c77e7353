"""Does a mission fit the system that it is to run on? Topics, types, fields, frames, rates."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from gp_active_sensing.errors import ConfigError, MissingDependencyError, listed, suggest
from gp_active_sensing.messages.conversions import FieldPath, pose_reader
from gp_active_sensing.messages.fields import number_paths
from gp_active_sensing.mission.stream_config import PoseConfig, ReadingConfig
from gp_active_sensing.ros.heard import LISTEN_SECONDS, SLOWEST, Heard
from gp_active_sensing.ros.running_system import HEAR_SECONDS
from gp_active_sensing.ros.to_messages import RosTypes
from gp_active_sensing.topology import Roads, Topology

__all__ = [
    "field_misfit",
    "pose_misfits",
    "reading_misfits",
    "roads_note",
    "silent_map",
    "tf_problem",
    "topic_misfit",
    "waypoint_note",
]

_WAYPOINT = "geometry_msgs/msg/PoseStamped"
_NEARLY = 1.1
"""So much more than `SLOWEST` is not worth a word off roads, where no visit ends by it."""

Topics = Mapping[str, tuple[str, ...]]
"""Name -> types, of the topics that somebody publishes."""


def topic_misfit(what: str, topic: str, type: str, topics: Topics) -> str:
    """Return why a topic cannot be used, "" when it can.

    Args:
        what: what it is for, in messages: reading, pose or map.
        topic: its name.
        type: of the messages that are expected.
        topics: those of the running system.
    """
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
    """Return what to say of a map that somebody publishes and that does not come."""
    return (
        f"map: no message came on {topic} in {HEAR_SECONDS:g} s, though somebody publishes it: has "
        "it a map yet, and is it latched (transient local), as SLAM and map_server publish it?"
    )


def field_misfit(reading: ReadingConfig) -> str:
    """Return why the value cannot be taken out of the messages, "" when it can."""
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


def reading_misfits(reading: ReadingConfig, heard: Heard) -> list[str]:
    """Return what is wrong with the readings that came."""
    if not heard.messages:
        text = (
            f"{_silent('reading', heard)} For one that measures only where it is sent set "
            "mission.wait_for_reading: false, for one that measures seldom a longer "
            "mission.reading_timeout"
        )
        return [text]
    value = FieldPath.parse(reading.field, reading.type, RosTypes()).read(heard.messages[-1])
    if math.isfinite(value):
        return []
    return [f"reading: {reading.field} of {heard.topic} is {value}: no number, which is not used"]


def tf_problem(topics: Topics) -> str:
    """Return why nothing can be looked up in tf here, "" when something can.

    Args:
        topics: those of the running system.
    """
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
    heard: Heard,
    places: Topology | None,
    why_no_transform: Callable[[str, str], str],
) -> list[str]:
    """Return what is wrong with the poses that came.

    Args:
        pose: how they are taken.
        heard: the poses.
        places: the map that they should be on; None = it is not known yet.
        why_no_transform: returns why tf does not say how a frame lies in the map's, "" when it
            does; given the map's frame and the other one.
    """
    if not heard.messages:
        return [_silent("pose", heard)]
    found: list[str] = []
    slowest = SLOWEST if places is not None and places.roads else _NEARLY * SLOWEST
    if heard.is_single or heard.period > slowest:
        often = f"came {heard.in_words}" if heard.is_single else f"comes every {heard.period:.0f} s"
        found.append(
            f"pose: {heard.topic} {often}, too slowly to say where a reading was taken: publish it "
            f"at least every {SLOWEST:g} s"
        )
    origin = pose.origin(None if places is None else places.datum)
    if "NavSatFix" in pose.type and origin is None:
        found.append(
            f"pose: {heard.topic} is a position on earth, and the map does not say where it is: "
            "give --datum LATITUDE,LONGITUDE of its origin (x east, y north), or a map in degrees"
        )
        return found
    if places is None:
        return found
    at = pose_reader(pose.type, datum=origin, frame=places.frame)(heard.messages[-1])
    frame = at.frame.lstrip("/")
    if frame != places.frame:
        if why := why_no_transform(places.frame, frame):  # else the node transforms them
            found.append(
                f"pose: {heard.topic} is in frame {frame!r}, the map in {places.frame!r}: give "
                f"--frame {frame} if the map's metres are of that frame, or a topic with poses in "
                f"the map's. They are not transformed, since {why}"
            )
    elif not (math.isfinite(at.x) and math.isfinite(at.y)):
        found.append(f"pose: {heard.topic} has no position yet (no fix?)")
    else:
        found += _far(at, places)
    return found


def roads_note(heard: Heard, places: Topology | None) -> str:
    """Return what to say of poses that come too seldom for the roads of a map, "" when they do not.

    Args:
        heard: the poses.
        places: the map; None = it is not known yet.
    """
    if not isinstance(places, Roads) or heard.is_single:
        return ""
    limited = [(s.length, s.speed_limit) for s in places.segments if s.speed_limit]
    seconds = statistics.median([length / limit for length, limit in limited] or [math.inf])
    if not 2.0 * heard.period > seconds:  # NaN too
        return ""
    return (
        f"pose: {heard.topic} comes every {heard.period:.1f} s, and half of the roads are driven "
        f"in less than {seconds:.1f} s at their speed limits. Readings of a road with fewer than "
        "two poses seldom count (partial_visit): publish poses more often, or set a smaller "
        "mission.coverage"
    )


def waypoint_note(name: str, listeners: Topics, topics: Topics, poses: Collection[str]) -> str:
    """Return what to say of who hears where to go, "" when all is well; robots may start later.

    Args:
        name: of the topic of the waypoints.
        listeners: name -> types expected there, of the topics that somebody listens to.
        topics: those that somebody publishes.
        poses: topics that the poses come on, and that are none for waypoints.
    """
    there = listeners.get(name, ())
    if others := sorted({*there, *topics.get(name, ())} - {_WAYPOINT}):
        what = f"waypoint: {name} is of type {', '.join(others)}"
        if _WAYPOINT in there:
            return f"{what}, too; what listens to that hears no waypoint ({_WAYPOINT})"
        return f"{what}; waypoints are {_WAYPOINT}: give another topic (--waypoint)"
    if there:
        return ""
    near = [
        other for other, types in listeners.items() if _WAYPOINT in types and other not in poses
    ]
    what = (
        f"its topic with --waypoint; somebody listens to {listed(near)}" if near else "--waypoint"
    )
    return (
        f"waypoint: nobody listens to {name} ({_WAYPOINT}) yet, on which the robot is told where "
        f"to go: start what drives it, or give {what}"
    )


def _silent(what: str, heard: Heard) -> str:
    return (
        f"{what}: no message came on {heard.topic} in {LISTEN_SECONDS:g} s, though somebody "
        "publishes it: is the device on?"
    )


def _far(at: Any, places: Topology) -> list[str]:
    """Return what to say of a robot that is farther from the map than the map is wide."""
    positions = places.positions[:, :2]
    extent = float(np.hypot(*np.ptp(positions, axis=0)))
    away = float(np.hypot(*(positions - (at.x, at.y)).T).min())
    if away <= extent:
        return []
    text = (
        f"pose: the robot is at ({at.x:.0f}, {at.y:.0f}), {away:,.0f} m from the nearest place of "
        "the map: the map, its origin (--datum) or the frame may be another one"
    )
    return [text]
