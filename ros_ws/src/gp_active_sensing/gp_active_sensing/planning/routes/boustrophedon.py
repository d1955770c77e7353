"""Evenly spaced rows that are driven back and forth, on maps without roads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gp_active_sensing.planning.routes.distances import Distances, distances_of, mean_distance
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

CORNERS = 4
"""Number of corners in which rows may begin."""
_INSETS = (0.5, 0.25, 0.0)
"""Insets of the rows, as fractions of the spacing."""
_SAME_AXIS = 5.0
"""Largest angle between the map's long axis and x or y at which both count as equal [degrees]."""
_SQUARE = 1.2
"""Smallest ratio of length to width for which a map has a long axis."""
_OBLONG = 1.35
"""Largest ratio of spacings along and across rows that count as nearly equal."""
_PLACES, _PIECES = 3000, 60
"""Numbers of places and of row pieces up to which the order of the pieces is searched."""


@dataclass(frozen=True)
class Rows:
    """Layout of rows.

    Args:
        spacing: distance between the middles of neighbouring rows [m].
        inset: least distance from the edge of the map to the outermost rows and to row ends [m].
        direction: direction of the rows, anticlockwise from x [degrees].
        corner: corner in which the drive begins. 0 and 1 = beginning and end of the first
            (rightmost) row; 2 and 3 = beginning and end of the last row.
        along: distance between the places of a row [m]; 0 = every place.
    """

    spacing: float
    inset: float = 0.0
    direction: float = 0.0
    corner: int = 0
    along: float = 0.0


