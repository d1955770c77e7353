"""How a kernel comes to the algorithms, and what they ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["Entries", "checked", "draw", "entries_of", "singular", "tolerance"]

Entries: TypeAlias = Callable[[IntArray, IntArray], FloatArray]
"""``entries(rows, columns) -> (r, c)`` of a symmetric positive semi-definite kernel."""


def entries_of(L: FloatArray) -> Entries:
    """Return the entries of a kernel that is there as an (m, m) matrix."""
    return lambda rows, columns: np.asarray(L[np.ix_(rows, columns)], dtype=np.float64)


def checked(diagonal: FloatArray, k: int) -> FloatArray:
    """Return a kernel's diagonal (m,) as floats, once it is seen that k items can be had.

    Raises:
        ValueError: k is below 0 or above m, or the diagonal is not one of a kernel.
    """
    values = np.asarray(diagonal, dtype=np.float64)
    if values.ndim != 1:
        msg = f"expected the kernel's diagonal with shape (m,), got shape {values.shape}"
        raise ValueError(msg)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))
    if bad.size:
        where = int(bad[0])
        msg = (
            "expected a kernel's diagonal, finite and not negative, "
            f"got {values[where]} for item {where}"
        )
        raise ValueError(msg)
    if not 0 <= k <= values.size:
        msg = f"expected a set of 0 … {values.size} items, got k = {k}: ask for fewer"
        raise ValueError(msg)
    return values


def tolerance(diagonal: FloatArray) -> float:
    """Return the variance or eigenvalue below which rounding cannot tell it from zero."""
    largest = float(diagonal.max(initial=0.0))
    return float(np.finfo(np.float64).eps * max(diagonal.size, 1) * largest)


def draw(weights: FloatArray, u: float) -> int:
    """Return the index at quantile `u` in [0, 1) of weights (m,), none negative, one above zero."""
    cumulative = np.cumsum(weights)
    index = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    # Rounding may put the last quantile at the very end; what weighs nothing is never drawn.
    return index if index < weights.size else int(np.flatnonzero(weights)[-1])


def singular(rank: int, k: int) -> ValueError:
    """Return the error of a kernel under which every set of k items has determinant zero."""
    msg = (
        f"expected a kernel of rank {k} or more for a set of {k} items, got one of rank {rank}: "
        "no set has a positive determinant; ask for fewer items or add to its diagonal"
    )
    return ValueError(msg)
