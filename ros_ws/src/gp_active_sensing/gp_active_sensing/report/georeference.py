"""Longitude and latitude of a map for a page, which has no library for projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.projection import geographic_of, local_system
from gp_active_sensing.types import FloatArray

__all__ = ["POWERS", "georeference"]

POWERS = tuple((i, j) for i in range(4) for j in range(4 - i))
"""Exponents of x and y of each coefficient."""
_SIDE = 9
_ENOUGH = 1e-7
"""Error above which the page does without [degree]: about a centimetre."""


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
        degrees, _ = geographic_of(pairs, local_system(topology.datum), where=topology.name)
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
