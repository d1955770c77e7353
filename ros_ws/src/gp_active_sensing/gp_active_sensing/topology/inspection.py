"""Inspect a road map, or a map of places, before driving on it."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.features import available, value_of
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.segments import (
    RoadMap,
    Segment,
    parts_of,
)


@dataclass(frozen=True)
class PlaceSurvey:
    """Figures of a map of places; lengths in metres, datum longitude and latitude."""

    name: str
    frame: str
    datum: tuple[float, float] | None
    places: int
    spacing: tuple[float, float]  # least distance of columns and of rows of places [m]
    low: tuple[float, ...]  # least x, y, and z where they have heights [m]
    high: tuple[float, ...]  # largest ones [m]
    moves: int  # directed; 0 where any place may be next
    parts: int  # parts that no move joins
    largest: int  # places of the largest part
    lost: int  # places of free ground that were left out
    numbers: tuple[str, ...]  # names of the further numbers of the places
    notes: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about this map, a sentence each."""
        if self.parts == 1:
            return ()
        warning = (
            f"no move joins its {self.parts} parts, the largest of which has {self.largest} of "
            f"{self.places} places: a probe stays in the part where it begins; a smaller spacing "
            "may join them, and map.largest_component: true keeps the largest only"
        )
        return (warning,)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "units": "metre", "warnings": list(self.warnings)}


def survey_places(places: Topology) -> PlaceSurvey:
    """Return the figures of a map of places."""
    moves, parts, largest = 0, 1, places.n
    if isinstance(places, GraphTopology):
        moves = sum(map(len, places.moves))
        parts, largest = places.components.weak, len(places.components.largest)
    return PlaceSurvey(
        places.name,
        places.frame,
        places.datum,
        places=places.n,
        spacing=(_step(places.positions[:, 0]), _step(places.positions[:, 1])),
        low=tuple(places.points.min(axis=0).tolist()),
        high=tuple(places.points.max(axis=0).tolist()),
        moves=moves,
        parts=parts,
        largest=largest,
        lost=len(places.lost),
        numbers=tuple(places.numbers),
        notes=places.notes,
    )


def _step(values: np.ndarray) -> float:
    """Return the distance between neighbouring columns or rows [m], 0 where there is one only."""
    apart = np.diff(np.unique(np.round(values, 6)))
    return float(np.round(apart.min(), 6)) if len(apart) else 0.0


