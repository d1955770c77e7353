"""Where the maximum may still be: the region that explorers of a batch are kept to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.ties import by_size

__all__ = ["region_of", "relevance_region"]


def relevance_region(
    mean: FloatArray, std: FloatArray, width: float, floor: float | None = None
) -> BoolArray:
    """Return ``R⁺ = {x : μ(x) + 2√β σ(x) ≥ y•}``, ``y• = max_x μ(x) - √β σ(x)``.

    [Contal2013, Sec. 3; Kathuria2016, Algorithm 2]. t counts rounds; the width in R⁺ is that of the
    next one, β_{t+1}, where it is known (UCB); for EST it is not, and β_t stands for it.

    Args:
        mean: (m,) μ of the candidates.
        std: (m,) σ.
        width: √β.
        floor: y•, where members of the batch that are no candidates count for it; None = they
            do not.

    Returns:
        (m,) whether each is in R⁺.
    """
    best = float((mean - width * std).max()) if floor is None else floor
    return np.asarray(mean + 2.0 * width * std >= best)


def region_of(
    mean: FloatArray,
    std: FloatArray,
    width: float,
    floor: float | None = None,
    *,
    size: int,
    without: Sequence[int] = (),
) -> IntArray:
    """Return the indices of R⁺ that further members of a batch are chosen from.

    Where it holds fewer than are wanted, the candidates with the largest upper bounds
    ``μ + 2√β σ`` outside it make up for them.

    Args:
        mean: (m,) μ of the candidates.
        std: (m,) σ.
        width: √β.
        floor: y•; None = that of the candidates.
        size: how many members are wanted, at most the candidates that are left.
        without: candidates that are members already.
    """
    inside = relevance_region(mean, std, width, floor)
    upper = mean + 2.0 * width * std
    open_ = np.ones(mean.size, dtype=np.bool_)
    open_[list(without)] = False
    inside &= open_
    missing = size - int(inside.sum())
    if missing > 0:
        upper[inside | ~open_] = -np.inf
        inside[by_size(upper)[:missing]] = True
    return np.flatnonzero(inside)
