"""k-DPPs: probabilities by enumeration, the greedy maximum, kernels that are singular, sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chisquare

from gp_active_sensing.planning.dpp import (
    _REFRESH,
    Entries,
    _BasesExchange,
    draw,
    greedy_kdpp,
    log_elementary,
    mixing_steps,
    sample_kdpp,
    sample_kdpp_mcmc,
)
from gp_active_sensing.types import FloatArray, IntArray
from tests.cases import for_each

Sampler = Callable[[Entries, FloatArray, int, np.random.Generator], IntArray]
SAMPLERS: list[Sampler] = [sample_kdpp, sample_kdpp_mcmc]
ALL = [*SAMPLERS, lambda entries, diagonal, k, rng: greedy_kdpp(entries, diagonal, k)]


def entries_of(L: FloatArray) -> Entries:
    return lambda rows, columns: L[np.ix_(rows, columns)]


def kernel(m: int, seed: int = 0) -> FloatArray:
    """A covariance of random vectors, with unequal variances."""
    A = np.random.default_rng([seed, m]).normal(size=(m, m))
    return A @ A.T + 0.1 * np.eye(m)


def smooth(m: int, scale: float, nugget: float) -> FloatArray:
    x = np.linspace(0.0, 1.0, m)
    return np.exp(-0.5 * ((x[:, None] - x) / scale) ** 2) + nugget * np.eye(m)


def enumerated(L: FloatArray, k: int) -> dict[tuple[int, ...], float]:
    """Probability of every set of size k."""
    sets = itertools.combinations(range(len(L)), k)
    weights = {s: float(np.linalg.det(L[np.ix_(s, s)])) for s in sets}
    total = sum(weights.values())
    return {s: weight / total for s, weight in weights.items()}


@pytest.mark.slow
@for_each(
    ("sampler", "k", "draws"),
    [
        *((sample_kdpp, k, 6000) for k in (2, 3, 5)),
        (sample_kdpp_mcmc, 3, 1500),  # a thousand steps of the chain each
    ],
)
def test_frequencies_are_the_probabilities_of_all_sets(
    sampler: Sampler, k: int, draws: int, dose: float
) -> None:
    scale, draws = np.linspace(0.8, 1.2, 7), round(draws * dose)
    L = scale[:, None] * smooth(7, 0.3, 0.1) * scale
    entries, diagonal, rng = entries_of(L), np.diagonal(L), np.random.default_rng(1)
    counts = dict.fromkeys(itertools.combinations(range(7), k), 0)
    for _ in range(draws):
        counts[tuple(sampler(entries, diagonal, k, rng).tolist())] += 1

    def agreement(L: FloatArray) -> float:
        p = np.array(list(enumerated(L, k).values()))
        return float(chisquare(list(counts.values()), draws * p).pvalue)

    assert agreement(L) > 0.01
    # So many draws tell this kernel from one whose items do not repel each other.
    assert agreement(np.diag(np.diagonal(L))) < 1e-6


def transitions(L: FloatArray, k: int) -> tuple[list[tuple[int, ...]], FloatArray]:
    """All sets and the chain's transition matrix, from the quantiles at which its step changes."""
    sets = list(itertools.combinations(range(len(L)), k))
    number = {s: i for i, s in enumerate(sets)}
    P = np.zeros((len(sets), len(sets)))
    for s in sets:
        for slot in range(k):
            rest = [x for i, x in enumerate(s) if i != slot]
            free = [x for x in range(len(L)) if x not in rest]
            weights = [np.linalg.det(L[np.ix_([*rest, x], [*rest, x])]) for x in free]
            edges = np.concatenate([[0.0], np.cumsum(weights) / sum(weights)])
            for x, low, high in zip(free, edges[:-1], edges[1:], strict=True):
                # Either end of its share of the quantiles brings this item in.
                for u in (low + 1e-9, high - 1e-9):
                    walk = _BasesExchange(entries_of(L), np.diagonal(L).copy(), np.array(s))
                    walk.exchange(slot, u)
                    assert sorted(walk.items) == sorted([*rest, x])
                P[number[s], number[tuple(sorted([*rest, x]))]] += (high - low) / k
    return sets, P