@dataclass(frozen=True)
class Survey:
    """Figures of a road map; lengths in metres, speeds in m/s, datum longitude and latitude."""

    name: str
    frame: str
    crs: str
    datum: tuple[float, float] | None
    segments: int
    junctions: int
    metres: float  # length of all segments
    width: float  # extent along x [m]
    height: float  # extent along y [m]
    one_way: int  # segments without one in the opposite direction
    dead_ends: int  # junctions with one neighbour only
    self_loops: int  # segments that end where they begin
    parallel: int  # segments with another one between the same junctions in the same direction
    parts: int  # parts that no move joins
    largest: int  # segments of the largest part with a way from each to each
    outside: int  # segments outside of it
    traps: int  # segments that no other one may follow
    with_successors: int  # segments that list which ones may follow
    shortest: float  # length of the shortest segment [m]
    median_length: float  # [m]
    longest: float  # length of the longest segment [m]
    without_limit: int  # segments without a speed limit
    slowest: float | None  # lowest limit [m/s], None when none is known
    fastest: float | None  # highest limit [m/s], None when none is known
    lanes: dict[str, int]  # number of segments by lanes; "?" = unknown
    classes: dict[str, int]  # number of segments by class; "" = none given
    features: tuple[str, ...]  # what a covariance may be a function of: what every segment has
    partly: tuple[str, ...]  # numbers that some segments have and others lack
    constant: tuple[str, ...]  # features that are the same everywhere, and tell no segments apart
    notes: tuple[str, ...]

    @property
    def one_way_share(self) -> float:
        """Share of the segments without one in the opposite direction."""
        return self.one_way / self.segments

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about this map, a sentence each."""
        found = []
        if self.outside:
            apart = f"{self.parts} parts are not joined at all; " if self.parts > 1 else ""
            found.append(
                f"{self.outside} of {self.segments} segments lie outside the largest part with a "
                f"way from each to each ({apart}{self.traps} segments lead nowhere); keep that "
                "part only with `maps import --largest-component`, or map.largest_component in a "
                "scenario; map.u_turns: always may join them"
            )
        if self.segments == 1:
            found.append("there is one segment only: nothing is left to choose")
        if self.without_limit:
            found.append(
                f"{self.without_limit} of {self.segments} segments have no speed limit; map.speed "
                "of the scenario counts there"
            )
        if self.constant:
            found.append(
                "the same for all segments, so that it tells none apart: "
                f"{', '.join(self.constant)}"
            )
        if self.partly:
            found.append(
                f"not known of every segment, so that it cannot be a feature: "
                f"{', '.join(self.partly)}"
            )
        return tuple(found)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **asdict(self),
            "units": "metre",
            "one_way_share": self.one_way_share,
            "warnings": list(self.warnings),
        }


def survey(road_map: RoadMap, u_turns: str = "dead_ends") -> Survey:
    """Return the figures of a road map, with U-turns as one of `U_TURNS` says."""
    segments = road_map.segments
    parts = parts_of(road_map, u_turns)
    ends = Counter((segment.start, segment.end) for segment in segments)
    xs = [x for segment in segments for x, _ in segment.line]
    ys = [y for segment in segments for _, y in segment.line]
    lengths = [segment.length for segment in segments]
    limits = [segment.speed_limit for segment in segments if segment.speed_limit is not None]
    features = available(road_map)
    return Survey(
        road_map.name,
        road_map.frame,
        road_map.crs,
        road_map.datum,
        segments=len(segments),
        junctions=len({junction for pair in ends for junction in pair}),
        metres=sum(lengths),
        width=max(xs) - min(xs),
        height=max(ys) - min(ys),
        one_way=sum((segment.end, segment.start) not in ends for segment in segments),
        dead_ends=_dead_ends(ends),
        self_loops=sum(segment.start == segment.end for segment in segments),
        parallel=sum(ends[segment.start, segment.end] > 1 for segment in segments),
        parts=parts.weak,
        largest=len(parts.largest),
        outside=len(parts.outside),
        traps=len(parts.traps),
        with_successors=sum(segment.successors is not None for segment in segments),
        shortest=min(lengths),
        median_length=statistics.median(lengths),
        longest=max(lengths),
        without_limit=len(segments) - len(limits),
        slowest=min(limits, default=None),
        fastest=max(limits, default=None),
        lanes=_counted("?" if s.lanes is None else f"{s.lanes:g}" for s in segments),
        classes=_counted(segment.road_class for segment in segments),
        features=features,
        partly=tuple(sorted(_numbers(segments) - set(features))),
        constant=tuple(name for name in features if _is_constant(segments, name)),
        notes=road_map.notes,
    )


def _dead_ends(ends: Iterable[tuple[str, str]]) -> int:
    neighbours: dict[str, set[str]] = defaultdict(set)
    for start, end in ends:
        neighbours[start].add(end)
        neighbours[end].add(start)
    return sum(len(others - {junction}) == 1 for junction, others in neighbours.items())


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items(), key=lambda item: (-item[1], item[0])))


def _numbers(segments: Iterable[Segment]) -> set[str]:
    """Return the names of the numbers that some segment has."""
    names = {name for segment in segments for name in segment.extra}
    for name in ("lanes", "speed_limit"):
        if any(getattr(segment, name) is not None for segment in segments):
            names.add(name)
    return names


def _is_constant(segments: tuple[Segment, ...], name: str) -> bool:
    if name in ("x", "y", "direction") or len(segments) < 2:
        return False
    first = value_of(segments[0], name)
    return all(value_of(segment, name) == first for segment in segments)
