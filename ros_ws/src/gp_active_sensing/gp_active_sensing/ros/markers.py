"""The map and the probes as markers, for RViz and Foxglove. Free functions; no node."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from gp_active_sensing.ros.to_messages import time_of
from gp_active_sensing.topology.base import Topology

__all__ = ["MARKS", "ShownProbe", "map_markers", "probe_markers"]

Colour = tuple[float, float, float, float]

MARKS: dict[str, tuple[Colour, float]] = {
    "topology": ((0.55, 0.55, 0.6, 0.6), 1.0),
    "visited": ((0.15, 0.5, 0.9, 1.0), 2.0),
    "set_aside": ((0.35, 0.35, 0.4, 1.0), 2.0),
    "blocked": ((0.85, 0.1, 0.15, 1.0), 3.0),
    "planned": ((0.95, 0.6, 0.1, 1.0), 3.0),
    "next": ((1.0, 0.3, 0.0, 1.0), 5.0),
}
"""Colour and width of the places of each kind; later ones lie on top, all below the field."""

_ROAD_METRES = 3.0
"""Width of a road, per unit of the above [m]."""
_HERE: Colour = (1.0, 0.25, 0.9, 1.0)  # which the colours of the field do not have
_GONE: Colour = (0.5, 0.5, 0.5, 1.0)
_LIFETIME_SECONDS = 3
"""How long a probe is shown after the node has fallen silent."""


@dataclass(frozen=True)
class ShownProbe:
    """Where a probe is.

    Args:
        name: "" in a mission of one.
        x: position [m].
        y: position [m].
        heading: from the x-axis [rad]; NaN = not known.
        stamp_ns: of the pose.
        takes_part: it does.
    """

    name: str
    x: float
    y: float
    heading: float
    stamp_ns: int
    takes_part: bool = True


def map_markers(
    topology: Topology, places: Mapping[str, Sequence[int]], stamp_ns: int
) -> MarkerArray:
    """Return the map, and the places of each kind, as one marker each.

    A kind without a place is deleted: RViz complains of a marker without points.

    Args:
        topology: the map.
        places: of each kind in `MARKS` but the first, which is all of the map.
        stamp_ns: time of the belief.
    """
    header = Header(stamp=time_of(stamp_ns), frame_id=topology.frame)
    lines = any(len(topology.geometry(place)) > 1 for place in range(topology.n))
    unit = _ROAD_METRES if lines else 0.1 * _spacing(topology)
    markers = []
    for number, (kind, (colour, width)) in enumerate(MARKS.items()):
        found = range(topology.n) if kind == "topology" else places.get(kind, ())
        marker = Marker(header=header, ns=kind, id=number)
        marker.action = Marker.ADD if found else Marker.DELETE
        marker.type = Marker.LINE_LIST if lines else Marker.POINTS
        marker.pose.orientation.w = 1.0
        marker.scale.x = marker.scale.y = width * unit
        marker.color = _colour(colour)
        marker.points = _points(topology, found, 0.1 * (number - len(MARKS)))
        markers.append(marker)
    return MarkerArray(markers=markers)


def _points(topology: Topology, places: Iterable[int], z: float) -> list[Point]:
    points: list[Point] = []
    for place in places:
        line = [Point(x=float(x), y=float(y), z=z) for x, y in topology.geometry(place)]
        if len(line) > 1:
            points.extend(end for step in itertools.pairwise(line) for end in step)
        else:
            points.extend(line)
    return points


def probe_markers(topology: Topology, probes: Iterable[ShownProbe]) -> MarkerArray:
    """Return an arrow for each probe (a ball while its heading is not known), and its name."""
    size = _spacing(topology)
    markers = []
    for number, probe in enumerate(probes):
        header = Header(stamp=time_of(probe.stamp_ns), frame_id=topology.frame)
        marker = Marker(header=header, ns="probe", id=number, action=Marker.ADD)
        marker.pose.position.x, marker.pose.position.y = probe.x, probe.y
        marker.pose.position.z = 0.1  # above the field
        marker.color = _colour(_HERE if probe.takes_part else _GONE)
        marker.lifetime.sec = _LIFETIME_SECONDS
        if math.isfinite(probe.heading):
            marker.type = Marker.ARROW
            marker.pose.orientation.z = math.sin(0.5 * probe.heading)
            marker.pose.orientation.w = math.cos(0.5 * probe.heading)
            marker.scale.x, marker.scale.y, marker.scale.z = size, 0.35 * size, 0.35 * size
        else:
            marker.type = Marker.SPHERE
            marker.pose.orientation.w = 1.0
            marker.scale.x = marker.scale.y = marker.scale.z = 0.5 * size
        markers.append(marker)
        if probe.name:
            markers.append(_label(marker, probe.name, size))
    return MarkerArray(markers=markers)


def _label(arrow: Marker, text: str, size: float) -> Marker:
    """Return the name of a probe, beside it."""
    marker = Marker(header=arrow.header, ns="name", id=arrow.id, action=Marker.ADD, text=text)
    marker.type = Marker.TEXT_VIEW_FACING
    marker.pose.position.x = arrow.pose.position.x
    marker.pose.position.y = arrow.pose.position.y + 0.8 * size
    marker.pose.position.z = arrow.pose.position.z
    marker.pose.orientation.w = 1.0
    marker.scale.z = 0.5 * size
    marker.color = arrow.color
    marker.lifetime = arrow.lifetime
    return marker


def _colour(colour: Colour) -> ColorRGBA:
    red, green, blue, alpha = colour
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def _spacing(topology: Topology) -> float:
    """Return a length of the order of the distance between neighbouring places [m]."""
    extent = np.ptp(topology.positions, axis=0)
    return max(float(np.max(extent)) / max(1.0, math.sqrt(topology.n)), 1e-3)
