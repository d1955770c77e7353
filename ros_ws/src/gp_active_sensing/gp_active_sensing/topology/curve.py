"""Parts of a map: its places in the order of a space-filling curve, cut into runs."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["parts_that_count", "runs"]


def runs(positions: FloatArray, places: IntArray, count: int) -> list[IntArray]:
    """Return places in so many groups of the same size, those of a group near each other.

    Args:
        positions: (n, 2) of all places of a map [m].
        places: some of them.
        count: number of groups; some are empty where there are more of them than places.
    """
    return np.array_split(places[_along_a_curve(positions[places])], count)


def parts_that_count(topology: Topology, count: int) -> list[IntArray]:
    """Return the places of a map that have a weight in so many parts, or one a place if fewer."""
    counted = np.flatnonzero(topology.weights > 0.0)
    return runs(topology.positions, counted, min(count, len(counted)))


def _along_a_curve(positions: FloatArray) -> IntArray:
    """Return the order of (n, 2) positions along a space-filling curve [Morton1966]."""
    span = np.maximum(np.ptp(positions, axis=0).max(), 1e-300)
    cells = ((positions - positions.min(axis=0)) / span * 65535.0).astype(np.int64)
    code = np.zeros(len(cells), dtype=np.int64)
    for bit in range(16):
        code |= ((cells[:, 0] >> bit) & 1) << (2 * bit)
        code |= ((cells[:, 1] >> bit) & 1) << (2 * bit + 1)
    return np.argsort(code, kind="stable")
