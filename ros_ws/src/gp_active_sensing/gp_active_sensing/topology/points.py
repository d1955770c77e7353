"""Candidates drawn in a box of any dimension: the finite sets that bandit experiments choose from.

Their positions, for moves and pictures, are the first two coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gp_active_sensing.topology.free import FreeTopology
from gp_active_sensing.types import FloatArray

__all__ = ["DESIGNS", "draw_points", "make_points"]

DESIGNS = ("uniform", "latin", "sobol")
_STREAM = 0xB0C5


def make_points(
    count: int,
    low: Sequence[float],
    high: Sequence[float],
    *,
    design: str = "sobol",
    seed: int = 0,
    speed: float = 1.0,
    name: str = "points",
    frame: str = "map",
) -> FreeTopology:
    """Make a map of points of which any may be next; features are their coordinates x1 … xd.

    Args:
        count: number of points.
        low: (d,) lower corner of the box.
        high: (d,) upper corner.
        design: see `draw_points`.
        seed: key of the draw.
        speed: of the probe [m/s].
        name: name of the map.
        frame: metric frame of the positions.
    """
    points = draw_points(count, low, high, design=design, seed=seed)
    flat = np.zeros((count, 2))
    flat[:, : min(2, points.shape[1])] = points[:, :2]
    return FreeTopology(
        name,
        frame,
        [str(i) for i in range(count)],
        flat,
        features=points,
        feature_names=[f"x{i}" for i in range(1, points.shape[1] + 1)],
        speed=speed,
    )


def draw_points(
    count: int, low: Sequence[float], high: Sequence[float], *, design: str, seed: int
) -> FloatArray:
    """Return (count, d) points in the box from `low` to `high`, keyed by the seed.

    Args:
        count: number of points.
        low: (d,) lower corner.
        high: (d,) upper corner.
        design: "uniform" draws each by itself; "latin" has one point in each of `count` slices
            of every coordinate; "sobol" is a scrambled Sobol sequence, evener still.
        seed: key of the draw.
    """
    rng = np.random.default_rng([seed, _STREAM])
    corner, size = np.asarray(low, dtype=np.float64), np.subtract(high, low)
    d = len(corner)
    if design == "uniform":
        unit = rng.random((count, d))
    else:
        from scipy.stats import qmc  # heavy, and seldom wanted

        if design == "latin":
            unit = qmc.LatinHypercube(d, seed=rng).random(count)
        else:
            # Whole powers of two are balanced; the first points of the next one are drawn.
            unit = qmc.Sobol(d, seed=rng).random_base2(max(0, math.ceil(math.log2(count))))
    return np.asarray(corner + size * unit[:count], dtype=np.float64)
