"""Argmax and sorting that ignore differences as small as rounding errors.

Places that are alike by symmetry, or uncorrelated with every reading, have equal values except in
the last digits. These digits depend on the processor: BLAS and numpy have kernels for each kind.
Here such values are ties, and the first one wins, so that every machine chooses the same place.
"""

from __future__ import annotations

import numpy as np

from gp_active_sensing.types import BoolArray, FloatArray, IntArray

RELATIVE = 1e-9
"""Numbers that differ by this part of them are equal."""
NAT = 1e-12
"""Entropies that differ by this are equal, however small they are [nat]."""


def ties(values: FloatArray, *, floor: float = 0.0) -> BoolArray:
    """Return which values are the largest along the last axis, up to rounding.

    Args:
        values: (…, m), m ≥ 1; none is NaN.
        floor: what is below it is rounding even where the largest is about zero.
    """
    best = values.max(axis=-1, keepdims=True)
    slack = np.maximum(RELATIVE * np.abs(best), floor)
    # Infinity less infinity is no number.
    return np.asarray(values >= best - np.where(np.isfinite(best), slack, 0.0))


def first_best(values: FloatArray, *, floor: float = 0.0) -> IntArray:
    """Return the (…) index of the largest along the last axis; of ties the first. See `ties`."""
    return np.asarray(ties(values, floor=floor).argmax(axis=-1))


def by_size(values: FloatArray) -> IntArray:
    """Return the order of (m,) values, the largest first; ties up to rounding keep their order.

    Equal are values that agree when they are rounded to `RELATIVE` of the largest magnitude.
    """
    finite = np.abs(values[np.isfinite(values)])
    scale = RELATIVE * float(finite.max(initial=0.0))
    return np.argsort(-np.round(values / scale) if scale > 0.0 else -values, kind="stable")
