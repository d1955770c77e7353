"""Pictures of maps: SVG without any library, PNG with matplotlib, both of one layout."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from pathlib import Path

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.report.frame import VALUES
from gp_active_sensing.topology.segments import Point

__all__ = ["INK", "OUTSIDE", "SCALE", "Picture", "PictureFrame", "draw_png", "legend", "svg_of"]

_SIZE, _LEAST = 1000.0, 520.0
"""Longer side of the map, and least width of the picture [pixel]."""
MARGIN, _HEAD, _FOOT = 24.0, 52.0, 58.0
OUTSIDE, INK, _PAPER = "#d1242f", "#1f2328", "#ffffff"
SCALE = ""
"""In place of a colour: the scale from the lowest value to the highest."""
_LETTER = 7.0
"""Width of a letter in the legend, about [pixel]."""

Box = tuple[float, float, float, float]
"""x, y of the upper left corner, width and height [pixel]."""


@dataclass(frozen=True)
class Picture:
    """What both kinds of picture show, in pixels from the upper left; what comes later lies above.

    Args:
        width: of the picture.
        height: of the picture.
        title: line at the top.
        ground: colour -> boxes below everything else.
        lines: (colour, width) -> lines.
        dots: (colour, radius) -> middles.
        arrows: x, y and direction [rad, anticlockwise] of one-way segments.
        boxes: of the legend, each with its colour.
        texts: x, y of the baseline, size and words.
    """

    width: float
    height: float
    title: str
    ground: dict[str, list[Box]] = field(default_factory=dict)
    lines: dict[tuple[str, float], list[tuple[Point, ...]]] = field(default_factory=dict)
    dots: dict[tuple[str, float], list[Point]] = field(default_factory=dict)
    arrows: list[tuple[float, float, float]] = field(default_factory=list)
    boxes: list[tuple[float, float, float, float, str]] = field(default_factory=list)
    texts: list[tuple[float, float, float, str]] = field(default_factory=list)


class PictureFrame:
    """Where metres of a map lie in a picture; north is up.

    Args:
        west, south, east, north: extent of what is drawn [m].
    """

    def __init__(self, west: float, south: float, east: float, north: float) -> None:
        self._west, self._south = west, south
        self.extent = max(east - west, north - south, 1e-9)
        self.scale = _SIZE / self.extent
        """Pixels a metre."""
        self.floor = _HEAD + (north - south) * self.scale
        """y of the southern edge [pixel]."""
        self._across = (east - west) * self.scale

    def at(self, x: float, y: float) -> Point:
        """Return where a position [m] lies [pixel]."""
        return (
            MARGIN + (x - self._west) * self.scale,
            self.floor - (y - self._south) * self.scale,
        )

    def picture(self, title: str) -> Picture:
        """Return an empty picture with a title."""
        width = max(_LEAST, self._across + 2 * MARGIN)
        made = Picture(width, self.floor + _FOOT, title)
        made.texts.append((MARGIN, 28.0, 16.0, title))
        return made


def legend(
    picture: Picture, frame: PictureFrame, entries: list[tuple[float, float, str, str]]
) -> None:
    """Add a scale bar, and what the colours mean.

    Args:
        picture: is added to.
        frame: of the map.
        entries: width, height and colour of a patch, and the words behind it.
    """
    bar = _round_length(frame.extent / 6.0)
    words = f"{bar / 1000:g} km" if bar >= 1000.0 else f"{bar:g} m"
    x, y = MARGIN, frame.floor + 34.0
    for width, height, colour, text in [(bar * frame.scale, 3.0, INK, words), *entries]:
        picture.boxes.append((x, y - height / 2.0, width, height, colour))
        picture.texts.append((x + width + 6.0, y + 4.5, 13.0, text))
        x += width + 28.0 + _LETTER * len(text)


def svg_of(picture: Picture) -> str:
    """Return a picture as SVG."""
    ground = ""
    for colour, cells in picture.ground.items():
        path = "".join(f"M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h{-w:.1f}z" for x, y, w, h in cells)
        ground += f'<path d="{path}" fill="{colour}"/>'
    paths, marks = [], []
    for (colour, stroke), lines in picture.lines.items():
        path = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line) for line in lines)
        paths.append(f'<path d="{path}" stroke="{colour}" stroke-width="{stroke:g}"/>')
    for (colour, radius), middles in picture.dots.items():  # a line of no length is a round dot
        path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in middles)
        paths.append(f'<path d="{path}" stroke="{colour}" stroke-width="{2.0 * radius:g}"/>')
    for x, y, angle in picture.arrows:
        turn = f"translate({x:.1f},{y:.1f}) rotate({-math.degrees(angle):.0f})"
        marks.append(f'<path d="M-3.5 -3L3.5 0L-3.5 3Z" transform="{turn}"/>')
    for x, y, width, height, colour in picture.boxes:
        box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        marks.append(f'<rect {box} fill="{colour or "url(#limits)"}"/>')
    for x, y, size, words in picture.texts:
        text = html.escape(words)
        marks.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}">{text}</text>')
    stops = "".join(
        f'<stop offset="{k / (len(VALUES) - 1):.3f}" stop-color="{colour}"/>'
        for k, colour in enumerate(VALUES)
    )
    extent = f'width="{picture.width:.0f}" height="{picture.height:.0f}"'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {picture.width:.0f} {picture.height:.0f}" {extent} '
        f'font-family="sans-serif" fill="{INK}"><title>{html.escape(picture.title)}</title>'
        f'<defs><linearGradient id="limits">{stops}</linearGradient></defs>'
        f'<rect width="100%" height="100%" fill="{_PAPER}"/>{ground}'
        f'<g fill="none" stroke-linecap="round" stroke-linejoin="round">{"".join(paths)}</g>'
        f"{''.join(marks)}</svg>\n"
    )


def draw_png(picture: Picture, path: Path) -> None:
    """Write a picture as PNG.

    Args:
        picture: what it shows.
        path: of the file.

    Raises:
        MissingDependencyError: matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import EllipseCollection, LineCollection, PolyCollection
        from matplotlib.figure import Figure
    except ImportError as error:
        msg = (
            "PNG pictures are drawn with matplotlib, which is not installed: pip install "
            "'gp_active_sensing[plot]'; a name that ends in .svg needs nothing"
        )
        raise MissingDependencyError(msg) from error
    figure = Figure(figsize=(picture.width / 100.0, picture.height / 100.0), dpi=100)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0.0, picture.width)
    axes.set_ylim(picture.height, 0.0)
    axes.set_axis_off()
    for colour, cells in picture.ground.items():
        corners = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in cells]
        axes.add_collection(PolyCollection(corners, facecolors=colour, linewidths=0.0, zorder=0))
    for (colour, stroke), lines in picture.lines.items():
        axes.add_collection(
            LineCollection(lines, colors=colour, linewidths=0.72 * stroke, capstyle="round")
        )
    for (colour, radius), middles in picture.dots.items():
        sizes = [2.0 * radius] * len(middles)
        axes.add_collection(
            EllipseCollection(
                sizes,
                sizes,
                [0.0],
                units="xy",
                offsets=middles,
                transOffset=axes.transData,
                facecolors=colour,
                zorder=3,
            )
        )
    axes.add_collection(PolyCollection([_triangle(a) for a in picture.arrows], facecolors=INK))
    for x, y, width, height, colour in picture.boxes:
        shades = (colour,) if colour else VALUES
        step = width / len(shades)
        for k, shade in enumerate(shades):
            axes.fill_between([x + k * step, x + (k + 1) * step], y, y + height, color=shade, lw=0)
    for x, y, size, words in picture.texts:
        axes.text(x, y, words, size=0.72 * size, color=INK, parse_math=False)
    figure.savefig(path, facecolor=_PAPER)


def _triangle(arrow: tuple[float, float, float]) -> list[Point]:
    x, y, angle = arrow
    c, s = math.cos(angle), math.sin(angle)
    corners = ((-3.5, -3.0), (3.5, 0.0), (-3.5, 3.0))
    return [(x + c * u + s * v, y - s * u + c * v) for u, v in corners]


def _round_length(wanted: float) -> float:
    """Return the largest of 1, 2, 5, 10, … that is no longer."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return max(step for step in (power, 2 * power, 5 * power) if step <= wanted * 1.0001)