@for_each("k", [2, 4])
def test_the_walk_has_the_right_distribution_and_mixes_within_its_steps(k: int) -> None:
    L = kernel(6, seed=3)
    sets, P = transitions(L, k)
    p = np.array(list(enumerated(L, k).values()))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose(p @ P, p, atol=1e-12)
    for epsilon in (0.3, 0.01):
        start = tuple(sorted(greedy_kdpp(entries_of(L), np.diagonal(L), k).tolist()))
        steps = mixing_steps(
            np.diagonal(L), k, np.linalg.slogdet(L[np.ix_(start, start)])[1], epsilon
        )
        reached = np.linalg.matrix_power(P, steps)[sets.index(start)]
        assert 0.5 * np.abs(reached - p).sum() <= epsilon


def test_what_the_walk_carries_along_is_what_it_would_compute_afresh() -> None:
    L = smooth(200, 0.05, 1e-2)
    diagonal, rng = np.diagonal(L).copy(), np.random.default_rng(0)
    walk = _BasesExchange(entries_of(L), diagonal, greedy_kdpp(entries_of(L), diagonal, 15))
    while walk.exchanges % _REFRESH != _REFRESH - 1:
        walk.exchange(int(rng.integers(15)), float(rng.random()))
    S = walk.items
    assert len(set(S.tolist())) == 15
    inverse = np.linalg.inv(L[np.ix_(S, S)])
    np.testing.assert_allclose(walk.inverse, inverse, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(walk.weights, inverse @ L[S], rtol=1e-9, atol=1e-9)
    residual = diagonal - np.einsum("in,in->n", L[S], inverse @ L[S])
    np.testing.assert_allclose(walk.residual, residual, atol=1e-9)
    # An error that creeps in is gone after the next exchange, which computes all afresh.
    walk.residual += 1e-6
    walk.weights += 1e-6
    walk.inverse += 1e-6
    while walk.exchanges % _REFRESH:
        walk.exchange(int(rng.integers(15)), float(rng.random()))
    afresh = _BasesExchange(entries_of(L), diagonal, walk.items)
    np.testing.assert_allclose(walk.residual, afresh.residual, atol=1e-9)
    np.testing.assert_allclose(walk.weights, afresh.weights, atol=1e-9)
    np.testing.assert_allclose(walk.inverse, afresh.inverse, atol=1e-9)


@pytest.mark.seeds
def test_greedy_takes_the_largest_determinant_at_every_step(seed: int) -> None:
    L = kernel(30, seed)
    chosen = greedy_kdpp(entries_of(L), np.diagonal(L), 8).tolist()
    for j in range(8):
        before = chosen[:j]
        rest = [x for x in range(30) if x not in before]
        sets = [[*before, x] for x in rest]
        best = max(sets, key=lambda s: np.linalg.slogdet(L[np.ix_(s, s)])[1])
        assert chosen[j] == best[-1]


def test_only_the_columns_that_are_needed_are_formed() -> None:
    L = smooth(600, 0.01, 0.1)
    asked: list[int] = []

    def entries(rows: IntArray, columns: IntArray) -> FloatArray:
        asked.append(rows.size * columns.size)
        return L[np.ix_(rows, columns)]

    greedy_kdpp(entries, np.diagonal(L), 9)
    assert sum(asked) == 9 * 600
    asked.clear()
    sample_kdpp_mcmc(entries, np.diagonal(L), 9, np.random.default_rng(0))
    assert max(asked) <= 9 * 600
    assert sum(asked) < 0.5 * L.size


@for_each("choose", ALL)
def test_sizes(choose: Sampler) -> None:
    L = kernel(5)
    rng = np.random.default_rng(0)
    entries, diagonal = entries_of(L), np.diagonal(L)
    assert choose(entries, diagonal, 0, rng).tolist() == []
    assert choose(entries, diagonal, 1, rng).size == 1
    assert sorted(choose(entries, diagonal, 5, rng).tolist()) == [0, 1, 2, 3, 4]
    assert choose(entries_of(np.empty((0, 0))), np.empty(0), 0, rng).size == 0
    for k in (6, -1):
        with pytest.raises(ValueError, match=rf"set of 0 … 5 items, got k = {k}"):
            choose(entries, diagonal, k, rng)
    with pytest.raises(ValueError, match=r"not negative, got -1\.0 for item 0"):
        choose(entries, -np.ones(5), 2, rng)
    with pytest.raises(ValueError, match="got nan for item 0"):
        choose(entries, np.full(5, np.nan), 2, rng)


@for_each("sampler", SAMPLERS)
def test_kernels_that_are_singular(sampler: Sampler) -> None:
    rng = np.random.default_rng(0)
    # Five items of which 0 and 1, and 2 and 3, are the same: no set holds both.
    B = np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0.5], [0, 1, 0.5], [0, 0, 2]])
    L = B @ B.T
    for _ in range(50):
        drawn = sampler(entries_of(L), np.diagonal(L), 3, rng).tolist()
        assert drawn[0] in (0, 1)
        assert drawn[1] in (2, 3)
        assert drawn[2] == 4
    with pytest.raises(ValueError, match=r"rank 4 or more .* got one of rank 3"):
        sampler(entries_of(L), np.diagonal(L), 4, rng)
    with pytest.raises(ValueError, match="rank 0"):
        sampler(entries_of(np.zeros((4, 4))), np.zeros(4), 1, rng)


