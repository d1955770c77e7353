"""Map of a page with more points than places, on a lattice."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.errors import RunError
from gp_active_sensing.export.fine import fine_points
from gp_active_sensing.report.payload import pack, pack_integers, side_of
from gp_active_sensing.topology import Topology

MOST = 6000
"""Approximate largest number of lattice points."""
_WORK = 5e9
"""Largest value of (lattice points) · (places with a reading)²; its computation takes about 2 s."""
_FINEST = 8.0
"""Largest number of lattice points along the side of a place's square."""
_LEAST = 1.5
"""Smallest number of lattice points along the side of a place's square."""


def finer_spacing(topology: Topology, observed: int = 0) -> float | None:
    """Return the spacing of the finer lattice [m].

    `observed` is the number of places with a reading. The result is None on roads, lines and
    layers, and if the lattice would have too many points.
    """
    extent = np.ptp(topology.positions, axis=0)
    flat = topology.heights is None and float(extent.min()) > 0.0
    if not flat or topology.roads or any(len(topology.geometry(i)) > 1 for i in range(2)):
        return None
    side = side_of(topology.positions)
    most = min(MOST, _WORK / max(1, observed) ** 2)
    spacing = max(side / _FINEST, math.sqrt(float(np.prod(extent + side)) / most))
    return spacing if spacing * _LEAST <= side else None


def finer_map(topology: Topology, belief: Belief) -> dict[str, Any] | None:
    """Return mean and standard deviation of the noise-free field on the finer lattice.

    Lattice points are numbered row by row from the south-west corner. The result is None without
    readings or if `finer_spacing` returns None.
    """
    observed = int(belief.observed.sum())
    spacing = finer_spacing(topology, observed) if observed else None
    if spacing is None:
        return None
    try:
        points = fine_points(topology, spacing).topology.positions
    except RunError:
        return None
    low = points.min(axis=0)
    columns = 1 + round(float(np.ptp(points[:, 0])) / spacing)
    column, row = np.rint((points - low) / spacing).astype(np.int64).T
    mean, variance = belief.predict_at(points)
    std = np.sqrt(np.maximum(variance, 0.0))
    return {
        "low": low.tolist(),
        "side": spacing,
        "columns": columns,
        "cells": pack_integers(row * columns + column),
        "mean": pack(mean[:, None], float(mean.min()), float(mean.max())),
        "std": pack(std[:, None], float(std.min()), float(std.max())),
    }
