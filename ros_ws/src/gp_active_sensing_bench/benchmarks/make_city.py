"""Make a random city map of any size: a grid of streets with a fixed seed."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.topology.roads import keep_largest
from gp_active_sensing.topology.segments import Point, RoadMap, Segment, length_of

BLOCK = 120.0
"""Distance between crossings [m]."""
CLASSES = {"arterial": (3.0, 19.44), "collector": (2.0, 13.89), "local": (1.0, 8.33)}
"""Number of lanes and speed limit [m/s] of each class."""
MISSING, ONE_WAY = 0.12, 0.15
"""Fraction of missing local streets, and fraction of one-way local streets."""


def make_city(segments: int) -> RoadMap:
    """Return a strongly connected map of about `segments` segments."""
    columns = max(3, math.ceil(math.sqrt(segments / 3.34)))
    rng = np.random.default_rng([1, columns])
    spots = [(i, j) for i in range(columns) for j in range(columns)]
    grid = BLOCK * np.array(spots, dtype=np.float64)
    places = (grid + rng.normal(0.0, 0.12 * BLOCK, grid.shape)).tolist()
    corners = {spot: (round(x, 1), round(y, 1)) for spot, (x, y) in zip(spots, places, strict=True)}
    found: list[Segment] = []
    for i, j in corners:
        for across in (True, False):
            other = (i + 1, j) if across else (i, j + 1)
            if other in corners:
                found += _street(found, (i, j), other, corners, j if across else i, rng)
    road_map = RoadMap(f"city{segments}", "map", tuple(found))
    return keep_largest(road_map)


def _street(
    found: list[Segment],
    start: tuple[int, int],
    end: tuple[int, int],
    corners: dict[tuple[int, int], Point],
    row: int,
    rng: np.random.Generator,
) -> list[Segment]:
    """Add the segments of a street to `found`, for both directions, one direction or none."""
    kind = "arterial" if row % 12 == 6 else "collector" if row % 4 == 2 else "local"
    draw = float(rng.random())
    if kind == "local" and draw < MISSING:
        return []
    a, b = corners[start], corners[end]
    bend = rng.normal(0.0, 0.05 * BLOCK, 2)
    middle = (
        round((a[0] + b[0]) / 2 + float(bend[0]), 1),
        round((a[1] + b[1]) / 2 + float(bend[1]), 1),
    )
    line = (a, middle, b)
    lanes, limit = CLASSES[kind]
    there = Segment(
        f"s{len(found)}",
        f"{start[0]}_{start[1]}",
        f"{end[0]}_{end[1]}",
        line,
        round(length_of(line), 2),
        lanes,
        limit,
        road_class=kind,
    )
    if kind == "local" and draw > 1.0 - ONE_WAY:
        return [there]
    return [there, there.reversed()]