class Ground:
    """Map with coordinates along and across rows.

    Args:
        topology: map with positions, without roads. If places lie above one another, a row contains
            all of them.
        places: (n,) mask of the places that a route may contain; None = all places.
    """

    def __init__(self, topology: Topology, places: BoolArray | None = None) -> None:
        chosen = np.ones(topology.n, dtype=np.bool_) if places is None else places
        self.topology = topology
        self.places: IntArray = np.flatnonzero(chosen)
        self.positions: FloatArray = topology.positions[self.places]
        self.pitch = distances_of(topology).pitch
        """Distance between neighbouring places [m]."""
        self._seen: dict[float, tuple[FloatArray, FloatArray, IntArray]] = {}
        self._lines: dict[Rows, list[IntArray]] = {}

    @property
    def directions(self) -> tuple[float, ...]:
        """Directions to try: x, y and the long axis of the map [degrees]."""
        if len(self.places) < 3:
            return (0.0, 90.0)
        centred = self.positions - self.positions.mean(axis=0)
        values, axes = np.linalg.eigh(centred.T @ centred)
        if values[1] < _SQUARE**2 * values[0]:
            return (0.0, 90.0)
        x, y = axes[:, 1]
        long = round(math.degrees(math.atan2(y, x)) % 180.0, 3)
        if min(long % 90.0, 90.0 - long % 90.0) <= _SAME_AXIS:
            return (0.0, 90.0)
        return (0.0, 90.0, long)

    def corner(self, direction: float, at: int | None) -> int:
        """Return the corner nearest to the place `at` of a probe, or 0 if `at` is None."""
        if at is None or not len(self.places):
            return 0
        u, v = self.seen(direction)
        angle = math.radians(direction)
        x, y = self.topology.positions[at]
        ahead = x * math.cos(angle) + y * math.sin(angle) > 0.5 * float(u.min() + u.max()) + 1e-6
        left = y * math.cos(angle) - x * math.sin(angle) > 0.5 * float(v.min() + v.max()) + 1e-6
        return int(ahead) + 2 * int(left)

    def extent(self, direction: float) -> tuple[float, float]:
        """Return the extent of the map along and across a direction [m]."""
        u, v = self.seen(direction)
        return (float(np.ptp(u)), float(np.ptp(v))) if len(u) else (0.0, 0.0)

    def seen(self, direction: float) -> tuple[FloatArray, FloatArray]:
        """Return the coordinates (m,) of the places along and across a direction [m]."""
        return self._along(direction)[:2]

    def _along(self, direction: float) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return the coordinates from `seen`, and indices (m,) that sort the places across rows."""
        if direction not in self._seen:
            angle = math.radians(direction)
            across = np.array([-math.sin(angle), math.cos(angle)])
            ahead = np.array([math.cos(angle), math.sin(angle)])
            u, v = np.round(self.positions @ ahead, 6), np.round(self.positions @ across, 6)
            self._seen[direction] = u, v, np.argsort(v, kind="stable")
        return self._seen[direction]

    def lines(self, rows: Rows) -> list[IntArray]:
        """Return one array for each row: the indices in `places` of the row's places, in order."""
        key = replace(rows, corner=0)
        if key not in self._lines:
            self._lines[key] = _lines(self.pitch, rows, *self._along(rows.direction))
        return self._lines[key]

    def places_of(self, rows: Rows) -> IntArray:
        """Return the places of all rows, sorted by index; `rows_of` has the order of the visits."""
        lines = self.lines(rows)
        return np.unique(self.places[np.concatenate(lines)]) if lines else self.places[:0]

    def evenly(
        self,
        *,
        spacing: float | None = None,
        inset: float | None = None,
        direction: float | None = None,
        sparse: bool = False,
    ) -> Iterator[tuple[Rows, ...]]:
        """Yield families of layouts. Each family is sorted from the fewest to the most rows.

        All layouts of a family have one direction and one inset as a fraction of the spacing.

        Args:
            spacing: distance between rows [m]; None = all spacings with which rows fill the map.
            inset: distance of rows from the edge [m]; None = each of `_INSETS`.
            direction: direction of the rows [degrees]; None = each of `directions`.
            sparse: True if the places along a row are about as far apart as the rows.
        """
        for angle in self.directions if direction is None else (direction,):
            length, width = self.extent(angle)
            for share in _INSETS if inset is None else (None,):
                spacings = self._spacings(width, share, inset) if spacing is None else [spacing]
                alongs = self._spacings(length, share, inset)
                if sparse and spacing is None:
                    spacings = [*spacings, *alongs]
                family = {
                    Rows(
                        spacing=apart,
                        inset=float(inset or 0.0) if share is None else share * apart,
                        direction=angle,
                        along=along,
                    )
                    for apart in spacings
                    for along in (_near(apart, alongs) if sparse else (0.0,))
                }
                if family:
                    yield tuple(
                        sorted(family, key=lambda r: (-r.spacing * (r.along or 1.0), r.along))
                    )

    def _spacings(self, width: float, share: float | None, inset: float | None) -> list[float]:
        """Return the spacings with which 1, 2, … rows fill a width [m]."""
        pitch = self.pitch
        found: list[float] = []
        room = width - 2.0 * (inset or 0.0)
        rows = 1
        while True:
            # A single row without an inset is in the middle, for any spacing.
            gaps = rows - 1 + (0.0 if share is None else 2.0 * share)
            spacing = max(room, pitch) / gaps if gaps > 0.0 else max(width, pitch)
            if spacing < pitch * (1.0 - 1e-6) and found:
                return found
            found.append(round(max(spacing, pitch), 6))
            if found[-1] <= pitch or rows > 2 * len(self.places):
                return found
            rows += 1

    def mean_distance(self, visited: Sequence[int] | IntArray) -> float:
        """Return the mean straight distance from a place to the nearest visited place [m]."""
        points = self.topology.points
        return mean_distance(points[self.places], points, visited)


def rows_of(ground: Ground, rows: Rows, by: str = "seconds") -> tuple[int, ...]:
    """Return the places of evenly spaced rows in the order of the visits.

    The rows lie symmetrically about the middle of the map. A row contains the places whose distance
    from the middle of the row is at most half of `Distances.pitch`. If `Rows.along` is not 0, a row
    contains the places nearest to evenly spaced points. If obstacles interrupt the rows, the
    cheaper of two orders is taken. One order is row by row. The other order completes one side of
    an obstacle before the other side. The unit of cost is `by`, "metres" or "seconds".
    """
    lines = ground.lines(rows)
    if rows.corner in (2, 3):
        lines = lines[::-1]
    forward = rows.corner in (0, 2)
    gap = 1.6 * max(ground.pitch, rows.along)
    u, _ = ground.seen(rows.direction)
    if ground.topology.heights is not None:
        lines = [_up_and_down(line, u) for line in lines]
    pieces = [_pieces(line, u, gap) for line in lines]
    row_by_row: list[IntArray] = []
    for number, found in enumerate(pieces):
        ahead = forward == (number % 2 == 0)
        row_by_row += found if ahead else [piece[::-1] for piece in reversed(found)]
    named = [ground.places[piece] for piece in row_by_row]
    if len(pieces) < len(named) <= _PIECES and ground.topology.n <= _PLACES:
        distances = distances_of(ground.topology, by)
        other = _piece_by_piece(named, distances)
        named = min(named, other, key=lambda order: _between(order, distances))
    return tuple(np.concatenate(named).tolist()) if named else ()


