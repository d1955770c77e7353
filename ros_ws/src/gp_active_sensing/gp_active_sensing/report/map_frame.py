"""Map of a page: its layers side by side, and longitude and latitude without a library."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.projection import geographic_of, local_system
from gp_active_sensing.types import FloatArray

__all__ = ["MOST_LAYERS", "POWERS", "georeference", "layers_of"]

MOST_LAYERS = 12
"""Layers that are shown; of more heights as many as that are put into each as it takes."""
_GAP = 0.2
"""Between two layers, as a share of the map's extent: there is room for the height above each."""
POWERS = tuple((i, j) for i in range(4) for j in range(4 - i))
"""Exponents of x and y of each coefficient."""
_SIDE = 9
_ENOUGH = 1e-7
"""Error above which the page does without [degree]: about a centimetre."""


def layers_of(topology: Topology, side: float) -> dict[str, Any] | None:
    """Return how the layers of a map are laid out; None for a map in the plane.

    Keys: ``of`` (n,) the layer of each place, ``labels`` in metres, ``shifts`` [m] to be added to
    the positions of each layer, ``corners`` of each (left and upper) and ``low`` and ``high`` of
    them all [m].

    Args:
        topology: the map.
        side: of the square that shows a place [m].
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
    """Return polynomials of third degree that give degrees at the positions of a map.

    Keys: ``middle`` and ``half``, by which positions are brought to -1 … 1, and the coefficients
    ``longitude`` and ``latitude``, in the order of `POWERS`. None without a datum or pyproj, and
    on a map so large that they are off by more than a centimetre.
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
