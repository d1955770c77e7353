"""Collection of the segments of a road file, with checks of all values.

A reader adds segments in the coordinates of its file. `Drafts.finish` projects the segments to
local metres and builds the road map, or raises one error for all problems.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gp_active_sensing.errors import brief_repr, suggest
from gp_active_sensing.topology.loaders import SHOWN_PROBLEMS, fail, fault, is_number, is_text
from gp_active_sensing.topology.projection import place
from gp_active_sensing.topology.segments import (
    FEATURES,
    RELATIONAL,
    Point,
    RoadMap,
    Segment,
    length_of,
)

MOST_NUMBER = 1e9
"""Largest accepted length [m], speed limit [m/s], number of lanes, or coordinate [m]."""
MOST_TURNS = 10_000
"""Largest number of turns at a junction: arriving times leaving segments."""
SHORTEST = 1e-3
"""Smallest length of a segment [m]; a shorter segment has zero length."""
KMH = 1.0 / 3.6
"""One kilometre per hour [m/s]."""
MPH = 1609.344 / 3600.0
"""One mile per hour [m/s]."""

_SUFFIXES = ".gz .pbf .xml .geojson .json .graphml .csv .net .osm .edges".split()

_ENDS, _NUMBERS = ("id", "from", "to"), ("length", "lanes", "speed_limit")
_SURROGATE = "half a character (a lone surrogate)"
RESERVED = frozenset({*FEATURES, RELATIONAL})
"""Names of built-in features, which `Segment.extra` must not contain."""


@dataclass(frozen=True)
class Draft(Segment):
    """Segment in the coordinates of its file; `length` NaN = compute it from the line."""

    length: float = math.nan
    where: str = ""  # position in the file, for messages
    two_way: bool = False  # the opposite direction is added to the map


class Drafts:
    """Segments, problems and notes of a road file.

    With `join_zero_length`, both ends of a segment of zero length become one junction. Otherwise, a
    segment of zero length is a problem.
    """

    def __init__(self, path: Path, *, join_zero_length: bool = False) -> None:
        self.path = path
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.nodes: dict[str, Point] = {}
        self._counts: Counter[str] = Counter()
        self._drafts: list[Draft] = []
        self._where: dict[str, str] = {}
        self._join = join_zero_length

    def edge(
        self,
        where: str,
        names: Sequence[Any],
        line: tuple[Point, ...],
        tags: Mapping[str, Any],
        *,
        keys: Mapping[str, str] = MappingProxyType({}),
        extra: Mapping[str, Any] = MappingProxyType({}),
        two_way: bool = False,
    ) -> None:
        """Add a segment from unchecked values; count a wrong value as a problem.

        `names` are the id, the start junction and the end junction. `tags` may have length [m],
        lanes, speed_limit [m/s], successors, name and road_class. `keys` are the names of tags in
        the file, for messages. `extra` has further numbers. A `line` of () adds no segment.
        """
        before = len(self.problems)
        own, start, end = (
            self.text(v, keys.get(key, key), where) for key, v in zip(_ENDS, names, strict=True)
        )
        numbers = {key: self.number(tags.get(key), keys.get(key, key), where) for key in _NUMBERS}
        others = self.extra(extra, where)
        successors, called = tags.get("successors"), keys.get("successors", "successors")
        if not isinstance(successors, list | tuple | None):
            got = brief_repr(successors)
            self.problems.append(f"{where}: {called}: expected a list, got {got}")
        elif successors is not None:
            successors = tuple(self.text(s, called, where) for s in successors)
        if len(self.problems) > before or not line:
            return
        self.add(
            Draft(
                own,
                start,
                end,
                line,
                length=numbers["length"] or math.nan,
                lanes=numbers["lanes"],
                speed_limit=numbers["speed_limit"],
                successors=successors,
                name=str(tags.get("name") or ""),
                road_class=str(tags.get("road_class") or ""),
                extra=others,
                where=where,
                two_way=two_way,
            )
        )

    def add(self, draft: Draft) -> None:
        """Add a segment; count a repeated id as a problem."""
        texts = (draft.id, draft.start, draft.end, draft.name, draft.road_class)
        before, where = len(self.problems), draft.where
        if wrong := [text for text in texts if not is_text(text)]:
            self.problems.append(f"{where}: {brief_repr(wrong[0])} holds {_SURROGATE}")
            return
        if any(abs(c) > MOST_NUMBER for point in draft.line for c in point):
            self.problems.append(
                f"{where}: a coordinate is beyond {MOST_NUMBER:g}, where no road is"
            )
            return
        twin = [(f"-{draft.id}", f"{where}, the reverse of it")] if draft.two_way else []
        for identity, title in [(draft.id, where), *twin]:
            if identity in self._where:
                other = self._where[identity]
                self.problems.append(f"{title}: id {identity!r} is taken by {other}")
            self._where.setdefault(identity, title)
        if len(self.problems) == before:
            self._drafts.append(draft)

    def ignore(self, what: str) -> None:
        """Count an unused part of the file; a note will report it."""
        self.count(f"left out: {what}")

    def count(self, sentence: str) -> None:
        """Count a sentence; `finish` adds it to the notes once, with its count."""
        self._counts[sentence] += 1

    def text(self, value: Any, key: str, where: str) -> str:
        """Return a text, or a whole number as text; count any other value as a problem."""
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value:
            self.problems.append(f"{where}: {key}: expected text, got {brief_repr(value)}")
            return ""
        return value

    def number(self, value: Any, key: str, where: str) -> float | None:
        """Return a number above 0, or None for None; count any other value as a problem."""
        if value is None:
            return None
        number = float(value) if is_number(value) else math.nan
        if not 0 < number <= MOST_NUMBER:  # nor NaN
            least = "a number above 0" + (f", at most {MOST_NUMBER:g}" if number > 0 else "")
            self.problems.append(f"{where}: {key}: expected {least}, got {brief_repr(value)}")
            return None
        return number

    def extra(self, values: Mapping[str, Any], where: str) -> dict[str, float]:
        """Return the finite numbers among values; report NaN as a problem, and text in a note."""
        found: dict[str, float] = {}
        for key, value in values.items():
            if value is None:
                continue
            if not is_text(key):
                self.ignore(f"{key!r}, which holds {_SURROGATE}")
            elif not is_number(value):
                self.ignore(f"{key!r}, which is no number")
            elif not math.isfinite(value):
                self.problems.append(
                    f"{where}: {key}: expected a finite number, got {brief_repr(value)}; leave it "
                    "out where it is not known"
                )
            elif key in RESERVED:
                self.ignore(f"{key!r}, since every segment has a feature of that name")
            else:
                found[key] = float(value)
        return found

    def node(self, where: str, identity: str, position: Sequence[Any]) -> bool:
        """Add a node at x and y; count a wrong or repeated node as a problem."""
        if len(position) != 2 or not all(is_number(c) and math.isfinite(c) for c in position):
            got = brief_repr(list(position))
            self.problems.append(f"{where}: expected two finite numbers, got {got}")
            return False
        if identity in self.nodes:
            self.problems.append(f"{where}: id {identity!r} is taken by another node")
        self.nodes[identity] = (float(position[0]), float(position[1]))
        return True

    def between(
        self, where: str, start: str, end: str, keys: Sequence[str] = ("from", "to")
    ) -> tuple[Point, ...]:
        """Return the line between two nodes; count an unknown node as a problem."""
        ends = dict(zip(keys, (start, end), strict=True))
        unknown = [key for key, node in ends.items() if node not in self.nodes]
        # `edge` reports an empty name.
        self.problems += [f"{where}: {k}: no node {ends[k]!r}" for k in unknown if ends[k]]
        return () if unknown else (self.nodes[start], self.nodes[end])

    def line(self, coordinates: Any, where: str) -> tuple[Point, ...]:
        """Return the points of a GeoJSON line; count anything else as a problem."""
        if not isinstance(coordinates, list) or len(coordinates) < 2:
            count = len(coordinates) if isinstance(coordinates, list) else brief_repr(coordinates)
            self.problems.append(f"{where}: a LineString needs 2 or more points, got {count}")
            return ()
        points: list[Point] = []
        for k, entry in enumerate(coordinates):
            plain = isinstance(entry, list) and len(entry) >= 2
            if not plain or not all(is_number(c) and math.isfinite(c) for c in entry[:2]):
                got = brief_repr(entry)
                self.problems.append(f"{where}: point {k}: expected two finite numbers, got {got}")
                return ()
            points.append((float(entry[0]), float(entry[1])))
        if any(any(entry[2:]) for entry in coordinates):
            self.ignore("the heights of a line's points")
        return tuple(points)

    def wkt(self, text: Any, key: str, where: str) -> tuple[Point, ...]:
        """Return the points of a LineString or of its WKT; count anything else as a problem."""
        import numpy as np
        import shapely

        try:
            with np.errstate(all="ignore"):  # `line` rejects infinite coordinates.
                shape: Any = shapely.from_wkt(text) if text and isinstance(text, str) else text
        except shapely.errors.GEOSException as error:
            self.problems.append(f"{where}: {key}: {error}"[:200])
            return ()
        if not isinstance(shape, shapely.LineString):
            got = brief_repr(text)
            self.problems.append(f"{where}: {key}: expected LINESTRING (x y, …), got {got}")
            return ()
        found = shapely.get_coordinates(shape, include_z=bool(shape.has_z))
        return self.line(found.tolist(), where)

    def finish(
        self,
        crs: str,
        *,
        name: str = "",
        frame: str = "map",
        datum: Point | None = None,
        allow_small: bool = False,
        nothing: str = "expected at least one segment",
    ) -> RoadMap:
        """Build the road map from the collected segments; see `projection.place`.

        Args:
            crs: coordinate system; "" = determined from the coordinates.
            name: name of the map; "" = the name of the file.
            frame: metric frame of the map.
            datum: longitude and latitude of the origin of local metres.
            allow_small: True = accept metres even if the map is so small that they look like
                degrees.
            nothing: error message for a file without segments.

        Raises:
            MapError: the file has problems; the message shows the first ten.
            MissingDependencyError: the coordinates need pyproj, which is missing.
        """
        for key, word in (("name", name), ("frame", frame)):
            if not is_text(word):
                self.problems.append(f"{key}: {brief_repr(word)} holds {_SURROGATE}")
        fail(self.path, self.problems)
        if not self._drafts:
            raise fault(self.path, f"has no segments; {nothing}")
        lines, placed = place(
            [draft.line for draft in self._drafts],
            crs,
            where=str(self.path),
            lengths=[None if math.isnan(d.length) else d.length for d in self._drafts],
            allow_small=allow_small,
        )
        pairs = list(zip(self._drafts, lines, strict=True))
        if empty := [draft for draft, line in pairs if _length(draft, line) < SHORTEST]:
            if self._join:
                pairs = self._joined(pairs)
            else:
                join, loop = "join its junctions instead", "a loop needs the line that it follows"
                self.problems += [
                    f"{draft.where}: has zero length; {loop if draft.start == draft.end else join}"
                    for draft in empty
                ]
        segments: list[Segment] = []
        for draft, line in pairs:
            values = {field.name: getattr(draft, field.name) for field in fields(Segment)}
            length = length_of(line) if math.isnan(draft.length) else draft.length
            segment = Segment(**values | {"line": line, "length": length})
            segments += [segment, segment.reversed()] if draft.two_way else [segment]
        fail(self.path, self.problems)
        if not segments:
            raise fault(self.path, f"has no segments of some length; {nothing}")
        begun = Counter(segment.start for segment in segments)
        ended = Counter(segment.end for segment in segments)
        self.problems += [
            f"junction {junction!r}: {count} segments end and {begun[junction]} begin there; "
            f"expected at most {MOST_TURNS} ways from one to another"
            for junction, count in ended.items()
            if count * begun[junction] > MOST_TURNS
        ]
        self._check_successors(segments)
        fail(self.path, self.problems)
        bare = self.path.name  # name without the endings of map formats
        for end in _SUFFIXES:
            bare = bare.removesuffix(end)
        return RoadMap(
            name or (self.path.stem if bare == self.path.name else bare),
            frame,
            tuple(segments),
            datum if placed.datum is None else placed.datum,
            (*self.notes, *placed.notes, *(f"{k} ({n})" for k, n in sorted(self._counts.items()))),
            placed.crs,
        )

    def _joined(
        self, pairs: Sequence[tuple[Draft, tuple[Point, ...]]]
    ) -> list[tuple[Draft, tuple[Point, ...]]]:
        """Drop segments of zero length, and merge the junctions at their ends."""
        other: dict[str, str] = {}

        def root(junction: str) -> str:
            while junction in other:
                junction = other[junction]
            return junction

        kept = []
        for draft, line in pairs:
            if _length(draft, line) >= SHORTEST:
                kept.append((draft, line))
            elif root(draft.start) != root(draft.end):
                other[root(draft.end)] = root(draft.start)
        self.notes.append(
            f"{len(pairs) - len(kept)} segment(s) without length were left out and their ends "
            "joined"
        )
        return [
            (replace(draft, start=root(draft.start), end=root(draft.end)), line)
            for draft, line in kept
        ]

    def _check_successors(self, segments: Sequence[Segment]) -> None:
        starts = {segment.id: segment.start for segment in segments}
        for segment in segments:
            where = f"{self._where[segment.id]}: successors"
            for successor in segment.successors or ():
                if successor not in starts:
                    self._unknown(f"{where}: no segment", successor, starts)
                elif starts[successor] != segment.end:
                    self.problems.append(
                        f"{where}: {successor!r} starts at junction {starts[successor]!r}, but "
                        f"this segment ends at {segment.end!r}"
                    )

    def _unknown(self, what: str, name: str, known: Collection[str]) -> None:
        hint = suggest(name, known) if len(self.problems) < SHOWN_PROBLEMS else ""
        self.problems.append(f"{what} {name!r} on the map.{hint}")

    def check_junctions(self, known: Collection[str]) -> None:
        """Report segments that do not end at `known` junctions; () = no check."""
        for draft in self._drafts if known else ():
            for key, junction in (("from", draft.start), ("to", draft.end)):
                if junction not in known:
                    self._unknown(f"{draft.where}: {key}: no junction", junction, known)


def _length(draft: Draft, line: Sequence[Point]) -> float:
    drawn = length_of(line)
    return drawn if math.isnan(draft.length) else min(drawn, draft.length)
