"""A picture of a road map: SVG without any library, PNG with matplotlib, both of one layout."""

from __future__ import annotations

import html
import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.report.frame import VALUES
from gp_active_sensing.topology.inspection import Survey
from gp_active_sensing.topology.segments import Point, RoadMap, Segment, length_of, parts_of

__all__ = ["draw_png", "svg_of"]

_SIZE, _LEAST = 1000.0, 520.0
"""Longer side of the map, and least width of the picture [pixel]."""
_MARGIN, _HEAD, _FOOT = 24.0, 52.0, 58.0
_UNKNOWN, _OUTSIDE, _INK, _PAPER = "#9aa0a6", "#d1242f", "#1f2328", "#ffffff"
_SCALE = ""
"""In place of a colour: the scale from the lowest limit to the highest."""
_KMH = 3.6
_MOST_ARROWS = 1500
"""Maps with more segments are drawn without arrows."""


@dataclass(frozen=True)
class _Layout:
    """What both kinds of picture show, in pixels from the upper left.

    Args:
        width: of the picture.
        height: of the picture.
        title: line at the top.
        lines: (colour, width) -> lines, those on top last.
        arrows: x, y and direction [rad, anticlockwise] of one-way segments.
        boxes: x, y, width, height and colour of the legend's patches.
        texts: x, y of the baseline, size and words.
    """

    width: float
    height: float
    title: str
    lines: dict[tuple[str, float], list[tuple[Point, ...]]]
    arrows: list[tuple[float, float, float]]
    boxes: list[tuple[float, float, float, float, str]] = field(default_factory=list)
    texts: list[tuple[float, float, float, str]] = field(default_factory=list)


def svg_of(road_map: RoadMap, figures: Survey) -> str:
    """Return the picture as SVG.

    Args:
        road_map: the map.
        figures: what `inspection.survey` found out about it.
    """
    layout = _layout(road_map, figures)
    paths, marks = [], []
    for (colour, stroke), lines in layout.lines.items():
        path = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line) for line in lines)
        paths.append(f'<path d="{path}" stroke="{colour}" stroke-width="{stroke:g}"/>')
    for x, y, angle in layout.arrows:
        turn = f"translate({x:.1f},{y:.1f}) rotate({-math.degrees(angle):.0f})"
        marks.append(f'<path d="M-3.5 -3L3.5 0L-3.5 3Z" transform="{turn}"/>')
    for x, y, width, height, colour in layout.boxes:
        box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        marks.append(f'<rect {box} fill="{colour or "url(#limits)"}"/>')
    for x, y, size, words in layout.texts:
        text = html.escape(words)
        marks.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}">{text}</text>')
    stops = "".join(
        f'<stop offset="{k / (len(VALUES) - 1):.3f}" stop-color="{colour}"/>'
        for k, colour in enumerate(VALUES)
    )
    extent = f'width="{layout.width:.0f}" height="{layout.height:.0f}"'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" {extent} '
        f'font-family="sans-serif" fill="{_INK}"><title>{html.escape(layout.title)}</title>'
        f'<defs><linearGradient id="limits">{stops}</linearGradient></defs>'
        f'<rect width="100%" height="100%" fill="{_PAPER}"/>'
        f'<g fill="none" stroke-linecap="round" stroke-linejoin="round">{"".join(paths)}</g>'
        f"{''.join(marks)}</svg>\n"
    )


