"""Straight lines and shortest routes on a regular grid, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.topology.search import MoveArrays
from gp_active_sensing.types import FloatArray, IntArray

_SAME = 1e-6
"""Largest relative deviation of positions and costs from a regular grid."""


@dataclass(frozen=True)
class MoveLattice:
    """Cells of a grid with moves between neighbouring cells, all at the same speed.

    The index of a direction is ``3 (dx + 1) + dy + 1`` for steps dx, dy of -1, 0 or 1.
    """

    cells: IntArray  # (n, 2) column and row of each place
    step: FloatArray  # (2,) distance between columns and between rows [m]
    pace: float  # duration of a metre [s/m]
    diagonal: bool  # whether some moves are diagonal
    number: IntArray  # (columns, rows) place of each cell; -1 = no place
    free: IntArray  # (n, 9) number of consecutive moves in each direction

    @classmethod
    def of(cls, points: FloatArray, moves: MoveArrays) -> MoveLattice | None:
        """Return the lattice of points (n, 2 or 3) [m] and moves; None = not a regular grid."""
        if points.shape[1] != 2 or not len(moves.to):
            return None
        offsets = points[moves.to] - points[moves.source]
        size = np.abs(offsets)
        if not (size > 0.0).any(axis=0).all():
            return None
        step = np.array([size[size[:, k] > _SAME * size.max(), k].min() for k in (0, 1)])
        exact = (points - points.min(axis=0)) / step
        cells = np.rint(exact).astype(np.int64)
        steps = cells[moves.to] - cells[moves.source]
        metres = np.hypot(*offsets.T)
        paces = moves.seconds / np.maximum(moves.metres, 1e-300)
        shape = cells.max(axis=0) + 1
        if (
            np.abs(exact - cells).max() > _SAME
            or np.abs(steps).max() > 1
            or np.abs(moves.metres - metres).max() > _SAME * step.min()
            or np.ptp(paces) > _SAME * paces.max()
            or shape.prod() > 64 * len(points)
        ):
            return None
        number = np.full(shape, -1, dtype=np.int64)
        number[cells[:, 0], cells[:, 1]] = np.arange(len(points))
        if np.count_nonzero(number >= 0) < len(points):
            return None
        following = np.full((len(points), 9), -1, dtype=np.int64)
        following[moves.source, 3 * (steps[:, 0] + 1) + steps[:, 1] + 1] = moves.to
        diagonal = bool((np.abs(steps).sum(axis=1) == 2).any())
        return cls(cells, step, float(paces[0]), diagonal, number, _runs(following))

    def straight(self, a: int, b: int) -> IntArray | None:
        """Return the places after a on a straight line of moves to b; None = no such line."""
        offset = self.cells[b] - self.cells[a]
        length = int(np.abs(offset).max())
        unit = np.sign(offset)
        if not (np.abs(offset) == length * np.abs(unit)).all():
            return None
        if self.free[a, 3 * (unit[0] + 1) + unit[1] + 1] < length:
            return None
        columns, rows = self.cells[a][:, None] + unit[:, None] * np.arange(1, length + 1)
        return np.asarray(self.number[columns, rows])

    def metres(self, a: IntArray, b: IntArray) -> FloatArray:
        """Return the lengths (k,) of the shortest routes between places, in closed form [m].

        The closed form applies if two straight lines without obstacles form a route, one along a
        column and one along a row. With diagonal moves, one line is diagonal, and the other line
        follows a column or a row. If there is no such route, the result is infinite.
        """
        offset = self.cells[b] - self.cells[a]
        far, unit = np.abs(offset), np.sign(offset)
        if self.diagonal:
            slant = far.min(axis=1, keepdims=True)
            first, second = np.where(slant, unit, 0), unit * (far > slant)
            lengths = slant[:, 0], (far - slant).max(axis=1)
        else:
            first, second = unit * [1, 0], unit * [0, 1]
            lengths = far[:, 0], far[:, 1]
        free = np.zeros(len(a), dtype=np.bool_)
        for (u, x), (v, y) in (
            ((first, lengths[0]), (second, lengths[1])),
            ((second, lengths[1]), (first, lengths[0])),
        ):
            corner = self.cells[a] + u * x[:, None]
            between = self.number[corner[:, 0], corner[:, 1]]
            free |= (self._free(a, u) >= x) & (between >= 0) & (self._free(between, v) >= y)
        legs = np.hypot(*(self.step * first).T), np.hypot(*(self.step * second).T)
        return np.where(free, lengths[0] * legs[0] + lengths[1] * legs[1], np.inf)

    def _free(self, places: IntArray, unit: IntArray) -> IntArray:
        """Return how many successive moves (k,) each place allows in the direction `unit`."""
        return np.asarray(self.free[places, 3 * (unit[:, 0] + 1) + unit[:, 1] + 1])


def _runs(following: IntArray) -> IntArray:
    """Return how many successive moves (n, 9) are possible from each place in each direction.

    `following` (n, 9) is the next place in each direction; -1 = there is no move.
    """
    found = np.zeros(following.shape, dtype=np.int64)
    for direction in range(9):
        here = following[:, direction]
        on = here >= 0
        length = on.astype(np.int64)
        here = np.where(on, here, np.arange(len(here)))
        while on.any():
            # Double the length of each run that is not interrupted.
            length = length + np.where(on, length[here], 0)
            on, here = on & on[here], here[here]
        found[:, direction] = length
    return found
