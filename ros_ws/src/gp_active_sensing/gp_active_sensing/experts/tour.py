"""Order of a short tour over some places."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = ["short_tour"]


def short_tour(first: FloatArray, between: FloatArray) -> tuple[int, ...]:
    """Return the order in which to visit k places, beginning anywhere else, ending anywhere.

    The nearest one next, then pieces of the order are turned round or moved elsewhere as long as
    that makes it shorter: a local optimum, near the shortest for the few tens of places that are
    asked for. Costs may differ with the direction, as on one-way roads. O(k³) a pass.

    Args:
        first: (k,) cost from where the tour begins to each place; infinite = no way.
        between: (k, k) cost from the row's place to the column's.

    Returns:
        Indices 0 … k-1 in order; places to which there is no way from the one before are left out.
    """
    order = _nearest_next(first, between)
    best = _length(order, first, between)
    while True:
        found = _improved(order, best, first, between)
        if found is None:
            return tuple(order)
        order, best = found


def _nearest_next(first: FloatArray, between: FloatArray) -> list[int]:
    order: list[int] = []
    left = set(range(len(first)))
    costs = first
    while left:
        place = min(left, key=lambda i: (costs[i], i))
        if not np.isfinite(costs[place]):
            break
        order.append(place)
        left.remove(place)
        costs = between[place]
    return order


def _length(order: list[int], first: FloatArray, between: FloatArray) -> float:
    if not order:
        return 0.0
    return float(first[order[0]] + between[order[:-1], order[1:]].sum())


def _improved(
    order: list[int], best: float, first: FloatArray, between: FloatArray
) -> tuple[list[int], float] | None:
    """Return the best order one change away, None when there is none that is shorter."""
    found = None
    least = best * (1.0 - 1e-12) - 1e-12
    k = len(order)
    for i in range(k):
        for j in range(i + 1, k + 1):
            piece, rest = order[i:j], order[:i] + order[j:]
            trials = [rest[:i] + piece[::-1] + rest[i:]]
            if j - i <= 3:  # a longer piece that moves is a shorter one that moves the other way
                trials += [rest[:m] + piece + rest[m:] for m in range(len(rest) + 1) if m != i]
            for trial in trials:
                length = _length(trial, first, between)
                if length < least:
                    found, least = trial, length
    return None if found is None else (found, least)
