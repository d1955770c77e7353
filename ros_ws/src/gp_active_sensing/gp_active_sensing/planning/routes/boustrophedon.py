"""Evenly spaced rows, driven back and forth as an ox ploughs: on grids and on open ground."""

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
"""Corners that rows may begin in."""
_INSETS = (0.5, 0.25, 0.0)
"""Insets that are tried, as parts of the spacing."""
_SAME_AXIS = 5.0
"""A long axis so near to the x or y axis is that axis [degrees]."""
_SQUARE = 1.2
"""A map is longer one way than the other from this ratio on."""
_OBLONG = 1.35
"""Largest ratio of the two distances of places in an even layout."""
_PLACES, _PIECES = 3000, 60
"""Places and pieces up to which the order of interrupted rows is looked for by the ways."""


@dataclass(frozen=True)
class Rows:
    """How rows are laid.

    Args:
        spacing: between the middles of neighbouring rows [m].
        inset: least distance of the outermost rows, and of the ends of rows, from the edge [m].
        direction: of the rows, anticlockwise from x [degrees].
        corner: where they begin. 0 or 1: with the first row, seen along the direction the
            rightmost one, at its beginning or its end; 2 or 3: the same with the last row.
        along: between the places of a row [m]; 0 = all of them.
    """

    spacing: float
    inset: float = 0.0
    direction: float = 0.0
    corner: int = 0
    along: float = 0.0


class Ground:
    """Map in the coordinates of rows.

    Args:
        topology: a map with positions; rows of roads are no rows. Where places lie above one
            another, a row takes all of them, up and down in turn.
        places: (n,) places that may be on a route; None = all of them.
    """

    def __init__(self, topology: Topology, places: BoolArray | None = None) -> None:
        chosen = np.ones(topology.n, dtype=np.bool_) if places is None else places
        self.topology = topology
        self.places: IntArray = np.flatnonzero(chosen)
        self.positions: FloatArray = topology.positions[self.places]
        self.pitch = distances_of(topology).pitch
        """Between neighbouring places [m]."""
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
        """Return the corner nearest to a probe; 0 for a probe without a position."""
        if at is None or not len(self.places):
            return 0
        u, v = self.seen(direction)
        angle = math.radians(direction)
        x, y = self.topology.positions[at]
        ahead = x * math.cos(angle) + y * math.sin(angle) > 0.5 * float(u.min() + u.max()) + 1e-6
        left = y * math.cos(angle) - x * math.sin(angle) > 0.5 * float(v.min() + v.max()) + 1e-6
        return int(ahead) + 2 * int(left)

    def extent(self, direction: float) -> tuple[float, float]:
        """Return how far the map goes along and across a direction [m]."""
        u, v = self.seen(direction)
        return (float(np.ptp(u)), float(np.ptp(v))) if len(u) else (0.0, 0.0)

    def seen(self, direction: float) -> tuple[FloatArray, FloatArray]:
        """Return (m,) coordinates along and across a direction, to the micrometre [m]."""
        return self._along(direction)[:2]

    def _along(self, direction: float) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return the coordinates of `seen`, and the (m,) order across the direction."""
        if direction not in self._seen:
            angle = math.radians(direction)
            across = np.array([-math.sin(angle), math.cos(angle)])
            ahead = np.array([math.cos(angle), math.sin(angle)])
            u, v = np.round(self.positions @ ahead, 6), np.round(self.positions @ across, 6)
            self._seen[direction] = u, v, np.argsort(v, kind="stable")
        return self._seen[direction]

    def lines(self, rows: Rows) -> list[IntArray]:
        """Return which of `places` are on each row, in the order of the direction."""
        key = replace(rows, corner=0)
        if key not in self._lines:
            self._lines[key] = _lines(self, rows, self._along(rows.direction))
        return self._lines[key]

    def places_of(self, rows: Rows) -> IntArray:
        """Return the places of evenly spaced rows, in no order; see `rows_of`."""
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
        """Yield families of rows: each from the fewest to the most rows that the map has room for.

        What is given is kept. Otherwise: all `directions`; insets of half, a quarter and none of
        the spacing; and as many rows as fit, spaced so that they fill the map.

        Args:
            spacing: between rows [m].
            inset: of rows from the edge [m].
            direction: of the rows [degrees].
            sparse: about as far apart along a row as rows are, instead of every place of it.
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
            # A single row without an inset is in the middle, whatever its spacing.
            gaps = rows - 1 + (0.0 if share is None else 2.0 * share)
            spacing = max(room, pitch) / gaps if gaps > 0.0 else max(width, pitch)
            if spacing < pitch * (1.0 - 1e-6) and found:
                return found
            found.append(round(max(spacing, pitch), 6))
            if found[-1] <= pitch or rows > 2 * len(self.places):
                return found
            rows += 1

    def mean_distance(self, visited: Sequence[int] | IntArray) -> float:
        """Return the mean straight distance of a place to the nearest one that is visited [m]."""
        points = self.topology.points
        return mean_distance(points[self.places], points, visited)


