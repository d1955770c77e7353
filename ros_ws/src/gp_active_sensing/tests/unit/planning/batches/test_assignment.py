"""Who goes where: the least cost in all, against every way of sharing out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from gp_active_sensing.planning.batches.base import assign


def best(costs: np.ndarray) -> tuple[int, float]:
    """How many probes can get a goal, and for which cost at least, by enumeration."""
    k, g = costs.shape
    found = (0, 0.0)
    for goals in itertools.product([None, *range(g)], repeat=k):
        taken = [goal for goal in goals if goal is not None]
        if len(set(taken)) < len(taken):
            continue
        cost = sum(costs[i, goal] for i, goal in enumerate(goals) if goal is not None)
        if math.isfinite(cost) and (-len(taken), cost) < (-found[0], found[1]):
            found = (len(taken), cost)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_as_many_as_possible_for_the_least_cost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, g = rng.integers(1, 5, size=2)
    costs = rng.uniform(0.0, 100.0, size=(k, g))
    costs[rng.random((k, g)) < rng.choice([0.0, 0.3, 0.7])] = np.inf
    goals = assign(costs)
    got = [(i, goal) for i, goal in enumerate(goals) if goal is not None]
    assert len({goal for _, goal in got}) == len(got)
    number, cost = best(costs)
    assert len(got) == number
    assert sum(costs[pair] for pair in got) == pytest.approx(cost)


def test_nobody_can_go_anywhere() -> None:
    assert assign(np.full((2, 3), np.inf)) == [None, None]
    assert assign(np.empty((2, 0))) == [None, None]


def test_standing_at_the_goals_costs_nothing() -> None:
    assert assign(np.array([[5.0, 0.0], [0.0, 5.0]])) == [1, 0]


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_costs_that_are_none(bad: float) -> None:
    with pytest.raises(ValueError, match="zero or more each"):
        assign(np.array([[1.0, bad]]))
