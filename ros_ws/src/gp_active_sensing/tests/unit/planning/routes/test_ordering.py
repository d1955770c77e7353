"""Short open tours, against every order there is and against going on to the nearest place."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from gp_active_sensing.planning.routes.ordering import short_tour
from gp_active_sensing.types import FloatArray, IntArray


def case(seed: int, k: int) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
    """Return distances of a random case: half of them as on one-way roads, start and end or not."""
    rng = np.random.default_rng([seed, k])
    x = rng.random((k + 2, 2))
    d = np.hypot(*(x[:, None] - x).transpose(2, 0, 1))
    if seed % 2:
        d = d * rng.uniform(0.5, 2.0, d.shape)
    np.fill_diagonal(d, 0.0)
    return d[:k, :k], d[k, :k] if seed % 3 else None, d[:k, k + 1] if seed % 5 < 2 else None


def length(order: IntArray, between: FloatArray, *ends: FloatArray | None) -> float:
    """Return the length of a tour from the first of the ends to the last, where they are given."""
    given = ((end, at) for end, at in zip(ends, (0, -1), strict=True) if end is not None)
    return float(between[order[:-1], order[1:]].sum() + sum(end[order[at]] for end, at in given))


def test_near_the_shortest_of_all_orders() -> None:
    ratios = []
    for seed in range(120):
        k = 1 + seed % 7
        between, first, last = case(seed, k)
        tour = short_tour(between, first, last)
        assert sorted(tour.order.tolist()) == list(range(k))
        shortest = min(
            length(np.array(order), between, first, last) for order in permutations(range(k))
        )
        if shortest > 0.0:
            ratios.append(length(tour.order, between, first, last) / shortest)
    assert np.mean(ratios) < 1.02
    assert max(ratios) < 1.25


def test_the_same_arguments_give_the_same_tour_and_a_limit_is_kept() -> None:
    between, first, last = case(7, 40)
    whole = short_tour(between, first, last)
    assert short_tour(between, first, last).order.tolist() == whole.order.tolist()
    before = float("inf")
    for limit in (0, 20, 10_000):
        tour = short_tour(between, first, last, limit=limit)
        assert tour.expanded <= limit
        now = length(tour.order, between, first, last)
        assert now <= before
        before = now
    assert tour.expanded == whole.expanded
    assert short_tour(between, first, spent=lambda: True).expanded == 0


def test_none_and_wrong_shapes() -> None:
    assert short_tour(np.empty((0, 0))).order.size == 0
    with pytest.raises(ValueError, match="between 2 places"):
        short_tour(np.zeros((2, 2)), np.zeros(3))