def rows_of(ground: Ground, rows: Rows, by: str = "seconds") -> tuple[int, ...]:
    """Return the places of evenly spaced rows, in the order in which they are driven.

    The rows lie symmetrically about the middle of the map; what is left over of its width is shared
    by both sides. Of a row every place is taken that is within half a pitch of its line, or with
    `Rows.along` the one nearest to each of evenly spaced points. Where an outline or an obstacle
    interrupts rows, their pieces are driven one side after the other, if that is shorter by the
    ways between them.

    The ways between pieces are shortest in `by`, "metres" or "seconds".
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
    """Return spacings along rows that are close to the spacing of the rows."""
    return sorted({apart, *(a for a in alongs if 1.0 / _OBLONG <= a / apart <= _OBLONG)})


def _lines(
    ground: Ground, rows: Rows, seen: tuple[FloatArray, FloatArray, IntArray]
) -> list[IntArray]:
    """Return `Ground.lines`, of places that are `seen` along and across, in the order across."""
    u, v, order = seen
    if not len(u):
        return []
    half, across = 0.5 * ground.pitch, v[order]
    spacing = max(rows.spacing, ground.pitch)
    found: list[IntArray] = []
    for line in _even(float(v.min()), float(v.max()), spacing, rows.inset):
        wide = (0.5 * spacing if rows.along > 0.0 else half) + 1e-3 * ground.pitch
        low, high = np.searchsorted(across, [line - wide, line + wide])
        near = np.sort(order[low:high])
        off = v[near] - line
        if rows.along > 0.0:
            on = np.abs(off) <= 0.5 * spacing
            near = near[on]
            places = _sparse(u[near], off[on], rows.along, rows.inset)
        else:
            # Of two rows of cells that are equally near, one.
            near = near[(off > -half + 1e-6) & (off <= half + 1e-6)]
            places = _within(u[near], rows.inset)
        if places.size:
            found.append(near[places])
    return found


def _even(low: float, high: float, spacing: float, inset: float) -> FloatArray:
    """Return evenly spaced numbers about the middle of a range, `inset` from its ends."""
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
    """Return the place nearest to each of evenly spaced points of a row, in order.

    Args:
        u: (m,) along the row.
        off: (m,) from its line.
        along: between the points.
        inset: of the outermost ones from the ends.
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
    """Return a row with every second of its columns of places the other way round."""
    columns = np.split(line, np.flatnonzero(np.diff(u[line]) > 1e-6) + 1)
    return np.concatenate([c[::-1] if k % 2 else c for k, c in enumerate(columns)])


def _pieces(line: IntArray, u: FloatArray, gap: float) -> list[IntArray]:
    return np.split(line, np.flatnonzero(np.diff(u[line]) > gap) + 1)


def _piece_by_piece(pieces: Sequence[IntArray], distances: Distances) -> list[IntArray]:
    """Continue at the nearest end of a piece; equally near ones are taken in order."""
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
    """Return how far it is from all the pieces to the following ones, to a micrometre or so."""
    return round(sum(float(distances.row(int(a[-1]))[b[0]]) for a, b in pairwise(pieces)), 6)