def test_greedy_fills_up_where_the_determinant_is_zero_anyway() -> None:
    L = np.ones((4, 4))
    assert greedy_kdpp(entries_of(L), np.diagonal(L), 3).tolist() == [0, 1, 2]


def test_elementary_symmetric_polynomials_far_beyond_the_range_of_floats() -> None:
    values = np.array([0.5, 2.0, 3.0, 0.1])
    table = np.exp(log_elementary(np.log(values), 4))
    for r in range(5):
        for j in range(5):
            sets = itertools.combinations(values[:r], j)
            assert table[j, r] == pytest.approx(sum(math.prod(s) for s in sets))
    # e_50 of 500 values of 1e12: C(500, 50) 1e600.
    table = log_elementary(np.full(500, math.log(1e12)), 50)
    expected = math.log(math.comb(500, 50)) + 600 * math.log(10.0)
    assert table[50, 500] == pytest.approx(expected)


@pytest.mark.slow
@for_each("sampler", SAMPLERS)
def test_large_sets_do_not_depend_on_the_scale_of_the_kernel(sampler: Sampler) -> None:
    L = smooth(500, 0.005, 1e-3)
    drawn = [
        sampler(entries_of(c * L), c * np.diagonal(L), 50, np.random.default_rng(0)).tolist()
        for c in (1.0, 2.0**-40, 2.0**40)
    ]
    assert len(set(drawn[0])) == 50
    assert drawn[0] == drawn[1] == drawn[2]
    # Neighbours, correlated by 0.92, repel: drawn blindly 4.9 pairs of them would be together.
    rng = np.random.default_rng(1)
    sets = [sampler(entries_of(L), np.diagonal(L), 50, rng) for _ in range(10)]
    assert sum(int((np.diff(s) == 1).sum()) for s in sets) < 25


def test_the_last_quantile_draws_what_weighs_something() -> None:
    weights = np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    assert [draw(weights, u) for u in (0.0, 0.2499, 0.25, 1.0)] == [1, 1, 3, 3]
