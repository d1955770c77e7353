"""A road map as data: directed segments between junctions, before any policy on turns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

__all__ = ["Point", "RoadMap", "Segment", "length_of", "turn_angle"]

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Segment:
    """One directed road segment.

    Args:
        id: unique in the map.
        start: junction it leaves.
        end: junction it leads to.
        line: two or more points, in driving direction [m].
        length: driven when it is crossed [m].
        lanes: number of lanes, None when unknown.
        speed_limit: [m/s], None when unknown.
        successors: ids of the segments that may follow; None = all that leave `end`, except
            U-turns as the configuration says.
        name: of the road.
        road_class: such as "arterial".
        extra: other numbers that the map gives, by name; features may be made of them.
    """

    id: str
    start: str
    end: str
    line: tuple[Point, ...]
    length: float
    lanes: float | None = None
    speed_limit: float | None = None
    successors: tuple[str, ...] | None = None
    name: str = ""
    road_class: str = ""
    extra: Mapping[str, float] = field(default_factory=dict, hash=False)

    def reversed(self) -> Segment:
        """Return the twin in the opposite direction, called "-" and the id."""
        return replace(
            self,
            id=f"-{self.id}",
            start=self.end,
            end=self.start,
            line=self.line[::-1],
            successors=None,
        )


@dataclass(frozen=True)
class RoadMap:
    """What a loader returns: segments in a metric frame.

    Args:
        name: of the map, for messages.
        frame: metric frame of the coordinates.
        segments: at least one, ids differ, successors exist.
        datum: longitude and latitude of the origin of the frame [degree], None when unknown. East
            is x and north is y there.
        notes: what the loader took for granted, changed or left out, a sentence each.
        crs: what the coordinates of the file were in, "local" for metres of its own.
    """

    name: str
    frame: str
    segments: tuple[Segment, ...]
    datum: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    crs: str = "local"


def length_of(line: Sequence[Point]) -> float:
    """Return the length of a line [m]."""
    return math.fsum(math.dist(a, b) for a, b in pairwise(line))


def turn_angle(first: Segment, second: Segment) -> float:
    """Return by how much one turns from the end of a segment to the start of another [rad, 0…π]."""
    before = np.subtract(*_last_leg(first.line))
    after = np.subtract(*_last_leg(second.line[::-1])) * -1.0
    cross = float(before[0] * after[1] - before[1] * after[0])
    return abs(math.atan2(cross, float(before @ after)))


def _last_leg(line: Sequence[Point]) -> tuple[Point, Point]:
    """Return the end of a line and the last point before it that differs."""
    end = line[-1]
    return end, next(point for point in reversed(line) if point != end)
