"""The picture of a road map: limits, one-ways, what cannot be reached."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

from gp_active_sensing.report.frame import VALUES
from gp_active_sensing.report.map_picture import OUTSIDE, SCALE, Picture, PictureFrame, legend
from gp_active_sensing.topology.inspection import Survey
from gp_active_sensing.topology.segments import Point, RoadMap, Segment, length_of, parts_of

__all__ = ["road_picture"]

_UNKNOWN = "#9aa0a6"
_KMH = 3.6
_MOST_ARROWS = 1500
"""Maps with more segments are drawn without arrows."""


def road_picture(road_map: RoadMap, figures: Survey) -> Picture:
    """Return the picture of a road map.

    Args:
        road_map: the map.
        figures: what `inspection.survey` found out about it.
    """
    segments = road_map.segments
    xs = [x for segment in segments for x, _ in segment.line]
    ys = [y for segment in segments for _, y in segment.line]
    frame = PictureFrame(min(xs), min(ys), max(xs), max(ys))
    picture = frame.picture(
        f"{road_map.name}: {figures.segments} segments, {figures.metres / 1000:.1f} km, "
        f"{100 * figures.one_way_share:.0f} % one-way"
    )
    outside = set(parts_of(road_map).outside)
    lines: dict[tuple[str, float], list[tuple[Point, ...]]] = defaultdict(list)
    for i, segment in enumerate(segments):
        colour = OUTSIDE if i in outside else _colour(segment.speed_limit, figures)
        stroke = 1.0 + 0.7 * min(segment.lanes or 1.0, 4.0)
        lines[colour, stroke].append(tuple(frame.at(x, y) for x, y in segment.line))
    picture.lines.update(
        sorted(lines.items(), key=lambda item: (item[0][0] == OUTSIDE, item[0][1]))
    )
    ends = {(segment.start, segment.end) for segment in segments}
    one_way = [s for s in segments if (s.end, s.start) not in ends]
    arrows = [_arrow(s) for s in one_way] if len(segments) <= _MOST_ARROWS else []
    picture.arrows.extend((*frame.at(x, y), angle) for x, y, angle in arrows)
    legend(picture, frame, _entries(figures))
    return picture


def _entries(figures: Survey) -> list[tuple[float, float, str, str]]:
    entries = []
    if figures.slowest is not None and figures.fastest is not None:
        low, high = (_KMH * limit for limit in (figures.slowest, figures.fastest))
        entries.append((60.0, 11.0, SCALE, f"limit {low:.0f} … {high:.0f} km/h"))
    if figures.without_limit:
        entries.append((11.0, 11.0, _UNKNOWN, "no limit known"))
    if figures.outside:
        entries.append((11.0, 11.0, OUTSIDE, f"outside the largest part ({figures.outside})"))
    return entries


def _colour(limit: float | None, figures: Survey) -> str:
    low, high = figures.slowest, figures.fastest
    if limit is None or low is None or high is None:
        return _UNKNOWN
    share = 0.5 if high == low else (limit - low) / (high - low)
    return VALUES[round(share * (len(VALUES) - 1))]


def _arrow(segment: Segment) -> tuple[float, float, float]:
    """Return the middle of a segment as drawn, and its direction there."""
    left = length_of(segment.line) / 2.0
    for (x0, y0), (x1, y1) in pairwise(segment.line):
        leg = math.hypot(x1 - x0, y1 - y0)
        if leg > 0.0 and left <= leg * (1.0 + 1e-9):
            share = left / leg
            return x0 + share * (x1 - x0), y0 + share * (y1 - y0), math.atan2(y1 - y0, x1 - x0)
        left -= leg
    return (*segment.line[-1], 0.0)
