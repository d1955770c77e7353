"""The set of large determinant that is built one item at a time."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.planning.dpp.kernel import Entries, checked, tolerance
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import first_best

__all__ = ["greedy_kdpp"]


def greedy_kdpp(entries: Entries, diagonal: FloatArray, k: int) -> IntArray:
    """Choose k items, each with the largest determinant together with those before it.

    ``x_j = argmax_x det L_{S ∪ {x}} = argmax_x L_xx - L_xS L_SS⁻¹ L_Sx``: a Cholesky factorisation
    with pivots, of which only the chosen columns are formed, O(m k²). Its determinant is within
    a factor (k!)² of the largest. [Kathuria2016, Sec. 3; Civril2009]

    Args:
        entries: of the kernel L over m items.
        diagonal: (m,) of L.
        k: number of items, 0 … m.

    Returns:
        (k,) items in the order in which they were chosen; ties: the first. Where every further
        item leaves the determinant at zero, the first ones fill the set.

    Raises:
        ValueError: k or the diagonal cannot be used.
    """
    diagonal = checked(diagonal, k)
    m = diagonal.size
    everything = np.arange(m)
    residual = diagonal.copy()
    smallest = tolerance(diagonal)
    chosen = np.empty(k, dtype=np.int64)
    rows = np.empty((k, m))
    for j in range(k):
        item = int(first_best(residual))
        variance = residual[item]
        if variance <= smallest:
            chosen[j:] = np.setdiff1d(everything, chosen[:j])[: k - j]
            break
        chosen[j] = item
        column = entries(everything, chosen[j : j + 1])[:, 0] - rows[:j, item] @ rows[:j]
        rows[j] = column / np.sqrt(variance)
        residual -= rows[j] ** 2
        residual[chosen[: j + 1]] = -np.inf
    return chosen
