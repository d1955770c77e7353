"""Values of map files: taken as they should be, or put down as a problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.features import FEATURES, RELATIONAL, ROAD_DISTANCE
from gp_active_sensing.topology.loaders.limits import MOST_NUMBER, is_text
from gp_active_sensing.topology.segments import Point

__all__ = ["RESERVED", "SHOWN_PROBLEMS", "Values", "fail", "is_number", "number_of", "shown"]

SHOWN_PROBLEMS = 10
"""The others are counted."""
RESERVED = frozenset({*FEATURES, RELATIONAL, ROAD_DISTANCE})
"""Names of features that every map has: none of `Segment.extra` may be called so."""


class Values:
    """What is wrong with a file, and what is to be said about it, while it is read.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.notes: list[str] = []
        self._counts: Counter[str] = Counter()

    def ignore(self, what: str) -> None:
        """Count something of the file that has no use here, to be said in a note."""
        self.count(f"left out: {what}")

    def count(self, sentence: str) -> None:
        """Count what was done, to be said in one note."""
        self._counts[sentence] += 1

    @property
    def counted(self) -> tuple[str, ...]:
        """The sentences that were counted, each with how often."""
        return tuple(f"{sentence} ({n})" for sentence, n in sorted(self._counts.items()))

    def text(self, value: Any, key: str, where: str) -> str:
        """Return a text or a whole number as text; anything else is a problem."""
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value:
            self.problems.append(f"{where}: {key}: expected text, got {shown(value)}")
            return ""
        return value

    def number(self, value: Any, key: str, where: str) -> float | None:
        """Return a number above 0, or None where there is none; anything else is a problem."""
        if value is None:
            return None
        number = float(value) if is_number(value) else math.nan
        if not 0 < number <= MOST_NUMBER:  # nor NaN
            least = "a number above 0" + (f", at most {MOST_NUMBER:g}" if number > 0 else "")
            self.problems.append(f"{where}: {key}: expected {least}, got {shown(value)}")
            return None
        return number

    def extra(self, values: Mapping[str, Any], where: str) -> dict[str, float]:
        """Return the other numbers of a segment; what is none is counted, NaN is a problem."""
        found: dict[str, float] = {}
        for key, value in values.items():
            if value is None:
                continue
            if not is_text(key):
                self.ignore(f"{key!r}, which holds half a character")
            elif not is_number(value):
                self.ignore(f"{key!r}, which is no number")
            elif not math.isfinite(value):
                self.problems.append(
                    f"{where}: {key}: expected a finite number, got {shown(value)}; leave it out "
                    "where it is not known"
                )
            elif key in RESERVED:
                self.ignore(f"{key!r}, since every segment has a feature of that name")
            else:
                found[key] = float(value)
        return found

    def line(self, coordinates: Any, where: str) -> tuple[Point, ...]:
        """Return the points of a line of GeoJSON; anything else is a problem."""
        if not isinstance(coordinates, list) or len(coordinates) < 2:
            count = len(coordinates) if isinstance(coordinates, list) else shown(coordinates)
            self.problems.append(f"{where}: a LineString needs 2 or more points, got {count}")
            return ()
        points: list[Point] = []
        for k, entry in enumerate(coordinates):
            plain = isinstance(entry, list) and len(entry) >= 2
            if not plain or not all(is_number(c) and math.isfinite(c) for c in entry[:2]):
                self.problems.append(
                    f"{where}: point {k}: expected two finite numbers, got {shown(entry)}"
                )
                return ()
            points.append((float(entry[0]), float(entry[1])))
        if any(any(entry[2:]) for entry in coordinates):
            self.ignore("the heights of a line's points")
        return tuple(points)

    def wkt(self, text: Any, key: str, where: str) -> tuple[Point, ...]:
        """Return the points of a line of shapely, or of its text; anything else is a problem."""
        import numpy as np
        import shapely

        try:
            with np.errstate(all="ignore"):  # what is not finite is found below
                shape: Any = shapely.from_wkt(text) if text and isinstance(text, str) else text
        except shapely.errors.GEOSException as error:
            self.problems.append(f"{where}: {key}: {error}"[:200])
            return ()
        if not isinstance(shape, shapely.LineString):
            self.problems.append(f"{where}: {key}: expected LINESTRING (x y, …), got {shown(text)}")
            return ()
        found = shapely.get_coordinates(shape, include_z=bool(shape.has_z))
        return self.line(found.tolist(), where)


def fail(path: Path, problems: Sequence[str]) -> None:
    """Raise an error with the problems, if there are any."""
    if not problems:
        return
    if len(problems) == 1:
        msg = f"{path}: {problems[0]}"
    else:
        lines = [f"  - {problem}" for problem in problems[:SHOWN_PROBLEMS]]
        rest = len(problems) - SHOWN_PROBLEMS
        if rest > 0:
            lines.append(f"  … and {rest} more")
        msg = f"{path}: {len(problems)} problems in the map:\n" + "\n".join(lines)
    raise MapError(msg)


def is_number(value: Any) -> bool:
    """Return whether a value is a number that float can hold (NaN is one)."""
    if isinstance(value, int) and abs(value) > 1 << 1000:
        return False
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_of(value: Any) -> float | None:
    """Return a number (NaN is one), also of a text; None where it is none."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def shown(value: Any) -> str:
    """Return a value for a message, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
