"""A map with heights on a flat page: its layers side by side, the highest first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gp_active_sensing.topology import Topology

__all__ = ["MOST_LAYERS", "layers_of"]

MOST_LAYERS = 12
"""Layers that are shown; of more heights as many as that are put into each as it takes."""
_GAP = 0.2
"""Between two layers, as a share of the map's extent: there is room for the height above each."""


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
