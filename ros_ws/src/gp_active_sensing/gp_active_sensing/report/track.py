"""Tracks of the probes, from the poses in a journal."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gp_active_sensing.records.events import (
    DecisionTaken,
    Event,
    ProbePosition,
    ReadingUsed,
    ReturnBegun,
    StateChanged,
    StatusNoted,
)

MOST = 4000
"""Largest number of points over all tracks."""
_FINE = 1.0 / 1500.0
"""Smallest distance between consecutive points, as a fraction of the map's extent."""


@dataclass
class Track:
    """Driven track of a probe.

    Args:
        probe: name of the probe; "" for a single probe.
        points: (x, y) in driving order [m].
        upto: for each step, the number of points up to its end.
    """

    probe: str
    points: list[tuple[float, float]]
    upto: list[int]


class GrowingTracks:
    """Tracks of all probes, updated event by event.

    Args:
        extent: extent of the map [m].
        most: largest number of points; above it, every second point is dropped.
    """

    def __init__(self, extent: float, most: int = MOST) -> None:
        self._fine = extent * _FINE
        self._most = most
        self._points: dict[str, list[tuple[float, float, int, int]]] = {}
        """Points of each probe: x, y, number of decisions so far, 1 + number of readings so far."""
        self._newest: dict[str, int] = {}
        """Time of the last pose of each probe [ns]."""
        self._decisions = self._readings = 0

    def add(self, event: Event) -> None:
        """Add the poses of an event."""
        self._decisions += isinstance(event, DecisionTaken | ReturnBegun)
        for probe, stamp_ns, x, y in poses_of(event):
            if stamp_ns <= self._newest.get(probe, -1) or not math.isfinite(x + y):
                continue
            self._newest[probe] = stamp_ns
            points = self._points.setdefault(probe, [])
            if not points or math.dist(points[-1][:2], (x, y)) > self._fine:
                points.append((x, y, self._decisions, self._readings + 1))
        self._readings += isinstance(event, ReadingUsed)
        if sum(map(len, self._points.values())) > self._most:
            self._points = {probe: points[::2] for probe, points in self._points.items()}
            self._fine *= 2.0

    def tracks(self, ends: Sequence[int], *, by_stage: bool) -> list[Track]:
        """Return the tracks with at least two points.

        `ends` is the number of decisions (`by_stage`) or readings up to the end of each step.
        """
        found = []
        for probe, points in self._points.items():
            if len(points) > 1:
                counts = [point[2 if by_stage else 3] for point in points]
                upto = [bisect.bisect_right(counts, end) for end in ends]
                upto[-1] = len(points)
                found.append(Track(probe, [point[:2] for point in points], upto))
        return found


def poses_of(event: Event) -> Iterator[tuple[str, int, float, float]]:
    """Yield probe, time [ns], x [m] and y [m] of each pose in an event."""
    positions: Mapping[str, ProbePosition | None]
    match event:
        case ReadingUsed():
            if event.reading.position is not None:
                x, y = event.reading.position[:2]
                yield event.probe, event.reading.stamp_ns, x, y
            return
        case StatusNoted():
            positions = {name: status.where for name, status in event.probes.items()}
        case StateChanged():
            positions = event.probes
        case _:
            positions = {event.probe: getattr(event, "where", None)}
    for name, where in positions.items():
        if where is not None and where.pose is not None:
            yield (name, *where.pose)
