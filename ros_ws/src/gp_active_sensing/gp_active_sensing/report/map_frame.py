"""Layers, shores and geographic coordinates of a page's map."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.geometry import FreeGround
from gp_active_sensing.topology.projection import geographic_of, local_system
from gp_active_sensing.types import BoolArray, FloatArray

MOST_LAYERS = 12
"""Largest number of drawn layers. On a map with more heights, a layer has several heights."""
_GAP = 0.2
"""Gap between two layers drawn side by side, as a fraction of the map's extent."""
POWERS = tuple((i, j) for i in range(4) for j in range(4 - i))
"""Exponents of x and y for each coefficient of a polynomial of third degree."""
_SIDE = 9
_ENOUGH = 1e-7
"""Largest allowed error of the polynomials [degree], about a centimetre on the ground."""
_MOST_POINTS = 60_000
"""Largest number of corners of all shore lines on a page."""
_SAMPLES = 500
"""Number of samples along a map's longer side in the search for walls."""


def layers_of(topology: Topology, side: float) -> dict[str, Any] | None:
    """Return the layout of the layers of a map, drawn side by side; None for a map in the plane.

    Each place is a square of side `side` [m]. Keys: ``of`` (n,) = layer of each place. ``labels``,
    ``shifts`` (added to positions [m]) and ``corners`` (upper left [m]) have an item for each
    layer. ``low`` and ``high`` = bounds of the drawing [m].
    """
    if topology.heights is None:
        return None
    heights = np.round(topology.heights, 3)
    levels = np.unique(heights)[::-1]
    parts = np.array_split(levels, min(MOST_LAYERS, len(levels)))
    labels = [
        f"z {part[0]:g} m" if len(part) == 1 else f"z {part[-1]:g} … {part[0]:g} m"
        for part in parts
    ]
    labels = [label.replace("-", "\N{MINUS SIGN}") for label in labels]
    starts = np.array([part[-1] for part in parts])
    of = np.array([int(np.argmax(height >= starts)) for height in heights])
    low, high = topology.positions.min(axis=0), topology.positions.max(axis=0)
    wide, tall = (high - low + side).tolist()
    gap = _GAP * max(wide, tall)
    columns = min(max(1, round(math.sqrt(1.5 * len(parts) * tall / wide))), len(parts))
    shifts = [
        [(k % columns) * (wide + gap), -(k // columns) * (tall + gap)] for k in range(len(parts))
    ]
    half = 0.5 * side
    return {
        "of": of.tolist(),
        "labels": labels,
        "shifts": shifts,
        "corners": [[low[0] - half + x, high[1] + half + y] for x, y in shifts],
        "low": [float(low[0]), float(low[1] + min(y for _, y in shifts))],
        "high": [float(high[0] + max(x for x, _ in shifts)), float(high[1] + gap)],
    }


def georeference(topology: Topology) -> dict[str, Any] | None:
    """Return polynomials of third degree that convert map positions to longitude and latitude.

    Keys: ``middle`` and ``half`` [m] scale positions to -1 … 1; ``longitude`` and ``latitude`` are
    coefficients in the order of `POWERS`. The result is None without a datum or pyproj, or if the
    error exceeds `_ENOUGH`.
    """
    if topology.datum is None:
        return None
    low, high = topology.positions.min(axis=0), topology.positions.max(axis=0)
    middle, half = 0.5 * (low + high), float(max((high - low).max(), 1.0)) * 0.6
    u, v = (axis.ravel() for axis in np.meshgrid(*[np.linspace(-1.0, 1.0, _SIDE)] * 2))
    points = middle + half * np.column_stack([u, v])
    pairs = [(x, y) for x, y in points.tolist()]
    try:
        degrees = geographic_of(pairs, local_system(topology.datum), where=topology.name)
    except ActiveSensingError:
        return None
    terms: FloatArray = np.column_stack([u**i * v**j for i, j in POWERS])
    found, *_ = np.linalg.lstsq(terms, degrees, rcond=None)
    if np.abs(terms @ found - degrees).max() > _ENOUGH:
        return None
    return {
        "middle": middle.tolist(),
        "half": half,
        "longitude": found[:, 0].tolist(),
        "latitude": found[:, 1].tolist(),
    }


def shore_of(topology: Topology, side: float) -> list[FloatArray]:
    """Return the shores, islands, fences and walls of a map as lines; [] = none are known.

    `side` is the distance between neighbouring places [m]. The lines are clipped to the bounding
    box of the places, enlarged by twice this distance on each side.
    """
    ground = topology.ground
    if ground is None or not ground.bounded or topology.heights is not None:
        return []
    low = topology.positions.min(axis=0) - 2.0 * side
    high = topology.positions.max(axis=0) + 2.0 * side
    lines: list[FloatArray] = []
    if ground.shapes:
        import shapely

        edges = (edge for shape in ground.shapes for edge in shapely.get_parts(shape.boundary))
        lines = [np.clip(np.asarray(edge.coords)[:, :2], low, high) for edge in edges]
    if ground.cells is not None:
        lines += _walls(ground, low, high)
    return lines if sum(map(len, lines)) <= _MOST_POINTS else []


def _walls(ground: FreeGround, low: FloatArray, high: FloatArray) -> list[FloatArray]:
    """Return lines between free and blocked points of a fine lattice on the ground [m]."""
    step = float((high - low).max()) / _SAMPLES
    x, y = (np.arange(a, b, step) for a, b in zip(low, high, strict=True))
    points = np.stack(np.meshgrid(x, y), axis=-1)
    free = ground.free(points.reshape(-1, 2)).reshape(points.shape[:2])
    corner = low - 0.5 * step
    across = [corner + step * run for run in _runs(free)]
    upright = [corner + step * run[:, ::-1] for run in _runs(free.T)]
    return across + upright


def _runs(free: BoolArray) -> list[FloatArray]:
    """Return the lines between rows that differ, each as two (column, row) ends."""
    found = []
    for row, change in enumerate(free[1:] != free[:-1], start=1):
        ends = np.flatnonzero(np.diff(change.astype(np.int8), prepend=0, append=0))
        for a, b in ends.reshape(-1, 2).tolist():
            found.append(np.array([[a, row], [b, row]], dtype=np.float64))
    return found