def _near(apart: float, alongs: Sequence[float]) -> list[float]:
    """Return the spacings along rows that are close to the spacing `apart` between rows."""
    return sorted({apart, *(a for a in alongs if 1.0 / _OBLONG <= a / apart <= _OBLONG)})


def _lines(
    pitch: float, rows: Rows, u: FloatArray, v: FloatArray, order: IntArray
) -> list[IntArray]:
    if not len(u):
        return []
    half, across = 0.5 * pitch, v[order]
    spacing = max(rows.spacing, pitch)
    found: list[IntArray] = []
    for line in _even(float(v.min()), float(v.max()), spacing, rows.inset):
        wide = (0.5 * spacing if rows.along > 0.0 else half) + 1e-3 * pitch
        low, high = np.searchsorted(across, [line - wide, line + wide])
        near = np.sort(order[low:high])
        off = v[near] - line
        if rows.along > 0.0:
            on = np.abs(off) <= 0.5 * spacing
            near = near[on]
            places = _sparse(u[near], off[on], rows.along, rows.inset)
        else:
            # The strict inequality selects one of two rows of cells at equal distance.
            near = near[(off > -half + 1e-6) & (off <= half + 1e-6)]
            places = _within(u[near], rows.inset)
        if places.size:
            found.append(near[places])
    return found


def _even(low: float, high: float, spacing: float, inset: float) -> FloatArray:
    """Return evenly spaced positions, centred between `low` and `high`, at least `inset` inside."""
    room = high - low - 2.0 * inset
    count = 1 if room < 0.0 else math.floor(room / spacing + 1e-6) + 1
    first = 0.5 * (low + high) - 0.5 * spacing * (count - 1)
    return np.array([first + spacing * number for number in range(count)])


def _within(u: FloatArray, inset: float) -> IntArray:
    if not u.size:
        return np.empty(0, dtype=np.int64)
    order = np.argsort(u, kind="stable")
    low, high = float(u.min()) + inset - 1e-6, float(u.max()) - inset + 1e-6
    kept = order[(u[order] >= low) & (u[order] <= high)]
    middle = 0.5 * (float(u.min()) + float(u.max()))
    return kept if kept.size else order[[int(np.argmin(np.abs(u[order] - middle)))]]


def _sparse(u: FloatArray, off: FloatArray, along: float, inset: float) -> IntArray:
    """Return the places nearest to evenly spaced points of a row, in order.

    `u` (m,) are the coordinates along the row, and `off` (m,) are the distances from its line [m].
    """
    found: list[int] = []
    if not u.size:
        return np.empty(0, dtype=np.int64)
    for point in _even(float(u.min()), float(u.max()), along, inset):
        away = np.where(np.abs(u - point) <= 0.5 * along + 1e-6, np.hypot(u - point, off), np.inf)
        away[found] = np.inf
        nearest = int(np.argmin(np.round(away, 6)))
        if math.isfinite(away[nearest]):
            found.append(nearest)
    return np.array(found, dtype=np.int64)


def _up_and_down(line: IntArray, u: FloatArray) -> IntArray:
    """Return a row in which every second column (places above one another) is reversed."""
    columns = _pieces(line, u, 1e-6)
    return np.concatenate([c[::-1] if k % 2 else c for k, c in enumerate(columns)])


def _pieces(line: IntArray, u: FloatArray, gap: float) -> list[IntArray]:
    """Split a row wherever the distance along the row from one place to the next exceeds `gap`."""
    return np.split(line, np.flatnonzero(np.diff(u[line]) > gap) + 1)


def _piece_by_piece(pieces: Sequence[IntArray], distances: Distances) -> list[IntArray]:
    """Order pieces of rows so that each piece is followed by the one with the nearest end."""
    found = [pieces[0]]
    left = list(range(1, len(pieces)))
    while left:
        far = distances.row(int(found[-1][-1]))
        ends = [(far[pieces[k][end]], k, end) for k in left for end in (0, -1)]
        _, k, end = min(ends, key=lambda e: (round(float(e[0]), 6), e[1], e[2]))
        found.append(pieces[k] if end == 0 else pieces[k][::-1])
        left.remove(k)
    return found


def _between(pieces: Sequence[IntArray], distances: Distances) -> float:
    """Return the total cost of the drives between consecutive pieces, rounded to 1e-6."""
    return round(sum(float(distances.row(int(a[-1]))[b[0]]) for a, b in pairwise(pieces)), 6)
