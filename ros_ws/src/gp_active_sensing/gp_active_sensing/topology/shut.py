"""Remove moves that are temporarily shut, such as by a closed door or a closed road."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from gp_active_sensing.topology.base import GraphTopology, Topology
from gp_active_sensing.topology.geometry import FreeGround
from gp_active_sensing.types import FloatArray

_WIDEST = 2.0
"""Half the width of the widest doorway, as a multiple of the length of the move through it."""
_STEPS = 16
"""Number of points that are checked for a wall on each side of a move."""
_ALONG = (0.5, 0.3, 0.7, 0.1, 0.9)
"""Positions on a move that are checked for a doorway, as fractions of the move's length."""
_SAME = 1.0
"""Largest distance between the lines of the two directions of a road [m]."""


def with_shut(topology: Topology, shut: Collection[tuple[int, int]]) -> Topology:
    """Return a map without the moves (from, to) that are shut.

    On roads, all moves onto a shut segment and onto its opposite direction are removed. On a grid,
    all moves through the same doorway are removed, and a bar across the doorway is added to the
    ground. A map without moves (`FreeTopology`) is returned unchanged.
    """
    if not shut or not isinstance(topology, GraphTopology):
        return topology
    ground, gone = topology.ground, set()
    for a, b in sorted(shut):
        gone |= _onto(topology, b) if topology.roads else {(a, b), (b, a)}
    if topology.roads or ground is None or topology.heights is not None:
        return topology.without(gone)
    bars = np.array([_bar(topology, ground, a, b) for a, b in sorted(shut)])
    barred = ground.barred(bars)
    reach = 2.0 * (_WIDEST + 1.0) * max(math.dist(*topology.positions[[a, b]]) for a, b in shut)
    middles = bars.mean(axis=1)
    apart = np.hypot(*(topology.positions[:, None] - middles[None]).transpose(2, 0, 1))
    near = np.flatnonzero((apart <= reach).any(axis=1)).tolist()
    pairs = [(a, move.to) for a in near for move in topology.moves[a]]
    free = barred.passable(topology.positions, pairs)
    gone.update(pair for pair, yes in zip(pairs, free.tolist(), strict=True) if not yes)
    return topology.without(gone).over(barred)


def is_doorway(topology: Topology, a: int, b: int) -> bool:
    """Return whether a move leads through a gap between walls."""
    ground = topology.ground
    return ground is not None and ground.bounded and _gap(topology, ground, a, b) is not None


def _onto(topology: GraphTopology, place: int) -> set[tuple[int, int]]:
    line, closed = topology.geometry(place), {place}
    apart = np.hypot(*(topology.goals[:, :2] - line[0]).T)
    for other in np.flatnonzero(apart <= _SAME).tolist():
        twin = topology.geometry(other)
        if len(twin) == len(line) and np.allclose(line, twin[::-1], rtol=0.0, atol=_SAME):
            closed.add(other)
    moves = ((a, move.to) for a in range(topology.n) for move in topology.moves[a])
    return {(a, b) for a, b in moves if b in closed}


def _gap(topology: Topology, ground: FreeGround, a: int, b: int) -> FloatArray | None:
    """Return the ends (2, 2) [m] of the narrowest gap between walls on a move; None = no gap."""
    start, end = topology.positions[[a, b]]
    along = end - start
    across = np.array([-along[1], along[0]])
    shares = _WIDEST * np.arange(1, _STEPS + 1) / _STEPS
    found: list[tuple[float, FloatArray]] = []
    for part in _ALONG:
        middle, walls = start + part * along, []
        for side in (across, -across):
            hit = np.flatnonzero(~ground.free(middle + shares[:, None] * side))
            walls += shares[hit[:1]].tolist()
        if len(walls) == 2:
            ends = np.array([middle + walls[0] * across, middle - walls[1] * across])
            found.append((sum(walls), ends))
    return min(found, key=lambda gap: gap[0])[1] if found else None


def _bar(topology: Topology, ground: FreeGround, a: int, b: int) -> FloatArray:
    """Return the ends (2, 2) [m] of a bar across a move.

    The bar is as long as the doorway is wide. If there is no doorway, it is as long as the move.
    """
    gap = _gap(topology, ground, a, b) if ground.bounded else None
    if gap is not None:
        return gap
    start, end = topology.positions[[a, b]]
    middle, half = 0.5 * (start + end), 0.5 * (end - start)
    across = np.array([-half[1], half[0]])
    return np.array([middle + across, middle - across])
