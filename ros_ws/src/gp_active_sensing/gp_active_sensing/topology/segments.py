"""A road map as data: directed segments between junctions, which may follow, connected parts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Segment:
    """One directed road segment."""

    id: str  # unique in the map
    start: str  # junction it leaves
    end: str  # junction it leads to
    line: tuple[Point, ...]  # two or more points, in driving direction [m]
    length: float  # driven when it is crossed [m]
    lanes: float | None = None  # number of lanes, None when unknown
    speed_limit: float | None = None  # [m/s], None when unknown
    # ids of the segments that may follow; None = all that leave `end`, except U-turns as the
    # configuration says
    successors: tuple[str, ...] | None = None
    name: str = ""  # of the road
    road_class: str = ""  # such as "arterial"
    # other numbers that the map gives, by name; features may be made of them
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
    """Result of a loader: segments in a metric frame."""

    name: str  # of the map, for messages
    frame: str  # metric frame of the coordinates
    segments: tuple[Segment, ...]  # at least one, ids differ, successors exist
    # longitude and latitude of the origin of the frame [degree], None when unknown. East is x and
    # north is y there
    datum: tuple[float, float] | None = None
    # what the loader took for granted, changed or left out, a sentence each
    notes: tuple[str, ...] = ()
    crs: str = "local"  # what the coordinates of the file were in, "local" for metres of its own


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


U_TURNS: tuple[str, ...] = ("dead_ends", "always", "never")
"""Where a probe may turn back onto the opposite side of the road it came by."""

_U_TURN_ANGLE = math.radians(150.0)


def successors_of(segments: Sequence[Segment], u_turns: str) -> list[list[int]]:
    """(n,) indices of the segments that may follow each: those it lists, else by `U_TURNS`."""
    by_id = {segment.id: i for i, segment in enumerate(segments)}
    leaving: dict[str, list[int]] = defaultdict(list)
    for i, segment in enumerate(segments):
        leaving[segment.start].append(i)
    result: list[list[int]] = []
    for segment in segments:
        if segment.successors is not None:
            result.append(sorted({by_id[b] for b in segment.successors}))
            continue
        out = leaving[segment.end]
        if u_turns == "always":
            result.append(out)
            continue
        back = [b for b in out if segments[b].end == segment.start]
        turns = {b for b in back if turn_angle(segment, segments[b]) > _U_TURN_ANGLE}
        onward = [b for b in out if b not in turns]
        result.append(onward if onward or u_turns == "never" else out)
    return result