def draw_png(road_map: RoadMap, figures: Survey, path: Path) -> None:
    """Write the picture as PNG.

    Args:
        road_map: the map.
        figures: what `inspection.survey` found out about it.
        path: of the picture.

    Raises:
        MissingDependencyError: matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import LineCollection, PolyCollection
        from matplotlib.figure import Figure
    except ImportError as error:
        msg = (
            "PNG pictures are drawn with matplotlib, which is not installed: pip install "
            "'gp_active_sensing[experiments]'; a name that ends in .svg needs nothing"
        )
        raise MissingDependencyError(msg) from error
    layout = _layout(road_map, figures)
    figure = Figure(figsize=(layout.width / 100.0, layout.height / 100.0), dpi=100)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0.0, layout.width)
    axes.set_ylim(layout.height, 0.0)
    axes.set_axis_off()
    for (colour, stroke), lines in layout.lines.items():
        axes.add_collection(
            LineCollection(lines, colors=colour, linewidths=0.72 * stroke, capstyle="round")
        )
    axes.add_collection(PolyCollection([_triangle(a) for a in layout.arrows], facecolors=_INK))
    for x, y, width, height, colour in layout.boxes:
        shades = (colour,) if colour else VALUES
        step = width / len(shades)
        for k, shade in enumerate(shades):
            axes.fill_between([x + k * step, x + (k + 1) * step], y, y + height, color=shade, lw=0)
    for x, y, size, words in layout.texts:
        axes.text(x, y, words, size=0.72 * size, color=_INK, parse_math=False)
    figure.savefig(path, facecolor=_PAPER)


def _layout(road_map: RoadMap, figures: Survey) -> _Layout:
    segments = road_map.segments
    scale = _SIZE / max(figures.width, figures.height, 1e-9)
    left = min(x for segment in segments for x, _ in segment.line)
    bottom = min(y for segment in segments for _, y in segment.line)
    floor = _HEAD + figures.height * scale

    def at(point: Point) -> Point:
        return _MARGIN + (point[0] - left) * scale, floor - (point[1] - bottom) * scale

    outside = set(parts_of(road_map).outside)
    lines: dict[tuple[str, float], list[tuple[Point, ...]]] = defaultdict(list)
    for i, segment in enumerate(segments):
        colour = _OUTSIDE if i in outside else _colour(segment.speed_limit, figures)
        stroke = 1.0 + 0.7 * min(segment.lanes or 1.0, 4.0)
        lines[colour, stroke].append(tuple(map(at, segment.line)))
    ends = {(segment.start, segment.end) for segment in segments}
    one_way = [s for s in segments if (s.end, s.start) not in ends]
    arrows = [_arrow(s) for s in one_way] if len(segments) <= _MOST_ARROWS else []
    title = (
        f"{road_map.name}: {figures.segments} segments, {figures.metres / 1000:.1f} km, "
        f"{100 * figures.one_way_share:.0f} % one-way"
    )
    layout = _Layout(
        max(_LEAST, figures.width * scale + 2 * _MARGIN),
        floor + _FOOT,
        title,
        dict(sorted(lines.items(), key=lambda item: (item[0][0] == _OUTSIDE, item[0][1]))),
        [(*at((x, y)), angle) for x, y, angle in arrows],
    )
    layout.texts.append((_MARGIN, 28.0, 16.0, title))
    _legend(layout, figures, scale, floor + 34.0)
    return layout


def _legend(layout: _Layout, figures: Survey, scale: float, y: float) -> None:
    """Add a scale bar and what the colours mean."""
    bar = _round_length(max(figures.width, figures.height, 1e-9) / 6.0)
    words = f"{bar / 1000:g} km" if bar >= 1000.0 else f"{bar:g} m"
    entries = [(bar * scale, 3.0, _INK, words)]
    if figures.slowest is not None and figures.fastest is not None:
        low, high = (_KMH * limit for limit in (figures.slowest, figures.fastest))
        entries.append((60.0, 11.0, _SCALE, f"limit {low:.0f} … {high:.0f} km/h"))
    if figures.without_limit:
        entries.append((11.0, 11.0, _UNKNOWN, "no limit known"))
    if figures.outside:
        entries.append((11.0, 11.0, _OUTSIDE, f"outside the largest part ({figures.outside})"))
    x = _MARGIN
    for width, height, colour, text in entries:
        layout.boxes.append((x, y - height / 2.0, width, height, colour))
        layout.texts.append((x + width + 6.0, y + 4.5, 13.0, text))
        x += width + 28.0 + 7.0 * len(text)


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


def _triangle(arrow: tuple[float, float, float]) -> list[Point]:
    x, y, angle = arrow
    c, s = math.cos(angle), math.sin(angle)
    corners = ((-3.5, -3.0), (3.5, 0.0), (-3.5, 3.0))
    return [(x + c * u + s * v, y - s * u + c * v) for u, v in corners]


def _round_length(wanted: float) -> float:
    """Return the largest of 1, 2, 5, 10, … that is no longer."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return max(step for step in (power, 2 * power, 5 * power) if step <= wanted * 1.0001)
