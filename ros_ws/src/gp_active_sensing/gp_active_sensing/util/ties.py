"""Argmax and sorting that treat nearly equal values as ties.

Rounding errors depend on the processor. The first of several tied values is chosen, so that every
computer makes the same choice.
"""

from __future__ import annotations

import numpy as np

from gp_active_sensing.types import BoolArray, FloatArray, IntArray

RELATIVE = 1e-9
"""Relative difference up to which numbers count as equal."""
NAT = 1e-12
"""Difference up to which entropies count as equal [nat]."""


def ties(values: FloatArray, *, floor: float = 0.0) -> BoolArray:
    """Return flags (…, m): True for the largest values along the last axis, up to rounding.

    Values (…, m) must have m ≥ 1 and no NaN. Values that differ by at most `floor` count as equal,
    even near zero.
    """
    best = values.max(axis=-1, keepdims=True)
    slack = np.maximum(RELATIVE * np.abs(best), floor)
    # Infinity minus infinity would be NaN.
    return np.asarray(values >= best - np.where(np.isfinite(best), slack, 0.0))


def first_best(values: FloatArray, *, floor: float = 0.0) -> IntArray:
    """Return the index of the first of the largest values along the last axis; see `ties`."""
    return np.asarray(ties(values, floor=floor).argmax(axis=-1))


def by_size(values: FloatArray) -> IntArray:
    """Return indices that sort (m,) values, largest first; ties keep their order.

    Values are ties if they are equal after rounding to a multiple of `RELATIVE` times the largest
    magnitude.
    """
    finite = np.abs(values[np.isfinite(values)])
    scale = RELATIVE * float(finite.max(initial=0.0))
    return np.argsort(-np.round(values / scale) if scale > 0.0 else -values, kind="stable")
