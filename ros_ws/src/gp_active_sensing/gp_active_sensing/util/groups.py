"""Groups of nearby points."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.types import FloatArray, IntArray


def nearby_groups(points: FloatArray, places: IntArray, count: int) -> list[IntArray]:
    """Return `count` groups of nearby places, of about equal size; groups may be empty.

    `points` (n, 2 or 3) are all points of the map [m]. Places are ordered along a space-filling
    curve [Morton1966]. The curve divides height, x and y into equally many steps, because fields
    often change faster with height.
    """
    low, span = points[places].min(axis=0), np.ptp(points[places], axis=0)
    span[:2] = span[:2].max()
    cells = ((points[places] - low) / np.maximum(span, 1e-300) * 65535.0).astype(np.int64)
    code = np.zeros(len(cells), dtype=np.int64)
    axes = cells.shape[1]
    for bit in range(16):
        for axis in range(axes):
            code |= ((cells[:, axis] >> bit) & 1) << (axes * bit + axis)
    return np.array_split(places[np.argsort(code, kind="stable")], count)
