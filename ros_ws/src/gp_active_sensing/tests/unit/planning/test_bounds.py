"""Chain-rule bounds of `bal`: no set of places has more information."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.planning.bal.bounds import _thinned, chain_rule, initial_bounds
from gp_active_sensing.planning.bal.covariance_state import CovarianceState, DecisionProblem
from gp_active_sensing.planning.entropy import noise_entropy
from gp_active_sensing.topology import FreeTopology
from tests.cases import for_each

NOISE = np.array([0.3, 0.05])


def covariance(kind: str, n: int = 6) -> np.ndarray:
    """(2, n, n): of places that tell nothing of each other, or of some that do."""
    if kind == "independent":
        return np.array([np.diag(np.linspace(1.0, 2.0, n)), np.diag(np.linspace(3.0, 1.0, n))])
    if kind == "one large":  # of which more is left when it was read than the others have
        return np.array([np.diag([9.0, 0.1, 0.1, 0.2, 0.05, 0.1]), np.diag([8.0] + 5 * [0.01])])
    x = np.random.default_rng(4).uniform(0.0, 6.0, n)
    apart = np.abs(x[:, None] - x)
    return np.array([2.0 * np.exp(-0.5 * (apart / ell) ** 2) for ell in (0.3, 2.0)])


def information(C: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    block = C[np.ix_(range(2), places, places)]
    return 0.5 * np.linalg.slogdet(np.eye(len(places)) + block / NOISE[:, None, None])[1]


def greedy(C: np.ndarray, k: int, focus: np.ndarray) -> tuple[int, ...]:
    """The k places that have the largest gain, one after another."""
    walk: tuple[int, ...] = ()
    for _ in range(k):
        rest = [x for x in range(C.shape[1]) if x not in walk]
        walk = (*walk, max(rest, key=lambda x: float(focus @ information(C, (*walk, x)))))
    return walk


def smallest(C: np.ndarray, k: int) -> list[float]:
    """(2,) least bound over the prefixes of the greedy walk under each candidate [Minoux1978]."""
    found = []
    for i, focus in enumerate(np.eye(2)):
        walk, bounds = greedy(C, k - 1, focus), []
        for prefix in (walk[:j] for j in range(k)):
            told = information(C, prefix)[i]
            rest = [x for x in range(C.shape[1]) if x not in prefix]
            gains = sorted(information(C, (*prefix, x))[i] - told for x in rest)
            bounds.append(told + sum(gains[-k:]))
        found.append(min(bounds))
    return found


@for_each("kind", ["independent", "correlated", "one large"])
@for_each("k", [2, 3, 4])
def test_greedy_bounds_are_the_least_over_the_prefixes_of_the_walks(kind: str, k: int) -> None:
    """The walks are greedy under each candidate and on average."""
    C = covariance(kind)
    at = np.column_stack([np.arange(6.0), np.zeros(6)])
    topology, every = FreeTopology("free", "map", list("abcdef"), at), np.arange(6)
    none = np.zeros(6, dtype=bool)
    problem = DecisionProblem(topology, none, (), NOISE, noise_entropy(NOISE), 1, lambda: None)
    count = problem.free_sequences(6, k)
    fixed, best = chain_rule(CovarianceState(problem, k, frozenset(), every, every, count, C))
    np.testing.assert_allclose(best, smallest(C, k), rtol=1e-9)
    for row, focus in zip(fixed, [*np.eye(2), np.full(2, 0.5)], strict=True):
        np.testing.assert_allclose(row, information(C, greedy(C, k, focus)), rtol=1e-9)


def test_of_many_sets_the_best_under_each_candidate_are_kept() -> None:
    fixed = np.random.default_rng(0).uniform(size=(500, 5))
    fixed[:5] = -9.0  # bad on average, and together
    fixed[np.arange(5), np.arange(5)] = 1.5
    kept = _thinned(fixed)
    assert len(kept) < 50
    np.testing.assert_array_equal(kept.max(axis=0), fixed.max(axis=0))


def test_rounding_does_not_put_bounds_out_of_order() -> None:
    fixed = np.array([[[0.7, 0.3]]])
    lower, upper = initial_bounds(fixed, fixed[:, 0] - 1e-16, np.array([[[1.0, 0.0]]]))
    assert lower.item() <= upper.item()
