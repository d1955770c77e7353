"""Tours of a second probe, against all orders."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest

from gp_active_sensing.experts.second_probe import short_tour
from gp_active_sensing.types import FloatArray


def length(order: tuple[int, ...], first: FloatArray, between: FloatArray) -> float:
    if not order:
        return 0.0
    return float(first[order[0]] + sum(between[a, b] for a, b in pairwise(order)))


def euclidean(rng: np.random.Generator, k: int) -> tuple[FloatArray, FloatArray]:
    points = rng.random((k + 1, 2))
    costs = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    return costs[0, 1:], costs[1:, 1:]


@pytest.mark.parametrize("one_way", [False, True])
def test_near_the_shortest_of_all_orders(one_way: bool) -> None:
    rng = np.random.default_rng(4)
    ratios = []
    for _ in range(60):
        first, between = euclidean(rng, 6)
        if one_way:
            between = between * rng.uniform(1.0, 3.0, between.shape)
        found = short_tour(first, between)
        assert sorted(found) == list(range(6))
        best = min(length(order, first, between) for order in permutations(range(6)))
        ratios.append(length(found, first, between) / best)
    assert min(ratios) >= 1.0 - 1e-12
    assert np.mean(ratios) < 1.01
    assert max(ratios) < 1.25


@pytest.mark.slow
def test_never_longer_than_the_nearest_one_next() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        first, between = euclidean(rng, 25)
        order: list[int] = []
        costs = first
        while len(order) < 25:
            order.append(min(set(range(25)) - set(order), key=lambda i: costs[i]))
            costs = between[order[-1]]
        nearest = length(tuple(order), first, between)
        assert length(short_tour(first, between), first, between) <= nearest + 1e-12


def test_places_without_a_way_are_left_out() -> None:
    inf = np.inf
    assert short_tour(np.array([inf, 1.0]), np.array([[0.0, inf], [inf, 0.0]])) == (1,)
    assert short_tour(np.array([inf]), np.zeros((1, 1))) == ()
    assert short_tour(np.zeros(0), np.zeros((0, 0))) == ()
