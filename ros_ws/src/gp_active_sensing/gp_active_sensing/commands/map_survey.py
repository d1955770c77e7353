"""Describe a map, and warn of its problems before a mission."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gp_active_sensing.topology.base import GraphTopology, Topology
from gp_active_sensing.topology.roads import parts_of
from gp_active_sensing.topology.segments import RoadMap, available, numbers_of
from gp_active_sensing.util.wording import counted

_KMH = 3.6
_MOST_CLASSES = 8


@dataclass(frozen=True)
class Survey:
    """Description of a map: figures for scripts, lines for people, and a short text."""

    figures: dict[str, Any]  # plain data; lengths [m], speeds [m/s]
    lines: list[tuple[str, str]]  # label and text of each line
    short: str
    warnings: list[str]  # sentences
    notes: tuple[str, ...]

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data."""
        texts = {"notes": list(self.notes), "warnings": self.warnings}
        return {**self.figures, "units": "metre", **texts}


def survey_places(places: Topology, kind: str) -> Survey:
    """Describe a map of kind grid or points."""
    moves, parts, largest = 0, 1, places.n
    if isinstance(places, GraphTopology):
        moves = sum(map(len, places.moves))
        parts, largest = places.components.weak, len(places.components.largest)
    low, high = places.points.min(axis=0).tolist(), places.points.max(axis=0).tolist()
    spacing = (_step(places.positions[:, 0]), _step(places.positions[:, 1]))
    figures = {
        "name": places.name,
        "frame": places.frame,
        "datum": None if places.datum is None else list(places.datum),
        "places": places.n,
        "spacing": list(spacing),
        "low": low,
        "high": high,
        "moves": moves,  # number of directed moves; 0 = free movement
        "parts": parts,
        "largest": largest,  # number of places in the largest connected part
        "lost": len(places.lost),
        "numbers": list(places.numbers),
    }
    warnings, joined = [], "one, with a way from each place to each"
    if parts > 1:
        joined = f"{parts}, not joined to each other; the largest has {counted(largest, 'place')}"
        warnings.append(
            f"no move joins its {parts} parts, the largest of which has {largest} of "
            f"{places.n} places: a probe stays in the part where it begins; a smaller spacing "
            "may join them, and map.largest_component: true keeps the largest only"
        )
    elif len(places.lost):
        joined += f"; left out: {counted(len(places.lost), 'place')} of free ground"
    apart = f"{spacing[0]:g}" if spacing[0] == spacing[1] else f"{spacing[0]:g} × {spacing[1]:g}"
    short = f"{counted(places.n, 'place')}{f' {apart} m apart' if kind == 'grid' else ''}"
    if kind == "points":
        ways = f"{moves}, of a table" if moves else "straight, to any other place"
        lines = [("places", f"{places.n}, map.kind: points"), ("ways", ways)]
    else:
        moved = counted(moves // 2, "move") if moves else "any one may be next"
        lines = [("places", f"{places.n}, {apart} m apart, {moved}"), ("parts", joined)]
    sides = " × ".join(_metres(b - a) for a, b in zip(low, high, strict=True))
    lines.append(("extent", f"{sides}, from x {low[0]:.10g}, y {low[1]:.10g} m"))
    lines.append(("coordinates", f"metres, frame {places.frame!r}{_datum(places.datum)}"))
    if places.heights is not None:
        lines.append(("heights", f"z {low[2]:g} … {high[2]:g} m"))
    if places.numbers:
        lines.append(("numbers", ", ".join(places.numbers)))
    return Survey(figures, lines, short, warnings, places.notes)


def _step(values: np.ndarray) -> float:
    """Return the smallest distance between different values [m]; 0 if all are equal."""
    apart = np.diff(np.unique(np.round(values, 6)))
    return float(np.round(apart.min(), 6)) if len(apart) else 0.0


def survey_roads(road_map: RoadMap) -> Survey:
    """Describe a road map, with U-turns only at dead ends."""
    segments, n = road_map.segments, len(road_map.segments)
    parts = parts_of(road_map)
    ends = Counter((segment.start, segment.end) for segment in segments)
    points = np.array([point for segment in segments for point in segment.line])
    width, height = np.ptp(points, axis=0).tolist()
    lengths = [segment.length for segment in segments]
    limits = [segment.speed_limit for segment in segments if segment.speed_limit is not None]
    one_way = sum((segment.end, segment.start) not in ends for segment in segments)
    junctions, dead_ends = len({name for pair in ends for name in pair}), _dead_ends(ends)
    features, outside, traps = available(road_map), len(parts.outside), len(parts.traps)
    numbers = numbers_of(segments)
    known = {key for key, values in numbers.items() if not np.isnan(values).all()}
    own = [name for name in features if name not in ("x", "y", "direction")]
    figures = {
        "name": road_map.name,
        "frame": road_map.frame,
        "crs": road_map.crs,
        "datum": None if road_map.datum is None else list(road_map.datum),
        "segments": n,
        "junctions": junctions,
        "metres": sum(lengths),
        "width": width,  # extent along x
        "height": height,  # extent along y
        "one_way": one_way,  # number of segments without a segment in the opposite direction
        "one_way_share": one_way / n,
        "dead_ends": dead_ends,  # number of junctions with a single neighbour
        "parts": parts.weak,  # number of parts without a move between them
        "largest": len(parts.largest),  # segments of the largest strongly connected part
        "outside": outside,
        "traps": traps,  # segments without a successor
        "shortest": min(lengths),
        "median_length": statistics.median(lengths),
        "longest": max(lengths),
        "without_limit": n - len(limits),
        "slowest": min(limits, default=None),
        "fastest": max(limits, default=None),
        "lanes": _counted("?" if s.lanes is None else f"{s.lanes:g}" for s in segments),
        "classes": _counted(segment.road_class for segment in segments),
        "features": list(features),  # features that every segment has
        "partly": sorted(known - set(features)),
        "constant": [k for k in own if n > 1 and not np.ptp(numbers[k])],
    }
    joined = "one, with a way from each segment to each"
    if outside:
        apart = "all joined" if parts.weak == 1 else f"{parts.weak} not joined to each other"
        joined = (
            f"{apart}; the largest with a way from each segment to each has "
            f"{len(parts.largest)}, outside: {outside}"
        )
    speeds = "none known"
    if limits:
        speeds = f"{min(limits) * _KMH:.0f} … {max(limits) * _KMH:.0f} km/h"
        speeds += f", {n - len(limits)} unknown" if len(limits) < n else ""
    origin = f"metres, frame {road_map.frame!r}, from {road_map.crs}{_datum(road_map.datum)}"
    middle = _metres(statistics.median(lengths))
    lines = [
        ("segments", f"{n}, {sum(lengths) / 1000:.1f} km"),
        ("one-way", f"{one_way} ({100.0 * one_way / n:.0f} %)"),
        ("lengths", f"{_metres(min(lengths))} … {_metres(max(lengths))}, median {middle}"),
        ("junctions", f"{junctions}, {counted(dead_ends, 'dead end')}"),
        ("parts", joined),
        ("extent", f"{_metres(width)} × {_metres(height)}"),
        ("coordinates", origin),
        ("limits", speeds),
        ("lanes", _counts(figures["lanes"])),
        ("classes", _counts(figures["classes"])),
        ("features", ", ".join(features)),
    ]
    short = f"{counted(n, 'segment')} between {counted(junctions, 'junction')}, "
    short += f"{sum(lengths) / 1000:.1f} km"
    return Survey(figures, lines, short, _road_warnings(figures), road_map.notes)


def _road_warnings(figures: dict[str, Any]) -> list[str]:
    found, segments = [], figures["segments"]
    if figures["outside"]:
        parts = figures["parts"]
        apart = f"{parts} parts are not joined at all; " if parts > 1 else ""
        found.append(
            f"outside the largest part with a way from each to each: {figures['outside']} of "
            f"{counted(segments, 'segment')} ({apart}leading nowhere: {figures['traps']}); keep "
            "that part only with `maps import --largest-component`, or map.largest_component in "
            "a scenario; map.u_turns: always may join them"
        )
    if segments == 1:
        found.append("there is one segment only: nothing is left to choose")
    if figures["without_limit"]:
        found.append(
            f"no speed limit: {figures['without_limit']} of {counted(segments, 'segment')}; "
            "map.speed of the scenario counts there"
        )
    if constant := ", ".join(figures["constant"]):
        found.append(f"the same for all segments, so that it tells none apart: {constant}")
    if partly := ", ".join(figures["partly"]):
        found.append(f"not known of every segment, so that it cannot be a feature: {partly}")
    return found


def _dead_ends(ends: Iterable[tuple[str, str]]) -> int:
    neighbours: dict[str, set[str]] = defaultdict(set)
    for start, end in ends:
        neighbours[start].add(end)
        neighbours[end].add(start)
    return sum(len(others - {junction}) == 1 for junction, others in neighbours.items())


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items(), key=lambda item: (-item[1], item[0])))


def _counts(counts: dict[str, int]) -> str:
    shown = [f"{word or 'none'}: {n}" for word, n in list(counts.items())[:_MOST_CLASSES]]
    rest = len(counts) - len(shown)
    return ", ".join(shown) + (f", {rest} more" if rest > 0 else "")


def _datum(datum: tuple[float, float] | None) -> str:
    if datum is None:
        return ""
    longitude, latitude = datum
    return (
        f"; the origin is longitude {longitude}, latitude {latitude} "
        f"(pose.datum: [{latitude}, {longitude}])"
    )


def _metres(value: float) -> str:
    return f"{value / 1000:.2f} km" if value >= 1000.0 else f"{value:.1f} m"
