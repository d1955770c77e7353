"""Who goes where: goals that were chosen together are shared out by what it costs to get there."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = ["assign"]


def assign(costs: FloatArray) -> list[int | None]:
    """Return each probe's goal: as many as can be get one, for the least cost in all.

    [Kuhn1955]

    Args:
        costs: (k, g) of the way of each probe to each goal, infinite where there is none.

    Returns:
        For each probe the number of its goal, None where it gets none.

    Raises:
        ValueError: a cost that is negative or no number.
    """
    from scipy.optimize import linear_sum_assignment

    costs = np.asarray(costs, dtype=np.float64)
    if costs.ndim != 2 or np.isnan(costs).any() or (costs < 0.0).any():
        msg = f"expected costs (k, g), zero or more each, got {costs.tolist()}"
        raise ValueError(msg)
    possible = np.isfinite(costs)
    # Dearer than all possible ways together: one is taken only where nothing else is left.
    expensive = 1.0 + float(costs[possible].sum())
    rows, columns = linear_sum_assignment(np.where(possible, costs, expensive))
    goals: list[int | None] = [None] * costs.shape[0]
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if possible[row, column]:
            goals[row] = column
    return goals
